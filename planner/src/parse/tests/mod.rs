//! Texts and the plans they mean; one `check` per boundary.

mod commands;
mod conditional;
mod crew;
mod elsewhere;
mod embedded;
mod formats;
mod letters;
mod limits;
mod lint;
mod listings;
mod mails;
mod markup;
mod policy;
mod relations;
mod settings;
mod shapes;
mod tables;
mod texts;
mod told;
mod warnings;
mod written;

use std::fmt::Write;

use super::{ParseError, ParseOptions, ParsedPlan, parse};
use crate::plan::{AttachmentKind, Mark, Strength, TaskPlan};

/// One line per task: number, kind, text, then only what is set. A soft edge has an `s`.
fn show(task: &TaskPlan) -> String {
    let mut line = format!("{} {} {}", task.id, task.kind.as_str(), task.description);
    let edges: Vec<String> = task
        .depends_on
        .iter()
        .map(|one| format!("{}{}", one.task, if one.strength == Strength::Soft { "s" } else { "" }))
        .collect();
    let mut add = |name: &str, text: &str| {
        let _ = write!(line, " | {name} {text}");
    };
    if !edges.is_empty() {
        add("<-", &edges.join(" "));
    }
    let texts = [
        ("id", &task.label),
        ("$", &task.command),
        ("in", &task.group),
        ("prio", &task.priority),
        ("@", &task.assignee),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            add(name, &text.replace('\n', "\\n"));
        }
    }
    if let Some(condition) = &task.condition {
        add(if condition.negated { "unless" } else { "if" }, &condition.text);
    }
    if task.mark != Mark::Open {
        add("mark", &format!("{:?}", task.mark));
    }
    for one in &task.attachments {
        let (AttachmentKind::Link(to)
        | AttachmentKind::ImageRef(to)
        | AttachmentKind::FileRef(to)
        | AttachmentKind::EmbeddingRef(to)
        | AttachmentKind::ScreenshotRef(to)) = &one.kind;
        let kind = format!("{:?}", one.kind);
        add(kind.split('(').next().unwrap(), to);
    }
    for note in &task.notes {
        add("note", &note.replace('\n', "\\n"));
    }
    let limits = [
        task.retry.map(|n| format!("retry {n}")),
        task.timeout_ms.map(|n| format!("timeout {n}")),
        task.on_failure.map(|policy| format!("on failure {policy:?}")),
        (!task.files.is_empty()).then(|| format!("works on {}", task.files.join(" "))),
        task.rerun_safe.then(|| "rerun safe".to_owned()),
        task.deadline_ms.map(|n| format!("deadline {n}")),
        task.estimate_ms.map(|n| format!("estimate {n}")),
        task.compensate.as_ref().map(|command| format!("undo {command}")),
        task.default_answer.as_ref().map(|one| format!("default {} after {}", one.answer, one.after_ms)),
    ];
    for limit in limits.iter().flatten() {
        let _ = write!(line, " | {limit}");
    }
    line
}

fn plan(text: &str) -> ParsedPlan {
    parse(text, ParseOptions::default()).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// A text and its tasks.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let got: Vec<String> = plan(text).tasks.iter().map(show).collect();
    assert_eq!(got, expected, "of {text:?}");
}

/// A text and why it is no plan.
#[track_caller]
fn check_error(text: &str, expected: &str) {
    let error: ParseError = parse(text, ParseOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), expected, "of {text:?}");
}
