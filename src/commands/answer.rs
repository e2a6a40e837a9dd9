//! `answer`: answers a question of a plan or of an agent.

use clap::Args;
use crewlog_executors::crew::Refusal;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::asks::{Answer as Said, Wanted};
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::Address;
use crate::context::Session;
use crate::context::crew::open;
use crate::target::{Target, decide, find_question};
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question: PLAN/q1, the task that asks, a plan with one open question, or a12 of an agent
    #[arg(value_name = "PLAN/QUESTION")]
    #[schema(value_type = String)]
    pub question: Address,
    /// The answer; allow or deny for an agent that asks for permission
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// Words for the agent, after allow or deny
    #[arg(allow_hyphen_values = true, conflicts_with = "ask")]
    pub note: Option<String>,
    /// Ask this of the same task too, which then waits for both answers
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
}

pub async fn answer(session: &Session, answer: Answer) -> Result<Code, Failure> {
    session.person_only("answer questions").await?;
    match number_of(&answer.question) {
        Some(number) => answer_agent(session, number, answer).await,
        None => answer_plan(session, answer).await,
    }
}

async fn answer_plan(session: &Session, answer: Answer) -> Result<Code, Failure> {
    let Address { plan, part } = answer.question;
    let text = answer.text;
    if answer.note.is_some() {
        return Err(two_texts());
    }
    if text.trim().is_empty() {
        return Err(Failure::user("the answer is empty").hint("say something, since an answer is final"));
    }
    let target = Target::find_to_tell(session, &plan).await?;
    let question = find_question(&target, session, part.as_deref())?;
    let (command, also) = match answer.ask {
        Some(further) => (Command::AnswerAndAsk { question, answer: text, further }, ", and another is asked"),
        None => (Command::Answer { question, answer: text }, ""),
    };
    decide(session, target, command, &format!("{question} is answered{also}")).await
}

/// The number of an agent's question: `a12`.
fn number_of(question: &Address) -> Option<u64> {
    question.plan.strip_prefix(['a', 'A']).filter(|_| question.part.is_none())?.parse().ok()
}

/// The refusal of an answer in several arguments.
fn two_texts() -> Failure {
    Failure::user("the answer is one text, and two were given").hint("put the answer in quotes")
}

/// `answer` of an agent's question: allow or deny for a permission.
async fn answer_agent(session: &Session, number: u64, answer: Answer) -> Result<Code, Failure> {
    let (id, Answer { text, note, .. }) = (format!("a{number}"), answer);
    let crew = open(session).await?;
    let note = note.filter(|note| !note.trim().is_empty());
    let wanted = crew.asks().await?.open().find(|(open, _)| *open == number).map(|(_, open)| open.ask.wanted);
    let (text, is_granted) = match (wanted == Some(Wanted::Permission), text.trim().to_lowercase().as_str()) {
        (true, "allow" | "yes") => (note.unwrap_or(text), Some(true)),
        (true, "deny" | "no") => (note.unwrap_or(text), Some(false)),
        (true, _neither) => {
            let failure = Failure::user(format!("{id} asks for permission, and {text:?} is neither allow nor deny"));
            return Err(["allow", "deny"]
                .iter()
                .fold(failure, |failure, word| failure.hint(session.command(&format!("answer {id} {word}")))));
        }
        // A closed question is refused below.
        (false, _) if note.is_some() && wanted.is_some() => {
            return Err(two_texts());
        }
        (false, _) => (text, None),
    };
    let answered = crew.answer(number, Said { by: session.person(), text, is_granted }).await;
    if let Err(refusal @ Refusal::Crew(CrewError::Missing(_))) = answered {
        let open = crew.asks().await?.open().map(|(number, _)| format!("a{number}")).collect::<Vec<_>>();
        let failure = Failure::from(refusal).hint("`crewlog inbox` lists what waits for you");
        return Err(if open.is_empty() { failure } else { failure.hint(format!("open are {}", open.join(", "))) });
    }
    answered?;
    session.print_done(&format!("{id} is answered"), &json!({ "ask": id }))
}
