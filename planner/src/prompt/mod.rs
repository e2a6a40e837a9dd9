//! The prompt of a task, rendered from the plan's fold when a worker is about to claim it.

mod compaction;
mod excerpt;
mod reply;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::event::{Answered, Purpose, TaskStatus};
use crate::plan::{Attachment, AttachmentKind, NodeKind};
use crate::state::{Entry, NAME_CHARS_MAX, PlannerState};
use crate::task::{FAILED_ATTEMPTS_MAX, FailedAttempt, Task};
use crate::text::{CHARS_PER_TOKEN, equal_share, n_chars, single_line, truncate};
pub use compaction::{HARD_PERCENT, SOFT_PERCENT, SUMMARY_PERCENT, TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN, history};
pub(crate) use compaction::{compact, due, is_within_budget};
pub use excerpt::{Content, error_lines, excerpt, headline, quoted};
pub use reply::{FAILED, QUESTION, split_default};

/// The most open tasks, and the most open questions, in a prompt.
pub const OPEN_MAX: usize = 100;

/// The minimum of an error or a result in characters, including its heading; below that it is omitted.
const OUTPUT_CHARS_MIN: usize = 240;
/// The most characters of a task's description in a heading or a line.
const SUBJECT_CHARS_MAX: usize = 120;
/// The minimum of the plan's own section in characters; below that it is omitted.
const CONTEXT_CHARS_MIN: usize = 100;

/// The prompt of a dispatched task; `None` for a command or a question.
///
/// The task, its notes and its answers are never shortened. The rest of the token budget is divided: failed attempts
/// get up to a third, direct dependencies up to two thirds of the remainder, the plan all that is left.
pub fn render(state: &PlannerState, task: &Task) -> Option<String> {
    if task.plan.command.is_some() || task.plan.kind == NodeKind::Clarification {
        return None;
    }
    let places = state.answers_for(state.index(task.plan.id)?);
    let answers = state.answered(&places);
    let answered = answers.iter().map(|answered| format!("{}\n  -> {}", answered.question, answered.answer));
    let (head, answered, reply) = (head(state, task), list("Answers from people", answered), reply::section());
    let fixed = [&head, &answered, &reply].into_iter().map(|text| n_chars(text)).sum::<usize>();
    let mut left = state.config.token_budget.saturating_mul(CHARS_PER_TOKEN).saturating_sub(fixed);
    let attempts = attempts_section(task, left / 3);
    left = left.saturating_sub(n_chars(&attempts));
    let (results, shown) = results_section(state, task, &answers, left / 3 * 2);
    left = left.saturating_sub(n_chars(&results));
    let told = places.iter().filter_map(|place| match state.questions[*place].purpose {
        Purpose::Task => state.index(state.questions[*place].task).map(Entry::Ended),
        Purpose::Executor | Purpose::Condition | Purpose::Failure => Some(Entry::Answered(*place)),
    });
    let told = shown.iter().filter_map(|before| state.index(before.plan.id)).map(Entry::Ended).chain(told);
    let told = told.map(|entry| compaction::line(state, entry)).collect();
    let plan = plan_section(state, task, &told, left);
    Some([head, attempts, answered, results, plan, reply].concat())
}

/// The system prompt and the task itself.
fn head(state: &PlannerState, task: &Task) -> String {
    let mut text = String::new();
    let system_prompt = state.config.system_prompt.trim_end();
    if !system_prompt.trim().is_empty() {
        text = format!("{system_prompt}\n\n");
    }
    text += &format!("# Your task\n\n{}\n", task.plan.description.trim_end());
    text += &list("Notes", task.plan.notes.iter().cloned());
    text += &list("Files to work on", task.plan.files.iter().cloned());
    let is_listed = |attachment: &&Attachment| matches!(&attachment.kind, AttachmentKind::FileRef(path) if task.plan.files.contains(path));
    let attachments = task.plan.attachments.iter().filter(|attachment| !is_listed(attachment)).map(|attachment| {
        let (kind, reference) = attachment.kind.parts();
        let label = attachment.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
        format!("{kind}: {reference}{label}")
    });
    text + &list("Attachments", attachments)
}

/// The errors of earlier attempts, the newest if not all fit.
fn attempts_section(task: &Task, room: usize) -> String {
    const LEFT_OUT: &str = "(older attempts are omitted)";
    let frame = n_chars(&section("Earlier attempts")) + n_chars(LEFT_OUT) + "- \n".len();
    let Some(room) = room.checked_sub(frame) else { return String::new() };
    let known = &task.failed_attempts;
    let shown = &known[known.len() - known.len().min(room / OUTPUT_CHARS_MIN)..];
    let headings = shown.iter().map(|attempt| {
        let how = match attempt.status {
            TaskStatus::Cancelled => "was cancelled",
            TaskStatus::TimedOut => "timed out",
            _failed => "failed",
        };
        format!("Attempt {} {how}:\n", attempt.attempt)
    });
    let headings = headings.collect::<Vec<_>>();
    let taken = headings.iter().map(|heading| n_chars(heading) + "- \n".len()).sum::<usize>();
    let quote = |attempt: &FailedAttempt, limit| quoted(&attempt.error, limit, Content::Error);
    let limit =
        equal_share(shown.iter().map(|attempt| n_chars(&quote(attempt, usize::MAX))), room.saturating_sub(taken));
    let lines = shown.iter().zip(headings);
    let lines = lines.map(|(attempt, heading)| heading + &quote(attempt, limit));
    let is_all = shown.len() == known.len() && known.len() < FAILED_ATTEMPTS_MAX;
    let left_out = (!shown.is_empty() && !is_all).then(|| LEFT_OUT.to_owned());
    list("Earlier attempts", left_out.into_iter().chain(lines))
}

/// The results of direct dependencies, and their tasks: the last ones that fit into `room`, short ones whole, long ones
/// cut to equal shares. Answers appear elsewhere and are left out.
fn results_section<'a>(
    state: &'a PlannerState,
    task: &Task,
    answers: &[Answered],
    room: usize,
) -> (String, Vec<&'a Task>) {
    let is_answer = |before: &Task| {
        let result = before.result.as_ref();
        answers.iter().any(|answered| answered.task == before.plan.id && Some(&answered.answer) == result)
    };
    let before = task.plan.depends_on.iter().rev().filter_map(|before| state.task(before.task));
    let done = before.filter(|before| before.status == TaskStatus::Completed && !is_answer(before));
    let mut shown = done.take(room / OUTPUT_CHARS_MIN).collect::<Vec<_>>();
    shown.reverse();
    let with_heading = |before: &&Task, result: &str| {
        let first = single_line(before.plan.description.lines().next().unwrap_or_default(), SUBJECT_CHARS_MAX);
        let name = single_line(&before.plan.name(), NAME_CHARS_MAX);
        format!("{}{result}\n", section(&format!("Result of task {name}: {first}")))
    };
    let result_of = |before: &&'a Task| before.result.as_deref().unwrap_or_default().trim_end();
    let taken = shown.iter().map(|before| n_chars(&with_heading(before, ""))).sum::<usize>();
    let quote = |before, limit| quoted(result_of(before), limit, Content::Result(state.config.profile));
    let limit = equal_share(shown.iter().map(|before| n_chars(&quote(before, usize::MAX))), room.saturating_sub(taken));
    let texts = shown.iter().map(|before| with_heading(before, &quote(before, limit)));
    (texts.collect(), shown)
}

/// A part of the plan's section.
struct PromptPart {
    title: &'static str,
    lines: Vec<String>,
    /// The number of lines that are only counted.
    n_more: usize,
    /// Shortens lines that do not fit, with their uncounted rest.
    fit: fn(Vec<String>, usize, usize) -> Vec<String>,
}

/// The plan: its title and context, the history not yet in the prompt, and the open tasks and questions.
fn plan_section(state: &PlannerState, task: &Task, told: &BTreeSet<String>, room: usize) -> String {
    let heading = section("The plan so far");
    let Some(room) = room.checked_sub(n_chars(&heading)).filter(|room| *room >= CONTEXT_CHARS_MIN) else {
        return String::new();
    };
    let about = state.title.iter().chain(&state.context).map(|text| text.trim()).filter(|text| !text.is_empty());
    let about = about.collect::<Vec<_>>().join("\n");
    let about = if about.is_empty() { Vec::new() } else { vec![about] };
    let done = compaction::lines(state).into_iter().filter(|line| !told.contains(line)).collect();
    let (tasks, n_more_tasks) = open_tasks(state, task);
    let (questions, n_more_questions) = open_questions(state);
    let truncated = |lines: Vec<String>, _, limit: usize| vec![truncate(&lines.join("\n"), limit.saturating_sub(1))];
    let newest = |lines, _, limit| compaction::fit(lines, limit);
    let parts = [
        PromptPart { title: "", lines: about, n_more: 0, fit: truncated },
        PromptPart { title: "Done and decided so far:\n", lines: done, n_more: 0, fit: newest },
        PromptPart { title: "Other open tasks (not yours):\n", lines: tasks, n_more: n_more_tasks, fit: first_lines },
        PromptPart { title: "Open questions:\n", lines: questions, n_more: n_more_questions, fit: first_lines },
    ];
    let parts = parts.into_iter().filter(|part| !part.lines.is_empty()).collect::<Vec<_>>();
    let titles = parts.iter().map(|part| n_chars(part.title) + 1).sum::<usize>();
    let room = room.saturating_sub(titles);
    let limit = equal_share(parts.iter().map(PromptPart::n_chars), room).min(room);
    let parts = parts.into_iter().map(|part| part.text(limit)).filter(|text| !text.is_empty()).collect::<Vec<_>>();
    if parts.is_empty() { String::new() } else { heading + &parts.join("\n") }
}

impl PromptPart {
    fn n_chars(&self) -> usize {
        let more = if self.n_more > 0 { n_chars(&more(self.n_more)) + 1 } else { 0 };
        self.lines.iter().map(|line| n_chars(line) + 1).sum::<usize>() + more
    }

    /// The part with its title, if its lines have at most `limit` characters.
    fn text(mut self, limit: usize) -> String {
        if self.n_chars() > limit || self.n_more > 0 {
            self.lines = (self.fit)(self.lines, self.n_more, limit);
        }
        let lines = self.lines.into_iter().filter(|line| !line.is_empty()).map(|line| line + "\n").collect::<String>();
        if lines.is_empty() { lines } else { self.title.to_owned() + &lines }
    }
}

/// The lines of the other open tasks, those after this one first, and how many more there are.
fn open_tasks(state: &PlannerState, task: &Task) -> (Vec<String>, usize) {
    let open = state.tasks.iter().filter(|other| !other.status.is_end() && other.plan.id != task.plan.id);
    let mut open = open.collect::<Vec<_>>();
    let n_before = open.partition_point(|other| other.plan.id < task.plan.id);
    open.rotate_left(n_before);
    let lines = open.iter().take(OPEN_MAX).map(|other| {
        let (name, status) = (single_line(&other.plan.name(), SUBJECT_CHARS_MAX), other.status.words());
        format!("- {name} {status}: {}", single_line(&other.plan.description, SUBJECT_CHARS_MAX))
    });
    (lines.collect(), open.len().saturating_sub(OPEN_MAX))
}

fn open_questions(state: &PlannerState) -> (Vec<String>, usize) {
    let lines = state.open_questions().take(OPEN_MAX).map(|question| {
        let asker = state.task(question.task).map_or_else(String::new, |asker| asker.plan.name());
        let [asker, text] = [&asker, &question.question].map(|text| single_line(text, SUBJECT_CHARS_MAX));
        format!("- {} of {asker}: {text}", question.id)
    });
    (lines.collect(), state.open.len().saturating_sub(OPEN_MAX))
}

fn more(n: usize) -> String {
    format!("(and {n} more)")
}

/// The first lines that fit, and a count of the others.
fn first_lines(mut lines: Vec<String>, n_more: usize, room: usize) -> Vec<String> {
    let n_all = lines.len() + n_more;
    let Some(mut left) = room.checked_sub(n_chars(&more(n_all)) + 1) else { return Vec::new() };
    let fits = |line: &&String| {
        let less = left.checked_sub(n_chars(line) + 1);
        left = less.unwrap_or(0);
        less.is_some()
    };
    let n_kept = lines.iter().take_while(fits).count();
    lines.truncate(n_kept);
    lines.push(more(n_all - n_kept));
    lines
}

fn section(title: &str) -> String {
    format!("\n## {title}\n\n")
}

fn list(title: &str, items: impl Iterator<Item = String>) -> String {
    let items = items.fold(String::new(), |mut text, item| {
        writeln!(text, "- {item}").expect("a string takes all");
        text
    });
    if items.is_empty() { items } else { section(title) + &items }
}
