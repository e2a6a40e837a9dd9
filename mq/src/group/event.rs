//! The durable events of a group: stream `groups`, one aggregate per group. Leases and checkpoints are cells instead.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::event::Event;
use crate::position::Position;
use crate::query::Query;
use crate::recorded::Recorded;

/// The stream of all groups.
pub const GROUPS_STREAM: &str = "groups";

/// The full name of an aggregate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AggregateName {
    /// Its stream.
    pub stream_id: String,
    /// Its id in the stream.
    pub aggregate_id: String,
}

impl AggregateName {
    /// The aggregate of an event.
    #[must_use]
    pub fn of(event: &Recorded) -> Self {
        Self { stream_id: event.stream_id.clone(), aggregate_id: event.aggregate_id.clone() }
    }
}

impl std::fmt::Display for AggregateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.stream_id, self.aggregate_id)
    }
}

/// An event of a group. The aggregate id is the group's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum GroupEvent {
    /// A version was declared. The first is active at once; a later one rebuilds without effects.
    Declared {
        /// The version: 1, 2, 3 ...
        version: u32,
        query: Query,
        /// The number of partitions that its aggregates are divided into.
        n_partitions: u16,
        /// Delivery begins after this position.
        start: Position,
    },
    /// Delivery stops for all versions until the group is resumed.
    Paused,
    /// Delivery continues.
    Resumed,
    /// Every partition continues after this position, regardless of its progress.
    Reset {
        version: u32,
        /// Events up to here count as handled, and later ones do not.
        to: Position,
    },
    /// An event could not be handled. It and all later ones of its aggregate wait until a person decides.
    Parked {
        version: u32,
        #[serde(flatten)]
        aggregate: AggregateName,
        position: Position,
        event_id: Uuid,
        n_attempts: u32,
        error: String,
    },
    /// A person asked for the parked events of an aggregate to be handled again.
    ReplayAsked {
        version: u32,
        #[serde(flatten)]
        aggregate: AggregateName,
    },
    /// All parked events of an aggregate have been handled; normal delivery continues.
    Replayed {
        version: u32,
        #[serde(flatten)]
        aggregate: AggregateName,
    },
    /// A person skipped a parked event; the later ones are handled.
    Skipped {
        version: u32,
        #[serde(flatten)]
        aggregate: AggregateName,
        position: Position,
    },
    /// A version has caught up and takes over, with effects from here on. It inherits its predecessor's parked
    /// aggregates.
    Promoted { version: u32 },
    /// A version has ended for good.
    Retired { version: u32 },
}

impl Event for GroupEvent {}
