//! Keeps a plan's history: adds lines, and removes those that a summary covers or a retry undoes.

use std::collections::BTreeSet;

use crate::event::{Summaries, TaskStatus};
use crate::plan::TaskId;
use crate::state::PlannerState;
use crate::state::summary::{Entry, LINE_CHARS_MAX, NAME_CHARS_MAX};
use crate::task::Task;
use crate::text::single_line;

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
