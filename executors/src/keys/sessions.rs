//! The plans of the log that are sealed with a session's key, and the record that the key was destroyed.

use std::collections::BTreeSet;
use std::pin::pin;

use crewlog_mq::{Append, Cause, Error, EventStore, Expected, NewEvent, Query, Range, Recorded, TAGS_MAX};
use crewlog_planner::event::{self, Event, plan_tag};
use crewlog_planner::model;
use crewlog_planner::sealed::{self, KeyEvent, TAG};
use futures::TryStreamExt;

/// The most plans of a key that are named.
const PLANS_NAMED_MAX: usize = 100;

/// The plans that are sealed with a key, the first one first, at most 100.
///
/// # Errors
/// A fault of the log.
pub async fn plans_of(store: &EventStore, key: &str) -> Result<Vec<String>, Error> {
    let mut plans = Vec::new();
    let query = Query::stream(event::STREAM).and_tag(format!("{TAG}{key}")).of_types(["TasksPlanned", "PlanForked"]);
    let mut records = pin!(store.records(&query, Range::default()));
    while let Some(recorded) = records.try_next().await? {
        if plans.len() < PLANS_NAMED_MAX && !plans.contains(&recorded.aggregate_id) {
            plans.push(recorded.aggregate_id);
        }
    }
    Ok(plans)
}

/// Texts of a plan that are sealed with another key because a model was asked about them first.
///
/// # Errors
/// A fault of the log, or [`Error::Decode`] for an unreadable plan.
pub async fn asked_before(store: &EventStore, plan: &str, key: &str) -> Result<BTreeSet<String>, Error> {
    let first = store.read(&Query::aggregate(event::STREAM, plan), Range::default(), 1).await?.events.pop();
    let request = match first.as_ref().map(Recorded::decode::<Event>).transpose()? {
        Some(Event::TasksPlanned { origin, .. }) => origin.planned_by.filter(|by| by.starts_with("request:")),
        Some(_) | None => None,
    };
    let Some(request) = request else { return Ok(BTreeSet::new()) };
    let asked = store.read(&Query::stream(model::STREAM).and_tag(request), Range::default(), PLANS_NAMED_MAX).await?;
    let elsewhere = |asked: &Recorded| sealed::key_of(&asked.tags).is_some_and(|other| other != key);
    Ok(asked.events.into_iter().filter(elsewhere).map(|asked| asked.aggregate_id).collect())
}

/// Records that the key of these plans was destroyed, unless it is recorded already. The event gets the tags, and the tag
/// of each plan.
///
/// # Errors
/// A fault of the log.
pub async fn record_destroyed(store: &EventStore, key: &str, plans: &[String], tags: Vec<String>) -> Result<(), Error> {
    let Some(session) = plans.first() else { return Ok(()) };
    let known = store.load::<KeyEvent>(&Query::aggregate(sealed::STREAM, session), Range::default()).await?;
    let is_known = known.iter().any(|envelope| match &envelope.event {
        KeyEvent::KeyDestroyed { key: destroyed, .. } => destroyed == key,
    });
    if is_known {
        return Ok(());
    }
    let mut tags = tags.into_iter().collect::<BTreeSet<_>>();
    for plan in plans {
        if tags.len() < TAGS_MAX {
            tags.insert(plan_tag(plan));
        }
    }
    let destroyed = KeyEvent::KeyDestroyed { key: key.to_owned(), plans: plans.to_vec() };
    let destroyed = NewEvent::of(&destroyed, Cause::request().metadata())?.with_tags(tags);
    store.append(Append::to(sealed::STREAM, session, Expected::Any, vec![destroyed])).await?;
    Ok(())
}
