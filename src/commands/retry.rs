//! `retry`: opens failed tasks again.

use std::time::Duration;

use clap::Args;
use crewlog_executors::breakers::Breakers;
use crewlog_executors::claiming::claim_of;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::typed::Address;
use crate::context::{Session, roster};
use crate::target::{decide, find_part};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// A task, or a plan with all its failed tasks
    #[arg(value_name = "PLAN[/TASK]")]
    #[schema(value_type = String)]
    pub target: Address,
    /// Retry at once a task that waits for its next attempt, and end the wait of its executor for a rate limit
    #[arg(long)]
    #[serde(default)]
    pub now: bool,
}

pub async fn retry(session: &Session, retry: Retry) -> Result<Code, Failure> {
    let (target, task) = find_part(session, &retry.target, Choice::Sole).await?;
    session.place.check_key(&target.plan, &target.tags)?;
    if !retry.now {
        let command = Command::Retry { task };
        target.check_parent(session, &command).await?;
        return decide(session, target, command, "open again: ").await;
    }
    let Some(task) = task else { return Err(Failure::user("--now hastens one task: write PLAN/TASK")) };
    let mut claim = claim_of(&target.store, &target.plan, task, target.tags.clone());
    claim.catch_up().await?;
    if let Some(holder) = &claim.handler().holder {
        let (name, executor) = (target.name(task), &holder.executor);
        return Err(Failure::new(Code::Conflict, format!("task {name} is being tried now, by {executor}")));
    }
    let roster = roster::roster(session, Duration::MAX, &[]).ok();
    let waiting = target.state().task(task).filter(|waiting| !waiting.status.is_end());
    let agent = waiting.zip(roster.as_ref()).and_then(|(waiting, roster)| roster.agent_for(&waiting.plan));
    let has_ended = Breakers::new(&target.store).end_wait(agent).await?;
    if has_ended && waiting.is_some_and(|waiting| waiting.retry_ms.is_none()) {
        return target.say(session, "its executor no longer waits for its rate limit").await;
    }
    decide(session, target, Command::RetryNow { task }, "it is tried now").await
}
