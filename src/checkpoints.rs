//! Points of a plan's history: positions, checkpoints and forks. It only reads.

use crewlog_mq::{EventStore, Position, Query, Range};
use crewlog_planner::event::{self, Event};
use crewlog_planner::view::PlanView;
use serde::Serialize;

use crate::cli::At;
use crate::failure::{Code, Failure};
use crate::json::ForkJson;
use crate::queries::{for_each, load_view, reached};
use crate::session::Session;
use crate::text::rfc3339;

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
            let found = checkpoints.into_iter().find(|checkpoint| checkpoint.name == *name);
            return found.map(|checkpoint| checkpoint.at).ok_or_else(|| {
                Failure::new(Code::Nothing, format!("{plan} has no checkpoint {name:?}"))
                    .hint(session.command_on("checkpoints", plan))
            });
        }
    };
    reached(store, Some(at)).await.map_err(|failure| failure.hint(session.command_on("events", plan)))
}

/// A plan as of a point of its history, or now: the position and the view.
pub async fn view_at(
    session: &Session,
    store: &EventStore,
    plan: &str,
    at: Option<&At>,
) -> Result<(Position, PlanView), Failure> {
    let asked = position_of(session, store, plan, at, store.head().await?).await?;
    let at = store.whole(asked).await?;
    let view = load_view(store, plan, Range::up_to(at)).await?;
    if view.created_at.is_none() {
        let message = format!("{plan} did not exist yet at position {asked}");
        return Err(Failure::new(Code::Nothing, message).hint(session.command_on("events", plan)));
    }
    Ok((at, view))
}

#[derive(Serialize)]
pub struct CheckpointJson {
    pub name: String,
    /// The position of the event that gave it.
    pub at: Position,
    pub created_at: String,
    /// The plan whose event it is: of a fork it may be another.
    pub plan: String,
}

/// The checkpoints of a plan in order; a fork has those of the history that it shares, too.
pub async fn checkpoints_of(store: &EventStore, plan: &str) -> Result<Vec<CheckpointJson>, Failure> {
    let mut checkpoints = Vec::new();
    let query = Query::stream(event::STREAM).of_type("CheckpointNamed");
    for_each(store, Some(plan), &query, Range::default(), |recorded| {
        if let Event::CheckpointNamed { name } = recorded.decode()? {
            let (at, created_at) = (recorded.position, rfc3339(recorded.created_at));
            checkpoints.push(CheckpointJson { name, at, created_at, plan: recorded.aggregate_id.clone() });
        }
        Ok(())
    })
    .await?;
    Ok(checkpoints)
}

/// The forks of a plan up to a position, the oldest first; not those of its forks.
pub async fn forks_of(store: &EventStore, plan: &str, up_to: Position) -> Result<Vec<ForkJson>, Failure> {
    let mut forks = Vec::new();
    let query = Query::stream(event::STREAM).of_type("PlanForked");
    for_each(store, None, &query, Range::up_to(up_to), |recorded| {
        if let Event::PlanForked { parent, at, reason } = recorded.decode()?
            && parent == plan
        {
            forks.push(ForkJson { plan: recorded.aggregate_id.clone(), at, reason });
        }
        Ok(())
    })
    .await?;
    Ok(forks)
}
