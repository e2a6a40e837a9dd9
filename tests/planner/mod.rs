//! The pure planner, seen from outside: commands in, events out. These tests use neither a log nor
//! processes.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod amending;
mod budgets;
mod changing;
mod claiming;
mod claims;
mod clarifying;
mod classes;
mod compaction;
mod compensation;
mod excerpts;
mod failures;
mod fields;
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
mod rendered;
mod retries;
mod rules;
mod run;
mod simulation;
mod timing;
mod transcript;
mod turns;
mod unknown;
