//! What has happened in a plan, as the lines that would be told of it. It only remembers: how much of it is told is for
//! [`crate::context`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::brevity::{fits, in_a_line, n_chars, shorten};
use crate::condense::{Sort, condense};
use crate::event::{Profile, Summaries, TaskStatus};
use crate::plan::{NodeKind, TaskId, TaskPlan};
use crate::task::{Question, Task};

/// What one task or answer may say of itself, in characters.
const LINE_CHARS_MAX: usize = 240;
/// What such a line may take for what was to be done, or was asked; the rest is for what came of it.
const SUBJECT_CHARS_MAX: usize = 110;
/// What it takes for what came of a task is chosen from so many characters of it.
const OUTCOME_CHARS_MAX: usize = 160;
/// What it may take for the name of the task.
const NAME_CHARS_MAX: usize = 40;
/// With this begins the line of a decision.
const DECIDED: &str = "Decided in ";
/// With this begins the line that takes back what a summary says of tasks.
const VOID: &str = "(opened again, so what is said of them above no longer holds: ";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// A task ended: its place.
    End(usize),
    /// A question was answered: its place.
    Answer(usize),
}

/// What is told first when not all can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Decision,
    Failure,
    Work,
    Rest,
}

pub(crate) const RANKS: [Rank; 4] = [Rank::Decision, Rank::Failure, Rank::Work, Rank::Rest];

/// What has happened in a plan, as far as it still holds, and how much of it would be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Past {
    pub(crate) summary: String,
    /// The tasks for which a model was asked for a summary that has not come.
    pub(crate) requested: Option<Vec<TaskId>>,
    /// The last event that such a summary would stand for.
    pub(crate) requested_at: u64,
    /// The last event that the summary stands for.
    pub(crate) covered: u64,
    /// Characters of the summary and of the lines that it does not stand for yet, a line's end with each.
    pub(crate) n_chars: usize,
    n_facts: u64,
    /// By fact: how it ranks, and the how-manieth it was.
    pub(crate) known: BTreeMap<Fact, (Rank, u64)>,
    /// Facts by rank, in the order in which they happened.
    pub(crate) ranked: [BTreeMap<u64, Fact>; RANKS.len()],
    /// What the summary does not stand for yet, in the order in which it happened.
    pub(crate) fresh: BTreeMap<u64, (Fact, String)>,
}

impl Past {
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// A task has ended.
    pub(crate) fn end(&mut self, index: usize, task: &Task, profile: Profile) {
        self.add(Fact::End(index), rank_of(task), line_of(task, profile));
    }

    /// A task that had ended is open again: what came of it holds no more.
    pub(crate) fn reopen(&mut self, index: usize) {
        self.remove(Fact::End(index));
    }

    /// The same of several tasks, as they were when they had ended; the summary says nothing of them any more. What somebody
    /// else wrote of them stands in words that are not known here, so that it no longer holds is said after it.
    pub(crate) fn reopen_all<'a>(&mut self, ended: impl Iterator<Item = (usize, &'a Task)>, summaries: Summaries) {
        let (mut begins, mut names) = (BTreeSet::new(), String::new());
        for (index, task) in ended {
            let is_in_summary = self.known.get(&Fact::End(index)).is_some_and(|(_, nth)| !self.fresh.contains_key(nth));
            if is_in_summary {
                begins.insert(begin_of(task));
                if fits(&names, LINE_CHARS_MAX) {
                    names.push_str(if names.is_empty() { "" } else { ", " });
                    push_name(&mut names, &task.plan);
                }
            }
            // Who was asked for a summary was told of what holds no more.
            if self.requested.as_ref().is_some_and(|asked| asked.contains(&task.plan.id)) {
                self.requested = None;
            }
            self.reopen(index);
        }
        if begins.is_empty() || self.summary.is_empty() {
            return;
        }
        let is_void = |line: &str| line.find(": ").is_some_and(|at| begins.contains(&line[..at + 2]));
        let note = format!("{VOID}{})", in_a_line(&names, LINE_CHARS_MAX));
        let note = (summaries == Summaries::Model).then_some(note);
        let kept = self.summary.lines().filter(|line| !is_void(line) && note.as_deref() != Some(*line));
        let summary = kept.chain(note.as_deref()).collect::<Vec<_>>().join("\n");
        let size = |summary: &str| if summary.is_empty() { 0 } else { n_chars(summary) + 1 };
        self.n_chars = self.n_chars + size(&summary) - size(&self.summary);
        self.summary = summary;
    }

    /// A question was answered that is no task of its own.
    pub(crate) fn answer(&mut self, place: usize, question: &Question, asker: &Task) {
        self.add(Fact::Answer(place), Rank::Decision, decision(question, asker));
    }

    fn add(&mut self, fact: Fact, rank: Rank, line: String) {
        self.remove(fact);
        self.n_facts += 1;
        self.n_chars += n_chars(&line) + 1;
        self.known.insert(fact, (rank, self.n_facts));
        self.ranked[rank as usize].insert(self.n_facts, fact);
        self.fresh.insert(self.n_facts, (fact, line));
    }

    fn remove(&mut self, fact: Fact) {
        let Some((rank, nth)) = self.known.remove(&fact) else { return };
        self.ranked[rank as usize].remove(&nth);
        if let Some((_, line)) = self.fresh.remove(&nth) {
            self.n_chars -= n_chars(&line) + 1;
        }
    }

    /// A model is asked for a summary of these tasks, and of all up to an event.
    pub(crate) fn request(&mut self, task_ids: &[TaskId], up_to: u64) {
        (self.requested, self.requested_at) = (Some(task_ids.to_vec()), up_to);
    }

    /// The summary stands from now on for these tasks, and for every answer until now.
    pub(crate) fn compact(&mut self, summary: &str, ended: impl Iterator<Item = usize>) {
        for index in ended {
            if let Some((_, nth)) = self.known.get(&Fact::End(index)) {
                self.fresh.remove(nth);
            }
        }
        self.fresh.retain(|_, (fact, _)| matches!(fact, Fact::End(_)));
        self.requested = None;
        summary.clone_into(&mut self.summary);
        let lines = self.fresh.values().map(|(_, line)| line.as_str()).chain([summary]);
        self.n_chars = lines.filter(|line| !line.is_empty()).map(|line| n_chars(line) + 1).sum();
    }

    /// The summary, then what it does not stand for yet.
    pub(crate) fn text(&self) -> String {
        let lines = self.fresh.values().map(|(_, line)| line.as_str());
        let lines = [self.summary.as_str()].into_iter().chain(lines).filter(|line| !line.is_empty());
        lines.fold(String::new(), |text, line| text + line + "\n")
    }
}

fn rank_of(task: &Task) -> Rank {
    match (task.plan.kind, task.status) {
        (NodeKind::Clarification, TaskStatus::Completed) => Rank::Decision,
        (_, TaskStatus::Failed | TaskStatus::TimedOut) => Rank::Failure,
        (_, TaskStatus::Completed) => Rank::Work,
        (
            _,
            TaskStatus::Cancelled
            | TaskStatus::Skipped
            | TaskStatus::Planned
            | TaskStatus::Running
            | TaskStatus::NeedsClarification,
        ) => Rank::Rest,
    }
}

/// True of a line that is told before others.
pub(crate) fn is_decision(line: &str) -> bool {
    line.starts_with(DECIDED)
}

/// An ended task in a line.
pub(crate) fn line_of(task: &Task, profile: Profile) -> String {
    let outcome = match (&task.result, &task.error) {
        (Some(result), _) => condense(result, OUTCOME_CHARS_MAX, Sort::Result(profile)),
        (None, Some(error)) => condense(error, OUTCOME_CHARS_MAX, Sort::Error),
        (None, None) => Cow::Borrowed(""),
    };
    say(begin_of(task), &task.plan.description, &outcome)
}

/// How the line of an ended task begins: who, and how it ended.
fn begin_of(task: &Task) -> String {
    let is_decision = rank_of(task) == Rank::Decision;
    let mut line = String::with_capacity(LINE_CHARS_MAX);
    line.push_str(if is_decision { DECIDED } else { "" });
    push_name(&mut line, &task.plan);
    if !is_decision {
        line.push(' ');
        line.push_str(task.status.as_str());
    }
    line + ": "
}

pub(crate) fn decision(question: &Question, asker: &Task) -> String {
    let mut line = DECIDED.to_owned();
    push_name(&mut line, &asker.plan);
    line.push_str(": ");
    say(line, &question.question, question.answer.as_deref().unwrap_or_default())
}

fn push_name(line: &mut String, task: &TaskPlan) {
    match &task.label {
        Some(label) => line.push_str(&in_a_line(label, NAME_CHARS_MAX)),
        None => write!(line, "{}", task.id).expect("a string takes all"),
    }
}

/// The line that so begins, with what was to be done, or was asked, and what came of it.
fn say(mut line: String, what: &str, outcome: &str) -> String {
    line.push_str(&in_a_line(what, SUBJECT_CHARS_MAX));
    let room = LINE_CHARS_MAX.saturating_sub(n_chars(&line) + " -> ".len());
    let outcome = in_a_line(outcome, room);
    if !outcome.is_empty() {
        line.push_str(" -> ");
        line.push_str(&outcome);
    }
    if fits(&line, LINE_CHARS_MAX) { line } else { shorten(&line, LINE_CHARS_MAX) }
}
