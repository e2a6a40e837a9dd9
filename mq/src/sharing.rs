//! Stores a text once that an event has from its cause: the event refers to the field of the cause. Readers get the whole
//! text; an export, a check and an import see the reference.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::backend::{Backend, LogIdentity, Records};
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::record::{Append, Appended, Checked, Imported, Page, Recorded, Stats};
use crate::tail::Tail;

/// Top-level fields, each with its event type, that may hold a text of the cause.
pub type SharedFields = &'static [(&'static str, &'static str)];

/// How a reference begins as JSON; the name of the cause's field follows. Where the cause has no such field it is a text.
const REFERENCE: &str = "\"\\u0001cause/";
/// How many causes are read at a time.
const CAUSES_PER_READ: usize = 32;
/// A shorter text takes no more room than the reference.
const SHARED_BYTES_MIN: usize = 64;

/// A log whose events share texts with their causes.
pub(crate) struct Sharing {
    below: Arc<dyn Backend>,
    fields: SharedFields,
}

impl Sharing {
    pub(crate) fn new(below: Arc<dyn Backend>, fields: SharedFields) -> Self {
        Self { below, fields }
    }

    /// The shared fields of an event, with their values as JSON.
    fn texts<'a>(&self, event_type: &str, data: &'a str) -> Vec<(&'static str, &'a str)> {
        let fields = self.fields.iter().filter(|(of_type, _)| *of_type == event_type).map(|(_, field)| *field);
        let mut fields = fields.peekable();
        let of_data = fields.peek().map(|_| fields_of(data)).unwrap_or_default();
        fields.filter_map(|field| Some((field, *of_data.get(field)?))).collect()
    }

    async fn shared(&self, mut append: Append) -> Result<Append> {
        for event in append.writes.iter_mut().flat_map(|write| &mut write.events) {
            let long = self.texts(&event.event_type, &event.data);
            let long = long.into_iter().filter(|(_, text)| text.len() >= SHARED_BYTES_MIN).collect::<Vec<_>>();
            let Some(cause) = event.causes.causation_id.filter(|_| !long.is_empty()) else { continue };
            let causes = self.below.read(&Query::event(cause), Range::default(), 1).await?.events;
            let Some(cause) = causes.first() else { continue };
            let of_cause = fields_of(&cause.data);
            let mut data = event.data.clone();
            for (_, text) in long {
                let found = of_cause.iter().find(|(_, of_cause)| **of_cause == text);
                if let Some((field, _)) = found {
                    data = data.replacen(text, &format!("{REFERENCE}{field}\""), 1);
                }
            }
            event.data = data;
        }
        Ok(append)
    }

    /// Puts the texts of the causes in the place of references.
    async fn resolve(&self, events: &mut [Recorded]) -> Result<()> {
        let mut references = Vec::new();
        for (place, recorded) in events.iter().enumerate() {
            for (_, text) in self.texts(&recorded.event_type, &recorded.data) {
                if let Some(field) = text.strip_prefix(REFERENCE).and_then(|field| field.strip_suffix('"'))
                    && let Some(cause) = recorded.metadata()?.causation_id
                {
                    references.push((place, cause, field.to_owned(), text.to_owned()));
                }
            }
        }
        let mut causes: HashMap<Uuid, Recorded> = HashMap::new();
        for some in references.chunks(CAUSES_PER_READ) {
            let queries = some.iter().map(|(_, cause, ..)| Query::event(*cause));
            let Some(query) = queries.reduce(Query::or) else { continue };
            let found = self.below.read(&query, Range::default(), some.len()).await?.events;
            causes.extend(found.into_iter().map(|cause| (cause.event_id, cause)));
        }
        for (place, cause, field, reference) in references {
            let of_cause = causes.get(&cause).map(|cause| fields_of(&cause.data)).unwrap_or_default();
            if let Some(text) = of_cause.get(field.as_str()) {
                let data = &mut events[place].data;
                *data = data.replacen(&reference, text, 1);
            }
        }
        Ok(())
    }
}

/// The top-level fields of an object that are texts, as JSON.
fn fields_of(data: &str) -> HashMap<&str, &str> {
    let fields = serde_json::from_str::<HashMap<&str, &RawValue>>(data).unwrap_or_default();
    let texts = fields.into_iter().map(|(field, value)| (field, value.get()));
    texts.filter(|(_, value)| value.starts_with('"')).collect()
}

impl Backend for Sharing {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        async move { self.below.append(self.shared(append).await?).await }.boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move {
            let mut page = self.below.read(query, range, limit).await?;
            self.resolve(&mut page.events).await?;
            Ok(page)
        }
        .boxed()
    }

    fn opened(&self, event: Arc<Recorded>) -> BoxFuture<'_, Result<Arc<Recorded>>> {
        async move {
            let event = self.below.opened(event).await?;
            if self.texts(&event.event_type, &event.data).is_empty() {
                return Ok(event);
            }
            let mut event = [Arc::unwrap_or_clone(event)];
            self.resolve(&mut event).await?;
            let [event] = event;
            Ok(Arc::new(event))
        }
        .boxed()
    }

    fn keeps_snapshots<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        self.below.keeps_snapshots(query)
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.below.head()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.below.whole(at)
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.below.log()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        self.below.import(identity, records)
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.below.check()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        self.below.cells(space, from, limit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.below.stats()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.below.close()
    }

    fn now(&self) -> Timestamp {
        self.below.now()
    }

    fn tail(&self) -> &Arc<Tail> {
        self.below.tail()
    }
}
