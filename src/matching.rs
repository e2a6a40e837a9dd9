//! What a changed plan file means for its plan: which task each step is, what is new, edited or gone, and which boxes
//! people have set. It reads no file and appends nothing.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use crewlog_planner::event::TaskStatus;
use crewlog_planner::parse::{self, ParsedPlan, ReadOptions, expressible, write_states};
use crewlog_planner::plan::{Dependency, Mark, TaskId, TaskPlan};
use crewlog_planner::state::{PlannerState, Task};
use crewlog_planner::view::PlanView;

use crate::text::one_line;

/// What the boxes of a file showed when it was last in step, by task. Without it they showed what the plan read.
pub type Shown = BTreeMap<TaskId, Mark>;

/// What is to be said of a line of the file, by its number.
pub type Note = (usize, String);

/// What a changed file asks of its plan.
#[derive(Debug, Default)]
pub struct Changes {
    /// New tasks, and known ones as the file has them now.
    pub defined: Vec<TaskPlan>,
    /// Tasks whose steps are gone from the file.
    pub gone: Vec<TaskId>,
    /// Tasks that a person has given up in the file.
    pub given_up: Vec<TaskId>,
    /// Tasks that a person has ticked and that do not run.
    pub done: Vec<TaskId>,
    /// Tasks that a person has ticked and that run, held by nobody.
    pub reported: Vec<TaskId>,
    /// The line of each task that is defined.
    pub lines: HashMap<TaskId, usize>,
    /// What of the file the plan does not take over, and why.
    pub notes: Vec<Note>,
}

impl Changes {
    /// True when no step was added, edited or removed.
    pub fn is_only_boxes(&self) -> bool {
        self.defined.is_empty() && self.gone.is_empty()
    }

    /// True when nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.is_only_boxes() && self.given_up.is_empty() && self.done.is_empty() && self.reported.is_empty()
    }
}

/// What is to be written into the file.
#[derive(Debug, Default)]
pub struct Boxes {
    /// The states, by the numbers that the tasks have in the file.
    pub states: Vec<(TaskId, Mark)>,
    /// Those of them that a person has ticked since the file was last in step.
    pub ticked: HashSet<TaskId>,
    /// What the file then shows.
    pub shown: Shown,
    /// Lines that are not what the plan has read, so that nothing is written there.
    pub refused: Vec<Note>,
}

/// A text of a plan's file, and how it is read.
pub struct Reading<'a> {
    text: &'a str,
    plan: &'a ParsedPlan,
    /// Where its lines end.
    ends: Vec<usize>,
}

impl<'a> Reading<'a> {
    /// A text and the steps in it.
    pub fn new(text: &'a str, plan: &'a ParsedPlan) -> Self {
        Self { text, plan, ends: text.match_indices('\n').map(|(end, _)| end).collect() }
    }

    fn line(&self, step: &TaskPlan) -> usize {
        let at = step.spans.first().map_or(0, |span| span.start);
        self.ends.partition_point(|end| *end < at) + 1
    }
}

/// A plan beside its file: the text that it has taken in, and the text now.
pub struct Comparison<'a> {
    view: &'a PlanView,
    before: Reading<'a>,
    now: Reading<'a>,
    /// By place in the text before: the task of the plan.
    tasks_before: Vec<Option<TaskId>>,
    /// By place in the text now: the place in the text before.
    was: Vec<Option<usize>>,
    /// By place in the text now: the task of the plan.
    tasks: Vec<Option<TaskId>>,
}

impl<'a> Comparison<'a> {
    /// Finds the steps of both texts in the plan.
    pub fn new(view: &'a PlanView, before: Reading<'a>, now: Reading<'a>) -> Self {
        let (steps_before, steps) = (&before.plan.tasks, &now.plan.tasks);
        let tasks_before = find(view.state(), steps_before);
        let was = pair(&steps_before.iter().collect::<Vec<_>>(), &steps.iter().collect::<Vec<_>>(), STRICT);
        let mut tasks = was.iter().map(|was| tasks_before[(*was)?]).collect::<Vec<_>>();
        // A step that is new in the file may have been added to the plan by other means.
        let known = tasks_before.iter().flatten().collect::<HashSet<_>>();
        let is_open = |task: &&Task| !task.status.is_end() && !known.contains(&task.plan.id);
        let open = view.state().tasks().iter().filter(is_open).map(|task| &task.plan).collect::<Vec<_>>();
        let new = (0..was.len()).filter(|place| was[*place].is_none()).collect::<Vec<_>>();
        let found = pair(&open, &new.iter().map(|place| &steps[*place]).collect::<Vec<_>>(), STRICT);
        for (place, task) in new.into_iter().zip(found) {
            let task = task.map(|task| open[task]).filter(|task| task.description == steps[place].description);
            tasks[place] = task.map(|task| task.id);
        }
        Self { view, before, now, tasks_before, was, tasks }
    }

    /// The text now with the boxes of the text before, so that only what is edited differs.
    pub fn with_boxes_before(&self) -> String {
        let marks = self.steps().filter_map(|(place, step)| {
            let before = self.before.plan.tasks[self.was[place]?].mark;
            (before != step.mark).then_some((step.id, before))
        });
        write_states(self.now.text, self.now.plan, &marks.collect::<Vec<_>>(), "").text
    }

    /// The text that the plan takes in: that of now, with each line of a task that has begun as it was.
    pub fn taken_in(&self, options: ReadOptions<'_>) -> String {
        let kept = self.steps().filter_map(|(place, step)| {
            let was = &self.before.plan.tasks[self.was[place]?];
            let is_kept = !is_same_line(was, step) && has_begun(self.task(place)?);
            is_kept.then_some((*step.spans.first()?, *was.spans.first()?))
        });
        let mut kept = kept.collect::<Vec<_>>();
        kept.sort_unstable();
        let mut text = self.now.text.to_owned();
        for (now, was) in kept.iter().rev() {
            text.replace_range(now.start..now.end, &self.before.text[was.start..was.end]);
        }
        let is_like_now = |read: ParsedPlan| read.tasks.len() == self.now.plan.tasks.len();
        if parse::read(&text, options).is_ok_and(is_like_now) { text } else { self.now.text.to_owned() }
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

    /// True of a step whose line is as the plan has read it.
    fn is_as_read(&self, place: usize) -> bool {
        let known = self.task(place).map(|task| &task.plan);
        let read = self.was[place].map(|was| &self.before.plan.tasks[was]).or(known);
        read.is_some_and(|read| is_same_line(read, &self.now.plan.tasks[place]))
    }

    /// What the box of a step showed when the file was last in step.
    fn shown(&self, place: usize, shown: &Shown) -> Mark {
        let read = || self.was[place].map_or(Mark::Open, |was| self.before.plan.tasks[was].mark);
        self.tasks[place].and_then(|id| shown.get(&id).copied()).unwrap_or_else(read)
    }

    /// The same of all tasks.
    pub fn shown_before(&self, shown: &Shown) -> Shown {
        let known = self.steps().filter_map(|(place, _)| Some((self.tasks[place]?, self.shown(place, shown))));
        shown.clone().into_iter().chain(known).collect()
    }

    /// Finds what was added, edited and removed. The boxes of both texts are the same.
    pub fn edits(&self) -> Changes {
        let state = self.view.state();
        let mut changes = Changes::default();
        let (kept, gone): (Vec<_>, Vec<_>) = self.gone().partition(|(_, task)| has_begun(task));
        changes.gone = gone.into_iter().map(|(_, task)| task.plan.id).collect();
        // One warning for all of them.
        let told = kept.iter().filter(|(_, task)| !is_left_out(task)).collect::<Vec<_>>();
        if let Some((first, _)) = told.first() {
            let names = told.iter().map(|(_, task)| task.plan.name()).collect::<Vec<_>>().join(", ");
            let text = format!("begun, so that the plan keeps it although its line is gone: {}", one_line(&names, 80));
            changes.notes.push((self.before.line(first), text));
        }
        let kept = kept.iter().map(|(_, task)| task.plan.id).collect::<HashSet<_>>();
        let mut new = (state.next_id()..).map(TaskId);
        let id = |(place, was): (usize, &Option<usize>)| {
            self.tasks[place].or_else(|| if was.is_none() { new.next() } else { None })
        };
        let ids = self.was.iter().enumerate().map(id).collect::<Vec<_>>();
        let before = in_plan(state, self.before.plan, &self.tasks_before);
        let now = in_plan(state, self.now.plan, &ids);
        for ((place, step), now) in self.steps().zip(now) {
            let Some(now) = now else { continue };
            let line = || self.now.line(step);
            let Some(task) = self.task(place) else {
                changes.lines.insert(now.id, line());
                changes.defined.push(TaskPlan { mark: step.mark, spans: step.spans.clone(), ..now });
                continue;
            };
            let before = self.was[place].and_then(|was| before[was].as_ref());
            let Some(before) = before.filter(|before| **before != now) else { continue };
            let merged = merged(&task.plan, before, &now, &kept);
            if !has_begun(task) && merged != task.plan {
                changes.lines.insert(merged.id, line());
                changes.defined.push(TaskPlan { spans: step.spans.clone(), ..merged });
            } else if has_begun(task) && told_of(before) != told_of(&now) {
                let text =
                    format!("task {} has begun, so that what was changed here is not taken over", task.plan.name());
                changes.notes.push((line(), text));
            }
        }
        self.name(&mut changes);
        changes
    }

    /// Lets every task have the name that the file gives it, unless a task that has begun has that name.
    fn name(&self, changes: &mut Changes) {
        let state = self.view.state();
        let gone = changes.gone.iter().copied().collect::<HashSet<_>>();
        let labels = changes.defined.iter().map(|task| (task.id, task.label.clone()));
        let mut labels = labels.collect::<HashMap<TaskId, Option<String>>>();
        let mut yielding = Vec::new();
        let mut is_settled = false;
        while !std::mem::replace(&mut is_settled, true) {
            for task in &mut changes.defined {
                let Some(label) = task.label.clone() else { continue };
                let holder = state.id_named(&label).filter(|holder| *holder != task.id);
                let keeps = |holder: &TaskId| {
                    let label_now = labels.get(holder).map(|other| other.as_ref());
                    label_now.is_none_or(|other| other.is_some_and(|other| other.eq_ignore_ascii_case(&label)))
                };
                let Some(holder) = holder.filter(keeps) else { continue };
                if let Some(holder) = state.task(holder).filter(|_| gone.contains(&holder)) {
                    let label = Some(format!("left-out/{}", holder.plan.id));
                    labels.insert(holder.plan.id, label.clone());
                    yielding.push(TaskPlan { label, ..holder.plan.clone() });
                    continue;
                }
                let known = state.task(task.id).map(|known| known.plan.label.clone());
                let own = known.unwrap_or_else(|| Some(format!("added/{}", task.id)));
                if task.label == own {
                    continue;
                }
                is_settled = false;
                task.label.clone_from(&own);
                labels.insert(task.id, own);
                let text = format!("{label} is the name of a task that has begun: this one is called {}", task.name());
                changes.notes.push((changes.lines.get(&task.id).copied().unwrap_or(1), text));
            }
        }
        changes.defined.extend(yielding);
    }

    /// Finds the boxes that people have set.
    pub fn boxes_by_hand(&self, shown: &Shown, changes: &mut Changes) {
        for (place, step) in self.steps() {
            let Some(task) = self.task(place) else { continue };
            let (before, says) = (self.shown(place, shown), mark_of(self.view, task));
            if step.mark == before || Some(step.mark) == says {
                continue;
            }
            let (name, has_begun) = (task.plan.name(), has_begun(task));
            let is_edited = has_begun && !self.is_as_read(place);
            let taken = match (step.mark, task.status) {
                (Mark::Done, TaskStatus::Planned | TaskStatus::NeedsClarification) => Some(&mut changes.done),
                (Mark::Done, TaskStatus::Running) if says.is_none() => Some(&mut changes.reported),
                (Mark::Cancelled, TaskStatus::Planned) if !has_begun => Some(&mut changes.given_up),
                (Mark::Open | Mark::InProgress | Mark::Done | Mark::Cancelled | Mark::Deferred, _) => None,
            };
            if let Some(taken) = taken.filter(|_| !is_edited) {
                taken.push(task.plan.id);
                continue;
            }
            let text = match (step.mark, task.status) {
                (Mark::Done, _) if is_edited => {
                    format!("this line is not the one that became task {name}, so that its box ends nothing")
                }
                (Mark::Done, TaskStatus::Running) => {
                    format!("task {name} is held by an executor, so that its box ends nothing")
                }
                (Mark::Done, status) => format!("task {name} stays {}, although its box is ticked", status.as_str()),
                (Mark::Open, status) if status.is_end() && before != Mark::InProgress => {
                    format!("task {name} stays {}, although its box was cleared", status.as_str())
                }
                (Mark::Cancelled, status) if !status.is_end() => {
                    format!("task {name} has begun and is not given up: `crewlog cancel` ends it")
                }
                (Mark::Deferred, status) if !status.is_end() => {
                    format!("task {name} is not put off: `crewlog pause` keeps it from starting")
                }
                (Mark::Open | Mark::InProgress | Mark::Cancelled | Mark::Deferred, _) => continue,
            };
            changes.notes.push((self.now.line(step), text));
        }
    }

    /// Finds what is to be written into the boxes.
    pub fn boxes(&self, shown: &Shown) -> Boxes {
        let mut boxes = Boxes { shown: self.shown_before(shown), ..Boxes::default() };
        for (place, step) in self.steps() {
            let Some(task) = self.task(place) else { continue };
            let (before, says) = (self.shown(place, shown), mark_of(self.view, task));
            let is_kept = step.mark == Mark::Done
                || step.mark == Mark::Open && matches!(before, Mark::Done | Mark::Cancelled)
                || step.mark == Mark::Cancelled && says != Some(Mark::Done);
            // A person has set it, and the plan has not followed.
            if is_kept && step.mark != before && Some(step.mark) != says {
                continue;
            }
            // Opened again, or at work no more.
            let is_open = match step.mark {
                Mark::Done | Mark::Cancelled => !task.status.is_end(),
                Mark::InProgress => before == step.mark && task.plan.mark != step.mark,
                Mark::Open | Mark::Deferred => false,
            };
            let mark = says.or(is_open.then_some(Mark::Open)).unwrap_or(step.mark);
            let mark = if expressible(self.now.plan.format, mark) == mark { mark } else { step.mark };
            if mark != step.mark && !self.is_as_read(place) {
                boxes.refused.push((self.now.line(step), refusal(task)));
                continue;
            }
            if mark != step.mark {
                boxes.states.push((step.id, mark));
            } else if mark == Mark::Done && before != Mark::Done {
                boxes.states.push((step.id, mark));
                boxes.ticked.insert(step.id);
            }
            if mark != step.mark || says == Some(mark) {
                boxes.shown.insert(task.plan.id, mark);
            }
        }
        // Tasks that are done, whose lines are gone without having shown it.
        let is_unsaid = |(step, task): &(&TaskPlan, &Task)| {
            let was = shown.get(&task.plan.id).copied().unwrap_or(step.mark);
            mark_of(self.view, task) == Some(Mark::Done) && was != Mark::Done
        };
        boxes.refused.extend(self.gone().filter(is_unsaid).map(|(step, task)| (self.before.line(step), refusal(task))));
        boxes
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

/// The passes that pair the steps of two texts.
const STRICT: Range<u8> = 0..5;
/// The passes that pair steps with the tasks that they became, whose groups may have had other names then.
const LOOSE: Range<u8> = 0..6;

/// For each task of `after`, the place of the same task in `before`.
///
/// A written id decides, then equal text in the same group, then the number; several equal ones pair in order. Numbers
/// come last because they move when a step is inserted.
fn pair(before: &[&TaskPlan], after: &[&TaskPlan], passes: Range<u8>) -> Vec<Option<usize>> {
    let groups = |tasks: &[&TaskPlan]| tasks.iter().map(|task| task.group.clone()).collect::<HashSet<_>>();
    let (groups_before, groups_after) = (groups(before), groups(after));
    let mut found = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    for pass in passes {
        let key = |task| key(task, pass, |group| groups_before.contains(group) != groups_after.contains(group));
        let mut places: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (place, task) in before.iter().enumerate().filter(|(place, _)| !taken[*place]) {
            key(task).into_iter().for_each(|key| places.entry(key).or_default().push_back(place));
        }
        for (found, task) in found.iter_mut().zip(after).filter(|(found, _)| found.is_none()) {
            *found = key(task).and_then(|key| places.get_mut(&key)?.pop_front());
            found.iter().for_each(|place| taken[*place] = true);
        }
    }
    found
}

/// What pairs two tasks in a pass: a name, a text, a group.
fn key(task: &TaskPlan, pass: u8, is_renamed: impl Fn(&Option<String>) -> bool) -> Option<[Option<&str>; 3]> {
    let (label, text, group) = (task.label.as_deref(), Some(task.description.as_str()), task.group.as_deref());
    match pass {
        0 => Some([Some(written_id(task)?), None, None]),
        1 => Some([label, text, group]),
        2 => Some([None, text, group]),
        // The name of one heading is gone, and the other is new.
        3 => is_renamed(&task.group).then_some([None, text, None]),
        4 => Some([Some(label?), None, None]),
        _last => Some([None, text, None]),
    }
}

/// The id that is written in the file; not a number or an address, which follow from the place of the step.
fn written_id(task: &TaskPlan) -> Option<&str> {
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_place = |label: &str| label.contains('/') || is_number(label) || matches!(label.as_bytes(), [b'a'..=b'z']);
    task.label.as_deref().filter(|label| !is_place(label))
}

/// The tasks of a plan that the steps of a text became.
fn find(state: &PlannerState, steps: &[TaskPlan]) -> Vec<Option<TaskId>> {
    let mut found: Vec<Option<TaskId>> = vec![None; steps.len()];
    let mut taken = HashSet::new();
    // A step that was left out and written again is another task, which comes first.
    for left_out in [false, true] {
        let is_meant = |task: &&Task| is_left_out(task) == left_out && task.plan.compensates.is_none();
        let known = state.tasks().iter().filter(is_meant).map(|task| &task.plan);
        let known = known.filter(|task| !taken.contains(&task.id)).collect::<Vec<_>>();
        let places = (0..steps.len()).filter(|place| found[*place].is_none()).collect::<Vec<_>>();
        let tasks = pair(&known, &places.iter().map(|place| &steps[*place]).collect::<Vec<_>>(), LOOSE);
        for (place, task) in places.into_iter().zip(tasks) {
            found[place] = task.map(|task| known[task].id);
            taken.extend(found[place]);
        }
    }
    // A task that was given another text still has the bytes that it was read from.
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

/// A task of the plan with each fact that the file changed. The plan keeps some tasks although their lines are gone.
fn merged(plan: &TaskPlan, before: &TaskPlan, now: &TaskPlan, kept: &HashSet<TaskId>) -> TaskPlan {
    let facts = |task| match serde_json::to_value::<&TaskPlan>(task) {
        Ok(serde_json::Value::Object(facts)) => facts,
        Ok(_) | Err(_) => unreachable!("a task is an object"),
    };
    let (facts_before, facts_now, mut merged) = (facts(before), facts(now), facts(plan));
    let names = facts_before.keys().chain(facts_now.keys()).filter(|name| *name != "depends_on");
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
    if merged.label.is_none() {
        // It is found by its group again, which stays as it was for what has begun.
        merged.group.clone_from(&plan.group);
    }
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
