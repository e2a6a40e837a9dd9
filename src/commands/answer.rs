//! `answer`: answers a question of a plan or of an agent.

use clap::Args;
use crewlog_executors::crew::Refusal;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::asks::Answer as Said;
use crewlog_planner::event::Command;
use serde_json::json;

use crate::cli::typed::{Address, address};
use crate::context::Session;
use crate::context::crew::open;
use crate::target::{Target, decide, find_question};
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Args)]
pub struct Answer {
    /// The question: PLAN/q1, the task that asks, a plan with one open question, or a12 of an agent
    #[arg(value_name = "PLAN/QUESTION", value_parser = address)]
    pub question: Address,
    /// The answer
    #[arg(allow_hyphen_values = true, required_unless_present_any = ["yes", "no"])]
    pub text: Option<String>,
    /// Answer no to an agent; --yes answers yes
    #[arg(long, conflicts_with_all = ["yes", "ask", "text"])]
    pub no: bool,
    /// Ask this of the same task too, which then waits for both answers
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
}

pub async fn answer(session: &Session, answer: Answer) -> Result<Code, Failure> {
    session.person_only("answer questions")?;
    match number_of(&answer.question) {
        Some(number) => answer_agent(session, number, answer).await,
        None => answer_plan(session, answer).await,
    }
}

async fn answer_plan(session: &Session, answer: Answer) -> Result<Code, Failure> {
    let Address { plan, part } = answer.question;
    let text = answer.text.ok_or_else(|| {
        let message = "--yes and --no answer an agent that asks for permission, and a plan wants words";
        Failure::user(message).hint(session.command("answer PLAN/q1 \"...\""))
    })?;
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
    question.plan.strip_prefix('a').filter(|_| question.part.is_none())?.parse().ok()
}

/// `answer` of an agent's question.
async fn answer_agent(session: &Session, number: u64, answer: Answer) -> Result<Code, Failure> {
    let is_granted = if answer.no { Some(false) } else { session.yes.then_some(true) };
    let decided = is_granted.map(|granted| if granted { "yes" } else { "no" }.to_owned());
    let text = answer.text.or(decided).unwrap_or_default();
    let crew = open(session).await?;
    let answered = crew.answer(number, Said { by: session.person(), text, is_granted }).await;
    if let Err(refusal @ Refusal::Crew(CrewError::Missing(_))) = answered {
        let open = crew.asks().await?.open().map(|(number, _)| format!("a{number}")).collect::<Vec<_>>();
        let failure = Failure::from(refusal).hint("`crewlog inbox` lists what waits for you");
        return Err(if open.is_empty() { failure } else { failure.hint(format!("open are {}", open.join(", "))) });
    }
    answered?;
    session.print_done(&format!("a{number} is answered"), &json!({ "ask": format!("a{number}") }))
}
