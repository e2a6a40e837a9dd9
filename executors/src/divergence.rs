//! Compares two plans after the point where their common history ends.

use std::pin::pin;

use crewlog_mq::{Error, EventStore, Position, Query, Range, Timestamp};
use crewlog_planner::event::{self, Event, Usage, plan_tag};
use crewlog_planner::lifecycle::{self, State};
use crewlog_planner::text::millis;
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;
use serde::Serialize;

use crate::history::History;
use crate::plans::tasks_of;

/// Two plans that share a history, and the course of each after it.
#[derive(Debug, Clone, Serialize)]
pub struct Divergence {
    /// The last event that they share.
    pub parted: Parted,
    /// The first of the two.
    pub one: Course,
    /// The second.
    pub other: Course,
}

/// The last event that two histories share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parted {
    /// The plan that it belongs to.
    pub plan: String,
    /// Its position.
    pub at: Position,
    /// Its type.
    pub event_type: String,
}

/// A plan and its history after the point at which it parts from the other.
#[derive(Debug, Clone, Serialize)]
pub struct Course {
    /// Its id.
    pub plan: String,
    /// Its present state, by the log alone.
    pub status: State,
    /// From the point, or from the creation of a fork, to the end of the plan; unset before the end.
    pub duration_ms: Option<u64>,
    /// The total time its tasks were held, without the time between claims.
    pub work_ms: u64,
    /// The failures and time-outs of its tasks; a successful retry does not reduce the count.
    pub failures: u32,
    /// The usage of its tasks.
    pub usage: Usage,
    /// The plan as it is now.
    #[serde(skip)]
    pub view: PlanView,
}

impl Divergence {
    /// Reads the histories of two plans. `None` if they share none, or if it is one plan.
    ///
    /// # Errors
    /// A fault of the log, or [`Error::Decode`] for an event that cannot be read.
    pub async fn of(store: &EventStore, one: &str, other: &str) -> Result<Option<Self>, Error> {
        let (of_one, of_other) = (History::of(store, one).await?, History::of(store, other).await?);
        let Some((shared, Some(at))) = of_one.shared_with(&of_other) else { return Ok(None) };
        let last = store.read(&Query::tag(plan_tag(shared)), Range::up_to(at).backwards(), 1).await?;
        let last = last.events.into_iter().next();
        let moment = last.as_ref().map(|last| last.created_at);
        let (at, event_type) = last.map_or((at, String::new()), |last| (last.position, last.event_type));
        let parted = Parted { plan: shared.to_owned(), at, event_type };
        let one = Course::load(store, &of_one, one, at, moment).await?;
        let other = Course::load(store, &of_other, other, at, moment).await?;
        Ok(Some(Self { parted, one, other }))
    }
}

impl Course {
    /// Reads a history that parts from another after `at`.
    async fn load(
        store: &EventStore,
        history: &History,
        plan: &str,
        at: Position,
        moment: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let mut course = Self {
            plan: plan.to_owned(),
            status: State::default(),
            duration_ms: None,
            work_ms: 0,
            failures: 0,
            usage: Usage::default(),
            view: PlanView::default(),
        };
        // A fork may be made long after the point: nothing of it was under way before.
        let (mut began_at, mut last_at) = (moment, None);
        let mut records = pin!(history.records(store, &Query::all(), Range::default()));
        while let Some(recorded) = records.try_next().await? {
            if recorded.position <= at {
                course.view.apply(&recorded)?;
                continue;
            }
            let now = recorded.created_at;
            if recorded.stream_id == event::STREAM {
                course.count(&recorded.decode()?);
                if last_at.replace(now).is_none() && recorded.event_type == "PlanForked" {
                    began_at = Some(now);
                }
            }
            let tasks = tasks_of(&recorded).unwrap_or_default();
            let held = tasks.into_iter().filter(|task| course.view.holder(*task).is_some());
            let held = held.map(|task| (task, course.view.times(task).claimed_at)).collect::<Vec<_>>();
            course.view.apply(&recorded)?;
            for (_, claimed_at) in held.into_iter().filter(|(task, _)| course.view.holder(*task).is_none()) {
                course.work_ms += claimed_at.max(moment).map_or(0, |since| millis(now.since(since)));
            }
        }
        course.status = lifecycle::of_log("", &course.view);
        let took = last_at.zip(began_at).filter(|_| course.view.state().phase.is_ended());
        course.duration_ms = took.map(|(last, began)| millis(last.since(began)));
        Ok(course)
    }

    /// Counts usage and failures, before the view has the event.
    fn count(&mut self, event: &Event) {
        if let Event::UsageRecorded { usage, .. } = event {
            self.usage.add(usage);
        }
        if let Event::TaskStatusUpdated { task_id, status, error: Some(_), .. } = event {
            let task = self.view.state().task(*task_id);
            self.failures += u32::from(task.is_some_and(|task| status.is_failure_after(task.status)));
        }
    }
}
