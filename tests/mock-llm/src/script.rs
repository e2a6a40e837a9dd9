//! The script of a mock model: matches requests in any protocol with replies, tool calls or faults.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Asked;
use crate::filled::fill;

/// The longest delay of a reply, in milliseconds.
const DELAY_MS_MAX: u64 = 3_600_000;

/// One scripted reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reply {
    /// The API key of the agent whose turn it is; a reply without a key answers requests of all other keys.
    #[serde(skip)]
    agent: Option<String>,
    /// The requests it matches.
    when: When,
    /// How many requests it answers: a number, `"always"`, or one when unset.
    times: Option<Value>,
    #[serde(skip)]
    n_left: u64,
    /// The answer; a `json` is stored here, too.
    text: Option<String>,
    json: Option<Value>,
    /// The tools to call.
    pub calls: Vec<Call>,
    /// The reply waits until each of these agents has sent that many requests with tools.
    pub after: BTreeMap<String, usize>,
    /// The tokens it reports as used; estimated when unset.
    pub usage: Option<Usage>,
    pub finish: Finish,
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
    model: Option<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub name: String,
    /// Responses only: the group of tools it is in.
    pub namespace: Option<String>,
    /// The arguments. A text `"{{task_id}}"` is replaced by the last member `task_id` of the results so far.
    #[serde(default)]
    pub args: serde_json::Map<String, Value>,
    /// Responses only: the input of a custom tool, instead of arguments.
    pub input: Option<String>,
}

/// The tokens that a reply reports.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    pub input: u32,
    pub output: u32,
}

/// The finish reason of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finish {
    #[default]
    Stop,
    Length,
    Refusal,
}

impl Finish {
    /// Its name in a protocol, from the names of stop, length and refusal.
    pub(crate) fn named(self, [stop, length, refusal]: [&'static str; 3]) -> &'static str {
        match self {
            Self::Stop => stop,
            Self::Length => length,
            Self::Refusal => refusal,
        }
    }
}

/// A fault, by its name in the protocols of the providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    RateLimited,
    Overloaded,
    ServerError,
    Unauthorized,
    TimeOut,
    Cut,
    MalformedJson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow, default)]
    replies: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    agents: BTreeMap<String, Vec<&'a RawValue>>,
}

impl Reply {
    /// The answer to a request without tools, such as for a title or a model: it is part of no script.
    pub(crate) fn side() -> Self {
        let answer =
            json!({ "title": "A title", "reasoning": "none", "complexity_reasoning": "none", "complexity_score": 1 });
        Self { text: Some(answer.to_string()), ..Self::default() }
    }

    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// True if there is a text next to the calls: real models refuse an empty one in the rest of the conversation.
    pub(crate) fn has_text(&self) -> bool {
        !self.text().is_empty() || self.calls.is_empty()
    }

    /// A reply as read from the file, if its parts go together.
    fn checked(self) -> Result<Self, String> {
        // These faults replace the text; the others affect it.
        let replaces = |fault: Fault| !matches!(fault, Fault::Cut | Fault::MalformedJson);
        let replaced = self.fault.is_some_and(replaces);
        let has_answer = self.text.is_some() || self.json.is_some();
        let is_of_http = replaced && self.fault != Some(Fault::TimeOut);
        let n_left = match &self.times {
            None => Some(1),
            Some(times) if times == "always" => Some(u64::MAX),
            Some(times) => times.as_u64().filter(|n| *n > 0),
        };
        let is_of_load = matches!(self.fault, Some(Fault::RateLimited | Fault::Overloaded));
        let wrong = if n_left.is_none() {
            "times is a number from 1, or \"always\""
        } else if self.text.is_some() && self.json.is_some() {
            "a reply has \"text\" or \"json\", not both"
        } else if has_answer && replaced {
            "with this fault no text comes: leave \"text\" and \"json\" out"
        } else if !has_answer && self.calls.is_empty() && self.fault.is_none() {
            "a reply has \"text\", \"json\", \"calls\" or \"fault\""
        } else if !self.calls.is_empty() && (replaced || self.finish != Finish::Stop) {
            "\"calls\" come with no \"finish\", and with no fault that replaces the answer"
        } else if self.retry_after.is_some() && !is_of_load {
            "\"retry_after\" belongs to the faults rate_limited and overloaded"
        } else if self.retry_after.is_some_and(|seconds| !(0.0..=86_400.0).contains(&seconds)) {
            "\"retry_after\" is 0 to 86400 seconds"
        } else if self.message.is_some() && !is_of_http {
            "\"message\" belongs to a fault of HTTP"
        } else if self.delay_ms > DELAY_MS_MAX {
            return Err(format!("\"delay_ms\" is at most {DELAY_MS_MAX}"));
        } else {
            let text = self.json.as_ref().map(Value::to_string);
            return Ok(Self { text: text.or(self.text), n_left: n_left.unwrap_or_default(), ..self });
        };
        Err(wrong.into())
    }
}

/// The line and column of an error, counted from 1, and its message.
type Wrong = (usize, usize, String);

/// The JSON reader's error for a part of the file that starts there.
fn wrong_json(error: &serde_json::Error, (line, column): (usize, usize)) -> Wrong {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let column = if error.line() > 1 { error.column() } else { column - 1 + error.column() };
    (line + error.line().max(1) - 1, column, error.to_string().replace(&place, ""))
}

/// The replies of a file, and the API keys of its agents.
fn parse(text: &str) -> Result<(Vec<Reply>, Vec<String>), Wrong> {
    let File { replies, agents } = serde_json::from_str(text).map_err(|error| wrong_json(&error, (1, 1)))?;
    let keys = agents.keys().cloned().collect::<Vec<_>>();
    let reply = |raw: &RawValue, agent: Option<&String>| {
        // It is part of the text.
        let before = &text[..raw.get().as_ptr() as usize - text.as_ptr() as usize];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let place = (before.matches('\n').count() + 1, before[line_start..].len() + 1);
        let wrong = |message| (place.0, place.1, message);
        let reply = serde_json::from_str::<Reply>(raw.get()).map_err(|error| wrong_json(&error, place))?;
        let reply = reply.checked().map_err(wrong)?;
        match reply.after.keys().find(|key| !keys.contains(key)) {
            Some(unknown) => Err(wrong(format!("\"after\" has {unknown:?}, which is none of \"agents\""))),
            None => Ok(Reply { agent: agent.cloned(), ..reply }),
        }
    };
    let turns = agents.iter().flat_map(|(agent, turns)| turns.iter().map(move |turn| (turn, Some(agent))));
    let all = replies.iter().map(|raw| (raw, None)).chain(turns);
    let parsed = all.map(|(raw, agent)| reply(raw, agent)).collect::<Result<_, _>>()?;
    Ok((parsed, keys))
}

/// The remaining replies.
#[derive(Debug)]
pub struct Script {
    left: Mutex<Vec<Reply>>,
    /// Their API keys.
    pub(crate) agents: Vec<String>,
}

impl Script {
    /// Reads fixtures; the name is that of their file.
    ///
    /// # Errors
    /// The error of the text, with line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (replies, agents) = parse(text).map_err(|(line, column, message)| {
            format!(
                "{name}:{line}:{column}: {message}; \
                 the form is {{\"replies\": [{{\"when\": {{\"prompt\": ...}}, \"text\": ...}}, ...], \
                 \"agents\": {{\"KEY\": [{{\"calls\": [{{\"name\": ..., \"args\": ...}}]}}, ...]}}}}"
            )
        })?;
        Ok(Self { left: Mutex::new(replies), agents })
    }

    /// The first remaining reply that matches; consumes one use. Fails if none is left, or its calls do not fit the
    /// request.
    pub(crate) fn next(&self, asked: &Asked) -> Result<Reply, String> {
        let none = || format!("the fixtures have no reply left for this request to {:?}", asked.model);
        // Its holders cannot panic.
        let mut left = self.left.lock().map_err(|_poisoned| none())?;
        let matches = |reply: &Reply| reply.agent == asked.agent && reply.when.matches(asked);
        let place = left.iter().position(matches).ok_or_else(none)?;
        let mut reply = left[place].clone();
        left[place].n_left -= 1;
        if left[place].n_left == 0 {
            left.remove(place);
        }
        for call in &mut reply.calls {
            if asked.wire.name() != "responses" && (call.input.is_some() || call.namespace.is_some()) {
                return Err(format!("the call of {} has what only the protocol responses knows", call.name));
            }
            for value in call.args.values_mut() {
                *value = fill(value, &asked.results).map_err(|error| format!("the call of {}: {error}", call.name))?;
            }
        }
        Ok(reply)
    }
}

impl When {
    fn matches(&self, asked: &Asked) -> bool {
        self.prompt.as_ref().is_none_or(|part| asked.prompt.contains(part.as_str()))
            && self.model.as_ref().is_none_or(|model| *model == asked.model)
    }
}
