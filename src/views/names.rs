//! The plan that a typed name means: its id, its id without the random suffix, or a part of its id.

use std::collections::HashMap;

use crewlog_executors::projecting::list_plans;
use crewlog_mq::{Error, EventStore, Query, Range};
use crewlog_planner::listing::{ListedPlan, PlanList};
use crewlog_planner::{event, nesting};

use super::as_of::views;
use super::queries::load_readable;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crewlog_executors::crew::similar::similar;
use crewlog_executors::plan_ids::slug_of;

const NO_PLANS: &str = "there is no plan in this log: `crewlog run FILE` makes one";
/// The most plans that an error lists.
const LISTED_MAX: usize = 5;
/// The most plans that a plan descends from and that are looked at; an imported log may contain a circle.
const ANCESTORS_MAX: usize = 128;

/// The plan that a name means if several fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A plan rather than its forks and sub-plans; of several the only open one. For commands that change nothing.
    Viewed,
    /// The only open one, but none if a plan and a fork of it fit. For commands that open plans alone accept.
    Changed,
    /// None. For `cancel`, `retry` and `fork`: a wrong guess ends work or repeats it.
    Sole,
}

/// The reason why a name means no plan.
pub enum Unnamed {
    /// No plan fits; these are the nearest names.
    Unknown { similar: Vec<String>, newest: Vec<String> },
    /// These fit, the oldest first.
    Ambiguous(Vec<String>),
}

/// The plan that a name means.
pub async fn find_plan(session: &Session, store: &EventStore, typed: &str, choice: Choice) -> Result<String, Failure> {
    match plan_named(store, typed, choice).await? {
        Ok(plan) => Ok(plan),
        Err(Unnamed::Ambiguous(plans)) => {
            Err(ambiguous(session, store, &format!("several plans fit {typed:?}"), Some(typed), &plans).await?)
        }
        Err(Unnamed::Unknown { similar, newest }) => {
            let failure = Failure::new(Code::Nothing, format!("no plan has {typed:?} in its id"));
            let failure = match typed.split_once('/') {
                Some((plan, _)) => failure.hint(format!("this command takes a plan alone: {plan}")),
                None => failure,
            };
            let failure = failure.did_you_mean(typed, similar.iter().map(String::as_str));
            Err(match (&similar[..], &newest[..]) {
                ([], []) => failure.hint(NO_PLANS),
                ([], newest) => failure.hint(format!("the newest are {}", newest.join(", "))),
                (similar, _) => {
                    similar.iter().filter_map(|plan| session.retyped(Some(typed), plan)).fold(failure, Failure::hint)
                }
            })
        }
    }
}

/// Refuses a choice among several plans; names the newest with their states, and the command for each.
pub async fn ambiguous(
    session: &Session,
    store: &EventStore,
    message: &str,
    typed: Option<&str>,
    plans: &[String],
) -> Result<Failure, Failure> {
    let (mut listed, mut lines, as_of) = (Vec::new(), Vec::new(), views(session).await?.as_of(None).await?);
    for plan in plans.iter().rev().take(LISTED_MAX) {
        let state = match load_readable(store, plan, as_of.at).await? {
            Some(view) => {
                let fork = if view.state().parent.is_some() { "fork, " } else { "" };
                Some(format!("{fork}{}", as_of.states(plan).await?.plan.state.words()))
            }
            None => None,
        };
        listed.push(format!("{plan} ({})", state.as_deref().unwrap_or("unreadable")));
        lines.extend(session.retyped(typed, plan));
    }
    let n_more = plans.len().saturating_sub(LISTED_MAX);
    let more = if n_more > 0 { format!(" and {n_more} more, which `crewlog ls` lists") } else { String::new() };
    let failure = Failure::new(Code::Nothing, format!("{message}: {}{more}", listed.join(", ")));
    Ok(match lines[..] {
        [] => failure.hint("write the whole id"),
        _ => lines.into_iter().fold(failure, Failure::hint),
    })
}

/// The log, and the plan that a name means.
pub async fn open_plan(session: &Session, typed: &str, choice: Choice) -> Result<(EventStore, String), Failure> {
    let store = session.place.open().await?;
    let plan = find_plan(session, &store, typed, choice).await?;
    Ok((store, plan))
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
pub async fn plan_to_resume(session: &Session, store: &EventStore) -> Result<String, Failure> {
    match &open_plans(store).await?[..] {
        [plan] => Ok(plan.to_owned()),
        [] => {
            Err(Failure::new(Code::Nothing, "no plan can be resumed: none is open")
                .hint("`crewlog ls` lists all plans"))
        }
        several => Err(ambiguous(session, store, "several plans can be resumed", None, several).await?),
    }
}

/// The same without the words of an error.
pub async fn plan_named(store: &EventStore, typed: &str, choice: Choice) -> Result<Result<String, Unnamed>, Error> {
    let exact = store.read(&Query::aggregate(event::STREAM, typed), Range::default(), 1).await?;
    if !exact.events.is_empty() {
        return Ok(Ok(typed.to_owned()));
    }
    let list = list_plans(store, None).await?;
    let fitting = fitting(&list, typed, choice);
    if let Some(plan) = chosen(&list, &fitting, choice) {
        return Ok(Ok(plan.id.clone()));
    }
    if !fitting.is_empty() {
        return Ok(Err(Unnamed::Ambiguous(fitting.into_iter().map(|plan| plan.id.clone()).collect())));
    }
    let ids = || list.plans().rev().map(|plan| plan.id.as_str());
    let similar = similar(typed, ids()).into_iter().map(str::to_owned).collect();
    let newest = ids().take(LISTED_MAX).map(str::to_owned).collect();
    Ok(Err(Unnamed::Unknown { similar, newest }))
}

/// The plans with this slug; without any, those whose ids begin so; without any, those that have it as a part.
fn fitting<'a>(list: &'a PlanList, typed: &str, choice: Choice) -> Vec<&'a ListedPlan> {
    let fit = |fits: &dyn Fn(&str) -> bool| list.plans().filter(|plan| fits(&plan.id)).collect::<Vec<_>>();
    let by_slug = fit(&|id| slug_of(id) == typed);
    if typed.is_empty() || !by_slug.is_empty() {
        return by_slug;
    }
    let beginning = fit(&|id| id.starts_with(typed));
    if beginning.is_empty() || choice == Choice::Sole { fit(&|id| id.contains(typed)) } else { beginning }
}

fn chosen<'a>(list: &'a PlanList, fitting: &[&'a ListedPlan], choice: Choice) -> Option<&'a ListedPlan> {
    if let ([_], _) | (_, Choice::Sole) = (fitting, choice) {
        return fitting.first().copied().filter(|_| fitting.len() == 1);
    }
    let parents = list.plans().filter_map(|plan| Some((plan.id.as_str(), parent_of(plan)?))).collect::<HashMap<_, _>>();
    let is_below_another = |plan: &ListedPlan| {
        let ancestors = std::iter::successors(Some(plan.id.as_str()), |plan| parents.get(*plan).copied());
        ancestors.skip(1).take(ANCESTORS_MAX).any(|above| fitting.iter().any(|other| other.id == above))
    };
    let (below, above) = fitting.iter().copied().partition::<Vec<_>, _>(|plan| is_below_another(plan));
    match (&above[..], choice) {
        (_, Choice::Changed) if below.iter().any(|plan| is_fork(plan)) => None,
        ([plan], _) => Some(plan),
        (several, _) => {
            let mut open = several.iter().filter(|plan| plan.is_open);
            open.next().filter(|_| open.next().is_none()).copied()
        }
    }
}

fn is_fork(plan: &ListedPlan) -> bool {
    plan.summary.as_ref().is_some_and(|summary| summary.parent.is_some())
}

/// The plan that a fork was made from, or the parent plan of a sub-plan: `p` for `p.3-1`.
fn parent_of(plan: &ListedPlan) -> Option<&str> {
    let forked = plan.summary.as_ref().and_then(|summary| summary.parent.as_ref());
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let is_sub_plan = |end: &str| end.split_once('-').is_some_and(|(task, n)| is_number(task) && is_number(n));
    let above = || plan.id.rsplit_once('.').filter(|(_, end)| is_sub_plan(end)).map(|(parent, _)| parent);
    forked.map(|parent| parent.plan.as_str()).or_else(above)
}
