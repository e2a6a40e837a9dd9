//! `task withdraw`: withdraws a question.

use clap::Args;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::typed::{BY_PERSON, InPlan, by_person};
use crate::context::Session;
use crate::target::{Target, decide, find_question};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    /// The question: PLAN/q1, or the task that asks
    #[arg(value_name = "PLAN/QUESTION")]
    #[schema(value_type = String)]
    pub question: InPlan,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn withdraw(session: &Session, Withdraw { question, reason }: Withdraw) -> Result<Code, Failure> {
    session.person_only("withdraw questions").await?;
    let target = Target::find(session, &question.plan, Choice::Changed).await?;
    let question = find_question(&target, session, Some(&question.name))?;
    let command = Command::Withdraw { question, reason };
    decide(session, target, command, &format!("{question} is withdrawn")).await
}
