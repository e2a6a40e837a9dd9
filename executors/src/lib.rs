//! The executors of crewlog: they carry out what the planner decides.
//!
//! A [`worker`] follows the dispatched tasks, claims each by an append that only one worker can win, lets an executor
//! act, and appends how the task ended. The [`roster`] picks the executor: the [`shell`] for a task with a command, a
//! configured [`agent`] for one without; people do the rest. The planner's host ([`planning`]) follows these events and
//! feeds them to the pure planner. [`history`] reads a plan's events, its ancestors' included; [`verify`] repeats its
//! decisions, and [`divergence`] compares two that share a beginning. [`crew::reacting`] hosts the processes that follow all
//! plans. They exchange data only through the log and leave all decisions to the planner.

pub mod agent;
pub mod agents;
pub mod attachments;
pub mod breakers;
mod budgets;
pub mod caller;
mod changes;
pub mod checking;
pub mod claiming;
pub mod consent;
pub mod crew;
pub mod divergence;
pub mod entry;
pub mod exports;
pub mod history;
#[cfg(feature = "sealing")]
pub mod keys;
pub mod limits;
pub mod liveness;
pub mod matching;
mod metering;
pub mod model;
pub mod output;
pub mod plan_ids;
pub mod planning;
pub mod plans;
pub mod private;
pub mod programs;
pub mod projecting;
pub mod prompts;
pub mod propagation;
mod queue;
pub mod roster;
pub mod run;
pub mod runs;
pub mod seal;
pub mod secrets;
mod seen;
pub mod shell;
pub mod signs;
pub mod subplans;
pub mod supervisor;
pub mod text;
pub mod transcript;
pub mod usage;
pub mod verify;
mod web;
pub mod worker;
