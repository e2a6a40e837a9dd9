//! The pure planner, seen from outside: commands in, events out. Nothing here knows a process, and only
//! `recorded` a log, since what it shows is that the log can be decided again.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod amending;
mod budgets;
mod changing;
mod clarifying;
mod compensation;
mod condensing;
mod context;
mod failures;
mod forks;
mod laws;
mod letter;
mod orders;
mod outcomes;
mod progress;
mod questions;
mod random;
mod recorded;
mod rendered;
mod rules;
mod simulation;
mod thread;
mod timing;
mod tokens;
mod transcript;
mod turns;
mod unknown;
