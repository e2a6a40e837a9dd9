//! Lines about everything that a plan waits for, with the commands that settle it.

use std::time::Duration;

use crewlog_planner::event::{TaskStatus, Timer};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::prompt::{headline, question_text};
use crewlog_planner::state::{Measure, Shortage, Task};
use crewlog_planner::view::PlanView;

use crate::context::{Session, roster};
use crate::ui::text::{by_default, now, one_line, shell_word, visible};

/// Everything that waits for a person, with the command for each.
pub fn what_is_waited_for(session: &Session, plan: &str, view: &PlanView) -> Vec<String> {
    let state = view.state();
    let questions = state.open_questions().map(|question| {
        let answer = format!("{} \"...\"", session.command_in("answer", plan, &question.id.to_string()));
        let deadline = state.due(Timer::Question(question.id));
        let by_default = by_default(question.default.as_ref(), deadline);
        format!(
            "{} asks: {}{by_default}\n  {answer}",
            question.id,
            one_line(&question_text(state, question, headline), 400)
        )
    });
    let is_for_nobody = |status, kind| status == TaskStatus::Running && kind != NodeKind::Clarification;
    let tasks = state.tasks.iter().filter(|task| is_for_nobody(task.status, task.plan.kind));
    // A sub-plan lists its own.
    let tasks = tasks.filter(|task| task.sub_plan_id(plan).is_none());
    // A holder whose lease has expired does not count.
    let now = now();
    let is_held = |task: &Task| view.holder(task.plan.id).is_some_and(|holder| !holder.has_expired(now));
    // A resume from here uses the executors configured here.
    let roster = roster::roster(session, Duration::MAX, &[]).ok();
    let is_taken = |task: &Task| roster.as_ref().is_some_and(|roster| roster.takes(&task.plan));
    let (taken, for_person) = tasks
        .filter(|task| task.plan.command.is_none() && !is_held(task))
        .partition::<Vec<_>, _>(|task| is_taken(task));
    let taken = taken.into_iter().map(|task| {
        let agent = roster.as_ref().and_then(|roster| roster.agent_for(&task.plan));
        let by = agent.map_or_else(String::new, |agent| format!(" by {}", visible(&agent.name)));
        let (name, resume) = (shell_word(&task.plan.name()), session.command_on("resume", plan));
        format!("task {name} can be done{by}: {}\n  {resume}", one_line(&task.plan.description, 200))
    });
    let tasks = for_person.into_iter().map(|task| {
        let name = task.plan.name();
        let done = format!("{} \"the result\"", session.command_in("task done", plan, &name));
        let fail = format!("{} \"why not\"", session.command_in("task fail", plan, &name));
        let name = visible(&name);
        let text = one_line(&task.plan.description, 200);
        let why = match &task.plan.assignee {
            Some(assignee) => format!("it is assigned to {}, and no executor here has that name", visible(assignee)),
            None => format!("there is no executor for {}", task.plan.kind.as_str()),
        };
        format!(
            "task {name} waits for you: {text}\n  {why}: do it and report it, or put a command, Run `...`, in the text \
             of the task\n  {done}\n  {fail}"
        )
    });
    let paused = state.tasks.iter().filter(|task| task.is_paused).map(|task| {
        let name = task.plan.name();
        format!("task {} is paused\n  {}", visible(&name), session.command_in("resume", plan, &name))
    });
    let held = state.held_by_budget().map(|held| {
        // A running task that reserves the whole budget would reserve a higher one too.
        let is_raisable = held.reserved < held.limit;
        let how =
            if is_raisable { format!("\n  {}", how_to_raise(session, plan, held.measure)) } else { String::new() };
        format!("no more tasks start: {}{how}", held.words())
    });
    // A plan that is paused with its parent resumes with it.
    let resume = state.pause_reason().filter(|_| !state.is_paused_from_parent()).map(|reason| {
        let (reason, resume) = (one_line(reason, 200), session.command_on("resume", plan));
        format!("plan {} is paused: {reason}\n  {resume}", visible(plan))
    });
    questions.chain(taken).chain(tasks).chain(paused).chain(held).chain(resume).collect()
}

fn how_to_raise(session: &Session, plan: &str, measure: Measure) -> String {
    format!("{} {}=...", session.command_on("plan set", plan), measure.key())
}

/// The commands that continue a plan after a shortage of budget.
pub fn how_to_go_on(session: &Session, plan: &str, shortage: &Shortage) -> Vec<String> {
    let measure = shortage.measure;
    vec![
        format!("the plan is paused: {}", shortage.words()),
        format!("to raise the budget: {}", how_to_raise(session, plan, measure)),
        format!("then continue: {}", session.command_on("resume", plan)),
    ]
}
