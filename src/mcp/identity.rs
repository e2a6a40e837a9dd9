//! Who calls: the agent of this process over stdio, and agents with a handle over HTTP and for subagents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crewlog_executors::crew::{Caller, Crew, Join, Joined};
use crewlog_planner::crew::agents::{Liveness, Outcome, Profile};
use crewlog_planner::crew::leases::Holder;
use crewlog_planner::crew::target::Target;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::args::{Args, hex};
use super::reply::Refused;
use crate::crew::session::agent_id;
use crate::crew::worktree::Worktree;
use crate::hook::process::parent_session;

/// The most handles that are known; the oldest is forgotten.
const HANDLES_MAX: usize = 2_000;

/// An agent that has joined through this server.
#[derive(Debug)]
pub struct Member {
    pub caller: Caller,
    pub worktree: Worktree,
    /// Where its relative paths begin.
    folder: PathBuf,
    /// The leases that an earlier request of it was denied for, with what they are on.
    pub blocked_by: Mutex<BTreeMap<u64, String>>,
    /// The questions whose answers it has.
    pub answered: Mutex<BTreeSet<u64>>,
}

/// What a request says about its caller.
#[derive(Debug, Default)]
pub struct Client {
    program: Option<String>,
    session: Option<String>,
}

/// The agents of a server.
pub struct Members {
    pub worktree: Worktree,
    folder: PathBuf,
    by_handle: Mutex<BTreeMap<String, Arc<Member>>>,
    /// The agent of the process that started this one; unset over HTTP.
    own: Option<tokio::sync::Mutex<Own>>,
}

enum Own {
    NotJoined,
    Joined(Arc<Member>),
}

impl Own {
    fn member(&self) -> Option<&Arc<Member>> {
        match self {
            Self::NotJoined => None,
            Self::Joined(member) => Some(member),
        }
    }
}

impl Client {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let codex = context.meta.0.0.get("x-codex-turn-metadata");
        let session = codex.and_then(|turn| turn.get("session_id")?.as_str()).map(str::to_owned);
        Self { program: context.client_info().map(|client| program_of(&client.name)), session }
    }
}

/// The name by which a client's program is known here.
fn program_of(client: &str) -> String {
    match client {
        "codex-mcp-client" => "codex".to_owned(),
        "gemini-cli-mcp-client" => "gemini-cli".to_owned(),
        other => other.chars().take(64).collect(),
    }
}

impl Member {
    pub fn holder(&self) -> Holder {
        Holder { agent: self.caller.agent.clone(), worktree: self.caller.worktree.clone() }
    }

    /// The targets of paths, and why others are none.
    pub fn targets(&self, paths: &[String]) -> (Vec<(String, Target)>, Vec<Value>) {
        let (mut targets, mut refused) = (Vec::new(), Vec::new());
        for path in paths {
            match self.worktree.target(&self.folder, path) {
                Ok(target) => targets.push((path.clone(), target)),
                Err(error) => refused.push(json!({ "path": path, "why": error.to_string() })),
            }
        }
        (targets, refused)
    }
}

impl Members {
    /// For a server that one agent program has started.
    pub fn of_process(folder: &Path) -> Self {
        Self { own: Some(tokio::sync::Mutex::new(Own::NotJoined)), ..Self::of_handles(folder) }
    }

    /// For a server of several agents.
    pub fn of_handles(folder: &Path) -> Self {
        let (worktree, folder) = (Worktree::around(folder), folder.to_owned());
        Self { worktree, folder, by_handle: Mutex::default(), own: None }
    }

    /// The agent that a call is made by. The agent of the process joins with its first call.
    pub async fn caller(&self, crew: &Crew, args: &Args, client: &Client) -> Result<Arc<Member>, Refused> {
        let handle = args.text("agent");
        let known = handle.and_then(|handle| self.handles().get(handle).cloned());
        if let Some(member) = known {
            return Ok(member);
        }
        let unknown = || {
            let message = match handle {
                Some(handle) => format!("no agent has the handle {handle:?} here"),
                None => "the argument agent is missing".to_owned(),
            };
            Refused::new("unknown_agent", message, "call join, and pass the agent that it returns in each call")
        };
        let Some(own) = &self.own else { return Err(unknown()) };
        let mut own = own.lock().await;
        let name = own.member().map(|member| member.caller.agent.clone());
        if handle.is_some() && handle != name.as_deref() {
            return Err(unknown());
        }
        // An earlier server of the same session may have left for it when it ended.
        let agents = crew.agents().await?;
        let has_left = |member: &Member| {
            agents
                .get(&member.caller.agent)
                .is_some_and(|agent| agent.epoch == member.caller.epoch && agent.liveness == Liveness::Left)
        };
        let present = own.member().filter(|member| !has_left(member)).cloned();
        drop(agents);
        if let Some(member) = present {
            return Ok(member);
        }
        let (member, _) = self.enter(crew, None, name, client).await?;
        *own = Own::Joined(member.clone());
        Ok(member)
    }

    /// A session joins. Gives the agent, and what it passes as `agent` from now on.
    pub async fn join(
        &self,
        crew: &Crew,
        args: &Args,
        client: &Client,
    ) -> Result<(Arc<Member>, Joined, String), Refused> {
        let Some(own) = self.own.as_ref().filter(|_| args.text("parent").is_none()) else {
            let (member, joined) = self.enter(crew, Some(args), None, client).await?;
            let handle = random_hex()?;
            let mut handles = self.handles();
            if handles.len() >= HANDLES_MAX {
                let oldest =
                    handles.iter().min_by_key(|(_, member)| member.caller.epoch).map(|(handle, _)| handle.clone());
                oldest.map(|oldest| handles.remove(&oldest));
            }
            handles.insert(handle.clone(), member.clone());
            return Ok((member, joined, handle));
        };
        let mut own = own.lock().await;
        let (member, joined) = self.enter(crew, Some(args), None, client).await?;
        if let Some(earlier) = own.member()
            && earlier.caller.agent != member.caller.agent
        {
            // One process is one agent. That it was superseded is no matter here.
            let note = format!("it goes on as {}", member.caller.agent);
            let _ = crew.leave(&earlier.caller, Outcome::Success, note, String::new()).await;
        }
        *own = Own::Joined(member.clone());
        let name = member.caller.agent.clone();
        Ok((member, joined, name))
    }

    async fn enter(
        &self,
        crew: &Crew,
        args: Option<&Args>,
        earlier_name: Option<String>,
        client: &Client,
    ) -> Result<(Arc<Member>, Joined), Refused> {
        let text = |name: &str| args.and_then(|args| args.owned(name));
        let (worktree, folder) = self.place_of(text("worktree"))?;
        let program = text("program").or_else(|| client.program.clone()).unwrap_or_else(|| "agent".to_owned());
        let focus = args.map(|args| args.strings("focus")).unwrap_or_default();
        let focus = focus.iter().filter_map(|path| worktree.target(&folder, path).ok()).collect();
        // Whether the process of another agent lives is not known here.
        let process = self.own.is_some().then(|| crew.process(&program));
        let profile = Profile {
            model: text("model"),
            capabilities: args.map(|args| args.strings("capabilities")).unwrap_or_default(),
            focus,
            worktree: worktree.name().to_owned(),
            process,
            program,
        };
        let parent = text("parent");
        let name =
            text("name").or(earlier_name).or_else(|| agent_id().filter(|_| self.own.is_some() && parent.is_none()));
        let session = self.session_of(client, parent.is_some())?;
        let joined = crew.join(Join { name, parent, session, profile }).await?;
        let caller = joined.caller.clone();
        let (blocked_by, answered) = (Mutex::default(), Mutex::default());
        Ok((Arc::new(Member { caller, worktree, folder, blocked_by, answered }), joined))
    }

    /// The same for all calls of a session and for its hooks. A subagent is a session of its own.
    fn session_of(&self, client: &Client, is_subagent: bool) -> Result<String, Refused> {
        // A program that another one started has the variables of that one too.
        let is_claude = client.program.as_deref() == Some("claude-code");
        let variable = std::env::var("CLAUDE_CODE_SESSION_ID").ok().filter(|session| is_claude && !session.is_empty());
        match (&self.own, is_subagent) {
            (Some(_), false) => {
                match variable.or_else(|| client.session.clone()).or_else(|| parent_session(agent_id().as_deref())) {
                    Some(session) => Ok(session),
                    None => Ok(format!("stdio:{}", random_hex()?)),
                }
            }
            (Some(_), true) => Ok(format!("subagent:{}", random_hex()?)),
            (None, _) => Ok(format!("http:{}", random_hex()?)),
        }
    }

    fn place_of(&self, path: Option<String>) -> Result<(Worktree, PathBuf), Refused> {
        let Some(path) = path else { return Ok((self.worktree.clone(), self.folder.clone())) };
        let named = self.worktree.of_repository(&self.folder.join(&path));
        let named = named.ok_or_else(|| {
            let next = "name the root of a worktree of this repository, or leave worktree out";
            Refused::new("bad_worktree", format!("{path} is no worktree of {}", self.worktree.root().display()), next)
        })?;
        let root = named.root().to_owned();
        Ok((named, root))
    }

    /// Forgets the handle of an agent that has left.
    pub fn forget(&self, member: &Member) {
        self.handles().retain(|_, known| known.caller != member.caller);
    }

    /// The agents of this process leave, because it ends.
    pub async fn leave(&self, crew: &Crew) {
        let Some(own) = &self.own else { return };
        let mut leaving: Vec<_> = self.handles().values().cloned().collect();
        leaving.extend(own.lock().await.member().cloned());
        for member in leaving {
            let note = "its program ended".to_owned();
            // It may have left or been superseded.
            let _ = crew.leave(&member.caller, Outcome::Success, note, String::new()).await;
        }
    }

    fn handles(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Member>>> {
        self.by_handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 random bits.
pub fn random_hex() -> Result<String, Refused> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Refused::new("no_randomness", format!("the system gives no random bytes: {error}"), "tell the person")
            .retryable()
    })?;
    Ok(hex(&bytes))
}
