//! `inbox`: everything that waits for the person; for an agent, its messages.

use crewlog_executors::crew::{Crew, Mail, Need, needs_you};
use crewlog_mq::{Position, Query, Range, Timestamp};
use crewlog_planner::crew::messages::Sender;
use serde_json::{Value, json};

use super::session::{agent_id, open};
use super::verbs::position;
use crate::cli::Inbox;
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::text::{one_line, rfc3339, visible};

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
    let needs = needs_you(crew, at).await?;
    // At an earlier position the age is that of then.
    let now = match at {
        Some(_) => time_of(crew, needs.at).await?,
        None => crew.store().now(),
    };
    let command = |words: &String| session.command(words);
    let json = |need: &Need| {
        let Need { kind, id, from, text, choices, since, holds_up, commands } = need;
        json!({
            "kind": kind, "id": id, "from": from, "text": text, "choices": choices, "since": since.map(rfc3339),
            "age_ms": since.map(|since| u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)),
            "holds_up": holds_up, "commands": commands.iter().map(command).collect::<Vec<_>>(),
        })
    };
    session.print_list("items", json!({ "at": needs.at }), &needs.items, json, |to, need| {
        let Need { kind, id, from, text, holds_up, commands, .. } = need;
        let (kind, age): (&str, _) = (kind.into(), need.since.map_or_else(String::new, |since| age(now, since)));
        writeln!(to, "{}  {kind}  {}{age}: {}", visible(id), one_line(from, 60), one_line(text, 400))?;
        if !holds_up.is_empty() {
            writeln!(to, "  holds up {}", one_line(&holds_up.join(", "), 140))?;
        }
        commands.iter().try_for_each(|words| writeln!(to, "  {}", visible(&command(words))))
    })
}

/// The time of the event at a position.
async fn time_of(crew: &Crew, at: Position) -> Result<Timestamp, Failure> {
    let page = crew.store().read(&Query::all(), Range::up_to(at).backwards(), 1).await?;
    Ok(page.events.first().map(|recorded| recorded.created_at).unwrap_or_default())
}

/// How long something has waited, in its largest unit.
fn age(now: Timestamp, since: Timestamp) -> String {
    let secs = now.since(since).as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let unit = units.into_iter().find(|(unit, _)| secs >= *unit);
    unit.map_or_else(|| ", now".to_owned(), |(unit, name)| format!(", {}{name}", secs / unit))
}

async fn messages(session: &Session, crew: &Crew, agent: &str, args: Inbox) -> Result<Code, Failure> {
    let (at, start) = (args.at.at, Position(0));
    let (mail, _) = match args.read {
        true => crew.read_inbox(&crew.caller(agent).await?, !args.all, start, MESSAGES_MAX).await?,
        false => crew.inbox_at(agent, !args.all, start, MESSAGES_MAX, at).await?,
    };
    let facts = json!({ "at": position(crew, at).await?, "agent": agent });
    session.print_list("messages", facts, &mail, mail_json, |to, mail| {
        let (message, unread) = (&mail.message, if mail.is_unread { "unread" } else { "read" });
        let (importance, ack): (&str, _) =
            (message.importance.into(), if mail.ack_is_due { ", ack wanted" } else { "" });
        let (from, subject) = (visible(message.from.name()), one_line(&message.subject, 200));
        writeln!(to, "{}  {from}  {}  {unread}, {importance}{ack}: {subject}", mail.position, rfc3339(mail.at))?;
        visible(&message.body).lines().try_for_each(|line| writeln!(to, "  {line}"))
    })
}

fn mail_json(mail: &Mail) -> Value {
    let (message, is_person) = (&mail.message, matches!(mail.message.from, Sender::Person(_)));
    json!({
        "message": mail.position, "from": message.from.name(), "is_from_person": is_person, "to": message.to,
        "subject": message.subject, "body": message.body, "thread": message.thread, "importance": message.importance,
        "sent_at": rfc3339(mail.at), "is_unread": mail.is_unread, "ack_is_due": mail.ack_is_due,
    })
}
