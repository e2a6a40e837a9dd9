//! One step of a replay: an event, why it came and what it changed, as text and as JSON. It reads no log.

use std::collections::HashMap;
use std::io::{self, Write};

use crewlog_mq::{Error, Position, Recorded};
use crewlog_planner::claim;
use crewlog_planner::event::{self, Event, TaskStatus};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::changes::{Change, in_short};
use crate::failure::Failure;
use crate::text::{one_line, rfc3339, visible};

/// Changes that the text of a step tells; JSON has all of them.
const CHANGES_TOLD_MAX: usize = 40;
/// The most characters that the text of a step gives to one field, to all of them, and to a command.
const FIELD_CHARS_MAX: usize = 60;
const FIELDS_CHARS_MAX: usize = 300;
const COMMAND_CHARS_MAX: usize = 200;

/// Where the events of a plan stand, without what they say.
#[derive(Default)]
pub struct Index {
    events: Vec<Indexed>,
    by_id: HashMap<Uuid, usize>,
}

struct Indexed {
    position: Position,
    event_type: String,
    is_failure: bool,
}

impl Index {
    /// Takes in the next event.
    pub fn push(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let is_failure = is_failure(recorded)?;
        let event_type = recorded.event_type.clone();
        self.by_id.insert(recorded.event_id, self.events.len());
        self.events.push(Indexed { position: recorded.position, event_type, is_failure });
        Ok(())
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The position of the event at a place, from 0 on; 0 when there is none.
    pub fn position(&self, place: usize) -> Position {
        self.events.get(place).map_or(Position(0), |event| event.position)
    }

    /// How many events stand at or before a position.
    pub fn n_up_to(&self, position: Position) -> usize {
        self.events.partition_point(|event| event.position <= position)
    }

    /// Whether something fails with the event at a place.
    pub fn is_failure(&self, place: usize) -> bool {
        self.events.get(place).is_some_and(|event| event.is_failure)
    }

    fn type_at(&self, position: Position) -> Option<&str> {
        let place = self.events.binary_search_by_key(&position, |event| event.position).ok()?;
        Some(&self.events[place].event_type)
    }

    fn cause(&self, event_id: Uuid) -> CauseJson<'_> {
        let event = self.by_id.get(&event_id).map(|place| &self.events[*place]);
        CauseJson {
            position: event.map(|event| event.position),
            event_type: event.map(|event| event.event_type.as_str()),
            event_id,
        }
    }
}

/// What an event follows from.
#[derive(Serialize)]
struct CauseJson<'a> {
    /// Unset when the cause is no event of the plan.
    position: Option<Position>,
    event_type: Option<&'a str>,
    event_id: Uuid,
}

/// An event of a replay.
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
    changes: &'a [Change],
}

/// Whether a task fails, times out or is cancelled with this event, or an executor reports a failure.
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

/// An event, and what it changed.
pub struct Step {
    pub recorded: Recorded,
    /// What it changed of the plan.
    pub changes: Vec<Change>,
}

impl Step {
    /// As JSON; causes are looked up among the plan's events.
    pub fn json<'a>(&'a self, index: &'a Index) -> Result<StepJson<'a>, Failure> {
        let recorded = &self.recorded;
        let metadata = recorded.metadata()?;
        let mut extra = metadata.extra.unwrap_or_default();
        Ok(StepJson {
            position: recorded.position,
            created_at: rfc3339(recorded.created_at),
            stream_id: &recorded.stream_id,
            aggregate_id: &recorded.aggregate_id,
            event_type: &recorded.event_type,
            data: serde_json::from_str(&recorded.data)?,
            cause: metadata.causation_id.map(|cause| index.cause(cause)),
            command: extra.get_mut("command").map(Value::take).filter(|command| !command.is_null()),
            changes: &self.changes,
        })
    }

    /// As text: the event, its fields, why it came, and what it changed.
    pub fn print(&self, mut to: impl Write, index: &Index) -> Result<(), Failure> {
        let step = self.json(index)?;
        let aggregate = format!("{} {}", step.stream_id, step.aggregate_id);
        let (position, created_at) = (step.position, &step.created_at);
        writeln!(to, "{position:>6}  {created_at}  {}  {}", visible(&aggregate), visible(step.event_type))?;
        let mut line = |text: &str| writeln!(to, "        {}", visible(text));
        let fields = fields(step.data);
        if !fields.is_empty() {
            line(&fields)?;
        }
        line(&why(&step, &self.recorded, index))?;
        let n_told = tell(&self.changes, CHANGES_TOLD_MAX, |change| line(&format!("* {change}")))?;
        if n_told == 0 {
            line("* nothing of the plan")?;
        }
        Ok(())
    }
}

/// Tells changes in lines, at most so many of them, and how many more there are. How many it told.
fn tell(changes: &[Change], max: usize, mut line: impl FnMut(&str) -> io::Result<()>) -> io::Result<usize> {
    let mut n_told = 0;
    for change in in_short(changes) {
        if n_told < max {
            line(&change.to_string())?;
        }
        n_told += 1;
    }
    if n_told > max {
        line(&format!("and {} more", n_told - max))?;
    }
    Ok(n_told)
}

fn why(step: &StepJson, recorded: &Recorded, index: &Index) -> String {
    let command = step.command.as_ref().map(command_words);
    let first = recorded.append_start;
    match (&step.cause, command) {
        (None, Some(command)) if command.starts_with("SetTimers ") || command.starts_with("FireTimer ") => {
            format!("because of the time: {command}")
        }
        (None, Some(command)) => format!("asked by a person: {command}"),
        (None, None) if first < recorded.position => {
            format!("in one append with {first} {}", index.type_at(first).unwrap_or("of another plan"))
        }
        (None, None) => "asked from outside".to_owned(),
        (Some(cause), command) => {
            let command = command.map_or_else(String::new, |command| format!(": {command}"));
            match (cause.position, cause.event_type) {
                (Some(position), Some(event_type)) => format!("because of {position} {event_type}{command}"),
                (_, _) => format!("because of event {}, which is not of this plan{command}", cause.event_id),
            }
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

/// The fields of an event in one line, each of them short; what is null is left out.
fn fields(data: &RawValue) -> String {
    let parsed = serde_json::from_str(data.get()).unwrap_or_else(|_| Value::String(data.get().to_owned()));
    match parsed {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(key, value)| format!("{key}: {}", short(value)));
            one_line(&fields.collect::<Vec<_>>().join(", "), FIELDS_CHARS_MAX)
        }
        Value::Null => String::new(),
        value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => short(&value),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.trim().is_empty() => format!("{text:?}"),
        Value::String(text) => one_line(text, FIELD_CHARS_MAX),
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            format!("[{} of them]", values.len())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            one_line(&value.to_string(), FIELD_CHARS_MAX)
        }
    }
}
