//! Plans on a log: records, states, forks and sub-plans. Plans made by agents: tools and requests.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod agents;
#[path = "../planner/claims.rs"]
mod claims;
mod flows;
mod forks;
mod nested;
mod nesting;
mod plans;
mod proposing;
#[path = "../planner/random.rs"]
#[expect(dead_code, reason = "some of it is for the pure tests")]
mod random;
mod recorded;
mod states;
mod tools;

use crate::retries;
