//! Fault points for crash tests: the process kills itself around a commit, as the environment tells it.
//!
//! `CREWLOG_KILL=before:N` or `after:N` means: before or after the commit of the append that holds position N.

use crate::position::Position;

/// A place in the writer where a process may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// All is written, nothing is committed.
    Before,
    /// All is committed, nobody was told.
    After,
}

/// Dies here if the environment says so.
pub(crate) fn reach(point: Point, head_before: Position, head: Position) {
    let Ok(order) = std::env::var("CREWLOG_KILL") else { return };
    let (name, position) = order.split_once(':').expect("CREWLOG_KILL is POINT:POSITION");
    let position = Position(position.parse().expect("CREWLOG_KILL names a position"));
    let named = match name {
        "before" => Point::Before,
        "after" => Point::After,
        other => panic!("CREWLOG_KILL has no point {other}"),
    };
    if named == point && head_before < position && position <= head {
        let this = rustix::process::getpid();
        rustix::process::kill_process(this, rustix::process::Signal::KILL).expect("a process may kill itself");
        loop {
            std::thread::park();
        }
    }
}
