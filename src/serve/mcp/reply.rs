//! The results of calls: JSON of at most 8 KB, also for refusals, which are results with a safe next step.

use crewlog_executors::crew::Refusal;
use crewlog_mq::Error;
use crewlog_planner::claim::TaskError;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{Blocked, By};
use crewlog_planner::crew::target::TargetError;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::once::Repeated;
use crate::ui::text::rfc3339;

/// The longest result, in bytes of JSON.
const BYTES_MAX: usize = 8_192;

/// The most bytes for one page of a list.
const PAGE_BYTES_MAX: usize = 6_500;

/// The code of a call that is wrong in any state of the log.
const INVALID: &str = "invalid";

/// The codes of refusals after which a retry may succeed.
const RETRYABLE: [&str; 7] = ["busy", "cancelled", "held", "in_progress", "log_failed", "not_ready", "taken"];

/// The result of a call. Absent properties may be null here; no schema allows null, so clients do not see them.
pub type Reply = Result<Value, Refused>;

/// The reason why a call is refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    code: &'static str,
    pub message: String,
    next: &'static str,
    /// Leases and requests of others in the way.
    denied: Vec<Value>,
    /// Alternatives: free paths and tasks.
    free: Option<Box<Value>>,
}

impl Refused {
    pub fn new(code: &'static str, message: impl Into<String>, next: &'static str) -> Self {
        Self { code, message: message.into(), next, denied: Vec::new(), free: None }
    }

    pub fn with_free(self, free: Value) -> Self {
        Self { free: Some(Box::new(free)), ..self }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID, message, "correct the arguments: the message and the schema of the tool say how")
    }

    pub fn into_result(self) -> CallToolResult {
        let Self { code, message, next, denied, free } = self;
        let is_invalid = code == INVALID;
        let mut result = result_of(json!({
            "status": if is_invalid { INVALID } else { "denied" }, "code": code, "message": message,
            "retryable": RETRYABLE.contains(&code), "next": next, "denied": Some(denied).filter(|list| !list.is_empty()),
            "free": free,
        }));
        result.is_error = Some(is_invalid);
        result
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        const OTHER_TASK: &str = "take another with next_task";
        let mut message = refusal.to_string();
        let (code, next) = match refusal {
            Refusal::Crew(CrewError::Held(blocked)) => {
                let next =
                    "do other work, call reserve_paths with wait_seconds, or ask the holder with request_release";
                return Self { denied: blocked.iter().map(blocked_json).collect(), ..Self::new("held", message, next) };
            }
            Refusal::Store(error) => return error.into(),
            Refusal::Crew(CrewError::Superseded(_)) => {
                ("superseded", "stop editing: another session has your name. Call join with another name")
            }
            Refusal::Crew(CrewError::Taken(_)) => ("name_taken", "join with another name, or with none"),
            Refusal::Crew(CrewError::Left(_) | CrewError::Unknown(_)) => ("not_joined", "call join"),
            Refusal::Task(TaskError::Held { executor, .. }) => {
                message = format!("{} has the task", executor.name);
                ("taken", OTHER_TASK)
            }
            Refusal::Task(TaskError::Parked) => ("parked", OTHER_TASK),
            Refusal::NotReady(_) | Refusal::Task(TaskError::AttemptEnded(_)) => ("not_ready", OTHER_TASK),
            Refusal::Busy => ("busy", "call again in a moment"),
            Refusal::Crew(_)
            | Refusal::Task(TaskError::StaleEpoch(_) | TaskError::Blocked(_))
            | Refusal::NoTask(_)
            | Refusal::NoRecipient(_) => {
                ("refused", "the message says why: change the call, or do other work and call again later")
            }
        };
        Self::new(code, message, next)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let (code, next) = match error.is_final() {
            true => ("log_lost", "tell the person: the log was closed, replaced or restored; restart this server"),
            false => ("log_failed", "call again in a moment; tell the person if it stays"),
        };
        Self::new(code, error.to_string(), next)
    }
}

impl From<Repeated> for Refused {
    fn from(repeated: Repeated) -> Self {
        let (code, next) = match repeated {
            Repeated::KeyReused => ("key_reused", "choose another key for another call"),
            Repeated::InProgress => ("in_progress", "call again in a moment"),
            Repeated::ResultLost => {
                ("done", "do not repeat it: look at its effect with list_tasks, list_leases or read_inbox")
            }
        };
        Self::new(code, repeated.to_string(), next)
    }
}

impl From<TargetError> for Refused {
    fn from(error: TargetError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// The result of a call: as a structure and as text.
pub fn result_of(mut value: Value) -> CallToolResult {
    fit(&mut value);
    CallToolResult::structured(value)
}

/// The first entries that fit on a page, and true if there are more.
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

/// Drops nulls, then halves the largest list or text of a result until it is short enough, and reports that.
pub fn fit(value: &mut Value) {
    drop_nulls(value);
    while value.to_string().len() > BYTES_MAX {
        halve(value);
        value["note"] = json!("lists and texts were shortened");
    }
}

/// Removes the properties that are null.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn halve(value: &mut Value) {
    match value {
        Value::String(text) => *text = beginning(text, text.chars().count() / 2),
        Value::Array(list) if list.len() > 1 => list.truncate(list.len() / 2),
        Value::Array(list) => list.iter_mut().for_each(halve),
        Value::Object(object) => {
            let largest = object.values_mut().max_by_key(|value| value.to_string().len());
            largest.into_iter().for_each(halve);
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

pub fn blocked_json(blocked: &Blocked) -> Value {
    let lease = match blocked.by {
        By::Lease(number) => Some(number),
        By::Waiting(_) => None,
    };
    json!({
        "path": blocked.asked.path,
        "holder": blocked.holder.agent,
        "pattern": blocked.target.path,
        "lease_id": lease,
        "exclusive": blocked.is_exclusive,
        "expires_at": rfc3339(blocked.until),
        "task": blocked.task,
    })
}
