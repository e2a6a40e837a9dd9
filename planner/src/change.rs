//! What an event changes of a plan, and how two views of plans differ: facts before and after, as data and in words.
//!
//! It looks at views and decides nothing. Stepping looks only at what an event touches, so that a step through a large
//! plan costs what it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};

use crewlog_mq::{Error, Recorded};
use serde::Serialize;

use crate::brevity::shorten;
use crate::claim::{self, TaskEvent};
use crate::event::{self, Event, QuestionId, TaskStatus};
use crate::plan::{Condition, TaskId, TaskPlan};
use crate::state::{PlannerState, Question, Task, words_for};
use crate::view::{PlanView, Taken};

/// The most characters of a text in the words for a change.
const TEXT_CHARS_MAX: usize = 120;

/// What a change is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The plan as a whole.
    Plan,
    /// A task, by its label or number.
    Task(String),
    /// A question.
    Question(QuestionId),
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Task(name) => write!(f, "task {name}"),
            Self::Question(id) => id.fmt(f),
        }
    }
}

/// Which fact of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Of a task: the plain text of the step.
    Description,
    /// Of a task: what sort of work it is.
    Kind,
    /// Of a task: its line for the shell.
    Command,
    /// Of a task: what must hold.
    Condition,
    /// Of a task: the names of those that it waits for.
    DependsOn,
    /// Of a task: how urgent it is, as written.
    Priority,
    /// Of a task: who is to do it.
    Assignee,
    /// Of a task: constraints and remarks.
    Notes,
    /// Of a task: what it says it works on.
    Files,
    /// Of a question: what is asked.
    Question,
    /// Of a question: the task that asks.
    Asker,
    /// Of the plan: the first heading of its text.
    Title,
    /// Of the plan or a task.
    Status,
    /// Of a task: that it is not started until it is resumed.
    Paused,
    /// Of a task: how often it was dispatched, when it was.
    Attempts,
    /// Of a task: who holds it now.
    Holder,
    /// Of a task: what came of it.
    Result,
    /// Of a task: why it ended otherwise, or is tried again.
    Error,
    /// Of a question.
    Answer,
    /// Of a question: that it is no longer asked, or its task ended first.
    Withdrawn,
    /// Of the plan: what it has used up, when it is known of anything.
    Spent,
    /// Of the plan: what stands for results that are no longer told in full.
    ContextSummary,
    /// Of the plan: the settings that are not what they are by default.
    Settings,
}

impl Field {
    /// In the order in which they are told.
    const ALL: [Self; 23] = [
        Self::Description,
        Self::Kind,
        Self::Command,
        Self::Condition,
        Self::DependsOn,
        Self::Priority,
        Self::Assignee,
        Self::Notes,
        Self::Files,
        Self::Question,
        Self::Asker,
        Self::Title,
        Self::Status,
        Self::Paused,
        Self::Attempts,
        Self::Holder,
        Self::Result,
        Self::Error,
        Self::Answer,
        Self::Withdrawn,
        Self::Spent,
        Self::ContextSummary,
        Self::Settings,
    ];

    /// The name as written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Kind => "kind",
            Self::Command => "command",
            Self::Condition => "condition",
            Self::DependsOn => "depends_on",
            Self::Priority => "priority",
            Self::Assignee => "assignee",
            Self::Notes => "notes",
            Self::Files => "files",
            Self::Question => "question",
            Self::Asker => "task",
            Self::Title => "title",
            Self::Status => "status",
            Self::Paused => "paused",
            Self::Attempts => "attempts",
            Self::Holder => "holder",
            Self::Result => "result",
            Self::Error => "error",
            Self::Answer => "answer",
            Self::Withdrawn => "withdrawn",
            Self::Spent => "spent",
            Self::ContextSummary => "context_summary",
            Self::Settings => "settings",
        }
    }
}

/// What a fact says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A text or a name.
    Text(String),
    /// A number.
    Number(u64),
    /// Names, in order.
    Names(Vec<String>),
}

impl Display for Content {
    /// In one line, and short.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                f.write_str(&shorten(&text, TEXT_CHARS_MAX))
            }
            Self::Number(n) => n.fmt(f),
            Self::Names(names) => f.write_str(&shorten(&names.join(", "), TEXT_CHARS_MAX)),
        }
    }
}

/// A fact that is another afterwards. At least one of both sides is set, and they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it is of.
    pub subject: Subject,
    /// Which fact.
    pub field: Field,
    /// Before; unset when there was none.
    pub from: Option<Content>,
    /// After; unset when there is none.
    pub to: Option<Content>,
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { subject, field, from, to } = self;
        write!(f, "{subject}: ")?;
        match (field, from, to) {
            (Field::Description, None, Some(to)) => write!(f, "planned: {to}"),
            (Field::Description | Field::Question, Some(from), None) => write!(f, "not there: {from}"),
            (Field::Question, None, Some(to)) => write!(f, "asked: {to}"),
            (Field::Answer, None, Some(to)) => write!(f, "answered: {to}"),
            (Field::Holder, Some(from), None) => write!(f, "no longer held by {from}"),
            (Field::Holder, None, Some(to)) => write!(f, "held by {to}"),
            (Field::Holder, Some(from), Some(to)) => write!(f, "held by {from} -> {to}"),
            (Field::Status, None, Some(to)) => to.fmt(f),
            (Field::Status, Some(from), Some(to)) => write!(f, "{from} -> {to}"),
            (field, from, to) => {
                let name = field.as_str().replace('_', " ");
                match (from, to) {
                    (None, Some(to)) => write!(f, "{name}: {to}"),
                    (Some(from), Some(to)) => write!(f, "{name}: {from} -> {to}"),
                    (Some(from), None) => write!(f, "{name}: {from} -> none"),
                    (None, None) => write!(f, "{name}: none"),
                }
            }
        }
    }
}

/// The changes that a person is told: of what is new or gone only that, and where it stands if that says something.
pub fn telling(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let names_it = |change: &Change| matches!(change.field, Field::Description | Field::Question);
    let is_new_or_gone = |change: &&Change| names_it(change) && (change.from.is_none() || change.to.is_none());
    let whole = changes.iter().filter(is_new_or_gone).map(|change| &change.subject).collect::<BTreeSet<_>>();
    changes.iter().filter(move |change| !whole.contains(&change.subject) || tells_of_whole(change))
}

/// Whether a change still says something beside that its subject is new or gone.
fn tells_of_whole(change: &Change) -> bool {
    match change.field {
        Field::Description | Field::Question => true,
        Field::Kind
        | Field::Command
        | Field::Condition
        | Field::DependsOn
        | Field::Priority
        | Field::Assignee
        | Field::Notes
        | Field::Files
        | Field::Asker => false,
        Field::Status => {
            matches!(&change.to, Some(Content::Text(status)) if status != TaskStatus::Planned.as_str())
        }
        Field::Title
        | Field::Paused
        | Field::Attempts
        | Field::Holder
        | Field::Result
        | Field::Error
        | Field::Answer
        | Field::Withdrawn
        | Field::Spent
        | Field::ContextSummary
        | Field::Settings => change.to.is_some(),
    }
}

/// Whether with this event a task fails, times out or is cancelled, or an executor reports a failure.
///
/// # Errors
/// [`Error::Decode`] with its position.
pub fn is_failure(recorded: &Recorded) -> Result<bool, Error> {
    match (recorded.stream_id.as_str(), recorded.event_type.as_str()) {
        (claim::STREAM, "TaskFailed") => Ok(true),
        (event::STREAM, "TaskStatusUpdated") => Ok(matches!(
            recorded.decode()?,
            Event::TaskStatusUpdated { status: TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled, .. }
        )),
        _another_type => Ok(false),
    }
}

/// How one plan differs from another, or from itself at another position. Tasks are matched by name, questions by
/// number.
#[must_use]
pub fn changes(before: &PlanView, after: &PlanView) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(&Subject::Plan, plan_facts(before), plan_facts(after), &mut changes);
    let (tasks_before, tasks_after) = (tasks_by_name(before), tasks_by_name(after));
    let facts = |view: &PlanView, task: Option<&&Task>| task.map_or_else(Facts::new, |task| task_facts(view, task));
    let gone = before.state().tasks().iter().zip(names(before));
    let gone = gone.filter(|(_, name)| !tasks_after.contains_key(name)).map(|(_, name)| name);
    for name in names(after).chain(gone) {
        let (was, is) = (facts(before, tasks_before.get(&name)), facts(after, tasks_after.get(&name)));
        compare(&Subject::Task(name.0), was, is, &mut changes);
    }
    let (asked_before, asked_after) = (before.state().questions(), after.state().questions());
    for place in 0..asked_before.len().max(asked_after.len()) {
        let facts = |view, asked: &[Question]| asked.get(place).map_or_else(Facts::new, |q| question_facts(view, q));
        let (was, is) = (facts(before, asked_before), facts(after, asked_after));
        let id = asked_after.get(place).or(asked_before.get(place)).map_or(QuestionId(0), |question| question.id);
        compare(&Subject::Question(id), was, is, &mut changes);
    }
    compare(&Subject::Plan, context_facts(before), context_facts(after), &mut changes);
    compare(&Subject::Plan, settings_facts(before), settings_facts(after), &mut changes);
    changes
}

/// Takes an event into a view and tells what it changed. One that a view passes over changes nothing.
///
/// # Errors
/// [`Error::Decode`] with its position; the view is as it was.
pub fn step(view: &mut PlanView, recorded: &Recorded) -> Result<Vec<Change>, Error> {
    let taken = Taken::of(recorded)?;
    let touched = Touched::by(&taken, view);
    let before = touched.facts(view);
    view.take(&taken, recorded);
    let after = touched.facts(view);
    let mut changes = Vec::new();
    for (before, after) in before.into_iter().zip(after) {
        compare_by_name(before, after, &mut changes);
    }
    Ok(changes)
}

/// What an event may change beside the plan's status.
#[derive(Default)]
struct Touched {
    /// In the order of the plan.
    tasks: Vec<TaskId>,
    questions: Vec<QuestionId>,
    context: bool,
    settings: bool,
}

impl Touched {
    fn by(taken: &Taken, view: &PlanView) -> Self {
        match taken {
            Taken::Plan(event) => Self::by_plan(event, view),
            Taken::Task(task, event) => match event {
                TaskEvent::TaskClaimed { .. }
                | TaskEvent::TaskReleased { .. }
                | TaskEvent::TaskStopped { .. }
                | TaskEvent::TaskCompleted { .. }
                | TaskEvent::TaskFailed { .. }
                | TaskEvent::NeedsClarification { .. } => Self { tasks: vec![*task], ..Self::default() },
                TaskEvent::TaskStarted { .. }
                | TaskEvent::LeaseRenewed { .. }
                | TaskEvent::UsageReported { .. }
                | TaskEvent::ClarificationProvided { .. } => Self::default(),
            },
            Taken::Other => Self::default(),
        }
    }

    fn by_plan(event: &Event, view: &PlanView) -> Self {
        let (tasks, questions) = match event {
            Event::TasksPlanned { tasks, .. } => {
                let known = view.state().tasks().iter().map(|task| task.plan.id);
                let ids = tasks.iter().map(|task| task.id).chain(known).collect::<BTreeSet<_>>();
                (ids.into_iter().collect(), Vec::new())
            }
            Event::TaskDispatched { task_id, .. } => (vec![*task_id], Vec::new()),
            Event::TaskStatusUpdated { task_id, .. } => {
                (vec![*task_id], view.state().questions_of(*task_id).map(|question| question.id).collect())
            }
            Event::ClarificationRequested { task_id, question_id, .. }
            | Event::ClarificationReceived { task_id, question_id, .. }
            | Event::ClarificationWithdrawn { task_id, question_id, .. } => (vec![*task_id], vec![*question_id]),
            Event::TasksReopened { task_ids } => (task_ids.clone(), Vec::new()),
            Event::PlanForked { .. } => {
                let open = view.state().tasks().iter().filter(|task| !task.status.is_end());
                let asked = view.state().open_questions().map(|question| question.id);
                (open.map(|task| task.plan.id).collect(), asked.collect())
            }
            Event::TasksAmended { tasks, .. } => Self::by_amendment(tasks, view.state()),
            Event::TaskPaused { task_id, .. } | Event::TaskResumed { task_id } => (vec![*task_id], Vec::new()),
            Event::ContextCompacted { .. }
            | Event::SettingsChanged { .. }
            | Event::DeadlineSet { .. }
            | Event::UsageRecorded { .. }
            | Event::CheckpointNamed { .. }
            | Event::CompactionRequested { .. }
            | Event::PlanPaused { .. }
            | Event::PlanResumed {}
            | Event::PlanCancelled { .. }
            | Event::PlanningCompleted { .. } => (Vec::new(), Vec::new()),
        };
        // What a summary says of a task that is open again is taken back.
        let context =
            matches!(event, Event::ContextCompacted { .. } | Event::TasksReopened { .. } | Event::PlanForked { .. });
        let settings = matches!(event, Event::TasksPlanned { .. } | Event::SettingsChanged { .. });
        Self { tasks, questions, context, settings }
    }

    /// What is called otherwise is called so wherever it is named.
    fn by_amendment(tasks: &[TaskPlan], state: &PlannerState) -> (Vec<TaskId>, Vec<QuestionId>) {
        let known = |task: &TaskPlan| state.task(task.id).filter(|known| known.plan.name() != task.name());
        let renamed = tasks.iter().filter_map(known).map(|task| task.plan.id).collect::<Vec<_>>();
        let dependants = renamed.iter().filter_map(|task| state.index(*task));
        let dependants =
            dependants.flat_map(|index| state.dependants(index)).map(|index| state.tasks()[*index].plan.id);
        let touched = tasks.iter().map(|task| task.id).chain(dependants).collect::<BTreeSet<_>>();
        let questions = renamed.iter().flat_map(|task| state.questions_of(*task)).map(|question| question.id);
        let questions = questions.collect::<BTreeSet<_>>();
        (touched.into_iter().collect(), questions.into_iter().collect())
    }

    /// The facts of all that is touched and is there: of the plan, of tasks, of questions, of the rest of the plan.
    fn facts(&self, view: &PlanView) -> [Vec<(Subject, Facts)>; 5] {
        let state = view.state();
        let tasks = self.tasks.iter().filter_map(|id| state.task(*id));
        let tasks = tasks.map(|task| (Subject::Task(task.plan.name()), task_facts(view, task)));
        let questions = self.questions.iter().filter_map(|id| state.question(*id));
        let questions = questions.map(|question| (Subject::Question(question.id), question_facts(view, question)));
        let context = self.context.then(|| (Subject::Plan, context_facts(view)));
        let settings = self.settings.then(|| (Subject::Plan, settings_facts(view)));
        [
            vec![(Subject::Plan, plan_facts(view))],
            tasks.collect(),
            questions.collect(),
            context.into_iter().collect(),
            settings.into_iter().collect(),
        ]
    }
}

/// What is the case of one subject; a fact that is not there is not told.
type Facts = BTreeMap<Field, Content>;

fn compare(subject: &Subject, mut before: Facts, mut after: Facts, changes: &mut Vec<Change>) {
    for field in Field::ALL {
        let (from, to) = (before.remove(&field), after.remove(&field));
        if from != to {
            changes.push(Change { subject: subject.clone(), field, from, to });
        }
    }
}

/// Compares subjects of the same name, in their order afterwards; then come those that are gone.
fn compare_by_name(before: Vec<(Subject, Facts)>, after: Vec<(Subject, Facts)>, changes: &mut Vec<Change>) {
    let mut n_gone = before.len();
    let mut before = before.into_iter().map(Some).collect::<Vec<_>>();
    for (place, (subject, is)) in after.into_iter().enumerate() {
        let is_it = |was: &Option<(Subject, Facts)>| was.as_ref().is_some_and(|(known, _)| *known == subject);
        // Mostly nothing was renamed, and it stands in the same place.
        let place = Some(place).filter(|place| before.get(*place).is_some_and(is_it));
        let place = place.or_else(|| if n_gone == 0 { None } else { before.iter().position(is_it) });
        let was = place.and_then(|place| before[place].take());
        n_gone -= usize::from(was.is_some());
        compare(&subject, was.map_or_else(Facts::new, |(_, was)| was), is, changes);
    }
    for (subject, was) in before.into_iter().flatten() {
        compare(&subject, was, Facts::new(), changes);
    }
}

fn text(text: impl Into<String>) -> Content {
    Content::Text(text.into())
}

/// The facts that are set.
fn set<const N: usize>(facts: [(Field, Option<Content>); N]) -> Facts {
    facts.into_iter().filter_map(|(field, content)| Some((field, content?))).collect()
}

fn plan_facts(view: &PlanView) -> Facts {
    set([
        (Field::Title, view.state().title().map(text)),
        (Field::Status, view.created_at().map(|_| text(view.status().as_str()))),
        (
            Field::Spent,
            Some(view.state().spent()).filter(|spent| !spent.is_nothing()).map(|spent| text(words_for(&spent))),
        ),
    ])
}

fn context_facts(view: &PlanView) -> Facts {
    let summary = view.state().context_summary();
    set([(Field::ContextSummary, (!summary.is_empty()).then(|| text(summary)))])
}

fn settings_facts(view: &PlanView) -> Facts {
    let words = view.state().config().words();
    set([(Field::Settings, (!words.is_empty()).then_some(Content::Names(words)))])
}

fn task_facts(view: &PlanView, task: &Task) -> Facts {
    let plan = &task.plan;
    let name_of = |id: TaskId| view.state().task(id).map_or_else(|| id.to_string(), |before| before.plan.name());
    let waits_for = plan.depends_on.iter().map(|dependency| name_of(dependency.task)).collect::<Vec<_>>();
    let times = view.times(plan.id);
    let names = |names: &[String]| (!names.is_empty()).then(|| Content::Names(names.to_vec()));
    set([
        (Field::Priority, plan.priority.as_ref().map(text)),
        (Field::Assignee, plan.assignee.as_ref().map(text)),
        (Field::Notes, names(&plan.notes)),
        (Field::Files, names(&plan.files)),
        (Field::Paused, task.is_paused.then(|| text("until it is resumed"))),
        (Field::Description, Some(text(&plan.description))),
        (Field::Kind, Some(text(plan.kind.as_str()))),
        (Field::Command, plan.command.as_ref().map(text)),
        (Field::Condition, plan.condition.as_ref().map(|condition| text(condition_words(condition)))),
        (Field::DependsOn, (!waits_for.is_empty()).then_some(Content::Names(waits_for))),
        (Field::Status, Some(text(task.status.as_str()))),
        (Field::Attempts, (task.attempts > 0).then_some(Content::Number(u64::from(task.attempts)))),
        (Field::Holder, times.executor.filter(|_| times.is_held).map(text)),
        (Field::Result, task.result.as_ref().map(text)),
        (Field::Error, task.error.as_ref().map(text)),
    ])
}

fn condition_words(condition: &Condition) -> String {
    if condition.negated { format!("not: {}", condition.text) } else { condition.text.clone() }
}

fn question_facts(view: &PlanView, question: &Question) -> Facts {
    let asker = view.state().task(question.task).map(|task| text(task.plan.name()));
    set([
        (Field::Question, Some(text(&question.question))),
        (Field::Asker, asker),
        (Field::Answer, question.answer.as_ref().map(text)),
        (Field::Withdrawn, question.is_withdrawn.then(|| text("its task has ended"))),
    ])
}

/// A task's name, and how many before it have the same: a label may be another's number.
type Named = (String, usize);

fn names(view: &PlanView) -> impl Iterator<Item = Named> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    view.state().tasks().iter().map(move |task| {
        let name = task.plan.name();
        let n_before = seen.entry(name.clone()).or_default();
        *n_before += 1;
        (name, *n_before)
    })
}

fn tasks_by_name(view: &PlanView) -> BTreeMap<Named, &Task> {
    names(view).zip(view.state().tasks()).collect()
}
