//! `ls` and `show`. They execute and append nothing.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crewlog_executors::prompts::digest;
use crewlog_mq::{EventStore, Position, Range};
use crewlog_planner::event::{TaskStatus, Timer};
use crewlog_planner::lifecycle::State;
use crewlog_planner::parse::{self, Diagnostic, ParsedPlan};
use crewlog_planner::plan::{Mark, NodeKind, Parent, TaskPlan};
use crewlog_planner::state::{Measure, PlannerState, Question, Shortage, Task};
use crewlog_planner::view::PlanView;
use serde_json::json;

use crate::cli::{Address, At, Output, Show};
use crate::crew::facts;
use crate::crew::session::views;
use crate::failure::{Code, Failure};
use crate::fork::view_at;
use crate::matching::mark_of;
use crate::queries::{find_plan, load_view, no_task, plan_to_show, tags_of};
use crate::runtime;
use crate::session::Session;
use crate::terminal::say;
use crate::text::{by_default, in_one_line, one_line, rfc3339, shell_word, visible};
use crate::views::{ForkJson, Prompt, prompt_of_attempt};

/// The most warnings printed for one text; `plan check` prints all.
const WARNINGS_MAX: usize = 20;

/// Prints the first warnings about a text on standard error.
pub fn print_warnings(session: &Session, warnings: &[Diagnostic], file: &Path) {
    for warning in warnings.iter().take(WARNINGS_MAX) {
        let Diagnostic { message, line, column, help } = warning;
        session.say(&visible(&format!("{}:{line}:{column}: warning: {message}", file.display())));
        if let Some(help) = help {
            session.say(&visible(&format!("  help: {help}")));
        }
    }
    let n_more = warnings.len().saturating_sub(WARNINGS_MAX);
    if n_more > 0 {
        session
            .say(&visible(&format!("and {n_more} more: `crewlog plan check {}`", shell_word(&file.to_string_lossy()))));
    }
}

pub async fn ls(session: &Session, at: Option<Position>) -> Result<Code, Failure> {
    let listed = views(session).await?.as_of(at).await?.plans().await?;
    let width = listed.iter().map(|plan| plan.plan.len()).max().unwrap_or(0);
    session.print_list(
        "plans",
        json!({}),
        &listed,
        |plan| plan,
        |to, plan| {
            let mut title = one_line(&plan.title, 60);
            if let Some(parent) = &plan.parent {
                title.push_str(&visible(&format!("  (a fork of {} at {})", parent.plan, parent.at)));
            }
            if plan.is_held_by_budget {
                title.push_str("  (held back by its budget)");
            }
            if plan.waits_for_work {
                title.push_str("  (nothing left to do: stands open for more)");
            }
            writeln!(to, "{:<width$}  {:<15}  {}  {title}", visible(&plan.plan), plan.status.words(), plan.created_at)
        },
    )
}

pub async fn show(session: &Session, show: &Show) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (plan, part) = match &show.target {
        Some(Address { plan, part }) => (find_plan(&store, plan).await?, part.as_deref()),
        None => (plan_to_show(&store).await?, None),
    };
    match (part, show.prompt || show.attempt.is_some()) {
        (Some(task), true) => show_prompt(session, &store, &plan, task, show.attempt).await,
        (None, true) => Err(Failure::user("a prompt is of a task: write PLAN/TASK")
            .hint(format!("the tasks: {}", session.command_on("show", &plan)))),
        (Some(_), false) if show.markdown => Err(Failure::user("--markdown prints a whole plan: write PLAN alone")),
        (Some(part), false) => show_part(session, &store, &plan, part, show.at.as_ref()).await,
        (None, false) if show.markdown => export(session, &store, &plan, show.at.as_ref()).await,
        (None, false) => show_plan(session, &store, &plan, show.at.as_ref()).await,
    }
}

/// A task with its questions, or a question.
async fn show_part(
    session: &Session,
    store: &EventStore,
    plan: &str,
    part: &str,
    at: Option<&At>,
) -> Result<Code, Failure> {
    let (at, view) = view_at(session, store, plan, at).await?;
    let shown = views(session).await?.as_of(Some(at)).await?.plan(plan).await?;
    let Some(task) = view.state().task_named(part) else {
        let question = shown.questions.iter().find(|question| question.id == part);
        let is_question = part.strip_prefix('q').is_some_and(|n| n.parse::<u32>().is_ok());
        let question = json!(question.ok_or_else(|| match is_question {
            true => Failure::new(Code::Nothing, format!("{plan} has no question {part}")),
            false => no_task(session, plan, view.state(), part),
        })?);
        let json = json!({ "plan": plan, "at": at, "question": question });
        return session.print(&json, |to| facts::print(to, &question, &["id"], &[]));
    };
    let name = task.plan.name();
    let mut task = json!(shown.tasks.iter().find(|task| task.id == name));
    task["questions"] =
        shown.questions.iter().filter(|asked| asked.task.as_ref() == Some(&name)).map(|it| json!(it)).collect();
    let json = json!({ "plan": plan, "at": at, "task": task });
    session.print(&json, |to| facts::print(to, &task, &["id", "status"], &[]))
}

/// Renders the prompt of a task again, and compares it with the one that its agent got.
async fn show_prompt(
    session: &Session,
    store: &EventStore,
    plan: &str,
    task: &str,
    attempt: Option<u32>,
) -> Result<Code, Failure> {
    let view = load_view(store, plan, Range::default()).await?;
    let found = view.state().task_named(task).ok_or_else(|| no_task(session, plan, view.state(), task))?;
    let (task, attempt) = (found.plan.id, attempt.unwrap_or(found.attempts));
    let Some(Prompt { at, rendered, recorded }) =
        prompt_of_attempt(store, plan, task, attempt, Range::default()).await?
    else {
        let message = format!("task {} has no attempt {attempt}", found.plan.name());
        return Err(Failure::new(Code::Nothing, message));
    };
    let digest = digest(&rendered);
    match &recorded {
        None => session.say("note: no agent has started with this prompt yet"),
        Some(recorded) if *recorded == digest => {}
        Some(recorded) => session.say(&format!(
            "warning: the agent got another prompt, of {} characters instead of {}: another version of crewlog rendered \
             it, or its texts were decrypted with a key that is missing here",
            recorded.n_chars, digest.n_chars
        )),
    }
    let json = json!({
        "plan": plan, "task": task, "attempt": attempt, "at": at,
        "prompt": rendered, "digest": digest, "recorded": recorded,
    });
    session.print(&json, |to| to.write_all(rendered.as_bytes()))
}

async fn show_plan(session: &Session, store: &EventStore, plan: &str, at: Option<&At>) -> Result<Code, Failure> {
    let is_past = at.is_some();
    let (at, view) = view_at(session, store, plan, at).await?;
    let shown = views(session).await?.as_of(is_past.then_some(at)).await?.plan(plan).await?;
    let mut waiting = Vec::new();
    let mut open = if session.output == Output::Text { vec![(plan.to_owned(), view.clone())] } else { Vec::new() };
    while let Some((plan, view)) = open.pop() {
        waiting.extend(what_is_waited_for(session, &plan, &view));
        let running = view.state().tasks.iter().filter(|task| task.status == TaskStatus::Running);
        for sub_plan in running.filter_map(|task| task.sub_plan_id(&plan)) {
            let view = load_view(store, &sub_plan, Range::up_to(at)).await?;
            open.push((sub_plan, view));
        }
    }
    let unattended = match shown.status {
        State::Interrupted => Some("its run died"),
        State::Ready if !view.state().config.standing => Some("it can go on, and nobody runs it"),
        _attended => None,
    };
    let resume = session.command_on("resume", plan);
    waiting.extend(unattended.filter(|_| !is_past).map(|why| format!("{why}\n  {resume}")));
    session.print(&shown, |to| {
        print_view(&mut *to, plan, at, &view, shown.status)?;
        for ForkJson { plan, at, reason } in &shown.forks {
            writeln!(to, "forked at position {at} as {}: {}", visible(plan), one_line(reason, 100))?;
        }
        waiting.iter().try_for_each(|line| writeln!(to, "{line}"))
    })
}

/// The plan as a Markdown file.
async fn export(session: &Session, store: &EventStore, plan: &str, at: Option<&At>) -> Result<Code, Failure> {
    session.place.check_key(plan, &tags_of(store, plan).await?)?;
    let (_, view) = view_at(session, store, plan, at).await?;
    let state = view.state();
    let tasks = state.tasks.iter().map(|task| {
        let read = if task.is_paused { task.plan.mark } else { Mark::Open };
        TaskPlan { mark: mark_of(&view, task).unwrap_or(read), ..task.plan.clone() }
    });
    let exported = ParsedPlan {
        title: state.title.clone(),
        context: state.context.to_vec(),
        tasks: tasks.collect(),
        ..ParsedPlan::default()
    };
    if exported.tasks.iter().any(|task| task.is_delegated() || task.tool.is_some()) {
        say("warning: what other plans and tools do for tasks has no form in Markdown and is left out");
    }
    std::io::stdout().lock().write_all(parse::render(&exported).as_bytes())?;
    Ok(Code::Done)
}

pub fn print_view(
    mut to: impl Write,
    plan: &str,
    at: Position,
    view: &PlanView,
    state_now: State,
) -> std::io::Result<()> {
    let state = view.state();
    writeln!(to, "{}  {}  as of position {at}", visible(plan), state_now.words())?;
    if let Some(title) = state.title.as_deref() {
        writeln!(to, "{}", one_line(title, 100))?;
    }
    if let Some(Parent { plan: parent, at, reason }) = &state.parent {
        writeln!(to, "a fork of {} at position {at}: {}", visible(parent), one_line(reason, 100))?;
    }
    if let Some(task) = state.stopped_by.and_then(|task| state.task(task)) {
        writeln!(to, "stopped: task {} failed", visible(&task.plan.name()))?;
    }
    print_limits(&mut to, state)?;
    let settings = state.config.words();
    if !settings.is_empty() {
        writeln!(to, "settings: {}", one_line(&settings.join(", "), 200))?;
    }
    let width = state.tasks.iter().map(|task| task.plan.name().chars().count()).max().unwrap_or(1);
    for task in &state.tasks {
        let paused = if task.is_paused { " (paused)" } else { "" };
        let status = format!("{}{paused}", task.status.as_str());
        let command = task.plan.command.as_deref().map(in_one_line);
        let text = one_line(command.as_ref().unwrap_or(&task.plan.description), 90);
        writeln!(to, "{:>width$}  {status:<18}  {text}", task.plan.name())?;
        let indent = width + 22;
        let ended = task.result.as_deref().or(task.error.as_deref()).filter(|text| !text.is_empty());
        if let Some(sub_plan) = task.sub_plan_id(plan) {
            writeln!(to, "{:indent$}plan {}", "", visible(&sub_plan))?;
        }
        if let Some(ended) = ended {
            writeln!(to, "{:indent$}{}", "", one_line(ended, 100))?;
        }
        if let Some(due) = state.due(Timer::Retry(task.plan.id)) {
            writeln!(to, "{:indent$}retry at {}", "", rfc3339(due))?;
        }
        let times = view.times(task.plan.id);
        match (&times.executor(), &task.plan.assignee) {
            (Some(executor), _) if times.claim.holder.is_some() => {
                writeln!(to, "{:indent$}held by {}", "", visible(executor))?;
            }
            (_, Some(assignee)) if !task.status.is_end() => writeln!(to, "{:indent$}for {}", "", visible(assignee))?,
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    for question in &state.questions {
        let answer = answer_of(question);
        writeln!(to, "{}  {}  {answer}", question.id, one_line(&question.question, 400))?;
    }
    if !state.context_summary().is_empty() {
        writeln!(to, "context:\n{}", visible(state.context_summary()))?;
    }
    Ok(())
}

fn print_limits(mut to: impl Write, state: &PlannerState) -> std::io::Result<()> {
    if let Some(at) = state.due(Timer::Plan) {
        writeln!(to, "to end by {}", rfc3339(at))?;
    }
    let spent = state.spent();
    let of = Measure::ALL.map(|measure| match measure.limit(&state.config.budget) {
        Some(limit) => Some(format!("{} of {}", measure.words_of(&spent), measure.words(limit))),
        None => (measure.of(&spent) > 0).then(|| measure.words_of(&spent)),
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

/// Everything that waits for a person, with the command for each.
pub fn what_is_waited_for(session: &Session, plan: &str, view: &PlanView) -> Vec<String> {
    let state = view.state();
    let questions = state.open_questions().map(|question| {
        let answer = format!("{} \"...\"", session.command_in("answer", plan, &question.id.to_string()));
        let deadline = state.due(Timer::Question(question.id));
        let by_default = by_default(question.default.as_ref(), deadline);
        format!("{} asks: {}{by_default}\n  {answer}", question.id, one_line(&question.question, 200))
    });
    let is_for_nobody = |status, kind| status == TaskStatus::Running && kind != NodeKind::Clarification;
    let tasks = state.tasks.iter().filter(|task| is_for_nobody(task.status, task.plan.kind));
    // A sub-plan lists its own.
    let tasks = tasks.filter(|task| task.sub_plan_id(plan).is_none());
    // A holder whose lease has expired does not count.
    let now = crewlog_mq::Timestamp(jiff::Timestamp::now().as_microsecond());
    let is_held = |task: &Task| view.holder(task.plan.id).is_some_and(|holder| !holder.has_expired(now));
    // A resume from here uses the executors configured here.
    let roster = runtime::roster(session, Duration::MAX, &[]).ok();
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
            Some(assignee) => format!("it is assigned to {}, and no executor has that name", visible(assignee)),
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
