//! Decides on changes to the tasks of a running plan: add, edit, skip, reorder.
//!
//! All amendments of an order apply or none. Only the tasks linked to an amendment are checked, so that adding a task to
//! a large plan stays cheap.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::PlannerError;
use crate::event::{Amendment, Edit, Event, TaskStatus};
use crate::parse::{self, EDGES_MAX, ReadOptions, TEXT_BYTES_MAX, is_number};
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};
use crate::planner::initialize::change_by_mark;
use crate::planner::settings::check_count;
use crate::planner::{AMENDMENTS_MAX, Planner, end};
use crate::state::{Phase, PlannerState, Task};
use crate::validity::{InvalidPlan, TASKS_MAX, validate};

/// The longest name that an edit gives a task, in characters.
const LABEL_CHARS_MAX: usize = 64;
/// The result of a task that a person did before it began.
const DONE_BY_PERSON: &str = "done by a person";

impl Planner {
    pub(super) fn amend(&self, amendments: Vec<Amendment>, reason: String) -> Result<Vec<Event>, PlannerError> {
        if let (Phase::Ended(_), false) = (self.state.phase, self.state.config.standing) {
            return Err(PlannerError::PlanEnded);
        }
        if self.is_being_undone() {
            return Err(PlannerError::BeingUndone);
        }
        check_count("amendments", amendments.len(), AMENDMENTS_MAX)?;
        let mut draft = Draft::new(&self.state);
        for amendment in amendments {
            draft.take(amendment)?;
        }
        let Draft { tasks, skipped, done, source, .. } = draft.checked()?;
        let tasks = tasks.into_values().collect::<Vec<_>>();
        let is_new = |task: &&TaskPlan| self.state.task(task.id).is_none();
        let marked = tasks.iter().filter(is_new).filter_map(change_by_mark).collect::<Vec<_>>();
        let done = done.into_iter().map(|id| end(id, TaskStatus::Completed, Some(DONE_BY_PERSON.into()), None, true));
        let skipped = skipped.into_keys().map(|id| end(id, TaskStatus::Skipped, None, Some(reason.clone()), true));
        let ends = marked.into_iter().chain(done).chain(skipped).collect::<Vec<_>>();
        let amended = (!tasks.is_empty() || source.is_some()).then_some(Event::TasksAmended { tasks, reason, source });
        Ok(amended.into_iter().chain(ends).collect())
    }
}

/// The amended tasks.
struct Draft<'a> {
    state: &'a PlannerState,
    /// The new and changed tasks.
    tasks: BTreeMap<TaskId, TaskPlan>,
    /// The skipped tasks; true if their dependents inherit their outstanding dependencies.
    skipped: BTreeMap<TaskId, bool>,
    /// The tasks done by a person.
    done: BTreeSet<TaskId>,
    /// The text of the plan's file, if it changed.
    source: Option<String>,
}

impl<'a> Draft<'a> {
    fn new(state: &'a PlannerState) -> Self {
        Self { state, tasks: BTreeMap::new(), skipped: BTreeMap::new(), done: BTreeSet::new(), source: None }
    }

    fn take(&mut self, amendment: Amendment) -> Result<(), PlannerError> {
        match amendment {
            Amendment::Add { text, after, before } => self.add(&text, &after, &before),
            Amendment::Edit { task, edits } => {
                let plan = self.begun(task)?;
                edits.into_iter().try_for_each(|one| edit(plan, one))
            }
            Amendment::Skip { task, keeps_order } => {
                self.open_status(task, self.done.contains(&task).then_some(TaskStatus::Completed))?;
                *self.skipped.entry(task).or_default() |= keeps_order;
                Ok(())
            }
            Amendment::Done { task } => {
                let skipped = self.skipped.contains_key(&task).then_some(TaskStatus::Skipped);
                let status = self.open_status(task, skipped)?;
                if status == TaskStatus::Running {
                    return Err(PlannerError::TaskUnderWay(self.state.name(task), status));
                }
                self.done.insert(task);
                Ok(())
            }
            Amendment::Source { text } => {
                self.source = Some(text);
                Ok(())
            }
            Amendment::Reorder { task, after } => {
                self.begun(task)?.depends_on = after.into_iter().map(hard).collect();
                Ok(())
            }
            Amendment::Define { tasks } => {
                for task in tasks {
                    let known = self.state.task(task.id).map(|known| &known.plan);
                    // New tasks get the next numbers, and nobody may change fields that only planning sets.
                    let numbers = self.next_id()..=self.next_id().saturating_add(TASKS_MAX as u64);
                    if known.is_none() && !numbers.contains(&task.id.0) {
                        return Err(PlannerError::UnknownTask(task.id));
                    }
                    let plain = TaskPlan::new(task.id, task.kind, "");
                    let before = known.unwrap_or(&plain);
                    let is_kept = (&task.tool, &task.sub_plan, task.compensates)
                        == (&before.tool, &before.sub_plan, before.compensates);
                    if !is_kept {
                        return Err(PlannerError::NotOfAgent(task.name()));
                    }
                    self.tasks.insert(task.id, task);
                }
                Ok(())
            }
        }
    }

    /// The status of a task that has not ended. `amended` is its status by another amendment.
    fn open_status(&self, id: TaskId, amended: Option<TaskStatus>) -> Result<TaskStatus, PlannerError> {
        let known = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        let status = amended.unwrap_or(known.status);
        if status.is_end() { Err(PlannerError::TaskEnded(known.plan.name(), status)) } else { Ok(status) }
    }

    /// The number of the next new task.
    fn next_id(&self) -> u64 {
        let last = self.tasks.last_key_value().map_or(0, |(id, _)| id.0);
        self.state.next_id().max(last.saturating_add(1))
    }

    /// The definition of a task, for amending.
    fn begun(&mut self, id: TaskId) -> Result<&mut TaskPlan, PlannerError> {
        match self.tasks.entry(id) {
            std::collections::btree_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
                Ok(vacant.insert(task.plan.clone()))
            }
        }
    }

    /// The name of a task, as people know it.
    fn name(&self, id: TaskId) -> String {
        let known = self.state.task(id).map(|task| &task.plan).or_else(|| self.tasks.get(&id));
        known.map_or_else(|| id.to_string(), TaskPlan::name)
    }

    /// The definition of a task, as amended so far.
    fn plan(&self, id: TaskId) -> Option<&TaskPlan> {
        self.tasks.get(&id).or_else(|| self.state.task(id).map(|task| &task.plan))
    }

    fn add(&mut self, text: &str, after: &[TaskId], before: &[TaskId]) -> Result<(), PlannerError> {
        let named = |name: &str| self.state.id_named(name);
        let (parsed, outer) = parse::read_beside(text, ReadOptions::default(), &named)?;
        let tasks = parsed.tasks;
        let mut outer = outer.into_iter().peekable();
        let n_before = self.next_id() - 1;
        let renumbered = |id: TaskId| TaskId(id.0 + n_before);
        let waited_for = tasks.iter().flat_map(|task| &task.depends_on).map(|one| one.task).collect::<BTreeSet<_>>();
        let ends = tasks.iter().map(|task| task.id).filter(|id| !waited_for.contains(id)).map(renumbered);
        let ends = ends.map(hard).collect::<Vec<_>>();
        // Tasks already ended by their boxes block nothing, so the tasks after them are first tasks of the text.
        let ended = tasks.iter().filter(|task| task.mark.is_end()).map(|task| task.id).collect::<BTreeSet<_>>();
        for mut task in tasks {
            let begins = task.depends_on.iter().all(|dependency| ended.contains(&dependency.task));
            task.id = renumbered(task.id);
            for dependency in &mut task.depends_on {
                dependency.task = renumbered(dependency.task);
            }
            if begins {
                task.depends_on.extend(after.iter().copied().map(hard));
            }
            while let Some((_, of_plan)) = outer.next_if(|(waiting, _)| renumbered(*waiting) == task.id) {
                task.depends_on.push(hard(of_plan));
            }
            if let Some(condition) = &mut task.condition {
                let is_taken = |id: TaskId| self.state.labels.contains_key(&id.to_string());
                let name = |id: TaskId| if is_taken(id) { label_of_new(id) } else { id.to_string() };
                condition.refer(|id| Some(renumbered(id)), name);
            }
            // They refer to another text than the plan's.
            task.spans = Vec::new();
            // A number in an added text would not be a number of the plan.
            task.label = task.label.filter(|label| !is_number(label));
            self.tasks.insert(task.id, task);
        }
        for id in before {
            self.begun(*id)?.depends_on.extend(&ends);
        }
        Ok(())
    }

    /// Dependents of a task that is skipped, or done before its turn, inherit its outstanding dependencies.
    fn hand_on(&mut self) -> Result<(), PlannerError> {
        let keeps_order = |(id, keeps_order): (&TaskId, &bool)| keeps_order.then_some(*id);
        let handing = || self.skipped.iter().filter_map(keeps_order).chain(self.done.iter().copied());
        let waited_for =
            handing().map(|id| (id, self.outstanding(id))).filter(|(_, waited_for)| !waited_for.is_empty());
        let waited_for = waited_for.collect::<BTreeMap<_, _>>();
        let places = waited_for.keys().filter_map(|id| self.state.index(*id));
        let dependants = places.flat_map(|place| &self.state.graph.dependants[place]);
        let dependants = dependants.map(|place| &self.state.tasks[*place]);
        // Those that run or are done no longer wait; others may be opened again.
        let waits = [TaskStatus::Planned, TaskStatus::Skipped, TaskStatus::Cancelled];
        let dependants = dependants.filter(|task| waits.contains(&task.status)).map(|task| task.plan.id);
        let waiting = dependants.chain(self.tasks.keys().copied()).collect::<BTreeSet<_>>();
        let mut n_handed = 0;
        let waits = |id: &TaskId| !self.skipped.contains_key(id) && !self.done.contains(id);
        for id in waiting.into_iter().filter(waits).collect::<Vec<_>>() {
            let plan = self.begun(id)?;
            let known = plan.depends_on.iter().map(|one| one.task).collect::<BTreeSet<_>>();
            let handed = known.iter().filter_map(|one| waited_for.get(one)).flatten();
            let handed = handed.filter(|one| **one != id && !known.contains(*one)).collect::<BTreeSet<_>>();
            n_handed += handed.len();
            InvalidPlan::check_limit("dependencies", n_handed, EDGES_MAX)?;
            plan.depends_on.extend(handed.into_iter().copied().map(hard));
        }
        Ok(())
    }

    /// The dependencies of a task that have not ended, also through tasks that are skipped or done early.
    fn outstanding(&self, id: TaskId) -> BTreeSet<TaskId> {
        let (mut looked_at, mut outstanding) = (BTreeSet::from([id]), BTreeSet::new());
        let mut to_look_at = vec![id];
        while let Some(id) = to_look_at.pop() {
            let Some(plan) = self.plan(id) else { continue };
            for before in plan.depends_on.iter().map(|one| one.task).filter(|before| looked_at.insert(*before)) {
                let known = self.state.task(before);
                let is_passed = self.skipped.contains_key(&before) || self.done.contains(&before);
                if is_passed || known.is_some_and(Task::is_left_out) {
                    to_look_at.push(before);
                } else if known.is_none_or(|task| !task.status.is_end()) {
                    outstanding.insert(before);
                }
            }
        }
        outstanding
    }

    /// Completes and checks the draft.
    fn checked(mut self) -> Result<Self, PlannerError> {
        self.hand_on()?;
        for task in self.tasks.values_mut() {
            // A conditional task always waits for the tasks that decide its condition.
            let decides = task.condition.iter().flat_map(|condition| &condition.outcome_of);
            task.depends_on.extend(decides.copied().map(hard));
            // Of two dependencies on one task the stronger stays.
            task.depends_on.sort_unstable();
            task.depends_on.dedup_by_key(|dependency| dependency.task);
        }
        let state = self.state;
        for (id, task) in &mut self.tasks {
            if let Some(known) = state.task(*id) {
                told_on(&known.plan, task);
            }
        }
        self.tasks.retain(|id, task| state.task(*id).is_none_or(|known| known.plan != *task));
        for task in self.tasks.values() {
            self.check_task(task)?;
        }
        self.name_new();
        self.check_labels()?;
        self.check_graph()?;
        Ok(self)
    }

    fn check_task(&self, task: &TaskPlan) -> Result<(), PlannerError> {
        let id = task.id;
        if let Some(Task { status, plan: known, .. }) = self.state.task(id) {
            // The dependencies of an ended task may change: they count when it is retried.
            let linked_as_before = || TaskPlan { depends_on: known.depends_on.clone(), ..task.clone() };
            if matches!(status, TaskStatus::Running | TaskStatus::NeedsClarification) {
                return Err(PlannerError::TaskUnderWay(known.name(), *status));
            }
            if status.is_end() && linked_as_before() != *known {
                return Err(PlannerError::TaskEnded(known.name(), *status));
            }
        }
        if task.description.trim().is_empty() {
            return Err(PlannerError::NoDescription(self.name(id)));
        }
        let value = n_bytes(task);
        if value > TEXT_BYTES_MAX {
            return Err(PlannerError::TaskTooLong(self.name(id), value, TEXT_BYTES_MAX));
        }
        Ok(())
    }

    /// Gives a label to new tasks whose number is already the label of another task.
    fn name_new(&mut self) {
        for (id, task) in &mut self.tasks {
            if task.label.is_none() && self.state.labels.contains_key(&id.to_string()) {
                task.label = Some(label_of_new(*id));
            }
        }
    }

    fn check_labels(&self) -> Result<(), PlannerError> {
        let mut given = BTreeMap::new();
        for (label, task) in self.tasks.values().filter_map(|task| Some((task.label.as_ref()?, task.id))) {
            let small = label.to_lowercase();
            // A number as a label would be mistaken for the task with that number.
            let number = label.parse().ok().map(TaskId).filter(|number| *number != task);
            let is_given = self.state.task(task).is_none_or(|known| known.plan.label.as_ref() != Some(label));
            let is_name = |number: &TaskId| self.plan(*number).is_some_and(|other| other.label.is_none());
            if let Some(task) = number.filter(|number| is_given && is_name(number)) {
                return Err(PlannerError::LabelTaken(label.clone(), self.name(task)));
            }
            let kept = self.state.labels.get(&small).filter(|other| !self.tasks.contains_key(*other));
            if let Some(task) = kept.copied().or_else(|| given.insert(small, task)) {
                return Err(PlannerError::LabelTaken(label.clone(), self.name(task)));
            }
        }
        Ok(())
    }

    /// Checks new and relinked tasks with their direct and indirect dependencies. New tasks alone close no cycle through
    /// known ones, so those are followed only when a known task is relinked.
    fn check_graph(&self) -> Result<(), PlannerError> {
        let known = |id: &TaskId| self.state.task(*id).map(|task| &task.plan);
        let n_edges = |task: &TaskPlan| task.depends_on.len();
        let n_new = self.tasks.keys().filter(|id| known(id).is_none()).count();
        InvalidPlan::check_limit("tasks", self.state.tasks.len() + n_new, TASKS_MAX)?;
        let n_edges_before = self.tasks.keys().filter_map(known).map(n_edges).sum::<usize>();
        let n_edges_after = self.tasks.values().map(n_edges).sum::<usize>();
        InvalidPlan::check_limit("dependencies", self.state.graph.n_edges - n_edges_before + n_edges_after, EDGES_MAX)?;
        let is_relinked = |task: &&TaskPlan| known(&task.id).is_none_or(|known| known.depends_on != task.depends_on);
        let mut to_look_at = self.tasks.values().filter(is_relinked).map(|task| task.id).collect::<Vec<_>>();
        let leads_on = to_look_at.iter().any(|id| known(id).is_some());
        let mut looked_at = BTreeMap::new();
        while let Some(id) = to_look_at.pop() {
            // The graph check reports a task that does not exist.
            let Some(task) = self.plan(id).filter(|_| !looked_at.contains_key(&id)) else { continue };
            let is_followed = leads_on || self.tasks.contains_key(&id);
            let depends_on = if is_followed { task.depends_on.clone() } else { Vec::new() };
            to_look_at.extend(depends_on.iter().map(|dependency| dependency.task));
            let plain = TaskPlan { id, label: task.label.clone(), depends_on, ..TaskPlan::default() };
            looked_at.insert(id, plain);
        }
        let looked_at = looked_at.into_values().collect::<Vec<_>>();
        if looked_at.is_empty() { Ok(()) } else { Ok(validate(&looked_at)?) }
    }
}

/// The label of a new task whose number is the label of another.
fn label_of_new(id: TaskId) -> String {
    format!("added/{id}")
}

fn check_label(label: &str) -> Result<(), PlannerError> {
    let is_plain = |char: char| char.is_alphanumeric() || "-_.:/#".contains(char);
    let is_name = (1..=LABEL_CHARS_MAX).contains(&label.chars().count()) && label.chars().all(is_plain);
    if is_name { Ok(()) } else { Err(PlannerError::LabelName(label.chars().take(LABEL_CHARS_MAX).collect())) }
}

fn hard(task: TaskId) -> Dependency {
    Dependency { task, strength: Strength::Hard }
}

/// The approximate bytes of its texts.
fn n_bytes(task: &TaskPlan) -> usize {
    let texts = [&task.label, &task.command, &task.group, &task.priority, &task.assignee, &task.compensate];
    let one = texts.into_iter().flatten().map(String::len).sum::<usize>();
    let many = task.notes.iter().chain(&task.files).map(String::len).sum::<usize>();
    task.description.len() + one + many
}

/// Updates the sub-plan of a changed task: its text follows the description, and a task with a new command has none.
fn told_on(known: &TaskPlan, task: &mut TaskPlan) {
    if task.command.is_some() && task.command != known.command {
        task.sub_plan = None;
    }
    if task.description != known.description
        && let Some(sub_plan) = task.sub_plan.as_mut().filter(|sub_plan| sub_plan.request.is_none())
    {
        sub_plan.text.clone_from(&task.description);
    }
}

fn edit(task: &mut TaskPlan, edit: Edit) -> Result<(), PlannerError> {
    match edit {
        Edit::Description(description) => task.description = description,
        Edit::Kind(kind) => task.kind = kind,
        Edit::Command(command) => task.command = command,
        Edit::Label(label) => {
            label.as_deref().map(check_label).transpose()?;
            task.label = label;
        }
        Edit::Notes(notes) => task.notes = notes,
        Edit::Priority(priority) => task.priority = priority,
        Edit::Assignee(assignee) => task.assignee = assignee,
        Edit::Retry(retry) => task.retry = retry,
        Edit::TimeoutMs(timeout_ms) => task.timeout_ms = timeout_ms,
        Edit::EstimateMs(estimate_ms) => task.estimate_ms = estimate_ms,
        Edit::OnFailure(policy) => task.on_failure = policy,
        Edit::Files(files) => task.files = files,
    }
    Ok(())
}
