//! The planner of crewlog: decides what happens next in a plan.
//!
//! Text becomes a plan ([`parse`]), a plan becomes events ([`planner`]), and reports of executors ([`claim`]) become
//! further events. Everything is pure: without clock, ids, I/O and await, the same commands give the same events.

pub mod agents;
pub mod analysis;
pub mod claim;
pub mod crew;
mod error;
pub mod event;
pub mod format;
pub mod lifecycle;
pub mod lines;
pub mod listing;
pub mod model;
pub mod nesting;
pub mod parse;
pub mod plan;
pub mod plan_event;
pub mod planner;
pub mod priority;
pub mod prompt;
pub mod protocol;
pub mod recorded;
pub mod sealed;
pub mod sealing;
pub mod state;
pub mod task;
pub mod text;
pub mod validity;
pub mod verify;
pub mod view;
mod words;

/// True for a field that JSON leaves out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
