//! Named points of a plan's history: its checkpoints and its forks.

use crewlog_mq::{EventStore, Position, Query, Range};
use crewlog_planner::event::{self, Event};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ui::failure::Failure;
use crate::ui::text::rfc3339;
use crate::views::queries::for_each;

/// A fork of a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ForkJson {
    pub plan: String,
    /// The last position that they share.
    #[schema(value_type = i64)]
    pub at: Position,
    pub reason: String,
}

#[derive(Serialize)]
pub struct CheckpointJson {
    pub name: String,
    /// The position of its event.
    pub at: Position,
    pub created_at: String,
    /// The plan whose event it is: for a fork it may be an ancestor.
    pub plan: String,
}

/// The checkpoints of a plan in order, including those of the history that a fork shares.
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

/// The forks of a plan up to a position, oldest first, without their own forks.
pub async fn forks_of(store: &EventStore, plan: &str, up_to: Position) -> Result<Vec<ForkJson>, Failure> {
    let mut forks = Vec::new();
    let query = Query::stream(event::STREAM).of_type("PlanForked");
    for_each(store, None, &query, Range::up_to(up_to), |recorded| {
        if let Event::PlanForked { parent, at, reason, .. } = recorded.decode()?
            && parent == plan
        {
            forks.push(ForkJson { plan: recorded.aggregate_id.clone(), at, reason });
        }
        Ok(())
    })
    .await?;
    Ok(forks)
}
