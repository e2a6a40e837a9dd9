//! What the executor of a task is told: all that belongs to the task, and for an agent what came before it, within the
//! plan's token budget.
//!
//! It never shortens the task, its notes or its answers, and looks at no more of a large plan than it can tell.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::brevity::{fair_limit, fits, in_a_line, n_chars, shorten};
use crate::condense::{Sort, condense};
use crate::event::{Answered, Budget, PLANS_UNDONE_MAX, Parameters, Profile, TaskResult, TaskStatus, Undone};
use crate::parts::{Keeps, Lines, Part};
use crate::past::PastLines;
use crate::plan::{AttachmentKind, NodeKind};
use crate::prompt;
use crate::state::{PlannerState, Task};
use crate::to_do::OPEN_CHARS_MAX;

/// The most open tasks, and the most open questions, that are told.
pub const OPEN_TOLD_MAX: usize = 100;

/// Of what the task itself leaves of the budget, results take at most this many parts ...
const RESULT_PARTS: usize = 2;
/// ... of so many.
const PARTS: usize = 3;
/// A result is told when there is room for this many characters of it and its heading.
const RESULT_CHARS_MIN: usize = 240;
/// What the heading of a result says of its task.
const HEADING_CHARS_MAX: usize = 120;
/// Less room than this for the context and it is left out.
const CONTEXT_CHARS_MIN: usize = 100;

impl PlannerState {
    /// What the executor of a task is told. Of tasks without a command, which agents do, the length of
    /// [`prompt::prompt`] is at most the token budget, or what the task itself needs if that is more.
    #[must_use]
    pub fn parameters(&self, task: &Task) -> Parameters {
        let answers = self.index(task.plan.id).map(|index| self.answers_for(index)).unwrap_or_default().to_vec();
        let mut parameters = Parameters {
            label: task.plan.label.clone(),
            description: task.plan.description.clone(),
            command: task.plan.command.clone(),
            notes: task.plan.notes.clone(),
            attachments: task.plan.attachments.clone(),
            answers: answers.iter().filter_map(|place| self.answered(*place)).collect(),
            earlier: Vec::new(),
            results: Vec::new(),
            context: String::new(),
            system_prompt: String::new(),
            told_apart: false,
            assignee: task.plan.assignee.clone(),
            files: task.plan.files.clone(),
            reads_only: task.plan.reads_only,
            rerun_safe: task.plan.rerun_safe,
            timeout_ms: task.plan.timeout_ms,
            needs: self.needs(task),
            is_timed: self.config.budget.duration_ms.is_some(),
            budget: Budget::default(),
            counts_tokens: self.config.budget.tokens.is_some() && task.plan.command.is_none(),
            folder: self.config.folder.clone(),
            sub_plan: task.plan.sub_plan.clone(),
            request: task.plan.request.clone(),
            undoes: self.undone_by(task),
        };
        if task.plan.command.is_none() {
            parameters.system_prompt.clone_from(&self.config.system_prompt);
            let budget = self.gauges.n_chars(task.plan.assignee.as_deref(), self.config.token_budget);
            let mut left = budget.saturating_sub(prompt::n_chars_of(&parameters));
            if let Some(thread) = &task.thread {
                let room = (left / PARTS).saturating_sub(prompt::n_chars_of_earlier(&[]));
                parameters.earlier = thread.tell(task.plan.id, room);
                if !parameters.earlier.is_empty() {
                    left -= prompt::n_chars_of_earlier(&parameters.earlier);
                }
            }
            let shown = self.results_for(task, left / PARTS * RESULT_PARTS, &parameters.answers);
            let taken = shown.iter().map(|(_, result)| prompt::n_chars_of_result(result)).sum::<usize>();
            let room = (left - taken).saturating_sub(prompt::n_chars_of_context(""));
            let (tasks, results) = shown.into_iter().unzip::<_, _, Vec<&Task>, Vec<TaskResult>>();
            if room >= CONTEXT_CHARS_MIN {
                parameters.context = self.context_for(task, &self.past_without(&tasks, &answers), room);
            }
            parameters.results = results;
        }
        parameters
    }

    /// Of a task that undoes another which a plan of its own carried out, and has no command for that: the other.
    fn undone_by(&self, task: &Task) -> Option<Undone> {
        let undone = self.task(task.plan.compensates.filter(|_| task.plan.command.is_none())?)?;
        let (task, attempt) = (undone.plan.id, undone.attempts);
        let n_earlier = attempt.saturating_sub(1).min(PLANS_UNDONE_MAX - 1);
        undone.plan.sub_plan.is_some().then_some(Undone { task, attempt, n_earlier })
    }

    /// What a task without a command reads: images, and the files and links of a task that looks at what is there already,
    /// unless an earlier task names them too and may make them. A command says itself what it lacks.
    fn needs(&self, task: &Task) -> Vec<String> {
        if task.plan.command.is_some() {
            return Vec::new();
        }
        let reads = match task.plan.kind {
            NodeKind::Analysis | NodeKind::Retrieval | NodeKind::Refactor => true,
            NodeKind::Clarification
            | NodeKind::ToolCall
            | NodeKind::Processing
            | NodeKind::UnitTest
            | NodeKind::CodeImplementation => false,
        };
        let needs = task.plan.attachments.iter().filter_map(|attachment| match &attachment.kind {
            AttachmentKind::ImageRef(reference) | AttachmentKind::ScreenshotRef(reference) => Some(reference),
            AttachmentKind::FileRef(reference) | AttachmentKind::Link(reference) if reads => Some(reference),
            AttachmentKind::FileRef(_) | AttachmentKind::Link(_) | AttachmentKind::EmbeddingRef(_) => None,
        });
        // A glob may match nothing, and what has neither a slash nor a dot is no path but a name in some store.
        let is_place =
            |reference: &&String| reference.contains(['/', '.']) && !reference.contains(['*', '?', '[', '{']);
        let needs = needs.filter(|reference| is_link(reference) || is_place(reference));
        needs.filter(|reference| !self.is_named_before(task, reference)).cloned().collect()
    }

    fn is_named_before(&self, task: &Task, reference: &str) -> bool {
        let first = self.named.get(reference).and_then(BTreeSet::first);
        first.is_some_and(|first| self.tasks[*first].plan.id < task.plan.id)
    }

    fn answered(&self, place: usize) -> Option<Answered> {
        let question = &self.questions[place];
        let answer = question.answer.clone()?;
        let label = self.task(question.task).and_then(|asker| asker.plan.label.clone());
        Some(Answered { task: question.task, label, question: question.question.clone(), answer })
    }

    /// What came of the tasks that this one depends on; of very many the last. What is told as an answer is not told
    /// again.
    fn results_for(&self, task: &Task, room: usize, answers: &[Answered]) -> Vec<(&Task, TaskResult)> {
        let before = task.plan.depends_on.iter().rev().filter_map(|before| self.task(before.task));
        let done = before.filter(|before| {
            let is_answer = |answered: &Answered| {
                answered.task == before.plan.id && before.result.as_ref() == Some(&answered.answer)
            };
            before.status == TaskStatus::Completed && !answers.iter().any(is_answer)
        });
        let mut shown = done
            .take(room / RESULT_CHARS_MIN)
            .map(|before| {
                let first = before.plan.description.lines().next().unwrap_or_default();
                let description = in_a_line(first, HEADING_CHARS_MAX).into_owned();
                (before, TaskResult { task: before.plan.id, description, result: String::new() })
            })
            .collect::<Vec<_>>();
        shown.reverse();
        let headings = shown.iter().map(|(_, result)| prompt::n_chars_of_result(result)).sum::<usize>();
        let room = room.saturating_sub(headings);
        let lengths = shown.iter().map(|(before, _)| n_chars_up_to(result_of(before), room));
        let limit = fair_limit(lengths, room);
        for (before, result) in &mut shown {
            result.result = told_of(before, limit.min(room), self.config.profile);
        }
        shown
    }

    /// What the plan is about, what has been done, and what is open, in at most `room` characters.
    fn context_for(&self, task: &Task, past: &PastLines<'_>, room: usize) -> String {
        let (about, asked) = (self.about(room), self.asked(room));
        let index = self.index(task.plan.id).unwrap_or_default();
        let open = &self.graph.open;
        // Those after the task before the others.
        let places = open.range(index + 1..usize::MAX).chain(open.range(0..index));
        let mut to_do = self.to_do.with_room(places.take(OPEN_TOLD_MAX), room);
        // They are told in the order of the plan all the same.
        let n_after = to_do.places.partition_point(|place| *place > index);
        to_do.places.rotate_left(n_after);
        let n_to_do_more = open.len() - to_do.places.len() - usize::from(open.contains(index));
        let n_asked_more = self.open.len() - asked.len();
        let done = Part {
            title: "Done and decided so far:\n",
            n_lines: past.n_lines(),
            n_chars: past.n_chars(),
            n_more: 0,
            keeps: Keeps::Last { is_more: past.has_mark() },
            lines: past,
        };
        let still_to_do = Part {
            title: "Still to be done, and not by you:\n",
            n_lines: to_do.places.len(),
            n_chars: to_do.n_chars,
            n_more: n_to_do_more,
            keeps: Keeps::First,
            lines: &to_do,
        };
        let parts = [
            few("", &about, 0, Keeps::Beginning),
            done,
            still_to_do,
            few("Not answered yet:\n", &asked, n_asked_more, Keeps::First),
        ];
        let titles = parts.iter().filter(|part| part.n_lines > 0).map(|part| n_chars(part.title) + 2).sum::<usize>();
        let room = room.saturating_sub(titles);
        let parts = || parts.iter().filter(|part| part.n_lines > 0);
        let limit = fair_limit(parts().map(Part::n_chars), room);
        let mut text = String::with_capacity(titles + parts().map(|part| part.n_chars().min(limit)).sum::<usize>());
        parts().for_each(|part| part.tell(limit, &mut text));
        text
    }

    /// What of the text is no task.
    fn about(&self, room: usize) -> Vec<Cow<'_, str>> {
        let texts = self.title.iter().chain(&self.context).map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut lines = Vec::new();
        let mut left = room;
        for text in texts {
            let line = if fits(text, left) { Cow::Borrowed(text) } else { Cow::Owned(shorten(text, left)) };
            left = left.saturating_sub(n_chars(&line) + 1);
            lines.push(line);
            if left == 0 {
                break;
            }
        }
        lines
    }

    /// The questions that are open, as far as there is room.
    fn asked(&self, room: usize) -> Vec<Cow<'_, str>> {
        let mut left = room;
        let lines = self.open_questions().take(OPEN_TOLD_MAX).map_while(|question| {
            let asker = self.task(question.task).map_or_else(String::new, |asker| asker.plan.name());
            let asker = in_a_line(&asker, OPEN_CHARS_MAX);
            let text = in_a_line(&question.question, OPEN_CHARS_MAX);
            let line = format!("- {} of {asker}: {text}", question.id);
            left = left.checked_sub(n_chars(&line) + 1)?;
            Some(Cow::Owned(line))
        });
        lines.collect()
    }
}

/// A part of lines that were made for it.
fn few<'a>(title: &'static str, lines: &'a Vec<Cow<'_, str>>, n_more: usize, keeps: Keeps) -> Part<'a> {
    let n_chars = (0..lines.len()).filter_map(|place| lines.n_chars_at(place)).sum();
    Part { title, lines, n_lines: lines.len(), n_chars, n_more, keeps }
}

fn is_link(reference: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| reference.starts_with(scheme))
}

fn result_of(task: &Task) -> &str {
    task.result.as_deref().unwrap_or_default().trim_end()
}

/// The result of a task in at most `room` characters. Where it is longer, it says where all of it is.
fn told_of(task: &Task, room: usize, profile: Profile) -> String {
    let result = result_of(task);
    if fits(result, room) {
        return result.to_owned();
    }
    let reference =
        format!("\n(from {} characters; the log has the whole result of task {})", n_chars(result), task.plan.id);
    match room.checked_sub(n_chars(&reference)) {
        Some(room) if room >= RESULT_CHARS_MIN / 2 => {
            condense(result, room, Sort::Result(profile)).into_owned() + &reference
        }
        Some(_) | None => shorten(result, room),
    }
}

/// The characters of a text, or more than `chars_max` when it has more.
fn n_chars_up_to(text: &str, chars_max: usize) -> usize {
    const BYTES_PER_CHAR_MAX: usize = 4;
    if text.len() / BYTES_PER_CHAR_MAX > chars_max { chars_max + 1 } else { n_chars(text) }
}
