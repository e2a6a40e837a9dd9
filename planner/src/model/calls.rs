//! Requests to models and their answers, as events and their fold. An answer in the log is final.

use std::collections::BTreeMap;

use crewlog_mq::{Event as MqEvent, Handler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::ModelRequest;
use crate::event::Usage;
use crate::recorded::RestoreError;

/// The stream of requests to models; the aggregate is the plan's id.
pub const STREAM: &str = "model";
/// The most requests of one plan.
pub const CALLS_MAX: usize = 1_000;

/// The tag of the events of a request, by which its answer is found from any plan.
pub fn request_tag(request: &str) -> String {
    format!("request:{request}")
}

/// The class of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// HTTP 429.
    RateLimited,
    /// HTTP 503 or 529.
    Overloaded,
    /// Another HTTP 5xx.
    Server,
    /// No answer in time.
    TimedOut,
    /// The answer is incomplete.
    CutOff,
    /// The reply breaks the protocol.
    Malformed,
    /// The key, the request or the content is refused.
    Refused,
    /// There is no connection.
    Unreachable,
    /// A setting is missing, so nothing was sent.
    NotConfigured,
    /// The answer was refused.
    NotUnderstood,
}

/// An exchange with a model; a request is named by its hash. As a command, it is recorded if it changes something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the fields hold")]
pub enum CallEvent {
    /// The request was sent.
    ModelAsked { request: String, asked: Box<ModelRequest> },
    /// The answer arrived.
    ModelAnswered { request: String, answer: ModelAnswer },
    /// There is no answer, or it was refused.
    ModelFailed { request: String, class: Fault, error: String },
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text as received.
    pub text: String,
    /// Tokens, cost and time; the cost is 0 without prices.
    pub usage: Usage,
}

impl CallEvent {
    /// The request's hash.
    pub fn request(&self) -> &str {
        match self {
            Self::ModelAsked { request, .. }
            | Self::ModelAnswered { request, .. }
            | Self::ModelFailed { request, .. } => request,
        }
    }

    /// The command's recorded form, for [`crewlog_mq::Cause::keeping`]: its name; the event has the rest.
    pub fn recorded(&self) -> Value {
        json!({ self.event_type(): {} })
    }

    /// The command from its recorded form and the events of its append.
    ///
    /// # Errors
    /// [`RestoreError`] when either does not come from [`CallEvent::recorded`] and [`ModelCalls`].
    pub fn restore(recorded: &Value, events: &[Self]) -> Result<Self, RestoreError> {
        let command = events.first().filter(|event| event.recorded() == *recorded).cloned();
        command.ok_or_else(|| RestoreError::NotInEvents { command: recorded.to_string() })
    }
}

impl MqEvent for CallEvent {}

/// The reason for refusing a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no request with this hash.
    #[error("the request {0} is unknown")]
    NotAsked(String),
    /// The plan has too many requests.
    #[error("the plan has made {CALLS_MAX} requests to models, the maximum")]
    CallsMax,
}

/// The requests of a plan to models, by their hashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelCalls {
    calls: BTreeMap<String, CallState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CallState {
    Open,
    Answered(ModelAnswer),
    Failed,
}

impl ModelCalls {
    /// The answer to a request, if there is one.
    pub fn answer(&self, hash: &str) -> Option<&ModelAnswer> {
        match self.calls.get(hash)? {
            CallState::Answered(answer) => Some(answer),
            CallState::Open | CallState::Failed => None,
        }
    }
}

impl Handler for ModelCalls {
    type Command = CallEvent;
    type Event = CallEvent;
    type Error = CallError;

    fn decide(&self, event: CallEvent) -> Result<Vec<CallEvent>, CallError> {
        let is_new = match (&event, self.calls.get(event.request())) {
            (CallEvent::ModelAsked { .. }, None) if self.calls.len() >= CALLS_MAX => return Err(CallError::CallsMax),
            (CallEvent::ModelAsked { .. }, None | Some(CallState::Failed)) => true,
            // A request that was open at a crash stays open.
            (CallEvent::ModelAsked { .. }, Some(CallState::Open | CallState::Answered(_))) => false,
            (CallEvent::ModelAnswered { request, .. } | CallEvent::ModelFailed { request, .. }, None) => {
                return Err(CallError::NotAsked(request.clone()));
            }
            // The first answer counts.
            (CallEvent::ModelAnswered { .. }, Some(CallState::Answered(_))) => false,
            (CallEvent::ModelFailed { class, .. }, Some(CallState::Answered(_))) => *class == Fault::NotUnderstood,
            (
                CallEvent::ModelAnswered { .. } | CallEvent::ModelFailed { .. },
                Some(CallState::Open | CallState::Failed),
            ) => true,
        };
        Ok(is_new.then_some(event).into_iter().collect())
    }

    fn apply(&mut self, event: &CallEvent) {
        let outcome = match event {
            CallEvent::ModelAsked { .. } => CallState::Open,
            CallEvent::ModelAnswered { answer, .. } => CallState::Answered(answer.clone()),
            // A refused answer stays the answer.
            CallEvent::ModelFailed { request, .. } if self.answer(request).is_some() => return,
            CallEvent::ModelFailed { .. } => CallState::Failed,
        };
        self.calls.insert(event.request().to_owned(), outcome);
    }
}
