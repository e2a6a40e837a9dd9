//! The executors of crewlog: what does happen.
//!
//! A [`worker`] follows the dispatched tasks, claims each by an append that only one can win, lets an executor act, and
//! appends how it ended. Which executor, the [`roster`] says: the [`shell`] for what has a command, a configured
//! [`agent`] for what has none; what is left is for people. The planner's host ([`planning`]) follows what they append
//! and feeds it to the pure planner; [`history`] reads all that a plan has gone through; [`reacting`] hosts the processes that watch over all plans. Nobody calls anybody,
//! and nothing here decides what comes next.

pub mod agent;
pub mod agents;
pub mod attachments;
mod backoff;
pub mod claiming;
pub mod history;
pub mod human;
#[cfg(feature = "sealing")]
pub mod keys;
pub mod links;
pub mod liveness;
pub mod model;
pub mod output;
pub mod planning;
pub mod plans;
pub mod projecting;
pub mod prompts;
pub mod propagation;
mod queue;
pub mod reacting;
pub mod roster;
pub mod run;
pub mod shell;
pub mod subplans;
pub mod summaries;
pub mod supervisor;
pub mod usage;
mod web;
pub mod worker;
