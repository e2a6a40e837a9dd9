//! Measures the parser against a file: worked cases (`.json`) or a corpus of texts (`.jsonl`).
//!
//! `cargo run -p crewlog-planner --example plan_cases -- cases.json` prints one line per case and exits 1 when any
//! differs. Of a corpus it prints how often the number of tasks is that of the reference, by source, and how fast it
//! is; it exits 1 when a text gives two different results or loses part of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crewlog_planner::parse::{ParseError, ParseOptions, ParsedPlan, parse};
use crewlog_planner::plan::{AttachmentKind, Mark, TaskPlan};
use serde_json::Value;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: plan_cases FILE.json | FILE.jsonl");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("cannot read {path}: {error}");
            return ExitCode::from(2);
        }
    };
    let sound = if path.ends_with(".jsonl") { corpus(&text) } else { cases(&text) };
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cases(text: &str) -> bool {
    let Ok(Value::Array(cases)) = serde_json::from_str(text) else {
        eprintln!("the file is not a JSON array of cases");
        return false;
    };
    let mut n_differ = 0;
    for case in &cases {
        let input = case["input"].as_str().unwrap_or("");
        let differences = compare(&parse(input, ParseOptions::default()), &case["expect"]);
        let name = case["name"].as_str().unwrap_or("?");
        if differences.is_empty() {
            println!("ok      {name}");
        } else {
            n_differ += 1;
            println!("differs {name}: {}", differences.join("; "));
        }
    }
    println!("{} of {} cases hold", cases.len() - n_differ, cases.len());
    n_differ == 0
}

/// The name of an error's variant.
fn error_name(error: &ParseError) -> String {
    let shown = format!("{error:?}");
    shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned()
}

fn compare(result: &Result<ParsedPlan, ParseError>, expect: &Value) -> Vec<String> {
    let none = Vec::new();
    let wanted = expect["tasks"].as_array().unwrap_or(&none);
    match (result, expect["error"].as_str()) {
        (Err(error), Some(name)) if error_name(error) == name => Vec::new(),
        (Err(error), name) => vec![format!("error {error} instead of {name:?}")],
        (Ok(_), Some(name)) => vec![format!("no error instead of {name}")],
        (Ok(plan), None) if plan.tasks.len() != wanted.len() => {
            let texts: Vec<&str> = plan.tasks.iter().map(|task| task.description.as_str()).collect();
            vec![format!("{} tasks instead of {}: {texts:?}", plan.tasks.len(), wanted.len())]
        }
        (Ok(plan), None) => {
            let own: Vec<BTreeSet<usize>> = plan
                .tasks
                .iter()
                .map(|task| task.depends_on.iter().map(|one| one.task.0 as usize - 1).collect())
                .collect();
            let got = reduce(&own);
            let written: Vec<BTreeSet<usize>> = wanted.iter().map(|task| numbers(&task["depends_on"])).collect();
            let edges = reduce(&written);
            let mut differences = Vec::new();
            for (n, (task, want)) in plan.tasks.iter().zip(wanted).enumerate() {
                differences.extend(differ(task, want).into_iter().map(|text| format!("task {n}: {text}")));
                if got[n] != edges[n] {
                    differences.push(format!("task {n}: depends on {:?} instead of {:?}", got[n], edges[n]));
                }
            }
            differences
        }
    }
}

fn numbers(value: &Value) -> BTreeSet<usize> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).map(|n| n as usize).collect()
}

/// Drops each edge that a longer way says already.
fn reduce(edges: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let mut reduced = edges.to_vec();
    for own in &mut reduced {
        let direct: Vec<usize> = own.iter().copied().collect();
        for first in &direct {
            let mut seen = BTreeSet::new();
            let mut open: Vec<usize> = edges[*first].iter().copied().collect();
            while let Some(task) = open.pop() {
                if seen.insert(task) {
                    open.extend(edges[task].iter().copied());
                }
            }
            own.retain(|task| task == first || !seen.contains(task));
        }
    }
    reduced
}

fn differ(task: &TaskPlan, want: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let holds =
        |text: &str, part: &Value| part.as_str().is_none_or(|part| text.to_lowercase().contains(&part.to_lowercase()));
    if !holds(&task.description, &want["description_contains"]) {
        found.push(format!("{:?} does not contain {}", task.description, want["description_contains"]));
    }
    let kinds: Vec<&str> = want["kind"]
        .as_str()
        .into_iter()
        .chain(want["kind"].as_array().into_iter().flatten().filter_map(Value::as_str))
        .collect();
    if !kinds.is_empty() && !kinds.contains(&task.kind.as_str()) {
        found.push(format!("kind {} instead of {kinds:?}", task.kind.as_str()));
    }
    let status = match task.mark {
        Mark::Open => "Planned",
        Mark::InProgress => "Running",
        Mark::Done => "Completed",
        Mark::Cancelled => "Cancelled",
    };
    let fields = [
        ("status", Some(status)),
        ("id", task.label.as_deref()),
        ("command", task.command.as_deref()),
        ("priority", task.priority.as_deref()),
        ("assignee", task.assignee.as_deref()),
    ];
    for (name, got) in fields {
        if let Some(wanted) = want[name].as_str().filter(|wanted| got != Some(wanted)) {
            found.push(format!("{name} {got:?} instead of {wanted:?}"));
        }
    }
    if !holds(task.group.as_deref().unwrap_or(""), &want["group"]) {
        found.push(format!("group {:?} instead of {}", task.group, want["group"]));
    }
    let condition = task.condition.as_ref().map_or("", |condition| condition.text.as_str());
    if !holds(condition, &want["condition"]) {
        found.push(format!("condition {condition:?} instead of {}", want["condition"]));
    }
    let details = format!("{}\n{}", task.description, task.notes.join("\n"));
    for part in want["details_contain"].as_array().into_iter().flatten().filter(|part| !holds(&details, part)) {
        found.push(format!("{part} is not in {details:?}"));
    }
    if let Some(wanted) = want["attachments"].as_array() {
        let wanted: BTreeSet<String> = wanted
            .iter()
            .map(|one| format!("{} {}", one["kind"].as_str().unwrap_or(""), one["ref"].as_str().unwrap_or("")))
            .collect();
        let value = |one: &AttachmentKind| serde_json::to_value(one).unwrap_or(Value::Null);
        let got: BTreeSet<String> = task
            .attachments
            .iter()
            .map(|one| value(&one.kind))
            .map(|one| format!("{} {}", one["kind"].as_str().unwrap_or(""), one["ref"].as_str().unwrap_or("")))
            .collect();
        if wanted != got {
            found.push(format!("attachments {got:?} instead of {wanted:?}"));
        }
    }
    found
}

/// What was counted of one source.
#[derive(Default)]
struct Count {
    texts: usize,
    exact: usize,
    near: usize,
}

fn corpus(text: &str) -> bool {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let (mut time, mut bytes, mut sound) = (Duration::ZERO, 0, true);
    let detail = std::env::args().nth(2);
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let input = entry["input"].as_str().unwrap_or("");
        let started = Instant::now();
        let result = parse(input, ParseOptions::default());
        time += started.elapsed();
        bytes += input.len();
        if parse(input, ParseOptions::default()) != result {
            println!("two results: {input:?}");
            sound = false;
        }
        if let Some(lost) = result.as_ref().ok().and_then(|plan| lost(input, plan)) {
            println!("lost {lost:?} of {input:?}");
            sound = false;
        }
        let n_tasks = result.as_ref().map_or(0, |plan| plan.tasks.len());
        let source = entry["source"].as_str().unwrap_or("?");
        let count = counts.entry(source.to_owned()).or_default();
        count.texts += 1;
        if let Some(wanted) = entry["tasks"].as_array() {
            count.exact += usize::from(wanted.len() == n_tasks);
            count.near += usize::from(wanted.len().abs_diff(n_tasks) <= 1);
            if detail.as_deref().is_some_and(|part| source.contains(part)) && wanted.len() != n_tasks {
                show(input, wanted, &result);
            }
        }
    }
    for (source, count) in &counts {
        let percent = |n: usize| 100.0 * n as f64 / count.texts as f64;
        println!(
            "{source}: {} texts, exact {:.1} %, within one {:.1} %",
            count.texts,
            percent(count.exact),
            percent(count.near)
        );
    }
    println!("{bytes} bytes in {time:?}: {:.1} MB/s", bytes as f64 / 1e6 / time.as_secs_f64());
    sound
}

/// The first part of a text that is in no task and not ignored.
fn lost<'t>(text: &'t str, plan: &ParsedPlan) -> Option<&'t str> {
    let mut spans: Vec<_> = plan.tasks.iter().flat_map(|task| &task.spans).chain(&plan.ignored).collect();
    spans.sort();
    let mut at = 0;
    for span in spans {
        let gap = text.get(at..span.start.max(at))?;
        if !gap.trim().is_empty() {
            return Some(gap);
        }
        at = at.max(span.end);
    }
    text.get(at..).filter(|rest| !rest.trim().is_empty())
}

fn show(input: &str, wanted: &[Value], result: &Result<ParsedPlan, ParseError>) {
    println!("\n{input}");
    for task in wanted {
        println!("  - {}", task["description"].as_str().unwrap_or(""));
    }
    match result {
        Ok(plan) => plan.tasks.iter().for_each(|task| println!("  + {} {}", task.kind.as_str(), task.description)),
        Err(error) => println!("  + {error}"),
    }
}
