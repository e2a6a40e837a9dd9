//! The prompt of an attempt of a task.

use crewlog_executors::prompts::{PromptError, Rendered, prompt_of};
use crewlog_mq::{EventStore, Position, Query, Range};
use crewlog_planner::claim::{self, PromptDigest, TaskEvent};
use crewlog_planner::event::{self, Event};
use crewlog_planner::plan::TaskId;

use crate::ui::failure::{Code, Failure};
use crate::views::queries;

/// The prompt of an attempt.
pub struct Prompt {
    /// The position of the dispatch.
    pub at: Position,
    /// The text, rendered again.
    pub rendered: Rendered,
    /// The digest of the agent's original prompt.
    pub recorded: Option<PromptDigest>,
}

/// Renders the prompt of an attempt dispatched in a range of the log; `None` without a dispatch.
///
/// # Errors
/// A task that is not for agents, and faults of the log.
pub async fn prompt_of_attempt(
    store: &EventStore,
    plan: &str,
    task: TaskId,
    attempt: u32,
    range: Range,
) -> Result<Option<Prompt>, Failure> {
    let Some((at, recorded)) = dispatch_of(store, plan, task, attempt, range).await? else { return Ok(None) };
    match prompt_of(store, plan, task, recorded.as_ref(), range).await {
        Ok(rendered) => Ok(Some(Prompt { at, rendered, recorded })),
        Err(PromptError::Log(error)) => Err(error.into()),
        Err(error @ PromptError::NotForAgents { .. }) => Err(Failure::new(Code::Nothing, error.to_string())),
    }
}

/// The position of the dispatch of an attempt, and the record of the prompt of its last run.
async fn dispatch_of(
    store: &EventStore,
    plan: &str,
    task: TaskId,
    attempt: u32,
    range: Range,
) -> Result<Option<(Position, Option<PromptDigest>)>, Failure> {
    let query = Query::stream(event::STREAM).of_type("TaskDispatched");
    let query = query.or(Query::stream(claim::STREAM).of_type("TaskClaimed"));
    let mut dispatch = None;
    queries::for_each(store, Some(plan), &query, range, |recorded| {
        if recorded.stream_id == event::STREAM {
            if let Event::TaskDispatched { task_id, attempt: n, .. } = recorded.decode()?
                && (task_id, n) == (task, attempt)
            {
                dispatch = Some((recorded.position, None));
            }
        } else if claim::split_aggregate_id(&recorded.aggregate_id).is_some_and(|(_, of)| of == task)
            && let TaskEvent::TaskClaimed { attempt: n, only_reports: false, prompt, .. } = recorded.decode()?
            && n == attempt
        {
            dispatch = dispatch.take().map(|(at, _)| (at, prompt));
        }
        Ok(())
    })
    .await?;
    Ok(dispatch)
}
