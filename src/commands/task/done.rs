//! `task done`: reports that a person has done a task.

use clap::Args;
use crewlog_planner::claim::Ending;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing::report;
use crate::cli::typed::InPlan;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    #[schema(value_type = String)]
    pub task: InPlan,
    /// Its result
    #[arg(default_value = DONE)]
    #[serde(default = "done_text")]
    pub result: String,
}

const DONE: &str = "done";

fn done_text() -> String {
    DONE.to_owned()
}

pub async fn done(session: &Session, Done { task, result }: Done) -> Result<Code, Failure> {
    let ending = Ending::Completed { result, run: None };
    report(session, &task, ending, "is done").await
}
