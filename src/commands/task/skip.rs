//! `task skip`: skips tasks; the tasks that wait for them may run.

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
use crate::views::names::{Choice, find_plan};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Tasks of one plan
    #[arg(required = true, value_name = "PLAN/TASK")]
    #[schema(value_type = Vec<String>)]
    pub tasks: Vec<InPlan>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn skip(session: &Session, Skip { tasks, reason }: Skip) -> Result<Code, Failure> {
    let plan = tasks.first().map(|task| task.plan.as_str()).unwrap_or_default();
    let target = Target::find_to_tell(session, plan).await?;
    let mut amendments = Vec::new();
    for InPlan { plan, name } in &tasks {
        if *plan != tasks[0].plan && find_plan(session, &target.store, plan, Choice::Changed).await? != target.plan {
            return Err(Failure::user("these are tasks of several plans").hint("skip the tasks of one plan at a time"));
        }
        let task = target.task(session, name)?;
        check_person(session, task).await?;
        amendments.push(Amendment::Skip { task: task.plan.id, keeps_order: true });
    }
    give(session, target, Command::Amend { amendments, reason }, "changed", Consent::default()).await
}
