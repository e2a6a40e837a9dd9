//! The documented rules as cases, texts that must not run anything, and properties of arbitrary texts.

mod json;
mod limits;
mod safety;
mod ticks;

use std::fmt::Write;

use super::{Format, ParsedPlan, ReadOptions, read};
use crate::plan::{Mark, NodeKind, Strength};

/// A case: the rule it shows, the format, the text, and the resulting plan.
struct Case<'a> {
    rule: &'a str,
    format: Format,
    text: &'a str,
    expected: &'a str,
}

/// The cases of a file: `=== rule` or `=== rule [format]`, the text, `---`, the lines of [`shown`].
fn cases(file: &str) -> impl Iterator<Item = Case<'_>> {
    file.split("=== ").skip(1).map(|case| {
        let (head, rest) = case.split_once('\n').expect("a case has a text");
        let (text, expected) = rest.split_once("\n---\n").expect("a case says what its text becomes");
        let (rule, format) =
            head.strip_suffix(']').and_then(|head| head.rsplit_once(" [")).unwrap_or((head, "markdown"));
        let format = Format::ALL.iter().copied().find(|known| <&str>::from(known) == format).expect("a known format");
        Case { rule, format, text, expected: expected.trim_end() }
    })
}

/// A plan as lines: `name <- dependencies: text`, then the task's other fields; warnings; or the error.
fn shown(text: &str, format: Format) -> String {
    let plan = match read(text, ReadOptions { format, ..ReadOptions::default() }) {
        Ok(plan) => plan,
        Err(error) => return format!("error {}: {error}", error.name()),
    };
    let mut out = String::new();
    for task in &plan.tasks {
        let name_of = |id: crate::plan::TaskId| plan.tasks[id.0 as usize - 1].name();
        let before = task.depends_on.iter().map(|one| match one.strength {
            Strength::Hard => format!("{}!", name_of(one.task)),
            Strength::Soft => name_of(one.task),
        });
        let before = before.collect::<Vec<_>>().join(" ");
        let _ = write!(out, "{} <- {before}: {}", task.name(), task.description);
        let kind = match task.kind {
            NodeKind::Clarification => Some("question".to_owned()),
            _another => None,
        };
        let mark = match task.mark {
            Mark::Open => None,
            Mark::InProgress => Some("in progress"),
            Mark::Done => Some("done"),
            Mark::Cancelled => Some("cancelled"),
            Mark::Deferred => Some("deferred"),
        };
        let condition = task.condition.as_ref().map(|one| {
            let asked = if !one.outcome_of.is_empty() { "" } else { " (asked)" };
            format!("{} {}{asked}", if one.negated { "unless" } else { "if" }, one.text)
        });
        let settings = [
            kind,
            mark.map(str::to_owned),
            condition,
            task.optional.then(|| "optional".to_owned()),
            task.group.as_ref().map(|group| format!("in {group}")),
            task.priority.clone(),
            task.assignee.as_ref().map(|name| format!("@{name}")),
            task.retry.map(|times| format!("retry {times}")),
            task.timeout_ms.map(|ms| format!("timeout {ms}")),
            task.deadline_ms.map(|ms| format!("deadline {ms}")),
            task.budget_micros.map(|micros| format!("budget {micros}")),
            task.estimate_ms.map(|ms| format!("estimate {ms}")),
            task.on_failure.map(|policy| format!("on failure {}", <&str>::from(policy))),
            task.compensate.as_ref().map(|command| format!("undo {command}")),
            task.default_answer.as_ref().map(|one| format!("default {} after {}", one.answer, one.after_ms)),
            (!task.files.is_empty()).then(|| format!("files {}", task.files.join(" "))),
            task.reads_only.then(|| "reads only".to_owned()),
            task.rerun_safe.then(|| "rerun safe".to_owned()),
        ];
        for setting in settings.into_iter().flatten() {
            let _ = write!(out, " | {setting}");
        }
        out.push('\n');
        let lines = task.command.iter().flat_map(|command| command.lines()).map(|line| format!("  $ {line}"));
        let notes = task.notes.iter().map(|note| format!("  note {}", note.replace('\n', "\\n")));
        let attached = task.attachments.iter().map(|one| format!("  {:?}", one.kind));
        lines.chain(notes).chain(attached).for_each(|line| out.push_str(&(line + "\n")));
    }
    context_and_warnings(&mut out, &plan);
    out.trim_end().to_owned()
}

fn context_and_warnings(out: &mut String, plan: &ParsedPlan) {
    for context in &plan.context {
        let _ = writeln!(out, "context {}", context.replace('\n', "\\n"));
    }
    for warning in &plan.warnings {
        let _ = writeln!(out, "{}:{} {}", warning.line, warning.column, warning.message);
    }
    if !plan.lost.is_empty() {
        let _ = writeln!(out, "lost {}", plan.lost.len());
    }
}

#[test]
fn every_documented_rule_holds_in_its_cases() {
    let mut wrong = Vec::new();
    for Case { rule, format, text, expected } in cases(include_str!("cases.txt")) {
        let found = shown(text, format);
        if found != expected {
            wrong.push(format!("=== {rule}\n{text}\n--- expected\n{expected}\n--- found\n{found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_names_a_rule_and_every_documented_rule_has_a_case() {
    let page = include_str!("../../../../docs/plan-format.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for Case { rule, .. } in cases(include_str!("cases.txt")) {
        let quoted = rule.split(": ").next().unwrap_or_default();
        assert!(page.contains(quoted), "the page does not say {quoted:?}");
    }
}

#[test]
fn the_words_of_a_step_give_its_kind() {
    for (step, kind) in [
        ("Write tests for the parser", NodeKind::UnitTest),
        ("Find the callers of the parser", NodeKind::Retrieval),
        ("Analyze the logs", NodeKind::Analysis),
        ("Refactor the parser", NodeKind::Refactor),
        ("Implement the parser", NodeKind::CodeImplementation),
        ("Run `make all`", NodeKind::ToolCall),
        ("Which parser is meant?", NodeKind::Clarification),
        ("Prepare the release", NodeKind::Processing),
    ] {
        let plan = read(&format!("- {step}\n"), ReadOptions::default()).unwrap();
        assert_eq!(plan.tasks.iter().map(|task| task.kind).collect::<Vec<_>>(), [kind], "{step}");
    }
}

#[test]
fn an_attachment_keeps_the_text_of_its_link() {
    let text = "- Read [the spec](https://example.com/spec.pdf), https://example.com/a and src/a.rs\n";
    let plan = read(text, ReadOptions::default()).unwrap();
    let labels = plan.tasks[0].attachments.iter().map(|one| one.label.as_deref()).collect::<Vec<_>>();
    assert_eq!(labels, [Some("the spec"), None, None]);
}

#[test]
fn a_sentence_with_a_bare_and_is_one_step() {
    let plan = read("Analyze code and run tests", ReadOptions::default()).unwrap();
    assert_eq!(plan.tasks.iter().map(|task| &*task.description).collect::<Vec<_>>(), ["Analyze code and run tests"]);
}
