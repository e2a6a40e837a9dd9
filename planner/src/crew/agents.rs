//! The agents of a project: their presence, their work, and the times of their last calls.
//!
//! A name belongs to one session at a time. If that session joins again, it resumes. Another session may take the name over
//! once its holder is silent, has ended, or continues as that session; from then on calls of the older one are refused. A
//! subagent's name starts with its parent's, which has to start it.
//!
//! The declared state of an agent is separate from its liveness: any call shows that it is alive. A call is a sign of life,
//! which is no event; a timer records silence.

pub mod health;
mod session;
mod signs;
mod wish;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::session::{Activity, Health, ModelUsage, RateLimit, Report, SessionState};
pub use self::wish::Wish;

use super::CrewError;
use super::names::{RESERVED, is_below, is_name};
use super::refusal::check_length;
use super::target::Target;
use crate::claim::Executor;

/// The stream of agents. An aggregate of it is a project.
pub const STREAM: &str = "agents";
/// After this time without a call an agent is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(1_800);
/// After this time without a call it is lost.
pub const LOST_AFTER: Duration = Duration::from_secs(3_600);
/// The shortest time between two signs of life of an agent, unless a lease needs them more often.
pub const SEEN_EVERY: Duration = Duration::from_secs(60);
/// The most agents of a project, without those that have left.
pub const AGENTS_MAX: usize = 1_000;
/// The most of them below one agent, with it.
pub const FAMILY_MAX: usize = 100;
/// The longest text in a profile or a report, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;
/// The most capabilities of an agent, and the most targets of its focus.
pub const WORDS_MAX: usize = 50;

/// The profile of an agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The program: `claude-code`, `codex`.
    pub program: String,
    /// The model, if known.
    pub model: Option<String>,
    /// Its capabilities, as it describes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The files that it intends to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<Target>,
    /// The worktree that it works in: its machine and its path.
    pub worktree: String,
    /// The process that speaks for it, if its death can be proven.
    pub process: Option<Executor>,
    /// The process of its program, which its hooks and commands have above them.
    pub program_process: Option<String>,
}

impl Profile {
    /// Fills gaps from an earlier profile: hooks know less about an agent than its own calls.
    fn or(self, known: &Self) -> Self {
        let or = |new: Vec<String>, known: &[String]| if new.is_empty() { known.to_vec() } else { new };
        Self {
            model: self.model.or_else(|| known.model.clone()),
            capabilities: or(self.capabilities, &known.capabilities),
            focus: if self.focus.is_empty() { known.focus.clone() } else { self.focus },
            process: self.process.or_else(|| known.process.clone()),
            program_process: self.program_process.or_else(|| known.program_process.clone()),
            ..self
        }
    }
}

/// The liveness of an agent, judged by its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Liveness {
    /// It makes calls.
    Alive,
    /// It has not called for [`STUCK_AFTER`].
    Stuck,
    /// It has not called for [`LOST_AFTER`] and is not proven to live, or it is proven dead.
    Lost,
    /// It left.
    Left,
}

/// An event of the agents of a project. `epoch` is the number of the session in the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AgentEvent {
    /// A session joined under this name.
    AgentJoined {
        agent: String,
        session: String,
        profile: Profile,
        epoch: u64,
        at: Timestamp,
        /// True if the earlier session was alive: its calls are refused from now on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        supersedes: bool,
    },
    /// Its profile changed.
    AgentProfileChanged { agent: String, profile: Profile, at: Timestamp },
    /// It reported on its work.
    AgentReported { agent: String, report: Report, at: Timestamp },
    /// A timer fired.
    TimerFired { due: Timestamp },
    /// It made no call for [`STUCK_AFTER`].
    AgentStuck { agent: String, at: Timestamp },
    /// It makes no calls, but its program runs: it is not lost.
    AgentProven { agent: String, at: Timestamp },
    /// It made no call for [`LOST_AFTER`], or is proven dead.
    AgentLost { agent: String, at: Timestamp, is_dead: bool },
    /// It was stuck or lost, and made a call.
    AgentRecovered { agent: String, at: Timestamp },
    /// Its health changed. `until` is the known end of a limit.
    AgentHealthChanged {
        agent: String,
        health: Health,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        at: Timestamp,
    },
    /// It left.
    AgentLeft { agent: String, outcome: LeaveOutcome, note: String, next_step: String, at: Timestamp },
}

/// The outcome of an agent's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum LeaveOutcome {
    #[default]
    Success,
    Failure,
}

impl MqEvent for AgentEvent {}

/// A command to the agents of a project; `now` is log time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AgentCommand {
    /// A session joins.
    Join { wish: Wish, session: String, profile: Box<Profile>, now: Timestamp },
    /// It made a call.
    See { agent: String, now: Timestamp },
    /// It reports on its work.
    Report { agent: String, report: Report, now: Timestamp },
    /// Its program has shown its state, from which its health follows.
    Judge { agent: String, now: Timestamp },
    /// It is proven dead, by the end of this process.
    Bury { agent: String, process: Executor, now: Timestamp },
    /// It leaves.
    Leave { agent: String, outcome: LeaveOutcome, note: String, next_step: String, now: Timestamp },
    /// Records the agents that have been silent for too long. `proven` are those whose programs run on this host.
    FireTimer { now: Timestamp, proven: BTreeSet<String> },
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its profile.
    pub profile: Profile,
    /// The session that holds its name.
    pub session: String,
    /// The number of that session in the project, from 1.
    pub epoch: u64,
    /// Its last report.
    pub report: Report,
    /// Its liveness.
    pub liveness: Liveness,
    seen: Timestamp,
    /// When it last reported.
    reported: Option<Timestamp>,
    health: Health,
    health_reason: String,
    /// The end of a limit, if it is limited and the end is known.
    pub limited_until: Option<Timestamp>,
    /// When its health changed.
    pub health_since: Timestamp,
    /// Its last call by a sign of life, which is no event.
    #[serde(skip)]
    heard: Timestamp,
    #[serde(skip)]
    observed: SessionState,
    /// When its program was last proven to run, while it was silent.
    pub proven: Timestamp,
    /// When it joined.
    pub since: Timestamp,
}

impl Agent {
    /// True if it has lost its tasks: it left, or for [`LOST_AFTER`] it neither called nor was proven to live.
    #[must_use]
    pub fn is_gone(&self, now: Timestamp) -> bool {
        matches!(self.liveness, Liveness::Lost | Liveness::Left) || now.since(self.last_sign()) >= LOST_AFTER
    }

    /// When it last called or was proven to live.
    fn last_sign(&self) -> Timestamp {
        self.seen().max(self.proven)
    }

    /// When its silence is next to be recorded: as stuck, then as lost, or, if it is `proven` to live, as that.
    fn due(&self, proven: bool) -> Option<Timestamp> {
        match self.liveness {
            Liveness::Alive => Some(self.seen().plus(STUCK_AFTER)),
            Liveness::Stuck if proven => Some(self.last_sign().plus(STUCK_AFTER)),
            Liveness::Stuck => Some(self.last_sign().plus(LOST_AFTER)),
            Liveness::Lost | Liveness::Left => None,
        }
    }

    /// True for a run that crewlog started: it takes no other task.
    #[must_use]
    pub fn is_run(&self) -> bool {
        self.session.starts_with(Wish::OF_RUN)
    }

    /// True if it was seen so recently that another call says nothing.
    #[must_use]
    pub fn was_seen(&self, now: Timestamp) -> bool {
        self.liveness == Liveness::Alive && now.since(self.seen()) < SEEN_EVERY
    }
}

/// The agents of a project, by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Agents {
    agents: BTreeMap<String, Agent>,
    n_sessions: u64,
}

impl Snapshot for Agents {
    const FOLD: &'static str = "agents";
    const VERSION: u32 = 3;
}

impl Agents {
    /// An agent.
    #[must_use]
    pub fn get(&self, agent: &str) -> Option<&Agent> {
        self.agents.get(agent)
    }

    /// All agents by name, including those that have left.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Agent)> {
        self.agents.iter().map(|(name, agent)| (name.as_str(), agent))
    }

    /// The name that a session holds: as itself, or below a parent.
    #[must_use]
    pub fn joined_as(&self, session: &str, parent: Option<&str>) -> Option<&str> {
        let depth = |name: &&str| name.matches('/').count();
        match parent {
            None => self.held_by(session).min_by_key(depth),
            Some(parent) => {
                self.held_by(session).filter(|name| *name != parent && is_below(name, parent)).max_by_key(depth)
            }
        }
    }

    fn held_by(&self, session: &str) -> impl Iterator<Item = &str> {
        let own = self.iter().filter(move |(_, agent)| agent.session == session && agent.liveness != Liveness::Left);
        own.map(|(name, _)| name)
    }

    /// The agent and its subagents, the most deeply nested first, without those that have left.
    pub fn present_below<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a str> {
        let present = self.iter().filter(|(_, found)| found.liveness != Liveness::Left).map(|(name, _)| name);
        let below: Vec<_> = present.filter(move |name| is_below(name, agent)).collect();
        below.into_iter().rev()
    }

    /// Checks that a session may act as an agent.
    ///
    /// # Errors
    /// [`CrewError::Unknown`], [`CrewError::Left`] or [`CrewError::Superseded`].
    pub fn check(&self, agent: &str, epoch: u64) -> Result<&Agent, CrewError> {
        match self.agents.get(agent) {
            Some(found) if found.epoch != epoch => Err(CrewError::Superseded(agent.to_owned())),
            Some(_) | None => self.known(agent),
        }
    }

    /// Those that are alive or stuck.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        let present = self.iter().filter(|(_, agent)| matches!(agent.liveness, Liveness::Alive | Liveness::Stuck));
        present.map(|(name, _)| name)
    }

    /// Those whose silence is due, if they are proven to live.
    pub fn silent(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.iter().filter(move |(_, agent)| agent.due(true).is_some_and(|due| due <= now)).map(|(name, _)| name)
    }

    /// When a silence is next to be recorded, if the agents stay silent and those in `proven` live.
    #[must_use]
    pub fn next_due(&self, proven: &BTreeSet<String>) -> Option<Timestamp> {
        self.agents.iter().filter_map(|(name, agent)| agent.due(proven.contains(name))).min()
    }

    fn known(&self, agent: &str) -> Result<&Agent, CrewError> {
        let found = self.agents.get(agent).ok_or_else(|| CrewError::Unknown(agent.to_owned()))?;
        if found.liveness == Liveness::Left { Err(CrewError::Left(agent.to_owned())) } else { Ok(found) }
    }

    fn join(
        &self,
        wish: &Wish,
        session: String,
        profile: Profile,
        now: Timestamp,
    ) -> Result<Vec<AgentEvent>, CrewError> {
        let texts = profile.capabilities.iter().chain([&profile.program, &profile.worktree, &session]);
        check_texts("a profile", texts.chain(&profile.model).chain(&profile.program_process))?;
        check_length("a profile", profile.capabilities.len().max(profile.focus.len()), WORDS_MAX)?;
        let agent = self.name_for(wish, &session, &profile.program)?;
        let known = self.agents.get(&agent);
        if let Some(known) = known.filter(|known| known.session == session && known.liveness != Liveness::Left) {
            let mut events = self.see(&agent, now)?;
            let profile = profile.or(&known.profile);
            if known.profile != profile {
                events.push(AgentEvent::AgentProfileChanged { agent, profile, at: now });
            }
            return Ok(events);
        }
        if known.is_some_and(|known| !is_free(known, wish)) {
            return Err(CrewError::Taken(agent));
        }
        let family = agent.split('/').next().unwrap_or_default();
        let n_present = self.agents.values().filter(|agent| agent.liveness != Liveness::Left).count();
        if n_present >= AGENTS_MAX {
            return Err(full());
        }
        if agent.contains('/') && self.present_below(family).count() >= FAMILY_MAX {
            return Err(CrewError::Full(format!("{family} has {FAMILY_MAX} agents (family_max): let some leave")));
        }
        let supersedes = known.is_some_and(|known| matches!(known.liveness, Liveness::Alive | Liveness::Stuck));
        let epoch = self.n_sessions + 1;
        Ok(vec![AgentEvent::AgentJoined { agent, session, profile, epoch, at: now, supersedes }])
    }

    /// The name that a session gets: the one that it insists on, else the one that it holds, else the given one or one made
    /// from its program's, whichever is free. A session without a parent keeps its name, whatever it wants later.
    ///
    /// # Errors
    /// An invalid name, an absent parent, or [`CrewError::Full`].
    pub fn name_for(&self, wish: &Wish, session: &str, program: &str) -> Result<String, CrewError> {
        let parent = wish.parent.as_deref();
        // That of a run is its task's. One that is too long for a name is made from the program's.
        let task = wish.given.as_ref().filter(|_| session.starts_with(Wish::OF_RUN) && parent.is_none());
        let above = task.and_then(|task| task.split_once('/')).map(|(plan, _)| plan).or(parent);
        let wanted = wish.full_name().filter(|name| task.is_none() || is_name(name));
        let wanted = wanted.map(|name| checked(name, above)).transpose();
        if let Some(parent) = parent {
            self.known(parent)?;
        }
        if let Some(own) = self.joined_as(session, parent).filter(|_| parent.is_none() || wish.name.is_none()) {
            return wanted.map(|_| own.to_owned());
        }
        if let Some(wanted) = wanted? {
            let may_have = |name: &String| self.agents.get(name).is_none_or(|known| is_free(known, wish));
            let next = (2..=AGENTS_MAX).map(|n| format!("{wanted}-{n}")).filter(|name| is_name(name));
            return match wish.name.is_some() || may_have(&wanted) {
                true => Ok(wanted),
                false => checked(next.clone().find(may_have).ok_or_else(full)?, above),
            };
        }
        let below = |name: &str| parent.map_or_else(|| name.to_owned(), |parent| format!("{parent}/{name}"));
        let base: String = program.chars().filter(|c| c.is_ascii_alphanumeric()).take(24).collect();
        let base = if base.is_empty() { "agent".to_owned() } else { base.to_ascii_lowercase() };
        let free = |name: &String| self.agents.get(name).is_none_or(|agent| agent.liveness == Liveness::Left);
        let name = (1..=AGENTS_MAX).map(|n| below(&format!("{base}-{n}"))).find(free).ok_or_else(full)?;
        checked(name, parent)
    }

    fn see(&self, agent: &str, now: Timestamp) -> Result<Vec<AgentEvent>, CrewError> {
        let found = self.known(agent)?;
        let agent = agent.to_owned();
        Ok(match found.liveness {
            Liveness::Stuck | Liveness::Lost => vec![AgentEvent::AgentRecovered { agent, at: now }],
            Liveness::Alive | Liveness::Left => Vec::new(),
        })
    }

    /// Forgets an agent that has left once there are too many.
    fn forget(&mut self) {
        if self.agents.len() <= 2 * AGENTS_MAX {
            return;
        }
        let left = self.agents.iter().filter(|(_, agent)| agent.liveness == Liveness::Left);
        if let Some(name) = left.min_by_key(|(_, agent)| agent.seen).map(|(name, _)| name.clone()) {
            self.agents.remove(&name);
        }
    }

    fn fire(&self, now: Timestamp, proven: &BTreeSet<String>) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let mut first = None;
        for (name, agent) in self.iter() {
            let is_proven = proven.contains(name);
            let Some(due) = agent.due(is_proven).filter(|due| *due <= now) else { continue };
            first = Some(first.map_or(due, |first: Timestamp| first.min(due)));
            let name = || name.to_owned();
            if !is_proven && agent.is_gone(now) {
                events.push(AgentEvent::AgentLost { agent: name(), at: now, is_dead: false });
                continue;
            }
            if agent.liveness == Liveness::Alive {
                events.push(AgentEvent::AgentStuck { agent: name(), at: now });
            }
            events.extend(is_proven.then(|| AgentEvent::AgentProven { agent: name(), at: now }));
        }
        let mut events: Vec<_> = first.map(|due| AgentEvent::TimerFired { due }).into_iter().chain(events).collect();
        let mut next = self.clone();
        events.iter().for_each(|event| next.apply(event));
        events.extend(next.judge(None, now));
        events
    }
}

fn full() -> CrewError {
    CrewError::Full(format!("the project has {AGENTS_MAX} agents (agents_max): let some leave"))
}

/// True if another session may have the name of an agent.
fn is_free(known: &Agent, wish: &Wish) -> bool {
    known.liveness != Liveness::Alive || wish.over.as_ref() == Some(&known.session)
}

fn checked(name: String, parent: Option<&str>) -> Result<String, CrewError> {
    let says = match (is_name(&name), name.split_once('/')) {
        (true, None) => return Ok(name),
        (true, Some(_)) if parent.is_some_and(|parent| is_below(&name, parent)) => return Ok(name),
        (true, Some((above, _))) => {
            format!("is the name of a subagent: only {above} can start it, which `parent` proves")
        }
        (false, _) if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) => {
            "is not for agents: choose another name".to_owned()
        }
        (false, _) => {
            "is not a valid agent name: use up to 32 letters, digits, `.`, `_` and `-`, with `/` before a subagent"
                .to_owned()
        }
    };
    Err(CrewError::Invalid(format!("{name:?} {says}")))
}

fn check_texts<'a>(what: &str, mut texts: impl Iterator<Item = &'a String>) -> Result<(), CrewError> {
    texts.try_for_each(|text| check_length(what, text.len(), TEXT_BYTES_MAX))
}

impl Handler for Agents {
    type Command = AgentCommand;
    type Event = AgentEvent;
    type Error = CrewError;

    fn decide(&self, command: AgentCommand) -> Result<Vec<AgentEvent>, CrewError> {
        match command {
            AgentCommand::Join { wish, session, profile, now } => self.join(&wish, session, *profile, now),
            AgentCommand::See { agent, now } => self.see(&agent, now),
            AgentCommand::Report { agent, report, now } => {
                check_texts("a report", [&report.task, &report.step, &report.note].into_iter().flatten())?;
                let mut events = self.see(&agent, now)?;
                if self.agents.get(&agent).is_some_and(|known| known.report != report) {
                    events.push(AgentEvent::AgentReported { agent, report, at: now });
                }
                Ok(events)
            }
            AgentCommand::Judge { agent, now } => Ok(self.judge(Some(&agent), now)),
            AgentCommand::Bury { agent, process, now } => {
                // It may have left, or continued in another process, since its death was noticed.
                let found = self.agents.get(&agent).filter(|found| found.liveness != Liveness::Left);
                let is_news = found.is_some_and(|found| found.profile.process.as_ref() == Some(&process));
                Ok(is_news.then_some(AgentEvent::AgentLost { agent, at: now, is_dead: true }).into_iter().collect())
            }
            AgentCommand::Leave { agent, outcome, note, next_step, now } => {
                check_texts("a note", [&note, &next_step].into_iter())?;
                self.known(&agent)?;
                Ok(vec![AgentEvent::AgentLeft { agent, outcome, note, next_step, at: now }])
            }
            AgentCommand::FireTimer { now, proven } => Ok(self.fire(now, &proven)),
        }
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
                reported: None,
                health: Health::Healthy,
                health_reason: String::new(),
                limited_until: None,
                health_since: *at,
                heard: Timestamp::default(),
                observed: SessionState::default(),
                proven: Timestamp::default(),
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
            AgentEvent::AgentProven { .. } => agent.proven = at,
            AgentEvent::AgentLost { is_dead, .. } => {
                agent.liveness = Liveness::Lost;
                // It may continue through another process, such as its hooks; the old one no longer proves its life.
                agent.profile.process = agent.profile.process.take().filter(|_| !is_dead);
            }
            AgentEvent::AgentLeft { .. } => agent.liveness = Liveness::Left,
            AgentEvent::AgentRecovered { .. } => (agent.liveness, agent.seen) = (Liveness::Alive, at),
            AgentEvent::AgentReported { report, .. } => {
                agent.report = report.clone();
                (agent.seen, agent.reported) = (at, Some(at));
            }
            AgentEvent::AgentProfileChanged { profile, .. } => {
                agent.profile = profile.clone();
                agent.seen = at;
            }
            AgentEvent::AgentHealthChanged { health, reason, until, .. } => {
                (agent.health, agent.health_reason) = (*health, reason.clone());
                (agent.limited_until, agent.health_since) = (*until, at);
            }
            AgentEvent::AgentJoined { .. } | AgentEvent::TimerFired { .. } => {}
        }
    }
}

impl AgentEvent {
    /// The agent that the event concerns, and its time.
    #[must_use]
    pub fn of_agent(&self) -> Option<(&str, Timestamp)> {
        match self {
            Self::AgentJoined { agent, at, .. }
            | Self::AgentProfileChanged { agent, at, .. }
            | Self::AgentReported { agent, at, .. }
            | Self::AgentStuck { agent, at }
            | Self::AgentProven { agent, at }
            | Self::AgentLost { agent, at, .. }
            | Self::AgentRecovered { agent, at }
            | Self::AgentHealthChanged { agent, at, .. }
            | Self::AgentLeft { agent, at, .. } => Some((agent, *at)),
            Self::TimerFired { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
