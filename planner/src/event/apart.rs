//! What an agent is told of its plan, apart from the dispatch: it is as long as the token budget lets it be, and of all who
//! read a plan only who carries the task out needs it. It takes out and puts back, and decides nothing.

use crewlog_mq::{Error, Event as MqEvent, Metadata, NewEvent, Part, Position, Recorded};
use serde::{Deserialize, Serialize};

use crate::claim;
use crate::event::{Event, Parameters, PlannerCmd, STREAM, TaskResult};
use crate::plan::TaskId;

/// The stream of what tasks are told apart from their dispatches; an aggregate of it is that of the task.
pub const TOLD_STREAM: &str = "told";

/// What is shorter than this, in bytes, stays in the dispatch.
pub const APART_BYTES_MIN: usize = 1_024;

/// The tag that such an event bears in place of those of its plan, so that who reads the plan does not read it.
#[must_use]
pub fn told_tag(plan: &str) -> String {
    format!("told:{plan}")
}

/// What a task was told apart from its dispatch, in the same append.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToldEvent {
    /// Of one dispatch. Each field is that of [`Parameters`].
    TaskTold {
        /// The dispatch.
        attempt: u32,
        /// Why the attempts before this one came to nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        earlier: Vec<String>,
        /// What came of the tasks that it depends on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<TaskResult>,
        /// What the plan is about and what has been done so far.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        context: String,
        /// What models are told first.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
    },
}

impl MqEvent for ToldEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::TaskTold { .. } => "TaskTold",
        }
    }
}

/// A dispatch without what stands apart of it, or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpaired {
    /// What its agent is told is missing.
    Dispatch,
    /// Nobody is told it.
    Told,
}

impl std::fmt::Display for Unpaired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dispatch => {
                "what the agent is told stands apart from this dispatch (told_apart), and is not in its append"
            }
            Self::Told => {
                "before this there is no dispatch in the same append of which it stands apart, so nobody is told it"
            }
        })
    }
}

/// Of the events of one append, in order, those that miss each other: to each dispatch that says so belongs one event, behind
/// it, and to no other. What cannot be read is passed over.
#[must_use]
pub fn unpaired(append: &[Recorded]) -> Vec<(Position, Unpaired)> {
    let (mut open, mut alone) = (Vec::new(), Vec::new());
    for recorded in append {
        if recorded.stream_id == STREAM {
            let dispatch = recorded.decode().ok().and_then(|event| told_of(&recorded.aggregate_id, &event));
            open.extend(dispatch.map(|dispatch| (dispatch, recorded.position)));
        } else if recorded.stream_id == TOLD_STREAM {
            let Ok(ToldEvent::TaskTold { attempt, .. }) = recorded.decode() else { continue };
            let is_its = |((aggregate_id, of), _): &((String, u32), Position)| {
                *aggregate_id == recorded.aggregate_id && *of == attempt && is_tagged(recorded)
            };
            match open.iter().position(is_its) {
                Some(place) => drop(open.swap_remove(place)),
                None => alone.push((recorded.position, Unpaired::Told)),
            }
        }
    }
    alone.extend(open.into_iter().map(|(_, position)| (position, Unpaired::Dispatch)));
    alone.sort_by_key(|(position, _)| *position);
    alone
}

/// The aggregate and the attempt of what stands apart of an event, where something does.
fn told_of(plan: &str, event: &Event) -> Option<(String, u32)> {
    match event {
        Event::TaskDispatched { task_id, attempt, command: PlannerCmd::ExecuteTask { parameters, .. }, .. } => {
            parameters.told_apart.then(|| (claim::aggregate_id(plan, *task_id), *attempt))
        }
        _another => None,
    }
}

/// Whether it bears the tag by which it is read.
fn is_tagged(told: &Recorded) -> bool {
    let tag = claim::split_aggregate_id(&told.aggregate_id).map(|(plan, _)| told_tag(plan));
    tag.is_some_and(|tag| told.tags.contains(&tag))
}

impl Parameters {
    /// Takes out what stands apart, if it is long enough for that.
    pub(super) fn part(
        &mut self,
        (plan, task, attempt): (&str, TaskId, u32),
        tags: &[String],
    ) -> Result<Option<Part>, Error> {
        let results = self.results.iter().map(|result| result.description.len() + result.result.len());
        let earlier = self.earlier.iter().map(String::len);
        let n_bytes = self.context.len() + self.system_prompt.len() + results.chain(earlier).sum::<usize>();
        if self.told_apart || n_bytes < APART_BYTES_MIN {
            return Ok(None);
        }
        self.told_apart = true;
        let told = ToldEvent::TaskTold {
            attempt,
            earlier: std::mem::take(&mut self.earlier),
            results: std::mem::take(&mut self.results),
            context: std::mem::take(&mut self.context),
            system_prompt: std::mem::take(&mut self.system_prompt),
        };
        let is_of_plan = |tag: &&String| !["plan:", "under:"].iter().any(|of| tag.starts_with(of));
        let tags = tags.iter().filter(is_of_plan).cloned().chain([told_tag(plan)]);
        let event = NewEvent::of(&told, &Metadata::default())?.with_tags(tags);
        let aggregate_id = claim::aggregate_id(plan, task);
        Ok(Some(Part { stream_id: TOLD_STREAM.to_owned(), aggregate_id, event }))
    }

    /// Puts back what stands apart of this dispatch; what is of another changes nothing.
    pub fn join(&mut self, dispatch: u32, told: ToldEvent) {
        let ToldEvent::TaskTold { attempt, earlier, results, context, system_prompt } = told;
        if self.told_apart && attempt == dispatch {
            (self.earlier, self.results, self.context, self.system_prompt) = (earlier, results, context, system_prompt);
            self.told_apart = false;
        }
    }
}
