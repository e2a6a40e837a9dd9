//! Compares a plan with its file: which task each step is, what is new, edited or gone, and which boxes people have set.
//! It reads no file and appends nothing.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use crewlog_planner::event::TaskStatus;
use crewlog_planner::parse::{self, ParseError, ParsedPlan, ReadOptions, expressible, write_states};
use crewlog_planner::plan::{Dependency, Mark, TaskId, TaskPlan};
use crewlog_planner::state::{PlannerState, Task};
use crewlog_planner::view::PlanView;

use crate::text::one_line;

/// The boxes that crewlog has written or seen to agree with the plan, by task. All others were last seen as in the plan's
/// source.
pub type Shown = BTreeMap<TaskId, Mark>;

/// A line number of the file and a warning.
pub type Note = (usize, String);

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
    pub shown: Shown,
    /// Changes that the plan does not take over.
    pub notes: Vec<Note>,
    /// States that are not written because their line is not the one that the plan read.
    pub refused: Vec<Note>,
}

impl Changes {
    /// True when the file changes nothing in the plan.
    pub fn keep_plan(&self) -> bool {
        self.source.is_none() && self.left_out.is_empty() && self.done.is_empty()
    }
}

/// A text of a plan's file with its steps.
pub struct Reading {
    pub text: String,
    pub plan: ParsedPlan,
    line_ends: Vec<usize>,
}

impl Reading {
    /// Reads a text.
    pub fn new(text: String, options: ReadOptions<'_>) -> Result<Self, ParseError> {
        let plan = parse::read(&text, options)?;
        Ok(Self { plan, line_ends: text.match_indices('\n').map(|(end, _)| end).collect(), text })
    }

    fn line(&self, step: &TaskPlan) -> usize {
        let at = step.spans.first().map_or(0, |span| span.start);
        self.line_ends.partition_point(|end| *end < at) + 1
    }
}

/// A plan, the text that it has taken in, and the text of its file now.
pub struct Comparison<'a> {
    view: &'a PlanView,
    before: &'a Reading,
    now: &'a Reading,
    /// By step of the text before: the task.
    tasks_before: Vec<Option<TaskId>>,
    /// By step of the text now: the step of the text before.
    was: Vec<Option<usize>>,
    /// By step of the text now: the task.
    tasks: Vec<Option<TaskId>>,
}

impl<'a> Comparison<'a> {
    /// Finds the steps of both texts in the plan.
    pub fn new(view: &'a PlanView, before: &'a Reading, now: &'a Reading) -> Self {
        let (steps_before, steps) = (&before.plan.tasks, &now.plan.tasks);
        let tasks_before = find(view.state(), steps_before);
        let mut was = vec![None; steps.len()];
        pair(&mut was, steps, &steps_before.iter().enumerate().collect::<Vec<_>>(), false);
        let mut tasks = was.iter().map(|was| tasks_before[(*was)?]).collect::<Vec<_>>();
        // A step that is new in the file may have been added to the plan by `crewlog amend`.
        let known = tasks_before.iter().flatten().collect::<HashSet<_>>();
        let is_open = |task: &&Task| !task.status.is_end() && !known.contains(&task.plan.id);
        let open = view.state().tasks().iter().filter(is_open).map(|task| (task.plan.id, &task.plan));
        pair(&mut tasks, steps, &open.collect::<Vec<_>>(), false);
        for ((id, was), step) in tasks.iter_mut().zip(&was).zip(steps) {
            let is_same = |task: &Task| was.is_some() || task.plan.description == step.description;
            *id = id.filter(|id| view.state().task(*id).is_some_and(is_same));
        }
        Self { view, before, now, tasks_before, was, tasks }
    }

    /// The text now with the boxes of the text before, so that only edits differ.
    pub fn with_boxes_before(&self) -> String {
        let marks = self.steps().filter_map(|(place, step)| {
            let before = self.before.plan.tasks[self.was[place]?].mark;
            (before != step.mark).then_some((step.id, before))
        });
        write_states(&self.now.text, &self.now.plan, &marks.collect::<Vec<_>>(), "").text
    }

    /// The text now, with the lines of tasks that have begun as they were: what the plan takes in.
    fn taken_in(&self, options: ReadOptions<'_>) -> String {
        let kept = self.steps().filter_map(|(place, step)| {
            let was = &self.before.plan.tasks[self.was[place]?];
            let is_kept = !is_same_line(was, step) && has_begun(self.task(place)?);
            is_kept.then_some((*step.spans.first()?, *was.spans.first()?))
        });
        let mut kept = kept.collect::<Vec<_>>();
        kept.sort_unstable();
        let (mut text, mut start) = (self.now.text.clone(), self.now.text.len());
        for (now, was) in kept.iter().rev() {
            // Parts of a task can stand within its bytes.
            if now.end <= start {
                text.replace_range(now.start..now.end, &self.before.text[was.start..was.end]);
                start = now.start;
            }
        }
        let is_like_now = |read: ParsedPlan| read.tasks.len() == self.now.plan.tasks.len();
        if parse::read(&text, options).is_ok_and(is_like_now) { text } else { self.now.text.clone() }
    }

    fn steps(&self) -> impl Iterator<Item = (usize, &'a TaskPlan)> {
        self.now.plan.tasks.iter().enumerate()
    }

    fn task(&self, place: usize) -> Option<&'a Task> {
        self.view.state().task(self.tasks[place]?)
    }

    /// Steps of the text before that the text now does not have, with their tasks.
    fn gone(&self) -> impl Iterator<Item = (&'a TaskPlan, &'a Task)> {
        let places = self.was.iter().flatten().copied().collect::<HashSet<_>>();
        let steps = self.before.plan.tasks.iter().zip(&self.tasks_before).enumerate();
        let steps = steps.filter(move |(place, _)| !places.contains(place));
        steps.filter_map(|(_, (step, task))| Some((step, self.view.state().task((*task)?)?)))
    }

    /// Finds the steps that were added, edited and removed. Both texts have the same boxes.
    pub fn edits(&self, options: ReadOptions<'_>) -> Changes {
        let state = self.view.state();
        let mut changes = Changes::default();
        let (kept, gone): (Vec<_>, Vec<_>) = self.gone().partition(|(_, task)| has_begun(task));
        changes.left_out = gone.into_iter().map(|(_, task)| task.plan.id).collect();
        let told = kept.iter().filter(|(_, task)| !is_left_out(task)).collect::<Vec<_>>();
        if let Some((first, _)) = told.first() {
            let names = told.iter().map(|(_, task)| task.plan.name()).collect::<Vec<_>>().join(", ");
            let text = format!("begun, so that the plan keeps it although its line is gone: {}", one_line(&names, 80));
            changes.notes.push((self.before.line(first), text));
        }
        let kept = kept.iter().map(|(_, task)| task.plan.id).collect::<HashSet<_>>();
        let mut new = (state.next_id()..).map(TaskId);
        let ids = self.was.iter().zip(&self.tasks);
        let ids = ids.map(|(was, task)| task.or_else(|| if was.is_none() { new.next() } else { None }));
        let before = in_plan(state, &self.before.plan, &self.tasks_before);
        let now = in_plan(state, &self.now.plan, &ids.collect::<Vec<_>>());
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
            changes.line = changes.defined.iter().map(|task| self.now.line(task)).min();
            changes.source = Some(self.taken_in(options));
            self.name(&mut changes);
        }
        changes
    }

    /// Gives every task the name that the file gives it, unless a task that the file does not rename has that name.
    fn name(&self, changes: &mut Changes) {
        let state = self.view.state();
        let lower = |label: &Option<String>| label.as_ref().map(|label| label.to_lowercase());
        let moving = changes.defined.iter().map(|task| task.id).chain(changes.left_out.iter().copied());
        let moving = moving.collect::<HashSet<_>>();
        let keep = state.tasks().iter().filter(|task| !moving.contains(&task.plan.id));
        let mut kept = keep.map(|task| task.plan.name().to_lowercase()).collect::<HashSet<_>>();
        let mut n_kept = 0;
        // A task that keeps its name may take it from another one.
        while std::mem::replace(&mut n_kept, kept.len()) != kept.len() {
            for task in &mut changes.defined {
                let known = state.task(task.id).map(|known| known.plan.label.clone());
                let own = known.unwrap_or_else(|| Some(format!("added/{}", task.id)));
                if task.label != own && lower(&task.label).is_some_and(|label| kept.contains(&label)) {
                    let label = std::mem::replace(&mut task.label, own).unwrap_or_default();
                    let name = task.name();
                    kept.insert(name.to_lowercase());
                    let text = format!("{label} is the name of a task that has begun: this one is called {name}");
                    changes.notes.push((self.now.line(task), text));
                }
            }
        }
        let taken = changes.defined.iter().filter_map(|task| lower(&task.label)).collect::<HashSet<_>>();
        let left_out = changes.left_out.iter().filter_map(|id| Some(&state.task(*id)?.plan));
        let yielding = left_out.filter(|task| lower(&task.label).is_some_and(|label| taken.contains(&label)));
        let yielding = yielding.map(|task| {
            let label = Some(format!("left-out/{}", task.id));
            TaskPlan { label, spans: Vec::new(), ..task.clone() }
        });
        changes.defined.extend(yielding.collect::<Vec<_>>());
    }

    /// Compares each box with the plan and with what it showed when the file was last in step.
    pub fn boxes(&self, shown: &Shown, changes: &mut Changes) {
        changes.shown = shown.clone();
        for place in self.now.plan.marks.iter().filter_map(|mark| usize::try_from(mark.of?.0 - 1).ok()) {
            let (Some(task), step) = (self.task(place), &self.now.plan.tasks[place]) else { continue };
            let was = self.was[place].map(|was| &self.before.plan.tasks[was]);
            let before = shown.get(&task.plan.id).copied().unwrap_or_else(|| was.map_or(Mark::Open, |was| was.mark));
            let says = mark_of(self.view, task);
            let is_as_read = is_same_line(was.unwrap_or(&task.plan), step);
            let is_by_hand = step.mark != before && Some(step.mark) != says;
            if is_by_hand && self.take_by_hand(step, task, before, is_as_read, changes) {
                continue;
            }
            let is_put_off = matches!(step.mark, Mark::InProgress | Mark::Deferred) && step.mark == task.plan.mark;
            let idle = if is_by_hand || is_put_off { step.mark } else { Mark::Open };
            let mark = says.unwrap_or(idle);
            let mark = if expressible(self.now.plan.format, mark) == mark { mark } else { step.mark };
            if mark != step.mark && !is_as_read {
                changes.refused.push((self.now.line(step), refusal(task)));
                continue;
            }
            if mark != step.mark || mark == Mark::Done && before != Mark::Done {
                changes.states.insert(step.id, mark);
            }
            if mark != step.mark || says == Some(mark) {
                changes.shown.insert(task.plan.id, mark);
            }
        }
        // Tasks that are done, whose lines are gone without having shown it.
        let is_unsaid = |(step, task): &(&TaskPlan, &Task)| {
            let was = shown.get(&task.plan.id).copied().unwrap_or(step.mark);
            mark_of(self.view, task) == Some(Mark::Done) && was != Mark::Done
        };
        let unsaid = self.gone().filter(is_unsaid).map(|(step, task)| (self.before.line(step), refusal(task)));
        changes.refused.extend(unsaid);
    }

    /// Takes over a box that a person has set, or warns. Gives whether the box stays as it is.
    fn take_by_hand(
        &self,
        step: &TaskPlan,
        task: &Task,
        before: Mark,
        is_as_read: bool,
        changes: &mut Changes,
    ) -> bool {
        let (name, status, says) = (task.plan.name(), task.status, mark_of(self.view, task));
        let text = match (step.mark, status) {
            (Mark::Done, _) if has_begun(task) && !is_as_read => {
                format!("this line is not the one that became task {name}, so that its box ends nothing")
            }
            (Mark::Done, TaskStatus::Running) if says.is_some() => {
                format!("task {name} is held by an executor, so that its box ends nothing")
            }
            (Mark::Done, TaskStatus::Planned | TaskStatus::NeedsClarification | TaskStatus::Running) => {
                changes.done.push(task.plan.id);
                return true;
            }
            (Mark::Cancelled, _) if !has_begun(task) => {
                changes.left_out.push(task.plan.id);
                return true;
            }
            (Mark::Open, status) if status.is_end() && before != Mark::InProgress => {
                format!("task {name} stays {}, although its box was cleared", status.as_str())
            }
            (Mark::Open | Mark::InProgress, _) => String::new(),
            (Mark::Done | Mark::Cancelled | Mark::Deferred, status) => {
                let help = "`crewlog cancel`, `pause` and `retry` change it";
                format!("task {name} stays {}, although its box was set: {help}", status.as_str())
            }
        };
        if !text.is_empty() {
            changes.notes.push((self.now.line(step), text));
        }
        let is_end = |mark| matches!(mark, Mark::Done | Mark::Cancelled);
        is_end(before) || is_end(step.mark) && says != Some(Mark::Done)
    }
}

fn refusal(task: &Task) -> String {
    let (name, status) = (task.plan.name(), task.status.as_str());
    format!("the line of task {name} was changed after the plan read it, so that it does not get the state {status}")
}

/// What the plan says of a task, where a box can show it.
pub fn mark_of(view: &PlanView, task: &Task) -> Option<Mark> {
    match task.status {
        TaskStatus::Completed => Some(Mark::Done),
        TaskStatus::Cancelled | TaskStatus::Skipped => Some(Mark::Cancelled),
        TaskStatus::Running => view.times(task.plan.id).is_held.then_some(Mark::InProgress),
        TaskStatus::Planned | TaskStatus::NeedsClarification | TaskStatus::Failed | TaskStatus::TimedOut => None,
    }
}

/// Finds the steps among known ones: by the written id, then by equal text in the same group, then by the number.
///
/// Several equal ones pair in order. Numbers come last because they move when a step is inserted. A group whose heading was
/// renamed is the same group; `anywhere` takes equal texts of any group then, as tasks keep the group that they began with.
fn pair<T: Copy + Eq + Hash>(found: &mut [Option<T>], steps: &[TaskPlan], known: &[(T, &TaskPlan)], anywhere: bool) {
    let groups = steps.iter().map(|step| &step.group).collect::<HashSet<_>>();
    let groups_known = known.iter().map(|(_, task)| &task.group).collect::<HashSet<_>>();
    let mut taken = found.iter().flatten().copied().collect::<HashSet<_>>();
    let is_free = |task: &TaskPlan| anywhere || groups.contains(&task.group) != groups_known.contains(&task.group);
    for pass in 0..5 {
        let mut places: HashMap<_, VecDeque<T>> = HashMap::new();
        for (one, task) in known.iter().filter(|(one, _)| !taken.contains(one)) {
            key(task, pass, is_free(task)).into_iter().for_each(|key| places.entry(key).or_default().push_back(*one));
        }
        for (found, step) in found.iter_mut().zip(steps).filter(|(found, _)| found.is_none()) {
            *found = key(step, pass, is_free(step)).and_then(|key| places.get_mut(&key)?.pop_front());
            taken.extend(*found);
        }
    }
}

/// What pairs two tasks in a pass: a name, a text, a group.
fn key(task: &TaskPlan, pass: u8, is_free: bool) -> Option<[Option<&str>; 3]> {
    let (label, text, group) = (task.label.as_deref(), Some(task.description.as_str()), task.group.as_deref());
    match pass {
        0 => Some([Some(written_id(task)?), None, None]),
        1 => Some([label, text, group]),
        2 => Some([None, text, group]),
        3 => is_free.then_some([None, text, None]),
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
    // A step that was left out and written again is another task, which comes first.
    for left_out in [false, true] {
        let is_meant = |task: &&Task| is_left_out(task) == left_out && task.plan.compensates.is_none();
        let known = state.tasks().iter().filter(is_meant).map(|task| (task.plan.id, &task.plan));
        pair(&mut found, steps, &known.collect::<Vec<_>>(), true);
    }
    // A task that was given another text still has the bytes that it was read from.
    let taken = found.iter().flatten().copied().collect::<HashSet<_>>();
    let edited = state.tasks().iter().filter(|task| !taken.contains(&task.plan.id) && !task.plan.spans.is_empty());
    let by_spans = edited.map(|task| (&task.plan.spans, task.plan.id)).collect::<BTreeMap<_, _>>();
    for (found, step) in found.iter_mut().zip(steps).filter(|(found, _)| found.is_none()) {
        *found = by_spans.get(&step.spans).copied();
    }
    found
}

/// The steps of a text with the numbers of the plan, and without boxes and bytes. A step that waits for one that has begun
/// waits also for what was put before that one.
fn in_plan(state: &PlannerState, plan: &ParsedPlan, ids: &[Option<TaskId>]) -> Vec<Option<TaskPlan>> {
    let places = plan.tasks.iter().enumerate().map(|(place, task)| (task.id, place)).collect::<HashMap<_, _>>();
    let is_begun = |id: TaskId| state.task(id).is_some_and(has_begun);
    let is_ended = |id: TaskId| state.task(id).is_some_and(|task| task.status.is_end());
    // By place of a step that has begun, or is unknown to the plan: what is open before it.
    let mut ahead: Vec<Vec<Dependency>> = vec![Vec::new(); plan.tasks.len()];
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    for (place, step) in plan.tasks.iter().enumerate() {
        let mut depends_on = Vec::new();
        for one in &step.depends_on {
            let Some(before) = places.get(&one.task).copied() else { continue };
            depends_on.extend(ids[before].map(|task| Dependency { task, strength: one.strength }));
            depends_on.extend(ahead[before].iter().copied());
        }
        depends_on.sort_unstable();
        depends_on.dedup_by_key(|one| one.task);
        if ids[place].is_none_or(is_begun) {
            ahead[place] =
                depends_on.iter().filter(|one| ids[place].is_none() || !is_ended(one.task)).copied().collect();
        }
        let Some(id) = ids[place] else {
            tasks.push(None);
            continue;
        };
        let mut task = TaskPlan { id, mark: Mark::Open, spans: Vec::new(), depends_on, ..step.clone() };
        if let Some(condition) = &mut task.condition
            && let Some(decides) = condition.outcome_of
        {
            condition.outcome_of = places.get(&decides).and_then(|place| ids[*place]);
            let name = |id| state.task(id).map_or_else(|| id.to_string(), |task: &Task| task.plan.name());
            if let Some(known) = condition.outcome_of.filter(|_| condition.text == format!("step {decides} succeeds")) {
                condition.text = format!("step {} succeeds", name(known));
            }
        }
        tasks.push(Some(task));
    }
    tasks
}

/// A task of the plan with each field that the file changed, but for the group, by which tasks are found again. The plan
/// keeps some tasks although their lines are gone.
fn merged(plan: &TaskPlan, before: &TaskPlan, now: &TaskPlan, kept: &HashSet<TaskId>) -> TaskPlan {
    let facts = |task| match serde_json::to_value::<&TaskPlan>(task) {
        Ok(serde_json::Value::Object(facts)) => facts,
        Ok(_) | Err(_) => unreachable!("a task is an object"),
    };
    let (facts_before, facts_now, mut merged) = (facts(before), facts(now), facts(plan));
    let names =
        facts_before.keys().chain(facts_now.keys()).filter(|name| !["depends_on", "group"].contains(&name.as_str()));
    for name in names.filter(|name| facts_before.get(*name) != facts_now.get(*name)) {
        merged.remove(name);
        merged.extend(facts_now.get(name).map(|value| (name.clone(), value.clone())));
    }
    let mut merged = serde_json::from_value::<TaskPlan>(merged.into()).expect("the facts of a task make a task");
    let (was, is) = (&before.depends_on, &now.depends_on);
    merged.depends_on.retain(|one| !was.contains(one) || is.contains(one) || kept.contains(&one.task));
    merged.depends_on.extend(is.iter().filter(|one| !was.contains(one)));
    merged.depends_on.sort_unstable();
    merged.depends_on.dedup_by_key(|one| one.task);
    merged
}

/// What an executor is told of a step: all but its name, its place and its box.
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
