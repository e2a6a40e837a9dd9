//! The words in which a coding agent is told of a task: pure text from what its dispatch says.

use std::fmt::Write;

use crate::event::Parameters;
use crate::plan::AttachmentKind;

/// The beginning of the last line of an agent that cannot go on without an answer.
pub const QUESTION: &str = "QUESTION:";
/// The beginning of the last line of an agent that could not do the task.
pub const FAILED: &str = "FAILED:";

/// What an agent is told: the task first, then all that belongs to it, then how to answer.
#[must_use]
pub fn prompt(parameters: &Parameters) -> String {
    let mut text = format!("# Your task\n\n{}\n", parameters.description.trim_end());
    list(&mut text, "Notes", parameters.notes.iter().cloned());
    list(&mut text, "Files to work on", parameters.files.iter().cloned());
    let attachments = parameters.attachments.iter().map(|attachment| {
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
    let answers = parameters.answers.iter().map(|answered| format!("{}\n  -> {}", answered.question, answered.answer));
    list(&mut text, "Answers that people gave", answers);
    for result in &parameters.results {
        section(&mut text, &format!("Result of task {}: {}", result.task, first_line(&result.description)));
        push(&mut text, result.result.trim_end());
    }
    if !parameters.context.is_empty() {
        section(&mut text, "The plan so far");
        push(&mut text, parameters.context.trim_end());
    }
    section(&mut text, "How to answer");
    push(
        &mut text,
        "Do this task and no other. What you print is its result, and others build on it: say what you did and what \
         they need to know.",
    );
    push(&mut text, &format!("If only a person can say how to go on, end with one line: {QUESTION} and what you ask."));
    push(&mut text, &format!("If it cannot be done, end with one line: {FAILED} and why."));
    text
}

fn list(text: &mut String, title: &str, items: impl ExactSizeIterator<Item = String>) {
    if items.len() > 0 {
        section(text, title);
        for item in items {
            push(text, &format!("- {item}"));
        }
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
