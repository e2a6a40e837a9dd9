//! The tests of crewlog: one binary, each module one subject.

mod cli;
mod crash;
mod house_rules;
mod log;
