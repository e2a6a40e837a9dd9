//! Nothing runs that no person agreed to: the inputs of programs, and the decisions about them on a log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crewlog_mq::{
    Cause, Error, EventStore, ExecuteError, Handler, Position, Query, Range, Recorded, Runner, Timestamp,
};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::consent::{Agreement, ConsentEvent, Consents, Decide, Grant, Means, STREAM};
use crewlog_planner::event::TaskInput;
use crewlog_planner::plan::{SubPlan, TaskId, TaskPlan};
use futures::TryStreamExt;

use crate::caller::account;
use crate::programs::digest;

/// All that a task gives to a program.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// A command, for the shell.
    Command(&'a str),
    /// A text, for an agent or for the plan that carries it out.
    Text(&'a str, &'a [String], Option<&'a SubPlan>),
}

impl<'a> Told<'a> {
    /// The input of a task's program, and the command of its undo.
    pub fn of(task: &'a TaskPlan) -> impl Iterator<Item = Self> {
        let own = Self::own(task.command.as_deref(), &task.description, &task.notes, task.sub_plan.as_ref());
        [own].into_iter().chain(task.compensate.as_deref().map(Self::Command))
    }

    fn own(command: Option<&'a str>, text: &'a str, notes: &'a [String], sub_plan: Option<&'a SubPlan>) -> Self {
        command.map_or(Self::Text(text, notes, sub_plan), Self::Command)
    }

    /// As people read it, whole.
    pub fn shown(self) -> String {
        match self {
            Self::Command(command) => command.to_owned(),
            Self::Text(text, notes, sub_plan) => {
                let below = sub_plan.map(|below| below.text.clone()).filter(|below| below != text);
                [text.to_owned()].into_iter().chain(notes.iter().cloned()).chain(below).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// A digest over it and the folder, in hexadecimal.
    pub fn digest(self, folder: &str) -> String {
        let parts = match self {
            Self::Command(command) => vec!["command".to_owned(), command.to_owned()],
            Self::Text(text, notes, sub_plan) => {
                let below = sub_plan.map(|below| serde_json::to_string(below).unwrap_or_default());
                [vec!["text".to_owned(), text.to_owned(), below.unwrap_or_default()], notes.to_vec()].concat()
            }
        };
        digest(&[vec![folder.to_owned()], parts].concat())
    }
}

/// An input of a program that needs an agreement.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    /// The input.
    pub told: Told<'a>,
    /// The folder of the plan.
    pub folder: &'a str,
    /// The agreement to it.
    pub agreement: Agreement,
}

/// The inputs of a task. `folder` is that of the plan.
pub fn inputs<'a>(plan: &str, task: &'a TaskPlan, folder: Option<&'a str>) -> Vec<Input<'a>> {
    let id = task.compensates.unwrap_or(task.id);
    Told::of(task).map(|told| Input::new(plan, id, told, folder)).collect()
}

impl<'a> Input<'a> {
    fn new(plan: &str, task: TaskId, told: Told<'a>, folder: Option<&'a str>) -> Self {
        let folder = folder.unwrap_or("");
        Self { told, folder, agreement: Agreement { plan: plan.to_owned(), task, digest: told.digest(folder) } }
    }

    /// That of a dispatched task.
    pub fn of_dispatch(plan: &str, task: TaskId, input: &'a TaskInput) -> Self {
        let TaskInput { command, description, notes, sub_plan, .. } = input;
        let told = Told::own(command.as_deref(), description, notes, sub_plan.as_ref());
        Self::new(plan, input.compensates.unwrap_or(task), told, input.folder.as_deref())
    }
}

/// The reason why something may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// Somebody has agreed to it.
    Agreed,
    /// A grant covers it.
    Grant(OpenGrant),
}

/// A grant that is neither used up nor at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenGrant {
    /// The project in which it was given, and counts.
    pub project: String,
    /// The account that gave it.
    pub by: String,
    /// The grant.
    pub grant: Grant,
    /// The tasks that rest on it.
    pub n_used: u64,
}

/// The inputs of programs that were agreed to, for tasks that are about to be made.
#[derive(Debug, Default)]
pub struct Consent {
    /// The means; unset if an agent gave the order, which binds its own process alone.
    pub how: Option<Means>,
    /// The tasks that were shown, by their numbers if they had one.
    pub shown: BTreeSet<TaskId>,
    /// The digests, each with the folder of the plan.
    pub digests: BTreeSet<String>,
    /// Those that count again in later plans.
    pub remembered: BTreeSet<String>,
}

impl Consent {
    /// Records the decision for tasks of a plan, with their folder, and returns those that may run: the shown ones, and the new ones,
    /// from a number on. Where the numbers are known, it comes before the plan, so that a kill leaves none that waits.
    ///
    /// # Errors
    /// As of [`decide`].
    pub async fn record<'t>(
        self,
        store: &EventStore,
        tags: &[String],
        plan: &str,
        (tasks, folder): (impl IntoIterator<Item = &'t TaskPlan>, Option<&str>),
        first_new: u64,
        cause: &Cause,
    ) -> Result<Vec<Agreement>, ExecuteError<CrewError>> {
        let tasks = tasks.into_iter().filter(|task| task.id.0 >= first_new || self.shown.contains(&task.id));
        let needed = tasks.flat_map(|task| inputs(plan, task, folder)).map(|input| input.agreement);
        let tasks: Vec<_> = needed.filter(|needed| self.digests.contains(&needed.digest)).collect();
        if let (Some(how), false) = (self.how, tasks.is_empty()) {
            let (by, remembered, at) = (account(), self.remembered, store.now());
            let agreed = ConsentEvent::Agreed { by, how, grant: None, tasks: tasks.clone(), remembered, at };
            decide(store, tags, agreed, cause).await?;
        }
        Ok(tasks)
    }
}

/// Finds on this machine the folders that plans keep.
pub trait Places: std::fmt::Debug + Send + Sync {
    /// Where a folder is.
    ///
    /// # Errors
    /// The reason why it is nowhere.
    fn find(&self, kept: &str) -> Result<PathBuf, String>;

    /// The repository of a folder, or the folder itself: grants count there.
    fn repository(&self, kept: &str) -> PathBuf;
}

/// The decisions on a log, as a process that runs tasks knows them. Clones share them.
#[derive(Debug, Clone)]
pub struct Trust(Arc<TrustInner>);

#[derive(Debug)]
struct TrustInner {
    store: EventStore,
    /// The accounts whose decisions count here.
    accounts: Vec<String>,
    /// Earlier decisions came with an import, and count for nothing.
    after: Position,
    places: Arc<dyn Places>,
    known: RwLock<Decisions>,
}

#[derive(Debug, Default)]
struct Decisions {
    /// By project.
    consents: BTreeMap<String, Consents>,
    /// Agreements for this process alone.
    own: BTreeSet<Agreement>,
    at: Position,
}

impl Trust {
    /// The decisions of these accounts count, after a position.
    pub fn new(store: &EventStore, accounts: Vec<String>, after: Position, places: Arc<dyn Places>) -> Self {
        let (store, known) = (store.clone(), RwLock::default());
        Self(Arc::new(TrustInner { store, accounts, after, places, known }))
    }

    /// Reads the decisions that are not known yet, in their order: several followers of the log share this.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let at = self.known().at.max(self.0.after);
        let mut records = std::pin::pin!(self.0.store.records(&Query::stream(STREAM), Range::after(at)));
        while let Some(recorded) = records.try_next().await? {
            self.apply(&recorded);
        }
        Ok(())
    }

    /// The state that its answers depend on, as text.
    pub(crate) fn standing(&self) -> String {
        let (grants, known) = (self.grants(), self.known());
        format!("{:?} {} {} {:?} {grants:?}", self.0.accounts, self.0.after, known.at, known.own)
    }

    fn known(&self) -> RwLockReadGuard<'_, Decisions> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// When one of the accounts agreed to a digest, in any plan.
    pub fn remembers(&self, digest: &str) -> Option<Timestamp> {
        let known = self.known();
        let of_project =
            |consents: &Consents| self.0.accounts.iter().filter_map(|by| consents.remembers(by, digest)).max();
        known.consents.values().filter_map(of_project).max()
    }

    /// Takes in a decision, unless it is known.
    fn apply(&self, recorded: &Recorded) {
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        if recorded.stream_id == STREAM && recorded.position > known.at.max(self.0.after) {
            known.at = recorded.position;
            match recorded.decode() {
                Ok(event) => {
                    if let ConsentEvent::Withdrawn { plan, tasks, .. } = &event {
                        known.own.retain(|wanted| wanted.plan != *plan || !tasks.contains(&wanted.task));
                    }
                    known.consents.entry(recorded.aggregate_id.clone()).or_default().apply(&event);
                }
                Err(error) => tracing::warn!(%error, "skipped a decision that cannot be read"),
            }
        }
    }

    /// Ends the agreements to tasks that somebody other than a person is about to change; returns those that had one.
    ///
    /// # Errors
    /// As of [`decide`].
    pub async fn withdraw(
        &self,
        tags: &[String],
        plan: &str,
        tasks: BTreeSet<TaskId>,
        cause: &Cause,
    ) -> Result<BTreeSet<TaskId>, ExecuteError<CrewError>> {
        let agreed = |consents: &Consents| consents.agreed(plan, &tasks).collect::<Vec<_>>();
        let agreed: BTreeSet<_> = self.known().consents.values().flat_map(agreed).collect();
        if !tasks.is_empty() {
            let (by, plan, at) = (account(), plan.to_owned(), self.0.store.now());
            decide(&self.0.store, tags, ConsentEvent::Withdrawn { by, plan, tasks, at }, cause).await?;
        }
        Ok(agreed)
    }

    /// How often the agreements to a task ended.
    pub fn n_withdrawn(&self, plan: &str, task: TaskId) -> u64 {
        self.known().consents.values().map(|consents| consents.n_withdrawn(plan, task)).sum()
    }

    /// Agrees to something in this process alone.
    pub fn agree_here(&self, tasks: impl IntoIterator<Item = Agreement>) {
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).own.extend(tasks);
    }

    /// The reason why an executor may run something, if there is one.
    pub fn basis(&self, input: &Input<'_>, executor: &str) -> Option<Basis> {
        let wanted = &input.agreement;
        {
            let known = self.known();
            let has = |consents: &Consents| consents.has(&self.0.accounts, wanted);
            if known.own.contains(wanted) || known.consents.values().any(has) {
                return Some(Basis::Agreed);
            }
        }
        let command = if let Told::Command(command) = input.told { Some(command) } else { None };
        let covers = |grant: &Grant| grant.covers(&wanted.plan, executor, command);
        let is_here = |open: &OpenGrant| self.0.places.repository(input.folder) == Path::new(&open.grant.folder);
        self.open_grants(covers).into_iter().find(is_here).map(Basis::Grant)
    }

    /// The open grants of the accounts.
    pub fn grants(&self) -> Vec<OpenGrant> {
        self.open_grants(|_| true)
    }

    fn open_grants(&self, is_meant: impl Fn(&Grant) -> bool) -> Vec<OpenGrant> {
        let (known, now) = (self.known(), self.0.store.now());
        let mut open = Vec::new();
        for (project, consents) in &known.consents {
            for by in &self.0.accounts {
                let meant = consents.grants(by, now).filter(|(grant, _)| is_meant(grant));
                open.extend(meant.map(|(grant, n_used)| {
                    let (project, by, grant) = (project.clone(), by.clone(), grant.clone());
                    OpenGrant { project, by, grant, n_used }
                }));
            }
        }
        open
    }

    /// True if a dispatched task may run now. One that a grant covers is an agreement from then on.
    pub async fn agrees(&self, input: &Input<'_>, executor: &str, cause: &Cause) -> bool {
        let OpenGrant { project, by, grant, .. } = match self.basis(input, executor) {
            Some(Basis::Agreed) => return true,
            None => return false,
            Some(Basis::Grant(open)) => open,
        };
        let (how, grant, tasks, at) = (Means::Grant, Some(grant.id), vec![input.agreement.clone()], self.0.store.now());
        let agreed = ConsentEvent::Agreed { by, how, grant, tasks, remembered: BTreeSet::new(), at };
        match decide(&self.0.store, &[format!("project:{project}")], agreed, cause).await {
            Ok(()) => true,
            Err(error) => {
                tracing::info!(%error, "a task that a grant covers does not run");
                false
            }
        }
    }
}

/// Appends a decision about a project, which its tag names.
///
/// # Errors
/// A decision about too many tasks, or a fault of the log.
pub async fn decide(
    store: &EventStore,
    tags: &[String],
    decision: ConsentEvent,
    cause: &Cause,
) -> Result<(), ExecuteError<CrewError>> {
    let project = tags.iter().find_map(|tag| tag.strip_prefix("project:")).unwrap_or_default();
    let of_project = vec![format!("project:{project}")];
    let mut consents: Runner<Consents> = Runner::new(store.clone(), STREAM, project, of_project);
    loop {
        match consents.execute(Decide(decision.clone()), cause).await {
            // Another process appended first.
            Err(ExecuteError::Contended { .. }) => {}
            other => return other.map(drop),
        }
    }
}
