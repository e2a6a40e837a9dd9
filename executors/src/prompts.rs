//! The prompts of agents, rendered from a plan's history up to a dispatch, to run a task or to show its prompt again.

use crewlog_mq::{Backoff, Error, EventStore, Handler, Position, Query, Range};
use crewlog_planner::claim::PromptDigest;
use crewlog_planner::event;
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt;
use futures::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::history::History;
use crate::queue::Dispatch;

/// A prompt that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The log failed, or has an unreadable event.
    #[error(transparent)]
    Log(#[from] Error),
    /// Commands, questions and missing tasks have no prompt.
    #[error("task {task} has no prompt: it is a command or a question, or it does not exist")]
    NotForAgents {
        /// The name of the task.
        task: String,
    },
}

/// The prompt of a task dispatched at a position, for a run after one that was cut off or for another.
///
/// # Errors
/// [`PromptError`].
pub async fn prompt_of(
    store: &EventStore,
    plan: &str,
    task: TaskId,
    dispatched: Position,
    cut_off: bool,
) -> Result<String, PromptError> {
    let history = History::of(store, plan).await?;
    let records = history.records(store, &Query::stream(event::STREAM), Range::up_to(dispatched));
    let mut records = std::pin::pin!(records);
    let mut planner = Planner::default();
    while let Some(recorded) = records.try_next().await? {
        planner.apply(&recorded.decode()?);
    }
    let state = planner.state();
    let rendered = state.task(task).and_then(|task| prompt::render(state, task));
    let rendered = rendered.map(|prompt| if cut_off { prompt + prompt::CUT_OFF } else { prompt });
    rendered.ok_or_else(|| PromptError::NotForAgents { task: state.name(task) })
}

/// Retries until the log works.
pub(crate) async fn rendered(store: &EventStore, of: &Dispatch, cut_off: bool) -> Result<String, PromptError> {
    let mut backoff = Backoff::new();
    loop {
        match prompt_of(store, &of.plan, of.task, of.position, cut_off).await {
            Err(PromptError::Log(error)) if backoff.wait_to_retry(&error).await => {}
            rendered => return rendered,
        }
    }
}

/// The SHA-256 and the length of a prompt.
pub fn digest(prompt: &str) -> PromptDigest {
    let hash = Sha256::digest(prompt.as_bytes());
    let sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    PromptDigest { sha256, n_chars: prompt.chars().count() as u64 }
}
