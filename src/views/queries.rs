//! Finding and loading plans and their events; nothing here appends.

use crewlog_executors::history::History;
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::event;
use crewlog_planner::state::PlannerState;
use crewlog_planner::view::PlanView;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::visible;

/// The position of a view: the end of the log if none is named. The log must reach it.
pub async fn reached(store: &EventStore, at: Option<Position>) -> Result<Position, Failure> {
    let head = store.head().await?;
    let refused = at.filter(|at| *at > head).map(|at| beyond(at, head));
    refused.map_or_else(|| Ok(at.unwrap_or(head)), Err)
}

/// Refuses a position after the last of the log.
pub fn beyond(at: Position, head: Position) -> Failure {
    Failure::new(Code::Nothing, format!("the log does not reach position {at} yet: its last is {head}"))
}

/// Reads the log, or the history of a plan with the part that a fork shares, in pages, so that memory stays bounded.
pub async fn for_each(
    store: &EventStore,
    plan: Option<&str>,
    query: &Query,
    range: Range,
    mut take: impl FnMut(&Recorded) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut records = records_of(store, plan, query, range).await?;
    while let Some(recorded) = records.try_next().await? {
        take(&recorded)?;
    }
    Ok(())
}

/// The events as a stream.
pub async fn records_of<'a>(
    store: &'a EventStore,
    plan: Option<&str>,
    query: &Query,
    range: Range,
) -> Result<BoxStream<'a, Result<Recorded, Error>>, Failure> {
    Ok(match plan {
        Some(plan) => History::of(store, plan).await?.records(store, query, range).boxed(),
        None => store.records(query, range).boxed(),
    })
}

/// A plan as of the end of a range.
pub async fn load_view(store: &EventStore, plan: &str, range: Range) -> Result<PlanView, Error> {
    let history = History::of(store, plan).await?;
    let mut view = PlanView::default();
    let mut records = std::pin::pin!(history.records(store, &Query::all(), range));
    while let Some(recorded) = records.try_next().await? {
        view.apply(&recorded)?;
    }
    Ok(view)
}

/// A plan as of a position. One that cannot be read is named.
pub async fn load_readable(store: &EventStore, plan: &str, at: Position) -> Result<Option<PlanView>, Failure> {
    Ok(unless_unreadable(plan, load_view(store, plan, Range::up_to(at)).await)?)
}

/// The result of reading a plan: none, with a warning, for a plan that cannot be read.
pub fn unless_unreadable<T>(plan: &str, read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error @ Error::Decode { .. }) => {
            say(&unreadable_plan(plan, &error));
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The message about a plan written by a newer program, or by none.
pub fn unreadable_plan(plan: &str, error: &Error) -> String {
    visible(&format!("{plan} cannot be read and is left out: {error}"))
}

/// The tags of a plan's events, read from its first event.
pub async fn tags_of(store: &EventStore, plan: &str) -> Result<Vec<String>, Failure> {
    let first = store.read(&Query::aggregate(event::STREAM, plan), Range::default(), 1).await?;
    Ok(first.events.into_iter().next().map(|recorded| recorded.tags).unwrap_or_default())
}

/// Refuses an unknown task name, with similar names.
pub fn no_task(session: &Session, plan: &str, state: &PlannerState, name: &str) -> Failure {
    const SHOWN_MAX: usize = 8;
    let known = state.tasks.iter().map(|task| task.plan.name()).collect::<Vec<_>>();
    let n_more = known.len().saturating_sub(SHOWN_MAX);
    let shown = known.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    Failure::new(Code::Nothing, format!("{plan} has no task {name:?}; its tasks are {shown}{more}"))
        .did_you_mean(name, known.iter().map(String::as_str))
        .hint(session.command_on("show", plan))
}
