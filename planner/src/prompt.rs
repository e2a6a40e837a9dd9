//! The words in which a coding agent is told of a task: pure text from what its dispatch says.

use std::fmt::Write;

use crate::event::{Parameters, TaskResult};
use crate::plan::{Attachment, AttachmentKind, DefaultAnswer};

/// The beginning of the last line of an agent that cannot go on without an answer.
pub const QUESTION: &str = "QUESTION:";
/// The beginning of what an agent says of the answer that counts when nobody gives one in time.
const DEFAULT: &str = "(default:";
/// The beginning of the last line of an agent that could not do the task.
pub const FAILED: &str = "FAILED:";

/// The question of an agent without what it says of a default, and that: `Which colour? (default: blue after 10m)`.
#[must_use]
pub fn split_default(question: &str) -> (String, Option<DefaultAnswer>) {
    let unchanged = || (question.to_owned(), None);
    let Some((asked, said)) = question.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once(DEFAULT)) else {
        return unchanged();
    };
    let Some((answer, after)) = said.rsplit_once(" after ") else { return unchanged() };
    let (asked, answer) = (asked.trim(), answer.trim());
    match time(after.trim()) {
        Some(after_ms) if !asked.is_empty() && !answer.is_empty() => {
            (asked.to_owned(), Some(DefaultAnswer { answer: answer.to_owned(), after_ms }))
        }
        Some(_) | None => unchanged(),
    }
}

/// Milliseconds, more than none: `90s`, `10m`, `2h`, `1d`.
fn time(typed: &str) -> Option<u64> {
    let at = typed.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = typed.split_at(at);
    let unit = match unit.trim() {
        "ms" => 1,
        "s" | "sec" | "seconds" => 1_000,
        "m" | "min" | "minutes" => 60_000,
        "h" | "hours" => 3_600_000,
        "d" | "days" => 86_400_000,
        _another_word => return None,
    };
    // An answer that needs no time would be no question.
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|after_ms| *after_ms > 0)
}

/// What an agent is told: what the plan tells all of them, the task, all that belongs to it, then how to answer.
#[must_use]
pub fn prompt(parameters: &Parameters) -> String {
    let mut text = String::new();
    if !parameters.system_prompt.trim().is_empty() {
        push(&mut text, parameters.system_prompt.trim_end());
        text.push('\n');
    }
    push(&mut text, &format!("# Your task\n\n{}", parameters.description.trim_end()));
    list(&mut text, "Notes", parameters.notes.iter().cloned());
    list(&mut text, "Files to work on", parameters.files.iter().cloned());
    let is_listed = |attachment: &&Attachment| matches!(&attachment.kind, AttachmentKind::FileRef(path) if parameters.files.contains(path));
    let others = parameters.attachments.iter().filter(|attachment| !is_listed(attachment));
    let attachments = others.map(|attachment| {
        let (kind, reference) = match &attachment.kind {
            AttachmentKind::Link(reference) => ("link", reference),
            AttachmentKind::ImageRef(reference) => ("image", reference),
            AttachmentKind::FileRef(reference) => ("file", reference),
            AttachmentKind::EmbeddingRef(reference) => ("embedding", reference),
            AttachmentKind::ScreenshotRef(reference) => ("screenshot", reference),
        };
        let label = attachment.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
        format!("{kind}: {reference}{label}")
    });
    list(&mut text, "Attachments", attachments);
    if !parameters.earlier.is_empty() {
        text.push_str(&earlier_section(&parameters.earlier));
    }
    let answers = parameters.answers.iter().map(|answered| format!("{}\n  -> {}", answered.question, answered.answer));
    list(&mut text, "Answers that people gave", answers);
    text.extend(parameters.results.iter().map(result_section));
    if !parameters.context.is_empty() {
        text.push_str(&context_section(&parameters.context));
    }
    section(&mut text, "How to answer");
    push(
        &mut text,
        "Do this task and no other. What you print is its result, and others build on it: say what you did and what \
         they need to know.",
    );
    push(&mut text, &format!("If only a person can say how to go on, end with one line: {QUESTION} and what you ask."));
    push(&mut text, "Where you can go on without an answer after a while, end it so: (default: ANSWER after 10m)");
    push(&mut text, &format!("If it cannot be done, end with one line: {FAILED} and why."));
    text
}

/// What is said of the attempts before this one.
pub(crate) fn earlier_section(earlier: &[String]) -> String {
    let mut text = String::new();
    section(&mut text, "What was tried before");
    earlier.iter().for_each(|said| push(&mut text, &format!("- {said}")));
    text
}

/// What is said of the result of another task.
pub(crate) fn result_section(result: &TaskResult) -> String {
    let mut text = String::new();
    section(&mut text, &format!("Result of task {}: {}", result.task, first_line(&result.description)));
    push(&mut text, result.result.trim_end());
    text
}

/// What is said of the plan.
pub(crate) fn context_section(context: &str) -> String {
    let mut text = String::new();
    section(&mut text, "The plan so far");
    push(&mut text, context.trim_end());
    text
}

fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        section(text, title);
    }
    for item in items {
        push(text, &format!("- {item}"));
    }
}

fn section(text: &mut String, title: &str) {
    write!(text, "\n## {title}\n\n").expect("a string takes all");
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
