//! The tests of the program and its executors: each module one subject.

mod authority;
mod browser;
mod cli;
mod crash;
mod crew;
mod documents;
mod executors;
mod house_rules;
mod model;
mod planning;
#[path = "planner/retries.rs"]
mod retries;
#[cfg(feature = "sealing")]
mod sealed;
mod views;
