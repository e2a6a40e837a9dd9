//! Messages between agents.

use crewlog_executors::crew::{Draft, Mail};
use crewlog_mq::Position;
use crewlog_planner::crew::messages::Sender;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{entry, object};
use crate::mcp::args::Args;
use crate::mcp::identity::Member;
use crate::mcp::reply::{Refused, beginning, page};
use crate::mcp::server::Server;
use crate::text::rfc3339;

/// The longest part of a body in a result, in characters.
const BODY_CHARS_MAX: usize = 1_500;
/// Acknowledgements that are named.
const ACKS_MAX: usize = 50;

impl Server {
    pub async fn send_message(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let draft = Draft {
            to: args.strings("to"),
            subject: args.string("subject"),
            body: args.string("body"),
            thread: args.position("thread"),
            importance: args.choice("importance").unwrap_or_default(),
            needs_ack: args.flag("ack_required"),
        };
        let delivered = self.crew().send(&member.caller, draft).await?;
        Ok(object(json!({ "status": "sent", "message_id": delivered.message, "delivered": delivered.to })))
    }

    pub async fn read_inbox(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let agent = &member.caller.agent;
        let (unread_only, since) = (args.flag("unread_only"), args.position("since").unwrap_or_default());
        let limit = args.number("limit").unwrap_or(1);
        let body_from = args.flag("bodies").then(|| args.number("body_from").unwrap_or_default());
        let (found, more) = self.crew().inbox(agent, unread_only, since, limit, None).await?;
        let last = |n: usize| found.get(n.wrapping_sub(1)).map(|mail| mail.position);
        let (messages, is_cut) = page(&found, limit, |mail| mail_json(mail, body_from));
        let has_more = more || is_cut;
        if args.flag("mark_read") && !messages.is_empty() {
            // Only what fits was read.
            self.crew().read_inbox(&member.caller, unread_only, since, messages.len()).await?;
        }
        let acks_due: Vec<Position> = self.crew().messages().await?.acks_due(agent).take(ACKS_MAX).collect();
        Ok(object(json!({
            "status": "ok",
            "next_cursor": last(messages.len()).filter(|_| has_more),
            "messages": messages,
            "has_more": has_more,
            "acks_due": acks_due,
        })))
    }

    pub async fn ack_message(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let message = args.position("message_id").unwrap_or_default();
        self.crew().ack(&member.caller, message, args.string("note")).await?;
        Ok(object(json!({ "status": "acknowledged", "message_id": message })))
    }
}

/// A message, and its body from a character on.
fn mail_json(mail: &Mail, body_from: Option<usize>) -> Value {
    let Mail { position, message, at, is_unread, ack_is_due } = mail;
    let importance: &str = message.importance.into();
    let sender = match &message.from {
        Sender::Agent(_) => "agent",
        Sender::Person(_) => "person",
    };
    let body = body_from.map(|from| {
        let rest: String = message.body.chars().skip(from).collect();
        match rest.chars().count() > BODY_CHARS_MAX {
            true => {
                let (since, from) = (position.0 - 1, from + BODY_CHARS_MAX);
                let how =
                    format!("read_inbox with unread_only false, since {since}, limit 1, body_from {from} for the rest");
                format!("{} [{how}]", beginning(&rest, BODY_CHARS_MAX))
            }
            false => rest,
        }
    });
    entry(json!({
        "message_id": position, "from": message.from.name(), "sender": sender, "subject": message.subject, "body": body,
        "thread": message.thread, "importance": importance, "ack_required": ack_is_due, "unread": is_unread,
        "at": rfc3339(*at),
    }))
}
