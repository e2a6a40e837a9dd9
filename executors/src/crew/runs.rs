//! Runs of tasks as agents of the crew. A run of an agent, and of any step that declares files, joins under the name of its task.
//! Its claim leases these files in the same append, its program acts under the leases, and it leaves with how it ended.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crewlog_mq::{Cause, Error, EventStore, ExecuteError, Handler, Runner, Timestamp};
use crewlog_planner::claim::{self, Ending, TaskCommand, TaskError, TaskLease};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{LeaveOutcome, Liveness, Profile, Wish};
use crewlog_planner::crew::leases::{Blocked, LeaseCommand, LeaseHolder, Leases, Request, TARGETS_MAX, Turn};
use crewlog_planner::event::{FailureClass, TaskInput};
use crewlog_planner::plan::TaskPlan;
use crewlog_planner::sealed::key_of;
use crewlog_planner::text::single_line;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::Refusal;
use super::signs::space;
use super::state::{Caller, Crew, Join};
use super::tasks::write_of;
use super::worktree::Worktree;
use crate::caller;
use crate::claiming::Joint;
use crate::liveness::LivenessLock;
use crate::programs::hex;
use crate::queue::Dispatch;
use crate::signs::stay;

/// How long the leases of a run last without a sign of life. The proof that its worker is dead ends them at once.
const TTL: Duration = Duration::from_secs(600);
/// The most characters of the note with which a run leaves.
const NOTE_CHARS_MAX: usize = 200;

/// The variable by which a launcher names the agent to its program, tools and hooks.
pub const AGENT_ID: &str = "AGENT_ID";
/// The variable with the secret by which the program of a run, its tools and hooks share the session of its agent.
pub const SESSION: &str = "CREWLOG_SESSION";

/// The crews of a log, in which the runs of a worker take part.
pub(crate) struct Crews {
    store: EventStore,
    life: Arc<LivenessLock>,
    by_project: Mutex<HashMap<String, Arc<Crew>>>,
    /// The waits for files that a person has read of.
    told: Mutex<HashSet<String>>,
}

impl Crews {
    pub(crate) fn new(store: &EventStore, life: &Arc<LivenessLock>) -> Self {
        let (store, life) = (store.clone(), Arc::clone(life));
        Self { store, life, by_project: Mutex::default(), told: Mutex::default() }
    }

    /// Lets the run of a task by an executor join the crew of its project, if it has one.
    pub(crate) async fn join(&self, dispatch: &Dispatch, executor: &str) -> Membership {
        let project = dispatch.tags.iter().find_map(|tag| tag.strip_prefix("project:"));
        let Some(project) = project else { return Membership::Alone };
        let crew = {
            let mut crews = self.by_project.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Crew::new(&self.store, project, Arc::clone(&self.life)));
            Arc::clone(crews.entry(project.to_owned()).or_insert_with(new))
        };
        // A name may be a text.
        let target = match key_of(&dispatch.tags) {
            Some(_) => claim::aggregate_id(&dispatch.plan, dispatch.task),
            None => dispatch.target(),
        };
        let (why, joined) = match Member::join(&crew, &target, &dispatch.parameters, executor).await {
            Ok(member) => return Membership::Member(Box::new(member)),
            Err(Refusal::Crew(CrewError::Held(blocked))) => {
                let why = blocked.first().map(ToString::to_string).unwrap_or_default();
                (format!("{target} waits for its files: {why}"), Membership::Blocked)
            }
            Err(Refusal::Crew(CrewError::Invalid(why))) => return Membership::Invalid(why),
            Err(error) if dispatch.parameters.files.is_empty() => {
                (format!("the run of {target} is no agent of the crew: {error}"), Membership::Alone)
            }
            Err(error) => (format!("{target} cannot lease its files yet: {error}"), Membership::Blocked),
        };
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(why.clone()) {
            tracing::warn!("{why}");
        }
        joined
    }
}

/// How a run takes part in the crew.
pub(crate) enum Membership {
    /// As this agent.
    Member(Box<Member>),
    /// Not at all: there is no crew, or none takes it and it leases nothing.
    Alone,
    /// Not yet: others lease its files.
    Blocked,
    /// Its files can never be leased.
    Invalid(String),
}

impl Membership {
    /// The member, if it is one; true if the run must wait; and whether it can start, if it `may`.
    pub(crate) fn or(self, may: Result<(), Ending>) -> (Option<Box<Member>>, bool, Result<(), Ending>) {
        match self {
            Self::Member(member) => (Some(member), false, may),
            Self::Alone => (None, false, may),
            Self::Blocked => (None, true, may),
            Self::Invalid(error) => (None, false, Err(Ending::Failed { error, class: FailureClass::Task, run: None })),
        }
    }
}

/// The request for the files of a task; those outside of the worktree of its folder cannot be leased.
fn request_of(folder: &Path, files: &[String], reads_only: bool, target: &str) -> Request {
    let worktree = Worktree::around(folder);
    Request {
        targets: files.iter().filter_map(|file| worktree.target(folder, file).ok()).collect(),
        holder: LeaseHolder { agent: String::new(), worktree: worktree.name },
        is_exclusive: !reads_only,
        ttl: TTL,
        reason: format!("task {target}"),
        task: Some(target.to_owned()),
        is_strict: false,
    }
}

impl Crew {
    /// The lease that keeps a task with files from starting in a folder.
    #[must_use]
    pub fn in_the_way_of(leases: &Leases, folder: &Path, task: &TaskPlan, now: Timestamp) -> Option<Blocked> {
        leases.iter().next().filter(|_| !task.files.is_empty())?;
        leases.blocked(&request_of(folder, &task.files, task.reads_only, ""), None, now).into_iter().next()
    }
}

/// A run that has joined.
pub(crate) struct Member {
    crew: Arc<Crew>,
    caller: Caller,
    /// Its session in the log is a hash of it.
    secret: String,
    /// For its files, if it declares any.
    request: Request,
}

impl Member {
    /// Joins as the run of a task by an executor of a worker; `target` is the name of the task.
    ///
    /// # Errors
    /// The leases in the way, or another refusal of the crew.
    pub(crate) async fn join(
        crew: &Arc<Crew>,
        target: &str,
        input: &TaskInput,
        executor: &str,
    ) -> Result<Self, Refusal> {
        let folder = input.folder.as_ref().map_or_else(|| std::env::current_dir().unwrap_or_default(), PathBuf::from);
        let mut request = request_of(&folder, &input.files, input.reads_only, target);
        let n_files = request.targets.len();
        if n_files > TARGETS_MAX {
            let says = format!("{target} declares {n_files} files, and {TARGETS_MAX} can be leased: write patterns");
            return Err(CrewError::Invalid(says).into());
        }
        // Below the run that started this worker, whose leases do not keep its own plans from its files.
        let outer = std::env::var(SESSION).ok().and_then(|_| std::env::var(AGENT_ID).ok());
        let agents = crew.agents().await?;
        let is_here = |outer: &String| agents.get(outer).is_some_and(|found| found.liveness != Liveness::Left);
        let outer = outer.filter(is_here);
        drop(agents);
        request.holder.agent = outer.clone().unwrap_or_default();
        // Only the end of a dead agent can help.
        loop {
            let blocked = crew.leases().await?.blocked(&request, None, crew.store().now());
            if blocked.is_empty() {
                break;
            }
            if !crew.bury().await? {
                return Err(CrewError::Held(blocked).into());
            }
        }
        let secret = crewlog_mq::new_event_id().simple().to_string();
        let profile = Profile {
            program: executor.to_owned(),
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: request.holder.worktree.clone(),
            process: Some(crew.process(executor)),
            program_process: None,
        };
        let given = match &outer {
            Some(_) => target.replace('/', "-").chars().take(32).collect(),
            None => target.to_owned(),
        };
        let wish = Wish { given: Some(given), parent: outer, ..Wish::default() };
        let caller = crew.join(Join { wish, session: session_of(&secret), profile }).await?.caller;
        request.holder = caller.holder();
        Ok(Self { crew: crew.clone(), caller, secret, request })
    }

    /// The leases that its claim takes, if it takes any.
    pub(crate) fn leases(&self) -> Option<&dyn Joint> {
        (!self.request.targets.is_empty()).then_some(self as &dyn Joint)
    }

    /// The variables by which its program, and what that starts, acts for it.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        [(AGENT_ID, &self.caller.agent), (SESSION, &self.secret)].map(|(name, value)| (name.to_owned(), value.clone()))
    }

    /// Shows that it lives, as long as it is polled.
    pub(crate) async fn stay(&self) -> Infallible {
        stay(self.crew.store(), &space(self.crew.project()), &self.caller.agent).await
    }

    /// Ends its leases and its membership. A fault leaves them to the timers.
    pub(crate) async fn leave(self, ending: Option<&Ending>, is_sealed: bool) {
        let (outcome, said) = match ending {
            Some(Ending::Completed { .. }) => (LeaveOutcome::Success, ""),
            Some(Ending::Failed { error: said, .. } | Ending::Stopped { reason: said }) => {
                (LeaveOutcome::Failure, said.as_str())
            }
            Some(Ending::Asked { question: said, .. } | Ending::Released { reason: said, .. }) => {
                (LeaveOutcome::Success, said.as_str())
            }
            None => (LeaveOutcome::Success, "it does not have the task"),
        };
        let note = if is_sealed { String::new() } else { single_line(said, NOTE_CHARS_MAX) };
        if let Err(error) = self.crew.leave(&self.caller, outcome, note, String::new()).await {
            tracing::warn!(%error, agent = self.caller.agent, "a run has left without a word");
        }
    }
}

/// The session of a run, which no reader of the log can turn back into the secret that its program has.
#[must_use]
pub fn session_of(secret: &str) -> String {
    format!("{}{}", Wish::OF_RUN, &hex(&Sha256::digest(secret.as_bytes()))[..32])
}

impl Joint for Member {
    fn append<'a>(
        &'a self,
        claim: &'a mut Runner<TaskLease>,
        command: TaskCommand,
        cause: &'a Cause,
    ) -> BoxFuture<'a, Result<(), ExecuteError<TaskError>>> {
        Box::pin(async move {
            let events = claim.handler().clone().process(command.clone()).map_err(ExecuteError::Refused)?;
            let write = write_of(claim, claim::STREAM, &command.recorded(), &events, cause)?;
            let now = self.crew.store().now();
            let command = LeaseCommand::Reserve { request: self.request.clone(), turn: Turn::Behind, now };
            let mut leases = self.crew.leases().await?;
            let executed = leases.runner().execute_with(command, &caller::request(), write.as_slice()).await;
            drop(leases);
            match executed {
                Ok(_) => Ok(claim.catch_up().await?),
                Err(ExecuteError::Refused(why)) => Err(ExecuteError::Refused(TaskError::Blocked(why.to_string()))),
                // Another claim came first.
                Err(ExecuteError::Store(Error::SequenceMismatch { stream_id, aggregate_id, .. })) => {
                    Err(ExecuteError::Contended { stream_id, aggregate_id, attempts: 1 })
                }
                Err(ExecuteError::Contended { stream_id, aggregate_id, attempts }) => {
                    Err(ExecuteError::Contended { stream_id, aggregate_id, attempts })
                }
                Err(ExecuteError::Store(error)) => Err(error.into()),
            }
        })
    }
}
