//! `plan corpus`: how well the parser reads texts whose meaning is known. It appends and runs nothing.
//!
//! A corpus is a JSON array of worked cases (`name`, `input`, `expect`), or JSON Lines of texts (`input`) with a list of
//! `tasks` or without. Of a worked case everything that it says must hold; of a list only the number of tasks counts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crewlog_planner::parse::{self, ParseError, ParseOptions, ParsedPlan};
use crewlog_planner::plan::{AttachmentKind, Mark, TaskPlan};
use serde::{Deserialize, Serialize};

use crate::cli::{Corpus, Output};
use crate::failure::{Code, Failure};
use crate::json::{attachment_parts, print_line, print_pretty};
use crate::session::Session;
use crate::text::visible;

/// A corpus may have at most so many bytes.
const CORPUS_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// So many lines are said about texts that are not read as they should be.
const DIFFERENCES_MAX: usize = 1_000;

/// A text and what is known of it.
#[derive(Deserialize)]
struct Text {
    input: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    expect: Option<Expect>,
    #[serde(default)]
    tasks: Option<Vec<serde::de::IgnoredAny>>,
}

/// What a worked case says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    #[serde(default)]
    tasks: Vec<ExpectedTask>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedTask {
    #[serde(default)]
    description_contains: String,
    #[serde(default)]
    kind: OneOrMany,
    #[serde(default)]
    attachments: Option<Vec<ExpectedAttachment>>,
    #[serde(default)]
    depends_on: Option<Vec<usize>>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    group: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    condition: Option<String>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    assignee: Option<String>,
    #[serde(default)]
    details_contain: Vec<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ExpectedAttachment {
    kind: String,
    r#ref: String,
}

/// One kind, or several of which any is right; none when nothing is said.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum OneOrMany {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

/// What came of the texts of one source.
#[derive(Serialize, Default)]
struct Row {
    source: String,
    texts: usize,
    bytes: usize,
    /// Read without a panic.
    read: usize,
    /// Read again to the same result.
    deterministic: usize,
    /// Read to a plan, or refused as expected.
    plans: usize,
    /// Texts of which every byte that can be seen is accounted for.
    accounted: usize,
    /// Texts whose number of tasks is known.
    counted: usize,
    exact: usize,
    within_one: usize,
    /// Worked cases, and those that hold in everything.
    cases: usize,
    right: usize,
    mb_per_s: f64,
    #[serde(skip)]
    time: Duration,
}

/// A text that is not read as it should be.
#[derive(Serialize)]
struct Difference {
    text: String,
    what: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    sources: Vec<Row>,
    differences: Vec<Difference>,
}

/// `plan corpus`.
pub fn corpus(session: &Session, corpus: &Corpus) -> Result<Code, Failure> {
    let texts = read(&corpus.file)?;
    if texts.is_empty() {
        let empty = Failure::user(format!("{} has no texts", corpus.file.display()));
        return Err(empty.hint("give a JSON array of cases, or JSON Lines with an \"input\" in each line"));
    }
    let report = evaluate(&texts);
    let mut stdout = std::io::stdout().lock();
    match session.output {
        Output::Json => print_pretty(&mut stdout, &report)?,
        Output::Jsonl => {
            for row in &report.sources {
                print_line(&mut stdout, row)?;
            }
        }
        Output::Text => print(&mut stdout, &report)?,
    }
    stdout.flush()?;
    Ok(if report.differences.is_empty() { Code::Done } else { Code::User })
}

fn read(file: &Path) -> Result<Vec<Text>, Failure> {
    let name = file.display();
    let cannot = |error: std::io::Error| Failure::user(format!("{name} cannot be read: {error}"));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(cannot)?;
    opened.take(CORPUS_BYTES_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > CORPUS_BYTES_MAX {
        return Err(Failure::user(format!("{name} is longer than {CORPUS_BYTES_MAX} bytes")).hint("split it"));
    }
    let odd = |line: usize, error: serde_json::Error| {
        Failure::user(format!("{name} is not a corpus: line {line}: {error}"))
            .hint("give a JSON array of cases, or JSON Lines with an \"input\" in each line")
    };
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).map_err(|error| odd(error.line(), error));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(n, line)| serde_json::from_str(line).map_err(|error| odd(n + 1, error))).collect()
}

fn evaluate(texts: &[Text]) -> Report {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut differences = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let row = rows.entry(text.source.as_deref().unwrap_or("-")).or_default();
        let what = judge(text, row);
        if !what.is_empty() && differences.len() < DIFFERENCES_MAX {
            let name = text.name.clone().unwrap_or_else(|| format!("text {}", n + 1));
            differences.push(Difference { text: name, what });
        }
    }
    let named = rows.into_iter().map(|(source, mut row)| {
        row.source = source.to_owned();
        row.mb_per_s = if row.time.is_zero() { 0.0 } else { row.bytes as f64 / 1e6 / row.time.as_secs_f64() };
        row
    });
    Report { sources: named.collect(), differences }
}

/// Reads one text, counts what came of it, and says what is wrong.
fn judge(text: &Text, row: &mut Row) -> Vec<String> {
    row.texts += 1;
    row.bytes += text.input.len();
    let parse = || catch_unwind(AssertUnwindSafe(|| parse::parse(&text.input, ParseOptions::default())));
    let begun = Instant::now();
    let first = parse();
    row.time += begun.elapsed();
    let Ok(result) = first else { return vec!["the parser panicked".to_owned()] };
    row.read += 1;
    let mut wrong = Vec::new();
    if parse().is_ok_and(|again| again == result) {
        row.deterministic += 1;
    } else {
        wrong.push("read again it is another plan".to_owned());
    }
    let lost = result.as_ref().ok().and_then(|plan| lost(&text.input, plan));
    match lost {
        None => row.accounted += 1,
        Some(part) => {
            wrong.push(format!("{:?} is in no task and not ignored", part.chars().take(60).collect::<String>()));
        }
    }
    let n_tasks = result.as_ref().map_or(0, |plan| plan.tasks.len());
    let n_known = text.expect.as_ref().map(|expect| expect.tasks.len()).or(text.tasks.as_ref().map(Vec::len));
    if let Some(n_known) = n_known {
        row.counted += 1;
        row.exact += usize::from(n_tasks == n_known);
        row.within_one += usize::from(n_tasks.abs_diff(n_known) <= 1);
    }
    row.plans += usize::from(result.is_ok() || text.expect.as_ref().is_some_and(|expect| expect.error.is_some()));
    if let Some(expect) = &text.expect {
        row.cases += 1;
        let found = compare(expect, &result);
        row.right += usize::from(found.is_empty());
        wrong.extend(found);
    }
    wrong
}

/// The first part of a text that can be seen and stands in no span.
fn lost<'t>(text: &'t str, plan: &ParsedPlan) -> Option<&'t str> {
    let is_seen =
        |c: char| !c.is_whitespace() && !matches!(c, '\0' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}');
    let mut spans: Vec<_> = plan.tasks.iter().flat_map(|task| &task.spans).chain(&plan.ignored).collect();
    spans.sort_unstable();
    let mut at = 0;
    for span in spans {
        let gap = text.get(at..span.start.max(at)).unwrap_or("");
        if gap.contains(is_seen) {
            return Some(gap.trim());
        }
        at = at.max(span.end);
    }
    text.get(at..).filter(|rest| rest.contains(is_seen)).map(str::trim)
}

/// What differs between a case and what was read.
fn compare(expect: &Expect, result: &Result<ParsedPlan, ParseError>) -> Vec<String> {
    let plan = match (result, &expect.error) {
        (Err(error), Some(name)) if error.name() == name => return Vec::new(),
        (Err(error), Some(name)) => return vec![format!("the error is {}, expected {name}", error.name())],
        (Err(error), None) => return vec![format!("it is refused: {error}")],
        (Ok(_), Some(name)) => return vec![format!("it is a plan, expected the error {name}")],
        (Ok(plan), None) => plan,
    };
    if plan.tasks.len() != expect.tasks.len() {
        let names: Vec<&str> = plan.tasks.iter().map(|task| task.description.as_str()).collect();
        return vec![format!("{} tasks, expected {}: {names:?}", plan.tasks.len(), expect.tasks.len())];
    }
    let mut wrong = Vec::new();
    for (n, (task, expected)) in plan.tasks.iter().zip(&expect.tasks).enumerate() {
        wrong.extend(fields(task, expected).into_iter().map(|what| format!("task {}: {what}", n + 1)));
    }
    let found: Vec<BTreeSet<usize>> = plan.tasks.iter().map(|task| waits(plan, task)).collect();
    let known = expect.tasks.iter().zip(&found).map(|(task, found)| {
        task.depends_on.as_ref().map_or_else(|| found.clone(), |known| known.iter().copied().collect())
    });
    let (found, known) = (reduced(&found), reduced(&known.collect::<Vec<_>>()));
    for (n, (found, known)) in found.iter().zip(&known).enumerate().filter(|(_, (found, known))| found != known) {
        wrong.push(format!("task {}: it waits for {found:?}, expected {known:?} (counted from 0)", n + 1));
    }
    wrong
}

/// The places of the tasks that a task waits for.
fn waits(plan: &ParsedPlan, task: &TaskPlan) -> BTreeSet<usize> {
    let place = |id| plan.tasks.iter().position(|other| other.id == id);
    task.depends_on.iter().filter_map(|one| place(one.task)).collect()
}

/// The graph without the edges that others imply.
fn reduced(edges: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let reaches = |from: usize, to: usize| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(task) = open.pop() {
            for next in edges.get(task).into_iter().flatten() {
                if *next == to {
                    return true;
                }
                if seen.insert(*next) {
                    open.push(*next);
                }
            }
        }
        false
    };
    let needed = |own: &BTreeSet<usize>| {
        own.iter().copied().filter(|to| !own.iter().any(|other| other != to && reaches(*other, *to))).collect()
    };
    edges.iter().map(needed).collect()
}

/// What differs in one task, its edges apart.
fn fields(task: &TaskPlan, expected: &ExpectedTask) -> Vec<String> {
    let mut wrong = Vec::new();
    if !task.description.contains(&expected.description_contains) {
        wrong.push(format!("{:?} does not contain {:?}", task.description, expected.description_contains));
    }
    let kind = task.kind.as_str();
    let (fits, kinds) = match &expected.kind {
        OneOrMany::None => (true, String::new()),
        OneOrMany::One(one) => (one == kind, one.clone()),
        OneOrMany::Many(many) => (many.iter().any(|one| one == kind), many.join(" or ")),
    };
    if !fits {
        wrong.push(format!("its kind is {kind}, expected {kinds}"));
    }
    if let Some(known) = &expected.attachments {
        let found: Vec<ExpectedAttachment> = task.attachments.iter().map(|one| attachment(&one.kind)).collect();
        if found != *known {
            let shown = |all: &[ExpectedAttachment]| {
                all.iter().map(|one| format!("{} {}", one.kind, one.r#ref)).collect::<Vec<_>>().join(", ")
            };
            wrong.push(format!("its attachments are [{}], expected [{}]", shown(&found), shown(known)));
        }
    }
    let status = match task.mark {
        Mark::Open => "Planned",
        Mark::InProgress => "Running",
        Mark::Done => "Completed",
        Mark::Cancelled => "Cancelled",
        Mark::Deferred => "Deferred",
    };
    let condition = task.condition.as_ref().map(crate::json::condition_text);
    let said = [
        ("status", &expected.status, Some(status)),
        ("id", &expected.id, task.label.as_deref()),
        ("group", &expected.group, task.group.as_deref()),
        ("command", &expected.command, task.command.as_deref()),
        ("priority", &expected.priority, task.priority.as_deref()),
        ("assignee", &expected.assignee, task.assignee.as_deref()),
    ];
    for (name, known, found) in said {
        if known.as_deref().is_some_and(|known| found != Some(known)) {
            wrong.push(format!("its {name} is {found:?}, expected {known:?}"));
        }
    }
    if let Some(known) = &expected.condition {
        let found = condition.unwrap_or_default().to_lowercase();
        if !found.contains(&known.to_lowercase()) {
            wrong.push(format!("its condition is {found:?}, expected {known:?}"));
        }
    }
    let details = || task.notes.iter().chain(std::iter::once(&task.description));
    for known in &expected.details_contain {
        if !details().any(|note| note.contains(known)) {
            wrong.push(format!("its notes {:?} do not contain {known:?}", task.notes));
        }
    }
    wrong
}

fn attachment(kind: &AttachmentKind) -> ExpectedAttachment {
    let (kind, r#ref) = attachment_parts(kind);
    ExpectedAttachment { kind: kind.to_owned(), r#ref: r#ref.to_owned() }
}

fn print(mut to: impl Write, report: &Report) -> std::io::Result<()> {
    let share = |part: usize, whole: usize| match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    };
    let width = report.sources.iter().map(|row| row.source.chars().count()).max().unwrap_or(0).clamp(6, 60);
    writeln!(
        to,
        "{:<width$}  {:>6}  {:>8}  {:>8}  {:>10}  {:>8}  {:>8}  {:>8}  {:>7}",
        "source", "texts", "read", "same", "accounted", "exact", "within 1", "right", "MB/s"
    )?;
    for row in &report.sources {
        let source: String = visible(&row.source).chars().take(width).collect();
        writeln!(
            to,
            "{source:<width$}  {:>6}  {:>8}  {:>8}  {:>10}  {:>8}  {:>8}  {:>8}  {:>7.1}",
            row.texts,
            share(row.read, row.texts),
            share(row.deterministic, row.texts),
            share(row.accounted, row.texts),
            share(row.exact, row.counted),
            share(row.within_one, row.counted),
            share(row.right, row.cases),
            row.mb_per_s
        )?;
    }
    for difference in &report.differences {
        for what in &difference.what {
            writeln!(to, "{}: {}", visible(&difference.text), visible(what))?;
        }
    }
    Ok(())
}
