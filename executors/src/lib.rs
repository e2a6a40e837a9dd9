//! The executors of crewlog: what does happen.
//!
//! A [`worker`] follows the dispatched tasks, claims each by an append that only one can win, lets an executor act
//! ([`shell`]), and appends how it ended. The planner's host ([`planning`]) follows what they append and feeds it to
//! the pure planner. Nobody calls anybody, and nothing here decides what comes next.

pub mod human;
pub mod liveness;
pub mod planning;
pub mod shell;
pub mod supervisor;
pub mod worker;
