//! `agents`, `leases`, `stats`, `send`, `answer` of an agent's question.

use std::path::Path;

use crewlog_mq::Position;
use crewlog_planner::crew::asks::{Answer as Said, Wanted};
use crewlog_planner::crew::messages::{Message, Sender};
use crewlog_planner::crew::target::Target;
use futures::future::OptionFuture;
use serde_json::json;

use super::session::{open, views};
use super::worktree::Worktree;
use super::{facts, inbox, why};
use crate::cli::{Answer, Crew, Leases, Send};
use crate::failure::{Code, Failure};
use crate::queries::find_plan;
use crate::runtime::list_executors;
use crate::session::Session;

/// The fields of an agent in the text of a list: its heading, and the lines below.
const AGENT: ([&str; 5], [&str; 5]) =
    (["agent", "liveness", "activity", "program", "model"], ["task", "step", "note", "worktree", "seen"]);
/// The fields of a lease in the text of a list.
const LEASE: ([&str; 2], [&str; 7]) =
    (["path", "agent"], ["lease", "waiting", "is_exclusive", "reason", "task", "worktree", "until"]);

pub async fn obey(session: &Session, command: Crew) -> Result<Code, Failure> {
    match command {
        Crew::Agents { configured: true, .. } => list_executors(session),
        Crew::Agents { all, at, configured: false } => {
            let as_of = views(session).await?.as_of(at.at).await?;
            let shown = as_of.agents(all).await?;
            facts::print_list(session, "agents", json!({ "at": as_of.at }), &shown, &AGENT.0, &AGENT.1)
        }
        Crew::Leases(args) if args.conflicts => conflicts(session, args).await,
        Crew::Leases(args) if args.force.is_empty() => leases(session, args).await,
        Crew::Leases(args) => force(session, args).await,
        Crew::Send(args) => send(session, args).await,
        Crew::Inbox(args) => inbox::inbox(session, args).await,
        Crew::Why { what, at } => why::why(session, &what, at.at).await,
    }
}

async fn leases(session: &Session, args: Leases) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(args.at.at).await?;
    let wanted = args.path.map(|path| target(session, &path)).transpose()?;
    let shown = as_of.leases(|_, target, _| wanted.as_ref().is_none_or(|wanted| wanted.overlaps(target))).await?;
    facts::print_list(session, "leases", json!({ "at": as_of.at }), &shown, &LEASE.0, &LEASE.1)
}

pub async fn stats(session: &Session, project: Option<String>, at: Option<Position>) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    let projects = as_of.statistics(project).await?;
    facts::print_list(session, "projects", json!({ "at": as_of.at }), &projects, &["project"], &[])
}

async fn conflicts(session: &Session, args: Leases) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(args.at.at).await?;
    let plan =
        OptionFuture::from(args.plan.map(async |plan| find_plan(as_of.store(), &plan).await)).await.transpose()?;
    let found = as_of.conflicts(plan.as_deref(), args.all).await?;
    facts::print_list(session, "conflicts", json!({ "at": as_of.at }), &found, &["pattern"], &[])
}

/// A path of the working directory as leases name it.
pub fn target(session: &Session, path: &str) -> Result<Target, Failure> {
    let target = Worktree::around(&session.folder).target(&session.folder, path);
    target.map_err(|error| Failure::user(error.to_string()))
}

async fn force(session: &Session, args: Leases) -> Result<Code, Failure> {
    session.person_only("end the leases of others")?;
    let crew = open(session).await?;
    let ended = crew.force(args.force, session.person(), args.reason.unwrap_or_default()).await?;
    let numbers = ended.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    session.print_done(&format!("ended: {numbers}"), &json!({ "ended": ended }))
}

async fn send(session: &Session, args: Send) -> Result<Code, Failure> {
    let Send { to, subject, body, importance, ack, thread } = args;
    let body = if body == "-" && session.reads_files() { session.read_text(Path::new("-"))? } else { body };
    let crew = open(session).await?;
    let (agent, to) = (session.agent_id(), to.into_iter().collect());
    let from = agent.clone().map_or_else(|| Sender::Person(session.person()), Sender::Agent);
    let message = Message { from, to, subject, body, thread, importance, needs_ack: ack };
    let (message, to) = match agent {
        Some(agent) => crew.send(&crew.caller(&agent).await?, message).await?,
        None => crew.deliver(message).await?,
    };
    let names = to.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    session.print_done(&format!("message {message} to {names}"), &json!({ "message": message, "to": to }))
}

/// `answer` of an agent's question: allow or deny for a permission.
pub async fn answer(session: &Session, number: u64, answer: Answer) -> Result<Code, Failure> {
    let (id, crew) = (format!("a{number}"), open(session).await?);
    let open = crew.asks().await?.open().find(|(known, _)| *known == number).map(|(_, open)| open.ask.wanted);
    let (text, is_granted) = if open == Some(Wanted::Permission) {
        let message = format!("{id} asks for permission, and {:?} is neither allow nor deny", answer.text);
        let refused = || Failure::user(message).hint(session.command(&format!("answer {id} allow")));
        answer.decision().map(|(is_granted, words)| (words.to_owned(), Some(is_granted))).ok_or_else(refused)?
    } else {
        (answer.one_text()?, None)
    };
    crew.answer(number, Said { by: session.person(), text, is_granted }).await?;
    session.print_done(&format!("{id} is answered"), &json!({ "ask": id }))
}
