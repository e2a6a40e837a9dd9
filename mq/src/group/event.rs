//! What happens to a group that must not be lost: events on stream `groups`, one aggregate for each group. Leases and
//! checkpoints are not among them: they are cells.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::event::Event;
use crate::position::Position;
use crate::query::Query;
use crate::recorded::Recorded;

/// The stream of all groups.
pub const GROUPS_STREAM: &str = "groups";

/// An aggregate, by both its names.
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

/// What happened to a group. The aggregate id is the group's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum GroupEvent {
    /// There is such a version of it. The first is active at once; a later one rebuilds without effects.
    Declared {
        /// The version: 1, 2, 3 ...
        version: u32,
        query: Query,
        /// Among how many partitions their aggregates are divided.
        n_partitions: u16,
        /// It begins after this position.
        start: Position,
    },
    /// No version of it is given events until it is resumed.
    Paused,
    /// It goes on.
    Resumed,
    /// Every partition goes on after this position, whatever it had handled.
    Reset {
        version: u32,
        /// Events up to here count as handled, and no later ones.
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
    /// A person wants what is parked of an aggregate to be handled again.
    ReplayAsked {
        version: u32,
        #[serde(flatten)]
        aggregate: AggregateName,
    },
    /// All that was parked of an aggregate has been handled; it flows again.
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
    /// A version has caught up and takes over, with effects from here on; what the one before has parked is now its own.
    Promoted { version: u32 },
    /// A version is given no more events, ever.
    Retired { version: u32 },
}

impl Event for GroupEvent {}
