//! Cells: small values stored next to the log, such as leases, checkpoints and snapshots. They change only as part of
//! an append, under a condition. Deleting one at any time only causes work to be repeated.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::expected::CellExpected;
use crate::limits::{self, CELL_BYTES_MAX, LEASE_MAX, check_name};

/// The current state of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The cell's type.
    pub space: String,
    /// Identifies the cell within its space.
    pub key: String,
    /// A fencing epoch: it rises with each change, even after the cell was deleted and created again.
    pub version: i64,
    /// The value.
    pub value: String,
    /// The end of the lease on the cell; unset if nobody holds it.
    pub held_until: Option<Timestamp>,
}

/// A change of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// The cell's type.
    pub space: String,
    /// Identifies the cell within its space.
    pub key: String,
    /// The required state of the cell.
    pub expected: CellExpected,
    /// The new value; `None` deletes it.
    pub value: Option<String>,
    /// How long the cell is held, from the log time of the change; `None` for a cell that nobody holds.
    pub hold: Option<Duration>,
}

impl CellChange {
    /// Sets a cell unconditionally.
    #[must_use]
    pub fn set(space: &str, key: &str, value: String) -> Self {
        let (space, key) = (space.to_owned(), key.to_owned());
        Self { space, key, expected: CellExpected::Any, value: Some(value), hold: None }
    }

    /// Deletes a cell unconditionally.
    #[must_use]
    pub fn delete(space: &str, key: &str) -> Self {
        Self { value: None, ..Self::set(space, key, String::new()) }
    }

    /// Makes the change conditional.
    #[must_use]
    pub fn expecting(self, expected: CellExpected) -> Self {
        Self { expected, ..self }
    }

    /// Holds the cell for this duration.
    #[must_use]
    pub fn held_for(self, duration: Duration) -> Self {
        Self { hold: Some(duration), ..self }
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("cell's space", &self.space)?;
        check_name("cell's key", &self.key)?;
        if self.hold.is_some_and(|hold| hold > LEASE_MAX) {
            let reason = format!("a cell can be held for {} s at the most", LEASE_MAX.as_secs());
            return Err(Error::InvalidAppend { reason });
        }
        if self.value.as_ref().is_some_and(|value| value.contains('\0')) {
            let reason = format!("the value of the cell {}/{} has a zero byte", self.space, self.key);
            return Err(Error::InvalidAppend { reason });
        }
        let n_bytes = self.value.as_ref().map_or(0, String::len);
        limits::check(
            "cell_bytes_max",
            format_args!("the bytes of cell {}/{}", self.space, self.key),
            n_bytes,
            CELL_BYTES_MAX,
        )
    }

    /// Refuses the change if its expectation is wrong.
    pub(crate) fn judge(&self, found: Option<Held>, now: Timestamp) -> Result<()> {
        let is_held = found.is_some_and(|found| found.until.is_some_and(|until| now < until));
        let holds = match self.expected {
            CellExpected::Any => true,
            CellExpected::Absent => found.is_none(),
            CellExpected::Free => !is_held,
            CellExpected::Version(version) => found.is_some_and(|found| found.version == version),
            CellExpected::Held(version) => is_held && found.is_some_and(|found| found.version == version),
        };
        if !holds {
            return Err(Error::CellMismatch {
                space: self.space.clone(),
                key: self.key.clone(),
                expected: self.expected,
                actual: found.map(|found| found.version),
            });
        }
        Ok(())
    }
}

/// The facts about a cell that a change is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) version: i64,
    pub(crate) until: Option<Timestamp>,
}
