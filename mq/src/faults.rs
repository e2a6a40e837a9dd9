//! Fault points for crash tests: the process kills itself around a commit, as an environment variable says.
//!
//! `CREWLOG_KILL=before:N` or `after:N`: before or after the commit of the append that holds position N.
//! `CREWLOG_KILL=migrated`: after migration to the newest format, before its commit.

use crate::position::Position;

/// A place in the writer where a process may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Everything after the first position up to the second is written, but not committed.
    Before(Position, Position),
    /// Everything after the first position up to the second is committed, but not acknowledged.
    After(Position, Position),
    /// The log is migrated to the newest format, but not committed.
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
