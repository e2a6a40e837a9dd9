//! The inspector of an event or a task, why nothing runs, and what changed between two positions.

use askama::Template;
use crewlog_mq::{Position, Range};
use crewlog_planner::view::PlanStatus;

use super::look::{Chosen, Look};
use super::words::{Markup, at_clock, cut, grouped, lasting, microseconds, whole};
use crate::changes::{changes, in_short};
use crate::failure::{Code, Failure};
use crate::prompt;
use crate::text::shell_word;
use crate::views::{Linked, Stage, TaskShown};

/// Characters of a text; the command line has the whole of longer ones.
const TEXT_CHARS_MAX: usize = 40_000;
/// The most changes that are listed.
const CHANGES_MAX: usize = 200;

#[derive(Template)]
#[template(path = "inspector.html", whitespace = "minimize")]
struct Inspector {
    title: String,
    second: String,
    close: String,
    rows: Vec<Row>,
    texts: Vec<(&'static str, String, bool)>,
    prompt: Option<String>,
    forms: Vec<Markup>,
    commands: Vec<String>,
}

/// A line of facts: texts, some of them links, and a time.
struct Row {
    name: &'static str,
    values: Vec<(String, String)>,
    between: &'static str,
    time: Option<Markup>,
}

impl Row {
    fn text(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, values: vec![(String::new(), text.into())], between: "", time: None }
    }

    fn links(name: &'static str, values: Vec<(String, String)>, between: &'static str) -> Self {
        Self { name, values, between, time: None }
    }

    fn time(name: &'static str, rfc3339: &str) -> Self {
        Self { name, values: Vec::new(), between: "", time: Some(at_clock(rfc3339)) }
    }
}

/// The inspector of what the address names.
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
    let linked = |linked: &Linked| {
        let words = format!("{} {}", grouped(linked.position.0), cut(&linked.event_type, 60));
        (look.link_event(linked.position), words)
    };
    let links = |all: &[Linked]| all.iter().map(linked).collect::<Vec<_>>();
    let mut rows = vec![Row::time("time", &event.created_at)];
    if !event.causes.is_empty() {
        rows.push(Row::links("cause", links(&event.causes), " ← "));
    }
    if !event.effects.is_empty() {
        rows.push(Row::links("led to", links(&event.effects), ", "));
    }
    rows.push(Row::text("stream", cut(&format!("{} {}", event.stream_id, event.aggregate_id), 200)));
    rows.push(Row::text("sequence", grouped(event.sequence)));
    if !event.tags.is_empty() {
        rows.push(Row::text("tags", cut(&event.tags.join(", "), 400)));
    }
    let payload: serde_json::Value = serde_json::from_str(event.data.get())?;
    let (payload, is_whole) = whole(&serde_json::to_string_pretty(&payload)?, TEXT_CHARS_MAX);
    let mut commands = vec![look.command(&format!("events --causes {}", event.event_id))];
    let plan = event.tags.iter().find_map(|tag| tag.strip_prefix("plan:"));
    commands.extend(plan.map(|plan| look.command(&format!("show {} --at {position}", shell_word(plan)))));
    Ok(Markup::of(&Inspector {
        title: cut(&event.event_type, 80),
        second: grouped(position.0),
        close: look.link(&[("event", "")]),
        rows,
        texts: vec![("Payload", payload, is_whole)],
        prompt: None,
        forms: Vec::new(),
        commands: commands.iter().map(|line| cut(line, 400)).collect(),
    }))
}

async fn task(look: &Look<'_>, plan: &Chosen, name: &str) -> Result<Markup, Failure> {
    let Some(found) = plan.track.view.state().task_named(name) else { return Ok(Markup::default()) };
    let (id, name) = (found.plan.id, found.plan.name());
    let Some(task) = plan.shown.tasks.iter().find(|task| task.id == name) else { return Ok(Markup::default()) };
    let stage = plan.track.stage(id);
    let prompt_word = ("prompt", "1");
    let mut texts = Vec::new();
    let mut add = |name, text: &str| {
        let (text, is_whole) = whole(text, TEXT_CHARS_MAX);
        texts.push((name, text, is_whole));
    };
    add("Description", &task.description);
    for (name, text) in [("Command", &task.command), ("Error", &task.error), ("Result", &task.result)] {
        text.iter().for_each(|text| add(name, text));
    }
    if !task.notes.is_empty() {
        add("Notes", &task.notes.join("\n"));
    }
    let is_for_agents = task.command.is_none() && task.kind != "Clarification" && task.attempts > 0;
    let mut prompt = is_for_agents.then(|| look.link(&[prompt_word]));
    if look.asked.is(prompt_word.0, prompt_word.1) && is_for_agents {
        let range = Range::up_to(look.shown.at);
        prompt = None;
        match prompt::rendered(look.shown.store(), &plan.id, id, task.attempts, range).await {
            Ok(Some(prompt)) => add("Prompt", &prompt.rendered),
            Err(failure) if failure.code != Code::Nothing => return Err(failure),
            Ok(None) | Err(_) => {}
        }
    }
    let words = format!("show {} {} --prompt", shell_word(&plan.id), shell_word(&name));
    let mut commands = vec![look.command(&format!("show {} --at {}", shell_word(&plan.id), look.shown.at))];
    if is_for_agents {
        commands.push(look.command(&words));
    }
    Ok(Markup::of(&Inspector {
        title: format!("{} {}", cut(&name, 60), cut(&task.description, 80)),
        second: super::words::of_stage(stage).to_owned(),
        close: look.link(&[("task", ""), ("prompt", "")]),
        rows: facts(look, plan, task, stage),
        texts,
        prompt,
        forms: task_forms(look, plan, task, stage),
        commands: commands.iter().map(|line| cut(line, 400)).collect(),
    }))
}

fn facts(look: &Look<'_>, plan: &Chosen, task: &TaskShown, stage: Stage) -> Vec<Row> {
    let mut rows = vec![Row::text(
        "status",
        if task.is_paused { format!("{}, paused", task.status) } else { task.status.to_owned() },
    )];
    let names = |names: Vec<&str>| names.iter().map(|name| (look.link_task(name), cut(name, 40))).collect::<Vec<_>>();
    let after: Vec<_> = plan.shown.tasks.iter().filter(|other| other.depends_on.contains(&task.id)).collect();
    if !task.depends_on.is_empty() {
        rows.push(Row::links("waits for", names(task.depends_on.iter().map(String::as_str).collect()), ", "));
    }
    if !after.is_empty() {
        rows.push(Row::links("holds up", names(after.iter().map(|task| task.id.as_str()).take(20).collect()), ", "));
    }
    let texts = [
        ("kind", Some(task.kind.to_owned())),
        ("attempts", (task.attempts > 0).then(|| task.attempts.to_string())),
        ("by", task.executor.as_ref().map(|executor| cut(executor, 80))),
        ("for", task.assignee.as_ref().map(|assignee| cut(assignee, 80))),
        ("condition", task.condition.as_ref().map(|condition| cut(condition, 200))),
        ("priority", task.priority.as_ref().map(|priority| cut(priority, 40))),
        ("files", (!task.files.is_empty()).then(|| cut(&task.files.join(", "), 400))),
        ("undoes", task.compensates.clone()),
    ];
    rows.extend(texts.into_iter().filter_map(|(name, text)| Some(Row::text(name, text?))));
    rows.extend(task.plan.iter().map(|sub| {
        let href = look.link(&[("plan", sub), ("task", ""), ("step", "")]);
        Row::links("sub-plan", vec![(href, cut(sub, 80))], "")
    }));
    let times = [
        ("started", &task.started_at),
        ("ended", &task.ended_at),
        ("deadline", &task.deadline),
        ("retries", &task.retry_at),
    ];
    rows.extend(times.into_iter().filter_map(|(name, time)| Some(Row::time(name, time.as_deref()?))));
    let (begin, end) =
        (task.started_at.as_deref().and_then(microseconds), task.ended_at.as_deref().and_then(microseconds));
    let end = end.or((stage == Stage::Running).then_some(look.shown.now.0));
    if let (Some(begin), Some(end)) = (begin, end) {
        rows.push(Row::text("took", lasting(end - begin)));
    }
    rows
}

/// What a person can do about a task.
fn task_forms(look: &Look<'_>, plan: &Chosen, task: &TaskShown, stage: Stage) -> Vec<Markup> {
    if !plan.is_open() {
        return Vec::new();
    }
    let form = |command| look.form(command, vec![("plan", plan.id.clone()), ("task", task.id.clone())]);
    let forms = match stage {
        Stage::Done | Stage::Skipped => vec![],
        Stage::Failed => vec![form("retry").button("Retry").primary()],
        Stage::Running | Stage::Retrying | Stage::Queued | Stage::Waiting | Stage::Planned => {
            let mut forms = vec![];
            if stage != Stage::Planned {
                forms.push(form("done").required("result", "the result").button("Done"));
                forms.push(form("fail").required("error", "what went wrong").button("Failed"));
            }
            match task.is_paused {
                true => forms.push(form("resume").button("Resume")),
                false => forms.push(form("pause").required("reason", "why").button("Pause")),
            }
            forms.push(form("cancel").required("reason", "why").button("Cancel"));
            forms
        }
    };
    forms.iter().map(super::forms::Form::markup).collect()
}

#[derive(Template)]
#[template(path = "why.html", whitespace = "minimize")]
struct Why {
    title: &'static str,
    why: String,
}

/// Why nothing of the plan runs, or what does.
pub async fn why(look: &Look<'_>) -> Result<Markup, Failure> {
    let Some(plan) = &look.plan else { return Ok(Markup::default()) };
    let runs = plan.track.counts()[Stage::Running as usize] > 0;
    let title = match plan.track.view.status() {
        _before if !plan.exists() => "Not yet",
        PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled => "How it ended",
        PlanStatus::Running | PlanStatus::Waiting if runs => "What is running?",
        PlanStatus::Running | PlanStatus::Waiting | PlanStatus::Paused => "Why is nothing running?",
    };
    let why = look.shown.why_plan(&plan.id).await?.why;
    Ok(Markup::of(&Why { title, why: cut(&why, 400) }))
}

#[derive(Template)]
#[template(path = "compare.html", whitespace = "minimize")]
struct Compared {
    from: String,
    to: String,
    with: i64,
    n: usize,
    hidden: Vec<(&'static str, String)>,
    close: String,
    changes: Vec<String>,
    command: String,
}

/// What changed between another position and the one that is shown.
pub async fn compared(look: &Look<'_>) -> Result<Markup, Failure> {
    let (Some(with), Some(plan)) = (look.asked.number("with"), &look.plan) else { return Ok(Markup::default()) };
    let other = look.head.earlier(Position(with)).await?;
    let track = other.track(&plan.id).await?;
    let (from, to) = (other.at.min(look.shown.at), other.at.max(look.shown.at));
    let all = match other.at <= look.shown.at {
        true => changes(&track.view, &plan.track.view),
        false => changes(&plan.track.view, &track.view),
    };
    let short: Vec<_> = in_short(&all).map(ToString::to_string).collect();
    let words = shell_word(&plan.id);
    Ok(Markup::of(&Compared {
        from: grouped(from.0),
        to: grouped(to.0),
        with,
        n: short.len(),
        hidden: look.asked.except(&["with"]),
        close: look.link(&[("with", "")]),
        changes: short.into_iter().take(CHANGES_MAX).collect(),
        command: cut(&look.command(&format!("diff {words}@{from} {words}@{to}")), 400),
    }))
}
