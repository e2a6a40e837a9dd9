//! Has summaries written: follows the requests for them, asks a model and passes its answer to the planner.
//!
//! If the model gives no usable summary, the planner compacts by rule. It also decides whether a late summary is
//! wanted.

use std::sync::Arc;

use crewlog_mq::{Cause, Envelope, Error, EventStore, Query, Start};
use crewlog_planner::event::{self, Command, Event};
use crewlog_planner::model::{ModelParameters, read_summary, summary_request};
use crewlog_planner::prompt::{summary_chars_max, to_summarize};
use futures::StreamExt;

use crate::model::{AskError, Asker, Model, NoAnswer, RetryPolicy};
use crate::plans::{execute_retrying, planner_of};
use crate::subplans::family;
use crate::worker::Scope;

/// The name of this process as a cause of commands.
const PROCESS: &str = "summaries";
/// The most summaries requested at once: a slow model must not block other plans.
const AT_ONCE_MAX: usize = 8;
/// The most characters of the history that a model summarizes.
const HISTORY_CHARS_MAX: usize = 100_000;

/// A model with its settings.
#[derive(Clone)]
pub struct Summarizer {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The policy for retries.
    pub retry_policy: RetryPolicy,
    /// The model's name and parameters.
    pub parameters: ModelParameters,
}

/// Writes summaries for a plan and its sub-plans, or for all plans, without end. Drop the future to stop.
///
/// # Errors
/// If the log can no longer be followed.
pub async fn host(store: EventStore, scope: Scope, summarizer: Summarizer) -> Result<(), Error> {
    let requested = |query: Query| query.of_type("CompactionRequested");
    let requests = match &scope {
        Scope::Plan(plan) => store.subscribe::<Event>(&requested(family(event::STREAM, plan)))?,
        // An earlier request is compacted by rule once the text gets too long.
        Scope::All => {
            let head = store.head().await?;
            store.subscribe_from::<Event>(&requested(Query::stream(event::STREAM)), Start::After(head))?
        }
    };
    let (store, summarizer) = (&store, &summarizer);
    let summarise = async |request: Result<Envelope<Event>, Error>| match request {
        Ok(request) => {
            if let Err(error) = answer(store, summarizer, &request).await {
                tracing::warn!(%error, "a summary could not be stored");
            }
        }
        Err(error) => error.warn("a request for a summary cannot be read"),
    };
    requests.for_each_concurrent(AT_ONCE_MAX, summarise).await;
    Ok(())
}

async fn answer(store: &EventStore, by: &Summarizer, request: &Envelope<Event>) -> Result<(), Error> {
    let Event::CompactionRequested { task_ids, max_tokens } = &request.event else { return Ok(()) };
    let (plan, tags) = (&request.recorded.aggregate_id, &request.recorded.tags);
    let mut planner = planner_of(store, plan, tags.clone()).await?;
    planner.catch_up().await?;
    let state = planner.handler().state();
    if !state.wants_summary() {
        return Ok(());
    }
    let chars_max = summary_chars_max(state);
    let history = to_summarize(state, task_ids, HISTORY_CHARS_MAX);
    let by_rule = Command::CompactContext { max_tokens: *max_tokens };
    let command = match summary_request(&by.parameters, state.config.profile, &history, chars_max) {
        Err(too_long) => {
            tracing::warn!(%too_long, plan, "the history is summarized by rule");
            by_rule
        }
        Ok(asked) => {
            let asker = Asker::new(Arc::clone(&by.model), by.retry_policy, store.clone(), plan, tags.clone());
            match asker.read(asked, |text| read_summary(text, chars_max)).await {
                Ok(read) => Command::Summarise { summary: read.value, task_ids: task_ids.clone() },
                Err(NoAnswer::Ask(AskError::Log(error))) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, plan, "the history is summarized by rule");
                    by_rule
                }
            }
        }
    };
    let refusal = execute_retrying(&mut planner, command, &Cause::reaction(PROCESS, &request.recorded)).await?;
    refusal.into_iter().for_each(|refusal| tracing::info!(%refusal, "summary refused"));
    Ok(())
}
