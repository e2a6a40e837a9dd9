//! Selects events. The same type filters a read, is the condition of an append and selects the events of a group. A
//! range selects the part of the log to read.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::limits::{self, QUERY_ALTERNATIVES_MAX, TAGS_MAX};
use crate::position::Position;
use crate::recorded::{Causes, Page, Recorded};

/// Selects events: all set fields must match, or else one of the alternatives in `or`. Unset fields do not filter.
///
/// It means the same in memory ([`Query::matches`]) and on every database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// The stream; empty for all streams.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stream_id: String,
    /// The event type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The aggregate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_id: Option<String>,
    /// Tags that an event must have, all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The event's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    /// The correlation in its metadata, shared by all events of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Uuid>,
    /// The cause in its metadata: selects the direct consequences of one event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<Uuid>,
    /// Alternatives, each a complete query: an event matches if it matches any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<Query>,
}

impl Query {
    /// Every event of the log.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The events of one stream.
    #[must_use]
    pub fn stream(stream_id: &str) -> Self {
        Self { stream_id: stream_id.to_owned(), ..Self::default() }
    }

    /// The events of one aggregate.
    #[must_use]
    pub fn aggregate(stream_id: &str, aggregate_id: &str) -> Self {
        Self { aggregate_id: Some(aggregate_id.to_owned()), ..Self::stream(stream_id) }
    }

    /// The events with this tag.
    #[must_use]
    pub fn tag(tag: impl Into<String>) -> Self {
        Self { tags: vec![tag.into()], ..Self::default() }
    }

    /// The one event with this id.
    #[must_use]
    pub fn event(event_id: Uuid) -> Self {
        Self { event_id: Some(event_id), ..Self::default() }
    }

    /// All events that followed from one request.
    #[must_use]
    pub fn correlation(correlation_id: Uuid) -> Self {
        Self { correlation_id: Some(correlation_id), ..Self::default() }
    }

    /// The events that this one caused directly.
    #[must_use]
    pub fn caused_by(event_id: Uuid) -> Self {
        Self { causation_id: Some(event_id), ..Self::default() }
    }

    /// Restricts the query to one event type.
    #[must_use]
    pub fn of_type(mut self, event_type: &str) -> Self {
        self.or = self.or.into_iter().map(|other| other.of_type(event_type)).collect();
        self.event_type = Some(event_type.to_owned());
        self
    }

    /// Restricts the query to these event types. An empty list matches nothing.
    #[must_use]
    pub fn of_types<'a>(self, event_types: impl IntoIterator<Item = &'a str>) -> Self {
        let of_each = event_types.into_iter().map(|event_type| self.clone().of_type(event_type));
        // No event has an empty type.
        of_each.reduce(Self::or).unwrap_or_else(|| self.of_type(""))
    }

    /// Restricts the query to events that also have this tag.
    #[must_use]
    pub fn and_tag(mut self, tag: impl Into<String>) -> Self {
        let tag = tag.into();
        self.or = self.or.into_iter().map(|other| other.and_tag(tag.clone())).collect();
        self.tags.push(tag);
        self
    }

    /// Events that match either query.
    #[must_use]
    pub fn or(mut self, mut other: Self) -> Self {
        let alternatives = std::mem::take(&mut other.or);
        self.or.push(other);
        self.or.extend(alternatives);
        self
    }

    /// True if an event of the log matches.
    #[must_use]
    pub fn matches(&self, event: &Recorded) -> bool {
        self.matches_parts(&Parts {
            stream_id: &event.stream_id,
            aggregate_id: &event.aggregate_id,
            event_type: &event.event_type,
            tags: &event.tags,
            event_id: event.event_id,
            causes: &|| event.causes(),
        })
    }

    /// This query and its alternatives, each to be matched without its own alternatives.
    pub(crate) fn alternatives(&self) -> Vec<&Self> {
        let mut flat = vec![self];
        for other in &self.or {
            flat.extend(other.alternatives());
        }
        flat
    }

    pub(crate) fn check(&self) -> Result<()> {
        let alternatives = self.alternatives();
        limits::check(
            "query_alternatives_max",
            "the alternatives of the query",
            alternatives.len(),
            QUERY_ALTERNATIVES_MAX,
        )?;
        alternatives
            .into_iter()
            .try_for_each(|query| limits::check("tags_max", "the tags of the query", query.tags.len(), TAGS_MAX))
    }

    pub(crate) fn matches_parts(&self, event: &Parts<'_>) -> bool {
        self.matches_alone(event) || self.or.iter().any(|other| other.matches_parts(event))
    }

    fn matches_alone(&self, event: &Parts<'_>) -> bool {
        let has = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        (self.stream_id.is_empty() || self.stream_id == event.stream_id)
            && has(&self.event_type, event.event_type)
            && has(&self.aggregate_id, event.aggregate_id)
            && self.event_id.is_none_or(|wanted| wanted == event.event_id)
            && self.tags.iter().all(|tag| event.tags.contains(tag))
            && self.matches_causes(event.causes)
    }

    fn matches_causes(&self, causes: &dyn Fn() -> Causes) -> bool {
        if self.correlation_id.is_none() && self.causation_id.is_none() {
            return true;
        }
        let found = causes();
        let has = |wanted: Option<Uuid>, found: Option<Uuid>| wanted.is_none() || wanted == found;
        has(self.correlation_id, found.correlation_id) && has(self.causation_id, found.causation_id)
    }
}

/// The parts of an event that a query examines.
pub(crate) struct Parts<'a> {
    pub(crate) stream_id: &'a str,
    pub(crate) aggregate_id: &'a str,
    pub(crate) event_type: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) event_id: Uuid,
    /// Evaluated only if the query needs it: a recorded event must parse its metadata for it.
    pub(crate) causes: &'a dyn Fn() -> Causes,
}

/// Part of the log, and a direction. All bounds apply together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// Exclusive.
    pub after: Position,
    /// Inclusive; the head of the log when unset.
    pub up_to: Option<Position>,
    /// Inclusive: excludes events made before.
    pub since: Option<Timestamp>,
    /// Inclusive: excludes events made after.
    pub until: Option<Timestamp>,
    /// From the last to the first.
    pub backwards: bool,
}

impl Range {
    /// All events after a position.
    #[must_use]
    pub fn after(after: Position) -> Self {
        Self { after, ..Self::default() }
    }

    /// All events up to and including this position.
    #[must_use]
    pub fn up_to(position: Position) -> Self {
        Self::between(Position(0), position)
    }

    /// All events after one position, up to and including another.
    #[must_use]
    pub fn between(after: Position, up_to: Position) -> Self {
        Self { after, up_to: Some(up_to), ..Self::default() }
    }

    /// The same part, from the last event to the first.
    #[must_use]
    pub fn backwards(self) -> Self {
        Self { backwards: true, ..self }
    }

    /// The rest of this range after a page of it; `None` at the end.
    #[must_use]
    pub fn rest(self, page: &Page) -> Option<Self> {
        match (page.more, self.backwards) {
            (false, _) => None,
            (true, false) => Some(Self { after: page.next, ..self }),
            (true, true) => Some(Self { up_to: Some(page.next), ..self }),
        }
    }
}
