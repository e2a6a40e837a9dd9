//! `task fail`: reports that a task cannot be done.

use clap::Args;
use crewlog_planner::claim::Ending;
use crewlog_planner::event::FailureClass;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing::report;
use crate::cli::typed::InPlan;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    #[schema(value_type = String)]
    pub task: InPlan,
    /// Why
    pub error: String,
}

pub async fn fail(session: &Session, Fail { task, error }: Fail) -> Result<Code, Failure> {
    let ending = Ending::Failed { error, class: FailureClass::Task, run: None };
    report(session, &task, ending, "has failed").await
}
