//! Asks models, and records requests and answers. A request whose answer is in the log is not sent again.
//!
//! So planning again after a crash, and a replay, need no network. Decisions about plans are made elsewhere.

use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{Cause, EventStore, ExecuteError, Executed, Position, Query, Range, Recorded, Runner};
use crewlog_planner::event::{self, RetryPolicy, Usage, sub_plan_tags};
use crewlog_planner::model::{
    self, AnswerError, CallError, CallEvent, Fault, ModelAnswer, ModelCalls, ModelRequest, request_tag,
};
use crewlog_planner::plan::{ParentTask, sub_plan_id};
use crewlog_planner::sealed::is_undecryptable;
use crewlog_planner::text::estimate_tokens;
use tokio::time::Instant;

/// The most answers to one request that are tried until one can be read.
const ANSWERS_LOOKED_AT_MAX: usize = 100;

use super::error::ModelError;
use super::reply::{Model, Reply};

/// The hash of a request, which identifies its answer.
///
/// # Panics
/// Never: names, texts and numbers can always be written as JSON.
pub fn hash(request: &ModelRequest) -> String {
    let bytes = serde_json::to_vec(request).expect("names, texts and numbers can always be written as JSON");
    blake3::hash(&bytes).to_hex().to_string()
}

/// The aggregate of requests about a text that is not a plan yet.
pub fn text_aggregate(text: &str) -> String {
    format!("text-{}", &blake3::hash(text.as_bytes()).to_hex()[..12])
}

/// An answer with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The request's hash.
    pub request: String,
    /// The answer.
    pub answer: ModelAnswer,
    /// True if the answer was already in the log.
    pub from_log: bool,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The request is refused.
    #[error(transparent)]
    Refused(CallError),
    /// The log refused or failed.
    #[error(transparent)]
    Log(#[from] crewlog_mq::Error),
}

/// An answer with its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRead<T> {
    /// Its text.
    pub value: T,
    /// The answered request: the first one, or the repair turn.
    pub answered: Answered,
}

/// The reason why there is no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// There is no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Both the answer and the one after the repair turn were refused.
    #[error("the model's answer was refused twice: {0}")]
    NotUnderstood(AnswerError),
}

/// Asks a model on behalf of a plan.
pub struct Asker {
    model: Arc<dyn Model>,
    retry_policy: RetryPolicy,
    store: EventStore,
    plan: String,
    tags: Vec<String>,
}

impl Asker {
    /// Asks on behalf of a plan, whose tags the events get. The plan need not exist yet.
    pub fn new(
        model: Arc<dyn Model>,
        retry_policy: RetryPolicy,
        store: EventStore,
        plan: impl Into<String>,
        tags: Vec<String>,
    ) -> Self {
        Self { model, retry_policy, store, plan: plan.into(), tags }
    }

    /// Asks on behalf of another plan.
    pub fn on_behalf_of(&self, plan: impl Into<String>, tags: Vec<String>) -> Self {
        Self::new(Arc::clone(&self.model), self.retry_policy, self.store.clone(), plan, tags)
    }

    /// Asks on behalf of the plan that carries out a task, whether or not it exists yet.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn on_behalf_of_plan_for(&self, task: &ParentTask) -> Result<Self, crewlog_mq::Error> {
        let parent_plan = Query::aggregate(event::STREAM, &task.plan);
        let first = self.store.read(&parent_plan, Range::default(), 1).await?.events.pop();
        let plan = sub_plan_id(task);
        let tags = sub_plan_tags(&plan, &task.plan, &first.map(|first| first.tags).unwrap_or_default());
        Ok(self.on_behalf_of(plan, tags))
    }

    /// Asks, and reads the answer. A refused answer is requested once more, with the reason.
    ///
    /// # Errors
    /// [`NoAnswer`]; the whole exchange is in the log.
    pub async fn read<T>(
        &self,
        request: ModelRequest,
        read: impl Fn(&str) -> Result<T, AnswerError>,
    ) -> Result<ModelRead<T>, NoAnswer> {
        let answered = self.ask(&request).await?;
        let refusal = match read(&answered.answer.text) {
            Ok(value) => return Ok(ModelRead { value, answered }),
            Err(refusal) => refusal,
        };
        self.refuse(&answered, &request, &refusal).await?;
        let request = model::repair(&request, &answered.answer.text, &refusal.to_string());
        let answered = self.ask(&request).await?;
        match read(&answered.answer.text) {
            Ok(value) => Ok(ModelRead { value, answered }),
            Err(refusal) => {
                self.refuse(&answered, &request, &refusal).await?;
                Err(NoAnswer::NotUnderstood(refusal))
            }
        }
    }

    /// Asks, with retries; or returns the answer in the log.
    ///
    /// # Errors
    /// [`AskError`]; each failure of the model is in the log.
    pub async fn ask(&self, request: &ModelRequest) -> Result<Answered, AskError> {
        let request_hash = hash(request);
        if let Some(answer) = self.known(&request_hash).await? {
            return Ok(Answered { request: request_hash, answer, from_log: true });
        }
        let mut calls = self.calls(&request_hash);
        let ask = CallEvent::ModelAsked { request: request_hash.clone(), asked: Box::new(request.clone()) };
        let asked = execute(&mut calls, ask, Cause::request()).await?;
        let follows = match self.last_of(&asked).await? {
            Some(asked) => Cause::event(&asked),
            None => Cause::request(),
        };
        let mut n_retries = 0;
        loop {
            let began = Instant::now();
            let error = match self.model.ask(request).await {
                Ok(reply) => {
                    let usage = Usage { duration_ms: millis(began.elapsed()), ..counted(request, &reply) };
                    let answer = ModelAnswer { text: reply.text, usage };
                    let command = CallEvent::ModelAnswered { request: request_hash.clone(), answer: answer.clone() };
                    execute(&mut calls, command, follows).await?;
                    // Another process may have been faster, and its answer counts.
                    let counts = calls.handler().answer(&request_hash).filter(|known| !is_undecryptable(&known.text));
                    let answer = counts.cloned().unwrap_or(answer);
                    return Ok(Answered { request: request_hash, answer, from_log: false });
                }
                Err(error) => error,
            };
            let (request, class) = (request_hash.clone(), error.fault());
            let failed = CallEvent::ModelFailed { request, class, error: error.to_string() };
            execute(&mut calls, failed, follows.clone()).await?;
            let Some(pause) = error.pause(self.retry_policy, n_retries) else { return Err(error.into()) };
            tokio::time::sleep(pause).await;
            n_retries += 1;
        }
    }

    /// The first readable answer to a request in the log, for any plan.
    async fn known(&self, request_hash: &str) -> Result<Option<ModelAnswer>, crewlog_mq::Error> {
        let query = Query {
            stream_id: model::STREAM.into(),
            event_type: Some("ModelAnswered".into()),
            tags: vec![request_tag(request_hash)],
            ..Query::default()
        };
        for recorded in self.store.read(&query, Range::default(), ANSWERS_LOOKED_AT_MAX).await?.events {
            match recorded.decode::<CallEvent>()? {
                // This process cannot use an answer that it cannot decrypt.
                CallEvent::ModelAnswered { answer, .. } if is_undecryptable(&answer.text) => {}
                CallEvent::ModelAnswered { answer, .. } => return Ok(Some(answer)),
                CallEvent::ModelAsked { .. } | CallEvent::ModelFailed { .. } => {}
            }
        }
        Ok(None)
    }

    /// Records that an answer was refused, unless that is already recorded.
    async fn refuse(&self, answered: &Answered, request: &ModelRequest, refusal: &AnswerError) -> Result<(), AskError> {
        debug_assert_eq!(answered.request, hash(request), "an answer is refused by the request that it is to");
        if answered.from_log {
            return Ok(());
        }
        let hash = answered.request.clone();
        let (class, error) = (Fault::NotUnderstood, refusal.to_string());
        let command = CallEvent::ModelFailed { request: hash.clone(), class, error };
        execute(&mut self.calls(&hash), command, Cause::request()).await.map(|_| ())
    }

    fn calls(&self, request_hash: &str) -> Runner<ModelCalls> {
        let tags = self.tags.iter().cloned().chain([request_tag(request_hash)]).collect();
        Runner::new(self.store.clone(), model::STREAM, &self.plan, tags)
    }

    /// The last event of a command, if there is one.
    async fn last_of(&self, executed: &Executed<CallEvent>) -> Result<Option<Recorded>, crewlog_mq::Error> {
        if executed.events.is_empty() {
            return Ok(None);
        }
        let after = Range::after(Position(executed.position.0 - 1));
        let query = Query::aggregate(model::STREAM, &self.plan);
        Ok(self.store.read(&query, after, 1).await?.events.into_iter().next())
    }
}

/// The tokens of a request and its reply: as reported by the provider, or estimated from their characters.
fn counted(request: &ModelRequest, reply: &Reply) -> Usage {
    let mut usage = reply.usage;
    if usage.input_tokens == 0 {
        let asked = [&request.system].into_iter().chain(request.messages.iter().map(|message| &message.text));
        usage.input_tokens = asked.map(|text| estimate_tokens(text)).sum();
        usage.estimated_tokens += usage.input_tokens;
    }
    if usage.output_tokens == 0 {
        usage.output_tokens = estimate_tokens(&reply.text);
        usage.estimated_tokens += usage.output_tokens;
    }
    usage
}

async fn execute(
    calls: &mut Runner<ModelCalls>,
    command: CallEvent,
    cause: Cause,
) -> Result<Executed<CallEvent>, AskError> {
    let cause = cause.keeping(command.recorded());
    loop {
        match calls.execute(command.clone(), &cause).await {
            Ok(executed) => return Ok(executed),
            Err(ExecuteError::Refused(refusal)) => return Err(AskError::Refused(refusal)),
            // Each conflict means that another process made progress.
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => return Err(error.into()),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
