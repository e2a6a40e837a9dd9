//! `cancel`: ends a plan or a task.

use clap::Args;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::typed::{Address, BY_PERSON, by_person};
use crate::commands::task::changing::check_person;
use crate::context::Session;
use crate::target::{decide, find_part};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The plan, or one of its tasks
    #[arg(value_name = "PLAN[/TASK]")]
    #[schema(value_type = String)]
    pub target: Address,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
    /// Run the undo commands of the plan's completed tasks
    #[arg(long)]
    #[serde(default)]
    pub compensate: bool,
}

pub async fn cancel(session: &Session, cancel: Cancel) -> Result<Code, Failure> {
    let (target, task) = find_part(session, &cancel.target, Choice::Sole).await?;
    if let Some(task) = task.and_then(|task| target.state().task(task)) {
        check_person(session, task).await?;
    }
    let command = match (cancel.compensate, task) {
        (true, None) => Command::CancelAndUndo { reason: cancel.reason },
        (false, task) => Command::Cancel { task, reason: cancel.reason },
        (true, Some(_)) => return Err(Failure::user("--compensate undoes what a plan did, and this is a task")),
    };
    let cancelled = task.map_or_else(|| target.plan.clone(), |task| format!("task {}", target.name(task)));
    decide(session, target, command, &format!("{cancelled} is cancelled")).await
}
