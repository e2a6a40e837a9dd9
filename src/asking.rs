//! Changing what is asked: `ask`, `withdraw`. Each lets the planner decide and appends what follows.

use crewlog_planner::event::Command;
use crewlog_planner::plan::DefaultAnswer;

use crate::act::{Target, decide, find_question};
use crate::cli::{Ask, Withdraw};
use crate::failure::{Code, Failure};
use crate::session::Session;

/// `ask`.
pub async fn ask(session: &Session, ask: Ask) -> Result<Code, Failure> {
    if ask.question.trim().is_empty() {
        return Err(Failure::user("the question is empty").hint("say what is to be known"));
    }
    let target = Target::find(session, &ask.plan).await?;
    let task = target.task(session, &ask.task)?.plan.id;
    let default = ask.default.zip(ask.after).map(|(answer, after)| DefaultAnswer {
        answer,
        after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
    });
    let question_id = target.planner.handler().state().questions().len() + 1;
    let said = format!("q{question_id} is asked of task {}", ask.task);
    decide(session, target, Command::Ask { task, question: ask.question, default }, &said).await
}

/// `withdraw`.
pub async fn withdraw(session: &Session, withdraw: Withdraw) -> Result<Code, Failure> {
    let target = Target::find(session, &withdraw.plan).await?;
    let (_, question) = find_question(&target, session, &withdraw.question)?;
    let command = Command::Withdraw { question, reason: withdraw.reason };
    decide(session, target, command, &format!("{question} is withdrawn")).await
}
