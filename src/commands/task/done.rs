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
    #[arg(default_value_t = done_text())]
    #[serde(default = "done_text")]
    pub result: String,
}

fn done_text() -> String {
    "done".to_owned()
}

pub async fn done(session: &Session, Done { task, result }: Done) -> Result<Code, Failure> {
    report(session, &task, Ending::Completed { result, run: None }, "is done").await
}
