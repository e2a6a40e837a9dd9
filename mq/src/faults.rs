//! Fault points for crash tests: the process kills itself around a commit, as the environment tells it.
//!
//! `CREWLOG_KILL=before:N` or `after:N` means: before or after the commit of the append that holds position N;
//! `CREWLOG_KILL=migrated` means: when a log has its newest form, and nothing of that is committed.

use crate::position::Position;

/// A place in the writer where a process may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// All behind the first position up to the second is written, nothing is committed.
    Before(Position, Position),
    /// All behind the first position up to the second is committed, nobody was told.
    After(Position, Position),
    /// The log is brought to its newest form, and nothing is committed.
    Migrated,
}

/// Dies here if the environment says so.
pub(crate) fn reach(point: Point) {
    let Ok(order) = std::env::var("CREWLOG_KILL") else { return };
    let (name, position) = order.split_once(':').unwrap_or((&order, "0"));
    let position = Position(position.parse().expect("CREWLOG_KILL names a position"));
    let is_within = |before: Position, head: Position| before < position && position <= head;
    let is_ordered = match (name, point) {
        ("before", Point::Before(before, head)) | ("after", Point::After(before, head)) => is_within(before, head),
        ("migrated", Point::Migrated) => true,
        ("before" | "after" | "migrated", Point::Before(..) | Point::After(..) | Point::Migrated) => false,
        (other, _) => panic!("CREWLOG_KILL has no point {other}"),
    };
    if is_ordered {
        let this = rustix::process::getpid();
        rustix::process::kill_process(this, rustix::process::Signal::KILL).expect("a process may kill itself");
        loop {
            std::thread::park();
        }
    }
}
