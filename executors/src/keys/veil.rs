//! The veil: seals the texts of an append, and opens those of events that were read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crewlog_mq::{Append, Backend, Error, NewEvent, Query, Range, Recorded, Veil, Write};
use crewlog_planner::sealed::{self, PREFIX, SEALED, SHREDDED, TAG};
use crewlog_planner::sealing;
use crewlog_planner::{event, model};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::cipher::Place;
use super::{Access, KNOWN_MAX, KeyError, Keys, READ_CLOSED_MAX};

/// The event that begins a fork.
const FORKED: &str = "PlanForked";

/// The first event of a fork.
#[derive(Deserialize)]
struct Forked {
    parent: String,
}

/// The name of a sealed plan's key, and the access to it.
type Session = (String, Access);

impl Veil for Keys {
    fn seal<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append, Error>> {
        async move {
            let mut sessions: BTreeMap<String, Option<Session>> = BTreeMap::new();
            for Write { stream_id, aggregate_id, events, .. } in append.writes() {
                for event in events {
                    let Some(plan) = sealing::plan_of(stream_id, aggregate_id, event.tags()) else { continue };
                    if !sessions.contains_key(plan) {
                        let session = match self.key_for(below, plan, event).await? {
                            Some(name) => {
                                let access = self.access(&name)?;
                                Some((name, access))
                            }
                            None => None,
                        };
                        sessions.insert(plan.to_owned(), session);
                    }
                }
            }
            if sessions.values().all(Option::is_none) {
                return Ok(append);
            }
            append.map_events(|stream_id, aggregate_id, event| {
                let plan = sealing::plan_of(stream_id, aggregate_id, event.tags());
                match plan.and_then(|plan| Some((plan, sessions.get(plan)?.as_ref()?))) {
                    Some((plan, session)) => self.sealed(event.clone(), (stream_id, aggregate_id), plan, session),
                    None => Ok(event),
                }
            })
        }
        .boxed()
    }

    fn open(&self, events: &mut [Recorded]) -> Result<(), Error> {
        // Most pages belong to one plan.
        let mut last: Option<(String, Option<Access>)> = None;
        for recorded in events {
            let Some(name) = sealed::key_of(&recorded.tags) else { continue };
            let access = match &last {
                Some((known, access)) if known == name => access.clone(),
                Some(_) | None => self.access_or_tell(name)?,
            };
            last = Some((name.to_owned(), access.clone()));
            self.open_one(recorded, access.as_ref());
        }
        Ok(())
    }

    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let is_in_use = self.operator.is_some() || self.files.folder().exists();
            let aggregate = query.aggregate_id.as_deref().filter(|id| *query == Query::aggregate(&query.stream_id, id));
            let plan = aggregate.and_then(|aggregate| sealing::plan_of(&query.stream_id, aggregate, &[]));
            let Some(plan) = plan else { return Ok(!is_in_use) };
            Ok(match self.key_in_log(below, plan).await? {
                Some(key) => key.is_none(),
                None => self.operator.is_none(),
            })
        }
        .boxed()
    }
}

impl Keys {
    /// The name of the key for a new event of a plan; `None` if the plan is not sealed.
    async fn key_for(&self, below: &dyn Backend, plan: &str, event: &NewEvent) -> Result<Option<String>, Error> {
        if let Some(name) = sealed::key_of(event.tags()) {
            return Ok(Some(name.to_owned()));
        }
        if let Some(known) = self.key_in_log(below, plan).await? {
            return Ok(known);
        }
        if event.event_type() == FORKED
            && let Ok(Forked { parent }) = serde_json::from_str(event.data())
            && let Some(of_parent) = self.key_in_log(below, &parent).await?
        {
            return Ok(of_parent);
        }
        match &self.operator {
            Some(operator) => Ok(Some(self.make(&operator.key, plan, below.log().await?.id)?)),
            None => Ok(None),
        }
    }

    /// The name of the key according to the log; `None` if the log does not have the plan.
    async fn key_in_log(&self, below: &dyn Backend, plan: &str) -> Result<Option<Option<String>>, Error> {
        if let Some(known) = self.known(|known| known.plans.get(plan).cloned()) {
            return Ok(Some(known));
        }
        let first = below.read(&Query::aggregate(event::STREAM, plan), Range::default(), 1).await?;
        let Some(first) = first.events.first() else {
            // Requests about a text keep the mode they began with, even if it never becomes a plan.
            let asked = below.read(&Query::aggregate(model::STREAM, plan), Range::default(), 1).await?;
            let key = asked.events.first().and_then(|asked| sealed::key_of(&asked.tags));
            return Ok(key.map(|key| Some(key.to_owned())));
        };
        let key = sealed::key_of(&first.tags).map(str::to_owned);
        self.known(|known| {
            if known.plans.len() >= KNOWN_MAX {
                known.plans.clear();
            }
            known.plans.insert(plan.to_owned(), key.clone());
        });
        Ok(Some(key))
    }

    /// Seals the texts of an event, and adds the tag of its key.
    fn sealed(
        &self,
        event: NewEvent,
        (stream_id, aggregate_id): (&str, &str),
        plan: &str,
        (name, access): &Session,
    ) -> Result<NewEvent, Error> {
        let (mut is_kept_out, mut n_sealed) = (false, 0_usize);
        let mut seal = |json: &str, root: &str| {
            let (event_id, event_type) = (event.event_id(), event.event_type());
            let new = sealing::replaced(json, root, |field, written| {
                if !sealing::must_seal(field, written) {
                    return None;
                }
                match access {
                    Access::Open(key) => {
                        n_sealed += 1;
                        let place = Place { event_id, stream_id, aggregate_id, event_type, field };
                        Some(format!("{PREFIX}{}", key.seal(&place, written)))
                    }
                    // A text that can no longer be encrypted is dropped: the plan continues without it.
                    Access::Destroyed => Some(SHREDDED.to_owned()),
                    Access::NoOperatorKey | Access::NoSessionKey => {
                        is_kept_out = true;
                        None
                    }
                }
            });
            new.unwrap_or_else(|| json.to_owned())
        };
        let (data, metadata) = (seal(event.data(), "data"), seal(event.metadata(), "metadata"));
        if is_kept_out {
            return Err(self.why_closed(access, name, plan).into());
        }
        // A fold over such events would decide on placeholders instead of texts.
        if n_sealed > 0 && self.is_read_closed(stream_id, aggregate_id) {
            return Err(KeyError::ReadWithoutKey { plan: plan.to_owned() }.into());
        }
        let tags = event.tags().iter().filter(|tag| !tag.starts_with(TAG)).cloned();
        let tags = tags.chain([format!("{TAG}{name}")]).collect::<Vec<_>>();
        event.with_tags(tags).with_json(data, metadata)
    }

    fn open_one(&self, recorded: &mut Recorded, access: Option<&Access>) {
        let (mut is_closed, mut n_opened) = (false, 0_usize);
        let mut broken = None;
        let Recorded { event_id, stream_id, aggregate_id, event_type, .. } = &*recorded;
        let mut open = |json: &str, root: &str| {
            sealing::replaced(json, root, |field, written| {
                let text = written.strip_prefix(PREFIX)?;
                Some(match access {
                    Some(Access::Open(key)) => {
                        n_opened += 1;
                        let place = Place { event_id: *event_id, stream_id, aggregate_id, event_type, field };
                        key.open(&place, text).unwrap_or_else(|| {
                            broken = Some(field.to_owned());
                            sealed::BROKEN.to_owned()
                        })
                    }
                    Some(Access::Destroyed) => SHREDDED.to_owned(),
                    Some(Access::NoOperatorKey | Access::NoSessionKey) | None => {
                        is_closed = true;
                        SEALED.to_owned()
                    }
                })
            })
        };
        let (data, metadata) = (open(&recorded.data, "data"), open(&recorded.metadata, "metadata"));
        if let Some(field) = broken {
            let position = recorded.position;
            tracing::warn!(%position, field, "a sealed text was modified or moved");
        }
        if is_closed {
            self.note_closed(recorded);
        } else if n_opened > 0 {
            self.note_opened(recorded);
        }
        // The lookup has already warned about an unusable key.
        if is_closed && let (Some(access), Some(name)) = (access, sealed::key_of(&recorded.tags)) {
            let plan = sealing::plan_of(&recorded.stream_id, &recorded.aggregate_id, &recorded.tags);
            let plan = plan.unwrap_or(&recorded.aggregate_id);
            // Without an operator's key it does not matter which key is missing.
            let told_of = if matches!(access, Access::NoOperatorKey) { "" } else { name };
            self.tell(told_of, || self.why_closed(access, name, plan));
        }
        recorded.data = data.unwrap_or_else(|| std::mem::take(&mut recorded.data));
        recorded.metadata = metadata.unwrap_or_else(|| std::mem::take(&mut recorded.metadata));
    }

    /// Remembers that an aggregate was read with placeholders.
    fn note_closed(&self, recorded: &Recorded) {
        let of = (recorded.stream_id.clone(), recorded.aggregate_id.clone());
        self.known(|known| {
            if known.read_closed.len() >= READ_CLOSED_MAX && !known.read_closed.contains_key(&of) {
                known.read_closed.clear();
            }
            let first = known.read_closed.entry(of).or_insert(recorded.position);
            *first = recorded.position.min(*first);
        });
    }

    /// A reader that repeats the first event it could not decrypt also repeats all later ones.
    fn note_opened(&self, recorded: &Recorded) {
        self.known(|known| {
            if known.read_closed.is_empty() {
                return;
            }
            let of = (recorded.stream_id.clone(), recorded.aggregate_id.clone());
            if known.read_closed.get(&of) == Some(&recorded.position) {
                known.read_closed.remove(&of);
            }
        });
    }

    fn is_read_closed(&self, stream_id: &str, aggregate_id: &str) -> bool {
        let of = (stream_id.to_owned(), aggregate_id.to_owned());
        self.known(|known| known.read_closed.contains_key(&of))
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        match error {
            // A retry may succeed.
            error @ (KeyError::File { .. } | KeyError::NoRandomness(_)) => Self::storage("using a key", error),
            error => Self::Veil(Arc::new(error)),
        }
    }
}
