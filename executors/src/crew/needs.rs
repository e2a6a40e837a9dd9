//! Everything that waits for a person: each item with its age, the tasks it blocks, and the commands that settle it.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Position, Recorded, Timestamp};
use crewlog_planner::claim;
use crewlog_planner::crew::agents::{Agents, Liveness};
use crewlog_planner::crew::asks::{Asks, Open, Wanted};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, Holder};
use crewlog_planner::crew::messages::{self, Messages};
use crewlog_planner::event::{Event, Purpose};
use crewlog_planner::plan::TaskId;
use crewlog_planner::prompt::headline;
use crewlog_planner::view::PlanView;
use serde::Serialize;

use crate::shell::shell_word;

/// The most blocked tasks that an item lists.
const HELD_UP_MAX: usize = 20;
/// The answers to a question about a failed task.
const AFTER_FAILURE: [&str; 5] = ["retry", "done", "skip", "continue", "stop"];

/// The kind of thing that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An agent may not do something on its own.
    Permission,
    /// A plan or an agent asks.
    Question,
    /// A task failed, and its plan asks how to continue.
    Failure,
    /// Too many agents were lost with a task.
    Parked,
    /// A plan starts no more tasks because one failed.
    Stopped,
    /// A plan was paused.
    Paused,
    /// Tasks held at the same time touch the same files.
    Conflict,
    /// An agent has not acknowledged a message in time. Agents that have left do not count.
    Overdue,
}

/// An item that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Its kind.
    pub kind: Kind,
    /// Its name: `a12`, `PLAN/q1`, `PLAN/3`, a plan, the number of a conflict or of a message.
    pub id: String,
    /// The agent or the plan that waits.
    pub from: String,
    /// The question, or a description of the event.
    pub text: String,
    /// Suggested answers.
    pub choices: Vec<String>,
    /// The start of the wait, in log time.
    pub since: Option<Timestamp>,
    /// The blocked tasks, at most 20.
    pub holds_up: Vec<String>,
    /// The commands that settle it: the words after `crewlog`, quoted for a shell. `"..."` stands for the person's own text.
    pub commands: Vec<String>,
}

impl Need {
    fn new(kind: Kind, id: String, from: String, text: String) -> Self {
        Self { kind, id, from, text, choices: Vec::new(), since: None, holds_up: Vec::new(), commands: Vec::new() }
    }
}

/// The input of the list: the state of a project as of one position.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The project.
    pub project: &'a str,
    /// The log time of that position, or of the present.
    pub now: Timestamp,
    /// Its open plans.
    pub plans: &'a [OpenPlan<'a>],
    /// Its agents.
    pub agents: &'a Agents,
    /// Their questions.
    pub asks: &'a Asks,
    /// Their messages.
    pub messages: &'a Messages,
    /// The conflicts of all projects.
    pub conflicts: &'a Conflicts,
}

/// An open plan.
#[derive(Clone, Copy)]
pub struct OpenPlan<'a> {
    /// Its id.
    pub plan: &'a str,
    /// Its state.
    pub view: &'a PlanView,
    /// The start of each wait, by the id of its item.
    pub since: &'a BTreeMap<String, Timestamp>,
}

/// The items that wait for a person in a project: those that block work first, then by age.
#[must_use]
pub fn needs_you(facts: &Facts<'_>) -> Vec<Need> {
    let mut items = asked(facts);
    items.extend(facts.plans.iter().flat_map(of_plan));
    items.extend(conflicts(facts));
    items.extend(overdue(facts));
    items.sort_by(|a, b| (a.kind, a.since, &a.id).cmp(&(b.kind, b.since, &b.id)));
    items
}

/// The item that an event starts or renews: a question of a plan, a pause, a stop, or a hold on a task that ended.
#[must_use]
pub fn begins(plan: &str, recorded: &Recorded) -> Option<String> {
    match recorded.event_type.as_str() {
        "PlanPaused" | "PlanStopped" | "TimerFired" => Some(recorded.aggregate_id.clone()),
        "ClarificationRequested" => match recorded.decode() {
            Ok(Event::ClarificationRequested { question_id, .. }) => Some(format!("{plan}/{question_id}")),
            _unreadable => None,
        },
        _another => None,
    }
}

fn asked(facts: &Facts<'_>) -> Vec<Need> {
    let need = |(number, open): (u64, &Open)| {
        let (id, ask) = (format!("a{number}"), open.ask.clone());
        let (kind, answers) = match ask.wanted {
            Wanted::Permission => (Kind::Permission, vec!["--yes".to_owned(), "--no".to_owned()]),
            Wanted::Answer if ask.choices.is_empty() => (Kind::Question, vec!["\"...\"".to_owned()]),
            Wanted::Answer => (Kind::Question, ask.choices.iter().map(|choice| shell_word(choice)).collect()),
        };
        let task = ask.task.as_deref().and_then(claim::split_aggregate_id);
        let of_task = task.and_then(|(plan, task)| {
            let open = facts.plans.iter().find(|open| open.plan == plan)?;
            Some(held_up(plan, open.view, |id| id == task))
        });
        let commands = answers.iter().map(|answer| format!("answer {id} {answer}")).collect();
        let holds_up = of_task.unwrap_or_else(|| ask.task.iter().cloned().collect());
        let since = Some(open.at);
        Need { choices: ask.choices, since, holds_up, commands, ..Need::new(kind, id, ask.agent, ask.text) }
    };
    facts.asks.open().map(need).collect()
}

/// Questions, parked tasks, and the plan itself if it was stopped or paused.
fn of_plan(open: &OpenPlan<'_>) -> Vec<Need> {
    let OpenPlan { plan, view, since } = *open;
    let (state, mut items) = (view.state(), Vec::new());
    let within = |name: &str| shell_word(&format!("{plan}/{name}"));
    let name = |task: TaskId| state.task(task).map_or_else(|| task.to_string(), |task| task.plan.name());
    let need = |kind, id: String, text: String, holds_up, commands| Need {
        holds_up,
        commands,
        ..Need::new(kind, id, plan.to_owned(), text)
    };
    for question in state.open_questions() {
        let id = question.id.to_string();
        let (kind, choices): (_, &[&str]) = match question.purpose {
            Purpose::Failure => (Kind::Failure, &AFTER_FAILURE),
            Purpose::Condition => (Kind::Question, &["yes", "no"]),
            Purpose::Task | Purpose::Executor => (Kind::Question, &[]),
        };
        let answer = |text: &str| format!("answer {} {text}", within(&id));
        let commands =
            if choices.is_empty() { vec![answer("\"...\"")] } else { choices.iter().map(|c| answer(c)).collect() };
        let mut holds_up = held_up(plan, view, |task| task == question.task);
        holds_up.retain(|held| *held != format!("{plan}/{}", name(question.task)));
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        items.push(Need {
            choices,
            ..need(kind, format!("{plan}/{id}"), question.question.clone(), holds_up, commands)
        });
    }
    for task in state.tasks.iter().filter(|task| !task.status.is_end()) {
        let id = task.plan.id;
        if view.times(id).claim.is_parked() {
            let commands = vec![format!("resume {}", within(&name(id)))];
            let text = format!("{} agents were lost with it: {}", claim::LOST_MAX, task.plan.description);
            let parked =
                need(Kind::Parked, claim::aggregate_id(plan, id), text, held_up(plan, view, |it| it == id), commands);
            items.push(parked);
        }
    }
    if let Some(task) = state.stopped_by {
        let error = state.task(task).and_then(|task| task.error.as_deref()).map(headline);
        let why = error.map_or_else(String::new, |error| format!(": {error}"));
        let text = format!("task {} failed{why}", name(task));
        let commands = vec![format!("retry {}", within(&name(task)))];
        items.push(need(Kind::Stopped, plan.to_owned(), text, held_up(plan, view, |_| true), commands));
    }
    if let Some(reason) = state.pause_reason().filter(|_| !state.is_paused_from_parent()) {
        let commands = vec![format!("resume {}", shell_word(plan))];
        items.push(need(Kind::Paused, plan.to_owned(), reason.to_owned(), held_up(plan, view, |_| true), commands));
    }
    items.iter_mut().for_each(|item| item.since = since.get(&item.id).copied());
    items
}

/// The open tasks among these, and all their open dependents.
fn held_up(plan: &str, view: &PlanView, is_it: impl Fn(TaskId) -> bool) -> Vec<String> {
    let state = view.state();
    let open = || state.tasks.iter().filter(|task| !task.status.is_end());
    let mut held: BTreeSet<TaskId> = open().map(|task| task.plan.id).filter(|task| is_it(*task)).collect();
    loop {
        let waits = open().filter(|task| task.plan.depends_on.iter().any(|on| held.contains(&on.task)));
        let more: Vec<_> = waits.map(|task| task.plan.id).filter(|task| !held.contains(task)).collect();
        if more.is_empty() {
            let held = held.into_iter().take(HELD_UP_MAX).filter_map(|task| state.task(task));
            return held.map(|task| format!("{plan}/{}", task.plan.name())).collect();
        }
        held.extend(more);
    }
}

fn conflicts(facts: &Facts<'_>) -> Vec<Need> {
    let mut items = Vec::new();
    for (_, open) in facts.conflicts.open().filter(|(name, _)| *name == facts.project) {
        let ConflictEvent::ConflictDetected { conflict, pattern, holders, .. } = &open.detected else { continue };
        let name = |it: &Holder| {
            let open = facts.plans.iter().find(|open| open.plan == it.plan);
            let task = open.and_then(|open| open.view.state().task(it.task));
            format!("{}/{}", it.plan, task.map_or_else(|| it.task.to_string(), |task| task.plan.name()))
        };
        let tasks = holders.iter().map(name).collect::<Vec<_>>();
        // The newcomer comes first.
        let cancel = tasks.first().map(|newcomer| format!("cancel {}", shell_word(newcomer)));
        let commands = ["leases --conflicts".to_owned()].into_iter().chain(cancel).collect();
        let from = holders.iter().map(|holder| holder.executor.name.clone()).collect::<Vec<_>>().join(", ");
        let text = format!("they work on {pattern} at the same time");
        let (since, holds_up) = (Some(open.since.at), tasks);
        items.push(Need { since, holds_up, commands, ..Need::new(Kind::Conflict, conflict.to_string(), from, text) });
    }
    items
}

fn overdue(facts: &Facts<'_>) -> Vec<Need> {
    let has_left = |agent: &str| facts.agents.get(agent).is_some_and(|found| found.liveness == Liveness::Left);
    let need = |(message, open): (Position, &messages::Open)| {
        let late = open.unacked.iter().filter(|agent| !has_left(agent)).cloned().collect::<Vec<_>>();
        let text = format!("{} waits for an acknowledgement of: {}", open.from.name(), open.subject);
        let commands = late.iter().map(|agent| format!("why {}", shell_word(agent))).collect();
        let overdue = Need::new(Kind::Overdue, message.to_string(), late.join(", "), text);
        (!late.is_empty()).then_some(Need { since: Some(open.at), commands, ..overdue })
    };
    facts.messages.overdue(facts.now).filter_map(need).collect()
}
