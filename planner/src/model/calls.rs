//! What was asked of models and what they answered, as events and their fold: one aggregate a plan.
//!
//! An answer that is in the log is final, so that asking again, after a crash or elsewhere, gives the same. It calls no
//! model, and knows nothing of what answers mean.

use std::collections::BTreeMap;

use crewlog_mq::{Event as MqEvent, Handler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{Message, Purpose, Request, Terms};
use crate::recorded::RestoreError;

/// The stream of what models were asked; the aggregate is the plan's id.
pub const STREAM: &str = "model";
/// The most different requests of one plan.
pub const CALLS_MAX: usize = 1_000;

/// The tag that the events of a request bear, by which its answer is found from any plan.
#[must_use]
pub fn request_tag(request: &str) -> String {
    format!("request:{request}")
}

/// The tokens of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CountedTokens {
    /// Of what was asked; unset when the provider does not say.
    pub input_tokens: Option<u64>,
    /// Of the answer.
    pub output_tokens: Option<u64>,
    /// Who counted them; of two sources, the less reliable one.
    #[serde(default, skip_serializing_if = "CountedBy::is_provider")]
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

impl CountedBy {
    /// True of what the provider says.
    #[must_use]
    pub fn is_provider(&self) -> bool {
        *self == Self::Provider
    }
}

/// What sort of failure of a model it was.
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
    /// What came was no answer of its protocol.
    Malformed,
    /// It does not want to: the key, the request or the content.
    Refused,
    /// Nobody is there.
    Unreachable,
    /// It was not asked, since something is missing that asking needs.
    NotConfigured,
    /// It answered, and the answer was refused.
    NotUnderstood,
}

impl Fault {
    /// The name as written in events and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "RateLimited",
            Self::Overloaded => "Overloaded",
            Self::Server => "Server",
            Self::TimedOut => "TimedOut",
            Self::CutOff => "CutOff",
            Self::Malformed => "Malformed",
            Self::Refused => "Refused",
            Self::Unreachable => "Unreachable",
            Self::NotConfigured => "NotConfigured",
            Self::NotUnderstood => "NotUnderstood",
        }
    }
}

/// What happened between a plan and a model. A request is named by the hash of all that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallEvent {
    /// It was asked.
    ModelAsked {
        /// The request's hash.
        request: String,
        /// What for.
        purpose: Purpose,
        /// Which model.
        model: String,
        /// How.
        parameters: Parameters,
        /// What it was told first.
        system: String,
        /// What it was asked, in order.
        prompt: Vec<Message>,
    },
    /// It answered.
    ModelAnswered {
        /// The request's hash.
        request: String,
        /// The answer, as it came.
        text: String,
        /// Tokens.
        usage: CountedTokens,
        /// What it cost in millionths of the currency of the configured prices; unset without prices or usage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        /// How long it took.
        duration_ms: u64,
    },
    /// It gave no answer, or none that was understood.
    ModelFailed {
        /// The request's hash.
        request: String,
        /// What sort of failure.
        class: Fault,
        /// What was wrong.
        error: String,
    },
}

/// How a model was asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Parameters {
    /// The most tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The JSON schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
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

/// Facts about a model to record.
#[derive(Debug, Clone, PartialEq)]
pub enum CallCommand {
    /// It is about to be asked.
    Ask {
        /// The request's hash.
        hash: String,
        /// What.
        request: Box<Request>,
    },
    /// It answered.
    Answer {
        /// The request's hash.
        hash: String,
        /// What.
        answer: Answer,
    },
    /// It failed.
    Fail {
        /// The request's hash.
        hash: String,
        /// What sort of failure.
        class: Fault,
        /// What was wrong.
        error: String,
    },
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As it came.
    pub text: String,
    /// Tokens.
    pub usage: CountedTokens,
    /// In millionths of the currency of the configured prices.
    pub cost_micros: Option<u64>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Why nothing is recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody asked.
    #[error("the request {hash} was never asked")]
    NotAsked {
        /// Its hash.
        hash: String,
    },
    /// Too much was asked.
    #[error("a plan may ask models {CALLS_MAX} different things, and has")]
    CallsMax,
}

/// A request of a plan, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What for.
    pub purpose: Purpose,
    /// Which model.
    pub model: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// How often it failed.
    pub n_failures: u32,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    Open,
    /// An answer.
    Answered(Answer),
    /// A failure, the last of perhaps several.
    Failed(Fault),
}

/// What a plan has spent on models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Answers.
    pub n_answers: u64,
    /// Tokens of what was asked, as far as they are known.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// In millionths of the currency of the configured prices.
    pub cost_micros: u64,
}

/// The requests of a plan to models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelCalls {
    calls: BTreeMap<String, Call>,
    spent: Spent,
}

impl ModelCalls {
    /// A request by its hash.
    #[must_use]
    pub fn call(&self, hash: &str) -> Option<&Call> {
        self.calls.get(hash)
    }

    /// The answer to a request, if there is one.
    #[must_use]
    pub fn answer(&self, hash: &str) -> Option<&Answer> {
        match &self.calls.get(hash)?.outcome {
            Outcome::Answered(answer) => Some(answer),
            Outcome::Open | Outcome::Failed(_) => None,
        }
    }

    /// What all answers took.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    fn decide(&self, command: CallCommand) -> Result<Vec<CallEvent>, CallError> {
        match command {
            CallCommand::Ask { hash, request } => match self.calls.get(&hash).map(|call| &call.outcome) {
                // What was asked before a crash is asked still.
                Some(Outcome::Open | Outcome::Answered(_)) => Ok(Vec::new()),
                None if self.calls.len() >= CALLS_MAX => Err(CallError::CallsMax),
                Some(Outcome::Failed(_)) | None => Ok(vec![asked(hash, *request)]),
            },
            CallCommand::Answer { hash, answer } => match self.calls.get(&hash).map(|call| &call.outcome) {
                None => Err(CallError::NotAsked { hash }),
                // The first answer counts.
                Some(Outcome::Answered(_)) => Ok(Vec::new()),
                Some(Outcome::Open | Outcome::Failed(_)) => {
                    let Answer { text, usage, cost_micros, duration_ms } = answer;
                    Ok(vec![CallEvent::ModelAnswered { request: hash, text, usage, cost_micros, duration_ms }])
                }
            },
            CallCommand::Fail { hash, class, error } => match self.calls.get(&hash) {
                None => Err(CallError::NotAsked { hash }),
                Some(call) => {
                    let is_late = matches!(call.outcome, Outcome::Answered(_)) && class != Fault::NotUnderstood;
                    let failed = CallEvent::ModelFailed { request: hash, class, error };
                    Ok(if is_late { Vec::new() } else { vec![failed] })
                }
            },
        }
    }
}

fn asked(hash: String, request: Request) -> CallEvent {
    let Request { purpose, terms, system, messages, schema } = request;
    let Terms { model, max_tokens, temperature } = terms;
    let parameters = Parameters { max_tokens, temperature, schema: schema.map(std::borrow::Cow::into_owned) };
    CallEvent::ModelAsked { request: hash, purpose, model, parameters, system, prompt: messages }
}

impl Handler for ModelCalls {
    type Command = CallCommand;
    type Event = CallEvent;
    type Error = CallError;

    fn process(&mut self, command: CallCommand) -> Result<Vec<CallEvent>, CallError> {
        let events = self.decide(command)?;
        events.iter().for_each(|event| self.apply(event));
        Ok(events)
    }

    fn apply(&mut self, event: &CallEvent) {
        match event {
            CallEvent::ModelAsked { request, purpose, model, .. } => {
                let known = self.calls.get(request);
                let n_failures = known.map_or(0, |call| call.n_failures);
                let call = Call { purpose: *purpose, model: model.clone(), outcome: Outcome::Open, n_failures };
                self.calls.insert(request.clone(), call);
            }
            CallEvent::ModelAnswered { request, text, usage, cost_micros, duration_ms } => {
                let (text, usage, cost_micros) = (text.clone(), *usage, *cost_micros);
                self.spent.n_answers += 1;
                self.spent.input_tokens = self.spent.input_tokens.saturating_add(usage.input_tokens.unwrap_or(0));
                self.spent.output_tokens = self.spent.output_tokens.saturating_add(usage.output_tokens.unwrap_or(0));
                self.spent.cost_micros = self.spent.cost_micros.saturating_add(cost_micros.unwrap_or(0));
                if let Some(call) = self.calls.get_mut(request) {
                    let answer = Answer { text, usage, cost_micros, duration_ms: *duration_ms };
                    call.outcome = Outcome::Answered(answer);
                }
            }
            CallEvent::ModelFailed { request, class, .. } => {
                if let Some(call) = self.calls.get_mut(request) {
                    call.n_failures = call.n_failures.saturating_add(1);
                    // An answer stays one, whatever is thought of it.
                    if !matches!(call.outcome, Outcome::Answered(_)) {
                        call.outcome = Outcome::Failed(*class);
                    }
                }
            }
        }
    }
}

impl CallCommand {
    /// Its recorded form, for [`crewlog_mq::Cause::keeping`]: the name, since its event repeats all else.
    #[must_use]
    pub fn recorded(&self) -> Value {
        let name = match self {
            Self::Ask { .. } => "Ask",
            Self::Answer { .. } => "Answer",
            Self::Fail { .. } => "Fail",
        };
        json!({ name: {} })
    }

    /// The command from its recorded form and the events of its append.
    ///
    /// # Errors
    /// [`RestoreError`] when either does not come from [`CallCommand::recorded`] and [`ModelCalls`].
    pub fn restore(recorded: &Value, events: &[CallEvent]) -> Result<Self, RestoreError> {
        let command = events.first().cloned().map(|event| match event {
            CallEvent::ModelAsked { request, purpose, model, parameters, system, prompt: messages } => {
                let Parameters { max_tokens, temperature, schema } = parameters;
                let terms = Terms { model, max_tokens, temperature };
                let schema = schema.map(std::borrow::Cow::Owned);
                Self::Ask { hash: request, request: Box::new(Request { purpose, terms, system, messages, schema }) }
            }
            CallEvent::ModelAnswered { request, text, usage, cost_micros, duration_ms } => {
                Self::Answer { hash: request, answer: Answer { text, usage, cost_micros, duration_ms } }
            }
            CallEvent::ModelFailed { request, class, error } => Self::Fail { hash: request, class, error },
        });
        let is_of_event = |command: &Self| command.recorded() == *recorded;
        command.filter(is_of_event).ok_or_else(|| RestoreError::NotInEvents { command: recorded.to_string() })
    }
}
