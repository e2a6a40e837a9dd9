//! Chooses the index for each alternative of a query: the one that leaves the fewest events to check.

use uuid::Uuid;

use crate::query::Query;

/// A range of at most this many positions is read without an index.
pub(crate) const SHORT_RANGE: i64 = 256;
/// If more sources than this would have to be merged, the range is read without an index.
pub(crate) const MERGED_MAX: usize = 64;

/// A source of events, in position order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The range itself.
    Range,
    /// The events of an aggregate after one sequence, up to another.
    Aggregate(i64, i64, i64),
    /// The events of one type in one stream.
    Kind(i64),
    Tag(String),
    Event(Uuid),
    Correlation(Uuid),
    Causation(Uuid),
}

impl Source {
    /// The conditions still to be checked on events from this source; [`Query::all`] if every one of them matches.
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

/// Finds the events of an alternative.
pub(crate) enum Driver<'q> {
    Source(Source),
    /// By the aggregates with this id, in the alternative's stream or in any.
    Aggregates(&'q str),
    /// By the kinds of the alternative's stream and type. A log has few.
    Kinds,
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
            Self::Aggregates(aggregate_id)
        } else if let Some(id) = correlation_id {
            Self::Source(Source::Correlation(*id))
        } else if let Some(tag) = tags.first() {
            Self::Source(Source::Tag(tag.clone()))
        } else if !stream_id.is_empty() || event_type.is_some() {
            Self::Kinds
        } else {
            Self::Source(Source::Range)
        }
    }
}
