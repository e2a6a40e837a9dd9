//! The pure planner, seen from outside: commands in, events out. These tests use no processes, and only
//! `recorded` uses a log, to show that it can be replayed.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod amending;
mod budgets;
mod changing;
mod clarifying;
mod compaction;
mod compensation;
mod excerpts;
mod failures;
mod forks;
mod laws;
mod letter;
mod listed;
mod naming;
mod orders;
mod outcomes;
mod progress;
mod prompts;
mod questions;
mod random;
mod recorded;
mod rendered;
mod rules;
mod run;
mod simulation;
mod states;
mod timing;
mod transcript;
mod turns;
mod unknown;
