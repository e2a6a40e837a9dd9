//! Points of a plan's history: which position of the log is meant, which have names, and where others go on from. It only
//! reads.

use crewlog_executors::history::History;
use crewlog_mq::{EventStore, Position, Query, Range};
use crewlog_planner::event::{self, Event};
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;
use serde::Serialize;

use crate::cli::At;
use crate::failure::{Code, Failure};
use crate::json::ForkJson;
use crate::queries::load_view;
use crate::session::Session;
use crate::text::rfc3339;

/// Where a point of a plan's history stands.
pub async fn position_of(session: &Session, store: &EventStore, plan: &str, at: &At) -> Result<Position, Failure> {
    let name = match at {
        At::Position(at) => return Ok(Position(*at)),
        At::Checkpoint(name) => name,
    };
    let found = checkpoints_of(store, plan).await?.into_iter().find(|checkpoint| checkpoint.name == *name);
    found.map(|checkpoint| checkpoint.at).ok_or_else(|| {
        Failure::new(Code::Nothing, format!("{plan} has no checkpoint {name:?}"))
            .hint(session.command_on("checkpoints", plan))
    })
}

/// A plan as of a point of its history, or now: the position and the view.
pub async fn view_at(
    session: &Session,
    store: &EventStore,
    plan: &str,
    at: Option<&At>,
) -> Result<(Position, PlanView), Failure> {
    let head = store.head().await?;
    let asked = match at {
        Some(at) => position_of(session, store, plan, at).await?,
        None => head,
    };
    let at = store.whole(asked.min(head)).await?;
    let view = load_view(store, plan, Range::up_to(at)).await?;
    if view.created_at().is_none() {
        let message = format!("{plan} did not exist yet at position {asked}");
        return Err(Failure::new(Code::Nothing, message).hint(session.command_on("events", plan)));
    }
    Ok((at, view))
}

/// That the log reaches a position.
pub fn check_reached(session: &Session, plan: &str, at: Position, head: Position) -> Result<(), Failure> {
    if at <= head {
        return Ok(());
    }
    let message = format!("the log does not reach position {at} yet: its last is {head}");
    Err(Failure::new(Code::Nothing, message).hint(session.command_on("events", plan)))
}

/// A point of a plan's history with a name.
#[derive(Serialize)]
pub struct CheckpointJson {
    pub name: String,
    /// The position of the event that gave it.
    pub at: Position,
    /// When that was.
    pub created_at: String,
    /// The plan whose event it is: of a fork it may be another.
    pub plan: String,
}

/// The first of each name, in order: of a fork they are those of the history that it shares, too.
pub async fn checkpoints_of(store: &EventStore, plan: &str) -> Result<Vec<CheckpointJson>, Failure> {
    let mut checkpoints = Vec::new();
    let query = Query::stream(event::STREAM).of_type("CheckpointNamed");
    let history = History::of(store, plan).await?;
    let mut records = std::pin::pin!(history.records(store, &query, Range::default()));
    while let Some(recorded) = records.try_next().await? {
        if let Event::CheckpointNamed { name } = recorded.decode()? {
            let (at, created_at) = (recorded.position, rfc3339(recorded.created_at));
            checkpoints.push(CheckpointJson { name, at, created_at, plan: recorded.aggregate_id });
        }
    }
    Ok(checkpoints)
}

/// The forks of a plan up to a position, the oldest first; not those of its forks.
pub async fn forks_of(store: &EventStore, plan: &str, up_to: Position) -> Result<Vec<ForkJson>, Failure> {
    let mut forks = Vec::new();
    let query = Query::stream(event::STREAM).of_type("PlanForked");
    let mut records = std::pin::pin!(store.records(&query, Range::up_to(up_to)));
    while let Some(recorded) = records.try_next().await? {
        if let Event::PlanForked { parent, at, reason } = recorded.decode()?
            && parent == plan
        {
            forks.push(ForkJson { plan: recorded.aggregate_id, at, reason });
        }
    }
    Ok(forks)
}
