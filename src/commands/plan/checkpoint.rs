//! `plan checkpoint`: names the present point of a plan, or lists its checkpoints.

use clap::Args;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::context::Session;
use crate::target::{Target, order};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{readable, visible};
use crate::views::names::{Choice, open_plan};
use crate::views::{CheckpointJson, checkpoints_of};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The plan
    pub plan: String,
    /// The name: letters, digits, dashes, dots and underscores [default: list the checkpoints]
    pub name: Option<String>,
}

pub async fn checkpoint(session: &Session, Checkpoint { plan, name }: Checkpoint) -> Result<Code, Failure> {
    if let Some(name) = name {
        let mut target = Target::find(session, &plan, Choice::Changed).await?;
        let at = order(&mut target.planner, Command::NameCheckpoint { name: name.clone() }).await?.position;
        let (plan, json) = (&target.plan, json!({ "plan": target.plan, "name": name, "at": at }));
        return session.print_done(&format!("{name} is position {at} of {plan}"), &json);
    }
    let (store, plan) = open_plan(session, &plan, Choice::Viewed).await?;
    session.print_list(
        "checkpoints",
        json!({ "plan": plan }),
        &checkpoints_of(&store, &plan).await?,
        |checkpoint| checkpoint,
        |to, CheckpointJson { name, at, created_at, .. }| {
            writeln!(to, "{at:>6}  {}  {}", readable(created_at), visible(name))
        },
    )
}
