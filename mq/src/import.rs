//! The rules for importing events from another copy of a log. Every database applies them within the import's one
//! transaction, and looks up the facts that they need, record by record or in pages.

use crate::error::{Error, Result};
use crate::identity::LogIdentity;
use crate::law::{self, Previous};
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::Imported;

/// An import in progress. Only the import changes the log meanwhile.
#[derive(Debug)]
pub(crate) struct Import {
    /// The end of the log before the import.
    head: Position,
    last: Option<Previous>,
    /// True if the log must first take the import's identity: it is empty, and has another one.
    pub(crate) adopts: bool,
}

/// The action for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The log has an event at this position: [`Import::compare`] the two.
    Known,
    /// The log ends before this position: [`Import::add`] the record.
    New,
}

impl Import {
    /// An empty log becomes the log of the import; any other log must have the same identity.
    pub(crate) fn begin(log: &LogIdentity, head: Position, import: &LogIdentity) -> Result<Self> {
        if import.format < 1 {
            return Err(invalid(None, format!("there is no log format {}", import.format)));
        }
        law::check_format("the export".to_owned(), import.format)?;
        let adopts = match (log.id == import.id, log.created_at == import.created_at) {
            (true, true) => false,
            (_, _) if head == Position(0) => true,
            (true, false) => {
                let (made_at, said) = (log.created_at.0, import.created_at.0);
                let reason = format!("the log was made at {made_at} microseconds since 1970, not at {said}");
                return Err(invalid(None, reason));
            }
            (false, _) => return Err(Error::OtherLog { log: log.id, head, import: import.id }),
        };
        Ok(Self { head, last: None, adopts })
    }

    /// Checks the next record against the earlier ones.
    pub(crate) fn take(&mut self, record: &Recorded) -> Result<Taken> {
        let (position, expected) = (record.position, Position(self.position().0 + 1));
        if position != expected {
            return Err(Error::ImportGap { position, expected });
        }
        if let Some(reason) = law::broken(self.last, record) {
            return Err(invalid(Some(position), reason));
        }
        self.last = Some(Previous::of(record));
        Ok(if position <= self.head { Taken::Known } else { Taken::New })
    }

    /// Compares a record with the log's event at its position; they must be equal.
    pub(crate) fn compare(known: &Recorded, record: &Recorded) -> Result<()> {
        match difference(known, record) {
            Some(differs) => Err(Error::Forked { position: record.position, differs }),
            None => Ok(()),
        }
    }

    /// Judges a new record, given the last sequence of its aggregate and the position of any event with the same id.
    pub(crate) fn add(&self, record: &Recorded, sequence: i64, same_id: Option<Position>) -> Result<()> {
        let position = record.position;
        if position.0 == self.head.0 + 1 && record.append_start != position {
            // A log ends with a complete append, and this one has ended here.
            return Err(Error::Forked { position, differs: "append_start" });
        }
        let next = sequence.saturating_add(1);
        if record.sequence != next {
            let Recorded { stream_id, aggregate_id, sequence: found, .. } = record;
            let reason = format!("{stream_id}/{aggregate_id} has sequence {found} where {next} should be");
            return Err(invalid(Some(position), reason));
        }
        if let Some(first) = same_id {
            let reason = format!("event id {} is that of position {first} too", record.event_id);
            return Err(invalid(Some(position), reason));
        }
        Ok(())
    }

    /// The last position taken.
    pub(crate) fn position(&self) -> Position {
        self.last.map_or(Position(0), |last| last.position)
    }

    /// Judges the whole import, given the end of the last complete append at or before [`Import::position`]. The log
    /// may be ahead of the import, but not within an append.
    pub(crate) fn end(&self, whole: Position) -> Result<Imported> {
        let (position, head) = (self.position(), self.head);
        if whole < position {
            let reason = format!("it ends in the middle of the append that begins at position {}", whole.0 + 1);
            return Err(invalid(Some(position), reason));
        }
        let count = |n: i64| usize::try_from(n).unwrap_or(0);
        let n_known = position.min(head);
        Ok(Imported { n_added: count(position.0 - n_known.0), n_known: count(n_known.0), head: head.max(position) })
    }
}

fn invalid(position: Option<Position>, reason: String) -> Error {
    Error::InvalidImport { position, reason }
}

/// The first field in which two events differ.
fn difference(known: &Recorded, given: &Recorded) -> Option<&'static str> {
    let fields = [
        ("event_id", known.event_id == given.event_id),
        ("stream_id", known.stream_id == given.stream_id),
        ("aggregate_id", known.aggregate_id == given.aggregate_id),
        ("sequence", known.sequence == given.sequence),
        ("event_type", known.event_type == given.event_type),
        ("event_version", known.event_version == given.event_version),
        ("data", bare(&known.data) == bare(&given.data)),
        ("metadata", bare(&known.metadata) == bare(&given.metadata)),
        ("tags", known.tags == given.tags),
        ("created_at", known.created_at == given.created_at),
        ("append_start", known.append_start == given.append_start),
    ];
    fields.into_iter().find(|(_, is_equal)| !is_equal).map(|(name, _)| name)
}

/// JSON without surrounding white space, which an export omits.
fn bare(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\r', '\n'])
}
