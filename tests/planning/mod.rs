//! Plans of agents: their forms and tools, their requests, and sub-plans.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod agents;
mod flows;
mod nested;
mod nesting;
mod plans;
mod proposing;
mod tools;
