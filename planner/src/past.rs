//! What has happened in a plan, as the lines that would be told of it. It only remembers: how much of it is told is for
//! [`crate::context`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use crate::brevity::{fits, in_a_line, n_chars, shorten};
use crate::condense::{Sort, condense};
use crate::event::{Profile, Summaries, TaskStatus};
use crate::parts::Lines;
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
/// With this begins the line that stands for what is not told.
pub(crate) const NOT_TOLD: &str = "(not told: ";
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
    summary: String,
    /// The tasks for which a model was asked for a summary that has not come.
    pub(crate) requested: Option<Vec<TaskId>>,
    /// The last event that such a summary would stand for.
    pub(crate) requested_at: u64,
    /// The last event that the summary stands for.
    pub(crate) covered: u64,
    /// Characters of the summary and of the lines that it does not stand for yet, a line's end with each.
    pub(crate) n_chars: usize,
    n_facts: u64,
    /// By the place of a task: how its end ranks, and the how-manieth fact it was.
    ends: Vec<Option<Known>>,
    /// By the place of a question: the same of its answer.
    answers: BTreeMap<usize, Known>,
    n_known: usize,
    /// Facts by rank, in the order in which they happened.
    ranked: [Ranked; RANKS.len()],
    lines: Digest,
}

type Known = (Rank, u64);

/// Facts of a rank, each with the how-manieth it was; some hold no more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Ranked {
    facts: Vec<(u64, Fact)>,
    n_gone: usize,
}

impl Past {
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// A task has ended.
    pub(crate) fn end(&mut self, index: usize, task: &Task, profile: Profile) {
        self.add(Fact::End(index), rank_of(task), |text| write_line(text, task, profile));
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
            let is_in_summary = self.nth_end(index).is_some_and(|nth| self.lines.place(nth).is_none());
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
        self.sum_up(summary);
    }

    /// A question was answered that is no task of its own.
    pub(crate) fn answer(&mut self, place: usize, question: &Question, asker: &Task) {
        self.add(Fact::Answer(place), Rank::Decision, |text| write_decision(text, question, asker));
    }

    fn add(&mut self, fact: Fact, rank: Rank, write: impl FnOnce(&mut String)) {
        self.remove(fact);
        self.n_facts += 1;
        let known = (rank, self.n_facts);
        match fact {
            Fact::End(index) => {
                if self.ends.len() <= index {
                    self.ends.resize(index + 1, None);
                }
                self.ends[index] = Some(known);
            }
            Fact::Answer(place) => _ = self.answers.insert(place, known),
        }
        self.n_known += 1;
        self.ranked[rank as usize].facts.push((self.n_facts, fact));
        self.n_chars += self.lines.push(self.n_facts, Some(fact), write) + 1;
    }

    fn remove(&mut self, fact: Fact) {
        let known = match fact {
            Fact::End(index) => self.ends.get_mut(index).and_then(Option::take),
            Fact::Answer(place) => self.answers.remove(&place),
        };
        let Some((rank, nth)) = known else { return };
        self.n_known -= 1;
        if let Some(n_chars) = self.lines.forget(nth) {
            self.n_chars -= n_chars + 1;
            self.lines.tidy();
        }
        let mut ranked = std::mem::take(&mut self.ranked[rank as usize]);
        ranked.n_gone += 1;
        if ranked.n_gone > ranked.facts.len() / 2 {
            ranked.facts.retain(|fact| self.holds(*fact));
            ranked.n_gone = 0;
        }
        self.ranked[rank as usize] = ranked;
    }

    fn known(&self, fact: Fact) -> Option<Known> {
        match fact {
            Fact::End(index) => self.ends.get(index).copied().flatten(),
            Fact::Answer(place) => self.answers.get(&place).copied(),
        }
    }

    fn holds(&self, (nth, fact): (u64, Fact)) -> bool {
        self.known(fact).is_some_and(|(_, known)| known == nth)
    }

    /// The how-manieth fact it was that a task ended.
    pub(crate) fn nth_end(&self, index: usize) -> Option<u64> {
        self.known(Fact::End(index)).map(|(_, nth)| nth)
    }

    /// How many facts there are.
    pub(crate) fn n_known(&self) -> usize {
        self.n_known
    }

    /// The facts of a rank, the last first.
    pub(crate) fn newest(&self, rank: Rank) -> impl Iterator<Item = Fact> {
        let facts = self.ranked[rank as usize].facts.iter().rev().copied();
        facts.filter(|fact| self.holds(*fact)).map(|(_, fact)| fact)
    }

    /// The places of the tasks that have ended since the summary was made, in that order.
    pub(crate) fn ended_since(&self) -> impl Iterator<Item = usize> {
        self.lines.lines.iter().filter_map(|line| match line.fact? {
            Fact::End(index) => Some(index),
            Fact::Answer(_) => None,
        })
    }

    /// A model is asked for a summary of these tasks, and of all up to an event.
    pub(crate) fn request(&mut self, task_ids: &[TaskId], up_to: u64) {
        (self.requested, self.requested_at) = (Some(task_ids.to_vec()), up_to);
    }

    /// The summary stands from now on for these tasks, and for every answer until now.
    pub(crate) fn compact(&mut self, summary: &str, ended: impl Iterator<Item = usize>) {
        for index in ended {
            if let Some(nth) = self.nth_end(index) {
                self.lines.forget(nth);
            }
        }
        self.lines.forget_answers();
        self.requested = None;
        self.sum_up(summary.to_owned());
    }

    /// Another summary stands before what is not in it.
    fn sum_up(&mut self, summary: String) {
        let before = std::mem::take(&mut self.lines);
        for line in summary.lines() {
            self.lines.push(0, None, |text| text.push_str(line));
        }
        self.n_chars = if summary.is_empty() { 0 } else { n_chars(&summary) + 1 };
        for line in before.lines.iter().filter(|line| line.fact.is_some()) {
            self.n_chars += self.lines.push(line.nth, line.fact, |text| text.push_str(before.text_of(line))) + 1;
        }
        self.summary = summary;
    }

    /// The summary, then what it does not stand for yet.
    pub(crate) fn text(&self) -> String {
        let fresh = self.lines.lines.iter().filter(|line| line.fact.is_some());
        let lines = fresh.map(|line| self.lines.text_of(line));
        let lines = [self.summary.as_str()].into_iter().chain(lines).filter(|line| !line.is_empty());
        lines.fold(String::new(), |text, line| text + line + "\n")
    }

    /// What is told of it beside what is told by itself. `line_of` is asked for the line of a fact that the summary stands
    /// for.
    pub(crate) fn without(&self, facts: &[Fact], line_of: impl Fn(Fact) -> String) -> PastLines<'_> {
        let mut left_out = Vec::new();
        let mut summed_up = BTreeSet::new();
        for fact in facts {
            match self.known(*fact).and_then(|(_, nth)| self.lines.place(nth)) {
                Some(place) => left_out.push(place),
                None => _ = summed_up.insert(line_of(*fact)),
            }
        }
        let lines = &self.lines.lines;
        if self.lines.n_silent > 0 {
            left_out.extend((0..lines.len()).filter(|place| !lines[*place].is_told));
        }
        if !summed_up.is_empty() {
            let of_summary = lines.iter().take_while(|line| line.nth == 0).enumerate();
            let is_in_summary = |line: &Line| summed_up.contains(self.lines.text_of(line));
            left_out.extend(of_summary.filter(|(_, line)| is_in_summary(line)).map(|(place, _)| place));
        }
        left_out.sort_unstable();
        left_out.dedup();
        PastLines { digest: &self.lines, left_out }
    }
}

/// What is put before a line where it is told.
const BULLET: &str = "- ";

/// Lines next to each other in one text, as they are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Digest {
    text: String,
    /// In the order of what they are of; first those of the summary.
    lines: Vec<Line>,
    /// Characters of the lines that are told, with what is before and behind each.
    n_chars_told: usize,
    /// Lines that are not told.
    n_silent: usize,
    /// Lines that hold no more; they are not told either.
    n_gone: usize,
    /// Whether a line says that others are not told.
    has_mark: bool,
    has_decisions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// The how-manieth fact; 0 of the summary.
    nth: u64,
    /// Unset of the summary, and of what holds no more.
    fact: Option<Fact>,
    start: usize,
    end: usize,
    /// Without what is before and behind it.
    n_chars: usize,
    is_decision: bool,
    is_told: bool,
}

impl Line {
    fn n_chars_told(&self) -> usize {
        BULLET.len() + self.n_chars + 1
    }
}

impl Digest {
    /// The characters of the new line.
    fn push(&mut self, nth: u64, fact: Option<Fact>, write: impl FnOnce(&mut String)) -> usize {
        let start = self.text.len();
        self.text.push_str(BULLET);
        write(&mut self.text);
        let written = &self.text[start + BULLET.len()..];
        let (n_chars, is_told) = (n_chars(written), !is_mark(written));
        let is_decision = is_decision(written);
        self.has_decisions |= is_decision;
        self.text.push('\n');
        let line = Line { nth, fact, start, end: self.text.len(), n_chars, is_decision, is_told };
        if is_told {
            self.n_chars_told += line.n_chars_told();
        } else {
            self.n_silent += 1;
            self.has_mark = true;
        }
        self.lines.push(line);
        n_chars
    }

    /// The characters of a line that holds no more, if there was one.
    fn forget(&mut self, nth: u64) -> Option<usize> {
        let place = self.place(nth)?;
        let line = &mut self.lines[place];
        line.fact = None;
        self.n_gone += 1;
        if std::mem::take(&mut line.is_told) {
            self.n_chars_told -= line.n_chars_told();
            self.n_silent += 1;
        }
        Some(line.n_chars)
    }

    fn forget_answers(&mut self) {
        let answers = self.lines.iter().filter(|line| matches!(line.fact, Some(Fact::Answer(_))));
        for nth in answers.map(|line| line.nth).collect::<Vec<_>>() {
            self.forget(nth);
        }
    }

    /// Takes out what holds no more, once it is the most.
    fn tidy(&mut self) {
        if self.n_gone <= self.lines.len() / 2 {
            return;
        }
        let before = std::mem::take(self);
        for line in before.lines.iter().filter(|line| line.nth == 0 || line.fact.is_some()) {
            self.push(line.nth, line.fact, |text| text.push_str(before.text_of(line)));
        }
    }

    fn place(&self, nth: u64) -> Option<usize> {
        let place = self.lines.binary_search_by_key(&nth, |line| line.nth).ok()?;
        self.lines[place].fact.is_some().then_some(place)
    }

    fn text_of(&self, line: &Line) -> &str {
        &self.text[line.start + BULLET.len()..line.end - 1]
    }
}

/// Lines of the past, but for some.
pub(crate) struct PastLines<'a> {
    digest: &'a Digest,
    /// The places that are left out, in order.
    left_out: Vec<usize>,
}

impl PastLines<'_> {
    pub(crate) fn n_lines(&self) -> usize {
        self.digest.lines.len() - self.left_out.len()
    }

    pub(crate) fn n_chars(&self) -> usize {
        let left_out = self.left_out.iter().map(|place| &self.digest.lines[*place]).filter(|line| line.is_told);
        self.digest.n_chars_told - left_out.map(Line::n_chars_told).sum::<usize>()
    }

    /// Whether a line says that others are not told.
    pub(crate) fn has_mark(&self) -> bool {
        self.digest.has_mark
    }
}

impl Lines for PastLines<'_> {
    fn n_places(&self) -> usize {
        self.digest.lines.len()
    }

    fn n_chars_at(&self, place: usize) -> Option<usize> {
        self.left_out.binary_search(&place).is_err().then(|| self.digest.lines[place].n_chars_told())
    }

    fn has_first(&self) -> bool {
        self.digest.has_decisions
    }

    fn is_first(&self, place: usize) -> bool {
        self.digest.lines[place].is_decision
    }

    fn write(&self, places: Range<usize>, text: &mut String) {
        let Digest { text: all, lines, .. } = self.digest;
        let first = self.left_out.partition_point(|place| *place < places.start);
        let left_out = self.left_out[first..].iter().take_while(|place| **place < places.end);
        let mut start = places.start;
        for end in left_out.copied().chain([places.end]) {
            // What stands next to each other is copied at once.
            if start < end {
                text.push_str(&all[lines[start].start..lines[end - 1].end]);
            }
            start = end + 1;
        }
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
fn is_decision(line: &str) -> bool {
    line.starts_with(DECIDED)
}

/// True of the line that stands for what is not told.
fn is_mark(line: &str) -> bool {
    line.starts_with(NOT_TOLD)
}

/// An ended task in a line.
pub(crate) fn line_of(task: &Task, profile: Profile) -> String {
    let mut line = String::with_capacity(LINE_CHARS_MAX);
    write_line(&mut line, task, profile);
    line
}

/// An answer in a line.
pub(crate) fn decision(question: &Question, asker: &Task) -> String {
    let mut line = String::with_capacity(LINE_CHARS_MAX);
    write_decision(&mut line, question, asker);
    line
}

fn write_line(text: &mut String, task: &Task, profile: Profile) {
    let start = text.len();
    let outcome = match (&task.result, &task.error) {
        (Some(result), _) => condense(result, OUTCOME_CHARS_MAX, Sort::Result(profile)),
        (None, Some(error)) => condense(error, OUTCOME_CHARS_MAX, Sort::Error),
        (None, None) => Cow::Borrowed(""),
    };
    write_begin(text, task);
    say(text, start, &task.plan.description, &outcome);
}

/// How the line of an ended task begins: who, and how it ended.
fn begin_of(task: &Task) -> String {
    let mut begin = String::new();
    write_begin(&mut begin, task);
    begin
}

fn write_begin(text: &mut String, task: &Task) {
    let is_decision = rank_of(task) == Rank::Decision;
    text.push_str(if is_decision { DECIDED } else { "" });
    push_name(text, &task.plan);
    if !is_decision {
        text.push(' ');
        text.push_str(task.status.as_str());
    }
    text.push_str(": ");
}

fn write_decision(text: &mut String, question: &Question, asker: &Task) {
    let start = text.len();
    text.push_str(DECIDED);
    push_name(text, &asker.plan);
    text.push_str(": ");
    say(text, start, &question.question, question.answer.as_deref().unwrap_or_default());
}

fn push_name(line: &mut String, task: &TaskPlan) {
    match &task.label {
        Some(label) => line.push_str(&in_a_line(label, NAME_CHARS_MAX)),
        None => write!(line, "{}", task.id).expect("a string takes all"),
    }
}

/// Puts what was to be done, or was asked, and what came of it behind the beginning of the line, which is at `start`.
fn say(text: &mut String, start: usize, what: &str, outcome: &str) {
    text.push_str(&in_a_line(what, SUBJECT_CHARS_MAX));
    let room = LINE_CHARS_MAX.saturating_sub(n_chars(&text[start..]) + " -> ".len());
    let outcome = in_a_line(outcome, room);
    if !outcome.is_empty() {
        text.push_str(" -> ");
        text.push_str(&outcome);
    }
    if !fits(&text[start..], LINE_CHARS_MAX) {
        let short = shorten(&text[start..], LINE_CHARS_MAX);
        text.truncate(start);
        text.push_str(&short);
    }
}
