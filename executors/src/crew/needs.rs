//! The inbox: everything that waits for a person, each item with its age, the tasks it blocks, and the actions that
//! settle it. An open plan that cannot advance by itself has an item.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Position, Recorded, Timestamp};
use crewlog_planner::claim::{self, LateReport};
use crewlog_planner::crew::agents::{Agent as SessionAgent, Agents, Health, Liveness};
use crewlog_planner::crew::asks::{Asks, OpenAsk, Wanted};
use crewlog_planner::crew::conflicts::{ConflictEvent, ConflictHolder, Conflicts};
use crewlog_planner::crew::leases::{Blocked, Deadlock, LeaseNews, Leases, News, RingPart};
use crewlog_planner::crew::messages::{self, Messages};
use crewlog_planner::event::{Event, PlannerCmd, Purpose, Timer};
use crewlog_planner::lifecycle::{Situation, State, States, Wait};
use crewlog_planner::listing::ListedPlan;
use crewlog_planner::nesting;
use crewlog_planner::plan::TaskId;
use crewlog_planner::prompt::headline;
use crewlog_planner::state::{Measure, Question, Task};
use crewlog_planner::text::{duration, millis, money};
use crewlog_planner::view::PlanView;
use serde::{Deserialize, Serialize};

use super::actions::{NeedAction, OWN_WORDS};
use super::notices::committed;
use crate::agent::Agent;
use crate::breakers::is_nearly_used;
use crate::caller;
use crate::roster::{Roster, Unagreed};

/// The most tasks of a plan that each have an item because nobody agreed to them; one more item counts the others.
/// The most tasks with lost runs that an item names.
const LOST_MAX: usize = 20;
const UNAGREED_MAX: usize = 3;
/// The most blocked tasks that an item lists.
const HELD_UP_MAX: usize = 20;
/// The last lines of a silent run in its item.
const LINES_OF_SILENCE: usize = 5;
/// The answers to a question about a failed task.
const AFTER_FAILURE: [&str; 5] = ["retry", "done", "skip", "continue", "stop"];

/// The kind of thing that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An agent may not do something on its own.
    Permission,
    /// A task may not run before a person agrees to it.
    Consent,
    /// A plan or an agent asks.
    Question,
    /// A task failed, and its plan asks how to continue.
    Failure,
    /// A step that no executor and no agent takes.
    Step,
    /// Too many agents were lost with a task.
    Parked,
    /// A plan starts no more tasks because one failed.
    Stopped,
    /// The run of a plan, or the agent with a task, died.
    Interrupted,
    /// A program runs and has printed nothing for long.
    Silent,
    /// A plan can go on, and nobody runs it.
    Ready,
    /// A plan or a task was paused.
    Paused,
    /// Tasks held at the same time touch the same files, agents wait for each other, or one does not release files.
    Conflict,
    /// Four fifths of a budget are used.
    Budget,
    /// An agent met an error, or its context is nearly full while it has a task.
    Health,
    /// An agent has not acknowledged a message in time. Agents that have left do not count.
    Overdue,
}

/// An item that waits for a person.
#[serde_with::apply(
    Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")],
    Option => #[serde(default, skip_serializing_if = "Option::is_none")],
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Its kind.
    pub kind: Kind,
    /// Its name: `a12`, `PLAN/q1`, `PLAN/TASK`, a plan, the number of a conflict or of a message.
    pub id: String,
    /// The agent or the plan that waits.
    pub from: String,
    /// The question, or a description of the event.
    pub text: String,
    /// Suggested answers.
    pub choices: Vec<String>,
    /// The answer that counts if nobody answers, and the time of its effect, in log time.
    pub default: Option<(String, Timestamp)>,
    /// The start of the wait, in log time.
    pub since: Option<Timestamp>,
    /// The blocked tasks, at most 20.
    pub holds_up: Vec<String>,
    /// The actions that settle it: one of them, or for a budget all of them in order.
    pub actions: Vec<NeedAction>,
}

impl Need {
    fn new(kind: Kind, id: String, from: String, text: String) -> Self {
        let (choices, holds_up, actions) = Default::default();
        Self { kind, id, from, text, choices, default: None, since: None, holds_up, actions }
    }

    /// The actions as commands: [`NeedAction::words`].
    pub fn commands(&self) -> Vec<String> {
        self.actions.iter().map(NeedAction::words).collect()
    }
}

/// The input of the list: the state of a project as of one position.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The project.
    pub project: &'a str,
    /// The log time of that position, or of the present.
    pub now: Timestamp,
    /// Its open plans, by id.
    pub open: &'a BTreeMap<&'a str, &'a ListedPlan>,
    /// Those whose items are wanted.
    pub plans: &'a [OpenPlan<'a>],
    /// Its agents.
    pub agents: &'a Agents,
    /// Their questions.
    pub asks: &'a Asks,
    /// Their messages.
    pub messages: &'a Messages,
    /// Their leases.
    pub leases: &'a Leases,
    /// The conflicts of all projects.
    pub conflicts: &'a Conflicts,
    /// The executors of the machine, with the decisions that count there.
    pub roster: Option<&'a Roster>,
}

/// An open plan.
#[derive(Clone, Copy)]
pub struct OpenPlan<'a> {
    /// Its id.
    pub plan: &'a str,
    /// Its fold.
    pub view: &'a PlanView,
    /// Its state and those of its tasks.
    pub states: &'a States,
    /// The start of each wait, by the id of its item.
    pub since: &'a BTreeMap<String, Timestamp>,
}

/// The items that wait for a person in a project: those that block work first, then by age.
#[must_use]
pub fn needs_you(facts: &Facts<'_>) -> Vec<Need> {
    with_crew(facts, facts.plans.iter().flat_map(|open| of_plan(facts, open)).collect())
}

/// Adds the items of the agents to those of the plans.
pub(super) fn with_crew(facts: &Facts<'_>, mut items: Vec<Need>) -> Vec<Need> {
    items.extend(asked(facts));
    items.extend(conflicts(facts));
    items.extend(overdue(facts));
    items.extend(unanswered(facts));
    items.extend(facts.agents.iter().filter_map(|(name, agent)| of_health(name, agent)));
    items.extend(facts.leases.deadlocks().iter().map(|deadlock| deadlocked(facts, deadlock)));
    items.extend(facts.leases.at_risk().map(|(news, lease)| overwritten(news, lease)));
    items.extend(
        facts.roster.into_iter().flat_map(|roster| roster.agents.iter().filter_map(|agent| today(roster, agent))),
    );
    items.sort_by(|a, b| (a.kind, a.since, &a.id).cmp(&(b.kind, b.since, &b.id)));
    items
}

/// The item that an event starts or renews: a question of a plan, a pause, a stop, a step, or a lost claim on a task.
#[must_use]
pub fn begins(plan: &str, recorded: &Recorded) -> Option<String> {
    match recorded.event_type.as_str() {
        "PlanPaused" | "PlanStopped" | "TimerFired" => Some(recorded.aggregate_id.clone()),
        "ClarificationRequested" => match recorded.decode() {
            Ok(Event::ClarificationRequested { question_id, .. }) => Some(format!("{plan}/{question_id}")),
            _unreadable => None,
        },
        "TaskPaused" | "TaskDispatched" => match recorded.decode() {
            Ok(Event::TaskPaused { task_id, .. }) => Some(claim::aggregate_id(plan, task_id)),
            Ok(Event::TaskDispatched { task_id, command: PlannerCmd::ExecuteTask { parameters, .. }, .. }) => {
                let is_step = parameters.command.is_none() && !parameters.is_delegated;
                is_step.then(|| claim::aggregate_id(plan, task_id))
            }
            _unreadable => None,
        },
        _another => None,
    }
}

fn asked(facts: &Facts<'_>) -> Vec<Need> {
    let need = |(number, open): (u64, &OpenAsk)| {
        let (id, ask) = (format!("a{number}"), open.ask.clone());
        let answer = |text: &str| NeedAction::Answer { question: id.clone(), text: text.to_owned() };
        let (kind, actions) = match ask.wanted {
            Wanted::Permission => (Kind::Permission, ["allow", "deny"].map(answer).to_vec()),
            Wanted::Answer => {
                let choices = ask.choices.iter().map(String::as_str);
                (Kind::Question, choices.chain([OWN_WORDS]).map(answer).collect())
            }
        };
        let task = ask.task.as_deref().and_then(|task| task.split_once('/'));
        let of_task = task.and_then(|(plan, name)| {
            let open = facts.plans.iter().find(|open| open.plan == plan)?;
            let task = open.view.state().id_named(name)?;
            Some(held_up(plan, open.view, |id| id == task))
        });
        let holds_up = of_task.unwrap_or_else(|| ask.task.iter().cloned().collect());
        let since = Some(open.at);
        Need { choices: ask.choices, since, holds_up, actions, ..Need::new(kind, id, ask.agent, ask.text) }
    };
    facts.asks.open().map(need).collect()
}

/// Questions, tasks and the plan itself, as far as a person can move them.
pub(super) fn of_plan(facts: &Facts<'_>, open: &OpenPlan<'_>) -> Vec<Need> {
    let OpenPlan { plan, view, .. } = *open;
    let mut items: Vec<_> = view.state().open_questions().map(|question| of_question(open, question)).collect();
    let unagreed = facts.roster.map(|roster| roster.unagreed(plan, view.state())).unwrap_or_default();
    items.extend(view.state().tasks.iter().filter_map(|task| of_task(open, task)));
    items.extend(view.state().dispatched().filter_map(|task| of_silence(facts, open, task)));
    let is_ready = |task: &Task| open.states.task(task.plan.id).state == State::Ready;
    let lacking: BTreeSet<_> = unagreed.iter().map(|unagreed| unagreed.task).collect();
    let lacks = |task: &Task| lacking.contains(&task.plan.id);
    let waits = !unagreed.is_empty() && view.state().tasks.iter().filter(|task| is_ready(task)).all(lacks);
    items.extend(of_whole_plan(facts, open).into_iter().filter(|need| need.kind != Kind::Ready || !waits));
    let n_more = unagreed.len().saturating_sub(UNAGREED_MAX);
    items.extend(unagreed.into_iter().take(UNAGREED_MAX).map(|unagreed| of_unagreed(open, unagreed)));
    items.extend(nearly_used(open));
    items.extend((n_more > 0).then(|| {
        let text = format!("{n_more} more of its tasks run once you agree; `crewlog agree {plan}` shows all of them");
        Need::new(Kind::Consent, plan.to_owned(), String::new(), text)
    }));
    for item in &mut items {
        // The last event is the last sign of a run that died, and the moment since which nobody runs the plan.
        let last = matches!(item.kind, Kind::Interrupted | Kind::Ready).then_some(view.changed_at).flatten();
        item.since = item.since.or_else(|| open.since.get(&item.id).copied()).or(last);
        item.from = plan.to_owned();
    }
    items
}

fn of_question(open: &OpenPlan<'_>, question: &Question) -> Need {
    let (plan, asker) = (open.plan, question.task);
    let (kind, choices): (_, &[&str]) = match question.purpose {
        Purpose::Failure => (Kind::Failure, &AFTER_FAILURE),
        Purpose::Condition => (Kind::Question, &["yes", "no"]),
        Purpose::Task | Purpose::Executor => (Kind::Question, &[]),
    };
    let id = format!("{plan}/{}", question.id);
    let answer = |text: &str| NeedAction::Answer { question: id.clone(), text: text.to_owned() };
    let actions = choices.iter().map(|choice| answer(choice));
    let actions = if choices.is_empty() { vec![answer(OWN_WORDS)] } else { actions.collect() };
    let mut holds_up = held_up(plan, open.view, |task| task == asker);
    holds_up.retain(|held| *held != open.within(asker));
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    let text = question_text(open.view, question, headline);
    let due = open.view.state().due(Timer::Question(question.id));
    let default = question.default.as_ref().zip(due).map(|(default, due)| (default.answer.clone(), due));
    Need { choices, default, holds_up, actions, ..Need::new(kind, id.clone(), String::new(), text) }
}

/// The text of a question for people. One about a failed task quotes its error, which `shorten` shortens, and a report that came
/// too late.
pub fn question_text(view: &PlanView, question: &Question, shorten: impl Fn(&str) -> String) -> String {
    let Some(task) = view.state().task(question.task).filter(|_| question.purpose == Purpose::Failure) else {
        return question.question.clone();
    };
    let error = task.error.as_deref().filter(|error| !error.is_empty());
    let text =
        error.map_or_else(|| question.question.clone(), |error| question.question.replacen(error, &shorten(error), 1));
    let late = view.late_report(question.task).filter(|late| late.attempt == task.attempts);
    let late = late.map(|LateReport { executor, outcome, text, .. }| {
        format!("\n{executor} reported too late that it {}: {}", <&str>::from(*outcome), shorten(text))
    });
    text + &late.unwrap_or_default()
}

/// The item of a task that may not run before a person agrees.
fn of_unagreed(open: &OpenPlan<'_>, unagreed: Unagreed) -> Need {
    let (task, named) = (unagreed.task, open.within(unagreed.task));
    let actions = vec![NeedAction::Agree { target: named.clone(), seen: unagreed.seen() }];
    let text = unagreed.text;
    let holds_up = held_up(open.plan, open.view, |held| held == task);
    let since = open.since.get(&claim::aggregate_id(open.plan, task)).copied();
    Need { since, holds_up, actions, ..Need::new(Kind::Consent, named, String::new(), text) }
}

/// The item of a task that waits for a person's work, permission or order to resume.
fn of_task(open: &OpenPlan<'_>, task: &Task) -> Option<Need> {
    let (id, named) = (task.plan.id, open.within(task.plan.id));
    let Situation { state, wait } = open.states.task(id);
    let does = &task.plan.description;
    let (kind, text, actions) = match (state, wait) {
        (State::WaitingForYou, Some(Wait::Work)) => {
            let own = || OWN_WORDS.to_owned();
            let done = NeedAction::TaskDone { task: named.clone(), result: own() };
            let actions = vec![done, NeedAction::TaskFail { task: named.clone(), error: own() }];
            (Kind::Step, does.clone(), actions)
        }
        (State::WaitingForYou, Some(Wait::Unpark)) => {
            let text = format!("{} agents were lost with it: {does}", claim::LOST_MAX);
            (Kind::Parked, text, vec![NeedAction::Resume { target: named.clone() }])
        }
        (State::Paused, _) if task.is_paused => {
            (Kind::Paused, does.clone(), vec![NeedAction::Resume { target: named.clone() }])
        }
        _moves_by_itself_or_with_its_plan => return None,
    };
    let holds_up = held_up(open.plan, open.view, |held| held == id);
    let since = open.since.get(&claim::aggregate_id(open.plan, id)).copied();
    Some(Need { since, holds_up, actions, ..Need::new(kind, named, String::new(), text) })
}

/// The item of a task whose program runs on this machine and has printed nothing for long.
fn of_silence(facts: &Facts<'_>, open: &OpenPlan<'_>, task: &Task) -> Option<Need> {
    let (id, files) = (task.plan.id, facts.roster?.outputs.as_ref()?);
    let holder = open.view.holder(id).filter(|holder| holder.has_started && !task.plan.is_delegated())?;
    let is_run_here = !holder.is_agent() && holder.executor.host == caller::host();
    let began = open.view.times(id).claimed_at.filter(|_| is_run_here)?;
    let last = files.last_lines(open.plan, id, task.attempts, LINES_OF_SILENCE);
    // Without its key nobody sees whether it prints anything.
    if last.is_none() && facts.open.get(open.plan).is_some_and(|plan| plan.is_sealed) {
        return None;
    }
    let since = last.as_ref().map_or(began, |last| last.at.max(began));
    let silence = Some(facts.now.since(since)).filter(|silence| *silence >= files.quiet)?;
    let name = &holder.executor.name;
    let said = last.map_or_else(String::new, |last| format!(", after:\n{}", last.lines));
    let text = format!("{name} has printed nothing for {}{said}", duration(millis(silence)));
    let target = open.within(id);
    let holds_up = held_up(open.plan, open.view, |held| held == id);
    let actions = vec![NeedAction::Cancel { target: target.clone() }];
    Some(Need { since: Some(since), holds_up, actions, ..Need::new(Kind::Silent, target, String::new(), text) })
}

/// The items of a plan as a whole: stopped, paused, interrupted, or ready with nobody who runs it.
fn of_whole_plan(facts: &Facts<'_>, open: &OpenPlan<'_>) -> Vec<Need> {
    let (plan, state) = (open.plan, open.view.state());
    let resume = || NeedAction::Resume { target: plan.to_owned() };
    let whole = |kind, text: String, actions| Need {
        holds_up: held_up(plan, open.view, |_| true),
        actions,
        ..Need::new(kind, plan.to_owned(), String::new(), text)
    };
    let mut items = Vec::new();
    if let Some(task) = state.stopped_by {
        let error = state.task(task).and_then(|task| task.error.as_deref()).map(headline);
        let why = error.map_or_else(String::new, |error| format!(": {error}"));
        let text = format!("task {} failed{why}", open.name(task));
        items.push(whole(Kind::Stopped, text, vec![NeedAction::Retry { target: open.within(task) }]));
    }
    if let Some(reason) = state.pause_reason().filter(|_| !state.is_paused_from_parent()) {
        let key = state.shortage().map(|shortage| shortage.measure.key());
        let setting = |key| vec![format!("{key}={OWN_WORDS}")];
        let raise = key.map(|key| NeedAction::PlanSet { plan: plan.to_owned(), settings: setting(key) });
        items.push(whole(Kind::Paused, reason.to_owned(), raise.into_iter().chain([resume()]).collect()));
    }
    // A run of the parent plan includes its sub-plans.
    let is_run_from_parent =
        nesting::parent_task(plan, state).is_some_and(|parent| facts.open.contains_key(&*parent.plan));
    if is_run_from_parent {
        return items;
    }
    match (open.states.plan.state, &open.states.plan.wait) {
        (State::Interrupted, _) => {
            let is_cut_off = |(_, task): &&(TaskId, Situation)| task.state == State::Interrupted;
            let tasks = open.states.tasks.iter().filter(is_cut_off).map(|(task, _)| *task);
            items.extend(
                interrupted(open, tasks.collect()).map(|(text, actions)| whole(Kind::Interrupted, text, actions)),
            );
        }
        (State::Ready, None) => {
            let nowhere = state.config.folder.as_ref().zip(facts.roster).and_then(|(kept, here)| here.find(kept).err());
            let text = match nowhere {
                None => "it can go on, and nobody runs it".to_owned(),
                Some(why) => {
                    format!("it cannot run here: {why}; to run it in another folder, resume it with --in FOLDER")
                }
            };
            items.push(whole(Kind::Ready, text, vec![resume()]));
        }
        _runs_or_waits => {}
    }
    items
}

/// The actions for tasks whose run died. The tasks of a lost agent in a standing plan are for the next agent.
fn interrupted(open: &OpenPlan<'_>, tasks: Vec<TaskId>) -> Option<(String, Vec<NeedAction>)> {
    let state = open.view.state();
    let of_agent = |task: &TaskId| open.view.holder(*task).filter(|holder| holder.is_agent());
    let (of_agents, of_workers): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| of_agent(task).is_some());
    let names = |tasks: &[TaskId]| tasks.iter().map(|task| open.name(*task)).collect::<Vec<_>>().join(", ");
    if !of_workers.is_empty() {
        let (noun, pronoun) = if of_workers.len() == 1 { ("task", "it") } else { ("tasks", "them") };
        let lost = state.tasks.iter().filter(|task| open.view.has_lost_run(task)).map(|task| task.plan.id);
        let lost = names(&lost.take(LOST_MAX).collect::<Vec<_>>());
        let too = if lost.is_empty() { lost } else { format!(", and {lost}, of which a run is lost too") };
        let text = format!("its run ended during {noun} {}; resuming runs {pronoun} again{too}", names(&of_workers));
        return Some((text, vec![NeedAction::Resume { target: open.plan.to_owned() }]));
    }
    if of_agents.is_empty() || state.config.standing {
        return None;
    }
    let text = format!("the agent is gone: {}; another agent can take it", names(&of_agents));
    Some((text, of_agents.iter().map(|task| NeedAction::Cancel { target: open.within(*task) }).collect()))
}

impl OpenPlan<'_> {
    /// The name of a task within the plan.
    fn name(&self, task: TaskId) -> String {
        self.view.state().name(task)
    }

    /// A task as a target.
    fn within(&self, task: TaskId) -> String {
        self.view.state().target(self.plan, task)
    }
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
            return held.into_iter().take(HELD_UP_MAX).map(|task| state.target(plan, task)).collect();
        }
        held.extend(more);
    }
}

fn conflicts(facts: &Facts<'_>) -> Vec<Need> {
    let mut items = Vec::new();
    for (_, open) in facts.conflicts.open().filter(|(name, _)| *name == facts.project) {
        let ConflictEvent::ConflictDetected { conflict, pattern, holders, .. } = &open.detected else { continue };
        let name = |it: &ConflictHolder| {
            let open = facts.plans.iter().find(|open| open.plan == it.plan);
            open.map_or_else(|| claim::aggregate_id(&it.plan, it.task), |open| open.within(it.task))
        };
        let tasks = holders.iter().map(name).collect::<Vec<_>>();
        // The newcomer comes first.
        let cancel = tasks.first().map(|newcomer| NeedAction::Cancel { target: newcomer.clone() });
        let actions = cancel.into_iter().collect();
        let from = holders.iter().map(|holder| holder.executor.name.clone()).collect::<Vec<_>>().join(", ");
        let text = format!("they work on {pattern} at the same time");
        let (since, holds_up) = (Some(open.since.at), tasks);
        items.push(Need { since, holds_up, actions, ..Need::new(Kind::Conflict, conflict.to_string(), from, text) });
    }
    items
}

/// The items of a plan that has used four fifths of a budget.
fn nearly_used(open: &OpenPlan<'_>) -> impl Iterator<Item = Need> {
    let (state, plan) = (open.view.state(), open.plan);
    let need = move |measure: Measure| {
        let (spent, limit) = (measure.of(&state.spent()), measure.limit(&state.config.budget)?);
        let is_near = is_nearly_used(spent, limit) && state.pause_reason().is_none();
        let settings = vec![format!("{}={OWN_WORDS}", measure.key())];
        let actions = vec![NeedAction::PlanSet { plan: plan.to_owned(), settings }];
        let text = format!("{} of {} are used", measure.words(spent), measure.words(limit));
        is_near.then(|| Need { actions, ..Need::new(Kind::Budget, plan.to_owned(), String::new(), text) })
    };
    Measure::ALL.into_iter().filter_map(need)
}

/// The item of an agent that has used four fifths of its budget for today on this machine.
fn today(roster: &Roster, agent: &Agent) -> Option<Need> {
    let today = roster.limits.as_ref()?.left_today(agent)?;
    let (used, budget) = (money(today.spent), money(today.budget));
    let text = format!("{} has used {used} of its budget of {budget} for today", agent.name);
    let need = || Need::new(Kind::Budget, agent.name.clone(), agent.name.clone(), text);
    is_nearly_used(today.spent, today.budget).then(need)
}

fn overdue(facts: &Facts<'_>) -> Vec<Need> {
    let has_left = |agent: &str| facts.agents.get(agent).is_some_and(|found| found.liveness == Liveness::Left);
    let need = |(message, open): (Position, &messages::OpenMessage)| {
        let late = open.unacked.iter().filter(|agent| !has_left(agent)).cloned().collect::<Vec<_>>();
        let text = format!("{} waits for an acknowledgement of: {}", open.from.name(), open.subject);
        let actions = vec![remind(late.clone())];
        let overdue = Need::new(Kind::Overdue, message.to_string(), late.join(", "), text);
        (!late.is_empty()).then_some(Need { since: Some(open.at), actions, ..overdue })
    };
    facts.messages.overdue(facts.now).filter_map(need).collect()
}

/// The item of an agent that a person can help. A full context matters only while the agent has a task.
fn of_health(name: &str, agent: &SessionAgent) -> Option<Need> {
    let (health, reason) = agent.health();
    let is_present = matches!(agent.liveness, Liveness::Alive | Liveness::Stuck);
    let text = match (health, &agent.report.task) {
        (Health::Error, _) => format!("its turn ended with an error: {reason}; a prompt in its session continues it"),
        (Health::Context, Some(task)) => format!("{reason}, and it works on {task}: compact it, or hand the task over"),
        _shown_only => return None,
    };
    let actions = vec![remind(vec![name.to_owned()])];
    let need = Need::new(Kind::Health, name.to_owned(), name.to_owned(), text);
    is_present.then_some(Need { since: Some(agent.health_since), actions, ..need })
}

/// The requests whose holders were asked to release and have let the deadline pass, or keep their leases past the time that
/// they gave.
fn unanswered(facts: &Facts<'_>) -> Vec<Need> {
    let mut items = Vec::new();
    for (number, waiting) in facts.leases.waiting().filter(|(_, waiting)| facts.now <= waiting.until) {
        let late: BTreeMap<_, _> = waiting.asked.iter().filter(|(_, asked)| asked.until < facts.now).collect();
        let mut holding = facts.leases.leases_in_the_way(&waiting.request, facts.now);
        holding.retain(|by| late.contains_key(&by.holder.agent));
        let Some(first) = holding.first() else { continue };
        let (asker, holder) = (waiting.request.holder.agent.clone(), first.holder.agent.clone());
        let reason = Some(&waiting.request.reason).filter(|reason| !reason.is_empty());
        let reason = reason.map_or_else(String::new, |reason| format!(": {}", headline(reason)));
        let text = format!("{asker} waits for {}, which {holder} does not release{reason}", first.target.path);
        let leases: BTreeSet<_> = holding.iter().filter_map(Blocked::lease).collect();
        let actions = vec![end_leases(leases), remind(late.keys().map(|agent| (*agent).clone()).collect())];
        let since = late.values().map(|asked| asked.until).min();
        items.push(Need { since, actions, ..Need::new(Kind::Conflict, format!("r{number}"), holder, text) });
    }
    items
}

/// The item of agents that wait for each other.
fn deadlocked(facts: &Facts<'_>, Deadlock { ring, release, at }: &Deadlock) -> Need {
    let on = |lease: u64| facts.leases.get(lease).map_or_else(String::new, |lease| lease.target.path.clone());
    let part = |RingPart { agent, lease, .. }: &RingPart| format!("{agent} waits for {}", on(*lease));
    let parts = ring.iter().map(part).collect::<Vec<_>>().join(", ");
    let holder = facts.leases.get(*release).map_or_else(String::new, |lease| lease.holder.agent.clone());
    let text = format!("they wait for each other: {parts}; it goes on once {holder} releases {}", on(*release));
    let actions = vec![end_leases([*release]), remind(vec![holder])];
    let agents = ring.iter().map(|part| part.agent.clone()).collect::<Vec<_>>().join(", ");
    let id = format!("d{}", ring.first().map_or(0, |part| part.waiting));
    Need { since: Some(*at), actions, ..Need::new(Kind::Conflict, id, agents, text) }
}

/// The item of work that another agent may have destroyed, or has committed.
fn overwritten(News { number, agent, fact }: &News, lease: u64) -> Need {
    let (by, text) = match fact {
        LeaseNews::Edited { by, path, .. } => {
            let author = by.as_deref().unwrap_or("somebody");
            (by, format!("{author} changed {path} under the lease of {agent}, whose work in it was not committed"))
        }
        LeaseNews::Committed { commit, paths, .. } => {
            (&commit.agent, format!("{} under the lease of {agent}", committed(commit, paths)))
        }
        _others => (&None, String::new()),
    };
    let to = [Some(agent.clone()), by.clone()].into_iter().flatten().collect();
    Need {
        actions: vec![remind(to), end_leases([lease])],
        ..Need::new(Kind::Conflict, format!("x{number}"), agent.clone(), text)
    }
}

fn remind(to: Vec<String>) -> NeedAction {
    NeedAction::Send { to, subject: OWN_WORDS.to_owned() }
}

fn end_leases(leases: impl IntoIterator<Item = u64>) -> NeedAction {
    NeedAction::EndLeases { leases: leases.into_iter().collect(), reason: OWN_WORDS.to_owned() }
}
