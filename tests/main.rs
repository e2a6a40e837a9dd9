//! The tests of crewlog: one binary, each module one subject.

mod house_rules;
mod log;
