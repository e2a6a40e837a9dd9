//! The state of agents: as they report it, and, without events, by their signs of life and as their programs show it.

use std::collections::BTreeMap;

use crewlog_mq::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Agent, Agents};

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
pub struct Observed {
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
    pub usage: Usage,
}

/// The use of a model by a session. Unknown values are absent, never 0.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
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

impl Usage {
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

impl Agent {
    /// The time of its last call, to about a minute.
    pub fn seen(&self) -> Timestamp {
        self.seen.max(self.heard)
    }

    /// Its state as its program shows it.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Takes in its state as its program shows it.
    pub fn show(&mut self, shown: Observed) {
        self.observed = shown;
    }

    /// Its state: as it reported in its turn, else as its program shows it.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let is_newer = self.reported.is_none_or(|reported| reported < self.observed.turn);
        self.observed.activity.filter(|_| is_newer).unwrap_or(self.report.activity)
    }

    /// How much of its context is used, in percent: its program knows better than the agent.
    #[must_use]
    pub fn context_usage(&self) -> Option<u8> {
        self.observed.usage.context_usage.or(self.report.context_usage)
    }
}

impl Agents {
    /// Takes in when an agent was last seen, and its state then, which no event says.
    pub fn hear(&mut self, agent: &str, at: Timestamp, observed: impl FnOnce() -> Option<Observed>) {
        let Some(agent) = self.agents.get_mut(agent).filter(|agent| agent.heard < at) else { return };
        agent.heard = at;
        if let Some(observed) = observed() {
            agent.observed = observed;
        }
    }
}
