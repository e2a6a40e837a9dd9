//! Cells: small values beside the log, such as leases, checkpoints and snapshots. They change only together with an append,
//! under a condition. Whoever deletes one, at any time, causes work to be repeated and nothing else.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::expected::CellExpected;
use crate::limits::{self, CELL_BYTES_MAX, LEASE_MAX, check_name};

/// A cell as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What sort of cell it is.
    pub space: String,
    /// Which one of its sort.
    pub key: String,
    /// Another after each change, and always greater, also after the cell was deleted and made again: a fencing epoch.
    pub version: i64,
    /// The value.
    pub value: String,
    /// Until when it is held; unset when nobody holds it.
    pub held_until: Option<Timestamp>,
}

/// A change of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// What sort of cell it is.
    pub space: String,
    /// Which one of its sort.
    pub key: String,
    /// What must hold of it.
    pub expected: CellExpected,
    /// The new value; `None` deletes it.
    pub value: Option<String>,
    /// For how long it is held from the log time of the change on; `None` when nobody is to hold it.
    pub hold: Option<Duration>,
}

impl CellChange {
    /// Sets a cell, whatever it holds.
    #[must_use]
    pub fn set(space: &str, key: &str, value: String) -> Self {
        let (space, key) = (space.to_owned(), key.to_owned());
        Self { space, key, expected: CellExpected::Any, value: Some(value), hold: None }
    }

    /// Deletes a cell, whatever it holds.
    #[must_use]
    pub fn delete(space: &str, key: &str) -> Self {
        Self { value: None, ..Self::set(space, key, String::new()) }
    }

    /// The same change, only if this holds.
    #[must_use]
    pub fn expecting(self, expected: CellExpected) -> Self {
        Self { expected, ..self }
    }

    /// The same change, and the cell is then held for so long.
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

    /// Refuses the change when what was believed of the cell is wrong.
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

/// What a change is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) version: i64,
    pub(crate) until: Option<Timestamp>,
}
