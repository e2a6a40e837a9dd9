//! The state of an agent: as it reports it, and as its program shows it without an event.

use std::collections::BTreeMap;

use crewlog_mq::Timestamp;
use serde::{Deserialize, Serialize};

/// The state that an agent declares, or its program shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Activity {
    Working,
    Thinking,
    #[default]
    Idle,
    /// For its person, who may have to allow something.
    Waiting,
    Blocked,
    Error,
}

/// A report of an agent about its work.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its state.
    pub activity: Activity,
    /// The task that it works on.
    pub task: Option<String>,
    /// The current step of the task.
    pub step: Option<String>,
    /// How much of its context is used, in percent.
    pub context_usage: Option<u8>,
    /// A note in its own words.
    pub note: Option<String>,
}

/// The state of an agent as its program shows it to hooks. Unknown values are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// Its state; absent until a hook shows it.
    pub activity: Option<Activity>,
    /// The last tool of its turn, with its file or the first words of its command.
    pub doing: Option<String>,
    /// The kind of the error that ended its turn.
    pub error: Option<String>,
    /// The start of its turn.
    pub turn: Timestamp,
    /// The last time that its program showed it.
    pub at: Timestamp,
    /// Its use of the model.
    #[serde(flatten)]
    pub usage: ModelUsage,
}

/// The use of a model by a session. Unknown values are absent, never 0.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelUsage {
    /// How much of the context is used, in percent.
    pub context_usage: Option<u8>,
    /// The tokens in the context.
    pub tokens: Option<u64>,
    /// The cost of the session, in millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// The rate limits of its account by their windows, such as `five_hour`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, RateLimit>,
}

/// The use of a rate limit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// In percent.
    pub used: u8,
    /// The end of its window.
    pub until: Option<Timestamp>,
}

impl ModelUsage {
    /// Takes over the values that a newer one knows.
    pub fn update(&mut self, newer: Self) {
        self.context_usage = newer.context_usage.or(self.context_usage);
        self.tokens = newer.tokens.or(self.tokens);
        self.cost_micros = newer.cost_micros.or(self.cost_micros);
        self.limits.extend(newer.limits);
    }

    /// The end of the last limit that is used up.
    #[must_use]
    pub fn limited_until(&self, now: Timestamp) -> Option<Timestamp> {
        let used_up = self.limits.values().filter(|limit| limit.used >= 100);
        used_up.filter_map(|limit| limit.until).filter(|until| now < *until).max()
    }
}

/// The health of an agent. Of several that apply the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Health {
    /// Nothing is wrong.
    #[default]
    Healthy,
    /// It works, and nothing has happened for ten minutes.
    Slow,
    /// Its context is used by more than 85 percent.
    Context,
    /// It works, and is stuck.
    Stalled,
    /// A rate limit keeps it from working.
    Limited,
    /// An error ended its turn, or it reported one.
    Error,
}
