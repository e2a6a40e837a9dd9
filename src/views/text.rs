//! A plan as text, for people.

use std::io::Write;

use crewlog_executors::crew::question_text;
use crewlog_mq::Timestamp;
use crewlog_planner::event::{Timer, Usage};
use crewlog_planner::lifecycle::{State, States};
use crewlog_planner::plan::Parent;
use crewlog_planner::prompt::headline;
use crewlog_planner::state::{Measure, PlannerState, Question, Task};
use crewlog_planner::view::PlanView;

use crate::ui::text::{ago, clock, count, duration, in_one_line, millis, one_line, visible};
use crate::views::at::Point;

pub fn print_view(
    mut to: impl Write,
    plan: &str,
    point: Point,
    now: Timestamp,
    view: &PlanView,
    states: &States,
) -> std::io::Result<()> {
    let state = view.state();
    let made = view.created_at.map_or_else(String::new, |made| format!("made {}, ", ago(made, now)));
    writeln!(to, "{}  {}  {made}as of {point}", visible(plan), states.plan.state.words())?;
    if let Some(title) = state.title.as_deref() {
        writeln!(to, "{}", one_line(title, 100))?;
    }
    if let Some(Parent { plan: parent, at, reason }) = &state.parent {
        writeln!(to, "a fork of {} at position {at}: {}", visible(parent), one_line(reason, 100))?;
    }
    if let Some(task) = state.stopped_by.and_then(|task| state.task(task)) {
        writeln!(to, "stopped: task {} failed", visible(&task.plan.name()))?;
    }
    print_limits(&mut to, state, now)?;
    let settings = state.config.words();
    if !settings.is_empty() {
        writeln!(to, "settings: {}", one_line(&settings.join(", "), 200))?;
    }
    let width = state.tasks.iter().map(|task| task.plan.name().chars().count()).max().unwrap_or(1);
    for task in &state.tasks {
        let now_is = states.task(task.plan.id).state;
        let took = took(view, task, now_is, now).map_or_else(String::new, duration);
        let command = task.plan.command.as_deref().map(in_one_line);
        let text = one_line(command.as_ref().unwrap_or(&task.plan.description), 90);
        writeln!(to, "{:>width$}  {:<18}  {took:>9}  {text}", visible(&task.plan.name()), now_is.words())?;
        let indent = width + 33;
        let ended = task.result.clone().or_else(|| task.error.as_deref().map(headline));
        let ended = ended.filter(|text| !text.is_empty());
        if let Some(sub_plan) = task.sub_plan_id(plan) {
            writeln!(to, "{:indent$}plan {}", "", visible(&sub_plan))?;
        }
        if let Some(ended) = ended {
            writeln!(to, "{:indent$}{}", "", one_line(&ended, 160))?;
        }
        if let Some(due) = state.due(Timer::Retry(task.plan.id)) {
            writeln!(to, "{:indent$}retry at {}", "", clock(due, now))?;
        }
        let times = view.times(task.plan.id);
        match (&times.executor(), &task.plan.assignee) {
            (Some(executor), _) if times.claim.holder.is_some() => {
                let held = if now_is == State::Interrupted { "lost by" } else { "held by" };
                writeln!(to, "{:indent$}{held} {}", "", visible(executor))?;
            }
            (_, Some(assignee)) if !task.status.is_end() => writeln!(to, "{:indent$}for {}", "", visible(assignee))?,
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    for question in &state.questions {
        let answer = answer_of(question);
        writeln!(to, "{}  {}  {answer}", question.id, one_line(&question_text(view, question, headline), 400))?;
    }
    if !state.context_summary().is_empty() {
        writeln!(to, "context:\n{}", visible(state.context_summary()))?;
    }
    Ok(())
}

/// The milliseconds from the last claim of a task to its end, or until now while it runs.
pub fn took(view: &PlanView, task: &Task, state: State, now: Timestamp) -> Option<u64> {
    let times = view.times(task.plan.id);
    let until = times.ended_at.or((state == State::Running).then_some(now))?;
    Some(millis(until.since(times.claimed_at?)))
}

/// The amount of a measure in a usage, in words, with how much of it is estimated or unknown; none without a use.
pub fn used(measure: Measure, usage: &Usage) -> Option<String> {
    let (amount, estimated) = (measure.of(usage), usage.estimated_tokens);
    let (n_unknown, unknown) = match measure {
        Measure::Tokens => (usage.n_without_tokens, "an unknown number of tokens"),
        Measure::Cost => (usage.n_without_cost, "an unknown cost"),
        Measure::Duration => (0, ""),
    };
    let known = (amount > 0).then(|| match measure.words(amount) {
        words if measure != Measure::Tokens || estimated == 0 => words,
        words if estimated >= amount => format!("{words} (estimated)"),
        words => format!("{words} ({estimated} of them estimated)"),
    });
    let unknown = (n_unknown > 0).then(|| format!("{unknown} in {}", count(n_unknown as usize, "run")));
    let parts = known.into_iter().chain(unknown).collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

fn print_limits(mut to: impl Write, state: &PlannerState, now: Timestamp) -> std::io::Result<()> {
    if let Some(at) = state.due(Timer::Plan) {
        writeln!(to, "must end by {}", clock(at, now))?;
    }
    let spent = state.spent();
    let of = Measure::ALL.map(|measure| match measure.limit(&state.config.budget) {
        Some(limit) => {
            let used = used(measure, &spent).unwrap_or_else(|| measure.words(0));
            Some(format!("{used} of {}", measure.words(limit)))
        }
        None => used(measure, &spent),
    });
    let of = of.into_iter().flatten().collect::<Vec<_>>();
    if of.is_empty() { Ok(()) } else { writeln!(to, "used up: {}", of.join(", ")) }
}

fn answer_of(question: &Question) -> String {
    match (&question.answer, &question.default) {
        (Some(answer), _) if question.is_by_default => format!("{} (by default)", one_line(answer, 60)),
        (Some(answer), _) => one_line(answer, 60),
        (None, _) if question.is_withdrawn => "(withdrawn)".to_owned(),
        (None, Some(default)) => format!("(open; by default: {})", one_line(&default.answer, 60)),
        (None, None) => "(open)".to_owned(),
    }
}
