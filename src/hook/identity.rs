//! Which agent a hook acts for: the launcher's name, else the session, else the process of the agent program.

use crewlog_executors::crew::{Caller, Join, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{Agent, Agents, Liveness, Profile};

use super::dialect::{Moment, SubAgent};
use super::moments::Hook;
use super::process::named;
use crate::cli::Host;

/// The most characters of a subagent's kind, and of its id, in its name.
const KIND_CHARS_MAX: usize = 20;
const ID_CHARS_MAX: usize = 8;

impl Hook<'_> {
    /// The caller, and its agent, if it has joined.
    pub async fn known(&self) -> Result<Option<(Caller, Agent)>, Refusal> {
        let agents = self.crew.agents().await?;
        let name = match &self.call.agent {
            Some(sub) => agents.joined_as(&self.session_below(sub), None).map(str::to_owned),
            None => self.own(&agents)?,
        };
        let Some((name, agent)) = name.and_then(|name| Some((name.clone(), agents.get(&name)?.clone()))) else {
            return Ok(None);
        };
        drop(agents);
        let worktree = self.here.name().to_owned();
        Ok(Some((Caller { worktree, ..self.crew.caller(&name).await? }, agent)))
    }

    /// The caller, which joins if it has not yet. Where a host's tools get no id of its session, its process is the session,
    /// so that they agree.
    pub async fn joined(&self) -> Result<Caller, Refusal> {
        if let Some((caller, agent)) = self.known().await? {
            // A session may go on in another program, and a server tells none.
            let is_told = self.call.moment != Moment::Start && program_of(&agent).is_some();
            if is_told || !self.owns(&agent) {
                return Ok(caller);
            }
        }
        let session = self.of_process().unwrap_or_else(|| self.call.session.clone());
        let own = (self.origin.agent.clone(), None, session);
        let Some(sub) = &self.call.agent else { return self.join(own).await };
        let parent = self.own(&*self.crew.agents().await?)?;
        let parent = match parent {
            Some(parent) => parent,
            None => self.join(own).await?.agent,
        };
        self.join((Some(name_below(sub)), Some(parent), self.session_below(sub))).await
    }

    async fn join(&self, of: (Option<String>, Option<String>, String)) -> Result<Caller, Refusal> {
        let (name, parent, session) = of;
        let program = self.call.host.program().to_owned();
        let profile = Profile {
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: self.here.name().to_owned(),
            process: self.origin.ancestors.first().map(|process| self.crew.process_of(&program, process)),
            program,
        };
        Ok(self.crew.join(Join { name, parent, session, profile }).await?.caller)
    }

    /// Whether the session of an agent is that of the hook, and not one that only handed its name down.
    pub fn owns(&self, agent: &Agent) -> bool {
        let is_own = agent.session == self.call.session || self.of_process().as_ref() == Some(&agent.session);
        is_own || self.call.agent.is_some()
    }

    /// The agent of the session itself. A name of the launcher's that is silent, or has left, is joined again. A session that
    /// starts takes its name from an older one, but not from the program that it runs in.
    fn own(&self, agents: &Agents) -> Result<Option<String>, CrewError> {
        let Some(name) = &self.origin.agent else {
            let above = self.origin.ancestors.iter().filter(|_| self.has_only_process());
            let mut sessions = [&self.call.session].into_iter().chain(above);
            return Ok(sessions.find_map(|session| agents.joined_as(session, None)).map(str::to_owned));
        };
        let Some(agent) = agents.get(name).filter(|agent| agent.liveness == Liveness::Alive) else { return Ok(None) };
        let is_above = |program: &str| self.origin.ancestors.iter().any(|above| above == program);
        let is_elsewhere = !self.owns(agent) && program_of(agent).is_some_and(|program| !is_above(program));
        match is_elsewhere {
            false => Ok(Some(name.clone())),
            true if self.call.moment == Moment::Start => Ok(None),
            true => Err(CrewError::Superseded(name.clone())),
        }
    }

    /// The session of an agent whose host gives its tools no id of one.
    fn of_process(&self) -> Option<String> {
        let process = self.origin.ancestors.first().filter(|_| self.has_only_process())?;
        Some(named(process, self.origin.agent.as_deref()))
    }

    /// Gemini CLI and opencode give their MCP servers no id of a session.
    fn has_only_process(&self) -> bool {
        matches!(self.call.host, Host::Gemini | Host::Opencode)
    }

    fn session_below(&self, sub: &SubAgent) -> String {
        format!("{}/{}", self.call.session, sub.id)
    }
}

/// The program of an agent, as one of [`ancestors`](super::process::ancestors); unset where only its server is known.
fn program_of(agent: &Agent) -> Option<&str> {
    let (_, process) = agent.profile.process.as_ref()?.worker.split_once('.')?;
    Some(process).filter(|process| process.starts_with("process:"))
}

/// The kind and the beginning of the id: subagents of one kind run at the same time.
fn name_below(sub: &SubAgent) -> String {
    let plain = |text: &str, chars_max: usize| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(chars_max).collect()
    };
    let kind = plain(sub.kind.as_deref().unwrap_or("sub"), KIND_CHARS_MAX).to_ascii_lowercase();
    format!("{}-{}", kind.trim_start_matches('-'), plain(&sub.id, ID_CHARS_MAX)).trim_matches('-').to_owned()
}
