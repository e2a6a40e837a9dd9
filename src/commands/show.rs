//! `show`: a plan, a task, a question or a prompt. It executes and appends nothing.

use std::io::Write;

use clap::Args;
use crewlog_executors::matching::mark_of;
use crewlog_mq::{EventStore, Range};
use crewlog_planner::parse;
use crewlog_planner::parse::ParsedPlan;
use crewlog_planner::plan::{Mark, TaskPlan};
use serde_json::{Value, json};

use crate::cli::typed::{Address, At};
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, Results, say};
use crate::ui::text::{duration, one_line, visible};
use crate::views::at::viewed_at;
use crate::views::facts;
use crate::views::names::{Choice, find_plan, plan_to_show};
use crate::views::queries::{load_view, no_task, tags_of};
use crate::views::text::{print_view, took};
use crate::views::{ForkJson, Prompt, prompt_of_attempt};

#[derive(Debug, Args)]
pub struct Show {
    /// The plan, or one of its tasks or questions [default: the only open plan, else the newest]
    #[arg(value_name = "PLAN[/TASK]")]
    pub target: Option<Address>,
    /// As of this position of the log, or a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", conflicts_with = "prompt")]
    pub at: Option<At>,
    /// Print the plan as a Markdown file, with every fact of each task
    #[arg(long, conflicts_with = "prompt")]
    pub markdown: bool,
    /// Print the prompt of the task, and say when its agent got another one
    #[arg(long)]
    pub prompt: bool,
    /// The attempt, with --prompt [default: the last]
    #[arg(long, requires = "prompt", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
}

pub async fn show(session: &Session, show: &Show) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (plan, part) = match &show.target {
        Some(Address { plan, part }) => (find_plan(session, &store, plan, Choice::Viewed).await?, part.as_deref()),
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
    let (point, as_of, seen) = viewed_at(session, store, plan, at).await?;
    let (at, now, view) = (point.at, as_of.now, &seen.view);
    let shown = as_of.plan(plan).await?;
    let question = shown.questions.iter().find(|question| question.id == part);
    let Some(task) = view.state().task_named(part).filter(|_| question.is_none()) else {
        let is_question = part.strip_prefix('q').is_some_and(|n| n.parse::<u32>().is_ok());
        let question = json!(question.ok_or_else(|| {
            match is_question {
                true => Failure::new(Code::Nothing, format!("{plan} has no question {part}"))
                    .did_you_mean(part, shown.questions.iter().map(|question| question.id.as_str()))
                    .hint(session.command_on("show", plan)),
                false => no_task(session, plan, view.state(), part),
            }
        })?);
        let json = json!({ "plan": plan, "at": at, "question": question });
        return session.print(&json, |to| facts::print(to, &question, [&["id"], &[]], Some(now)));
    };
    let (name, id, states) = (task.plan.name(), task.plan.id, as_of.states(plan).await?);
    let mut task = json!(shown.tasks.iter().find(|task| task.id == name));
    task["questions"] =
        shown.questions.iter().filter(|asked| asked.task.as_ref() == Some(&name)).map(|it| json!(it)).collect();
    let json = json!({ "plan": plan, "at": at, "task": task });
    let took = view.state().task_named(part).and_then(|task| took(view, task, states.task(id).state, now));
    task["took"] = json!(took.map(duration));
    task["kind"] = Value::Null;
    task["state"] = json!(states.task(id).state.words());
    session.print(&json, |to| facts::print(to, &task, [&["id", "state"], &[]], Some(now)))
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
    let (task, name, attempt) = (found.plan.id, found.plan.name(), attempt.unwrap_or(found.attempts));
    let prompt = prompt_of_attempt(store, plan, task, attempt, Range::default()).await?;
    let no_attempt = || Failure::new(Code::Nothing, format!("task {name} has no attempt {attempt}"));
    let Prompt { at, rendered, recorded } = prompt.ok_or_else(no_attempt)?;
    let digest = rendered.digest();
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
        "plan": plan, "task": name, "attempt": attempt, "at": at,
        "prompt": rendered.text, "digest": digest, "recorded": recorded,
    });
    session.print(&json, |to| to.write_all(rendered.text.as_bytes()))
}

async fn show_plan(session: &Session, store: &EventStore, plan: &str, at: Option<&At>) -> Result<Code, Failure> {
    let (point, as_of, seen) = viewed_at(session, store, plan, at).await?;
    let (shown, states) = (as_of.plan(plan).await?, as_of.states(plan).await?);
    let waiting = if session.output == Output::Text { as_of.waits(session, plan).await? } else { Vec::new() };
    session.print(&shown, |to| {
        print_view(&mut *to, plan, point, as_of.now, &seen.view, &states)?;
        for ForkJson { plan, at, reason } in &shown.forks {
            writeln!(to, "forked at position {at} as {}: {}", visible(plan), one_line(reason, 100))?;
        }
        waiting.iter().try_for_each(|line| writeln!(to, "{line}"))
    })
}

/// The plan as a Markdown file.
async fn export(session: &Session, store: &EventStore, plan: &str, at: Option<&At>) -> Result<Code, Failure> {
    session.place.check_key(plan, &tags_of(store, plan).await?)?;
    let (_, _, seen) = viewed_at(session, store, plan, at).await?;
    let (view, state) = (&seen.view, seen.view.state());
    let tasks = state.tasks.iter().map(|task| {
        let read = if task.is_paused { task.plan.mark } else { Mark::Open };
        TaskPlan { mark: mark_of(view, task).unwrap_or(read), ..task.plan.clone() }
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
    let mut to = Results::exact();
    to.write_all(parse::render(&exported).as_bytes()).and_then(|()| to.flush()).map_err(Failure::output)?;
    Ok(Code::Done)
}
