//! Traces causation from one event: up through its causes, and down to all its consequences.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::limits::QUERY_ALTERNATIVES_MAX;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::store::EventStore;

/// The most events of one trace.
pub const TRACE_EVENTS_MAX: usize = 1000;

/// The causes and consequences of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// All events in log order: a cause comes before its consequences.
    pub events: Vec<Recorded>,
    /// True if there are more than these.
    pub more: bool,
}

impl EventStore {
    /// The event with this id, its chain of causes, and everything that followed from it; `None` without such an event.
    pub async fn trace(&self, event_id: uuid::Uuid) -> Result<Option<Trace>> {
        let Some(event) = self.event(event_id).await? else { return Ok(None) };
        let (mut found, mut more) = (BTreeMap::<Position, Recorded>::new(), false);
        let mut cause = event.causes().causation_id;
        let mut followed = vec![event_id];
        found.insert(event.position, event);
        // An imported log may contain a cycle of causes, so stop at a known event.
        while let Some(id) = cause {
            let Some(event) = self.event(id).await?.filter(|event| !found.contains_key(&event.position)) else { break };
            if found.len() >= TRACE_EVENTS_MAX {
                more = true;
                break;
            }
            cause = event.causes().causation_id;
            found.insert(event.position, event);
        }
        while !followed.is_empty() && !more {
            let some = followed.split_off(followed.len().saturating_sub(QUERY_ALTERNATIVES_MAX));
            let query = some.into_iter().map(Query::caused_by).reduce(Query::or).unwrap_or_default();
            let page = self.read(&query, Range::default(), TRACE_EVENTS_MAX).await?;
            more |= page.more;
            for event in page.events {
                if found.len() >= TRACE_EVENTS_MAX {
                    more = true;
                    break;
                }
                let id = event.event_id;
                if found.insert(event.position, event).is_none() {
                    followed.push(id);
                }
            }
        }
        Ok(Some(Trace { events: found.into_values().collect(), more }))
    }

    async fn event(&self, event_id: uuid::Uuid) -> Result<Option<Recorded>> {
        Ok(self.read(&Query::event(event_id), Range::default(), 1).await?.events.pop())
    }
}
