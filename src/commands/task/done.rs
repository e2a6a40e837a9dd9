//! `task done`: reports that a person has done a task.

use clap::Args;
use crewlog_planner::claim::Ending;

use super::report;
use crate::cli::typed::{InPlan, in_plan};
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Args)]
pub struct Done {
    /// The task
    #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
    pub task: InPlan,
    /// Its result
    #[arg(default_value = "done")]
    pub result: String,
}

pub async fn done(session: &Session, Done { task, result }: Done) -> Result<Code, Failure> {
    let ending = Ending::Completed { result, run: None };
    report(session, &task, ending, &format!("task {} is done", task.name)).await
}
