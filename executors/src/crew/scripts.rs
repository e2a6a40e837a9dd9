//! Scripts as agents of the crew: a command under leases, and commands that claim tasks and report on them. A script acts for the
//! agent that `AGENT_ID` names, or that started it.

use std::env;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{Query, Start};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{LeaveOutcome, Liveness, Profile, Wish};
use crewlog_planner::crew::leases::{self, Lease, LeaseHolder, Request, Turn, Which};
use crewlog_planner::crew::names::is_name;
use crewlog_planner::crew::target::Target;
use futures::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::Refusal;
use super::process;
use super::runs::{AGENT_ID, SESSION, session_of};
use super::signs::space;
use super::state::{Caller, Crew, Join};
use super::worktree::Worktree;
use crate::signs::stay;

/// Variables with the session id of an agent program, which its commands get.
pub const SESSIONS: [&str; 2] = ["CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID"];
/// The name of the program in the profiles of scripts, and the start of a name that nobody gave.
const PROGRAM: &str = "script";
/// The beginning of the session of a script without a process of its own, before the name that it was given.
const BY_NAME: &str = "script:";
/// How often a script that waits for leases checks for dead holders.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// An agent that a command of this process acts for.
pub struct Script {
    crew: Arc<Crew>,
    caller: Caller,
    /// The worktree of the command.
    pub worktree: Worktree,
    /// Set if the agent has joined with this process, and leaves with it. Its session in the log is a hash of it.
    secret: Option<String>,
}

impl Script {
    /// The agent that this process acts for, if it is there.
    ///
    /// # Errors
    /// An `AGENT_ID` that is no name, or the name of a live agent elsewhere that is stuck.
    pub async fn known(crew: &Arc<Crew>, folder: &Path) -> Result<Option<Self>, Refusal> {
        let given = given()?;
        let Some(name) = acting(crew, given.as_deref()).await? else { return Ok(None) };
        let worktree = Worktree::around(folder);
        let caller = Caller { worktree: worktree.name.clone(), ..crew.caller(&name).await? };
        Ok(Some(Self { crew: crew.clone(), caller, worktree, secret: None }))
    }

    /// The agent that `AGENT_ID` names, which joins if it is not there. Between two commands it has no process.
    ///
    /// # Errors
    /// Those of [`Script::known`], and a missing `AGENT_ID`.
    pub async fn named(crew: &Arc<Crew>, folder: &Path) -> Result<Self, Refusal> {
        if let Some(known) = Self::known(crew, folder).await? {
            return Ok(known);
        }
        let missing = || {
            CrewError::Invalid(
                "only an agent claims tasks: name it by AGENT_ID, as in `export AGENT_ID=nightly`".into(),
            )
        };
        let name = given()?.ok_or_else(missing)?;
        let session = format!("{BY_NAME}{name}");
        Self::join(crew, folder, (session, None), Some(name)).await
    }

    /// The agent for a command that this process runs: the one that is there, else one that joins under the name of `AGENT_ID` or
    /// another free name, and lives as long as this process.
    ///
    /// # Errors
    /// Those of [`Script::known`].
    pub async fn of_command(crew: &Arc<Crew>, folder: &Path) -> Result<Self, Refusal> {
        if let Some(known) = Self::known(crew, folder).await? {
            return Ok(known);
        }
        let secret = crewlog_mq::new_event_id().simple().to_string();
        Self::join(crew, folder, (session_of(&secret), Some(secret)), given()?).await
    }

    async fn join(
        crew: &Arc<Crew>,
        folder: &Path,
        (session, secret): (String, Option<String>),
        given: Option<String>,
    ) -> Result<Self, Refusal> {
        let worktree = Worktree::around(folder);
        if let Some(name) = given.as_ref().filter(|name| name.contains('/')) {
            let says = format!("{AGENT_ID} is {name}, a subagent that is not here: only its parent starts it");
            return Err(CrewError::Invalid(says).into());
        }
        let has_process = secret.is_some();
        let profile = Profile {
            program: PROGRAM.to_owned(),
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: worktree.name.clone(),
            process: has_process.then(|| crew.process(PROGRAM)),
            program_process: process::own().filter(|_| has_process),
        };
        let wish = Wish { given, ..Wish::default() };
        let caller = crew.join(Join { wish, session, profile }).await?.caller;
        Ok(Self { crew: crew.clone(), caller, worktree, secret })
    }

    /// The identity for calls.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The holder of its leases.
    #[must_use]
    pub fn holder(&self) -> LeaseHolder {
        self.caller.holder()
    }

    /// The variables by which its command, and what that starts, acts for it.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let session = self.secret.as_deref().map(|secret| (SESSION, secret));
        [(AGENT_ID, self.caller.agent.as_str())].into_iter().chain(session)
    }

    /// Shows that it lives, as long as it is polled.
    pub async fn stay(&self) {
        match stay(self.crew.store(), &space(self.crew.project()), &self.caller.agent).await {}
    }

    /// Takes leases, all or none, and waits for them if need be. `None` if it was stopped before. A place in the queue would
    /// outlive this process with an agent that was there before, so for such an agent the request is only repeated.
    ///
    /// # Errors
    /// [`CrewError::Held`] when the wait is over.
    pub async fn lease(
        &self,
        request: &Request,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Vec<(u64, Lease)>>, Refusal> {
        let (store, deadline) = (self.crew.store(), Instant::now() + wait);
        let query = Query::aggregate(leases::STREAM, self.crew.project());
        let mut news = pin!(store.follow(&query, Start::After(store.head().await?)));
        let (mut stop, mut has_buried) = (pin!(stop), false);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let waits = !left.is_zero() && self.secret.is_some();
            let turn = if waits { Turn::Wait(store.now().plus(left)) } else { Turn::Behind };
            match self.crew.reserve(&self.caller, request.clone(), turn).await {
                Ok(Some(granted)) => return Ok(Some(granted.leases)),
                Err(refusal @ Refusal::Crew(CrewError::Held(_))) if has_buried && left.is_zero() => {
                    return Err(refusal);
                }
                Ok(None) | Err(Refusal::Crew(CrewError::Held(_))) => {}
                Err(refusal) => return Err(refusal),
            }
            if has_buried {
                tokio::select! {
                    _ = news.next() => {}
                    () = sleep_until(deadline.min(Instant::now() + CHECK_EVERY)) => {}
                    () = &mut stop => return Ok(None),
                }
            }
            // Without another process nobody ends the leases of the dead.
            self.crew.fire_timers().await?;
            has_buried = true;
        }
    }

    /// The leases of a list that have ended.
    pub async fn ended(&self, taken: &[(u64, Lease)]) -> Result<Vec<String>, Refusal> {
        let leases = self.crew.leases().await?;
        let ended = taken.iter().filter(|(number, _)| leases.get(*number).is_none());
        Ok(ended.map(|(_, lease)| lease.target.path.clone()).collect())
    }

    /// Leaves, if it joined for the command; else releases the leases on these targets that are newer than a number.
    pub async fn end(&self, targets: &[Target], newer: u64, outcome: LeaveOutcome) -> Result<(), Refusal> {
        if self.secret.is_some() {
            return self.crew.leave(&self.caller, outcome, String::new(), String::new()).await.map(drop);
        }
        let holder = self.holder();
        let leases = self.crew.leases().await?;
        let own = leases.of_agent(&holder.agent);
        let own = own.filter(|(number, lease)| *number > newer && lease.holder == holder);
        let own: Vec<_> = own.filter(|(_, lease)| targets.contains(&lease.target)).map(|(number, _)| number).collect();
        drop(leases);
        self.crew.release(&self.caller, Which::Numbers(own)).await.map(drop)
    }

    /// Leaves once nothing is held, if it is an agent between commands: else it would be listed as lost later.
    pub async fn rest(&self) -> Result<(), Refusal> {
        let agents = self.crew.agents().await?;
        let is_between = agents.get(&self.caller.agent).is_some_and(|agent| agent.session.starts_with(BY_NAME));
        drop(agents);
        let has_leases = self.crew.leases().await?.of_agent(&self.caller.agent).next().is_some();
        if !is_between || has_leases || !self.crew.tasks_of(&self.caller.agent).await?.is_empty() {
            return Ok(());
        }
        self.crew.leave(&self.caller, LeaveOutcome::Success, String::new(), String::new()).await.map(drop)
    }
}

/// The name in `AGENT_ID`.
fn given() -> Result<Option<String>, CrewError> {
    let Some(name) = env::var(AGENT_ID).ok().filter(|name| !name.is_empty()) else { return Ok(None) };
    if is_name(&name) {
        return Ok(Some(name));
    }
    let shown: String = name.chars().take(80).collect();
    let says = "no name for an agent: use up to 32 letters, digits, `.`, `_` and `-`, and no word such as `root`";
    Err(CrewError::Invalid(format!("{AGENT_ID} is {shown:?}, {says}")))
}

/// The agent that this process acts for: that of its run, else the one with the given name, unless another program has
/// it. Without a name that of the session of the program that started it.
async fn acting(crew: &Crew, given: Option<&str>) -> Result<Option<String>, Refusal> {
    let agents = crew.agents().await?;
    let secret = env::var(SESSION).ok().filter(|secret| !secret.is_empty());
    let of_session = secret.and_then(|secret| agents.joined_as(&session_of(&secret), None));
    // A launcher may name another agent below a session.
    if let Some(held) = of_session.filter(|held| given.is_none_or(|given| given == *held)) {
        return Ok(Some(held.to_owned()));
    }
    let Some(name) = given else {
        let sessions = SESSIONS.iter().filter_map(|name| env::var(name).ok()).chain(process::ancestors());
        return Ok(sessions.filter_map(|session| agents.joined_as(&session, None).map(str::to_owned)).next());
    };
    if let Some(held) = agents.joined_as(&format!("{BY_NAME}{name}"), None) {
        return Ok(Some(held.to_owned()));
    }
    let Some(found) = agents.get(name) else { return Ok(None) };
    let is_elsewhere = found.profile.program_process.as_ref().is_some_and(|it| !process::ancestors().contains(it));
    match found.liveness {
        Liveness::Left => Ok(None),
        _present if crew.is_dead(found) => Ok(None),
        // A join would take its tasks.
        Liveness::Stuck if is_elsewhere => Err(CrewError::Taken(name.to_owned()).into()),
        Liveness::Alive | Liveness::Lost if is_elsewhere => Ok(None),
        Liveness::Alive | Liveness::Stuck | Liveness::Lost => Ok(Some(name.to_owned())),
    }
}
