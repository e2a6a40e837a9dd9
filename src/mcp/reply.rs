//! The results of calls: JSON of at most 8 KB, also for refusals, which are results that say what to do next.

use std::borrow::Cow;

use crewlog_executors::crew::Refusal;
use crewlog_mq::Error;
use crewlog_planner::claim::TaskError;
use crewlog_planner::crew::CrewError;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

/// The longest result, in bytes of JSON.
pub const BYTES_MAX: usize = 8_192;
const INVALID: &str = "invalid";
/// What a page of a list may take of it.
const PAGE_BYTES_MAX: usize = 6_500;

/// Why a call is refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub code: &'static str,
    pub message: String,
    is_retryable: bool,
    next: Cow<'static, str>,
    /// `invalid` if the call itself is wrong, else `denied` or what the tool calls it.
    status: &'static str,
    /// Boxed to keep results small.
    details: Box<JsonObject>,
}

impl Refused {
    pub fn new(code: &'static str, message: impl Into<String>, next: impl Into<Cow<'static, str>>) -> Self {
        let (message, next, details) = (message.into(), next.into(), Box::default());
        Self { code, message, is_retryable: false, next, status: "denied", details }
    }

    /// A call that no state of the log could make right.
    pub fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: INVALID, ..Self::new(code, message, "call the tool again with arguments that fit its schema") }
    }

    /// The same call may succeed later.
    pub fn retryable(self) -> Self {
        Self { is_retryable: true, ..self }
    }

    pub fn with_status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    /// Adds a property of the tool's result.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }

    pub fn into_result(self) -> CallToolResult {
        let Self { code, message, is_retryable, next, status, details } = self;
        let facts =
            json!({ "status": status, "code": code, "message": message, "retryable": is_retryable, "next": next });
        let mut value = facts.as_object().cloned().unwrap_or_default();
        value.extend(*details);
        let mut result = result_of(value);
        result.is_error = Some(status == INVALID);
        result
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let (code, is_retryable, next) = match &refusal {
            Refusal::Crew(refusal) => of_crew(refusal),
            Refusal::Task(refusal) => of_task(refusal),
            Refusal::NoTask(_) => {
                ("not_found", false, "look with list_tasks or read_inbox, and name one that is there")
            }
            Refusal::NoRecipient(_) => ("no_recipient", false, "call get_status with view agents for the names"),
            Refusal::Busy => ("busy", true, "call again in a moment"),
            Refusal::Store(error) => return error.into(),
        };
        Self { is_retryable, ..Self::new(code, message, next) }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        if error.is_final() {
            let next = "tell the person that the log was closed, replaced or restored, and that this server has to be started again";
            return Self::new("log_lost", error.to_string(), next);
        }
        Self::new("log_failed", error.to_string(), "call again in a moment; tell the person if it stays").retryable()
    }
}

type Reason = (&'static str, bool, &'static str);

fn of_crew(refusal: &CrewError) -> Reason {
    match refusal {
        CrewError::Invalid(_) => ("bad_arguments", false, "correct what the message names, and call again"),
        CrewError::Full(_) => ("full", true, "release what you do not need and try later, or ask_person"),
        CrewError::Missing(_) => ("not_found", false, "list_leases and read_inbox list what you can name"),
        CrewError::Held(_) => (
            "held",
            true,
            "work on something else, wait with wait_for_events, or write to the holder with send_message",
        ),
        CrewError::NotYours { .. } => ("not_yours", false, "write to the holder with send_message"),
        CrewError::Unknown(_) | CrewError::Left(_) => ("not_joined", false, "call join"),
        CrewError::Superseded(_) => {
            ("superseded", false, "stop editing: another session has your name. Call join with another name")
        }
    }
}

fn of_task(refusal: &TaskError) -> Reason {
    match refusal {
        TaskError::Held { .. } => ("taken", true, "take another with next_task"),
        TaskError::AttemptEnded(_) => ("ended", false, "take another with next_task"),
        TaskError::StaleEpoch(_) => {
            ("lost", false, "stop this task: you do not hold it any more. Take another with next_task")
        }
        TaskError::Parked => ("parked", false, "take another with next_task: this one waits for the person"),
    }
}

/// The result of a call: structure, and the same as text.
pub fn result_of(mut value: JsonObject) -> CallToolResult {
    fit(&mut value);
    let value = Value::Object(value);
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result
}

/// The entries from the beginning that fit on a page, and whether there are more.
pub fn page<T>(entries: impl IntoIterator<Item = T>, limit: usize, json: impl Fn(T) -> Value) -> (Vec<Value>, bool) {
    let (mut page, mut n_bytes) = (Vec::new(), 0);
    for entry in entries {
        let entry = json(entry);
        n_bytes += entry.to_string().len() + 1;
        if page.len() == limit || (n_bytes > PAGE_BYTES_MAX && !page.is_empty()) {
            return (page, true);
        }
        page.push(entry);
    }
    (page, false)
}

/// Cuts the largest list or text of a result until it is short enough, and says so.
pub fn fit(value: &mut JsonObject) {
    while Value::Object(value.clone()).to_string().len() > BYTES_MAX {
        let sizes = value.iter().map(|(name, value)| (value.to_string().len(), name.clone()));
        let Some((_, largest)) = sizes.max() else { return };
        halve(&mut value[&largest]);
        value.insert("note".to_owned(), json!(format!("{largest} was shortened")));
    }
}

fn halve(value: &mut Value) {
    match value {
        Value::String(text) => *text = beginning(text, text.chars().count() / 2),
        Value::Array(list) if list.len() > 1 => list.truncate(list.len() / 2),
        Value::Array(list) => list.iter_mut().for_each(halve),
        Value::Object(object) => {
            let longest = object.values_mut().max_by_key(|value| value.to_string().len());
            longest.into_iter().for_each(halve);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first characters of a text, marked if it has more.
pub fn beginning(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
