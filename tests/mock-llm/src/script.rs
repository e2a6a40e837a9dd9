//! The script of a mock model: which reply or fault answers which request, in any protocol.

use std::sync::Mutex;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Asked;

/// The longest delay of a reply, in milliseconds.
const DELAY_MS_MAX: u64 = 3_600_000;

/// One scripted reply.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The requests it matches.
    pub when: When,
    /// How many requests it answers; any number when unset.
    times: Option<u32>,
    /// The answer.
    pub text: String,
    /// The tokens it reports as used; estimated when unset.
    pub usage: Option<Usage>,
    /// The finish reason.
    pub finish: Finish,
    /// The fault.
    pub fault: Option<Fault>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<f64>,
    /// The message of a fault, instead of the default one.
    pub message: Option<String>,
    /// The delay, in milliseconds.
    pub delay_ms: u64,
}

/// The requests that a reply matches; an unset field matches any.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// A part of the system prompt and messages.
    prompt: Option<String>,
    /// The requested model.
    model: Option<String>,
}

/// The tokens that a reply reports.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Of the request.
    pub input: u32,
    /// Of the reply.
    pub output: u32,
}

/// The finish reason of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finish {
    /// The text is complete.
    #[default]
    Stop,
    /// The text reached the token limit.
    Length,
    /// The content was refused.
    Refusal,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// HTTP 429.
    RateLimited,
    /// HTTP 529.
    Overloaded,
    /// HTTP 500.
    ServerError,
    /// HTTP 401.
    Unauthorized,
    /// No answer ever comes.
    TimeOut,
    /// The connection ends midway.
    Cut,
    /// The answer is not JSON.
    MalformedJson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow)]
    replies: Vec<&'a RawValue>,
}

/// A reply as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    when: When,
    times: Option<Times>,
    text: Option<String>,
    json: Option<Value>,
    usage: Option<Usage>,
    #[serde(default)]
    finish: Finish,
    fault: Option<Fault>,
    retry_after: Option<f64>,
    message: Option<String>,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "times is a number from 1, or \"always\"")]
enum Times {
    Number(std::num::NonZeroU32),
    Word(Always),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Always {
    Always,
}

impl TryFrom<Written> for Reply {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { when, times, text, json, usage, finish, fault, retry_after, message, delay_ms } = written;
        // These faults replace the text; the others affect it.
        let replaces = |fault: Fault| !matches!(fault, Fault::Cut | Fault::MalformedJson);
        let text = match (text, json, fault) {
            (Some(_), Some(_), _) => return Err("a reply has \"text\" or \"json\", not both".into()),
            (Some(_), None, Some(fault)) | (None, Some(_), Some(fault)) if replaces(fault) => {
                return Err("with this fault no text comes: leave \"text\" and \"json\" out".into());
            }
            (None, None, None) => return Err("a reply has \"text\", \"json\" or \"fault\"".into()),
            (None, None, Some(_)) => String::new(),
            (Some(text), None, _) => text,
            (None, Some(json), _) => json.to_string(),
        };
        match (fault, retry_after) {
            (Some(Fault::RateLimited | Fault::Overloaded), Some(seconds)) if !(0.0..=86_400.0).contains(&seconds) => {
                return Err("\"retry_after\" is 0 to 86400 seconds".into());
            }
            (Some(Fault::RateLimited | Fault::Overloaded), _) | (_, None) => {}
            (_, Some(_)) => return Err("\"retry_after\" belongs to the faults rate_limited and overloaded".into()),
        }
        let is_of_http = |fault| replaces(fault) && !matches!(fault, Fault::TimeOut);
        if message.is_some() && !fault.is_some_and(is_of_http) {
            return Err("\"message\" belongs to a fault of HTTP".into());
        }
        if delay_ms > DELAY_MS_MAX {
            return Err(format!("\"delay_ms\" is at most {DELAY_MS_MAX}"));
        }
        let times = match times {
            None => Some(1),
            Some(Times::Number(times)) => Some(times.get()),
            Some(Times::Word(Always::Always)) => None,
        };
        Ok(Self { when, times, text, usage, finish, fault, retry_after, message, delay_ms })
    }
}

/// The error of a file, with line and column from 1.
struct Wrong {
    line: usize,
    column: usize,
    message: String,
}

impl Wrong {
    /// The JSON reader's error for a part of the file that starts there.
    fn of(error: &serde_json::Error, (line, column): (usize, usize)) -> Self {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let column = if error.line() > 1 { error.column() } else { column - 1 + error.column() };
        Self { line: line + error.line().max(1) - 1, column, message: error.to_string().replace(&place, "") }
    }
}

/// The replies of a file.
fn parse(text: &str) -> Result<Vec<Reply>, Wrong> {
    let File { replies } = serde_json::from_str(text).map_err(|error| Wrong::of(&error, (1, 1)))?;
    let reply = |raw: &&RawValue| {
        // It is part of the text.
        let before = &text[..raw.get().as_ptr() as usize - text.as_ptr() as usize];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let place = (before.matches('\n').count() + 1, before[line_start..].len() + 1);
        let written = serde_json::from_str::<Written>(raw.get()).map_err(|error| Wrong::of(&error, place))?;
        Reply::try_from(written).map_err(|message| Wrong { line: place.0, column: place.1, message })
    };
    replies.iter().map(reply).collect()
}

/// The replies that are left.
#[derive(Debug)]
pub struct Script {
    left: Mutex<Vec<Reply>>,
}

impl Script {
    /// Reads fixtures; the name is that of their file.
    ///
    /// # Errors
    /// The error of the text, with line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let replies = parse(text).map_err(|Wrong { line, column, message }| {
            format!(
                "{name}:{line}:{column}: {message}; \
                 the form is {{\"replies\": [{{\"when\": {{\"prompt\": ...}}, \"text\": ...}}, ...]}}"
            )
        })?;
        Ok(Self { left: Mutex::new(replies) })
    }

    /// The first matching reply that is left; one use of it is consumed.
    pub(crate) fn next(&self, asked: &Asked) -> Option<Reply> {
        // Its holders cannot panic.
        let mut left = self.left.lock().ok()?;
        let place = left.iter().position(|reply| reply.when.matches(asked))?;
        let reply = left[place].clone();
        match &mut left[place].times {
            None => {}
            Some(1) => drop(left.remove(place)),
            Some(times) => *times -= 1,
        }
        Some(reply)
    }
}

impl When {
    fn matches(&self, asked: &Asked) -> bool {
        self.prompt.as_ref().is_none_or(|part| asked.prompt.contains(part.as_str()))
            && self.model.as_ref().is_none_or(|model| *model == asked.model)
    }
}
