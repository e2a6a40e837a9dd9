//! Compares two views of plans, generically by the JSON that `show` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};

use crewlog_mq::{Error, Position, Recorded};
use crewlog_planner::plan::TaskId;
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::{Value, json};

use crate::text::one_line;
use crate::views::{PlanShown, tasks_of};

/// The most characters of a value in the words for a change.
const VALUE_CHARS_MAX: usize = 120;
/// Keys that identify a plan, or that no two runs of a plan share.
const NOT_COMPARED: [&str; 10] =
    ["plan", "at", "parent", "forks", "budget", "id", "started_at", "ended_at", "deadline", "retry_at"];

/// Keys of a new task or question that the text for people leaves out.
const PLANNED: [&str; 10] =
    ["kind", "command", "condition", "depends_on", "priority", "assignee", "notes", "files", "task", "compensates"];

/// A value before and after; null where there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// `plan`, `task` or `question`.
    pub of: &'static str,
    /// The task's name or the question's id.
    pub name: Option<String>,
    /// The key in the JSON of `show`.
    pub field: String,
    pub from: Value,
    pub to: Value,
}

/// The facts of a plan, its tasks and its questions, by `of`, `name` and `field` of a change.
type Facts = Vec<((&'static str, Option<String>, String), Value)>;

/// Compares two views. Tasks are matched by name, questions by id.
pub fn changes(before: &PlanView, after: &PlanView) -> Vec<Change> {
    compare(facts(before, None), facts(after, None))
}

/// Applies an event to a view and returns what it changed. It compares only the tasks that the event is about.
pub fn step(view: &mut PlanView, recorded: &Recorded) -> Result<Vec<Change>, Error> {
    let tasks = tasks_of(recorded);
    let before = facts(view, tasks.as_ref());
    view.apply(recorded)?;
    Ok(compare(before, facts(view, tasks.as_ref())))
}

/// The facts of a plan, its tasks and its questions, in this order; a plan without events has none.
fn facts(view: &PlanView, tasks: Option<&BTreeSet<TaskId>>) -> Facts {
    let mut facts = Vec::new();
    if view.created_at.is_none() {
        return facts;
    }
    let is_shown = |task| tasks.is_none_or(|tasks| tasks.contains(&task));
    let mut shown = json!(PlanShown::of_tasks("", Position(0), view, is_shown));
    let (tasks, questions) = (shown["tasks"].take(), shown["questions"].take());
    for (of, item) in [("plan", shown)].into_iter().chain(items("task", tasks)).chain(items("question", questions)) {
        let Value::Object(fields) = item else { continue };
        let name = fields.get("id").and_then(Value::as_str).map(str::to_owned);
        let fields =
            fields.into_iter().filter(|(key, value)| !NOT_COMPARED.contains(&key.as_str()) && !is_nothing(value));
        facts.extend(fields.map(|(field, value)| ((of, name.clone(), field), value)));
    }
    facts
}

fn items(of: &'static str, items: Value) -> impl Iterator<Item = (&'static str, Value)> {
    let items = if let Value::Array(items) = items { items } else { Vec::new() };
    items.into_iter().map(move |item| (of, item))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}

fn compare(before: Facts, after: Facts) -> Vec<Change> {
    let mut before = before.into_iter().collect::<BTreeMap<_, _>>();
    let mut changes = Vec::new();
    let mut push = |(of, name, field), from, to| {
        if from != to {
            changes.push(Change { of, name, field, from, to });
        }
    };
    for (fact, to) in after {
        push(fact.clone(), before.remove(&fact).unwrap_or_default(), to);
    }
    before.into_iter().for_each(|(fact, from)| push(fact, from, Value::Null));
    changes
}

impl Change {
    /// True if the change adds or removes a whole task or question.
    fn is_of_whole(&self) -> bool {
        let names_it = matches!((self.of, self.field.as_str()), ("task", "description") | ("question", "question"));
        names_it && (self.from.is_null() || self.to.is_null())
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { of, name, field, from, to } = self;
        let subject = name.as_ref().map_or_else(|| (*of).to_owned(), |name| format!("{of} {name}"));
        let field = field.replace('_', " ");
        match (from.is_null(), to.is_null()) {
            (true, _) if self.is_of_whole() => write!(f, "{subject} is new: {}", words(to)),
            (_, true) if self.is_of_whole() => write!(f, "{subject} is gone: {}", words(from)),
            (true, _) => write!(f, "{subject} {field}: {}", words(to)),
            (false, _) => write!(f, "{subject} {field}: {} -> {}", words(from), words(to)),
        }
    }
}

fn words(value: &Value) -> String {
    let words = match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let said = fields.iter().filter(|(_, value)| !is_nothing(value));
            said.map(|(key, value)| format!("{} {}", key.replace('_', " "), words(value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    one_line(&words, VALUE_CHARS_MAX)
}

/// The changes for people, without the details of new and removed items.
pub fn in_short(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let whole = changes.iter().filter(|change| change.is_of_whole()).map(|change| (change.of, &change.name));
    let whole = whole.collect::<BTreeSet<_>>();
    changes.iter().filter(move |change| {
        !whole.contains(&(change.of, &change.name))
            || change.is_of_whole()
            || (!change.to.is_null() && change.to != "Planned" && !PLANNED.contains(&change.field.as_str()))
    })
}
