//! `inbox`: everything that waits for the person; for an agent, its messages.

use crewlog_executors::crew::{Crew, Mail, Need, needs_you};
use crewlog_mq::{Position, Timestamp};
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::messages::Sender;
use serde_json::{Value, json};

use super::facts;
use super::session::{agent_id, open};
use crate::cli::Inbox;
use crate::failure::{Code, Failure};
use crate::queries::reached;
use crate::session::Session;
use crate::text::rfc3339;

/// The most messages that are listed.
const MESSAGES_MAX: usize = 1_000;

pub async fn inbox(session: &Session, args: Inbox) -> Result<Code, Failure> {
    let crew = open(session).await?;
    match args.agent.clone().or_else(agent_id) {
        Some(agent) => messages(session, &crew, &agent, args).await,
        None => needs(session, &crew, args.at.at).await,
    }
}

async fn needs(session: &Session, crew: &Crew, at: Option<Position>) -> Result<Code, Failure> {
    reached(crew.store(), at).await?;
    let needs = needs_you(crew, at).await?;
    let items: Vec<_> =
        needs.items.iter().map(|need| need_json(need, needs.now, |words| session.command(words))).collect();
    session.print_list(
        "items",
        json!({ "at": needs.at }),
        &items,
        |item| item,
        |to, item| {
            facts::print(to, item, &["id", "kind", "from", "age_ms"], &["text", "choices", "holds_up", "commands"])
        },
    )
}

/// An item that waits for the person; `command` makes a command line of the words of a command.
pub fn need_json(need: &Need, now: Timestamp, command: impl Fn(&str) -> String) -> Value {
    let Need { kind, id, from, text, choices, since, holds_up, commands } = need;
    let commands: Vec<_> = commands.iter().map(|words| command(words)).collect();
    let age = since.map(|since| u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX));
    json!({
        "kind": kind, "id": id, "from": from, "text": text, "choices": choices, "since": since.map(rfc3339),
        "age_ms": age, "holds_up": holds_up, "commands": commands,
    })
}

async fn messages(session: &Session, crew: &Crew, agent: &str, args: Inbox) -> Result<Code, Failure> {
    let (at, start) = (args.at.at, Position(0));
    let head = reached(crew.store(), at).await?;
    if crew.at::<Agents>(at).await?.get(agent).is_none() {
        let missing = Failure::new(Code::Nothing, format!("there is no agent {agent}"));
        return Err(missing.hint(session.command("agents")));
    }
    let (mail, _) = crew.inbox(agent, !args.all, start, MESSAGES_MAX, at).await?;
    if args.read {
        crew.mark_read(&crew.caller(agent).await?, mail.iter().map(|mail| mail.position).collect()).await?;
    }
    let mail: Vec<_> = mail.iter().map(mail_json).collect();
    let facts = json!({ "at": head, "agent": agent });
    session.print_list(
        "messages",
        facts,
        &mail,
        |mail| mail,
        |to, mail| {
            facts::print(
                to,
                mail,
                &["message", "from", "importance", "sent_at"],
                &["subject", "body", "thread", "is_unread", "ack_is_due"],
            )
        },
    )
}

fn mail_json(mail: &Mail) -> Value {
    let (message, is_person) = (&mail.message, matches!(mail.message.from, Sender::Person(_)));
    json!({
        "message": mail.position, "from": message.from.name(), "is_from_person": is_person, "to": message.to,
        "subject": message.subject, "body": message.body, "thread": message.thread, "importance": message.importance,
        "sent_at": rfc3339(mail.at), "is_unread": mail.is_unread, "ack_is_due": mail.ack_is_due,
    })
}
