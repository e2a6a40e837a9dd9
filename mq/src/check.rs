//! What a check of a log has found so far, on any database: the events are looked at one by one in the order of positions, by
//! the law that an import is held to. What only one database can know of itself is found there and told here.

use std::fmt::Display;

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
    n_foreign_causes: usize,
    foreign_causes: Vec<Position>,
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

    /// The event names a cause that is not in the log.
    pub(crate) fn foreign_cause(&mut self, position: Position) {
        self.n_foreign_causes += 1;
        if self.foreign_causes.len() < FINDINGS_MAX {
            self.foreign_causes.push(position);
        }
    }

    pub(crate) fn end(mut self) -> Checked {
        // Stable, so that what the database says of itself comes first.
        self.findings.sort_by_key(|finding| finding.position);
        let more = self.findings.len() > FINDINGS_MAX;
        self.findings.truncate(FINDINGS_MAX);
        let Self { n_events, findings, n_foreign_causes, foreign_causes, .. } = self;
        Checked { n_events, findings, more, n_foreign_causes, foreign_causes }
    }
}
