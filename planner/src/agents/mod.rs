//! Plans made by agents: one form, and a table of roles that says which parts of it each type of agent uses.
//!
//! A plan of an agent is data: read, checked against its role and the registry of tools, and compiled to a proposal.

mod compile;
mod error;
pub mod failures;
mod form;
pub mod registry;
mod role;
mod schema;
mod words;

pub use error::PlanError;
pub use form::{AgentPlan, Constraint, Goal, Resolution, Resources, Step};
pub use role::Role;
pub use schema::schema;
pub use words::{plan_answer, plan_words, read_words};

/// The greatest length of an agent's plan as JSON, in bytes.
pub const PLAN_BYTES_MAX: usize = 1 << 20;
/// The most entries of any list in an agent's plan.
pub const STEPS_MAX: usize = 1_000;
/// The longest time a step may be given, in milliseconds: almost fifty days.
pub const STEP_TIMEOUT_MS_MAX: u64 = u32::MAX as u64;
/// The greatest length of a step's id.
pub const ID_CHARS_MAX: usize = 64;
