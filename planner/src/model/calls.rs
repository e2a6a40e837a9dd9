//! What was asked of models and what they answered, as events and their fold: one aggregate a plan.
//!
//! An answer that is in the log is final, so that asking again, after a crash or elsewhere, gives the same. It calls no
//! model, and knows nothing of what answers mean.

use std::collections::BTreeMap;

use crewlog_mq::{Event as MqEvent, Handler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::Request;
use crate::recorded::RestoreError;

/// The stream of what models were asked; the aggregate is the plan's id.
pub const STREAM: &str = "model";
/// The most different requests of one plan.
pub const CALLS_MAX: usize = 1_000;

/// The tag of the events of a request, by which its answer is found from any plan.
#[must_use]
pub fn request_tag(request: &str) -> String {
    format!("request:{request}")
}

/// The tokens of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CountedTokens {
    /// Tokens of the request; unset when the provider does not say.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Who counted them; an estimate when either is one.
    #[serde(default)]
    pub counted_by: CountedBy,
}

/// Who says how many tokens a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CountedBy {
    /// The provider.
    #[default]
    Provider,
    /// Nobody: they are estimated.
    Estimate,
}

/// A kind of failure of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// It was rate limited.
    RateLimited,
    /// It has too much to do.
    Overloaded,
    /// It failed by itself.
    Server,
    /// It took too long.
    TimedOut,
    /// Its answer ended before its end.
    CutOff,
    /// The reply does not follow its protocol.
    Malformed,
    /// It refuses the key, the request or the content.
    Refused,
    /// Nobody is there.
    Unreachable,
    /// It was not asked, since a setting is missing.
    NotConfigured,
    /// It answered, and the answer was refused.
    NotUnderstood,
}

/// An exchange with a model. A request is named by the hash of all that was asked. As a command, an event is recorded
/// where it changes something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallEvent {
    /// A model is asked.
    ModelAsked {
        /// The request's hash.
        request: String,
        /// The request.
        asked: Box<Request>,
    },
    /// It answered.
    ModelAnswered {
        /// The request's hash.
        request: String,
        /// The answer.
        answer: Answer,
    },
    /// It gave no answer, or none that was understood.
    ModelFailed {
        /// The request's hash.
        request: String,
        /// The kind of failure.
        class: Fault,
        /// The error.
        error: String,
    },
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// As it came.
    pub text: String,
    /// Tokens.
    pub usage: CountedTokens,
    /// The cost in millionths of the currency of the configured prices; unset without prices or usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// How long it took.
    pub duration_ms: u64,
}

impl CallEvent {
    /// The request's hash.
    #[must_use]
    pub fn request(&self) -> &str {
        match self {
            Self::ModelAsked { request, .. }
            | Self::ModelAnswered { request, .. }
            | Self::ModelFailed { request, .. } => request,
        }
    }

    /// The command's recorded form, for [`crewlog_mq::Cause::keeping`]: the name, since its event repeats all else.
    #[must_use]
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

impl MqEvent for CallEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::ModelAsked { .. } => "ModelAsked",
            Self::ModelAnswered { .. } => "ModelAnswered",
            Self::ModelFailed { .. } => "ModelFailed",
        }
    }
}

/// Why nothing is recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody made the request with this hash.
    #[error("the request {0} was never asked")]
    NotAsked(String),
    /// Too much was asked.
    #[error("a plan may ask models {CALLS_MAX} different things, and has")]
    CallsMax,
}

/// The requests of a plan to models, by their hashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelCalls {
    calls: BTreeMap<String, Outcome>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Open,
    Answered(Answer),
    Failed,
}

impl ModelCalls {
    /// The answer to a request, if there is one.
    #[must_use]
    pub fn answer(&self, hash: &str) -> Option<&Answer> {
        match self.calls.get(hash)? {
            Outcome::Answered(answer) => Some(answer),
            Outcome::Open | Outcome::Failed => None,
        }
    }
}

impl Handler for ModelCalls {
    type Command = CallEvent;
    type Event = CallEvent;
    type Error = CallError;

    fn process(&mut self, event: CallEvent) -> Result<Vec<CallEvent>, CallError> {
        let is_new = match (&event, self.calls.get(event.request())) {
            (CallEvent::ModelAsked { .. }, None) if self.calls.len() >= CALLS_MAX => return Err(CallError::CallsMax),
            (CallEvent::ModelAsked { .. }, None | Some(Outcome::Failed)) => true,
            // A request that was open at a crash stays open.
            (CallEvent::ModelAsked { .. }, Some(Outcome::Open | Outcome::Answered(_))) => false,
            (CallEvent::ModelAnswered { request, .. } | CallEvent::ModelFailed { request, .. }, None) => {
                return Err(CallError::NotAsked(request.clone()));
            }
            // The first answer counts.
            (CallEvent::ModelAnswered { .. }, Some(Outcome::Answered(_))) => false,
            (CallEvent::ModelFailed { class, .. }, Some(Outcome::Answered(_))) => *class == Fault::NotUnderstood,
            (
                CallEvent::ModelAnswered { .. } | CallEvent::ModelFailed { .. },
                Some(Outcome::Open | Outcome::Failed),
            ) => true,
        };
        if is_new {
            self.apply(&event);
        }
        Ok(is_new.then_some(event).into_iter().collect())
    }

    fn apply(&mut self, event: &CallEvent) {
        let outcome = match event {
            CallEvent::ModelAsked { .. } => Outcome::Open,
            CallEvent::ModelAnswered { answer, .. } => Outcome::Answered(answer.clone()),
            // A refused answer stays the answer.
            CallEvent::ModelFailed { request, .. } if self.answer(request).is_some() => return,
            CallEvent::ModelFailed { .. } => Outcome::Failed,
        };
        self.calls.insert(event.request().to_owned(), outcome);
    }
}
