//! `pause`: starts no more tasks of a plan, or holds one back.

use clap::Args;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::typed::{Address, BY_PERSON, by_person};
use crate::context::Session;
use crate::target::{decide, find_part};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// The plan, or one of its tasks
    #[arg(value_name = "PLAN[/TASK]")]
    #[schema(value_type = String)]
    pub target: Address,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn pause(session: &Session, Pause { target, reason }: Pause) -> Result<Code, Failure> {
    let (target, task) = find_part(session, &target, Choice::Changed).await?;
    let Some(task) = task else {
        let paused = format!("{} is paused; running tasks continue until they end", target.plan);
        return decide(session, target, Command::Pause { reason }, &paused).await;
    };
    let name = target.name(task);
    let resume = session.command_in("resume", &target.plan, &name);
    let paused = format!("task {name} is paused; if it runs, it continues until it ends");
    let code = decide(session, target, Command::PauseTask { task, reason }, &paused).await?;
    session.suggest(&format!("to let it start: {resume}"));
    Ok(code)
}
