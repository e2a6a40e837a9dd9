//! Schedules a plan: dispatches tasks with their input, skips tasks, asks conditions, and ends the plan.

use std::collections::{BTreeSet, btree_set};
use std::iter::Peekable;

use crate::crew::conflicts::NAMES_MAX;
use crate::crew::paths::mentioned_files;
use crate::event::{Event, Outcome, Parameters, PlannerCmd, PlannerConfig, Purpose, TaskStatus};
use crate::plan::{NodeKind, TaskPlan};
use crate::planner::{Planner, end};
use crate::state::{ConcurrencyGroup, ConditionStatus, Phase, PlannerState, Priority, Running, Shortage, Task};

impl Planner {
    /// The next events: skipped tasks, the end of the plan, or dispatches.
    pub(super) fn schedule(&self) -> Vec<Event> {
        let skipped = self.skip();
        if !skipped.is_empty() {
            return skipped;
        }
        let is_on = matches!(self.state.phase, Phase::Active | Phase::Paused);
        let is_undone_late = matches!(self.state.phase, Phase::Ended(Outcome::Failed | Outcome::Cancelled));
        // A standing plan stays open for more, and a new fork for changes.
        let stays_open = self.state.config.standing || self.state.is_draft;
        let is_done = is_on && (!stays_open || self.state.is_cancelled || self.state.is_late);
        if (is_done || is_undone_late) && self.state.graph.open.is_empty() {
            let undoing = self.compensate();
            return match is_on && undoing.is_empty() {
                true => vec![self.complete()],
                false => undoing,
            };
        }
        if self.state.phase != Phase::Active {
            return Vec::new();
        }
        let started = self.start();
        if !started.is_empty() {
            return started;
        }
        // If the budget prevents every start and nothing runs, a person must be told.
        let paused = |shortage: Shortage| Event::PlanPaused { reason: shortage.words(), from_parent: false };
        self.state.shortage().map(paused).into_iter().collect()
    }

    /// Ends the tasks that can no longer run.
    pub(super) fn skip(&self) -> Vec<Event> {
        let doomed = self.state.graph.doomed.iter().map(|(index, because)| {
            let reason = format!("task {} did not complete", self.state.name(*because));
            end(self.state.tasks[*index].plan.id, TaskStatus::Skipped, None, Some(reason), false)
        });
        doomed.collect()
    }

    /// Dispatches ready tasks within the limits, the most urgent first, and asks open conditions first.
    pub(super) fn start(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut n_asked = 0;
        let mut ledger = self.state.ledger(|_| true);
        let mut being_asked = BTreeSet::new();
        let mut ready = ReadyQueue::of(&self.state);
        while let Some((group, index)) = ready.next() {
            let task = &self.state.tasks[index];
            match self.state.condition_status(&task.plan) {
                ConditionStatus::Holds if !self.state.admit(&mut ledger, task) => {}
                ConditionStatus::Holds => {
                    events.push(self.dispatch(task));
                    ready.running.begin(group);
                    if let NodeKind::Clarification = task.plan.kind {
                        let (question, default) = (task.plan.description.clone(), task.plan.default_answer.clone());
                        events.push(self.ask(task.plan.id, question, Purpose::Task, default, n_asked));
                        n_asked += 1;
                    }
                }
                status @ (ConditionStatus::Fails | ConditionStatus::Void) => {
                    let (text, negated) = condition_of(&task.plan);
                    let holds = match (status, negated) {
                        (ConditionStatus::Void, _) => "is undecided, since nothing ran that decides it",
                        (_, true) => "holds",
                        (_, false) => "does not hold",
                    };
                    let reason = format!("the condition {text:?} {holds}");
                    events.push(end(task.plan.id, TaskStatus::Skipped, None, Some(reason), true));
                }
                ConditionStatus::Asked => {}
                ConditionStatus::Unknown => {
                    if being_asked.insert(task.plan.condition_key()) {
                        let question = self.condition_question(&task.plan);
                        events.push(self.ask(task.plan.id, question, Purpose::Condition, None, n_asked));
                        n_asked += 1;
                    }
                }
            }
        }
        events
    }

    /// The question about the condition of a task.
    fn condition_question(&self, task: &TaskPlan) -> String {
        let before = task.depends_on.iter().filter_map(|before| self.state.task(before.task));
        let before = before.map(|before| before.plan.name()).collect::<Vec<_>>().join(", ");
        let after = if before.is_empty() { before } else { format!(", after {before}") };
        let (text, negated) = condition_of(task);
        let does = if negated { "does not" } else { "does" };
        format!("Does {text:?} hold? Task {} runs only if it {does}{after}. (yes or no)", task.name())
    }

    pub(super) fn dispatch(&self, task: &Task) -> Event {
        let node_id = task.plan.id;
        let command = match task.plan.kind {
            NodeKind::Clarification => {
                PlannerCmd::RequestClarification { node_id, question: task.plan.description.clone() }
            }
            kind => {
                let parameters = Parameters::of(&task.plan, self.state.config.folder.clone());
                PlannerCmd::ExecuteTask { node_id, kind, parameters: Box::new(parameters) }
            }
        };
        Event::TaskDispatched { task_id: node_id, attempt: task.attempts.saturating_add(1), command }
    }

    /// The outcome if the plan ended now. Undo tasks and optional ones do not count.
    pub(super) fn outcome(&self) -> Outcome {
        let is_bad = |task: &Task| !task.is_completed() && !task.plan.optional && task.plan.compensates.is_none();
        match () {
            () if self.state.is_cancelled => Outcome::Cancelled,
            () if self.state.tasks.iter().any(is_bad) => Outcome::Failed,
            () => Outcome::Completed,
        }
    }

    pub(super) fn complete(&self) -> Event {
        let outcome = self.outcome();
        let tasks = || self.state.tasks.iter().filter(|task| task.plan.compensates.is_none());
        let count = |status| tasks().filter(|task| task.status == status).count();
        let ends = [
            (TaskStatus::Completed, "completed"),
            (TaskStatus::Failed, "failed"),
            (TaskStatus::TimedOut, "timed out"),
            (TaskStatus::Cancelled, "cancelled"),
            (TaskStatus::Skipped, "skipped"),
        ];
        let in_words = |(n, word): (usize, &str)| (n > 0).then(|| format!("{n} {word}"));
        let ends = ends.into_iter().filter_map(|(status, word)| in_words((count(status), word))).collect::<Vec<_>>();
        let (n_undone, n_not_undone) = self.n_undone();
        let undone = [(n_undone, "undone"), (n_not_undone, "could not be undone")].into_iter().filter_map(in_words);
        let parts = [ends.join(", ")].into_iter().chain(undone).collect::<Vec<_>>();
        let n_tasks = tasks().count();
        let noun = if n_tasks == 1 { "task" } else { "tasks" };
        let summary = format!("{n_tasks} {noun}: {}", parts.join("; "));
        Event::PlanningCompleted { summary, outcome, n_tasks: n_tasks as u64 }
    }
}

/// The ready tasks by priority, within the limits on parallelism. A full concurrency group does not block others.
struct ReadyQueue<'a> {
    queues: Vec<(ConcurrencyGroup, Peekable<btree_set::Iter<'a, Priority>>)>,
    config: &'a PlannerConfig,
    /// The running tasks, including those dispatched by this decision.
    running: Running,
}

impl<'a> ReadyQueue<'a> {
    fn of(state: &'a PlannerState) -> Self {
        let queues = state.graph.ready.iter().map(|(group, queue)| (*group, queue.iter().peekable()));
        Self { queues: queues.collect(), config: &state.config, running: state.graph.running.clone() }
    }

    fn next(&mut self) -> Option<(ConcurrencyGroup, usize)> {
        let (config, running) = (self.config, &self.running);
        // In a standing plan unclaimed tasks do not count against the limits.
        let has_room = |group: ConcurrencyGroup| config.standing || running.have_room(group, config);
        let with_room = self.queues.iter_mut().filter(|(group, _)| has_room(*group));
        let heads = with_room.filter_map(|(group, queue)| Some(((group.lane, **queue.peek()?), group, queue)));
        let (_, group, queue) = heads.min_by_key(|(priority, _, _)| *priority)?;
        let (_, _, index) = queue.next()?;
        Some((*group, *index))
    }
}

fn condition_of(task: &TaskPlan) -> (&str, bool) {
    task.condition.as_ref().map_or(("", false), |condition| (&condition.text, condition.negated))
}

impl Parameters {
    /// Those of a task whose plan has a folder.
    #[must_use]
    pub fn of(plan: &TaskPlan, folder: Option<String>) -> Self {
        Self {
            description: plan.description.clone(),
            command: plan.command.clone(),
            assignee: plan.assignee.clone(),
            folder,
            files: plan.files.clone(),
            mentions: mentioned(plan),
            reads_only: plan.reads_only,
            is_delegated: plan.is_delegated(),
            compensates: plan.compensates,
        }
    }
}

/// The files that the texts of a task mention, if it declares none.
fn mentioned(plan: &TaskPlan) -> Vec<String> {
    if plan.files.iter().any(|file| !file.trim().is_empty()) {
        return Vec::new();
    }
    let attached = plan.attachments.iter().filter_map(|attachment| attachment.kind.path());
    let attached = attached.filter(|path| !path.contains("://"));
    let texts = [&plan.description].into_iter().chain(&plan.notes).chain(&plan.command);
    let mentioned = attached.chain(texts.flat_map(|text| mentioned_files(text)));
    let mut known = BTreeSet::new();
    mentioned.filter(|file| known.insert(*file)).take(NAMES_MAX).map(str::to_owned).collect()
}
