//! Places in a log and in an aggregate, and what a writer believes of them.

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

/// What a writer believes of an aggregate; the append is refused when it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Any,
    /// The aggregate has no events.
    NoStream,
    /// The aggregate's last event has this sequence; 0 means that it has none.
    Sequence(i64),
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::NoStream | Self::Sequence(0) => f.write_str("no event"),
            Self::Sequence(sequence) => write!(f, "sequence {sequence}"),
        }
    }
}

/// Where an event landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// In the whole log.
    pub position: Position,
    /// In its aggregate.
    pub sequence: i64,
}
