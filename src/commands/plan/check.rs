//! `plan check`: shows how a plan file is parsed, line by line, with its commands and the order. Nothing runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use crewlog_executors::crew::lacking::lacking;
use crewlog_executors::model::text_aggregate;
use crewlog_planner::analysis::Analysis;
use crewlog_planner::lines::Lines;
use crewlog_planner::model::{advice_request, read_advice};
use crewlog_planner::parse::{self, CodeUse, Diagnostic, ParsedPlan, VERBS};
use crewlog_planner::plan::{Condition, Mark, Span, Strength, TaskId, TaskPlan};
use crewlog_planner::validity::InvalidPlan;
use serde_json::{Value, json};

use crate::cli::settings;
use crate::context::Session;
use crate::context::roster::roster;
use crate::plan_file::ReadArgs;
use crate::run::by_model::{self, Advisor};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, say};
use crate::ui::text::{count, duration, in_one_line, one_line, visible};

#[derive(Debug, Args)]
pub struct Check {
    /// The plan file; - for standard input
    #[arg(required_unless_present = "verbs")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Let the configured model plan; `run` then gets the same plan from the log
    #[arg(long)]
    pub model: bool,
    /// Ask the configured model which dependencies, kinds and questions it would add
    #[arg(long)]
    pub advice: bool,
    /// Print the verbs that begin a step in a file without lists, with the kind that each gives
    #[arg(long)]
    pub verbs: bool,
}

/// The forms of commands, in words.
const FORMS: [&str; 4] =
    ["a fence of commands", "it begins with `$ `", "it follows Run or Execute", "it follows an order with a colon"];

/// The most characters shown around a place in a line.
const EXCERPT_CHARS: usize = 100;

pub async fn check(session: &Session, check: Check) -> Result<Code, Failure> {
    if check.verbs {
        return verbs(session);
    }
    let path = check.file.as_deref().unwrap_or(Path::new("-"));
    let text = session.read_text(path)?;
    let file = check.reading.plan_file(path);
    let parsed = parse::read(&text, file.options(check.reading.parallel));
    settings::of_file(path, &text)?;
    let parsed = match (by_model::allowed(session, Some(check.model)).await?, parsed) {
        (Some(model), parsed) => {
            let advisor = Advisor::new(session, &model, &text_aggregate(&text), session.tags_of_project()?).await?;
            advisor.plan(&text, parsed).await?.0
        }
        (None, Ok(parsed)) => parsed,
        (None, Err(error)) => return refuse(session, &text, error),
    };
    let open = still_open(&parsed.tasks);
    let graph = if open.is_empty() { Analysis::default() } else { Analysis::of(&open)? };
    let lacking = lacking(&roster(session, Duration::MAX, &[])?, &parsed.tasks, &session.folder);
    let advice = if check.advice { advice(session, &text, &parsed.tasks).await? } else { None };
    let names = parsed.tasks.iter().map(|task| (task.id, task.name())).collect();
    let (lines, is_advised) = (Lines::new(&text), check.advice);
    let checked = Checked { parsed: &parsed, names, lines, graph, lacking, is_advised, advice };
    session.print(&checked.json(), |to| checked.print(to))
}

/// The verbs that make a sentence a step, by the kind that they give it.
fn verbs(session: &Session) -> Result<Code, Failure> {
    let by_kind = VERBS.map(|(kind, verbs)| (kind.as_str(), verbs.split_ascii_whitespace().collect::<Vec<_>>()));
    session.print(&BTreeMap::from(by_kind.clone()), |to| {
        by_kind.iter().try_for_each(|(kind, verbs)| writeln!(to, "{kind}: {}", verbs.join(" ")))
    })
}

/// Refuses a text, and shows the line of the error.
fn refuse(session: &Session, text: &str, error: InvalidPlan) -> Result<Code, Failure> {
    let place = error.place();
    if let Output::Json | Output::Jsonl = session.output {
        let (line, column) = place.unzip();
        let error = json!({ "name": error.name(), "message": error.to_string(), "line": line, "column": column });
        let nothing = json!({
            "format": null, "title": null, "tasks": [], "parts": [], "code": [], "warnings": [], "graph": null,
            "lacking": [], "advice": null, "error": error,
        });
        session.print(&nothing, |_| Ok(()))?;
    }
    if let Some((line, column)) = place {
        say(&excerpt(&Lines::new(text), line, column));
    }
    Err(error.into())
}

/// The tasks as a model would have them, and their graph.
struct Advice {
    tasks: Vec<TaskPlan>,
    graph: Analysis,
}

/// Asks the model for changes; none without an answer.
async fn advice(session: &Session, source: &str, tasks: &[TaskPlan]) -> Result<Option<Advice>, Failure> {
    let Some(model) = by_model::allowed(session, Some(true)).await? else { return Ok(None) };
    let advisor = Advisor::new(session, &model, &text_aggregate(source), session.tags_of_project()?).await?;
    let request = advice_request(&model.parameters, tasks);
    let found = advisor.ask("advice", "it is left out", request, |answer| read_advice(answer, tasks)).await?;
    let Some(tasks) = found.map(|found| found.value) else { return Ok(None) };
    Ok(Some(Advice { graph: Analysis::of(&tasks)?, tasks }))
}

/// The part of a line around a column, which is marked below it.
fn excerpt(lines: &Lines<'_>, line: usize, column: usize) -> String {
    let text = lines.line(line);
    let skip = column.saturating_sub(EXCERPT_CHARS / 2).min(column.saturating_sub(1));
    let skip = if text.chars().count() <= EXCERPT_CHARS { 0 } else { skip };
    let part: String = text.chars().skip(skip).take(EXCERPT_CHARS).collect();
    let caret = column.saturating_sub(skip).max(1);
    visible(&format!("{line:>5} | {}\n      | {:>caret$}", part.replace('\t', " "), "^"))
}

struct Checked<'a> {
    parsed: &'a ParsedPlan,
    names: BTreeMap<TaskId, String>,
    lines: Lines<'a>,
    graph: Analysis,
    /// The lacks of the configured executors.
    lacking: Vec<String>,
    /// Advice was asked for.
    is_advised: bool,
    advice: Option<Advice>,
}

/// A line and a column, from 1.
type Place = (usize, usize);

impl Checked<'_> {
    fn json(&self) -> Value {
        let ParsedPlan { format, title, tasks, codes, warnings, .. } = self.parsed;
        let tasks = tasks.iter().map(|task| self.task_json(task));
        let parts = self
            .parts()
            .into_iter()
            .map(|((line, column), part, text)| json!({ "line": line, "column": column, "part": part, "text": text }));
        let code = codes.iter().map(|code| {
            let ((line, column), task) = (self.lines.place(code.at), code.task.map(|task| self.name(task)));
            json!({ "line": line, "column": column, "task": task, "form": code.form, "withheld": code.withheld })
        });
        let warnings = warnings.iter().map(|Diagnostic { message, line, column, help }| {
            let excerpt = self.lines.line(*line);
            json!({ "line": line, "column": column, "message": message, "help": help, "excerpt": excerpt })
        });
        json!({
            "format": <&str>::from(format), "title": title, "tasks": tasks.collect::<Vec<_>>(),
            "parts": parts.collect::<Vec<_>>(), "code": code.collect::<Vec<_>>(),
            "warnings": warnings.collect::<Vec<_>>(), "graph": self.graph_json(&self.graph),
            "lacking": self.lacking, "advice": self.is_advised.then(|| self.advice_json()), "error": null,
        })
    }

    fn task_json(&self, task: &TaskPlan) -> Value {
        let (line, column) = self.place_of(task);
        let attachments = task.attachments.iter().map(|attachment| &attachment.kind);
        let condition = task.condition.as_ref();
        let decided_by = condition.map(|condition| &condition.outcome_of).filter(|tasks| !tasks.is_empty());
        let decided_by = decided_by.map(|tasks| tasks.iter().map(|task| self.name(*task)).collect::<Vec<_>>());
        let default = task.default_answer.as_ref();
        json!({
            "line": line, "column": column, "spans": task.spans, "id": task.name(), "description": task.description,
            "kind": task.kind.as_str(), "status": status_of(task.mark),
            "depends_on": task.depends_on.iter().map(|one| self.name(one.task)).collect::<Vec<_>>(),
            "follows": self.waits_for(task, Strength::Soft), "decided_by": decided_by, "optional": task.optional,
            "retry": task.retry, "timeout_ms": task.timeout_ms, "deadline_ms": task.deadline_ms,
            "estimate_ms": task.estimate_ms, "compensate": task.compensate,
            "default_answer": default.map(|one| &one.answer), "default_after_ms": default.map(|one| one.after_ms),
            "attachments": attachments.collect::<Vec<_>>(), "command": task.command,
            "condition": condition.map(Condition::words), "group": task.group, "priority": task.priority,
            "assignee": task.assignee, "notes": task.notes, "files": task.files, "reads_only": task.reads_only,
            "rerun_safe": task.rerun_safe,
        })
    }

    fn print(&self, to: &mut dyn Write) -> io::Result<()> {
        let ParsedPlan { format, tasks, warnings, lost, .. } = self.parsed;
        writeln!(to, "read as {}", <&str>::from(format))?;
        let mut parts = self.parts().into_iter().peekable();
        let print_part = |to: &mut dyn Write, ((line, column), part, text): (Place, &str, &str)| {
            writeln!(to, "{line}:{column}  {part}: {}", one_line(text, 100))
        };
        for task in tasks {
            while let Some(part) = parts.next_if(|(place, ..)| *place < self.place_of(task)) {
                print_part(to, part)?;
            }
            self.print_task(to, task)?;
        }
        parts.try_for_each(|part| print_part(to, part))?;
        warnings.iter().try_for_each(|warning| self.print_warning(to, warning))?;
        if let Some(first) = lost.first() {
            let (n, (line, _)) = (lost.len(), self.lines.place(first.start));
            writeln!(
                to,
                "{n} numbered items or shell fences belong to no box, the first on line {line}: `run` asks about them"
            )?;
        }
        self.lacking.iter().try_for_each(|lacking| writeln!(to, "warning: {}", visible(lacking)))?;
        self.print_graph(to, &self.graph)?;
        self.advice.as_ref().map_or(Ok(()), |advice| self.print_advice(to, advice))
    }

    fn print_task(&self, to: &mut dyn Write, task: &TaskPlan) -> io::Result<()> {
        let (line, column) = self.place_of(task);
        let (name, kind) = (task.name(), task.kind.as_str());
        writeln!(to, "{line}:{column}  {}  {kind}  {}", visible(&name), one_line(&task.description, 100))?;
        let named = |strength| Some(self.waits_for(task, strength).join(", ")).filter(|names| !names.is_empty());
        let default =
            task.default_answer.as_ref().map(|one| format!("{} after {}", one.answer, duration(one.after_ms)));
        let details = [
            ("waits for", named(Strength::Hard)),
            ("follows", named(Strength::Soft)),
            ("optional", task.optional.then(|| "nothing waits for it".to_owned())),
            ("status", (!task.mark.is_open()).then(|| status_of(task.mark).to_owned())),
            ("command", task.command.as_deref().map(in_one_line)),
            ("if", task.condition.as_ref().map(Condition::words)),
            ("group", task.group.clone()),
            ("priority", task.priority.clone()),
            ("assignee", task.assignee.clone()),
            ("retries", task.retry.map(|times| times.to_string())),
            ("timeout", task.timeout_ms.map(duration)),
            ("deadline", task.deadline_ms.map(duration)),
            ("estimate", task.estimate_ms.map(duration)),
            ("when it fails", task.on_failure.map(|policy| <&str>::from(policy).to_owned())),
            ("undone by", task.compensate.clone()),
            ("default answer", default),
            ("works on", Some(task.files.join(", ")).filter(|files| !files.is_empty())),
        ];
        let details = details.iter().filter_map(|(label, text)| Some((*label, text.as_deref()?)));
        let attachments = task.attachments.iter().map(|attachment| attachment.kind.parts());
        let notes = task.notes.iter().map(|note| ("note", note.as_str()));
        for (label, text) in details.chain(attachments).chain(notes) {
            writeln!(to, "        {label}: {}", one_line(text, 120))?;
        }
        for CodeUse { at, form, withheld, .. } in self.parsed.codes.iter().filter(|code| code.task == Some(task.id)) {
            let (line, column) = self.lines.place(*at);
            let text = match (form, withheld) {
                (Some(form), _) => format!("runs: {}", FORMS[usize::from(form - 1)]),
                (None, Some(reason)) => format!("does not run: {}", visible(reason)),
                (None, None) => "text: it has none of the forms of a command".to_owned(),
            };
            writeln!(to, "        code at {line}:{column}: {text}")?;
        }
        Ok(())
    }

    fn print_warning(&self, to: &mut dyn Write, warning: &Diagnostic) -> io::Result<()> {
        let Diagnostic { message, line, column, help } = warning;
        writeln!(to, "{line}:{column}: warning: {}", visible(message))?;
        writeln!(to, "{}", excerpt(&self.lines, *line, *column))?;
        help.as_ref().map_or(Ok(()), |help| writeln!(to, "      fix: {}", visible(help)))
    }

    fn name(&self, task: TaskId) -> String {
        self.names.get(&task).cloned().unwrap_or_else(|| task.to_string())
    }

    fn list(&self, tasks: &[TaskId]) -> Vec<String> {
        tasks.iter().map(|task| self.name(*task)).collect()
    }

    fn graph_json(&self, graph: &Analysis) -> Value {
        let bottlenecks = graph.bottlenecks.iter();
        let bottlenecks = bottlenecks.map(|one| json!({ "task": self.name(one.task), "waiting": one.n_waiting }));
        json!({
            "tasks": n_tasks(graph), "steps": graph.n_steps(), "at_once": graph.n_at_once(),
            "groups": graph.groups.iter().map(|group| self.list(group)).collect::<Vec<_>>(),
            "critical_path": self.list(&graph.critical_path), "bottlenecks": bottlenecks.collect::<Vec<_>>(),
            "saving_relaxed": graph.n_steps() - graph.n_steps_relaxed,
        })
    }

    /// The changes that a model proposes; null without an answer.
    fn advice_json(&self) -> Value {
        let Some(advice) = &self.advice else { return json!({ "dependencies": null, "kinds": null }) };
        let edges = self.edges(&advice.tasks).map(|(task, after)| json!({ "task": task, "after": after }));
        let mut dependencies = self.graph_json(&advice.graph);
        dependencies["edges"] = edges.collect();
        dependencies["saving"] = self.saving(&advice.graph).into();
        let kinds = self.kinds(advice).map(|(was, is)| json!({ "task": is.name(), "kind": is.kind, "was": was.kind }));
        json!({ "dependencies": dependencies, "kinds": kinds.collect::<Vec<_>>() })
    }

    /// The steps that a graph saves; negative when it adds dependencies.
    fn saving(&self, graph: &Analysis) -> i64 {
        let n_steps = |graph: &Analysis| i64::try_from(graph.n_steps()).unwrap_or(i64::MAX);
        n_steps(&self.graph) - n_steps(graph)
    }

    fn edges(&self, tasks: &[TaskPlan]) -> impl Iterator<Item = (String, String)> {
        tasks.iter().flat_map(|task| task.depends_on.iter().map(|one| (task.name(), self.name(one.task))))
    }

    /// The tasks to which the model gives another kind, before and after.
    fn kinds<'b>(&'b self, advice: &'b Advice) -> impl Iterator<Item = (&'b TaskPlan, &'b TaskPlan)> {
        self.parsed.tasks.iter().zip(&advice.tasks).filter(|(was, is)| was.kind != is.kind)
    }

    fn print_advice(&self, to: &mut dyn Write, advice: &Advice) -> io::Result<()> {
        let Advice { tasks, graph } = advice;
        writeln!(to, "\nthe model's dependencies (steps saved: {}):", self.saving(graph))?;
        self.edges(tasks).try_for_each(|(task, after)| writeln!(to, "  {task} after {after}"))?;
        self.print_graph(to, graph)?;
        self.kinds(advice).try_for_each(|(was, is)| {
            writeln!(to, "the model calls {} {}, not {}", is.name(), is.kind.as_str(), was.kind.as_str())
        })
    }

    fn print_graph(&self, to: &mut dyn Write, graph: &Analysis) -> io::Result<()> {
        let n_tasks = n_tasks(graph);
        let (tasks, steps) = (count(n_tasks, "task"), count(graph.n_steps(), "step"));
        let over = match self.parsed.tasks.len() - n_tasks {
            0 => String::new(),
            n => format!(" ({} ended in the file)", count(n, "other")),
        };
        writeln!(to, "{tasks}{over} in {steps}, at most {} at once", graph.n_at_once())?;
        for (n, group) in graph.groups.iter().enumerate() {
            writeln!(to, "  step {}: {}", n + 1, one_line(&self.list(group).join(", "), 200))?;
        }
        if n_tasks == 0 {
            return Ok(());
        }
        writeln!(to, "the longest chain: {}", one_line(&self.list(&graph.critical_path).join(" -> "), 200))?;
        for one in &graph.bottlenecks {
            writeln!(to, "bottleneck: {} ({} depend on it)", self.name(one.task), count(one.n_waiting, "task"))?;
        }
        match graph.n_steps() - graph.n_steps_relaxed {
            0 => Ok(()),
            n => writeln!(to, "--parallel saves {}: only the order of the file requires them", count(n, "step")),
        }
    }

    /// The text outside of tasks. A paragraph of steps is context only where one of its sentences is not a step.
    fn parts(&self) -> Vec<(Place, &'static str, &str)> {
        let starts = self.parsed.tasks.iter().filter_map(|task| task.spans.first()).map(|span| span.start);
        let starts = starts.collect::<BTreeSet<_>>();
        let parts = self.parsed.parts.iter().filter(|(span, _)| starts.range(span.start..span.end).next().is_none());
        let parts =
            parts.map(|(span, part)| (self.lines.place(span.start), <&str>::from(part), self.text_of(span).trim()));
        parts.collect()
    }

    /// The names of the tasks that a task waits for with a strength.
    fn waits_for(&self, task: &TaskPlan, strength: Strength) -> Vec<String> {
        let dependencies = task.depends_on.iter().filter(|one| one.strength == strength);
        dependencies.map(|one| self.name(one.task)).collect()
    }

    fn place_of(&self, task: &TaskPlan) -> Place {
        let Some(span) = task.spans.first() else { return (1, 1) };
        let text = self.text_of(span);
        self.lines.place(span.start + (text.len() - text.trim_start().len()))
    }

    fn text_of(&self, span: &Span) -> &str {
        self.lines.text.get(span.start..span.end).unwrap_or("")
    }
}

fn n_tasks(graph: &Analysis) -> usize {
    graph.groups.iter().map(Vec::len).sum()
}

/// The tasks that have not ended in the file, without their dependencies on the others.
fn still_open(tasks: &[TaskPlan]) -> Vec<TaskPlan> {
    let mut open: Vec<_> = tasks.iter().filter(|task| !task.mark.is_end()).cloned().collect();
    let ids: BTreeSet<_> = open.iter().map(|task| task.id).collect();
    for task in &mut open {
        task.depends_on.retain(|one| ids.contains(&one.task));
        task.condition = None;
    }
    open
}

/// The initial status of a task.
const fn status_of(mark: Mark) -> &'static str {
    match mark {
        Mark::Open => "Planned",
        Mark::InProgress => "Running",
        Mark::Done => "Completed",
        Mark::Cancelled => "Cancelled",
        Mark::Deferred => "Deferred",
    }
}
