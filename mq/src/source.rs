//! By which index the events of a query are found: each alternative of it by the one that narrows it the most.

use uuid::Uuid;

use crate::query::Query;

/// Up to so many positions are looked through one by one rather than found by an index.
pub(crate) const SHORT_RANGE: i64 = 256;
/// With more kinds or aggregates than these to be merged, the range is looked through instead.
pub(crate) const MERGED_MAX: usize = 64;

/// Where events come from, in the order of positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The range itself.
    Range,
    /// The events of an aggregate behind one sequence, up to another.
    Aggregate(i64, i64, i64),
    /// The events of one type in one stream.
    Kind(i64),
    Tag(String),
    Event(Uuid),
    Correlation(Uuid),
    Causation(Uuid),
}

impl Source {
    /// What must hold beside the source; [`Query::all`] when the source alone finds what the alternative wants.
    pub(crate) fn rest(&self, alternative: &Query) -> Query {
        let mut rest = Query { or: Vec::new(), ..alternative.clone() };
        match self {
            Self::Range => {}
            Self::Aggregate(..) => (rest.stream_id, rest.aggregate_id) = (String::new(), None),
            Self::Kind(_) => (rest.stream_id, rest.event_type) = (String::new(), None),
            Self::Tag(tag) => rest.tags.retain(|other| other != tag),
            Self::Event(_) => rest.event_id = None,
            Self::Correlation(_) => rest.correlation_id = None,
            Self::Causation(_) => rest.causation_id = None,
        }
        rest
    }
}

/// How the events of an alternative are found.
pub(crate) enum Driver<'q> {
    Source(Source),
    /// The aggregates of this name, in one stream or, where it is empty, in any.
    Aggregates {
        stream_id: &'q str,
        aggregate_id: &'q str,
    },
    /// The kinds of this stream or this type; few in any log.
    Kinds {
        stream_id: &'q str,
        event_type: Option<&'q str>,
    },
}

impl<'q> Driver<'q> {
    pub(crate) fn of(alternative: &'q Query) -> Self {
        let Query { stream_id, event_type, aggregate_id, tags, event_id, correlation_id, causation_id, or: _ } =
            alternative;
        if let Some(id) = event_id {
            Self::Source(Source::Event(*id))
        } else if let Some(id) = causation_id {
            Self::Source(Source::Causation(*id))
        } else if let Some(aggregate_id) = aggregate_id {
            Self::Aggregates { stream_id, aggregate_id }
        } else if let Some(id) = correlation_id {
            Self::Source(Source::Correlation(*id))
        } else if let Some(tag) = tags.first() {
            Self::Source(Source::Tag(tag.clone()))
        } else if !stream_id.is_empty() || event_type.is_some() {
            Self::Kinds { stream_id, event_type: event_type.as_deref() }
        } else {
            Self::Source(Source::Range)
        }
    }
}
