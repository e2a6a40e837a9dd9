//! Processes that react to the log as pure functions of it: they fold the events of others and emit their own.
//!
//! The output of a process depends only on the log up to its cause, so any host may take over from any other, and
//! repeated reactions are recognised by their ids. Nothing here reads a log, appends, or depends on earlier output.

pub mod agents;
pub mod asks;
pub mod breaker;
pub mod conflicts;
pub mod consent;
pub mod globs;
pub mod leases;
pub mod losses;
pub mod messages;
pub mod names;
pub mod paths;
mod refusal;
pub mod statistics;
pub mod target;

pub use self::refusal::CrewError;

use crewlog_mq::{Error, Position, Query, Recorded, Snapshot};

/// The aggregate for events about work without a project.
pub const NO_PROJECT: &str = "-";

const PROJECT_TAG: &str = "project:";

/// A fold of the whole log, stored in snapshots for its readers.
pub trait Projection: Default + Send + Snapshot {
    /// Applies one event; irrelevant events are ignored.
    ///
    /// # Errors
    /// [`Error::Decode`] for an unreadable event; the state is unchanged, and the event can be skipped.
    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error>;

    /// Called after a read from scratch up to a position, which has left out other events.
    fn read_to(&mut self, at: Position) {
        let _ = at;
    }

    /// Selects the relevant events for a reader without a snapshot, so that an index can find them.
    fn from_scratch() -> Query {
        Query::all()
    }

    /// Readers, which append nothing, call it after the last event of each append.
    fn end_append(&mut self) {}
}

/// A process that folds the events of others and derives its own events from them.
///
/// [`Reactor::emit`] is called only after the last event of each append: an append is atomic, so half of it is not a
/// state of the log. The emitted events have that last event as their cause.
///
/// Snapshots pass its state on to the next host, so it must hold everything that the output depends on, and no more.
pub trait Reactor: Projection {
    /// The type of its events.
    type Event: crewlog_mq::Event;
    /// Its name, from which the ids of its events derive.
    const NAME: &'static str;
    /// The stream that it appends to. An aggregate of it is a project.
    const STREAM: &'static str;

    /// The consequences of all events applied since the last call, by project.
    fn emit(&mut self) -> Vec<Emitted<Self::Event>>;
}

/// An event emitted by a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted<E> {
    /// The project; [`NO_PROJECT`] if unknown.
    pub project: String,
    /// The event.
    pub event: E,
    /// The tags of the event.
    pub tags: Vec<String>,
}

/// The project in the tags of an event.
fn project_of(recorded: &Recorded) -> &str {
    let mut named = recorded.tags.iter().filter_map(|tag| tag.strip_prefix(PROJECT_TAG));
    named.find(|project| !project.is_empty()).unwrap_or(NO_PROJECT)
}

/// The tag of a project, if known.
fn project_tag(project: &str) -> Option<String> {
    (project != NO_PROJECT).then(|| format!("{PROJECT_TAG}{project}"))
}
