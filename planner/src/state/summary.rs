//! The summary of a plan's history and the events since; both decide when the context is compacted.

use std::collections::BTreeSet;

use crate::event::{Summaries, TaskStatus};
use crate::plan::TaskId;
use crate::state::PlannerState;
use crate::task::Task;
use crate::text::{n_chars, single_line};

/// The most characters of a history line.
pub(crate) const LINE_CHARS_MAX: usize = 240;
/// The most characters of a task's name in a line.
pub(crate) const NAME_CHARS_MAX: usize = 40;
/// The most characters of a description or a question in a line.
pub(crate) const SUBJECT_CHARS_MAX: usize = 110;
/// The most characters of a result or an error that a line is made from.
pub(crate) const OUTCOME_CHARS_MAX: usize = 160;
/// Room in a line for the status, the punctuation and the line break.
const FRAME_CHARS: usize = 18;

/// An event with a line in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    /// A task ended: its index.
    Ended(usize),
    /// A question was answered: its index.
    Answered(usize),
}

/// The summary, and the entries since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    pub(crate) text: String,
    /// The entries since, in order, each with the most characters of its line.
    since: Vec<(Entry, usize)>,
    /// Characters of the summary and of all lines since.
    n_chars: usize,
    /// The summary requested from a model.
    pub(crate) requested: Option<Requested>,
    /// The last event that the summary covers.
    pub(crate) covered: u64,
}

/// A summary requested from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requested {
    /// The tasks that it has to cover.
    pub(crate) task_ids: Vec<TaskId>,
    /// The last event that it will cover.
    pub(crate) at: u64,
}

impl Summary {
    /// The entries since the summary, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.since.iter().map(|(entry, _)| *entry)
    }

    fn add(&mut self, entry: Entry, name: &str, subject: &str, outcome: &str) {
        let n_chars = [(name, NAME_CHARS_MAX), (subject, SUBJECT_CHARS_MAX), (outcome, OUTCOME_CHARS_MAX)];
        let n_chars = n_chars.iter().map(|(text, max)| text.chars().take(*max).count()).sum::<usize>() + FRAME_CHARS;
        self.since.push((entry, n_chars.min(LINE_CHARS_MAX + 1)));
        self.n_chars += n_chars.min(LINE_CHARS_MAX + 1);
    }

    fn keep(&mut self, is_kept: impl Fn(Entry) -> bool) {
        self.since.retain(|(entry, _)| is_kept(*entry));
        self.count();
    }

    fn count(&mut self) {
        let text = if self.text.is_empty() { 0 } else { n_chars(&self.text) + 1 };
        self.n_chars = text + self.since.iter().map(|(_, n_chars)| n_chars).sum::<usize>();
    }
}

impl PlannerState {
    /// The characters of the plan's history: of the summary and of the lines since.
    pub fn history_chars(&self) -> usize {
        self.summary.n_chars
    }

    /// True while a model is asked for a summary.
    pub fn wants_summary(&self) -> bool {
        self.summary.requested.is_some()
    }

    pub(super) fn note_end(&mut self, index: usize) {
        self.tasks[index].ended_by = self.n_events;
        let Task { plan, result, error, .. } = &self.tasks[index];
        let outcome = result.as_ref().or(error.as_ref()).map_or("", String::as_str);
        self.summary.add(Entry::Ended(index), &plan.name(), &plan.description, outcome);
    }

    pub(super) fn note_answer(&mut self, place: usize) {
        let question = &self.questions[place];
        let Some(asker) = self.task(question.task) else { return };
        let (name, answer) = (asker.plan.name(), question.answer.clone().unwrap_or_default());
        let subject = question.question.clone();
        self.summary.add(Entry::Answered(place), &name, &subject, &answer);
    }

    /// Replaces the last summary, the lines of these tasks and those of all answers by a new summary.
    pub(super) fn summarize(&mut self, text: &str, removed: &[TaskId], covered: u64) {
        let removed = removed.iter().filter_map(|id| self.index(*id)).map(Entry::Ended).collect::<BTreeSet<_>>();
        text.clone_into(&mut self.summary.text);
        (self.summary.covered, self.summary.requested) = (covered, None);
        self.summary.keep(|entry| matches!(entry, Entry::Ended(_)) && !removed.contains(&entry));
    }

    /// Removes the lines of reopened tasks from the history; a model's summary, which may mention them, gets a note.
    pub(super) fn retract(&mut self, reopened: &BTreeSet<usize>) {
        let since = self.summary.entries().collect::<BTreeSet<_>>();
        let tasks = |index: &usize| &self.tasks[*index];
        let summarized = reopened.iter().filter(|index| !since.contains(&Entry::Ended(**index))).map(tasks);
        let names = |task: &Task| single_line(&task.plan.name(), NAME_CHARS_MAX);
        let begins = summarized.clone().map(|task| match task.status {
            TaskStatus::Completed => [format!("{} done: ", names(task)), format!("Decided in {}: ", names(task))],
            status => [format!("{} {}: ", names(task), status.words()), String::new()],
        });
        let begins = begins.flatten().filter(|begin| !begin.is_empty()).collect::<BTreeSet<_>>();
        let is_retracted = |line: &&str| line.find(": ").is_some_and(|at| begins.contains(&line[..at + 2]));
        let mut kept = self.summary.text.lines().filter(|line| !is_retracted(line)).collect::<Vec<_>>();
        let note = single_line(&summarized.map(names).collect::<Vec<_>>().join(", "), LINE_CHARS_MAX);
        let note = format!("(reopened; ignore the above for: {note})");
        if self.config.summaries == Summaries::Model && !begins.is_empty() && !kept.is_empty() {
            kept.push(&note);
        }
        self.summary.text = kept.join("\n");
        // A pending request to a model contains tasks that are no longer valid.
        let is_asked = |id: &TaskId| self.index(*id).is_some_and(|index| reopened.contains(&index));
        if self.summary.requested.as_ref().is_some_and(|requested| requested.task_ids.iter().any(is_asked)) {
            self.summary.requested = None;
        }
        self.summary.keep(|entry| !matches!(entry, Entry::Ended(index) if reopened.contains(&index)));
    }
}
