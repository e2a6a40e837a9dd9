//! Finding and loading plans and their events; nothing here prints or appends.

use crewlog_executors::history::History;
use crewlog_executors::projecting::list_plans;
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::lifecycle;
use crewlog_planner::listing::ListedPlan;
use crewlog_planner::state::PlannerState;
use crewlog_planner::view::PlanView;
use crewlog_planner::{event, nesting};
use futures::{StreamExt, TryStreamExt};

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::visible;

const HINTED_MAX: usize = 5;
const NO_PLANS: &str = "there is no plan in this log: `crewlog run FILE` makes one";

pub async fn open_plan(session: &Session, typed: &str) -> Result<(EventStore, String), Failure> {
    let store = session.place.open().await?;
    let plan = find_plan(&store, typed).await?;
    Ok((store, plan))
}

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
    let mut records = match plan {
        Some(plan) => History::of(store, plan).await?.records(store, query, range).boxed(),
        None => store.records(query, range).boxed(),
    };
    while let Some(recorded) = records.try_next().await? {
        take(&recorded)?;
    }
    Ok(())
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
    match load_view(store, plan, Range::up_to(at)).await {
        Ok(view) => Ok(Some(view)),
        Err(error @ Error::Decode { .. }) => {
            say(&unreadable_plan(plan, &error));
            Ok(None)
        }
        Err(error) => Err(error.into()),
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

/// The plan with this id, or with the only id that begins so, or with the only one that has it as a part; of several, the
/// only open one.
pub async fn find_plan(store: &EventStore, typed: &str) -> Result<String, Failure> {
    find(store, typed, true).await
}

/// Finds a plan by its id or a part of it. Among several matches it chooses the only open one, or none.
pub async fn find(store: &EventStore, typed: &str, prefers_open: bool) -> Result<String, Failure> {
    let exact = store.read(&Query::aggregate(event::STREAM, typed), Range::default(), 1).await?;
    if !exact.events.is_empty() {
        return Ok(typed.to_owned());
    }
    let list = list_plans(store, None).await?;
    let known = list.plans().map(|plan| plan.id.as_str()).filter(|_| !typed.is_empty());
    let mut matching = known.clone().filter(|plan| plan.starts_with(typed)).collect::<Vec<_>>();
    if matching.is_empty() {
        matching.extend(known.filter(|plan| plan.contains(typed)));
    }
    match matching[..] {
        [plan] => Ok(plan.to_owned()),
        [] => {
            let failure = Failure::new(Code::Nothing, format!("no plan has {typed:?} in its id"));
            let failure = match typed.split_once('/') {
                Some((plan, _)) => failure.hint(format!("this command takes a plan alone: {plan}")),
                None => failure,
            };
            let newest = list.plans().rev().take(HINTED_MAX).map(|plan| plan.id.as_str()).collect::<Vec<_>>();
            Err(if newest.is_empty() {
                failure.hint(NO_PLANS)
            } else {
                let restored = "a plan that is newer than a restored log is no longer in it";
                failure.hint(format!("the newest are {}; {restored}", newest.join(", ")))
            })
        }
        ref several => {
            let is_meant = |plan: &&ListedPlan| prefers_open && several.contains(&plan.id.as_str());
            match list.open().filter(is_meant).collect::<Vec<_>>()[..] {
                [plan] => Ok(plan.id.clone()),
                _ => ambiguous(store, &format!("several plans have {typed:?} in their ids"), several).await,
            }
        }
    }
}

/// Refuses a choice among several plans, and names the newest with their states.
async fn ambiguous(store: &EventStore, message: &str, plans: &[&str]) -> Result<String, Failure> {
    let (mut named, head) = (Vec::new(), store.head().await?);
    for plan in plans.iter().rev().take(HINTED_MAX) {
        let state = load_readable(store, plan, head).await?.map(|view| {
            let fork = if view.state().parent.is_some() { "fork, " } else { "" };
            format!("{fork}{}", lifecycle::of_log(plan, &view).words())
        });
        named.push(format!("{plan} ({})", state.as_deref().unwrap_or("unreadable")));
    }
    let named = named.join(", ");
    let more = plans.len().saturating_sub(HINTED_MAX);
    let more = if more > 0 { format!(" and {more} more, which `crewlog ls` lists") } else { String::new() };
    Err(Failure::new(Code::Nothing, format!("{message}: {named}{more}")).hint("write more of the id"))
}

/// The open plans that have something left to do, without sub-plans, the oldest first.
async fn open_plans(store: &EventStore) -> Result<Vec<String>, Failure> {
    let (list, head) = (list_plans(store, None).await?, store.head().await?);
    let mut open = Vec::new();
    for plan in list.open() {
        let Some(view) = load_readable(store, &plan.id, head).await? else { continue };
        if !view.state().waits_for_work() && nesting::parent_task(&plan.id, view.state()).is_none() {
            open.push(plan.id.clone());
        }
    }
    Ok(open)
}

/// The only open plan, or else the newest.
pub async fn plan_to_show(store: &EventStore) -> Result<String, Failure> {
    if let [plan] = &open_plans(store).await?[..] {
        return Ok(plan.clone());
    }
    let newest = list_plans(store, None).await?.plans().last().map(|plan| plan.id.clone());
    newest.ok_or_else(|| Failure::new(Code::Nothing, "there is no plan yet").hint(NO_PLANS))
}

/// The only plan that can be resumed.
pub async fn plan_to_resume(store: &EventStore) -> Result<String, Failure> {
    let open = open_plans(store).await?;
    match open.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [plan] => Ok(plan.to_owned()),
        [] => {
            Err(Failure::new(Code::Nothing, "no plan can be resumed: none is open")
                .hint("`crewlog ls` lists all plans"))
        }
        ref several => ambiguous(store, "several plans can be resumed", several).await,
    }
}

/// Refuses an unknown task name, with similar names.
pub fn no_task(session: &Session, plan: &str, state: &PlannerState, name: &str) -> Failure {
    const SHOWN_MAX: usize = 8;
    let typed = name.to_lowercase();
    let known = state.tasks.iter().map(|task| task.plan.name()).collect::<Vec<_>>();
    let is_like = |known: &&String| known.to_lowercase().contains(&typed) || typed.contains(&known.to_lowercase());
    let mut candidates = known.iter().filter(is_like).collect::<Vec<_>>();
    if candidates.is_empty() {
        candidates.extend(&known);
    }
    let n_more = candidates.len().saturating_sub(SHOWN_MAX);
    let shown = candidates.iter().take(SHOWN_MAX).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    Failure::new(Code::Nothing, format!("{plan} has no task {name:?}; it has {shown}{more}"))
        .hint(session.command_on("show", plan))
}
