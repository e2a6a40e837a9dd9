//! Stores a text only once if an event repeats it from its cause: the event then refers to the field of the cause.
//! Readers get the whole text; an export, a check and an import see the reference.

use std::collections::HashMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::append::Append;
use crate::backend::Backend;
use crate::error::Result;
use crate::layer::Layer;
use crate::query::{Query, Range};
use crate::recorded::Recorded;

/// Top-level fields, each with its event type, that may repeat a text of the cause.
pub type SharedFields = &'static [(&'static str, &'static str)];

/// The prefix of a reference as JSON; the cause's field follows. If the cause lacks that field, it is plain text.
const REFERENCE: &str = "\"\\u0001cause/";
/// The number of causes read at a time.
const CAUSES_PER_READ: usize = 32;
/// A shorter text takes no more space than the reference.
const SHARED_BYTES_MIN: usize = 64;

/// Replaces texts that events share with their causes by references.
pub(crate) struct Sharing(pub(crate) SharedFields);

impl Sharing {
    /// The shared fields of an event, with their values as JSON.
    fn texts<'a>(&self, event_type: &str, data: &'a str) -> Vec<(&'static str, &'a str)> {
        let fields = self.0.iter().filter(|(of_type, _)| *of_type == event_type).map(|(_, field)| *field);
        let mut fields = fields.peekable();
        let of_data = fields.peek().map(|_| fields_of(data)).unwrap_or_default();
        fields.filter_map(|field| Some((field, *of_data.get(field)?))).collect()
    }

    async fn shared(&self, below: &dyn Backend, mut append: Append) -> Result<Append> {
        for event in append.writes.iter_mut().flat_map(|write| &mut write.events) {
            let long = self.texts(&event.event_type, &event.data);
            let long = long.into_iter().filter(|(_, text)| text.len() >= SHARED_BYTES_MIN).collect::<Vec<_>>();
            let Some(cause) = event.causes.causation_id.filter(|_| !long.is_empty()) else { continue };
            let causes = below.read(&Query::event(cause), Range::default(), 1).await?.events;
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

    /// Replaces references by the texts of the causes.
    async fn resolve(&self, below: &dyn Backend, events: &mut [Recorded]) -> Result<()> {
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
            let found = below.read(&query, Range::default(), some.len()).await?.events;
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

/// The top-level fields of an object that are strings, as JSON.
fn fields_of(data: &str) -> HashMap<&str, &str> {
    let fields = serde_json::from_str::<HashMap<&str, &RawValue>>(data).unwrap_or_default();
    let texts = fields.into_iter().map(|(field, value)| (field, value.get()));
    texts.filter(|(_, value)| value.starts_with('"')).collect()
}

impl Layer for Sharing {
    fn stored<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>> {
        self.shared(below, append).boxed()
    }

    fn restore<'a>(&'a self, below: &'a dyn Backend, events: &'a mut [Recorded]) -> BoxFuture<'a, Result<()>> {
        self.resolve(below, events).boxed()
    }

    fn changes(&self, event: &Recorded) -> bool {
        !self.texts(&event.event_type, &event.data).is_empty()
    }

    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        below.keeps_snapshots(query)
    }
}
