//! A check of a log in progress, for any database: it examines the events one by one in position order, by the same
//! rules as an import. Each database adds the findings that only it can make.

use std::fmt::Display;

use crate::law::{self, Previous};
use crate::limits::FINDINGS_MAX;
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::{Checked, Finding};

/// A check in progress.
#[derive(Debug, Default)]
pub(crate) struct Check {
    /// The first [`FINDINGS_MAX`] of each kind and one more, so that the overall first ones are among them.
    findings: Vec<Finding>,
    n_events: usize,
    /// The number of findings before the first event was checked.
    n_before: Option<usize>,
    last: Position,
    previous: Option<Previous>,
    n_foreign_causes: usize,
    foreign_causes: Vec<Position>,
}

impl Check {
    /// Records a finding, about the event at `position` if there is one.
    pub(crate) fn find(&mut self, position: Option<Position>, what: String) {
        self.findings.push(Finding { position, what });
    }

    /// True if there are findings.
    #[cfg(feature = "sqlite")]
    pub(crate) fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Checks the next event against the last readable one before it, and returns it for further checks. `None` if it
    /// cannot be read, or if there are enough findings.
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
        // Stable, so that the database's own findings come first.
        self.findings.sort_by_key(|finding| finding.position);
        let more = self.findings.len() > FINDINGS_MAX;
        self.findings.truncate(FINDINGS_MAX);
        let Self { n_events, findings, n_foreign_causes, foreign_causes, .. } = self;
        Checked { n_events, findings, more, n_foreign_causes, foreign_causes }
    }
}
