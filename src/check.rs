//! `plan check`: how a plan file is read, line by line, which of its code runs, and what order follows. Nothing runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use crewlog_planner::analysis::Analysis;
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, CodeUse, Diagnostic, ParsedPlan, Part, VERBS};
use crewlog_planner::plan::{Dependency, Span, Strength, TaskId, TaskPlan};
use crewlog_planner::validity::InvalidPlan;
use serde::Serialize;
use serde_json::Value;

use crate::advice::{self, AdviceJson, GraphJson, Names};
use crate::by_model;
use crate::cli::{Check, Output};
use crate::failure::{Code, Failure};
use crate::json::{condition_text, parsed_tasks, status_of};
use crate::session::{Session, read_text};
use crate::terminal::say;
use crate::text::{in_one_line, one_line, visible};

/// So much of a line is shown around the place that is meant.
const EXCERPT_CHARS: usize = 100;

/// `plan check`.
#[derive(Default, Serialize)]
struct CheckJson<'a> {
    format: Option<&'static str>,
    title: Option<&'a str>,
    tasks: Vec<CheckedTaskJson<'a>>,
    parts: Vec<PartJson<'a>>,
    code: Vec<CodeJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
    graph: Option<GraphJson>,
    advice: Option<AdviceJson>,
    error: Option<ErrorJson>,
}

/// A piece of code in a task or its notes.
#[derive(Serialize)]
struct CodeJson<'a> {
    line: usize,
    column: usize,
    task: Option<String>,
    /// The form by which it runs.
    form: Option<u8>,
    withheld: Option<&'a str>,
}

/// A part of the file that is in no task.
#[derive(Serialize)]
struct PartJson<'a> {
    line: usize,
    column: usize,
    part: &'static str,
    text: &'a str,
}

/// A task, and where it stands.
#[derive(Serialize)]
struct CheckedTaskJson<'a> {
    line: usize,
    column: usize,
    spans: &'a [Span],
    /// Of those it depends on, the ones by mere order.
    follows: Vec<String>,
    /// The task whose outcome decides its condition.
    decided_by: Option<String>,
    optional: bool,
    retry: Option<u32>,
    timeout_ms: Option<u64>,
    deadline_ms: Option<u64>,
    estimate_ms: Option<u64>,
    compensate: Option<&'a str>,
    default_answer: Option<&'a str>,
    default_after_ms: Option<u64>,
    #[serde(flatten)]
    task: Value,
}

/// What is odd, and the line in which it stands.
#[derive(Serialize)]
struct WarningJson<'a> {
    line: usize,
    column: usize,
    message: &'a str,
    help: Option<&'a str>,
    excerpt: &'a str,
}

/// Why a text is no plan.
#[derive(Serialize)]
struct ErrorJson {
    name: &'static str,
    message: String,
    line: Option<usize>,
    column: Option<usize>,
}

pub async fn check(session: &Session, check: Check) -> Result<Code, Failure> {
    if check.verbs {
        return verbs(session);
    }
    let path = check.file.as_deref().unwrap_or(Path::new("-"));
    let text = read_text(path)?;
    let file = check.reading.plan_file(path);
    let parsed = parse::read(&text, file.options(check.reading.parallel));
    let model = if check.model { by_model::wanted(session, Some(true))? } else { None };
    let parsed = match (model, parsed) {
        (Some(model), parsed) => by_model::plan_text(session, &model, &text, parsed).await?,
        (None, Ok(parsed)) => parsed,
        (None, Err(error)) => return refuse(session, &text, error),
    };
    let graph = Analysis::of(&parsed.tasks)?;
    let advice = match check.advice {
        true => Some(advice::advice(session, &text, &parsed.tasks, &graph).await?),
        false => None,
    };
    let lines = Lines::new(&text);
    let mut shown = CheckJson::of(&parsed, &lines);
    (shown.graph, shown.advice) = (Some(Names::of(&parsed.tasks).graph(&graph)), advice);
    session.print(&shown, |to| print(to, &parsed, &shown, &lines))
}

/// The verbs that make a sentence a step, by the kind that they give it.
fn verbs(session: &Session) -> Result<Code, Failure> {
    let by_kind = VERBS.map(|(kind, verbs)| (kind.as_str(), verbs.split_ascii_whitespace().collect::<Vec<_>>()));
    session.print(&BTreeMap::from(by_kind.clone()), |to| {
        by_kind.iter().try_for_each(|(kind, verbs)| writeln!(to, "{kind}: {}", verbs.join(" ")))
    })
}

fn print(mut to: impl Write, parsed: &ParsedPlan, shown: &CheckJson<'_>, lines: &Lines<'_>) -> std::io::Result<()> {
    writeln!(to, "read as {}", parsed.format.as_str())?;
    let mut codes: BTreeMap<TaskId, Vec<&CodeUse>> = BTreeMap::new();
    for code in &parsed.codes {
        codes.entry(code.task.unwrap_or(TaskId(0))).or_default().push(code);
    }
    let mut parts = shown.parts.iter().peekable();
    for (task, json) in parsed.tasks.iter().zip(&shown.tasks) {
        while let Some(part) = parts.next_if(|part| (part.line, part.column) < (json.line, json.column)) {
            print_part(&mut to, part)?;
        }
        print_task(&mut to, task, parsed, codes.get(&task.id).map_or(&[], Vec::as_slice), lines)?;
    }
    parts.try_for_each(|part| print_part(&mut to, part))?;
    for warning in &parsed.warnings {
        print_warning(&mut to, warning, lines)?;
    }
    if let Some(first) = parsed.lost.first() {
        let (n, (line, _)) = (parsed.lost.len(), lines.place(first.start));
        writeln!(
            to,
            "{n} numbered items or shell fences belong to no box, the first on line {line}: `run` asks about them"
        )?;
    }
    if let Some(graph) = &shown.graph {
        advice::print_graph(&mut to, graph)?;
    }
    shown.advice.as_ref().map_or(Ok(()), |advice| advice::print(&mut to, advice))
}

/// Says why a text is no plan, with the line in which it stands.
fn refuse(session: &Session, text: &str, error: InvalidPlan) -> Result<Code, Failure> {
    let place = error.place();
    if let Output::Json | Output::Jsonl = session.output {
        let shown = ErrorJson {
            name: error.name(),
            message: error.to_string(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
        };
        let shown = CheckJson { error: Some(shown), ..CheckJson::default() };
        session.print(&shown, |_| Ok(()))?;
    }
    if let Some((line, column)) = place {
        let (shown, caret) = excerpt(Lines::new(text).line(line), column);
        say(&visible(&format!("{line:>5} | {shown}\n      | {:>caret$}", "^")));
    }
    Err(error.into())
}

/// The part of a line around a column, and the column in it.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let skip = column.saturating_sub(EXCERPT_CHARS / 2).min(column.saturating_sub(1));
    let skip = if line.chars().count() <= EXCERPT_CHARS { 0 } else { skip };
    let part: String = line.chars().skip(skip).take(EXCERPT_CHARS).collect();
    (part.replace('\t', " "), column.saturating_sub(skip).max(1))
}

impl<'a> CheckJson<'a> {
    fn of(parsed: &'a ParsedPlan, lines: &Lines<'a>) -> Self {
        let tasks = parsed.tasks.iter().zip(parsed_tasks(parsed)).map(|(task, shown)| {
            let (line, column) = place_of(task, lines);
            let decided_by = task.condition.as_ref().and_then(|condition| condition.outcome_of);
            CheckedTaskJson {
                line,
                column,
                spans: &task.spans,
                follows: names_of(task, &parsed.tasks, Strength::Soft),
                decided_by: decided_by.and_then(|id| name_of(&parsed.tasks, id)),
                optional: task.optional,
                retry: task.retry,
                timeout_ms: task.timeout_ms,
                deadline_ms: task.deadline_ms,
                estimate_ms: task.estimate_ms,
                compensate: task.compensate.as_deref(),
                default_answer: task.default_answer.as_ref().map(|one| one.answer.as_str()),
                default_after_ms: task.default_answer.as_ref().map(|one| one.after_ms),
                task: shown,
            }
        });
        let warnings = parsed.warnings.iter().map(|one| WarningJson {
            line: one.line,
            column: one.column,
            message: &one.message,
            help: one.help.as_deref(),
            excerpt: lines.line(one.line),
        });
        // A paragraph of steps is context only where a sentence of it is none.
        let starts = parsed.tasks.iter().filter_map(|task| task.spans.first()).map(|span| span.start);
        let starts = starts.collect::<BTreeSet<_>>();
        let parts = parsed.parts.iter().filter(|(span, _)| starts.range(span.start..span.end).next().is_none());
        let parts = parts.map(|(span, part)| {
            let (line, column) = lines.place(span.start);
            let part = match part {
                Part::Heading => "heading",
                Part::Context => "context",
                Part::LeftOut => "left out",
            };
            PartJson { line, column, part, text: lines.text.get(span.start..span.end).unwrap_or("").trim() }
        });
        let code = parsed.codes.iter().map(|one| {
            let (line, column) = lines.place(one.at);
            let task = one.task.and_then(|id| name_of(&parsed.tasks, id));
            CodeJson { line, column, task, form: one.form, withheld: one.withheld.as_deref() }
        });
        Self {
            format: Some(parsed.format.as_str()),
            title: parsed.title.as_deref(),
            tasks: tasks.collect(),
            parts: parts.collect(),
            code: code.collect(),
            warnings: warnings.collect(),
            ..Self::default()
        }
    }
}

/// What a task is called; tasks are numbered from 1.
fn name_of(tasks: &[TaskPlan], id: TaskId) -> Option<String> {
    tasks.get(usize::try_from(id.0).ok()?.checked_sub(1)?).map(TaskPlan::name)
}

/// The names of what a task waits for with a strength.
fn names_of(task: &TaskPlan, tasks: &[TaskPlan], strength: Strength) -> Vec<String> {
    let own = task.depends_on.iter().filter(|one| one.strength == strength);
    own.filter_map(|one: &Dependency| name_of(tasks, one.task)).collect()
}

fn place_of(task: &TaskPlan, lines: &Lines<'_>) -> (usize, usize) {
    let Some(span) = task.spans.first() else { return (1, 1) };
    let part = lines.text.get(span.start..span.end).unwrap_or("");
    lines.place(span.start + (part.len() - part.trim_start().len()))
}

fn print_part(mut to: impl Write, part: &PartJson<'_>) -> std::io::Result<()> {
    writeln!(to, "{}:{}  {}: {}", part.line, part.column, part.part, one_line(part.text, 100))
}

fn print_task(
    mut to: impl Write,
    task: &TaskPlan,
    parsed: &ParsedPlan,
    codes: &[&CodeUse],
    lines: &Lines<'_>,
) -> std::io::Result<()> {
    let (line, column) = place_of(task, lines);
    writeln!(
        to,
        "{line}:{column}  {}  {}  {}",
        visible(&task.name()),
        task.kind.as_str(),
        one_line(&task.description, 100)
    )?;
    let mut detail = |label: &str, text: &str| writeln!(to, "        {label}: {}", one_line(text, 120));
    let named = |strength| names_of(task, &parsed.tasks, strength).join(", ");
    let seconds = |ms: Option<u64>| ms.map(|ms| format!("{} s", ms as f64 / 1_000.0));
    let default =
        task.default_answer.as_ref().map(|one| format!("{} after {} s", one.answer, one.after_ms as f64 / 1_000.0));
    let said = [
        ("waits for", Some(named(Strength::Hard)).filter(|names| !names.is_empty())),
        ("follows", Some(named(Strength::Soft)).filter(|names| !names.is_empty())),
        ("optional", task.optional.then(|| "nothing waits for it".to_owned())),
        ("status", (!task.mark.is_open()).then(|| status_of(task.mark).to_owned())),
        ("command", task.command.as_deref().map(in_one_line)),
        ("if", task.condition.as_ref().map(condition_text)),
        ("group", task.group.clone()),
        ("priority", task.priority.clone()),
        ("assignee", task.assignee.clone()),
        ("retries", task.retry.map(|times| times.to_string())),
        ("timeout", seconds(task.timeout_ms)),
        ("deadline", seconds(task.deadline_ms)),
        ("estimate", seconds(task.estimate_ms)),
        ("when it fails", task.on_failure.map(|policy| policy.as_str().to_owned())),
        ("undone by", task.compensate.clone()),
        ("default answer", default),
        ("works on", Some(task.files.join(", ")).filter(|files| !files.is_empty())),
    ];
    for (label, text) in said {
        if let Some(text) = text {
            detail(label, &text)?;
        }
    }
    for attachment in &task.attachments {
        let (kind, reference) = crate::json::attachment_parts(&attachment.kind);
        detail(kind, reference)?;
    }
    for note in &task.notes {
        detail("note", note)?;
    }
    for code in codes {
        let (line, column) = lines.place(code.at);
        match (code.form, &code.withheld) {
            (Some(form), _) => writeln!(to, "        code at {line}:{column}: runs, by form {form}")?,
            (None, Some(reason)) => writeln!(to, "        code at {line}:{column}: does not run: {}", visible(reason))?,
            (None, None) => writeln!(to, "        code at {line}:{column}: text")?,
        }
    }
    Ok(())
}

fn print_warning(mut to: impl Write, warning: &Diagnostic, lines: &Lines<'_>) -> std::io::Result<()> {
    let Diagnostic { message, line, column, help } = warning;
    let (shown, caret) = excerpt(lines.line(*line), *column);
    writeln!(to, "{line}:{column}: warning: {}", visible(message))?;
    writeln!(to, "{line:>5} | {}\n      | {:>caret$}", visible(&shown), "^")?;
    if let Some(help) = help {
        writeln!(to, "      fix: {}", visible(help))?;
    }
    Ok(())
}
