//! `task withdraw`: withdraws a question.

use clap::Args;
use crewlog_planner::event::Command;

use crate::cli::typed::{InPlan, in_plan};
use crate::context::Session;
use crate::target;
use crate::target::{Target, decide};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Args)]
pub struct Withdraw {
    /// The question: PLAN/q1, or the task that asks
    #[arg(value_name = "PLAN/QUESTION", value_parser = in_plan)]
    pub question: InPlan,
    /// Why
    #[arg(long, default_value = "withdrawn by a person")]
    pub reason: String,
}

pub async fn withdraw(session: &Session, Withdraw { question, reason }: Withdraw) -> Result<Code, Failure> {
    session.person_only("withdraw questions")?;
    let target = Target::find(session, &question.plan, Choice::Changed).await?;
    let question = target::find_question(&target, session, Some(&question.name))?;
    let command = Command::Withdraw { question, reason };
    decide(session, target, command, &format!("{question} is withdrawn")).await
}
