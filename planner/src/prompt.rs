//! The words in which a coding agent is told of a task: pure text from what its dispatch says.

use crate::brevity::n_chars;
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
    tell(&mut text, parameters);
    text
}

/// The characters of a prompt.
pub(crate) fn n_chars_of(parameters: &Parameters) -> usize {
    let mut count = Count(0);
    tell(&mut count, parameters);
    count.0
}

/// The characters of what is said of the attempts before this one.
pub(crate) fn n_chars_of_earlier(earlier: &[String]) -> usize {
    let mut count = Count(0);
    tell_earlier(&mut count, earlier);
    count.0
}

/// The characters of what is said of the result of another task.
pub(crate) fn n_chars_of_result(result: &TaskResult) -> usize {
    let mut count = Count(0);
    tell_result(&mut count, result);
    count.0
}

/// The characters of what is said of the plan.
pub(crate) fn n_chars_of_context(context: &str) -> usize {
    let mut count = Count(0);
    tell_context(&mut count, context);
    count.0
}

/// What takes words: a text, or a count of their characters.
trait Words {
    fn say(&mut self, words: &str);
}

impl Words for String {
    fn say(&mut self, words: &str) {
        self.push_str(words);
    }
}

/// Characters that a text would have.
struct Count(usize);

impl Words for Count {
    fn say(&mut self, words: &str) {
        self.0 += n_chars(words);
    }
}

fn tell(text: &mut impl Words, parameters: &Parameters) {
    if !parameters.system_prompt.trim().is_empty() {
        text.say(parameters.system_prompt.trim_end());
        text.say("\n\n");
    }
    text.say("# Your task\n\n");
    text.say(parameters.description.trim_end());
    text.say("\n");
    list(text, "Notes", parameters.notes.iter(), |text, note| text.say(note));
    list(text, "Files to work on", parameters.files.iter(), |text, file| text.say(file));
    let is_listed = |attachment: &&Attachment| matches!(&attachment.kind, AttachmentKind::FileRef(path) if parameters.files.contains(path));
    let others = parameters.attachments.iter().filter(|attachment| !is_listed(attachment));
    list(text, "Attachments", others, |text, attachment| {
        let (kind, reference) = match &attachment.kind {
            AttachmentKind::Link(reference) => ("link: ", reference),
            AttachmentKind::ImageRef(reference) => ("image: ", reference),
            AttachmentKind::FileRef(reference) => ("file: ", reference),
            AttachmentKind::EmbeddingRef(reference) => ("embedding: ", reference),
            AttachmentKind::ScreenshotRef(reference) => ("screenshot: ", reference),
        };
        text.say(kind);
        text.say(reference);
        if let Some(label) = &attachment.label {
            [" (", label, ")"].into_iter().for_each(|words| text.say(words));
        }
    });
    if !parameters.earlier.is_empty() {
        tell_earlier(text, &parameters.earlier);
    }
    list(text, "Answers that people gave", parameters.answers.iter(), |text, answered| {
        [&*answered.question, "\n  -> ", &answered.answer].into_iter().for_each(|words| text.say(words));
    });
    parameters.results.iter().for_each(|result| tell_result(text, result));
    if !parameters.context.is_empty() {
        tell_context(text, &parameters.context);
    }
    section(text, "How to answer");
    text.say(
        "Do this task and no other. What you print is its result, and others build on it: say what you did and what \
         they need to know.\nIf only a person can say how to go on, end with one line: ",
    );
    text.say(QUESTION);
    text.say(
        " and what you ask.\nWhere you can go on without an answer after a while, end it so: (default: ANSWER after \
         10m)\nIf it cannot be done, end with one line: ",
    );
    text.say(FAILED);
    text.say(" and why.\n");
}

fn tell_earlier(text: &mut impl Words, earlier: &[String]) {
    section(text, "What was tried before");
    for said in earlier {
        ["- ", said, "\n"].into_iter().for_each(|words| text.say(words));
    }
}

fn tell_result(text: &mut impl Words, result: &TaskResult) {
    text.say("\n## Result of task ");
    text.say(&result.task.to_string());
    text.say(": ");
    text.say(first_line(&result.description));
    text.say("\n\n");
    text.say(result.result.trim_end());
    text.say("\n");
}

fn tell_context(text: &mut impl Words, context: &str) {
    section(text, "The plan so far");
    text.say(context.trim_end());
    text.say("\n");
}

fn list<W: Words, T>(text: &mut W, title: &str, items: impl Iterator<Item = T>, say: impl Fn(&mut W, T)) {
    for (nth, item) in items.enumerate() {
        if nth == 0 {
            section(text, title);
        }
        text.say("- ");
        say(text, item);
        text.say("\n");
    }
}

fn section(text: &mut impl Words, title: &str) {
    ["\n## ", title, "\n\n"].into_iter().for_each(|words| text.say(words));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
