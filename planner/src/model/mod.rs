//! Planning by a model: what a model is asked, in which form it has to answer, and how its answers are judged.
//!
//! A request is data ([`Request`]), an answer is a text, and what a text proposes goes through the same check as a plan
//! that was parsed. What was asked and answered is folded by [`ModelCalls`]. Nothing here calls a model: an executor
//! does, and hands its answer in.

mod agents;
mod answer;
mod calls;
mod dependencies;
mod kinds;
mod proposing;
mod questions;
mod request;
mod settings;
mod summaries;

pub use agents::{agent_plan_request, read_agent_plan};
pub use answer::AnswerError;
pub use calls::{
    Answer, CALLS_MAX, CallError, CallEvent, CountedBy, CountedTokens, Fault, ModelCalls, STREAM, request_tag,
};
pub use dependencies::{dependencies_request, read_dependencies};
pub use kinds::{kinds_request, read_kinds};
pub use proposing::{Proposed, plan_request, read_plan};
pub use request::{ANSWER_QUOTED_BYTES_MAX, Message, PROMPT_BYTES_MAX, Purpose, Request, Role, Terms, TooLong, repair};
pub use summaries::{read_summary, summary_request};
