//! Processes that react to the log as pure functions of it: they fold what others append and say what follows.
//!
//! What a process says depends on the log up to its cause alone, so any host may take over from any other, and a
//! repeated reaction is recognised by its ids. Nothing here reads a log, appends, or looks at what it has said before.

pub mod agents;
pub mod asks;
pub mod conflicts;
pub mod globs;
pub mod leases;
pub mod mentions;
pub mod messages;
mod refusal;
pub mod statistics;
pub mod target;

pub use self::refusal::CrewError;

use crewlog_mq::{Error, Query, Recorded, Snapshot};

/// The aggregate of what is emitted about work without a project.
pub const NO_PROJECT: &str = "-";

const PROJECT_TAG: &str = "project:";

/// A fold of the whole log, kept in snapshots for its readers.
pub trait Projection: Default + Send + Snapshot {
    /// Takes in one event; events that do not concern it are passed over.
    ///
    /// # Errors
    /// [`Error::Decode`] for an event that cannot be read; nothing has changed, and it can be passed over.
    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error>;

    /// The events that matter to a reader who has no snapshot: where most do not, an index finds these.
    fn from_scratch() -> Query {
        Query::all()
    }

    /// Called after the last event of each append by readers, who append nothing.
    fn end_append(&mut self) {}
}

/// A process that folds the events of others and derives its own events from them.
///
/// [`Reactor::emit`] is called after the last event of each append and never between: an append is atomic, so half of
/// it is no state of the log. What it then emits has that last event as its cause.
///
/// Its state is kept in snapshots, so it is what the next host goes on with: it holds all on which its answers depend, and
/// no more.
pub trait Reactor: Projection {
    /// What it says.
    type Event: crewlog_mq::Event;
    /// Its name, from which the ids of its events derive.
    const NAME: &'static str;
    /// The stream that it appends to. An aggregate of it is a project.
    const STREAM: &'static str;

    /// What follows from all that was taken in since the last call, by project.
    fn emit(&mut self) -> Vec<Emitted<Self::Event>>;
}

/// One thing that a process says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted<E> {
    /// The project; [`NO_PROJECT`] when none is known.
    pub project: String,
    /// What.
    pub event: E,
    /// The tags of the event.
    pub tags: Vec<String>,
}

/// The project that an event belongs to, by its tags.
fn project_of(recorded: &Recorded) -> &str {
    let mut named = recorded.tags.iter().filter_map(|tag| tag.strip_prefix(PROJECT_TAG));
    named.find(|project| !project.is_empty()).unwrap_or(NO_PROJECT)
}

/// The tag of a project, when it is known.
fn project_tag(project: &str) -> Option<String> {
    (project != NO_PROJECT).then(|| format!("{PROJECT_TAG}{project}"))
}
