//! The events of a plan one by one: the cause of each and its changes, as text and as JSON.

use std::collections::HashMap;
use std::io::{self, Write};

use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::claim;
use crewlog_planner::event::{self, Event, TaskStatus};
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::changes::{self, Change, in_short};
use crate::failure::Failure;
use crate::queries::for_each;
use crate::text::{one_line, rfc3339, visible};

/// Changes in the text of a step; JSON has all of them.
const CHANGES_SHOWN_MAX: usize = 40;
/// Characters of the data and of the command in the text of a step; JSON has all of them.
const DATA_CHARS_MAX: usize = 300;
const COMMAND_CHARS_MAX: usize = 200;

/// The events of a plan, and the plan as of one of them.
#[derive(Default)]
pub struct Steps {
    events: Vec<Recorded>,
    by_id: HashMap<Uuid, usize>,
    /// The places of the events with which a task fails, times out or is cancelled, or an executor reports a failure.
    pub failures: Vec<usize>,
    /// The number of events applied to the view.
    n_applied: usize,
    pub view: PlanView,
}

impl Steps {
    /// Reads the history of a plan up to a position.
    pub async fn load(store: &EventStore, plan: &str, up_to: Position) -> Result<Self, Failure> {
        let mut steps = Self::default();
        for_each(store, Some(plan), &Query::all(), Range::up_to(up_to), |recorded| {
            let place = steps.events.len();
            steps.failures.extend(is_failure(recorded)?.then_some(place));
            steps.by_id.insert(recorded.event_id, place);
            steps.events.push(recorded.clone());
            Ok(())
        })
        .await?;
        Ok(steps)
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The position of the event at a place, from 0 on.
    pub fn position(&self, place: usize) -> Position {
        self.events[place].position
    }

    /// The number of events at or before a position.
    pub fn n_up_to(&self, position: Position) -> usize {
        self.events.partition_point(|event| event.position <= position)
    }

    /// Moves the view to an event and returns the changes it made. Going back folds from the first event.
    pub fn step(&mut self, place: usize) -> Result<StepJson<'_>, Failure> {
        if place < self.n_applied {
            (self.n_applied, self.view) = (0, PlanView::default());
        }
        self.events[self.n_applied..place].iter().try_for_each(|recorded| self.view.apply(recorded))?;
        let recorded = &self.events[place];
        let changes = changes::step(&mut self.view, recorded)?;
        self.n_applied = place + 1;
        let metadata = recorded.metadata()?;
        let mut extra = metadata.extra.unwrap_or_default();
        let first = self.events.binary_search_by_key(&recorded.append_start, |event| event.position);
        Ok(StepJson {
            position: recorded.position,
            created_at: rfc3339(recorded.created_at),
            stream_id: &recorded.stream_id,
            aggregate_id: &recorded.aggregate_id,
            event_type: &recorded.event_type,
            data: serde_json::from_str(&recorded.data)?,
            cause: metadata.causation_id.map(|event_id| {
                let event = self.by_id.get(&event_id).map(|place| &self.events[*place]);
                let event_type = event.map(|event| event.event_type.as_str());
                CauseJson { position: event.map(|event| event.position), event_type, event_id }
            }),
            command: extra.get_mut("command").map(Value::take).filter(|command| !command.is_null()),
            changes,
            append_start: recorded.append_start,
            first_type: first.map_or("of another plan", |first| &self.events[first].event_type),
        })
    }
}

fn is_failure(recorded: &Recorded) -> Result<bool, Error> {
    match (recorded.stream_id.as_str(), recorded.event_type.as_str()) {
        (claim::STREAM, "TaskFailed") => Ok(true),
        (event::STREAM, "TaskStatusUpdated") => Ok(matches!(
            recorded.decode()?,
            Event::TaskStatusUpdated { status: TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled, .. }
        )),
        _another_type => Ok(false),
    }
}

#[derive(Serialize)]
struct CauseJson<'a> {
    /// Unset when the cause is no event of the plan.
    position: Option<Position>,
    event_type: Option<&'a str>,
    event_id: Uuid,
}

#[derive(Serialize)]
pub struct StepJson<'a> {
    position: Position,
    created_at: String,
    stream_id: &'a str,
    aggregate_id: &'a str,
    event_type: &'a str,
    data: &'a RawValue,
    cause: Option<CauseJson<'a>>,
    command: Option<Value>,
    changes: Vec<Change>,
    #[serde(skip)]
    append_start: Position,
    /// The type of the first event of the append.
    #[serde(skip)]
    first_type: &'a str,
}

impl StepJson<'_> {
    /// As text: the event, its data, its cause, and its changes.
    pub fn print(&self, mut to: impl Write) -> io::Result<()> {
        let Self { position, created_at, stream_id, aggregate_id, event_type, .. } = self;
        let event = visible(&format!("{stream_id} {aggregate_id}  {event_type}"));
        writeln!(to, "{position:>6}  {created_at}  {event}")?;
        let mut line = |text: &str| writeln!(to, "        {}", visible(text));
        line(&one_line(self.data.get(), DATA_CHARS_MAX))?;
        line(&self.why())?;
        let mut n_changes = 0;
        for change in in_short(&self.changes) {
            n_changes += 1;
            if n_changes <= CHANGES_SHOWN_MAX {
                line(&format!("* {change}"))?;
            }
        }
        match n_changes {
            0 => line("* nothing of the plan"),
            1..=CHANGES_SHOWN_MAX => Ok(()),
            more => line(&format!("* and {} more", more - CHANGES_SHOWN_MAX)),
        }
    }

    fn why(&self) -> String {
        let command = self.command.as_ref().map(command_words);
        let Some(cause) = &self.cause else {
            return match command {
                Some(command) if command.starts_with("SetTimers ") || command.starts_with("FireTimer ") => {
                    format!("because of the time: {command}")
                }
                Some(command) => format!("asked by a person: {command}"),
                None if self.append_start < self.position => {
                    format!("in one append with {} {}", self.append_start, self.first_type)
                }
                None => "asked from outside".to_owned(),
            };
        };
        let command = command.map_or_else(String::new, |command| format!(": {command}"));
        match (cause.position, cause.event_type) {
            (Some(position), Some(event_type)) => format!("because of {position} {event_type}{command}"),
            (_, _) => format!("because of event {}, which is not of this plan{command}", cause.event_id),
        }
    }
}

/// A recorded command, with its name first.
fn command_words(command: &Value) -> String {
    let named = command.as_object().filter(|command| command.len() == 1).and_then(|command| command.iter().next());
    match named {
        Some((name, fields)) if fields.as_object().is_none_or(serde_json::Map::is_empty) => one_line(name, 40),
        Some((name, fields)) => format!("{} {}", one_line(name, 40), one_line(&fields.to_string(), COMMAND_CHARS_MAX)),
        None => one_line(&command.to_string(), COMMAND_CHARS_MAX),
    }
}
