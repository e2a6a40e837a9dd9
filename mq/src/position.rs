//! Places in a log and in an aggregate.

use serde::{Deserialize, Serialize};

/// A place in the whole log: 1, 2, 3 ... in commit order. 0 is before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub i64);

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The places of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// In the whole log.
    pub position: Position,
    /// In its aggregate.
    pub sequence: i64,
}
