//! Planning by a model: its requests, the form of its answers, and their validation.
//!
//! Nothing here calls a model: an executor sends the request ([`ModelRequest`]) and hands in the answer.

mod advice;
mod agents;
mod answer;
mod calls;
mod plan;
mod request;
mod settings;

pub use advice::{advice_request, read_advice};
pub use agents::{agent_plan_request, read_agent_plan};
pub use answer::AnswerError;
pub use calls::{CALLS_MAX, CallError, CallEvent, Fault, ModelAnswer, ModelCalls, STREAM, request_tag};
pub use plan::{Proposed, plan_request, read_plan};
pub use request::{
    MessageRole, ModelMessage, ModelParameters, ModelRequest, PROMPT_BYTES_MAX, RequestPurpose, TooLong, repair,
};
