//! What each tool does: arguments to calls of the [`Crew`](crewlog_executors::crew::Crew), and its answers to JSON.

mod leases;
mod messages;
mod presence;
mod tasks;
mod waiting;

pub use self::leases::{blocked_json, lease_json, leases_json};
