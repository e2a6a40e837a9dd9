//! Points of a plan's history: positions and checkpoints.

use std::sync::Arc;

use crewlog_mq::{EventStore, Position};

use super::queries::reached;
use super::{AsOf, ViewedPlan, checkpoints_of, views};
use crate::cli::typed::At;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

/// The position of a point of a plan's history; `default` where none was typed. The log must reach it.
pub async fn position_of(
    session: &Session,
    store: &EventStore,
    plan: &str,
    at: Option<&At>,
    default: Position,
) -> Result<Position, Failure> {
    let at = match at {
        None => return Ok(default),
        Some(At::Position(at)) => Position(*at),
        Some(At::Checkpoint(name)) => {
            let checkpoints = checkpoints_of(store, plan).await?;
            let found = checkpoints.iter().find(|checkpoint| checkpoint.name == *name);
            return found.map(|checkpoint| checkpoint.at).ok_or_else(|| {
                Failure::new(Code::Nothing, format!("{plan} has no checkpoint {name:?}"))
                    .did_you_mean(name, checkpoints.iter().map(|checkpoint| checkpoint.name.as_str()))
                    .hint(session.command_on("plan checkpoint", plan))
            });
        }
    };
    reached(store, Some(at)).await.map_err(|failure| failure.hint(session.command_on("events", plan)))
}

/// A position that a person named, and the position at or before it where an append ends: what views show.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub asked: Position,
    pub at: Position,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self { asked, at } if asked == at => write!(f, "position {at}"),
            Self { asked, at } => write!(f, "position {at}, the last whole append at or before {asked}"),
        }
    }
}

/// A plan as of a point of its history, or now.
pub async fn viewed_at(
    session: &Session,
    store: &EventStore,
    plan: &str,
    at: Option<&At>,
) -> Result<(Point, AsOf, Arc<ViewedPlan>), Failure> {
    let asked = position_of(session, store, plan, at, store.head().await?).await?;
    let as_of = views(session).await?.as_of(at.map(|_| asked)).await?;
    let seen = as_of.viewed(plan).await?;
    if seen.view.created_at.is_none() {
        let message = format!("{plan} did not exist yet at position {asked}");
        return Err(Failure::new(Code::Nothing, message).hint(session.command_on("events", plan)));
    }
    Ok((Point { asked, at: as_of.at }, as_of, seen))
}
