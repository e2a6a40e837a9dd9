//! What agents plan: their forms and tools, what they ask of each other, and plans within plans.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod agents;
mod flows;
mod nested;
mod nesting;
mod plans;
mod proposing;
mod tools;
