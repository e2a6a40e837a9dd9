//! The protocol for an agent's last line of output, by which it asks a question or reports a failure.

use crate::plan::DefaultAnswer;

/// The beginning of the last line of an agent that needs an answer to continue.
pub const QUESTION: &str = "QUESTION:";
/// The beginning of the last line of an agent that could not do the task.
pub const FAILED: &str = "FAILED:";
/// The prefix of a default answer in an agent's question.
const DEFAULT: &str = "(default:";

/// The section of the prompt that explains the protocol.
pub(super) fn section() -> String {
    format!(
        "\n## How to answer\n\n\
         Do only this task. Your output is its result, and later tasks build on it: report what \
         you did and what they need to know.\nIf only a person can decide how to continue, end with one line: {QUESTION} followed by \
         your question.\n\
         To continue without an answer after some time, append: (default: ANSWER after 10m)\nIf the task cannot be done, end with one line: {FAILED} followed by the reason.\n"
    )
}

/// Splits an agent's question into the question and its default answer: `Which colour? (default: blue after 10m)`.
pub fn split_default(question: &str) -> (String, Option<DefaultAnswer>) {
    let parts = question.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once(DEFAULT));
    let parts = parts.filter(|(asked, _)| !asked.trim().is_empty());
    match parts.and_then(|(asked, default)| Some((asked, DefaultAnswer::read(default)?))) {
        Some((asked, default)) => (asked.trim().to_owned(), Some(default)),
        None => (question.to_owned(), None),
    }
}
