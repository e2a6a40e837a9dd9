//! `plan checkpoint`: names the present point of a plan, or lists its checkpoints.

use clap::Args;
use crewlog_executors::planning;
use crewlog_mq::EventStore;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::context::Session;
use crate::target::order;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{readable, visible};
use crate::views::names::{Choice, open_plan};
use crate::views::{CheckpointJson, checkpoints_of, queries};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The plan
    pub plan: String,
    /// The name: letters, digits, dashes, dots and underscores [default: list the checkpoints]
    pub name: Option<String>,
}

pub async fn checkpoint(session: &Session, Checkpoint { plan, name }: Checkpoint) -> Result<Code, Failure> {
    let choice = if name.is_some() { Choice::Changed } else { Choice::Viewed };
    let (store, plan) = open_plan(session, &plan, choice).await?;
    let Some(name) = name else { return list(session, &store, &plan).await };
    let mut planner = planning::catch_up(&store, &plan, queries::tags_of(&store, &plan).await?).await?;
    let at = order(&mut planner, Command::NameCheckpoint { name: name.clone() }).await?.position;
    session.print_done(&format!("{name} is position {at} of {plan}"), &json!({ "plan": plan, "name": name, "at": at }))
}

async fn list(session: &Session, store: &EventStore, plan: &str) -> Result<Code, Failure> {
    let checkpoints = checkpoints_of(store, plan).await?;
    session.print_list(
        "checkpoints",
        json!({ "plan": plan }),
        &checkpoints,
        |checkpoint| checkpoint,
        |to, CheckpointJson { name, at, created_at, .. }| {
            writeln!(to, "{at:>6}  {}  {}", readable(created_at), visible(name))
        },
    )
}
