//! `inbox`: everything that waits for the person; for an agent, its messages.

use clap::Args;
use crewlog_mq::Position;
use serde_json::json;

use crate::cli::typed::AtPosition;
use crate::context::{Session, agent_id};
use crate::ui::failure::{Code, Failure};
use crate::views::facts;
use crate::views::views;

#[derive(Debug, Args)]
pub struct Inbox {
    /// The messages to this agent [default: AGENT_ID]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Include messages that are read
    #[arg(long)]
    pub all: bool,
    /// Mark the listed messages as read
    #[arg(long, conflicts_with = "at")]
    pub read: bool,
    #[command(flatten)]
    pub at: AtPosition,
}

/// The most messages that are listed.
const MESSAGES_MAX: usize = 1_000;

/// The fields of an item in the text of the list: its heading, and the lines below.
pub const ITEM: [&[&str]; 2] =
    [&["id", "kind", "from", "since"], &["text", "choices", "default", "due", "holds_up", "commands"]];

/// The fields of a message, likewise.
const MESSAGE: [&[&str]; 2] =
    [&["message", "from", "importance", "sent_at"], &["subject", "body", "thread", "receipt", "ack_is_due"]];

pub async fn inbox(session: &Session, args: Inbox) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(args.at.at).await?;
    if let Some(agent) = args.agent.clone().or_else(agent_id) {
        return messages(session, &as_of, &agent, &args).await;
    }
    let program = session.command("");
    let items = as_of.needs(|words| program.clone() + words).await?;
    facts::print_list(session, "items", json!({ "at": as_of.at }), &items, ITEM, as_of.now)
}

async fn messages(session: &Session, as_of: &crate::views::AsOf, agent: &str, args: &Inbox) -> Result<Code, Failure> {
    as_of.check_agent(agent).await?;
    let (mail, _) = as_of.messages(agent, !args.all, Position(0), MESSAGES_MAX).await?;
    if args.read {
        let crew = as_of.crew();
        crew.mark_read(&crew.caller(agent).await?, mail.iter().map(|mail| mail.message).collect()).await?;
    }
    facts::print_list(session, "messages", json!({ "at": as_of.at, "agent": agent }), &mail, MESSAGE, as_of.now)
}
