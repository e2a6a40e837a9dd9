//! Identifies callers: the agent of this process over stdio; agents with a handle over HTTP, and subagents.

use std::collections::BTreeMap;
use std::env::var;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crewlog_executors::crew::process::{ancestors, parent_session};
use crewlog_executors::crew::runs;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Caller, Crew, Join, Joined, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{LeaveOutcome, Profile, Wish};
use crewlog_planner::crew::target::{Target, TargetError};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use uuid::Uuid;

use super::args::Args;
use super::reply::Refused;
use super::tools::JOIN;
use crate::context::agent_id;
use crate::ui::text::sha256;

/// The variable with the session of Claude Code.
pub const CLAUDE_SESSION: &str = "CLAUDE_CODE_SESSION_ID";
/// The most handles kept; the oldest is forgotten.
const HANDLES_MAX: usize = 2_000;

/// An agent that has joined through this server.
#[derive(Debug)]
pub struct Member {
    pub caller: Caller,
    worktree: Worktree,
}

/// The program that sends a request, and its session, if the request names them.
#[derive(Debug, Default)]
pub struct Client {
    program: Option<String>,
    session: Option<String>,
}

/// The agents of a server.
pub struct Members {
    worktree: Worktree,
    folder: PathBuf,
    by_handle: Mutex<BTreeMap<String, Arc<Member>>>,
    /// The agent of the process that started this one, once it has joined; unset over HTTP.
    own: Option<tokio::sync::Mutex<Option<Arc<Member>>>>,
}

impl Client {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let codex = context.meta.0.0.get("x-codex-turn-metadata");
        let session = codex.and_then(|turn| turn.get("session_id")?.as_str()).map(str::to_owned);
        let program = context.client_info().map(|client| match client.name.as_str() {
            "codex-mcp-client" => "codex".to_owned(),
            "gemini-cli-mcp-client" => "gemini-cli".to_owned(),
            other => other.chars().take(64).collect(),
        });
        Self { program, session }
    }
}

impl Member {
    pub fn target(&self, path: &str) -> Result<Target, TargetError> {
        self.worktree.target(&self.worktree.root, path)
    }

    pub fn targets(&self, paths: &[String]) -> Result<Vec<Target>, TargetError> {
        paths.iter().map(|path| self.target(path)).collect()
    }
}

impl Members {
    /// For a server started by one agent program.
    pub fn of_process(folder: &Path) -> Self {
        Self { own: Some(tokio::sync::Mutex::default()), ..Self::of_handles(folder) }
    }

    /// For a server of several agents.
    pub fn of_handles(folder: &Path) -> Self {
        let (worktree, folder) = (Worktree::around(folder), folder.to_owned());
        Self { worktree, folder, by_handle: Mutex::default(), own: None }
    }

    /// The agent that makes a call, after a check of its session. The agent of the process joins with its first call.
    pub async fn caller(&self, crew: &Crew, args: &Args, client: &Client) -> Result<Arc<Member>, Refused> {
        let handle: Option<String> = args.get("agent");
        let known = handle.as_ref().and_then(|handle| self.handles().get(handle).cloned());
        if let Some(member) = known {
            crew.present(&member.caller).await?;
            return Ok(member);
        }
        if let Some(member) = self.resumed(crew, handle.as_deref()).await? {
            return Ok(member);
        }
        let next = "call join, and pass the agent that it returns in each call";
        let unknown = Refused::new("unknown_agent", "the argument agent is missing, or no agent has it here", next);
        let Some(own) = &self.own else { return Err(unknown) };
        let mut own = own.lock().await;
        let name = own.as_ref().map(|member| member.caller.agent.clone());
        if handle.is_some() && handle != name {
            return Err(unknown);
        }
        if let Some(member) = &*own {
            match crew.present(&member.caller).await {
                // An earlier server of the same session recorded its leave when it ended.
                Err(Refusal::Crew(CrewError::Left(_))) => {}
                present => return Ok(present.map(|()| member.clone())?),
            }
        }
        let nothing = Args::check(JOIN, None)?;
        let (member, _) = self.enter(crew, &nothing, None, None, name, client).await?;
        Ok(own.insert(member).clone())
    }

    /// A session joins. Returns the agent, and the value that it passes as `agent` from now on.
    pub async fn join(
        &self,
        crew: &Crew,
        args: &Args,
        client: &Client,
    ) -> Result<(Arc<Member>, Joined, String), Refused> {
        let parent = match args.get::<Option<String>>("parent") {
            Some(parent) => Some(self.parent(&parent).await?),
            None => None,
        };
        if let Some(own) = self.own.as_ref().filter(|_| parent.is_none()) {
            let mut own = own.lock().await;
            let (member, joined) = self.enter(crew, args, None, None, None, client).await?;
            let name = member.caller.agent.clone();
            // One process is one agent.
            if let Some(earlier) = own.replace(member.clone()).filter(|earlier| earlier.caller.agent != name) {
                leave(crew, &earlier, format!("it goes on as {name}")).await;
            }
            return Ok((member, joined, name));
        }
        let handle = random();
        let (member, joined) = self.enter(crew, args, parent, Some(session_of(&handle)), None, client).await?;
        self.keep(handle.clone(), member.clone());
        Ok((member, joined, handle))
    }

    /// The agent of a handle that an earlier server gave out.
    async fn resumed(&self, crew: &Crew, handle: Option<&str>) -> Result<Option<Arc<Member>>, Refused> {
        let Some(handle) = handle else { return Ok(None) };
        let agents = crew.agents().await?;
        let Some(name) = agents.joined_as(&session_of(handle), None).map(str::to_owned) else { return Ok(None) };
        drop(agents);
        let caller = crew.caller(&name).await?;
        let root = caller.worktree.split_once(':').map(|(_, root)| Path::new(root));
        let worktree = root.and_then(|root| self.worktree.of_repository(root)).unwrap_or_else(|| self.worktree.clone());
        crew.present(&caller).await?;
        let member = Arc::new(Member { caller, worktree });
        self.keep(handle.to_owned(), member.clone());
        Ok(Some(member))
    }

    fn keep(&self, handle: String, member: Arc<Member>) {
        let mut handles = self.handles();
        if handles.len() >= HANDLES_MAX {
            let oldest = handles.iter().min_by_key(|(_, member)| member.caller.epoch).map(|(handle, _)| handle.clone());
            oldest.map(|oldest| handles.remove(&oldest));
        }
        handles.insert(handle, member);
    }

    /// The name of a parent. A subagent may use its parent's leases, so it must know the result of the parent's `join`.
    async fn parent(&self, parent: &str) -> Result<String, Refused> {
        if let Some(member) = self.handles().get(parent) {
            return Ok(member.caller.agent.clone());
        }
        if let Some(own) = &self.own
            && own.lock().await.as_ref().is_some_and(|member| member.caller.agent == parent)
        {
            return Ok(parent.to_owned());
        }
        Err(Refused::invalid("parent is not what join has returned as agent to the one that started you"))
    }

    async fn enter(
        &self,
        crew: &Crew,
        args: &Args,
        parent: Option<String>,
        of_handle: Option<String>,
        earlier_name: Option<String>,
        client: &Client,
    ) -> Result<(Arc<Member>, Joined), Refused> {
        let mut worktree = self.worktree.clone();
        if let Some(path) = args.get::<Option<String>>("worktree") {
            let elsewhere = || Refused::invalid(format!("{path} is not a worktree of the server's repository"));
            worktree = worktree.of_repository(&self.folder.join(&path)).ok_or_else(elsewhere)?;
        }
        let is_own = self.own.is_some() && parent.is_none();
        let is_run = is_own && run_session().is_some();
        let session = of_handle.or_else(|| own_session(client)).unwrap_or_else(|| session_of(&random()));
        let asked: Option<String> = args.get("name");
        if let Some(held) = crew.agents().await?.joined_as(&session, None)
            && asked.as_ref().is_some_and(|asked| asked != held)
        {
            let next = "go on under that name";
            return Err(Refused::new("named", format!("your session is {held} already"), next));
        }
        let program = args.get::<Option<String>>("program").or_else(|| client.program.clone());
        let program = program.unwrap_or_else(|| "agent".to_owned());
        let focus: Vec<String> = args.get("focus");
        let profile = Profile {
            model: args.get("model"),
            capabilities: args.get("capabilities"),
            focus: focus.iter().filter_map(|path| worktree.target(&worktree.root, path).ok()).collect(),
            worktree: worktree.name.clone(),
            // Over HTTP the agent's process is unknown. A run ends with its worker.
            process: (self.own.is_some() && !is_run).then(|| crew.process(&program)),
            program_process: (self.own.is_some() && !is_run).then(|| ancestors().into_iter().next()).flatten(),
            program,
        };
        // The name of a run is only for its own session.
        let given = agent_id().filter(|name| is_own && !is_run && !name.contains('/'));
        let wish = Wish { name: asked.or(earlier_name), given, parent, over: None };
        let joined = crew.join(Join { wish, session, profile }).await?;
        Ok((Arc::new(Member { caller: joined.caller.clone(), worktree }), joined))
    }

    /// The agent of this process, if it has joined by a call, or by a hook with this session.
    pub async fn own_agent(&self, crew: &Crew, session: Option<String>) -> Result<Option<String>, Refusal> {
        let own = match &self.own {
            Some(own) => own.lock().await.as_ref().map(|member| member.caller.agent.clone()),
            None => return Ok(None),
        };
        let Some(session) = session.filter(|_| own.is_none()) else { return Ok(own) };
        Ok(crew.agents().await?.joined_as(&session, None).map(str::to_owned))
    }

    /// Forgets the handle of an agent that has left.
    pub fn forget(&self, member: &Member) {
        self.handles().retain(|_, known| known.caller != member.caller);
    }

    /// The agents of this process leave, because it ends.
    pub async fn leave(&self, crew: &Crew) {
        let Some(own) = &self.own else { return };
        let mut leaving: Vec<_> = self.handles().values().cloned().collect();
        // A run leaves when its worker says how it ended.
        leaving.extend(own.lock().await.clone().filter(|_| run_session().is_none()));
        for member in leaving {
            leave(crew, &member, "its program ended".to_owned()).await;
        }
    }

    fn handles(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Member>>> {
        self.by_handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent leaves, unless it has already left or was superseded.
async fn leave(crew: &Crew, member: &Member, note: String) {
    let _ = crew.leave(&member.caller, LeaveOutcome::Success, note, String::new()).await;
}

/// The session of the process that started this one: the same for all its calls and its hooks.
fn own_session(client: &Client) -> Option<String> {
    // A program started by another one inherits that one's variables.
    let is_claude = client.program.as_deref() == Some("claude-code");
    let variable = var(CLAUDE_SESSION).ok().filter(|session| is_claude && !session.is_empty());
    run_session().or(variable).or_else(|| client.session.clone()).or_else(|| parent_session(agent_id().as_deref()))
}

/// The session of the run that crewlog started, and that the program of this process belongs to.
pub fn run_session() -> Option<String> {
    var(runs::SESSION).ok().filter(|secret| !secret.is_empty()).map(|secret| runs::session_of(&secret))
}

/// The session of a handle, which no reader of the log can turn back into the handle.
fn session_of(handle: &str) -> String {
    format!("mcp:{}", &sha256(handle)[..32])
}

/// 122 random bits.
pub fn random() -> String {
    Uuid::new_v4().simple().to_string()
}
