//! The fold of a plan's events: tasks with what happened to them, open questions, and what may run.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, Outcome, PlannerConfig, Purpose, QuestionId, TaskStatus};
use crate::past::Past;
use crate::plan::{Attachment, NodeKind, TaskId, TaskPlan};
pub use crate::task::{Question, Task};

/// Where a plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing is planned.
    #[default]
    Empty,
    /// Tasks are started as they become ready.
    Active,
    /// Nothing is started.
    Paused,
    /// Over.
    Ended(Outcome),
}

/// All that is known of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannerState {
    pub(crate) tasks: Vec<Task>,
    pub(crate) questions: Vec<Question>,
    /// By task: the places of its questions, in the order they were asked.
    asked: BTreeMap<TaskId, Vec<usize>>,
    /// By task: the places of the answered questions that it is told of, its own and those of all that it waits for.
    pub(crate) told: BTreeMap<TaskId, Vec<usize>>,
    /// The places of the questions that wait for an answer.
    pub(crate) open: BTreeSet<usize>,
    pub(crate) phase: Phase,
    pub(crate) title: Option<String>,
    pub(crate) source: String,
    pub(crate) config: PlannerConfig,
    pub(crate) context: Vec<String>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) past: Past,
    pub(crate) cancelled: bool,
    /// By the text of a condition: whether it holds; unset while it is being asked.
    pub(crate) conditions: BTreeMap<String, Option<bool>>,
    pub(crate) graph: Graph,
}

/// What follows from tasks and statuses, kept so that a step costs what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    /// By task: those that wait for it.
    dependants: Vec<Vec<usize>>,
    /// By task: dependencies that have not let it go yet.
    unmet: Vec<usize>,
    /// By lane: planned, and everything they wait for has let them go.
    pub(crate) ready: [BTreeSet<usize>; N_LANES],
    /// Planned, and something they wait for has ended for good: which.
    pub(crate) doomed: BTreeMap<usize, TaskId>,
    /// The tasks that have not ended.
    pub(crate) open: BTreeSet<usize>,
    pub(crate) n_running: [usize; N_LANES],
}

/// Tasks run side by side in lanes: those with a command, those without, and questions.
pub(crate) const N_LANES: usize = 3;
/// The lane of tasks that run by themselves.
const COMMANDS: usize = 0;
/// The lane that has no limit.
pub(crate) const QUESTIONS: usize = 2;

/// The lane of a task.
pub(crate) fn lane(task: &TaskPlan) -> usize {
    match (task.kind, &task.command) {
        (NodeKind::Clarification, _) => QUESTIONS,
        (_, Some(_)) => COMMANDS,
        (_, None) => 1,
    }
}

impl PlannerState {
    /// The tasks, in the order of planning.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// A task by its number.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.index(id).map(|index| &self.tasks[index])
    }

    /// A task by its label or number.
    #[must_use]
    pub fn task_named(&self, name: &str) -> Option<&Task> {
        let labelled = self.tasks.iter().find(|task| task.plan.label.as_deref() == Some(name));
        labelled.or_else(|| self.task(TaskId(name.parse().ok()?)))
    }

    /// All questions, in the order they were asked.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The questions that wait for an answer.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().map(|place| &self.questions[*place])
    }

    /// True while a task with a command is running: such tasks go on by themselves.
    #[must_use]
    pub fn runs_commands(&self) -> bool {
        self.graph.n_running[COMMANDS] > 0
    }

    /// Where the plan stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The text's first heading.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &PlannerConfig {
        &self.config
    }

    /// What of the text is no task.
    #[must_use]
    pub fn context(&self) -> &[String] {
        &self.context
    }

    /// Attachments that no task mentions.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// What stands for results that are no longer told in full.
    #[must_use]
    pub fn context_summary(&self) -> &str {
        self.past.summary()
    }

    /// What the next planned task would be numbered.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.tasks.last().map_or(1, |task| task.plan.id.0 + 1)
    }

    pub(crate) fn index(&self, id: TaskId) -> Option<usize> {
        self.tasks.binary_search_by_key(&id, |task| task.plan.id).ok()
    }

    /// True when everything that a task waits for has let it go.
    pub(crate) fn is_unblocked(&self, id: TaskId) -> bool {
        self.index(id).is_some_and(|index| self.graph.unmet[index] == 0)
    }

    /// True while a person is asked what to do about a failure of the task.
    pub(crate) fn is_asked_what_to_do_about(&self, id: TaskId) -> bool {
        let mut asked = self.asked.get(&id).into_iter().flatten().map(|place| &self.questions[*place]);
        asked.any(|question| question.purpose == Purpose::Failure && question.is_open())
    }

    /// The places of the tasks that wait for one.
    pub(crate) fn dependants(&self, index: usize) -> &[usize] {
        &self.graph.dependants[index]
    }

    /// The questions that a task asked, in the order they were asked.
    pub(crate) fn questions_of(&self, task: TaskId) -> impl Iterator<Item = &Question> {
        self.asked.get(&task).into_iter().flatten().map(|place| &self.questions[*place])
    }

    pub(crate) fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.get(usize::try_from(id.0.checked_sub(1)?).ok()?)
    }

    /// Takes one event in. It trusts the log: what the planner did not decide is passed over.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::TasksPlanned { tasks, title, source, config, context, attachments } => {
                self.tasks = tasks.iter().map(|plan| Task::planned(plan.clone())).collect();
                self.title.clone_from(title);
                self.source.clone_from(source);
                self.config = config.clone();
                self.context.clone_from(context);
                self.attachments.clone_from(attachments);
                self.phase = Phase::Active;
                self.index_graph();
            }
            Event::TaskDispatched { task_id, attempt, .. } => {
                self.change(*task_id, |task| {
                    task.attempts = *attempt;
                    task.status = TaskStatus::Running;
                });
            }
            Event::TaskStatusUpdated { task_id, status, result, error, unblocks } => {
                self.change(*task_id, |task| {
                    task.failures += u32::from(matches!(task.status, TaskStatus::Running) && error.is_some());
                    task.status = *status;
                    task.result.clone_from(result);
                    task.error.clone_from(error);
                    task.unblocks = *unblocks;
                });
                if status.is_end() {
                    self.withdraw_questions_of(*task_id);
                }
            }
            Event::ClarificationRequested { task_id, question_id, question, purpose } => {
                if let (Purpose::Condition, Some(text)) = (purpose, self.condition_of(*task_id)) {
                    self.conditions.insert(text, None);
                }
                self.asked.entry(*task_id).or_default().push(self.questions.len());
                self.open.insert(self.questions.len());
                self.questions.push(Question {
                    id: *question_id,
                    task: *task_id,
                    question: question.clone(),
                    purpose: *purpose,
                    answer: None,
                    is_withdrawn: false,
                });
                if *purpose != Purpose::Condition {
                    self.change(*task_id, |task| task.status = TaskStatus::NeedsClarification);
                }
            }
            Event::ClarificationReceived { question_id, answer, .. } => self.close_question(*question_id, answer),
            Event::ContextCompacted { summary, removed_task_ids } => {
                let removed = removed_task_ids.iter().filter_map(|id| self.index(*id)).collect::<Vec<_>>();
                self.past.compact(summary, removed.into_iter());
            }
            Event::PlanPaused { .. } => self.phase = Phase::Paused,
            Event::PlanResumed {} => self.phase = Phase::Active,
            Event::PlanCancelled { .. } => self.cancelled = true,
            Event::TasksReopened { task_ids } => self.reopen(task_ids),
            Event::PlanningCompleted { outcome, .. } => self.phase = Phase::Ended(*outcome),
        }
    }

    /// Changes a task and what follows from its status.
    fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(index) = self.index(id) else { return };
        let task = &mut self.tasks[index];
        let (before, lane) = (task.status, lane(&task.plan));
        change(task);
        let after = task.status;
        let n_running = &mut self.graph.n_running[lane];
        *n_running += usize::from(after == TaskStatus::Running);
        *n_running -= usize::from(before == TaskStatus::Running);
        if after != TaskStatus::Planned {
            self.graph.ready[lane].remove(&index);
            self.graph.doomed.remove(&index);
        } else if before != TaskStatus::Planned {
            self.await_turn(index);
        }
        match (before.is_end(), after.is_end()) {
            (false, true) => {
                self.graph.open.remove(&index);
                self.release_dependants(index);
            }
            (true, false) => {
                self.graph.open.insert(index);
                self.past.reopen(index);
            }
            (false, false) | (true, true) => {}
        }
        if after.is_end() {
            self.past.end(index, &self.tasks[index]);
        }
    }

    /// Places a task that is planned again. What it waits for may have been reopened since it was first dispatched.
    fn await_turn(&mut self, index: usize) {
        let task = &self.tasks[index].plan;
        if self.graph.unmet[index] == 0 {
            self.graph.ready[lane(task)].insert(index);
        } else if let Some(blocker) = task
            .depends_on
            .iter()
            .find(|dependency| self.task(dependency.task).is_some_and(|blocker| hold(task, blocker) == Hold::ForGood))
        {
            self.graph.doomed.insert(index, blocker.task);
        }
    }

    fn release_dependants(&mut self, index: usize) {
        let ended = &self.tasks[index];
        for dependant in &self.graph.dependants[index] {
            let task = &self.tasks[*dependant];
            let is_planned = task.status == TaskStatus::Planned;
            match hold(&task.plan, ended) {
                Hold::None => {
                    self.graph.unmet[*dependant] -= 1;
                    if self.graph.unmet[*dependant] == 0 && is_planned {
                        self.graph.ready[lane(&task.plan)].insert(*dependant);
                    }
                }
                Hold::ForGood if is_planned => {
                    self.graph.doomed.entry(*dependant).or_insert(ended.plan.id);
                }
                Hold::ForGood | Hold::ForNow => {}
            }
        }
    }

    /// Builds the graph from tasks and statuses.
    fn index_graph(&mut self) {
        let n_tasks = self.tasks.len();
        let mut graph = Graph { dependants: vec![Vec::new(); n_tasks], unmet: vec![0; n_tasks], ..Graph::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            if !task.status.is_end() {
                graph.open.insert(index);
            }
            graph.n_running[lane(&task.plan)] += usize::from(task.status == TaskStatus::Running);
            for dependency in &task.plan.depends_on {
                let Some(before) = self.index(dependency.task) else { continue };
                graph.dependants[before].push(index);
                let blocker = &self.tasks[before];
                let hold = hold(&task.plan, blocker);
                graph.unmet[index] += usize::from(hold != Hold::None);
                if task.status == TaskStatus::Planned && hold == Hold::ForGood {
                    graph.doomed.entry(index).or_insert(blocker.plan.id);
                }
            }
            if task.status == TaskStatus::Planned && graph.unmet[index] == 0 {
                graph.ready[lane(&task.plan)].insert(index);
            }
        }
        self.graph = graph;
    }

    fn condition_of(&self, id: TaskId) -> Option<String> {
        Some(self.task(id)?.plan.condition.as_ref()?.text.clone())
    }

    fn close_question(&mut self, id: QuestionId, answer: &str) {
        let index = usize::try_from(id.0).unwrap_or(0).wrapping_sub(1);
        let Some(question) = self.questions.get_mut(index) else { return };
        question.answer = Some(answer.to_owned());
        let (purpose, asker) = (question.purpose, question.task);
        self.open.remove(&index);
        // A task that is a question tells its answer as what came of it.
        if let (false, Some(asker)) = (purpose == Purpose::Task, self.index(asker)) {
            self.past.answer(index, &self.questions[index], &self.tasks[asker]);
        }
        match purpose {
            Purpose::Condition => {
                if let Some(text) = self.condition_of(asker) {
                    self.conditions.insert(text, is_yes(answer));
                }
            }
            Purpose::Task | Purpose::Executor => self.tell_on(asker, index),
            Purpose::Failure => {}
        }
    }

    /// Tells the task that asked, and all that come after it, of an answer.
    fn tell_on(&mut self, asker: TaskId, question: usize) {
        let Some(asker) = self.index(asker) else { return };
        let mut seen = BTreeSet::from([asker]);
        let mut to_tell = vec![asker];
        while let Some(index) = to_tell.pop() {
            self.told.entry(self.tasks[index].plan.id).or_default().push(question);
            to_tell.extend(self.graph.dependants[index].iter().filter(|dependant| seen.insert(**dependant)));
        }
    }

    fn withdraw_questions_of(&mut self, id: TaskId) {
        let condition = self.condition_of(id);
        for place in self.asked.get(&id).into_iter().flatten() {
            let question = &mut self.questions[*place];
            if !question.is_open() {
                continue;
            }
            question.is_withdrawn = true;
            self.open.remove(place);
            if let (Purpose::Condition, Some(text)) = (question.purpose, &condition) {
                self.conditions.remove(text);
            }
        }
    }

    fn reopen(&mut self, ids: &[TaskId]) {
        for id in ids {
            let Some(index) = self.index(*id) else { continue };
            let task = &mut self.tasks[index];
            // What was left out by an answer would only be left out again: it is asked anew, unless it is being asked.
            if let (true, TaskStatus::Skipped, Some(condition)) = (task.unblocks, task.status, &task.plan.condition)
                && let Some(Some(_)) = self.conditions.get(&condition.text)
            {
                self.conditions.remove(&condition.text);
            }
            *task = Task { attempts: task.attempts, ..Task::planned(task.plan.clone()) };
            self.past.reopen(index);
        }
        if let Phase::Ended(_) = self.phase {
            self.phase = Phase::Active;
        }
        self.cancelled = false;
        self.index_graph();
    }
}

/// Whether a task holds one that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    None,
    ForNow,
    ForGood,
}

/// What runs only if something holds is let go by any end, since the end may be what it asks about.
fn hold(dependant: &TaskPlan, blocker: &Task) -> Hold {
    match blocker.status.is_end() {
        false => Hold::ForNow,
        true if blocker.unblocks || dependant.condition.is_some() => Hold::None,
        true => Hold::ForGood,
    }
}

/// What a person means by an answer to a yes-or-no question.
pub(crate) fn is_yes(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" | "ja" | "oui" | "si" | "sí" | "是" => Some(true),
        "n" | "no" | "false" | "nein" | "non" | "否" => Some(false),
        _ => None,
    }
}
