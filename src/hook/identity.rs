//! Which agent a hook acts for: the launcher's name, else the session, else the process of the agent program.

use crewlog_executors::crew::{Caller, Join, Refusal};
use crewlog_planner::crew::agents::{Agents, Liveness, Profile};

use super::dialect::SubAgent;
use super::moments::Hook;
use super::process::named;
use crate::cli::Host;

/// The most characters of a subagent's kind, and of its id, in its name.
const KIND_CHARS_MAX: usize = 20;
const ID_CHARS_MAX: usize = 8;

impl Hook<'_> {
    /// The caller, if it has joined.
    pub async fn known(&self) -> Result<Option<Caller>, Refusal> {
        let agents = self.crew.agents().await?;
        let name = match &self.call.agent {
            Some(sub) => agents.joined_as(&self.session_below(sub), None).map(str::to_owned),
            None => self.own(&agents),
        };
        drop(agents);
        let Some(name) = name else { return Ok(None) };
        let worktree = self.here.name().to_owned();
        Ok(Some(Caller { worktree, ..self.crew.caller(&name).await? }))
    }

    /// The caller, which joins if it has not yet. Where a host's tools get no id of its session, its process is the session,
    /// so that they agree.
    pub async fn joined(&self) -> Result<Caller, Refusal> {
        if let Some(known) = self.known().await? {
            return Ok(known);
        }
        let session = self.of_process().unwrap_or_else(|| self.call.session.clone());
        let own = (self.origin.agent.clone(), None, session);
        let Some(sub) = &self.call.agent else { return self.join(own).await };
        let parent = self.own(&*self.crew.agents().await?);
        let parent = match parent {
            Some(parent) => parent,
            None => self.join(own).await?.agent,
        };
        self.join((Some(name_below(sub)), Some(parent), self.session_below(sub))).await
    }

    async fn join(&self, of: (Option<String>, Option<String>, String)) -> Result<Caller, Refusal> {
        let (name, parent, session) = of;
        let profile = Profile {
            program: self.call.host.program().to_owned(),
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: self.here.name().to_owned(),
            process: None,
        };
        Ok(self.crew.join(Join { name, parent, session, profile }).await?.caller)
    }

    /// Whether the session of an agent is that of the hook, and not one that only handed its name down.
    pub async fn owns(&self, agent: &str) -> Result<bool, Refusal> {
        let agents = self.crew.agents().await?;
        let session = agents.get(agent).map(|agent| agent.session.clone());
        Ok(session.as_ref() == Some(&self.call.session) || session == self.of_process() || self.call.agent.is_some())
    }

    /// The agent of the session itself. A name of the launcher's that is silent, or has left, is joined again.
    fn own(&self, agents: &Agents) -> Option<String> {
        if let Some(name) = &self.origin.agent {
            return agents.get(name).filter(|agent| agent.liveness == Liveness::Alive).map(|_| name.clone());
        }
        let above = self.origin.ancestors.iter().filter(|_| self.has_only_process());
        let mut sessions = [&self.call.session].into_iter().chain(above);
        sessions.find_map(|session| agents.joined_as(session, None)).map(str::to_owned)
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

/// The kind and the beginning of the id: subagents of one kind run at the same time.
fn name_below(sub: &SubAgent) -> String {
    let plain = |text: &str, chars_max: usize| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(chars_max).collect()
    };
    let kind = plain(sub.kind.as_deref().unwrap_or("sub"), KIND_CHARS_MAX).to_ascii_lowercase();
    format!("{}-{}", kind.trim_start_matches('-'), plain(&sub.id, ID_CHARS_MAX)).trim_matches('-').to_owned()
}
