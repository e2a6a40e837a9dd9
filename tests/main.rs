//! The tests of crewlog: one binary, each module one subject.

mod browser;
mod cli;
mod crash;
mod crew;
mod documents;
mod executors;
mod house_rules;
mod log;
mod model;
mod planner;
mod planning;
#[cfg(feature = "sealing")]
mod sealed;
mod views;
