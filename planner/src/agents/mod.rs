//! Plans made by agents: one form, and a table of roles that says which parts of it each type of agent uses.
//!
//! A plan of an agent is data: read, checked against its role and the registry of tools, and compiled to a proposal.

mod compile;
pub mod failures;
mod form;
pub mod registry;
mod role;
mod schema;
mod words;

pub use failures::PlanError;
pub use form::{
    AgentPlan, Constraint, Goal, ID_CHARS_MAX, PLAN_BYTES_MAX, Resolution, Resources, STEP_TIMEOUT_MS_MAX, STEPS_MAX,
    Step,
};
pub use role::Role;
pub use schema::schema;
pub use words::{plan_answer, plan_words, read_words};
