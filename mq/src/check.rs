//! What a check of a log has found so far, on any database: the events are looked at one by one in the order of positions, by
//! the law that an import is held to. What only one database can know of itself is found there and told here.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::law::{self, Previous};
use crate::limits::FINDINGS_MAX;
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::{Checked, Finding};

/// A check on its way.
#[derive(Debug, Default)]
pub(crate) struct Check {
    /// Of each sort the first [`FINDINGS_MAX`] and one more, so that the first of all are among them.
    findings: Vec<Finding>,
    n_events: usize,
    /// How many were found before the first event was looked at.
    n_before: Option<usize>,
    last: Position,
    previous: Option<Previous>,
}

impl Check {
    /// Something is wrong: with the event there, or with none.
    pub(crate) fn find(&mut self, position: Option<Position>, what: String) {
        self.findings.push(Finding { position, what });
    }

    /// Whether anything was found.
    #[cfg(feature = "sqlite")]
    pub(crate) fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Looks at the next event, seen from the last before it that could be read, and gives it back for what else there is to
    /// look at. `None` when it cannot be read, or when enough was found.
    pub(crate) fn event<E: Display>(
        &mut self,
        position: Position,
        read: impl FnOnce() -> Result<Recorded, E>,
    ) -> Option<Recorded> {
        self.n_events += 1;
        let expected = Position(self.last.0.saturating_add(1));
        self.last = position;
        let n_before = *self.n_before.get_or_insert(self.findings.len());
        if self.findings.len() - n_before > FINDINGS_MAX {
            return None;
        }
        if position != expected {
            self.find(Some(position), format!("position {expected} is missing before it"));
        }
        match read() {
            Ok(event) => {
                if let Some(what) = law::broken(self.previous, &event) {
                    self.find(Some(position), what);
                }
                self.previous = Some(Previous::of(&event));
                Some(event)
            }
            Err(error) => {
                self.find(Some(position), format!("the event cannot be read: {error}"));
                None
            }
        }
    }

    /// The cause that an event names is no event of the log.
    pub(crate) fn find_lost_cause(&mut self, event: &Recorded, cause: Uuid) {
        self.find(Some(event.position), format!("its cause {cause} is no event of the log"));
    }

    pub(crate) fn end(mut self) -> Checked {
        // Stable, so that what the database says of itself comes first.
        self.findings.sort_by_key(|finding| finding.position);
        let more = self.findings.len() > FINDINGS_MAX;
        self.findings.truncate(FINDINGS_MAX);
        Checked { n_events: self.n_events, findings: self.findings, more }
    }
}

/// The cause that the metadata names; metadata of another form names none.
pub(crate) fn cause_of(event: &Recorded) -> Option<Uuid> {
    #[derive(Deserialize)]
    struct Caused<'a> {
        #[serde(borrow)]
        causation_id: Option<&'a RawValue>,
    }
    let caused = serde_json::from_str::<Caused>(&event.metadata).ok()?;
    serde_json::from_str(caused.causation_id?.get()).ok()
}
