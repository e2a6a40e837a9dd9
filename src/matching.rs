//! What a changed plan file means for its plan: which task each step is, what is new, edited or gone, and which boxes
//! people have set. It reads no file and appends nothing.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crewlog_planner::event::TaskStatus;
use crewlog_planner::parse::{self, ParsedPlan, ReadOptions, expressible, write_states};
use crewlog_planner::plan::{Dependency, Mark, Span, TaskId, TaskPlan};
use crewlog_planner::state::{PlannerState, Task};
use crewlog_planner::view::PlanView;

/// For each task of `after`, the place of the same task in `before`.
///
/// A written id decides, then equal text in the same group, then the number; several equal ones pair in order. Numbers
/// come last because they move when a step is inserted.
pub fn pair(before: &[&TaskPlan], after: &[&TaskPlan]) -> Vec<Option<usize>> {
    type Key<'a> = [Option<&'a str>; 3];
    let groups = |tasks: &[&TaskPlan]| tasks.iter().map(|task| task.group.clone()).collect::<HashSet<_>>();
    let (groups_before, groups_after) = (groups(before), groups(after));
    // A heading that was renamed: its name is gone, and the other is new.
    let renamed = |task: &TaskPlan| groups_before.contains(&task.group) != groups_after.contains(&task.group);
    let keys: [&dyn for<'a> Fn(&'a TaskPlan) -> Option<Key<'a>>; 5] = [
        &|task| Some([Some(written_id(task)?), None, None]),
        &|task| Some([task.label.as_deref(), Some(&task.description), task.group.as_deref()]),
        &|task| Some([None, Some(&task.description), task.group.as_deref()]),
        &|task| renamed(task).then_some([None, Some(&task.description), None]),
        &|task| Some([Some(task.label.as_deref()?), None, None]),
    ];
    let mut found = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    for key in keys {
        let mut places: HashMap<Key<'_>, VecDeque<usize>> = HashMap::new();
        for (place, task) in before.iter().enumerate().filter(|(place, _)| !taken[*place]) {
            if let Some(key) = key(task) {
                places.entry(key).or_default().push_back(place);
            }
        }
        for (found, task) in found.iter_mut().zip(after).filter(|(found, _)| found.is_none()) {
            *found = key(task).and_then(|key| places.get_mut(&key)?.pop_front());
            if let Some(place) = *found {
                taken[place] = true;
            }
        }
    }
    found
}

/// The id that is written in the file; not a number or an address, which follow from the place of the step.
fn written_id(task: &TaskPlan) -> Option<&str> {
    let is_place = |label: &str| {
        label.contains('/')
            || label.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            || matches!(label.as_bytes(), [b'a'..=b'z'])
    };
    task.label.as_deref().filter(|label| !is_place(label))
}

/// What the boxes of a file showed when it was last in step, by task. Without it they showed what the plan read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown(BTreeMap<TaskId, Mark>);

impl Shown {
    const SIGNS: [(char, Mark); 5] =
        [(' ', Mark::Open), ('~', Mark::InProgress), ('x', Mark::Done), ('-', Mark::Cancelled), ('>', Mark::Deferred)];

    /// Reads what [`Shown::to_string`] wrote.
    pub fn read(text: &str) -> Self {
        let mark = |sign| Self::SIGNS.into_iter().find(|(known, _)| *known == sign).map(|(_, mark)| mark);
        let marks = text.chars().zip(1..).filter_map(|(sign, number)| Some((TaskId(number), mark(sign)?)));
        Self(marks.collect())
    }
}

impl std::fmt::Display for Shown {
    /// A sign for each number of a task, a dot where nothing is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.0.last_key_value().map_or(0, |(id, _)| id.0);
        (1..=last).try_for_each(|number| {
            let mark = self.0.get(&TaskId(number));
            let sign = Self::SIGNS.into_iter().find(|(_, known)| Some(known) == mark).map_or('.', |(sign, _)| sign);
            write!(f, "{sign}")
        })
    }
}

/// What is to be said of a line of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The line, from 1.
    pub line: usize,
    /// What.
    pub text: String,
}

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
    /// The line of each task that is changed.
    pub lines: HashMap<TaskId, usize>,
    /// What of the file the plan does not take over, and why.
    pub notes: Vec<Note>,
}

impl Changes {
    /// True when nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.is_only_boxes() && self.given_up.is_empty() && self.done.is_empty() && self.reported.is_empty()
    }

    /// True when no step was added, edited or removed.
    pub fn is_only_boxes(&self) -> bool {
        self.defined.is_empty() && self.gone.is_empty()
    }
}

/// What is to be written into the file.
#[derive(Debug, Default)]
pub struct Boxes {
    /// The states, by the numbers that the tasks have in the file.
    pub states: Vec<(TaskId, Mark)>,
    /// Places in the file that a person has ticked since it was last in step.
    pub ticked: HashSet<TaskId>,
    /// What the file then shows.
    pub shown: Shown,
    /// Lines that are not what the plan has read, so that nothing is written there.
    pub refused: Vec<Note>,
}

/// A text of a plan's file.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The text.
    pub text: &'a str,
    /// As it is read.
    pub plan: &'a ParsedPlan,
}

impl Reading<'_> {
    fn line(&self, task: &TaskPlan) -> usize {
        let at = task.spans.first().map_or(0, |span| span.start);
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
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
        let tasks_before = find(view.state(), &before.plan.tasks);
        let was = pair(&all(&before.plan.tasks), &all(&now.plan.tasks));
        let mut tasks = was.iter().map(|was| tasks_before[(*was)?]).collect::<Vec<_>>();
        // A step that is new in the file may have been added to the plan by other means.
        let known = tasks_before.iter().flatten().collect::<HashSet<_>>();
        let is_open = |task: &&Task| !task.status.is_end() && !known.contains(&task.plan.id);
        let open = view.state().tasks().iter().filter(is_open).map(|task| &task.plan).collect::<Vec<_>>();
        let new = (0..was.len()).filter(|place| was[*place].is_none()).collect::<Vec<_>>();
        let steps = new.iter().map(|place| &now.plan.tasks[*place]).collect::<Vec<_>>();
        for (place, task) in new.into_iter().zip(pair(&open, &steps)) {
            let task = task.map(|task| open[task]);
            tasks[place] =
                task.filter(|task| task.description == now.plan.tasks[place].description).map(|task| task.id);
        }
        Self { view, before, now, tasks_before, was, tasks }
    }

    /// The text now with the boxes of the text before, so that only what is edited differs.
    pub fn with_boxes_before(&self) -> String {
        let marks = self.steps().filter_map(|(place, step)| {
            let before = self.before.plan.tasks[self.was[place]?].mark;
            (before != step.mark).then_some((step.id, before))
        });
        let marks = marks.collect::<Vec<_>>();
        write_states(self.now.text, self.now.plan, &marks, "").text
    }

    /// The text now, with each line of a task that has begun as it was: that is what the plan has taken in.
    pub fn taken_in(&self, options: ReadOptions<'_>) -> String {
        let mut text = self.now.text.to_owned();
        let mut kept = self.steps().filter_map(|(place, step)| {
            let was = &self.before.plan.tasks[self.was[place]?];
            let is_kept = !is_same_line(was, step) && self.task(place).is_some_and(has_begun);
            is_kept.then_some((*step.spans.first()?, *was.spans.first()?, was))
        });
        let mut kept = kept.by_ref().collect::<Vec<_>>();
        kept.sort_by_key(|(now, _, _)| *now);
        for (Span { start, end }, was, _) in kept.iter().rev() {
            if let Some(line) = self.before.text.get(was.start..was.end).filter(|_| text.get(*start..*end).is_some()) {
                text.replace_range(start..end, line);
            }
        }
        let is_readable = |read: ParsedPlan| {
            let lines = read.tasks.iter().map(|task| &task.description).collect::<HashSet<_>>();
            read.tasks.len() == self.now.plan.tasks.len()
                && kept.iter().all(|(_, _, was)| lines.contains(&was.description))
        };
        let is_taken = kept.is_empty() || parse::read(&text, options).is_ok_and(is_readable);
        if is_taken { text } else { self.now.text.to_owned() }
    }

    fn steps(&self) -> impl Iterator<Item = (usize, &'a TaskPlan)> {
        self.now.plan.tasks.iter().enumerate()
    }

    fn task(&self, place: usize) -> Option<&'a Task> {
        self.view.state().task(self.tasks[place]?)
    }

    /// The step as the plan has read it.
    fn read_as(&self, place: usize) -> Option<&'a TaskPlan> {
        match self.was[place] {
            Some(was) => Some(&self.before.plan.tasks[was]),
            None => Some(&self.task(place)?.plan),
        }
    }

    /// What the box of a step showed when the file was last in step.
    fn shown(&self, place: usize, shown: &Shown) -> Mark {
        let remembered = self.tasks[place].and_then(|id| shown.0.get(&id).copied());
        remembered.unwrap_or_else(|| self.was[place].map_or(Mark::Open, |was| self.before.plan.tasks[was].mark))
    }

    /// What the boxes of all tasks showed when the file was last in step.
    pub fn shown_before(&self, shown: &Shown) -> Shown {
        let known = self.steps().filter_map(|(place, _)| Some((self.tasks[place]?, self.shown(place, shown))));
        Shown(shown.0.clone().into_iter().chain(known).collect())
    }

    /// Finds what was added, edited and removed. The boxes of both texts are the same.
    pub fn edits(&self) -> Changes {
        let mut changes = Changes::default();
        let mut ids = self.tasks.clone();
        let mut next = self.view.state().next_id();
        for place in (0..ids.len()).filter(|place| self.was[*place].is_none() && self.tasks[*place].is_none()) {
            ids[place] = Some(TaskId(next));
            next += 1;
        }
        let before = in_plan(self.view.state(), self.before.plan, &self.tasks_before);
        let now = in_plan(self.view.state(), self.now.plan, &ids);
        let places_now = self.was.iter().flatten().copied().collect::<HashSet<_>>();
        let gone = (0..before.len()).filter(|place| !places_now.contains(place));
        let gone = gone.filter_map(|place| Some((place, self.view.state().task(self.tasks_before[place]?)?)));
        let (kept, gone): (Vec<_>, Vec<_>) = gone.partition(|(_, task)| has_begun(task));
        changes.gone.extend(gone.iter().map(|(_, task)| task.plan.id));
        self.note_kept(&kept, &mut changes);
        let still_at_work = kept.iter().filter(|(_, task)| !task.status.is_end()).map(|(_, task)| task.plan.id);
        let still_at_work = still_at_work.collect::<HashSet<_>>();
        for (place, now) in now.into_iter().enumerate() {
            let Some(now) = now else { continue };
            let step = &self.now.plan.tasks[place];
            let Some(task) = self.task(place) else {
                changes.lines.insert(now.id, self.now.line(step));
                changes.defined.push(TaskPlan { mark: step.mark, spans: step.spans.clone(), ..now });
                continue;
            };
            let Some(before) = self.was[place].and_then(|was| before[was].as_ref()).filter(|before| **before != now)
            else {
                continue;
            };
            if has_begun(task) {
                let is_told = told(before) != told(&now);
                let name = task.plan.name();
                let text = format!("task {name} has begun, so that what was changed here is not taken over");
                changes.notes.extend(is_told.then(|| Note { line: self.now.line(step), text }));
                continue;
            }
            let merged = merged(&task.plan, before, &now, &still_at_work);
            if merged != task.plan {
                changes.lines.insert(merged.id, self.now.line(step));
                changes.defined.push(TaskPlan { spans: step.spans.clone(), ..merged });
            }
        }
        self.name(&mut changes);
        changes
    }

    /// One warning for all steps that are gone from the file although their tasks have begun.
    fn note_kept(&self, kept: &[(usize, &Task)], changes: &mut Changes) {
        const SHOWN_MAX: usize = 8;
        let kept = kept.iter().filter(|(_, task)| !is_left_out(task)).collect::<Vec<_>>();
        let Some((first, _)) = kept.first() else { return };
        let names = kept.iter().take(SHOWN_MAX).map(|(_, task)| task.plan.name()).collect::<Vec<_>>().join(", ");
        let more = if kept.len() > SHOWN_MAX { ", ..." } else { "" };
        let text = format!("gone from here, but begun, so that the plan keeps it: {names}{more}");
        changes.notes.push(Note { line: self.before.line(&self.before.plan.tasks[*first]), text });
    }

    /// Lets every task have the name that the file gives it, unless a task that has begun has that name.
    fn name(&self, changes: &mut Changes) {
        let state = self.view.state();
        let gone = changes.gone.iter().copied().collect::<HashSet<_>>();
        let mut labels =
            changes.defined.iter().map(|task| (task.id, task.label.clone())).collect::<HashMap<TaskId, _>>();
        let mut yielding = Vec::new();
        let mut is_settled = false;
        while !is_settled {
            is_settled = true;
            for task in &mut changes.defined {
                let Some(label) = task.label.clone() else { continue };
                let Some(holder) = state.id_named(&label).filter(|holder| *holder != task.id) else { continue };
                let keeps = match labels.get(&holder) {
                    Some(other) => other.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(&label)),
                    None => true,
                };
                if !keeps {
                    continue;
                }
                if let Some(holder) = state.task(holder).filter(|_| gone.contains(&holder)) {
                    is_settled = false;
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
                task.label = own;
                labels.insert(task.id, task.label.clone());
                let line = changes.lines.get(&task.id).copied().unwrap_or_default();
                let text = format!("{label} is the name of a task that has begun: this one is called {}", task.name());
                changes.notes.push(Note { line, text });
            }
        }
        changes.defined.extend(yielding);
    }

    /// Finds the boxes that people have set.
    pub fn boxes_by_hand(&self, shown: &Shown, changes: &mut Changes) {
        for (place, step) in self.steps() {
            let Some(task) = self.task(place) else { continue };
            let (id, name, status) = (task.plan.id, task.plan.name(), task.status);
            let (before, says) = (self.shown(place, shown), self.says(task));
            if step.mark == before || Some(step.mark) == says {
                continue;
            }
            let is_changed = has_begun(task) && !self.read_as(place).is_some_and(|read| is_same_line(read, step));
            let text = match (step.mark, status) {
                (Mark::Done, _) if is_changed => {
                    format!("this line is not the one that became task {name}: not ticked")
                }
                (Mark::Done, TaskStatus::Planned | TaskStatus::NeedsClarification) => {
                    changes.done.push(id);
                    continue;
                }
                (Mark::Done, TaskStatus::Running) if says.is_none() => {
                    changes.reported.push(id);
                    continue;
                }
                (Mark::Done, TaskStatus::Running) => {
                    format!("task {name} is held by an executor and goes on, although its box is ticked")
                }
                (Mark::Done, status) if status.is_end() => {
                    format!("the box of task {name} was ticked, but the task stays {}", status.as_str())
                }
                (Mark::Open, status) if status.is_end() && before != Mark::InProgress => {
                    format!("the box of task {name} was cleared, but the task stays {}", status.as_str())
                }
                (Mark::Cancelled, TaskStatus::Planned) if !has_begun(task) => {
                    changes.given_up.push(id);
                    continue;
                }
                (Mark::Cancelled, status) if !status.is_end() => {
                    format!("task {name} has begun and is not given up: `crewlog cancel` ends it")
                }
                (Mark::Deferred, status) if !status.is_end() => {
                    format!("task {name} is not put off: `crewlog pause` keeps it from starting")
                }
                (Mark::Open | Mark::InProgress | Mark::Done | Mark::Cancelled | Mark::Deferred, _) => continue,
            };
            changes.notes.push(Note { line: self.now.line(step), text });
        }
    }

    /// Finds what is to be written into the boxes.
    pub fn boxes(&self, shown: &Shown) -> Boxes {
        let mut boxes = Boxes { shown: shown.clone(), ..Boxes::default() };
        for (place, step) in self.steps() {
            let Some(task) = self.task(place) else { continue };
            let (before, says) = (self.shown(place, shown), self.says(task));
            let is_of_person = step.mark != before && Some(step.mark) != says;
            let is_kept = match step.mark {
                Mark::Done => true,
                Mark::Open => matches!(before, Mark::Done | Mark::Cancelled),
                Mark::Cancelled => says != Some(Mark::Done),
                Mark::InProgress | Mark::Deferred => false,
            };
            if is_of_person && is_kept {
                boxes.shown.0.insert(task.plan.id, before);
                continue;
            }
            // A task that was opened again.
            let is_reopened = matches!(step.mark, Mark::Done | Mark::Cancelled) && !task.status.is_end();
            let mark = says.or(is_reopened.then_some(Mark::Open)).unwrap_or(step.mark);
            let mark = if expressible(self.now.plan.format, mark) == mark { mark } else { step.mark };
            if mark != step.mark && !self.read_as(place).is_some_and(|read| is_same_line(read, step)) {
                boxes.refused.push(Note { line: self.now.line(step), text: self.refusal(task) });
                boxes.shown.0.insert(task.plan.id, before);
                continue;
            }
            if mark != step.mark {
                boxes.states.push((step.id, mark));
            } else if mark == Mark::Done && before != Mark::Done {
                boxes.ticked.insert(step.id);
                boxes.states.push((step.id, mark));
            }
            boxes.shown.0.insert(task.plan.id, mark);
        }
        self.refuse_gone(shown, &mut boxes);
        boxes
    }

    /// Tasks that are done, whose lines are gone without having shown it.
    fn refuse_gone(&self, shown: &Shown, boxes: &mut Boxes) {
        let places = self.was.iter().flatten().copied().collect::<HashSet<_>>();
        let steps = self.before.plan.tasks.iter().enumerate().filter(|(place, _)| !places.contains(place));
        for (place, step) in steps {
            let Some(task) = self.tasks_before[place].and_then(|id| self.view.state().task(id)) else { continue };
            let was = shown.0.get(&task.plan.id).copied().unwrap_or(step.mark);
            if self.says(task) == Some(Mark::Done) && was != Mark::Done {
                boxes.refused.push(Note { line: self.before.line(step), text: self.refusal(task) });
            }
        }
    }

    fn refusal(&self, task: &Task) -> String {
        let (name, status) = (task.plan.name(), task.status.as_str());
        format!("the line of task {name} was changed since the plan read it: that it is {status} is not written")
    }

    /// What the plan says of a task, where a box can show it.
    fn says(&self, task: &Task) -> Option<Mark> {
        mark_of(self.view, task)
    }
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

fn all(tasks: &[TaskPlan]) -> Vec<&TaskPlan> {
    tasks.iter().collect()
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
        let rest = places.iter().map(|place| &steps[*place]).collect::<Vec<_>>();
        for (place, task) in places.into_iter().zip(pair(&known, &rest)) {
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
    let is_passed = |id: Option<TaskId>| id.is_none_or(|id| state.task(id).is_some_and(has_begun));
    let mut passed: Vec<Vec<Dependency>> = vec![Vec::new(); plan.tasks.len()];
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    for (place, step) in plan.tasks.iter().enumerate() {
        let mut waits_for = Vec::new();
        for one in &step.depends_on {
            let Some(before) = places.get(&one.task).copied() else { continue };
            waits_for.extend(ids[before].map(|task| Dependency { task, strength: one.strength }));
            if is_passed(ids[before]) {
                waits_for.extend(passed[before].iter().copied());
            }
        }
        waits_for.sort_unstable();
        waits_for.dedup_by_key(|one| one.task);
        if is_passed(ids[place]) {
            let is_ahead = |one: &&Dependency| ids[place].is_none() || !state.task(one.task).is_some_and(has_begun);
            passed[place] = waits_for.iter().filter(is_ahead).copied().collect();
        }
        tasks.push(ids[place].map(|id| {
            let mut task = TaskPlan { id, mark: Mark::Open, spans: Vec::new(), depends_on: waits_for, ..step.clone() };
            if let Some(condition) = &mut task.condition
                && let Some(decides) = condition.outcome_of
            {
                condition.outcome_of = places.get(&decides).and_then(|place| ids[*place]);
                let name = |id: TaskId| state.task(id).map_or_else(|| id.to_string(), |task| task.plan.name());
                if condition.text == format!("step {decides} succeeds") {
                    condition.text = format!("step {} succeeds", condition.outcome_of.map_or(String::new(), name));
                }
            }
            task
        }));
    }
    tasks
}

/// What a task that has begun is told differently, apart from its order and its number.
fn told(task: &TaskPlan) -> TaskPlan {
    let label = written_id(task).map(str::to_owned);
    TaskPlan { label, group: None, depends_on: Vec::new(), ..task.clone() }
}

/// A task of the plan with each fact that the file changed.
fn merged(plan: &TaskPlan, before: &TaskPlan, now: &TaskPlan, still_at_work: &HashSet<TaskId>) -> TaskPlan {
    let fields = |task: &TaskPlan| match serde_json::to_value(TaskPlan { depends_on: Vec::new(), ..task.clone() }) {
        Ok(serde_json::Value::Object(fields)) => fields,
        Ok(_) | Err(_) => unreachable!("a task is an object"),
    };
    let (before_fields, now_fields, mut merged) = (fields(before), fields(now), fields(plan));
    for name in before_fields.keys().chain(now_fields.keys()).filter(|name| *name != "id") {
        match now_fields.get(name) {
            value if value == before_fields.get(name) => {}
            Some(value) => _ = merged.insert(name.clone(), value.clone()),
            None => _ = merged.remove(name),
        }
    }
    let mut merged = serde_json::from_value::<TaskPlan>(merged.into()).expect("the facts of a task make a task");
    let is_kept = |one: &&Dependency| {
        !before.depends_on.contains(one) || now.depends_on.contains(one) || still_at_work.contains(&one.task)
    };
    let added = now.depends_on.iter().filter(|one| !before.depends_on.contains(one));
    merged.depends_on = plan.depends_on.iter().filter(is_kept).chain(added).copied().collect();
    merged.depends_on.sort_unstable();
    merged.depends_on.dedup_by_key(|one| one.task);
    merged
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
