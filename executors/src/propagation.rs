//! Propagates cancel, pause and resume from a plan to its sub-plans.

use std::collections::BTreeSet;

use crewlog_mq::{Cause, Error, EventStore, Query, Range, Recorded, Runner};
use crewlog_planner::event::{self, ancestor_tag};
use crewlog_planner::nesting;
use crewlog_planner::planner::Planner;

use crate::plans::{execute_retrying, read_plan};

/// The most commands given to one sub-plan while its parent plan keeps changing.
const COMMANDS_MAX: usize = 100;
/// Events read at a time.
const PAGE: usize = 1000;

/// A sub-plan that cannot be read and was left unchanged.
#[derive(Debug)]
pub struct Unreadable {
    /// The sub-plan.
    pub plan: String,
    /// The cause.
    pub error: Error,
}

/// Brings all sub-plans of a plan in line with their parent plans, from the top down. Unreadable ones do not block
/// others, and are returned.
///
/// # Errors
/// A fault of the log; it may be retried.
pub async fn propagate(store: &EventStore, plan: &str) -> Result<Vec<Unreadable>, Error> {
    let begun = Query {
        stream_id: event::STREAM.into(),
        event_type: Some("TasksPlanned".into()),
        tags: vec![ancestor_tag(plan)],
        ..Query::default()
    };
    // A sub-plan comes after its parent plan. The events are not decoded here, so that a broken one fails alone.
    let (mut unreadable, mut seen, mut range) = (Vec::new(), BTreeSet::new(), Range::default());
    loop {
        let page = store.read(&begun, range, PAGE).await?;
        for Recorded { aggregate_id: plan, tags, .. } in page.events {
            if !seen.insert(plan.clone()) {
                continue;
            }
            let followed = async {
                let mut planner = read_plan(store, &plan, tags).await?;
                follow_parent(store, &plan, &mut planner).await
            };
            match followed.await {
                Ok(()) => {}
                Err(error) if error.is_permanent() => unreadable.push(Unreadable { plan, error }),
                Err(error) => return Err(error),
            }
        }
        range.after = page.next;
        if !page.more {
            return Ok(unreadable);
        }
    }
}

/// Brings a plan in line with its parent plan, if it is a sub-plan.
///
/// # Errors
/// A fault of the log.
pub(crate) async fn follow_parent(store: &EventStore, plan: &str, planner: &mut Runner<Planner>) -> Result<(), Error> {
    // The parent plan may change again before a command for this one is in the log.
    for _ in 0..COMMANDS_MAX {
        let state = planner.handler().state();
        let Some(parent) = nesting::parent_task(plan, state) else { return Ok(()) };
        let parent_plan = read_plan(store, &parent.plan, Vec::new()).await?;
        let Some(command) = nesting::follow(plan, state, parent_plan.handler().state()) else { return Ok(()) };
        execute_retrying(planner, command, &Cause::request()).await?;
    }
    tracing::warn!(plan, "the parent plan changed too often to follow");
    Ok(())
}
