//! The planner of crewlog: what should happen.
//!
//! Text becomes a plan ([`parse`]), a plan becomes events ([`planner`]), and what executors report ([`claim`])
//! becomes further events. Everything here is pure: it knows no clock, no source of ids, no I/O and no await, so
//! the same commands give the same events on any machine, and a fold of the log gives the state that was lost.

pub mod agents;
pub mod analysis;
pub mod brevity;
pub mod claim;
pub mod condense;
pub mod context;
pub mod crew;
mod error;
pub mod event;
mod json;
pub mod lines;
pub mod listing;
pub mod model;
mod open;
pub mod parse;
mod parts;
mod past;
mod paths;
mod places;
pub mod plan;
pub mod planner;
pub mod priority;
pub mod prompt;
pub mod protocol;
pub mod recorded;
pub mod sealed;
pub mod state;
pub mod task;
mod telling;
pub mod thread;
mod to_do;
pub mod tokens;
pub mod validity;
pub mod verify;
pub mod view;
