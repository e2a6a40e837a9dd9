//! `task move`: makes a task wait for other tasks than before.

use clap::Args;
use crewlog_executors::consent::Consent;
use crewlog_planner::event::{Amendment, Command};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing::{check_person, give};
use crate::cli::typed::{BY_PERSON, InPlan, by_person};
use crate::context::Session;
use crate::target::Target;
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    #[schema(value_type = String)]
    pub task: InPlan,
    /// The only tasks of the plan to wait for, by number or label; none if left out
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    #[serde(default)]
    pub after: Vec<String>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn reorder(session: &Session, Move { task, after, reason }: Move) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    let task = target.task(session, &task.name)?;
    check_person(session, task).await?;
    // Without its order it would not wait for the answer any more.
    if target.state().waits_for_question(task.plan.id) {
        session.person_only("skip or change a question").await?;
    }
    let amendments = vec![Amendment::Reorder { task: task.plan.id, after: target.ids(session, &after)? }];
    give(session, target, Command::Amend { amendments, reason }, "moved", Consent::default()).await
}
