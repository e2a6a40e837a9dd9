//! The agents of a project: who is there, what each works on, and since when nothing has been heard of it.
//!
//! A name belongs to one session at a time. Who joins under a name with the session that has it goes on; another session
//! takes the name over, and calls of the older one are refused. A subagent has a name below its parent's.
//!
//! What an agent says of its state is one thing, whether it is alive another: any call of it is a sign of life. Signs are
//! recorded once in a while only, and silence by a timer.

use std::collections::BTreeMap;
use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Timestamp};
use serde::{Deserialize, Serialize};

use super::target::Target;

/// The stream of agents. An aggregate of it is a project.
pub const STREAM: &str = "agents";
/// After this time without a call an agent is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(1_800);
/// After this time without a call it is lost.
pub const LOST_AFTER: Duration = Duration::from_secs(3_600);
/// A sign of life is recorded once in this time at the most.
pub const SEEN_EVERY: Duration = Duration::from_secs(60);
/// The most agents of a project that have not left.
pub const AGENTS_MAX: usize = 1_000;
/// The longest name, with those of its parents.
pub const NAME_BYTES_MAX: usize = 100;
/// How deep subagents may be nested.
pub const DEPTH_MAX: usize = 4;
/// The longest text that an agent says of itself, in bytes; a list has at most [`WORDS_MAX`] of them.
pub const TEXT_BYTES_MAX: usize = 1_000;
/// The most capabilities, or targets of its focus.
pub const WORDS_MAX: usize = 50;

/// Who an agent is.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The program: `claude-code`, `codex`.
    pub program: String,
    /// The model, if it says so.
    pub model: Option<String>,
    /// What it can do, in words of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// What it means to work on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<Target>,
    /// The worktree that it works in: its machine and its path.
    pub worktree: String,
}

/// What an agent says of itself.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Activity {
    Working,
    Thinking,
    #[default]
    Idle,
    Blocked,
    Error,
}

/// What an agent reports.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its state.
    pub activity: Activity,
    /// The task that it is at.
    pub task: Option<String>,
    /// The step of it.
    pub step: Option<String>,
    /// How much of its context is used, in percent.
    pub context_usage: Option<u8>,
    /// Anything else.
    pub note: Option<String>,
}

/// Whether an agent is alive, as far as its calls tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Liveness {
    /// It calls.
    Alive,
    /// It has not called for [`STUCK_AFTER`].
    Stuck,
    /// It has not called for [`LOST_AFTER`], or is proven dead.
    Lost,
    /// It said goodbye.
    Left,
}

/// What happened to the agents of a project. `epoch` is the number of the session in the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AgentEvent {
    /// A session has the name now.
    AgentJoined {
        agent: String,
        session: String,
        profile: Profile,
        epoch: u64,
        at: Timestamp,
        /// True when the session before it was alive: its calls are refused from here on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        supersedes: bool,
    },
    /// It is another program, model or worktree, or has another focus.
    AgentProfileChanged { agent: String, profile: Profile, at: Timestamp },
    /// It says what it does.
    AgentReported { agent: String, report: Report, at: Timestamp },
    /// It has called.
    AgentSeen { agent: String, at: Timestamp },
    /// A time has come.
    TimerFired { due: Timestamp },
    /// It has not called for long.
    AgentStuck { agent: String, at: Timestamp },
    /// It has not called for very long, or is proven dead.
    AgentLost { agent: String, at: Timestamp, is_dead: bool },
    /// It called again.
    AgentRecovered { agent: String, at: Timestamp },
    /// It has left.
    AgentLeft { agent: String, outcome: Outcome, note: String, next_step: String, at: Timestamp },
}

/// How an agent's session ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Outcome {
    #[default]
    Success,
    Failure,
}

impl MqEvent for AgentEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        self.into()
    }
}

/// A command to the agents of a project; `now` is log time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AgentCommand {
    /// A session asks for a name, or for any that is free below its program's or its parent's.
    Join { name: Option<String>, parent: Option<String>, session: String, profile: Profile, now: Timestamp },
    /// It has called.
    See { agent: String, now: Timestamp },
    /// It says what it does.
    Report { agent: String, report: Report, now: Timestamp },
    /// It is proven dead.
    Bury { agent: String, now: Timestamp },
    /// It leaves.
    Leave { agent: String, outcome: Outcome, note: String, next_step: String, now: Timestamp },
    /// See who is silent.
    FireTimer { now: Timestamp },
}

/// Why the agents of a project refuse a command. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AgentError {
    #[error(
        "{0:?} is no name of an agent: use letters, digits, `.`, `_` and `-`, up to 32, with `/` before a subagent"
    )]
    Name(String),
    #[error("there is no agent {0}: join first")]
    Unknown(String),
    #[error("{0} has left: join again")]
    Left(String),
    #[error("{0} was taken over by a newer session: join under another name")]
    Superseded(String),
    #[error("{what} has {n_bytes} bytes or too many parts; at most {TEXT_BYTES_MAX} bytes, {WORDS_MAX} parts")]
    TooLong { what: &'static str, n_bytes: usize },
    #[error("the project has {AGENTS_MAX} agents (agents_max): let some leave")]
    Full,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Who it is.
    pub profile: Profile,
    /// The session that has its name.
    pub session: String,
    /// Which one that is: 1, 2, 3 ...
    pub epoch: u64,
    /// What it said last.
    pub report: Report,
    /// Whether it is alive.
    pub liveness: Liveness,
    /// Its last call that is recorded.
    pub seen: Timestamp,
    /// When it joined.
    pub since: Timestamp,
}

/// The agents of a project, by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Agents {
    agents: BTreeMap<String, Agent>,
    n_sessions: u64,
}

impl Agents {
    /// An agent.
    #[must_use]
    pub fn get(&self, agent: &str) -> Option<&Agent> {
        self.agents.get(agent)
    }

    /// All, by name, with those that have left.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Agent)> {
        self.agents.iter().map(|(name, agent)| (name.as_str(), agent))
    }

    /// The agent that a session is, the deepest if it has subagents.
    #[must_use]
    pub fn of_session(&self, session: &str) -> Option<&str> {
        let own = self.iter().filter(|(_, agent)| agent.session == session && agent.liveness != Liveness::Left);
        own.map(|(name, _)| name).max_by_key(|name| name.matches('/').count())
    }

    /// Checks that a session may act as an agent.
    ///
    /// # Errors
    /// [`AgentError::Unknown`], [`AgentError::Left`] or [`AgentError::Superseded`].
    pub fn check(&self, agent: &str, epoch: u64) -> Result<&Agent, AgentError> {
        let found = self.agents.get(agent).ok_or_else(|| AgentError::Unknown(agent.to_owned()))?;
        match found.liveness {
            _ if found.epoch != epoch => Err(AgentError::Superseded(agent.to_owned())),
            Liveness::Left => Err(AgentError::Left(agent.to_owned())),
            Liveness::Alive | Liveness::Stuck | Liveness::Lost => Ok(found),
        }
    }

    /// When the next agent has been silent for too long.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.agents.values().filter_map(due).min()
    }

    fn decide(&self, command: AgentCommand) -> Result<Vec<AgentEvent>, AgentError> {
        match command {
            AgentCommand::Join { name, parent, session, profile, now } => {
                self.join(name, parent.as_deref(), session, profile, now)
            }
            AgentCommand::See { agent, now } => self.see(&agent, now),
            AgentCommand::Report { agent, report, now } => {
                check_texts("a report", [&report.task, &report.step, &report.note].into_iter().flatten())?;
                let mut events = self.see(&agent, now)?;
                if self.agents.get(&agent).is_some_and(|known| known.report != report) {
                    events.push(AgentEvent::AgentReported { agent, report, at: now });
                }
                Ok(events)
            }
            AgentCommand::Bury { agent, now } => {
                let found = self.present(&agent)?;
                let is_news = found.liveness != Liveness::Lost;
                Ok(is_news.then_some(AgentEvent::AgentLost { agent, at: now, is_dead: true }).into_iter().collect())
            }
            AgentCommand::Leave { agent, outcome, note, next_step, now } => {
                check_texts("a note", [&note, &next_step].into_iter())?;
                self.present(&agent)?;
                Ok(vec![AgentEvent::AgentLeft { agent, outcome, note, next_step, at: now }])
            }
            AgentCommand::FireTimer { now } => Ok(self.fire(now)),
        }
    }

    fn present(&self, agent: &str) -> Result<&Agent, AgentError> {
        let found = self.agents.get(agent).ok_or_else(|| AgentError::Unknown(agent.to_owned()))?;
        if found.liveness == Liveness::Left { Err(AgentError::Left(agent.to_owned())) } else { Ok(found) }
    }

    fn join(
        &self,
        name: Option<String>,
        parent: Option<&str>,
        session: String,
        profile: Profile,
        now: Timestamp,
    ) -> Result<Vec<AgentEvent>, AgentError> {
        let texts = profile.capabilities.iter().chain([&profile.program, &profile.worktree, &session]);
        check_texts("a profile", texts.chain(&profile.model))?;
        if profile.capabilities.len() > WORDS_MAX || profile.focus.len() > WORDS_MAX {
            let n_bytes = profile.capabilities.len().max(profile.focus.len());
            return Err(AgentError::TooLong { what: "a profile", n_bytes });
        }
        let agent = self.name_for(name, parent, &session, &profile.program)?;
        let known = self.agents.get(&agent);
        if let Some(known) = known.filter(|known| known.session == session && known.liveness != Liveness::Left) {
            let mut events = self.see(&agent, now)?;
            if known.profile != profile {
                events.push(AgentEvent::AgentProfileChanged { agent, profile, at: now });
            }
            return Ok(events);
        }
        let n_present = self.agents.values().filter(|agent| agent.liveness != Liveness::Left).count();
        if n_present >= AGENTS_MAX {
            return Err(AgentError::Full);
        }
        let supersedes = known.is_some_and(|known| matches!(known.liveness, Liveness::Alive | Liveness::Stuck));
        let epoch = self.n_sessions + 1;
        Ok(vec![AgentEvent::AgentJoined { agent, session, profile, epoch, at: now, supersedes }])
    }

    /// The name asked for, else the one that the session has, else the first free one.
    fn name_for(
        &self,
        name: Option<String>,
        parent: Option<&str>,
        session: &str,
        program: &str,
    ) -> Result<String, AgentError> {
        if let Some(parent) = parent {
            self.present(parent)?;
        }
        let below = |name: &str| parent.map_or_else(|| name.to_owned(), |parent| format!("{parent}/{name}"));
        if let Some(name) = name {
            // A subagent may be named in full.
            let full = parent.filter(|parent| name.starts_with(&format!("{parent}/"))).map(|_| name.clone());
            let name = full.unwrap_or_else(|| below(&name));
            return if is_name(&name) { Ok(name) } else { Err(AgentError::Name(name)) };
        }
        if let Some(own) = self.of_session(session).filter(|own| parent.is_none_or(|parent| is_below(own, parent))) {
            return Ok(own.to_owned());
        }
        let base: String = program.chars().filter(|c| c.is_ascii_alphanumeric()).take(24).collect();
        let base = if base.is_empty() { "agent".to_owned() } else { base.to_ascii_lowercase() };
        let free = |name: &String| self.agents.get(name).is_none_or(|agent| agent.liveness == Liveness::Left);
        let name = (1..=AGENTS_MAX).map(|n| below(&format!("{base}-{n}"))).find(free).ok_or(AgentError::Full)?;
        if is_name(&name) { Ok(name) } else { Err(AgentError::Name(name)) }
    }

    fn see(&self, agent: &str, now: Timestamp) -> Result<Vec<AgentEvent>, AgentError> {
        let found = self.present(agent)?;
        let agent = agent.to_owned();
        Ok(match found.liveness {
            Liveness::Stuck | Liveness::Lost => vec![AgentEvent::AgentRecovered { agent, at: now }],
            _ if now.since(found.seen) >= SEEN_EVERY => vec![AgentEvent::AgentSeen { agent, at: now }],
            Liveness::Alive | Liveness::Left => Vec::new(),
        })
    }

    /// Keeps what has left only as long as there is room.
    fn forget(&mut self) {
        if self.agents.len() <= 2 * AGENTS_MAX {
            return;
        }
        let left = self.agents.iter().filter(|(_, agent)| agent.liveness == Liveness::Left);
        if let Some(name) = left.min_by_key(|(_, agent)| agent.seen).map(|(name, _)| name.clone()) {
            self.agents.remove(&name);
        }
    }

    fn fire(&self, now: Timestamp) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let mut first = None;
        for (name, agent) in self.iter() {
            let Some(due) = due(agent).filter(|due| *due <= now) else { continue };
            first = Some(first.map_or(due, |first: Timestamp| first.min(due)));
            let agent_name = name.to_owned();
            if now.since(agent.seen) >= LOST_AFTER {
                events.push(AgentEvent::AgentLost { agent: agent_name, at: now, is_dead: false });
            } else {
                events.push(AgentEvent::AgentStuck { agent: agent_name, at: now });
            }
        }
        first.map(|due| AgentEvent::TimerFired { due }).into_iter().chain(events).collect()
    }
}

/// When silence makes an agent stuck, or lost.
fn due(agent: &Agent) -> Option<Timestamp> {
    match agent.liveness {
        Liveness::Alive => Some(agent.seen.plus(STUCK_AFTER)),
        Liveness::Stuck => Some(agent.seen.plus(LOST_AFTER)),
        Liveness::Lost | Liveness::Left => None,
    }
}

/// True of a name that an agent can have: `claude-1`, `claude-1/explorer`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        (1..=32).contains(&part.len()) && part.chars().all(is_plain) && !part.starts_with(['.', '-'])
    };
    name.len() <= NAME_BYTES_MAX && name.split('/').count() <= DEPTH_MAX && name.split('/').all(is_part)
}

/// True of the agent itself and of its subagents.
#[must_use]
pub fn is_below(agent: &str, parent: &str) -> bool {
    agent.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn check_texts<'a>(what: &'static str, texts: impl Iterator<Item = &'a String>) -> Result<(), AgentError> {
    for text in texts {
        if text.len() > TEXT_BYTES_MAX {
            return Err(AgentError::TooLong { what, n_bytes: text.len() });
        }
    }
    Ok(())
}

impl Handler for Agents {
    type Command = AgentCommand;
    type Event = AgentEvent;
    type Error = AgentError;

    fn process(&mut self, command: AgentCommand) -> Result<Vec<AgentEvent>, AgentError> {
        let events = self.decide(command)?;
        events.iter().for_each(|event| self.apply(event));
        Ok(events)
    }

    fn apply(&mut self, event: &AgentEvent) {
        if let AgentEvent::AgentJoined { agent, session, profile, epoch, at, .. } = event {
            let joined = Agent {
                profile: profile.clone(),
                session: session.clone(),
                epoch: *epoch,
                report: Report::default(),
                liveness: Liveness::Alive,
                seen: *at,
                since: *at,
            };
            self.agents.insert(agent.clone(), joined);
            self.n_sessions = *epoch;
            self.forget();
            return;
        }
        let Some((name, at)) = event.of_agent() else { return };
        let Some(agent) = self.agents.get_mut(name) else { return };
        match event {
            AgentEvent::AgentStuck { .. } => agent.liveness = Liveness::Stuck,
            AgentEvent::AgentLost { .. } => agent.liveness = Liveness::Lost,
            AgentEvent::AgentLeft { .. } => agent.liveness = Liveness::Left,
            AgentEvent::AgentSeen { .. } | AgentEvent::AgentRecovered { .. } => {
                agent.liveness = Liveness::Alive;
                agent.seen = at;
            }
            AgentEvent::AgentReported { report, .. } => {
                agent.report = report.clone();
                agent.seen = at;
            }
            AgentEvent::AgentProfileChanged { profile, .. } => {
                agent.profile = profile.clone();
                agent.seen = at;
            }
            AgentEvent::AgentJoined { .. } | AgentEvent::TimerFired { .. } => {}
        }
    }
}

impl AgentEvent {
    /// The agent that it is about, and when it happened.
    #[must_use]
    pub fn of_agent(&self) -> Option<(&str, Timestamp)> {
        match self {
            Self::AgentJoined { agent, at, .. }
            | Self::AgentProfileChanged { agent, at, .. }
            | Self::AgentReported { agent, at, .. }
            | Self::AgentSeen { agent, at }
            | Self::AgentStuck { agent, at }
            | Self::AgentLost { agent, at, .. }
            | Self::AgentRecovered { agent, at }
            | Self::AgentLeft { agent, at, .. } => Some((agent, *at)),
            Self::TimerFired { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
