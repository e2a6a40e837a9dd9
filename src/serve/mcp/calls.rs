//! The tools: each passes its arguments to the [`Crew`](crewlog_executors::crew::Crew), and returns the answer as JSON.

mod leases;
mod messages;
mod presence;
mod tasks;
mod waiting;

pub use self::leases::{lease_json, leases_json};
