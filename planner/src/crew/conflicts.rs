//! Detects tasks that are held at the same time and touch the same files.
//!
//! It looks at the stated files of a task, not at its real changes: the declared patterns, or else the mentioned files.
//! It warns, and never blocks.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Error, Event as MqEvent, FromRecorded, Position, Recorded, Snapshot, TAGS_MAX, Timestamp};
use serde::{Deserialize, Serialize};
use serde_with::{As, Same, Seq};

use super::globs::Pattern;
use super::{Emitted, Projection, Reactor, project_of, project_tag};
use crate::claim::{Executor, TaskEvent};
use crate::event::{Event, Parameters, PlannerCmd, TaskStatus, plan_tag};
use crate::plan::{NodeKind, TaskId, is_within};
use crate::plan_event::{PlanEvent, plan_of};
use crate::sealed::key_of;

/// The stream of conflicts.
pub const STREAM: &str = "conflicts";
/// The most holders that a conflict names.
pub const HOLDERS_MAX: usize = 16;
/// The most patterns of a task that are compared.
pub const PATTERNS_MAX: usize = 64;
/// The most names in a task that are examined for patterns: several may give the same pattern.
pub const NAMES_MAX: usize = 4 * PATTERNS_MAX;
/// The total cost of a task's patterns, in steps; further patterns are ignored.
pub const PATTERN_STEPS_MAX: usize = 8_192;

/// An event of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConflictEvent {
    /// A task was claimed while others hold overlapping files.
    ConflictDetected {
        /// Its number in the project: 1, 2, 3 ...
        conflict: u64,
        /// The first two overlapping patterns, or one if they are the same.
        pattern: String,
        /// The newcomer, then the others in the order of their claims; at most [`HOLDERS_MAX`].
        holders: Vec<ConflictHolder>,
        /// The number of all holders.
        n_holders: u64,
    },
    /// The newcomer, or the last of the others, no longer holds its task.
    ConflictResolved {
        /// Its number in the project.
        conflict: u64,
        /// The task whose end resolved it.
        by: TaskRef,
        /// The type of the event that resolved it: `TaskCompleted`.
        resolution: String,
    },
}

impl MqEvent for ConflictEvent {}

/// A task of any plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskRef {
    /// The plan.
    pub plan: String,
    /// The task in it.
    pub task: TaskId,
}

impl TaskRef {
    /// True if one task is carried out within the other, so that both touch the same files on purpose.
    fn is_one_with(&self, other: &Self) -> bool {
        is_within(&self.plan, &other.plan, other.task) || is_within(&other.plan, &self.plan, self.task)
    }
}

/// A task in a conflict, and its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub struct ConflictHolder {
    pub plan: String,
    pub task: TaskId,
    pub executor: Executor,
    /// Those of its patterns that overlap.
    pub patterns: Vec<String>,
}

/// The conflict detector. It tracks dispatched tasks that have not ended, and open conflicts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conflicts {
    #[serde(with = "As::<Seq<(Same, Same)>>")]
    running: Tasks,
    projects: BTreeMap<String, ProjectConflicts>,
    /// The number of claims so far.
    n_claims: u64,
    /// Projects whose claims changed since the last call of [`Reactor::emit`].
    touched: BTreeSet<String>,
    /// The last event applied.
    last: Moment,
}

/// Dispatched tasks that have not ended.
type Tasks = BTreeMap<TaskRef, RunningTask>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RunningTask {
    project: String,
    writes: bool,
    patterns: Vec<Pattern>,
    is_command: bool,
    hold: Option<TaskClaim>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TaskClaim {
    claim: u64,
    executor: Executor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ended {
    claim: u64,
    task: TaskRef,
    resolution: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ProjectConflicts {
    n_conflicts: u64,
    /// The held tasks, by claim.
    held: BTreeMap<u64, TaskRef>,
    open: BTreeMap<u64, OpenConflict>,
    /// Claims made since the last call of [`Reactor::emit`].
    begun: Vec<u64>,
    ended: Vec<Ended>,
}

/// An unresolved conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenConflict {
    newcomer: u64,
    others: BTreeSet<u64>,
    /// The tags of its events.
    pub tags: Vec<String>,
    /// The event that reported it.
    pub detected: ConflictEvent,
    /// The last event of the append that started it.
    pub since: Moment,
}

/// An event's place in the log and in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Its position.
    pub position: Position,
    /// When it was appended.
    pub at: Timestamp,
}

impl Snapshot for Conflicts {
    const FOLD: &'static str = "conflicts";
    const VERSION: u32 = 7;
}

impl Projection for Conflicts {
    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error> {
        self.last = Moment { position: recorded.position, at: recorded.created_at };
        let how = &recorded.event_type;
        let of = |task| TaskRef { plan: plan_of(recorded).unwrap_or_default().to_owned(), task };
        match PlanEvent::from_recorded(recorded)? {
            PlanEvent::Plan(Event::TaskDispatched { task_id, command, .. }) => {
                self.withdraw(&of(task_id), how);
                self.dispatch(of(task_id), command, recorded);
            }
            PlanEvent::Plan(Event::TaskStatusUpdated { task_id, status, .. }) if status != TaskStatus::Running => {
                self.withdraw(&of(task_id), how);
            }
            PlanEvent::Task(task, TaskEvent::TaskClaimed { executor, .. }) => {
                self.end_hold(&of(task), how);
                self.begin_hold(&of(task), executor);
            }
            PlanEvent::Task(task, event) if event.ends_hold() => self.end_hold(&of(task), how),
            PlanEvent::Plan(_) | PlanEvent::Task(..) | PlanEvent::Other => {}
        }
        Ok(())
    }

    fn end_append(&mut self) {
        drop(self.emit());
    }
}

impl Reactor for Conflicts {
    type Event = ConflictEvent;
    const NAME: &'static str = "conflicts";
    const STREAM: &'static str = STREAM;

    fn emit(&mut self) -> Vec<Emitted<ConflictEvent>> {
        let mut emitted = Vec::new();
        for name in std::mem::take(&mut self.touched) {
            let Some(project) = self.projects.get_mut(&name) else { continue };
            emitted.extend(project.emit(&name, &self.running, self.last));
        }
        emitted
    }
}

impl Conflicts {
    /// The unresolved conflicts with their projects, by project and number.
    pub fn open(&self) -> impl Iterator<Item = (&str, &OpenConflict)> {
        self.projects.iter().flat_map(|(name, project)| project.open.values().map(move |open| (name.as_str(), open)))
    }

    fn dispatch(&mut self, task: TaskRef, command: PlannerCmd, recorded: &Recorded) {
        let PlannerCmd::ExecuteTask { kind, parameters, .. } = command else { return };
        let (writes, patterns) =
            (writes(kind, &parameters), patterns_of(&parameters, key_of(&recorded.tags).is_some()));
        let (project, is_command) = (project_of(recorded).to_owned(), parameters.command.is_some());
        self.running.insert(task, RunningTask { project, writes, patterns, is_command, hold: None });
    }

    fn withdraw(&mut self, task: &TaskRef, resolution: &str) {
        self.end_hold(task, resolution);
        self.running.remove(task);
    }

    fn begin_hold(&mut self, task: &TaskRef, executor: Executor) {
        // A task that its plan has ended or taken back has no holder.
        let Some(running) = self.running.get_mut(task) else { return };
        self.n_claims += 1;
        let claim = self.n_claims;
        running.hold = Some(TaskClaim { claim, executor });
        let project = self.projects.entry(running.project.clone()).or_default();
        project.held.insert(claim, task.clone());
        project.begun.push(claim);
        self.touched.insert(running.project.clone());
    }

    fn end_hold(&mut self, task: &TaskRef, resolution: &str) {
        let Some(running) = self.running.get_mut(task) else { return };
        let Some(TaskClaim { claim, .. }) = running.hold.take() else { return };
        let Some(project) = self.projects.get_mut(&running.project) else { return };
        project.held.remove(&claim);
        project.ended.push(Ended { claim, task: task.clone(), resolution: resolution.to_owned() });
        self.touched.insert(running.project.clone());
    }
}

impl ProjectConflicts {
    fn emit(&mut self, name: &str, running: &Tasks, now: Moment) -> Vec<Emitted<ConflictEvent>> {
        let (ended, begun) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.begun));
        let mut emitted = ended.iter().flat_map(|ended| self.resolve(name, ended)).collect::<Vec<_>>();
        emitted.extend(begun.into_iter().filter_map(|claim| self.detect(name, running, claim, now)));
        emitted
    }

    /// Resolves the conflicts that end with the end of a claim.
    fn resolve(&mut self, name: &str, Ended { claim, task, resolution }: &Ended) -> Vec<Emitted<ConflictEvent>> {
        let is_resolved = |_: &u64, open: &mut OpenConflict| {
            open.others.remove(claim);
            open.newcomer == *claim || open.others.is_empty()
        };
        let resolved = self.open.extract_if(.., is_resolved).map(|(conflict, open)| {
            let (by, resolution) = (task.clone(), resolution.clone());
            let event = ConflictEvent::ConflictResolved { conflict, by, resolution };
            Emitted { project: name.to_owned(), event, tags: open.tags }
        });
        resolved.collect()
    }

    /// The conflict between a new claim and earlier ones, if there is one and the claim has not ended.
    fn detect(&mut self, name: &str, running: &Tasks, claim: u64, since: Moment) -> Option<Emitted<ConflictEvent>> {
        let newcomer = Held::of(running, self.held.get(&claim)?)?;
        let before = self.held.range(..claim).filter_map(|(claim, task)| {
            let other = Held::of(running, task)?;
            if newcomer.task.is_one_with(other.task) || newcomer.is_by_worker_of(&other) {
                return None;
            }
            let (own, theirs, pattern) = newcomer.overlap(&other)?;
            Some((*claim, other, own, theirs, pattern))
        });
        let before = before.collect::<Vec<_>>();
        let pattern = before.first()?.4.clone();
        let own = before.iter().flat_map(|(_, _, own, _, _)| own.iter().copied()).collect::<BTreeSet<_>>();
        let others = before.iter().map(|(_, other, _, theirs, _)| other.holder(theirs));
        let holders = [newcomer.holder(&own)].into_iter().chain(others).take(HOLDERS_MAX).collect();
        let n_holders = before.len() as u64 + 1;

        let plans = before.iter().map(|(_, other, ..)| &other.task.plan);
        let mut tags = project_tag(name).into_iter().collect::<Vec<_>>();
        for tag in [&newcomer.task.plan].into_iter().chain(plans).map(|plan| plan_tag(plan)) {
            if tags.len() < TAGS_MAX && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let others = before.iter().map(|(claim, ..)| *claim).collect();
        self.n_conflicts += 1;
        let conflict = self.n_conflicts;
        let event = ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders };
        let open = OpenConflict { newcomer: claim, others, tags: tags.clone(), detected: event.clone(), since };
        self.open.insert(conflict, open);
        Some(Emitted { project: name.to_owned(), event, tags })
    }
}

/// A held task.
struct Held<'a> {
    task: &'a TaskRef,
    running: &'a RunningTask,
    executor: &'a Executor,
}

impl<'a> Held<'a> {
    fn of(running: &'a Tasks, task: &'a TaskRef) -> Option<Self> {
        let running = running.get(task)?;
        Some(Self { task, running, executor: &running.hold.as_ref()?.executor })
    }

    /// True for two commands of one worker: it is no conflict with itself. Each run of an agent is an agent of its own.
    fn is_by_worker_of(&self, other: &Self) -> bool {
        self.running.is_command && other.running.is_command && self.executor == other.executor
    }

    /// The indexes of the overlapping patterns on both sides, and the first overlapping pair as text.
    fn overlap(&self, other: &Self) -> Option<(BTreeSet<usize>, BTreeSet<usize>, String)> {
        if !self.running.writes && !other.running.writes {
            return None;
        }
        let (mut own, mut theirs, mut first) = (BTreeSet::new(), BTreeSet::new(), None);
        for (i, pattern) in self.running.patterns.iter().enumerate() {
            for (j, other) in other.running.patterns.iter().enumerate() {
                let is_news = !(own.contains(&i) && theirs.contains(&j));
                if is_news && pattern.overlaps(other) {
                    own.insert(i);
                    theirs.insert(j);
                    first.get_or_insert_with(|| both(pattern.shown(), other.shown()));
                }
            }
        }
        Some((own, theirs, first?))
    }

    fn holder(&self, places: &BTreeSet<usize>) -> ConflictHolder {
        let patterns = places.iter().map(|place| self.running.patterns[*place].shown().to_owned()).collect();
        let TaskRef { plan, task } = self.task.clone();
        ConflictHolder { plan, task, executor: self.executor.clone(), patterns }
    }
}

fn both(a: &str, b: &str) -> String {
    if a == b { a.to_owned() } else { format!("{} <-> {}", a.min(b), a.max(b)) }
}

/// False for a task marked `(reads only)`, and for a task without a command whose kind only reads.
fn writes(kind: NodeKind, parameters: &Parameters) -> bool {
    let only_looks = matches!(kind, NodeKind::Retrieval | NodeKind::Analysis) && parameters.command.is_none();
    !parameters.reads_only && !only_looks
}

/// The patterns of the files that a task declares, or else mentions in texts that are not sealed.
fn patterns_of(parameters: &Parameters, is_sealed: bool) -> Vec<Pattern> {
    let folder = parameters.folder.as_deref();
    let (mut patterns, mut n_steps): (Vec<Pattern>, usize) = (Vec::new(), 0);
    let declared = parameters.files.iter().map(|file| file.trim()).filter(|file| !file.is_empty());
    let mentioned = parameters.mentions.iter().filter(|_| !is_sealed).map(String::as_str);
    for text in declared.chain(mentioned).take(NAMES_MAX) {
        if patterns.len() == PATTERNS_MAX {
            break;
        }
        let pattern = Pattern::new(folder, text);
        if n_steps + pattern.n_steps() > PATTERN_STEPS_MAX {
            continue;
        }
        n_steps += pattern.n_steps();
        if !patterns.iter().any(|known| known.is_same(&pattern)) {
            patterns.push(pattern);
        }
    }
    patterns
}
