//! The script of a mock model: which reply or fault answers which request, whatever the protocol.

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
    /// Which requests it is for.
    pub when: When,
    /// How many requests it is for; any number when unset.
    times: Option<u32>,
    /// What comes.
    pub text: String,
    /// The tokens that it says were used; by a rule of thumb when unset.
    pub usage: Option<Usage>,
    /// Why the text ends.
    pub finish: Finish,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<f64>,
    /// What is said of a fault, in place of the usual words.
    pub message: Option<String>,
    /// How long it takes, in milliseconds.
    pub delay_ms: u64,
}

/// Which requests a reply is for; what is unset does not matter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// A part of what is asked, system prompt and messages.
    prompt: Option<String>,
    /// The model that is asked.
    model: Option<String>,
}

/// The tokens that a reply says were used.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Of what was asked.
    pub input: u32,
    /// Of the reply.
    pub output: u32,
}

/// Why a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finish {
    /// It is complete.
    #[default]
    Stop,
    /// It has as many tokens as it may have.
    Length,
    /// Its content was refused.
    Refusal,
}

/// What goes wrong.
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
    /// The connection ends in the middle of the text.
    Cut,
    /// What comes is no JSON.
    MalformedJson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow)]
    replies: Vec<&'a RawValue>,
}

/// A reply as it is written.
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
        // These faults are instead of a text, the others happen to one.
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

/// What is wrong with a file, and where: line and column count from 1.
struct Wrong {
    line: usize,
    column: usize,
    message: String,
}

impl Wrong {
    /// What the reader of JSON says of a part of the file that begins there.
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
        // It is a part of the text.
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
    /// What is wrong with the text, with line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let replies = parse(text).map_err(|Wrong { line, column, message }| {
            format!(
                "{name}:{line}:{column}: {message}; \
                 the form is {{\"replies\": [{{\"when\": {{\"prompt\": ...}}, \"text\": ...}}, ...]}}"
            )
        })?;
        Ok(Self { left: Mutex::new(replies) })
    }

    /// The first reply that is left for such a request, which is used up a little.
    pub(crate) fn next(&self, asked: &Asked) -> Option<Reply> {
        // Nothing that holds it can panic.
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
