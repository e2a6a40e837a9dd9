//! The whole history of a plan: the shared beginnings of its ancestors by forking, then its own events.

use crewlog_mq::{Error, EventStore, Position, Prefix, Query, Range, Recorded};
use crewlog_planner::event::{self, Event, plan_tag};
use crewlog_planner::planner::FORK_DEPTH_MAX;
use futures::{Stream, StreamExt, stream};

/// A part of a history; parts are in position order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    plan: String,
    /// The plan's first event.
    begins: Position,
    /// The last position that counts; unset for the plan itself.
    up_to: Option<Position>,
}

/// The whole history of a plan, starting with its oldest ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Oldest first; the last is the plan itself.
    stretches: Vec<Stretch>,
}

/// A position of a history from which a fork can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// The plan that owns the last event up to there.
    pub parent: String,
    /// The position, at which an append ends.
    pub at: Position,
    /// The events that the planner of a fork folds first.
    pub prefix: Vec<Prefix>,
}

impl History {
    /// The history of a plan. It is empty for a plan that is not in the log; likewise for a missing parent of a fork.
    ///
    /// # Errors
    /// A fault of the log, or [`Error::Decode`] for an unreadable fork.
    pub async fn of(store: &EventStore, plan: &str) -> Result<Self, Error> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let (mut next, mut up_to) = (Some(plan.to_owned()), None);
        while let Some(plan) = next.take().filter(|_| stretches.len() <= FORK_DEPTH_MAX) {
            let first = first_event(store, &plan).await?;
            if let Some(first) = first.as_ref().filter(|first| first.event_type == "PlanForked")
                && let Event::PlanForked { parent, at, .. } = first.decode()?
            {
                next = Some(parent);
                // Each part comes before the next one, so an invalid log cannot cause an endless loop.
                let before = Position(first.position.0 - 1).min(at);
                let shared = up_to.map_or(before, |up_to: Position| up_to.min(before));
                let begins = first.position;
                stretches.push(Stretch { plan, begins, up_to: up_to.replace(shared) });
                continue;
            }
            let begins = first.map_or(Position(i64::MAX), |first| first.position);
            stretches.push(Stretch { plan, begins, up_to });
        }
        stretches.reverse();
        Ok(Self { stretches })
    }

    /// The plan that this one was forked from, and the last position that they share.
    pub fn parent(&self) -> Option<(&str, Position)> {
        let before = self.stretches.len().checked_sub(2)?;
        let Stretch { plan, up_to, .. } = &self.stretches[before];
        Some((plan, (*up_to)?))
    }

    /// The events that the planner folds before the plan's own.
    pub fn prefix(&self) -> Vec<Prefix> {
        let shared = self.stretches.iter().filter_map(|stretch| Some((stretch, stretch.up_to?)));
        shared.map(|(Stretch { plan, .. }, up_to)| Prefix { query: of_planner(plan), up_to }).collect()
    }

    /// The point where a fork at a position begins; `None` if nothing had been planned yet.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn fork_point(&self, store: &EventStore, at: Position) -> Result<Option<ForkPoint>, Error> {
        let at = store.whole(at.min(store.head().await?)).await?;
        let before = self.stretches.iter().take_while(|stretch| stretch.begins <= at).collect::<Vec<_>>();
        let Some(last) = before.last() else { return Ok(None) };
        let parent = last.plan.clone();
        let clipped = |stretch: &Stretch| stretch.up_to.map_or(at, |up_to| up_to.min(at));
        let at = clipped(last);
        let prefix = before.iter().map(|stretch| Prefix { query: of_planner(&stretch.plan), up_to: clipped(stretch) });
        Ok(Some(ForkPoint { parent, at, prefix: prefix.collect() }))
    }

    /// The last position that both histories share, with the plan that it belongs to; `None` for unrelated plans.
    pub fn shared_with(&self, other: &Self) -> Option<(&str, Option<Position>)> {
        let pairs = self.stretches.iter().zip(&other.stretches);
        let (one, other) = pairs.take_while(|(one, other)| one.plan == other.plan).last()?;
        let shared = [one.up_to, other.up_to].into_iter().flatten().min();
        Some((&one.plan, shared))
    }

    /// The matching events of the plan and of its tasks, in a part of the log.
    pub fn records(
        &self,
        store: &EventStore,
        query: &Query,
        range: Range,
    ) -> impl Stream<Item = Result<Recorded, Error>> + Send + use<> {
        let parts = self.stretches.iter().map(|stretch| {
            let bounds = [range.up_to, stretch.up_to].into_iter().flatten();
            (query.clone().and_tag(plan_tag(&stretch.plan)), Range { up_to: bounds.min(), ..range })
        });
        let mut parts = parts.collect::<Vec<_>>();
        if range.backwards {
            parts.reverse();
        }
        let store = store.clone();
        stream::iter(parts).flat_map(move |(query, range)| store.records(&query, range).boxed())
    }
}

fn of_planner(plan: &str) -> Query {
    Query::aggregate(event::STREAM, plan)
}

async fn first_event(store: &EventStore, plan: &str) -> Result<Option<Recorded>, Error> {
    Ok(store.read(&of_planner(plan), Range::default(), 1).await?.events.into_iter().next())
}
