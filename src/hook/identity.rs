//! Finds the agent that a hook acts for: that of its session, else of the agent program's process, else the launcher's.

use std::path::PathBuf;

use crewlog_executors::crew::process::{is_elsewhere, named};
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Caller, Crew, Join, Refusal};
use crewlog_planner::claim::Executor;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{Agent, Agents, Liveness, Profile, Wish};
use serde::{Deserialize, Serialize};

use super::dialect::{Call, Moment, SubAgent};
use super::notes::Notes;
use crate::cli::programs::Host;

/// The most characters of a subagent's kind, and of its id, in its name.
const KIND_CHARS_MAX: usize = 20;

const ID_CHARS_MAX: usize = 8;

/// The relation of a hook to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// The hook's session, or subagent, holds the name.
    Session,
    /// The hook's program holds it under another session: the program started a new one, or hooks do not see its id.
    Program,
    /// A program above the hook's holds it, or an unrecorded one. The hook acts for the agent, but ends nothing.
    Nested,
    /// Another program holds it.
    Elsewhere,
    /// The name is free: the agent has left, was silent for too long, or its program is dead.
    Gone,
}

/// The origin of a hook, and its settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    /// Its working directory, which determines the repository whose files are leased.
    pub folder: PathBuf,
    /// The name given to the agent by the launcher.
    pub agent: Option<String>,
    /// The sessions of the processes above it.
    pub ancestors: Vec<String>,
    /// True if leases of other worktrees count too.
    pub is_strict: bool,
    /// True if an edit takes a lease.
    pub lease_on_edit: bool,
    /// The fault of the configuration, without which nothing is written.
    pub unconfigured: Option<String>,
    /// The notes of hooks on this machine. Before a shell command only if its leased files must be listed again.
    #[serde(default)]
    pub notes: Option<Notes>,
}

/// One run of a hook.
pub struct Hook<'a> {
    pub crew: &'a Crew,
    pub origin: &'a Origin,
    pub call: &'a Call,
    /// The worktree of the hook's process, which determines the repository.
    pub home: Worktree,
    /// The worktree that the agent works in.
    pub here: Worktree,
}

impl Origin {
    /// The worktree of the hook's process, and that in which the agent works.
    pub fn worktrees(&self, call: &Call) -> (Worktree, Worktree) {
        let home = Worktree::around(&self.folder);
        let here = home.around_path(&call.cwd, ".git".as_ref()).unwrap_or_else(|| home.clone());
        (home, here)
    }
}

impl<'a> Hook<'a> {
    pub fn new(crew: &'a Crew, origin: &'a Origin, call: &'a Call) -> Self {
        let (home, here) = origin.worktrees(call);
        Self { crew, origin, call, home, here }
    }
}

impl Hook<'_> {
    /// The caller and its agent, if it has joined.
    pub async fn known(&self) -> Result<Option<(Caller, Agent)>, Refusal> {
        let agents = self.crew.agents().await?;
        let name = match &self.call.agent {
            // It may leave, even after another session took its parent's name.
            Some(sub) if self.call.moment == Moment::End => agents.joined_as(&self.session_below(sub), None),
            Some(sub) => agents.joined_as(&self.session_below(sub), self.own(&agents)?),
            None => self.own(&agents)?,
        };
        let Some((name, agent)) = name.and_then(|name| Some((name.to_owned(), agents.get(name)?.clone()))) else {
            return Ok(None);
        };
        agents.check(&name, agent.epoch)?;
        drop(agents);
        let (worktree, epoch) = (self.here.name.clone(), agent.epoch);
        Ok(Some((Caller { agent: name, epoch, worktree }, agent)))
    }

    /// The name whose leases do not count, as far as it can be read: of a session that has not joined, that of its parent,
    /// or of its launcher where it is free; else nobody's.
    pub async fn name_to_compare(&self) -> Result<String, Refusal> {
        if let Some((caller, _)) = self.known().await? {
            return Ok(caller.agent);
        }
        let agents = self.crew.agents().await?;
        if self.call.agent.is_some() {
            return Ok(self.own(&agents)?.map(|parent| format!("{parent}/-")).unwrap_or_default());
        }
        let is_free = |name: &&String| agents.get(name).is_none_or(|agent| self.tie(agent) == Tie::Gone);
        // Below another's name its leases would not count.
        let given = self.origin.agent.as_ref().filter(|name| !name.contains('/')).filter(is_free);
        Ok(given.cloned().unwrap_or_default())
    }

    /// The caller, which joins if necessary. If a host's tools get no id of its session, its process serves as the
    /// session, so that tools and hooks agree.
    pub async fn joined(&self) -> Result<Caller, Refusal> {
        if let Some((caller, agent)) = self.known().await? {
            // A session may continue in another program, and a server records none.
            let is_start = matches!(self.call.moment, Moment::Start | Moment::Moved);
            let is_recorded = !is_start && program_of(&agent).is_some() && !self.crew.is_dead(&agent);
            if is_recorded || self.tie(&agent) != Tie::Session {
                return Ok(caller);
            }
        }
        let own = Wish { given: self.origin.agent.clone(), ..Wish::default() };
        let own_session = self.sessions().next().unwrap_or_default();
        let Some(sub) = &self.call.agent else { return self.join(own, own_session).await };
        let parent = self.own(&*self.crew.agents().await?)?.map(str::to_owned);
        let parent = match parent {
            Some(parent) => parent,
            None => self.join(own, own_session).await?.agent,
        };
        let wish = Wish { given: Some(name_below(sub)), parent: Some(parent), ..Wish::default() };
        self.join(wish, self.session_below(sub)).await
    }

    async fn join(&self, wish: Wish, session: String) -> Result<Caller, Refusal> {
        let program = self.call.host.program().to_owned();
        let profile = Profile {
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: self.here.name.clone(),
            process: self
                .origin
                .ancestors
                .first()
                .map(|of| Executor { worker: of.clone(), ..self.crew.process(&program) }),
            program_process: self.origin.ancestors.first().cloned(),
            program,
        };
        Ok(self.crew.join(Join { wish, session, profile }).await?.caller)
    }

    /// True if the program of an agent runs, and is certainly none above the hook: a second process has its session.
    pub fn is_twin(&self, agent: &Agent) -> bool {
        program_of(agent).is_some_and(|program| is_elsewhere(program, &self.origin.ancestors))
            && !self.crew.is_dead(agent)
    }

    /// The relation of the hook to an agent.
    pub fn tie(&self, agent: &Agent) -> Tie {
        let (program, own_program) = (program_of(agent), self.origin.ancestors.first().map(String::as_str));
        let is_of_process = own_program.is_some_and(|own| named(own, self.origin.agent.as_deref()) == agent.session);
        let is_below = self.call.agent.as_ref().is_some_and(|sub| self.session_below(sub) == agent.session);
        let is_own =
            is_below || agent.session == self.call.session || self.sessions().next().as_ref() == Some(&agent.session);
        let is_own_program = is_of_process || (program.is_some() && program == own_program);
        match agent.liveness {
            Liveness::Left => Tie::Gone,
            _present if is_own => Tie::Session,
            _present if is_own_program => Tie::Program,
            Liveness::Stuck | Liveness::Lost => Tie::Gone,
            // Hooks see no session of agents over HTTP.
            Liveness::Alive if agent.session.starts_with("mcp:") => Tie::Program,
            Liveness::Alive => match program {
                Some(program) if self.origin.ancestors.iter().any(|above| above == program) => Tie::Nested,
                Some(_) if self.crew.is_dead(agent) => Tie::Gone,
                Some(_) => Tie::Elsewhere,
                None => Tie::Nested,
            },
        }
    }

    /// The agent of the session itself: the one that the session holds, else the launcher's, unless another program has it.
    fn own<'a>(&'a self, agents: &'a Agents) -> Result<Option<&'a str>, CrewError> {
        if let Some(held) = self.sessions().find_map(|session| agents.joined_as(&session, None)) {
            return Ok(Some(held));
        }
        let Some(name) = self.origin.agent.as_deref() else { return Ok(None) };
        Ok(match agents.get(name).map_or(Tie::Gone, |agent| self.tie(agent)) {
            Tie::Session | Tie::Program | Tie::Nested => Some(name),
            Tie::Elsewhere | Tie::Gone => None,
        })
    }

    /// The possible sessions of the hook's agent; it joins with the first one. Gemini CLI and opencode give their MCP
    /// servers no session id.
    fn sessions(&self) -> impl Iterator<Item = String> {
        let has_only_process = matches!(self.call.host, Host::Gemini | Host::Opencode);
        let processes = self.origin.ancestors.iter().filter(move |_| has_only_process);
        let processes = processes.map(|process| named(process, self.origin.agent.as_deref()));
        processes.chain([self.call.session.clone()])
    }

    fn session_below(&self, sub: &SubAgent) -> String {
        format!("{}/{}", self.call.session, sub.id)
    }
}

/// The program of an agent, as one of the ancestors of its hooks; `None` over HTTP.
pub fn program_of(agent: &Agent) -> Option<&str> {
    agent.profile.program_process.as_deref()
}

/// The kind and the beginning of the id: several subagents of one kind may run at the same time.
fn name_below(sub: &SubAgent) -> String {
    let plain = |text: &str, chars_max: usize| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(chars_max).collect()
    };
    let kind = plain(sub.kind.as_deref().unwrap_or("sub"), KIND_CHARS_MAX).to_ascii_lowercase();
    format!("{}-{}", kind.trim_start_matches('-'), plain(&sub.id, ID_CHARS_MAX)).trim_matches('-').to_owned()
}
