//! All conflicts of the log with their ends, as a fold: the detector itself forgets resolved conflicts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crewlog_executors::crew::warm::Fold;
use crewlog_mq::{Error, Recorded, Snapshot};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, Moment, TaskRef};
use crewlog_planner::crew::{Projection, Reactor};
use serde_json::json;

use super::{ConflictView, Resolved};
use crate::ui::text::rfc3339;

/// A conflict, and the tags of its events.
#[derive(Clone)]
struct Known {
    view: ConflictView,
    tags: Vec<String>,
}

/// The conflicts up to a position, by project and number.
#[derive(Clone, Default)]
pub struct EveryConflict {
    detector: Conflicts,
    last: Moment,
    /// Shared by the stored states, which may be many.
    known: BTreeMap<(String, u64), Arc<Known>>,
}

impl Fold for EveryConflict {
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        if let Err(error) = self.detector.handle(recorded) {
            tracing::warn!(fold = Conflicts::FOLD, %error, "an event is passed over");
        }
        self.last = Moment { position: recorded.position, at: recorded.created_at };
        Ok(())
    }

    fn end_append(&mut self) {
        for emitted in self.detector.emit() {
            match &emitted.event {
                ConflictEvent::ConflictDetected { conflict, .. } => {
                    let view = ConflictView::of(&emitted.project, &emitted.event, self.last);
                    let known = view.map(|view| Arc::new(Known { view, tags: emitted.tags }));
                    self.known.extend(known.map(|known| ((emitted.project, *conflict), known)));
                }
                ConflictEvent::ConflictResolved { conflict, by: TaskRef { plan, task }, resolution } => {
                    if let Some(known) = self.known.get_mut(&(emitted.project, *conflict)) {
                        let (position, since) = (self.last.position, rfc3339(self.last.at));
                        let (plan, task, resolution) = (plan.clone(), task.to_string(), json!(resolution));
                        Arc::make_mut(known).view.resolved = Some(Resolved { position, since, plan, task, resolution });
                    }
                }
            }
        }
    }
}

impl EveryConflict {
    /// The conflicts, or those with a tag.
    pub fn with(&self, tag: Option<&String>) -> impl Iterator<Item = ConflictView> {
        let known = self.known.values().filter(move |known| tag.is_none_or(|tag| known.tags.contains(tag)));
        known.map(|known| known.view.clone())
    }
}
