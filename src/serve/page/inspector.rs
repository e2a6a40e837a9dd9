//! The inspector of an event or a task, the reason why nothing runs, and the changes between two positions.

use askama::Template;
use crewlog_mq::{Position, Range};

use super::forms::Form;
use super::look::{Chosen, Look};
use crewlog_planner::lifecycle::State;

use super::words::{self, Markup, at_clock, cut, grouped, lasting, link, of_executor, pill_of, rich, span, whole};
use crate::commands::diff::changes;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{moment_of, shell_word};
use crate::views::changes::in_short;
use crate::views::{Linked, TaskShown, prompt_of_attempt};

/// The longest text in characters; the command line shows longer ones in full.
const TEXT_CHARS_MAX: usize = 40_000;
/// The most lines of an output.
const OUTPUT_LINES: usize = 200;
/// The most changes that are listed.
const CHANGES_MAX: usize = 200;

#[derive(Template)]
#[template(path = "inspector.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Inspector<'a> {
    look: &'a Look<'a>,
    title: Markup,
    second: Markup,
    facts: Vec<(&'static str, Markup)>,
    texts: Vec<(&'static str, String, bool)>,
    has_prompt: bool,
    forms: Vec<Form>,
    commands: Vec<String>,
}

/// The inspector of the event or task in the address.
pub async fn inspector(look: &Look<'_>) -> Result<Markup, Failure> {
    if let Some(position) = look.asked.number("event") {
        return event(look, Position(position)).await;
    }
    match (look.asked.get("task"), look.existing()) {
        (Some(name), Some(plan)) => task(look, plan, name).await,
        (_, _) => Ok(Markup::default()),
    }
}

async fn event(look: &Look<'_>, position: Position) -> Result<Markup, Failure> {
    let event = match look.shown.event(position).await {
        Ok(event) => event,
        Err(failure) if failure.code == Code::Nothing => return Ok(Markup::default()),
        Err(failure) => return Err(failure),
    };
    let links = |all: &[Linked], between: &str| {
        let text = |linked: &Linked| format!("{} {}", grouped(linked.position), cut(&linked.event_type, 60));
        let links = all.iter().map(|linked| link(&look.link_event(linked.position), &text(linked)).0);
        Markup(links.collect::<Vec<_>>().join(between))
    };
    let mut facts = vec![
        ("time", at_clock(&event.created_at)),
        ("cause", links(&event.causes, " ← ")),
        ("led to", links(&event.effects, ", ")),
        ("stream", span(&cut(&format!("{} {}", event.stream_id, event.aggregate_id), 200))),
        ("sequence", span(&grouped(event.sequence))),
    ];
    if !event.tags.is_empty() {
        facts.push(("tags", span(&cut(&event.tags.join(", "), 400))));
    }
    let payload: serde_json::Value = serde_json::from_str(event.data.get())?;
    let (payload, is_whole) = whole(&format!("{payload:#}"), TEXT_CHARS_MAX);
    let mut commands = vec![format!("events --causes {}", event.event_id)];
    let plan = event.tags.iter().find_map(|tag| tag.strip_prefix("plan:"));
    commands.extend(plan.map(|plan| format!("show {} --at {position}", shell_word(plan))));
    Ok(Markup::of(&Inspector {
        look,
        title: rich(&event.event_type, 80),
        second: Markup(grouped(position)),
        facts,
        texts: vec![("Payload", payload, is_whole)],
        has_prompt: false,
        forms: Vec::new(),
        commands: commands.iter().map(|words| cut(&look.command(words), 400)).collect(),
    }))
}

async fn task(look: &Look<'_>, plan: &Chosen, name: &str) -> Result<Markup, Failure> {
    let Some(found) = plan.track.view.state().task_named(name) else { return Ok(Markup::default()) };
    let (id, name) = (found.plan.id, found.plan.name());
    let Some(task) = plan.shown.tasks.iter().find(|task| task.id == name) else { return Ok(Markup::default()) };
    let state = plan.states.task(id).state;
    let files = look.shown.crew().roster().and_then(|roster| roster.outputs.as_ref()).filter(|_| !look.shown.is_past);
    let files = files.filter(|_| state == State::Running || task.command.is_none());
    let output = files.and_then(|files| files.last_lines(&plan.id, id, task.attempts, OUTPUT_LINES));
    let texts = [
        ("Description", Some(task.description.clone())),
        ("Command", task.command.clone()),
        ("Output", output.map(|last| last.lines)),
        ("Error", task.error.clone()),
        ("Result", task.result.clone()),
        ("Notes", (!task.notes.is_empty()).then(|| task.notes.join("\n"))),
    ];
    let mut texts: Vec<_> = texts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    let mut commands = vec![format!("show {} --at {}", shell_word(&plan.id), look.shown.at)];
    let mut has_prompt = task.command.is_none() && task.kind != "Clarification" && task.attempts > 0;
    if has_prompt {
        commands.push(format!("show {} --prompt", shell_word(&format!("{}/{name}", plan.id))));
    }
    if has_prompt && look.asked.is("prompt", "1") {
        has_prompt = false;
        let range = Range::up_to(look.shown.at);
        match prompt_of_attempt(look.shown.store(), &plan.id, id, task.attempts, range).await {
            Ok(prompt) => texts.extend(prompt.map(|prompt| ("Prompt", prompt.rendered.text))),
            Err(failure) if failure.code == Code::Nothing => {}
            Err(failure) => return Err(failure),
        }
    }
    let cut_off = |(name, text): (&'static str, String)| {
        let (text, is_whole) = whole(&text, TEXT_CHARS_MAX);
        (name, text, is_whole)
    };
    Ok(Markup::of(&Inspector {
        look,
        title: rich(&format!("{} {}", cut(&name, 60), task.description), 140),
        second: pill_of(state),
        facts: facts(look, plan, task, state),
        texts: texts.into_iter().map(cut_off).collect(),
        has_prompt,
        forms: task_forms(look, plan, task, state),
        commands: commands.iter().map(|words| cut(&look.command(words), 400)).collect(),
    }))
}

fn facts(look: &Look<'_>, plan: &Chosen, task: &TaskShown, state: State) -> Vec<(&'static str, Markup)> {
    let names = |names: Vec<&String>| {
        let links = names.iter().map(|name| link(&look.link_task(name), &cut(name, 40)).0);
        Markup(links.collect::<Vec<_>>().join(", "))
    };
    let waiting = plan.shown.tasks.iter().filter(|other| other.depends_on.contains(&task.id)).map(|other| &other.id);
    let text = |text: Option<&String>| text.map(|text| span(&cut(text, 400))).unwrap_or_default();
    let time = |time: &Option<String>| time.as_deref().map(at_clock).unwrap_or_default();
    let moment = |time: &Option<String>| time.as_deref().and_then(moment_of).map(|moment| moment.0);
    let end = moment(&task.ended_at).or((state == State::Running).then_some(look.shown.now.0));
    let took = moment(&task.started_at).zip(end).map(|(begin, end)| span(&lasting(end - begin)));
    let paused = task.is_paused.then(|| "until it is resumed".to_owned());
    let attempts = (task.attempts > 0).then(|| task.attempts.to_string());
    let sub_plan = task.plan.as_ref().map(|sub| link(&look.link_plan(sub, ""), &cut(sub, 80)));
    vec![
        ("paused", text(paused.as_ref())),
        ("waits for", names(task.depends_on.iter().collect())),
        ("holds up", names(waiting.take(20).collect())),
        ("attempts", text(attempts.as_ref())),
        ("by", text(task.executor.as_deref().map(|by| of_executor(by).to_owned()).as_ref())),
        ("for", text(task.assignee.as_ref())),
        ("condition", text(task.condition.as_ref())),
        ("priority", text(task.priority.as_ref())),
        ("files", text(Some(task.files.join(", ")).filter(|files| !files.is_empty()).as_ref())),
        ("undoes", text(task.compensates.as_ref())),
        ("sub-plan", sub_plan.unwrap_or_default()),
        ("started", time(&task.started_at)),
        ("ended", time(&task.ended_at)),
        ("deadline", time(&task.deadline)),
        ("retries", time(&task.retry_at)),
        ("waits for", text(task.waits_for.as_ref())),
        ("took", took.unwrap_or_default()),
    ]
}

/// The commands for a task.
fn task_forms(look: &Look<'_>, plan: &Chosen, task: &TaskShown, state: State) -> Vec<Form> {
    let form = |command, field| look.form(command, vec![(field, format!("{}/{}", plan.id, task.id))]);
    match state {
        State::Done | State::Skipped | State::Cancelled => vec![],
        // It opens a plan that has ended again.
        State::Failed => vec![form("retry", "target").button("Retry").primary()],
        _open if !plan.is_open() => vec![],
        State::Running
        | State::Ready
        | State::WaitingForYou
        | State::Waiting
        | State::Interrupted
        | State::Paused
        | State::Planned => {
            let done = form("task-done", "task").required("result", "the result").button("Done");
            let failed = form("task-fail", "task").required("error", "what went wrong").button("Failed");
            let mut forms = if state == State::Planned { vec![] } else { vec![done, failed] };
            forms.push(match task.is_paused {
                true => form("resume", "target").button("Resume"),
                false => form("pause", "target").optional("reason", "why").button("Pause"),
            });
            forms.push(form("cancel", "target").optional("reason", "why").button("Cancel"));
            forms
        }
    }
}

#[derive(Template)]
#[template(path = "compare.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Compared<'a> {
    look: &'a Look<'a>,
    with: i64,
    from: Position,
    to: Position,
    changes: Vec<String>,
    command: String,
}

/// The changes between another position and the one shown.
pub async fn compared(look: &Look<'_>) -> Result<Markup, Failure> {
    let (Some(with), Some(plan)) = (look.asked.number("with"), &look.plan) else { return Ok(Markup::default()) };
    let other = look.head.earlier(Position(with)).await?;
    let track = other.track(&plan.id).await?;
    let mut sides = [(other.at, &track.view), (look.shown.at, &plan.track.view)];
    sides.sort_by_key(|(at, _)| *at);
    let [(from, before), (to, after)] = sides;
    let changes = in_short(&changes(before, after)).map(ToString::to_string).collect();
    let words = shell_word(&plan.id);
    let command = cut(&look.command(&format!("diff {words}@{from} {words}@{to}")), 400);
    Ok(Markup::of(&Compared { look, with, from, to, changes, command }))
}
