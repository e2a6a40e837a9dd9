//! How an agent says that it asks, or that it failed: in the last line that it prints.

use crate::plan::DefaultAnswer;

/// The beginning of the last line of an agent that cannot go on without an answer.
pub const QUESTION: &str = "QUESTION:";
/// The beginning of the last line of an agent that could not do the task.
pub const FAILED: &str = "FAILED:";
/// The prefix of a default answer in an agent's question.
const DEFAULT: &str = "(default:";

/// The section that explains it.
pub(super) fn section() -> String {
    format!(
        "\n## How to answer\n\n\
         Do this task and no other. What you print is its result, and others build on it: say what you did and what \
         they need to know.\nIf only a person can say how to go on, end with one line: {QUESTION} and what you ask.\n\
         Where you can go on without an answer after a while, end it so: (default: ANSWER after 10m)\nIf it cannot be \
         done, end with one line: {FAILED} and why.\n"
    )
}

/// Splits an agent's question into the question and its default answer: `Which colour? (default: blue after 10m)`.
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
