//! The tests of the planner, which start no process and use no log.

mod coordination;
mod planner;
