//! `send`: a message to agents.

use std::path::Path;

use clap::Args;
use crewlog_executors::crew::Refusal;
use crewlog_mq::Position;
use crewlog_planner::crew::messages::{Importance, Message, Sender};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::{one_of, position};
use crate::context::crew::open;
use crate::context::{Session, agent_id};
use crate::ui::failure::{Code, Failure};

const IMPORTANCES: [Importance; 4] = [Importance::Low, Importance::Normal, Importance::High, Importance::Urgent];

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// Names of agents, capabilities of agents, or everyone
    #[arg(required = true)]
    pub to: Vec<String>,
    /// The subject, in one line
    #[arg(long, value_name = "TEXT")]
    pub subject: String,
    /// The text; - for standard input
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    #[serde(default)]
    pub body: String,
    /// How urgent it is
    #[serde(default)]
    #[schema(value_type = String)]
    #[arg(long, default_value = "normal", value_parser = one_of::<Importance>(IMPORTANCES.map(<&str>::from)))]
    pub importance: Importance,
    /// Ask each recipient to acknowledge it
    #[arg(long)]
    #[serde(default)]
    pub ack: bool,
    /// A message of the thread that it belongs to
    #[arg(long, value_name = "NUMBER", value_parser = position())]
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    pub thread: Option<Position>,
}

pub async fn send(session: &Session, args: Send) -> Result<Code, Failure> {
    let Send { to, subject, body, importance, ack, thread } = args;
    let body = if body == "-" && session.is_local() { session.read_text(Path::new("-"))? } else { body };
    let crew = open(session).await?;
    let (agent, to) = (agent_id().filter(|_| session.is_local()), to.into_iter().collect());
    let from = agent.clone().map_or_else(|| Sender::Person(session.person()), Sender::Agent);
    let message = Message { from, to, subject, body, thread, importance, needs_ack: ack };
    let sent = match agent {
        Some(agent) => crew.send(&crew.caller(&agent).await?, message).await,
        None => crew.deliver(message).await,
    };
    let (message, to) = match sent {
        Err(Refusal::NoRecipient(name)) => {
            let agents = crew.agents().await?;
            let known = agents.iter().map(|(name, _)| name);
            return Err(Failure::from(Refusal::NoRecipient(name.clone())).did_you_mean(&name, known));
        }
        sent => sent?,
    };
    let names = to.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    session.print_done(&format!("message {message} to {names}"), &json!({ "message": message, "to": to }))
}
