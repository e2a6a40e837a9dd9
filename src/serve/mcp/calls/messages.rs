//! Messages between agents.

use crewlog_executors::crew::{Mail, Receipt};
use crewlog_mq::Position;
use crewlog_planner::crew::messages::{Message, Sender};
use serde_json::{Value, json};

use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::Member;
use crate::serve::mcp::reply::{Reply, beginning, page};
use crate::serve::mcp::server::Server;
use crate::ui::text::rfc3339;

/// The longest part of a body in a result, in characters.
const BODY_CHARS_MAX: usize = 1_500;
/// The most acknowledgements that are listed.
const ACKS_MAX: usize = 50;

impl Server {
    pub async fn send_message(&self, member: &Member, args: &Args) -> Reply {
        let message = Message {
            from: Sender::Agent(member.caller.agent.clone()),
            to: args.get("to"),
            subject: args.get("subject"),
            body: args.get("body"),
            thread: args.get("thread"),
            importance: args.get("importance"),
            needs_ack: args.get("ack_required"),
        };
        let (message, to) = self.crew.send(&member.caller, message).await?;
        Ok(json!({ "status": "sent", "message_id": message, "delivered": to }))
    }

    pub async fn read_inbox(&self, member: &Member, args: &Args) -> Reply {
        let agent = &member.caller.agent;
        for message in args.get::<Vec<Position>>("ack") {
            self.crew.ack(&member.caller, message, args.get("note")).await?;
        }
        let (unread_only, since, limit) = (args.get("unread_only"), args.get("since"), args.get("limit"));
        let body_from = args.get::<bool>("bodies").then(|| args.get("body_from"));
        let (found, more) = self.crew.inbox(agent, unread_only, since, limit, None).await?;
        let (messages, is_cut) = page(&found, limit, |mail| mail_json(mail, body_from));
        let (has_more, last) = (more || is_cut, messages.last().map(|message| message["message_id"].clone()));
        if args.get("mark_read") && !messages.is_empty() {
            // Only messages that fit count as read.
            let read = found.iter().take(messages.len()).map(|mail| mail.position).collect();
            self.crew.mark_read(&member.caller, read).await?;
        }
        let acks_due: Vec<Position> = self.crew.messages().await?.acks_due(agent).take(ACKS_MAX).collect();
        Ok(json!({
            "status": "ok", "messages": messages, "has_more": has_more, "next_cursor": last.filter(|_| has_more),
            "acks_due": acks_due,
        }))
    }
}

/// A message, with its body from a given character on.
fn mail_json(mail: &Mail, body_from: Option<usize>) -> Value {
    let Mail { position, message, at, receipt, ack_is_due } = mail;
    let sender = match &message.from {
        Sender::Agent(_) => "agent",
        Sender::Person(_) => "person",
    };
    let body = body_from.map(|from| {
        let rest: String = message.body.chars().skip(from).collect();
        let (since, next) = (position.0 - 1, from + BODY_CHARS_MAX);
        match rest.chars().nth(BODY_CHARS_MAX) {
            Some(_) => format!(
                "{} [read_inbox with unread_only false, since {since}, limit 1, body_from {next} for the rest]",
                beginning(&rest, BODY_CHARS_MAX)
            ),
            None => rest,
        }
    });
    json!({
        "message_id": position, "from": message.from.name(), "sender": sender, "subject": message.subject, "body": body,
        "thread": message.thread, "importance": message.importance, "ack_required": ack_is_due, "unread": *receipt != Receipt::Read,
        "at": rfc3339(*at),
    })
}
