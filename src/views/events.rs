//! Events of the log: pages by position, and one event with its causes and effects.

use crewlog_mq::{Error, Page, Position, Query, Range, Recorded};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::AsOf;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::rfc3339;

/// The most causes that are followed, and the most effects that are listed.
const LINKED_MAX: usize = 20;

/// A cause or effect of an event.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Linked {
    #[schema(value_type = i64)]
    pub position: Position,
    pub event_type: String,
    pub stream_id: String,
    pub aggregate_id: String,
    pub created_at: String,
}

/// An event with its causes and effects.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventDetail {
    #[schema(value_type = i64)]
    pub position: Position,
    pub event_id: String,
    pub stream_id: String,
    pub aggregate_id: String,
    pub sequence: i64,
    pub event_type: String,
    pub event_version: String,
    #[schema(value_type = Object)]
    pub data: Box<RawValue>,
    #[schema(value_type = Object)]
    pub metadata: Value,
    pub tags: Vec<String>,
    pub created_at: String,
    /// Its cause, the cause of that and so on, nearest first, at most 20.
    pub causes: Vec<Linked>,
    /// Its direct effects up to the position of the view, at most 20.
    pub effects: Vec<Linked>,
}

impl Linked {
    fn of(recorded: &Recorded) -> Self {
        Self {
            position: recorded.position,
            event_type: recorded.event_type.clone(),
            stream_id: recorded.stream_id.clone(),
            aggregate_id: recorded.aggregate_id.clone(),
            created_at: rfc3339(recorded.created_at),
        }
    }
}

impl AsOf {
    /// A page of events after a position, or before one, up to the position of the view.
    pub async fn events(&self, query: &Query, range: Range, limit: usize) -> Result<Page, Error> {
        let up_to = range.up_to.map_or(self.at, |up_to| up_to.min(self.at));
        self.store().read(query, Range { up_to: Some(up_to), ..range }, limit).await
    }

    /// The event at a position.
    ///
    /// # Errors
    /// A position without an event, or beyond that of the view.
    pub async fn event(&self, position: Position) -> Result<EventDetail, Failure> {
        let missing = || Failure::new(Code::Nothing, format!("there is no event at position {position} yet"));
        let before = Position(position.0.checked_sub(1).filter(|before| *before >= 0).ok_or_else(missing)?);
        let page = self.store().read(&Query::all(), Range::between(before, position), 1).await?;
        let recorded = page.events.first().filter(|_| position <= self.at).ok_or_else(missing)?;
        let mut causes = Vec::new();
        let cause_of = |recorded: &Recorded| recorded.metadata().ok().and_then(|metadata| metadata.causation_id);
        let mut cause = cause_of(recorded);
        while let Some(id) = cause.filter(|_| causes.len() < LINKED_MAX) {
            let found = self.store().read(&Query::event(id), Range::default(), 1).await?;
            // An imported log may contain a cycle: only an earlier event counts as a cause.
            let Some(found) = found.events.into_iter().next().filter(|found| found.position < position) else { break };
            cause = cause_of(&found);
            causes.push(Linked::of(&found));
        }
        let effects = Query::caused_by(recorded.event_id);
        let effects = self.store().read(&effects, Range::up_to(self.at), LINKED_MAX).await?;
        Ok(EventDetail {
            position,
            event_id: recorded.event_id.to_string(),
            stream_id: recorded.stream_id.clone(),
            aggregate_id: recorded.aggregate_id.clone(),
            sequence: recorded.sequence,
            event_type: recorded.event_type.clone(),
            event_version: recorded.event_version.clone(),
            data: RawValue::from_string(recorded.data.clone())?,
            metadata: serde_json::from_str(&recorded.metadata)?,
            tags: recorded.tags.clone(),
            created_at: rfc3339(recorded.created_at),
            causes,
            effects: effects.events.iter().map(Linked::of).collect(),
        })
    }
}
