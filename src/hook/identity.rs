//! Which agent a hook acts for: the launcher's name, else the session, else the process of the agent program.

use std::path::PathBuf;

use crewlog_executors::crew::{Caller, Crew, Join, Refusal};
use crewlog_planner::crew::agents::{Agent, Agents, Liveness, Profile};
use serde::{Deserialize, Serialize};

use super::Host;
use super::dialect::{Call, SubAgent};
use super::process::named;

/// The most characters of a subagent's kind, and of its id, in its name.
const KIND_CHARS_MAX: usize = 20;
const ID_CHARS_MAX: usize = 8;

/// Where a hook runs, and how it is set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    /// Its working directory: the repository around it is the one whose files are leased.
    pub folder: PathBuf,
    /// The name that the launcher gave the agent.
    pub agent: Option<String>,
    /// The sessions of the processes above it.
    pub ancestors: Vec<String>,
    /// Whether leases of other worktrees count too.
    pub is_strict: bool,
    /// Whether an edit takes a lease.
    pub lease_on_edit: bool,
}

/// The caller of a hook, if it has joined.
pub async fn known(crew: &Crew, origin: &Origin, call: &Call, worktree: &str) -> Result<Option<Caller>, Refusal> {
    let agents = crew.agents().await?;
    let name = match &call.agent {
        Some(sub) => agents.joined_as(&session_below(call, sub), None).map(str::to_owned),
        None => own(&agents, origin, call),
    };
    Ok(name.and_then(|name| agents.get(&name).map(|agent| caller(&name, agent, worktree))))
}

/// The caller of a hook, which joins if it has not yet.
pub async fn joined(crew: &Crew, origin: &Origin, call: &Call, worktree: &str) -> Result<Caller, Refusal> {
    if let Some(known) = known(crew, origin, call, worktree).await? {
        return Ok(known);
    }
    let agents = crew.agents().await?;
    let parent = own(&agents, origin, call);
    drop(agents);
    let Some(sub) = &call.agent else { return join(crew, origin, call, worktree).await };
    let parent = match parent {
        Some(parent) => parent,
        None => join(crew, origin, call, worktree).await?.agent,
    };
    let join = Join {
        name: Some(name_below(sub)),
        parent: Some(parent),
        session: session_below(call, sub),
        profile: profile(call, worktree),
    };
    Ok(crew.join(join).await?.caller)
}

/// The session joins. Where a host's tools get no id of its session, its process is the session, so that they agree.
pub async fn join(crew: &Crew, origin: &Origin, call: &Call, worktree: &str) -> Result<Caller, Refusal> {
    let session = of_process(origin, call).unwrap_or_else(|| call.session.clone());
    let profile = profile(call, worktree);
    Ok(crew.join(Join { name: origin.agent.clone(), parent: None, session, profile }).await?.caller)
}

/// Whether the session of an agent is that of the hook, and not one that only handed its name down.
pub async fn owns(crew: &Crew, origin: &Origin, call: &Call, agent: &str) -> Result<bool, Refusal> {
    let agents = crew.agents().await?;
    let session = agents.get(agent).map(|agent| agent.session.as_str()).unwrap_or_default();
    Ok(session == call.session || Some(session) == of_process(origin, call).as_deref() || call.agent.is_some())
}

/// The session of an agent whose host gives its tools no id of one.
fn of_process(origin: &Origin, call: &Call) -> Option<String> {
    let process = origin.ancestors.first().filter(|_| has_only_process(call.host))?;
    Some(named(process, origin.agent.as_deref()))
}

/// The agent of the session itself. A name of the launcher's that is silent, or has left, is joined again.
fn own(agents: &Agents, origin: &Origin, call: &Call) -> Option<String> {
    if let Some(name) = &origin.agent {
        return agents.get(name).filter(|agent| agent.liveness == Liveness::Alive).map(|_| name.clone());
    }
    let by_process = || {
        let mut above = origin.ancestors.iter().filter(|_| has_only_process(call.host));
        above.find_map(|session| agents.joined_as(session, None))
    };
    agents.joined_as(&call.session, None).or_else(by_process).map(str::to_owned)
}

/// Gemini CLI and opencode give their MCP servers no id of a session.
fn has_only_process(host: Host) -> bool {
    match host {
        Host::Gemini | Host::Opencode => true,
        Host::Claude | Host::Codex => false,
    }
}

pub fn caller(name: &str, agent: &Agent, worktree: &str) -> Caller {
    Caller { agent: name.to_owned(), epoch: agent.epoch, worktree: worktree.to_owned() }
}

fn profile(call: &Call, worktree: &str) -> Profile {
    Profile {
        program: call.host.program().to_owned(),
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: worktree.to_owned(),
        process: None,
    }
}

fn session_below(call: &Call, sub: &SubAgent) -> String {
    format!("{}/{}", call.session, sub.id)
}

/// The kind and the beginning of the id: subagents of one kind run at the same time.
fn name_below(sub: &SubAgent) -> String {
    let plain = |text: &str, chars_max: usize| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(chars_max).collect()
    };
    let kind = plain(sub.kind.as_deref().unwrap_or("sub"), KIND_CHARS_MAX).to_ascii_lowercase();
    format!("{}-{}", kind.trim_start_matches('-'), plain(&sub.id, ID_CHARS_MAX)).trim_matches('-').to_owned()
}
