//! Keeps a plan's history: adds lines, and removes those that a summary covers or a retry undoes.

use std::collections::BTreeSet;

use crate::event::TaskStatus;
use crate::plan::TaskId;
use crate::state::PlannerState;
use crate::state::summary::{Entry, NAME_CHARS_MAX};
use crate::task::Task;
use crate::text::single_line;

impl PlannerState {
    /// The characters of the plan's history: of the summary and of the lines since.
    pub fn history_chars(&self) -> usize {
        self.summary.n_chars
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
        self.summary.covered = covered;
        self.summary.keep(|entry| matches!(entry, Entry::Ended(_)) && !removed.contains(&entry));
    }

    /// Removes the lines of reopened tasks from the history.
    pub(super) fn retract(&mut self, reopened: &BTreeSet<usize>) {
        let since = self.summary.entries().collect::<BTreeSet<_>>();
        let tasks = |index: &usize| &self.tasks[*index];
        let summarized = reopened.iter().filter(|index| !since.contains(&Entry::Ended(**index))).map(tasks);
        let names = |task: &Task| single_line(&task.plan.name(), NAME_CHARS_MAX);
        let begins = summarized.map(|task| match task.status {
            TaskStatus::Completed => [format!("{} done: ", names(task)), format!("Decided in {}: ", names(task))],
            status => [format!("{} {}: ", names(task), status.words()), String::new()],
        });
        let begins = begins.flatten().filter(|begin| !begin.is_empty()).collect::<BTreeSet<_>>();
        let is_retracted = |line: &&str| line.find(": ").is_some_and(|at| begins.contains(&line[..at + 2]));
        let kept = self.summary.text.lines().filter(|line| !is_retracted(line)).collect::<Vec<_>>();
        self.summary.text = kept.join("\n");
        self.summary.keep(|entry| !matches!(entry, Entry::Ended(index) if reopened.contains(&index)));
    }
}
