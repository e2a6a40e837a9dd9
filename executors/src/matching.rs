//! Compares a plan with its file: the task of each step, new, edited and removed steps, and the boxes that people set.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use crewlog_planner::event::TaskStatus;
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, ParsedPlan, ReadOptions, expressible, write_states};
use crewlog_planner::plan::{Dependency, Mark, Strength, TaskId, TaskPlan};
use crewlog_planner::state::{PlannerState, Task};
use crewlog_planner::validity::InvalidPlan;
use crewlog_planner::view::PlanView;
use serde_json::Value;

use crate::text::one_line;

/// The differences between a plan and its file.
#[derive(Debug, Default)]
pub struct Changes {
    /// New and edited tasks as the file has them; their spans are empty when only the name changes.
    pub defined: Vec<TaskPlan>,
    /// Tasks that are gone from the file or that a person has given up there.
    pub left_out: Vec<TaskId>,
    /// Tasks that a person has ticked.
    pub done: Vec<TaskId>,
    /// The new source of the plan, when steps were added, edited or removed.
    pub source: Option<String>,
    /// The line of the first step that was added or edited.
    pub line: Option<usize>,
    /// States to write, by the number of the task in the file. A state that its box shows already counts for its groups.
    pub states: BTreeMap<TaskId, Mark>,
    /// The boxes after that.
    pub shown: BTreeMap<TaskId, Mark>,
    /// Changes that the plan does not take over, with their lines.
    pub notes: Vec<(usize, String)>,
    /// States that are not written because their line is not the one that the plan read.
    pub refused: Vec<(usize, String)>,
}

/// A text of a plan's file with its steps.
pub struct FileText {
    /// The text.
    pub text: String,
    /// The plan in it.
    pub plan: ParsedPlan,
}

impl FileText {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is no valid plan.
    pub fn new(text: String, options: ReadOptions<'_>) -> Result<Self, InvalidPlan> {
        Ok(Self { plan: parse::read(&text, options)?, text })
    }

    /// The source of a plan, and whether it is read without its order, as the tasks that were made of it tell.
    ///
    /// # Errors
    /// The source is no valid plan.
    pub fn source_of(state: &PlannerState) -> Result<(Self, bool), InvalidPlan> {
        let read = |parallel| Self::new(state.source.to_owned(), state.config.file.options(parallel));
        let is_soft = |task: &TaskPlan| task.depends_on.iter().any(|before| before.strength == Strength::Soft);
        let source = read(false)?;
        let parallel = source.plan.tasks.iter().any(is_soft) && !state.tasks.iter().any(|task| is_soft(&task.plan));
        Ok((if parallel { read(true)? } else { source }, parallel))
    }

    fn line(&self, step: &TaskPlan) -> usize {
        let at = step.spans.first().map_or(0, |span| span.start);
        Lines::new(&self.text).place(at).0
    }
}

/// A plan, the text that it was last updated from, and the current text of its file.
pub struct Comparison<'a> {
    view: &'a PlanView,
    before: &'a FileText,
    now: &'a FileText,
    /// By step of the text before: the task.
    tasks_before: Vec<Option<TaskId>>,
    /// By step of the text now: the step of the text before.
    was: Vec<Option<usize>>,
    /// By step of the text now: the task.
    tasks: Vec<Option<TaskId>>,
}

impl<'a> Comparison<'a> {
    /// Finds the steps of both texts in the plan.
    pub fn new(view: &'a PlanView, before: &'a FileText, now: &'a FileText) -> Self {
        let (steps_before, steps) = (&before.plan.tasks, &now.plan.tasks);
        let tasks_before = find(view.state(), steps_before);
        let mut was = vec![None; steps.len()];
        pair(&mut was, steps, &steps_before.iter().enumerate().collect::<Vec<_>>(), &[0, 1, 2, 3, 5]);
        let mut tasks = was.iter().map(|was| tasks_before[(*was)?]).collect::<Vec<_>>();
        // A step that is new in the file may have been added to the plan by `crewlog task add`.
        let known = tasks_before.iter().flatten().collect::<HashSet<_>>();
        let is_open = |task: &&Task| !task.status.is_end() && !known.contains(&task.plan.id);
        let open = view.state().tasks.iter().filter(is_open).map(|task| (task.plan.id, &task.plan));
        pair(&mut tasks, steps, &open.collect::<Vec<_>>(), &[1, 2, 3, 4]);
        Self { view, before, now, tasks_before, was, tasks }
    }

    /// The text now with the boxes of the text before, so that only edits differ.
    pub fn with_boxes_before(&self) -> String {
        let marks = self.steps().filter_map(|(place, step)| Some((step.id, self.step_before(place)?.mark)));
        write_states(&self.now.text, &self.now.plan, &marks.collect::<Vec<_>>(), "").text
    }

    /// The text now, with the lines of tasks that have begun as they were: what the plan takes in.
    fn taken_in(&self, options: ReadOptions<'_>) -> String {
        let (mut text, mut end) = (self.now.text.clone(), usize::MAX);
        for (place, step) in self.steps().rev() {
            let (Some(task), Some(was)) = (self.task(place), self.step_before(place)) else { continue };
            let (Some(to), Some(from)) = (step.spans.first(), was.spans.first()) else { continue };
            // The bytes of a task can contain those of its parts.
            if has_begun(task) && !is_same_line(was, step) && to.end <= end {
                text.replace_range(to.start..to.end, &self.before.text[from.start..from.end]);
                end = to.start;
            }
        }
        let is_like_now = |read: ParsedPlan| read.tasks.len() == self.now.plan.tasks.len();
        if parse::read(&text, options).is_ok_and(is_like_now) { text } else { self.now.text.clone() }
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = (usize, &'a TaskPlan)> {
        self.now.plan.tasks.iter().enumerate()
    }

    fn step_before(&self, place: usize) -> Option<&'a TaskPlan> {
        self.was[place].map(|was| &self.before.plan.tasks[was])
    }

    fn task(&self, place: usize) -> Option<&'a Task> {
        self.view.state().task(self.tasks[place]?)
    }

    /// Steps of the text before that the text now does not have, with their tasks.
    fn gone(&self) -> impl Iterator<Item = (&'a TaskPlan, &'a Task)> {
        let places = self.was.iter().flatten().copied().collect::<HashSet<_>>();
        let steps = self.before.plan.tasks.iter().zip(&self.tasks_before).enumerate();
        let gone = steps.filter(move |(place, _)| !places.contains(place)).map(|(_, step)| step);
        gone.filter_map(|(step, task)| Some((step, self.view.state().task((*task)?)?)))
    }

    /// Finds the steps that were added, edited and removed. Both texts have the same boxes.
    pub fn edits(&self, options: ReadOptions<'_>) -> Changes {
        let state = self.view.state();
        let mut changes = Changes::default();
        let (begun, gone): (Vec<_>, Vec<_>) = self.gone().partition(|(_, task)| has_begun(task));
        changes.left_out = gone.into_iter().map(|(_, task)| task.plan.id).collect();
        let kept = begun.iter().map(|(_, task)| task.plan.id).collect::<HashSet<_>>();
        let missed = begun.iter().filter(|(_, task)| !is_left_out(task)).collect::<Vec<_>>();
        if let Some((first, _)) = missed.first() {
            let names = missed.iter().map(|(_, task)| task.plan.name()).collect::<Vec<_>>().join(", ");
            let text = format!("begun, so that the plan keeps it although its line is gone: {}", one_line(&names, 80));
            changes.notes.push((self.before.line(first), text));
        }
        let mut new = (state.next_id()..).map(TaskId);
        let mut new_id = |was: &Option<usize>| if was.is_none() { new.next() } else { None };
        let ids = self.was.iter().zip(&self.tasks).map(|(was, task)| task.or_else(|| new_id(was)));
        let before = in_plan(state, &self.before.plan.tasks, &self.tasks_before);
        let now = in_plan(state, &self.now.plan.tasks, &ids.collect::<Vec<_>>());
        for ((place, step), now) in self.steps().zip(now) {
            let Some(now) = now else { continue };
            let Some(task) = self.task(place) else {
                changes.defined.push(TaskPlan { mark: step.mark, spans: step.spans.clone(), ..now });
                continue;
            };
            let before = self.was[place].and_then(|was| before[was].as_ref());
            let Some(before) = before.filter(|before| **before != now) else { continue };
            let merged = merged(&task.plan, before, &now, &kept);
            if !has_begun(task) && merged != task.plan {
                changes.defined.push(TaskPlan { spans: step.spans.clone(), ..merged });
            } else if has_begun(task) && told_of(before) != told_of(&now) {
                let name = task.plan.name();
                let text = format!("task {name} has begun, so that what was changed here is not taken over");
                changes.notes.push((self.now.line(step), text));
            }
        }
        if !changes.defined.is_empty() || !changes.left_out.is_empty() {
            let first = |task: &&TaskPlan| task.spans.first().map_or(0, |span| span.start);
            changes.line = changes.defined.iter().min_by_key(first).map(|task| self.now.line(task));
            changes.source = Some(self.taken_in(options));
            self.name(&mut changes);
        }
        changes
    }

    /// Gives every task the name that the file gives it, unless a task that the file does not rename has that name.
    fn name(&self, changes: &mut Changes) {
        let state = self.view.state();
        let lower = |task: &TaskPlan| task.label.as_ref().map(|label| label.to_lowercase());
        let moving = changes.defined.iter().map(|task| &task.id).chain(&changes.left_out).collect::<HashSet<_>>();
        let keep = state.tasks.iter().filter(|task| !moving.contains(&task.plan.id));
        let mut kept = keep.map(|task| task.plan.name().to_lowercase()).collect::<HashSet<_>>();
        let mut n_kept = 0;
        // A task that keeps its name may take it from another one.
        while std::mem::replace(&mut n_kept, kept.len()) != kept.len() {
            for task in &mut changes.defined {
                let known = state.task(task.id).map(|known| known.plan.label.clone());
                let own = known.unwrap_or_else(|| Some(format!("added/{}", task.id)));
                if task.label != own && lower(task).is_some_and(|label| kept.contains(&label)) {
                    let label = std::mem::replace(&mut task.label, own).unwrap_or_default();
                    let name = task.name();
                    kept.insert(name.to_lowercase());
                    let text = format!("{label} is the name of a task that has begun: this one is called {name}");
                    changes.notes.push((self.now.line(task), text));
                }
            }
        }
        let taken = changes.defined.iter().filter_map(lower).collect::<HashSet<_>>();
        for task in changes.left_out.iter().filter_map(|id| Some(&state.task(*id)?.plan)) {
            if lower(task).is_some_and(|label| taken.contains(&label)) {
                let label = Some(format!("left-out/{}", task.id));
                changes.defined.push(TaskPlan { label, spans: Vec::new(), ..task.clone() });
            }
        }
    }

    /// Compares each box with the plan, and with the boxes and the ended attempts when the file was last in step.
    pub fn boxes(&self, shown: &BTreeMap<TaskId, Mark>, ended: &BTreeMap<TaskId, u32>, changes: &mut Changes) {
        changes.shown = shown.clone();
        for place in self.now.plan.marks.iter().filter_map(|mark| mark.of.map(place_of)) {
            let (Some(task), step) = (self.task(place), &self.now.plan.tasks[place]) else { continue };
            let was = self.step_before(place);
            let before = shown.get(&task.plan.id).copied().unwrap_or_else(|| was.map_or(Mark::Open, |was| was.mark));
            let is_as_read = is_same_line(was.unwrap_or(&task.plan), step);
            let is_put_off = matches!(step.mark, Mark::InProgress | Mark::Deferred) && step.mark == task.plan.mark;
            let says = mark_of(self.view, task);
            let mark = says.unwrap_or(if is_put_off { step.mark } else { Mark::Open });
            // A box that is ticked while its task runs belongs to that run, which decides about it.
            let has_ended = ended.get(&task.plan.id).is_some_and(|known| n_ended(task) > *known);
            let before = match (step.mark, says) {
                (Mark::Done, Some(Mark::InProgress)) => continue,
                (Mark::Done, None) if has_ended => Mark::Done,
                _other => before,
            };
            if step.mark != before && step.mark != mark {
                let (has_begun, is_free) = (has_begun(task), says.is_none() && !task.status.is_end());
                match step.mark {
                    Mark::Done if is_free && (is_as_read || !has_begun) => changes.done.push(task.plan.id),
                    Mark::Cancelled if !has_begun => changes.left_out.push(task.plan.id),
                    Mark::InProgress if !before.is_end() && !has_begun => {
                        let name = task.plan.name();
                        let text = format!("task {name} starts although its box was set: to hold it, pause the task");
                        changes.notes.push((self.now.line(step), text));
                    }
                    Mark::Open | Mark::InProgress if !before.is_end() => {}
                    Mark::Open | Mark::InProgress | Mark::Done | Mark::Cancelled | Mark::Deferred => {
                        let is_held = says == Some(Mark::InProgress);
                        let state = if is_held { "held by an executor" } else { task.status.words() };
                        let (name, verb) = (task.plan.name(), if is_held { "is" } else { "stays" });
                        let change = if step.mark == Mark::Open { "cleared" } else { "set" };
                        let text = format!("task {name} {verb} {state}, although its box was {change}");
                        changes.notes.push((self.now.line(step), text));
                    }
                }
            }
            // A box set by a person stays until the task is done.
            let stays = step.mark != before && step.mark != mark && (before.is_end() || mark != Mark::Done);
            if stays || expressible(self.now.plan.format, mark) != mark {
                continue;
            }
            if mark != step.mark && !is_as_read {
                changes.refused.push((self.now.line(step), refusal(task)));
                continue;
            }
            if mark != step.mark || mark == Mark::Done && mark != before {
                changes.states.insert(step.id, mark);
            }
            if mark != before {
                changes.shown.insert(task.plan.id, mark);
            }
        }
        for (step, task) in self.gone().filter(|(_, task)| mark_of(self.view, task) == Some(Mark::Done)) {
            if *shown.get(&task.plan.id).unwrap_or(&step.mark) != Mark::Done {
                changes.refused.push((self.before.line(step), refusal(task)));
            }
        }
    }
}

/// The number of attempts that have ended.
pub fn n_ended(task: &Task) -> u32 {
    task.attempts.saturating_sub(u32::from(task.status == TaskStatus::Running))
}

fn refusal(task: &Task) -> String {
    let (name, status) = (task.plan.name(), task.status.words());
    format!("the line of task {name} was changed after the plan read it, so that it does not get the state {status}")
}

/// The mark for a task's state in the plan, if a box can show it.
pub fn mark_of(view: &PlanView, task: &Task) -> Option<Mark> {
    match task.status {
        TaskStatus::Completed => Some(Mark::Done),
        TaskStatus::Skipped if view.state().was_skipped_by_others(task) => None,
        TaskStatus::Cancelled | TaskStatus::Skipped => Some(Mark::Cancelled),
        TaskStatus::Running => view.holder(task.plan.id).map(|_| Mark::InProgress),
        TaskStatus::Planned | TaskStatus::NeedsClarification | TaskStatus::Failed | TaskStatus::TimedOut => None,
    }
}

/// Finds steps that are not found yet among known ones that are not taken; several equal ones pair in order.
fn pair<T: Copy + Eq + Hash>(found: &mut [Option<T>], steps: &[TaskPlan], known: &[(T, &TaskPlan)], passes: &[u8]) {
    let groups = steps.iter().map(|step| &step.group).collect::<HashSet<_>>();
    let groups_known = known.iter().map(|(_, task)| &task.group).collect::<HashSet<_>>();
    let is_renamed = |task: &TaskPlan| groups.contains(&task.group) != groups_known.contains(&task.group);
    let mut taken = found.iter().flatten().copied().collect::<HashSet<_>>();
    for pass in passes {
        let mut places: HashMap<_, VecDeque<T>> = HashMap::new();
        for (one, task) in known.iter().filter(|(one, _)| !taken.contains(one)) {
            let key = key(task, *pass, is_renamed(task));
            key.into_iter().for_each(|key| places.entry(key).or_default().push_back(*one));
        }
        for (found, step) in found.iter_mut().zip(steps).filter(|(found, _)| found.is_none()) {
            *found = key(step, *pass, is_renamed(step)).and_then(|key| places.get_mut(&key)?.pop_front());
            taken.extend(*found);
        }
    }
}

/// The name, text and group that pair two tasks in a pass: the written id decides, then equal text in the same group, whose
/// heading may be renamed. Numbers come last because they move when a step is inserted.
fn key(task: &TaskPlan, pass: u8, is_renamed: bool) -> Option<[Option<&str>; 3]> {
    let (label, text, group) = (task.label.as_deref(), Some(task.description.as_str()), task.group.as_deref());
    match pass {
        0 => Some([Some(written_id(task)?), None, None]),
        1 => Some([label, text, group]),
        2 => Some([None, text, group]),
        3 => is_renamed.then_some([None, text, None]),
        4 => Some([None, text, None]),
        6 => (task.mark == Mark::Cancelled).then_some([label, text, group]),
        _last => Some([Some(label?), None, None]),
    }
}

/// The id that is written in the file; not a number or an address, which follow from the place of the step.
fn written_id(task: &TaskPlan) -> Option<&str> {
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_place = |label: &str| label.contains('/') || is_number(label) || matches!(label.as_bytes(), [b'a'..=b'z']);
    task.label.as_deref().filter(|label| !is_place(label))
}

/// The tasks of a plan that the steps of its source became.
fn find(state: &PlannerState, steps: &[TaskPlan]) -> Vec<Option<TaskId>> {
    let mut found = vec![None; steps.len()];
    let known = |left_out: bool| {
        let is_meant = |task: &&Task| is_left_out(task) == left_out && task.plan.compensates.is_none();
        state.tasks.iter().filter(is_meant).map(|task| (task.plan.id, &task.plan)).collect::<Vec<_>>()
    };
    // A step that was left out and written again is another task, which comes first, unless it is left out still.
    pair(&mut found, steps, &known(true), &[6]);
    pair(&mut found, steps, &known(false), &[0, 1, 2, 3, 5, 4]);
    pair(&mut found, steps, &known(true), &[0, 1, 2, 3, 5, 4]);
    // A task that was given another text still has the bytes that it was read from.
    let taken = found.iter().flatten().copied().collect::<HashSet<_>>();
    let edited = state.tasks.iter().filter(|task| !taken.contains(&task.plan.id) && !task.plan.spans.is_empty());
    let by_spans = edited.map(|task| (&task.plan.spans, task.plan.id)).collect::<BTreeMap<_, _>>();
    for (found, step) in found.iter_mut().zip(steps).filter(|(found, _)| found.is_none()) {
        *found = by_spans.get(&step.spans).copied();
    }
    found
}

/// The place of a step: its number in the file, from 0.
fn place_of(step: TaskId) -> usize {
    usize::try_from(step.0).map_or(usize::MAX, |number| number - 1)
}

/// The steps of a text with the numbers of the plan, without boxes and bytes. A step that waits for one that has begun
/// also waits for what was put before that one.
fn in_plan(state: &PlannerState, steps: &[TaskPlan], ids: &[Option<TaskId>]) -> Vec<Option<TaskPlan>> {
    let is = |id: TaskId, what: fn(&Task) -> bool| state.task(id).is_some_and(what);
    // By step that has begun or has no task: the open steps before it.
    let mut ahead: Vec<Vec<Dependency>> = vec![Vec::new(); steps.len()];
    let mut tasks = Vec::with_capacity(steps.len());
    for (place, step) in steps.iter().enumerate() {
        let mut depends_on = Vec::new();
        for one in &step.depends_on {
            depends_on.extend(ids[place_of(one.task)].map(|task| Dependency { task, strength: one.strength }));
            depends_on.extend(&ahead[place_of(one.task)]);
        }
        depends_on.sort_unstable();
        depends_on.dedup_by_key(|one| one.task);
        if ids[place].is_none_or(|id| is(id, has_begun)) {
            let open = depends_on.iter().filter(|one| !is(one.task, |task| task.status.is_end()));
            ahead[place] = open.copied().collect();
        }
        tasks.push(ids[place].map(|id| {
            let mut task = TaskPlan { id, mark: Mark::Open, spans: Vec::new(), depends_on, ..step.clone() };
            let name = |id: TaskId| state.task(id).map_or_else(|| id.to_string(), |task| task.plan.name());
            if let Some(condition) = &mut task.condition {
                condition.refer(|id| ids[place_of(id)], name);
            }
            task
        }));
    }
    tasks
}

/// A task of the plan with each field that the file changed, except its group, by which it is found again.
fn merged(plan: &TaskPlan, before: &TaskPlan, now: &TaskPlan, kept: &HashSet<TaskId>) -> TaskPlan {
    let value = |task: &TaskPlan| serde_json::to_value(task).expect("a task is JSON");
    let fields = |task| serde_json::from_value::<BTreeMap<String, Value>>(value(task)).expect("a task is an object");
    let (fields_before, fields_now, mut merged) = (fields(before), fields(now), fields(plan));
    let is_kept = |name: &str| name == "group" || fields_before.get(name) == fields_now.get(name);
    merged.retain(|name, _| is_kept(name));
    merged.extend(
        fields_now.iter().filter(|(name, _)| !is_kept(name)).map(|(name, value)| (name.clone(), value.clone())),
    );
    let merged = serde_json::to_value(merged).and_then(serde_json::from_value::<TaskPlan>);
    let mut merged = merged.expect("the fields of a task make a task");
    let (was, is) = (&before.depends_on, &now.depends_on);
    let stays = |one: &&Dependency| !was.contains(one) || is.contains(one) || kept.contains(&one.task);
    let added = is.iter().filter(|one| !was.contains(one));
    merged.depends_on = plan.depends_on.iter().filter(stays).chain(added).copied().collect();
    merged.depends_on.sort_unstable();
    merged.depends_on.dedup_by_key(|one| one.task);
    merged
}

/// The part of a step that an executor sees: all but its name, its place and its box.
pub fn told_of(step: &TaskPlan) -> TaskPlan {
    TaskPlan { label: None, group: None, depends_on: Vec::new(), spans: Vec::new(), mark: Mark::Open, ..step.clone() }
}

/// True of a task that the file can no longer change.
fn has_begun(task: &Task) -> bool {
    task.status != TaskStatus::Planned || task.attempts > 0
}

fn is_left_out(task: &Task) -> bool {
    matches!(task.status, TaskStatus::Skipped | TaskStatus::Cancelled)
}

/// True of lines with the same id and text.
fn is_same_line(one: &TaskPlan, other: &TaskPlan) -> bool {
    (written_id(one), &one.description) == (written_id(other), &other.description)
}
