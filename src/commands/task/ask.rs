//! `task ask`: asks a question about a task, which then waits for the answer.

use std::time::Duration;

use clap::Args;
use crewlog_planner::event::Command;
use crewlog_planner::plan::DefaultAnswer;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::typed::{InPlan, Typed};
use crate::context::Session;
use crate::target::{Target, decide};
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

use crate::ui::text::millis;
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The task: one that has not started, or that waits for an answer
    #[arg(value_name = "PLAN/TASK")]
    #[schema(value_type = String)]
    pub task: InPlan,
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub question: String,
    /// The default answer, with --after
    #[arg(long, value_name = "ANSWER", requires = "after")]
    pub default: Option<String>,
    /// When the default answer counts (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", requires = "default")]
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub after: Option<Typed<Duration>>,
}

pub async fn ask(session: &Session, ask: Ask) -> Result<Code, Failure> {
    if ask.question.trim().is_empty() {
        return Err(Failure::user("the question is empty").hint("say what is to be known"));
    }
    let target = Target::find(session, &ask.task.plan, Choice::Changed).await?;
    let task = target.id(session, &ask.task.name)?;
    if ask.default.is_some() {
        session.person_only("set the answer to a question").await?;
    }
    let default = ask.default.zip(ask.after);
    let default = default.map(|(answer, after)| DefaultAnswer { answer, after_ms: millis(after.value) });
    let question_id = target.state().questions.len() + 1;
    let said = format!("q{question_id} is asked of task {}", target.name(task));
    decide(session, target, Command::Ask { task, question: ask.question, default }, &said).await
}
