//! Facts about an agent, a task or a file; and the reason why a plan is not running, in one sentence.

use std::time::Duration;

use crewlog_executors::crew::TaskSummary;
use crewlog_mq::{Error, Timestamp};
use crewlog_planner::crew::target::Target;
use crewlog_planner::lifecycle::{Situation, State, States, Wait};
use crewlog_planner::plan::TaskId;
use crewlog_planner::prompt::headline;
use crewlog_planner::view::PlanView;
use serde_json::{Value, json};

use super::names::{Choice, plan_named};
use super::shown::name_of;
use super::{AgentView, AsOf, WhyView};
use crate::ui::text::{age, millis, one_line, shell_word};

/// The most edits of a file that are listed, newest first.
const EDITS_MAX: usize = 5;
/// The most leases and commits of a file that are listed.
const PAST_MAX: usize = 20;
const TITLE_CHARS_MAX: usize = 200;

impl AsOf {
    /// The facts about an agent, a plan, or a task or question of one; `None` if there is none. `command` makes a command line
    /// from words.
    pub async fn why(&self, what: &str, command: impl Fn(&str) -> String) -> Result<Option<Value>, Error> {
        let (agents, tasks) = (self.handled(&self.kept.agents).await?, self.tasks().await?);
        if let Some(agent) = agents.0.get(what) {
            let is_held = |state| matches!(state, State::Running | State::Interrupted);
            let is_own = |task: &&TaskSummary| is_held(task.state) && task.assignee.as_deref() == Some(what);
            let asks = self.handled(&self.kept.asks).await?;
            let asked = asks.0.open().filter(|(_, open)| open.ask.agent == what);
            let mut json = json!(AgentView::of(what, agent));
            json["at"] = json!(self.at);
            json["tasks"] = tasks.iter().filter(is_own).map(|task| task.id.as_str()).collect();
            json["leases"] = json!(self.leases(|lease| lease.agent == what).await?);
            json["n_unread"] = json!(self.handled(&self.kept.messages).await?.0.unread(what).count());
            json["questions"] =
                asked.map(|(number, open)| json!({ "id": format!("a{number}"), "text": open.ask.text })).collect();
            return Ok(Some(json));
        }
        let (typed, part) = what.split_once('/').map_or((what, None), |(plan, part)| (plan, Some(part)));
        let Ok(plan) = plan_named(self.store(), typed, Choice::Viewed).await? else { return Ok(None) };
        let (seen, states) = (self.viewed(&plan).await?, self.states(&plan).await?);
        let (view, state, why) = (&seen.view, seen.view.state(), sentence(&seen.view, &states, self.now));
        let Some(part) = part else {
            let status = states.plan.state;
            return Ok(Some(json!({ "at": self.at, "plan": plan, "status": status, "why": why })));
        };
        let asked = state.questions.iter().find(|asked| asked.id.to_string() == part);
        let task = asked.map_or_else(|| state.task_named(part), |asked| state.task(asked.task));
        let Some(task) = task else { return Ok(None) };
        let (id, step) = (state.target(&plan, task.plan.id), &task.plan);
        let within = |name: String| format!("{plan}/{name}");
        let waits = step.depends_on.iter().filter_map(|on| state.task(on.task)).filter(|on| !on.status.is_end());
        let asks = state.open_questions().filter(|question| question.task == step.id);
        let parked = view.times(step.id).claim.is_parked();
        let settled_by = parked.then(|| command(&format!("resume {}", shell_word(&within(step.name())))));
        let holder = view.holder(step.id).map(|holder| holder.executor.name.clone());
        let progress = view.times(step.id).claim.progress.unwrap_or_default();
        Ok(Some(json!({
            "at": self.at, "task": within(step.name()), "title": one_line(&step.description, TITLE_CHARS_MAX),
            "state": states.task(step.id).state, "is_paused": task.is_paused, "assignee": holder.or_else(|| step.assignee.clone()),
            "priority": step.priority, "files": step.files, "depends_on": waits.map(|on| within(on.plan.name())).collect::<Vec<_>>(),
            "questions": asks.map(|it| json!({ "id": within(it.id.to_string()), "text": it.question })).collect::<Vec<_>>(),
            "step": progress.step, "next_step": progress.next_step, "settled_by": settled_by, "error": task.error,
            "leases": self.leases(|lease| lease.task.as_ref() == Some(&id)).await?, "plan": why,
        })))
    }

    /// The leases on a file or a pattern, its last edits without a lease, its history and the tasks that name it; and true if
    /// there are any.
    pub async fn why_file(&self, target: &Target) -> Result<(Value, bool), Error> {
        let held = self.leases(|lease| lease.overlaps(target)).await?;
        let edits = self.edits(Some(target), EDITS_MAX).await?;
        let mut history = self.history(target).await?.past();
        history.truncate(PAST_MAX);
        let is_of = |path: &String| Target::written(path).is_ok_and(|path| path.overlaps(target));
        let tasks = self.tasks().await?;
        let tasks: Vec<_> = tasks.iter().filter(|task| task.files.iter().any(is_of)).map(|task| &task.id).collect();
        let is_used = !held.is_empty() || !edits.is_empty() || !history.is_empty() || !tasks.is_empty();
        let json = json!({ "at": self.at, "path": target.path, "leases": held, "edits": edits, "history": history,
            "tasks": tasks });
        Ok((json, is_used))
    }

    /// The reason why nothing of a plan is running, or the running tasks.
    pub async fn why_plan(&self, plan: &str) -> Result<WhyView, Error> {
        let (seen, states) = (self.viewed(plan).await?, self.states(plan).await?);
        Ok(WhyView { at: self.at, why: sentence(&seen.view, &states, self.now) })
    }
}

fn sentence(view: &PlanView, states: &States, now: Timestamp) -> String {
    let state = view.state();
    // A number alone is not a name.
    let in_words = |id: TaskId, task: &str| {
        let name = name_of(view, id).unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_digit()) { format!("{task} {name}") } else { name }
    };
    let (named, first_named) = (|id| in_words(id, "task"), |id| in_words(id, "Task"));
    let of = |state| states.tasks.iter().filter(move |(_, task)| task.state == state).map(|(task, _)| *task);
    let first = |state| of(state).next();
    if view.created_at.is_none() {
        return "It did not exist yet.".to_owned();
    }
    match states.plan.state {
        State::Done => return "It is complete.".to_owned(),
        State::Failed => {
            let how = first(State::Failed).map(|id| {
                let error = state.task(id).and_then(|task| task.error.as_deref()).unwrap_or_default();
                format!("It failed at {}: {}", named(id), one_line(&headline(error), TITLE_CHARS_MAX))
            });
            return how.unwrap_or_else(|| "It ended with tasks that are not done.".to_owned());
        }
        State::Cancelled => return "It was cancelled.".to_owned(),
        State::Paused => {
            return format!("It is paused: {}.", one_line(state.pause_reason().unwrap_or_default(), 120));
        }
        State::Interrupted => {
            let task = first(State::Interrupted).map_or_else(|| "a task".to_owned(), named);
            return format!("The run ended during {task}: nobody runs the plan until it is resumed.");
        }
        State::Running | State::Ready | State::WaitingForYou | State::Waiting | State::Planned | State::Skipped => {}
    }
    if let Some(task) = first(State::Running) {
        let since = view.times(task).claimed_at.map_or(Duration::ZERO, |claimed| now.since(claimed));
        let holder = view.holder(task).or_else(|| view.past_holder(task));
        let executor = holder.map_or_else(|| "A worker".to_owned(), |holder| holder.executor.name.clone());
        let others = match of(State::Running).count() - 1 {
            0 => String::new(),
            1 => ", and one other task runs".to_owned(),
            n => format!(", and {n} other tasks run"),
        };
        return format!("{executor} has been running {} for {}{others}.", named(task), age(millis(since)));
    }
    if let Some(task) = state.stopped_by {
        return format!("{} failed, and the plan starts nothing more until it is retried.", first_named(task));
    }
    if let Some(held) = state.held_by_budget() {
        return format!("Nothing more is started: {}.", held.words());
    }
    if let Some(question) = state.open_questions().next() {
        return format!("{} waits for your answer to {}.", first_named(question.task), question.id);
    }
    if let Some(task) = first(State::WaitingForYou) {
        return format!("{} waits for you.", first_named(task));
    }
    let waits = |(_, it): &&(TaskId, Situation)| matches!(it.wait, Some(Wait::Retry { .. } | Wait::Limit { .. }));
    if let Some((task, Situation { wait, .. })) = states.tasks.iter().find(waits) {
        let is_limited = matches!(wait, Some(Wait::Limit { .. }));
        let cause = if is_limited { "is at a rate limit" } else { "failed" };
        return format!("{} {cause} and waits for its next attempt.", first_named(*task));
    }
    if let Some((task, lease)) = states.tasks.iter().find_map(|(task, it)| Some((*task, it.lease()?))) {
        return format!("{} waits for its files: {lease}.", first_named(task));
    }
    if let Some(task) = first(State::Ready) {
        let who = state.task(task).and_then(|task| task.plan.assignee.clone());
        let who = who.unwrap_or_else(|| "an agent or a worker".to_owned());
        return format!("{} can start, and waits for {who} to take it.", first_named(task));
    }
    if state.waits_for_work() {
        return "Nothing is left to do; it stays open for more.".to_owned();
    }
    "Nothing can start.".to_owned()
}
