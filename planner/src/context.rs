//! Keeping what is told short: texts in a line, and the past of a plan under its token budget.
//!
//! The past is the summary, and a line for everything that has happened since it was made. It only chooses what is
//! told: the full results stay in the state and in the log.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::event::{Event, Purpose, TaskStatus};
use crate::plan::{NodeKind, TaskId, TaskPlan};
use crate::state::{PlannerState, Question, Task};

/// About so many characters make a token, when nothing better is known.
pub const CHARS_PER_TOKEN: usize = 4;
/// The least that a plan's token budget may be.
pub const TOKEN_BUDGET_MIN: usize = 200;
/// The most that a plan's token budget may be.
pub const TOKEN_BUDGET_MAX: usize = 1_000_000;
/// The part of the budget past which the past is compacted, in percent.
pub const SOFT_PERCENT: usize = 70;
/// The part of the budget that the past never passes after a decision, in percent.
pub const HARD_PERCENT: usize = 90;
/// The part of the budget that a summary may take, in percent. The rest is room to grow, so that a plan of any length
/// is compacted once for many tasks.
pub const SUMMARY_PERCENT: usize = 35;

/// What one task or answer may say of itself, in characters.
const LINE_CHARS_MAX: usize = 240;
/// What such a line may take for what was to be done, or was asked; the rest is for what came of it.
const SUBJECT_CHARS_MAX: usize = 110;
/// What it may take for the name of the task.
const NAME_CHARS_MAX: usize = 40;
/// How short a decision becomes before the oldest of them are left out.
const DECISION_CHARS_MIN: usize = 40;
/// With this begins the line of a decision.
const DECIDED: &str = "Decided in ";
/// With this begins the line that stands for what is not told.
const NOT_TOLD: &str = "(not told: ";

/// A text of at most `chars_max` characters: its beginning and its end, where errors say most.
#[must_use]
pub fn shorten(text: &str, chars_max: usize) -> String {
    if fits(text, chars_max) {
        return text.to_owned();
    }
    let mark = " ... ";
    let Some(room) = chars_max.checked_sub(mark.len()) else { return start_of(text, chars_max).to_owned() };
    let head = start_of(text, room / 2);
    let tail = match room - room / 2 {
        0 => "",
        n_chars => text.char_indices().nth_back(n_chars - 1).map_or(text, |(at, _)| &text[at..]),
    };
    format!("{head}{mark}{tail}")
}

/// The first characters of a text; a long text costs no more than they do.
pub(crate) fn start_of(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

/// True when a text has at most so many characters.
fn fits(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || start_of(text, chars_max).len() == text.len()
}

/// A text without line breaks, of at most `chars_max` characters.
pub(crate) fn in_a_line(text: &str, chars_max: usize) -> Cow<'_, str> {
    if text.len() <= chars_max && is_in_a_line(text) {
        return Cow::Borrowed(text);
    }
    // What is looked at has a limit too, so that a huge text costs no more than a long one.
    let looked_at = shorten(text, 4 * chars_max);
    Cow::Owned(shorten(&looked_at.split_whitespace().collect::<Vec<_>>().join(" "), chars_max))
}

/// True of plain words with one blank between them.
fn is_in_a_line(text: &str) -> bool {
    let mut before = b' ';
    let is_plain = text.bytes().all(|byte| {
        let is_second_blank = byte == b' ' && before == b' ';
        before = byte;
        (b' '..0x7f).contains(&byte) && !is_second_blank
    });
    is_plain && (before != b' ' || text.is_empty())
}

/// The characters of a text.
pub(crate) fn n_chars(text: &str) -> usize {
    text.chars().count()
}

/// How long each of some texts may be to have room together: small ones stay whole, the big ones share the rest alike.
pub(crate) fn fair_limit(lengths: impl IntoIterator<Item = usize>, room: usize) -> usize {
    let mut lengths = lengths.into_iter().collect::<Vec<_>>();
    lengths.sort_unstable();
    let (mut left, mut n_left) = (room, lengths.len());
    for length in lengths {
        let share = left / n_left;
        if length > share {
            return share;
        }
        left -= length;
        n_left -= 1;
    }
    usize::MAX
}

/// A part of a budget of tokens, in characters.
fn chars_of(token_budget: usize, percent: usize) -> usize {
    token_budget.saturating_mul(CHARS_PER_TOKEN * percent) / 100
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    /// A task ended: its place.
    End(usize),
    /// A question was answered: its place.
    Answer(usize),
}

/// What is told first when not all can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Decision,
    Failure,
    Work,
    Rest,
}

const RANKS: [Rank; 4] = [Rank::Decision, Rank::Failure, Rank::Work, Rank::Rest];

/// What has happened in a plan, as far as it still holds, and how much of it would be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Past {
    summary: String,
    /// Characters of the summary and of the lines that it does not stand for yet, a line's end with each.
    n_chars: usize,
    n_facts: u64,
    /// By fact: how it ranks, and the how-manieth it was.
    known: BTreeMap<Fact, (Rank, u64)>,
    /// Facts by rank, in the order in which they happened.
    ranked: [BTreeMap<u64, Fact>; RANKS.len()],
    /// What the summary does not stand for yet, in the order in which it happened.
    fresh: BTreeMap<u64, (Fact, String)>,
}

impl Past {
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.n_chars.div_ceil(CHARS_PER_TOKEN)
    }

    /// A task has ended.
    pub(crate) fn end(&mut self, index: usize, task: &Task) {
        self.add(Fact::End(index), rank_of(task), line_of(task));
    }

    /// A task that had ended is open again: what came of it holds no more.
    pub(crate) fn reopen(&mut self, index: usize) {
        self.remove(Fact::End(index));
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

    /// The summary stands from now on for these tasks, and for every answer until now.
    pub(crate) fn compact(&mut self, summary: &str, ended: impl Iterator<Item = usize>) {
        for index in ended {
            if let Some((_, nth)) = self.known.get(&Fact::End(index)) {
                self.fresh.remove(nth);
            }
        }
        self.fresh.retain(|_, (fact, _)| matches!(fact, Fact::End(_)));
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

    /// What ranks highest and happened last, in lines of at most `room` characters, in the order of the plan.
    fn tell(&self, state: &PlannerState, room: usize) -> String {
        let n_facts = self.known.len();
        let mark = |n_left_out: usize| format!("{NOT_TOLD}{n_left_out} of what happened earlier)");
        let mut told = self.choose(state, room);
        let mut first = None;
        if told.len() < n_facts
            && let Some(room) = room.checked_sub(n_chars(&mark(n_facts)) + 1)
        {
            let fewer = self.choose(state, room);
            // With room for the mark alone, what it would stand for is told instead.
            if !fewer.is_empty() || told.is_empty() {
                first = Some(mark(n_facts - fewer.len()));
                told = fewer;
            }
        }
        told.sort_unstable_by_key(|(fact, _)| match fact {
            Fact::End(index) => (*index, usize::MAX),
            Fact::Answer(place) => (state.index(state.questions[*place].task).unwrap_or(usize::MAX), *place),
        });
        first.into_iter().chain(told.into_iter().map(|(_, line)| line)).collect::<Vec<_>>().join("\n")
    }

    fn choose(&self, state: &PlannerState, room: usize) -> Vec<(Fact, String)> {
        let newest = |rank: Rank| self.ranked[rank as usize].values().rev();
        let decisions = newest(Rank::Decision).take(room / (DECISION_CHARS_MIN + 1));
        let mut told = decisions.map(|fact| (*fact, state.line(*fact))).collect::<Vec<_>>();
        let limit = fair_limit(told.iter().map(|(_, line)| n_chars(line) + 1), room);
        let mut left = room;
        for (_, line) in &mut told {
            *line = shorten(line, limit.saturating_sub(1));
            left -= n_chars(line) + 1;
        }
        let others = RANKS[1..].iter().flat_map(|rank| newest(*rank));
        for (fact, line) in others.map(|fact| (*fact, state.line(*fact))) {
            let Some(less) = left.checked_sub(n_chars(&line) + 1) else { break };
            left = less;
            told.push((fact, line));
        }
        told
    }
}

impl PlannerState {
    /// What the plan would tell of its past: the summary, and a line for each end and each answer that it does not
    /// stand for yet.
    #[must_use]
    pub fn past(&self) -> String {
        self.past.text()
    }

    /// The size of [`PlannerState::past`] in tokens, as it is kept from event to event.
    #[must_use]
    pub fn past_tokens(&self) -> usize {
        self.past.n_tokens()
    }

    /// The lines of the past without those of what is told itself: results of tasks, and answers by their places.
    pub(crate) fn past_without(&self, tasks: &[&Task], answers: &[usize]) -> Vec<&str> {
        let answers = answers.iter().map(|place| match self.questions[*place].purpose {
            Purpose::Task => {
                self.index(self.questions[*place].task).map_or_else(String::new, |of| self.line(Fact::End(of)))
            }
            Purpose::Executor | Purpose::Condition | Purpose::Failure => self.line(Fact::Answer(*place)),
        });
        let told = tasks.iter().map(|task| line_of(task)).chain(answers).collect::<BTreeSet<_>>();
        let fresh = self.past.fresh.values().map(|(_, line)| line.as_str());
        self.past.summary.lines().chain(fresh).filter(|line| !told.contains(*line)).collect()
    }

    fn line(&self, fact: Fact) -> String {
        match fact {
            Fact::End(index) => line_of(&self.tasks[index]),
            Fact::Answer(place) => {
                let question = &self.questions[place];
                self.task(question.task).map_or_else(String::new, |asker| decision(question, asker))
            }
        }
    }
}

/// The compaction that the token budget wants now, if any. After it none is wanted.
pub(crate) fn due(state: &PlannerState) -> Option<Event> {
    let budget = state.config.token_budget;
    let is_due = state.past.n_chars > chars_of(budget, SOFT_PERCENT);
    is_due.then(|| {
        let (summary, removed_task_ids) = compaction(state, chars_of(budget, SUMMARY_PERCENT));
        Event::ContextCompacted { summary, removed_task_ids }
    })
}

/// The compaction of a plan to at most `max_tokens`, and never to more than the budget lets stand, if it says
/// anything new. Open tasks and questions are no part of the past and are never removed.
pub(crate) fn compact(state: &PlannerState, max_tokens: usize) -> Option<Event> {
    let room = chars_of(max_tokens, 100).min(chars_of(state.config.token_budget, SOFT_PERCENT).saturating_sub(1));
    let (summary, removed_task_ids) = compaction(state, room);
    let is_new = summary != state.past.summary || !removed_task_ids.is_empty();
    is_new.then_some(Event::ContextCompacted { summary, removed_task_ids })
}

/// The summary of all that has happened, and the tasks that the one before it did not stand for.
fn compaction(state: &PlannerState, room: usize) -> (String, Vec<TaskId>) {
    let removed = state.past.fresh.values().filter_map(|(fact, _)| match fact {
        Fact::End(index) => Some(state.tasks[*index].plan.id),
        Fact::Answer(_) => None,
    });
    let mut removed = removed.collect::<Vec<_>>();
    removed.sort_unstable();
    (state.past.tell(state, room), removed)
}

/// True when the past is as short as it must be after a decision.
pub(crate) fn is_within_budget(state: &PlannerState) -> bool {
    state.past.n_chars <= chars_of(state.config.token_budget, HARD_PERCENT)
}

/// True of a line that is told before others.
pub(crate) fn is_decision(line: &str) -> bool {
    line.starts_with(DECIDED)
}

/// True of the line that stands for what is not told.
pub(crate) fn is_mark(line: &str) -> bool {
    line.starts_with(NOT_TOLD)
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

/// An ended task in a line.
pub(crate) fn line_of(task: &Task) -> String {
    let outcome = task.result.as_deref().or(task.error.as_deref()).unwrap_or_default();
    let is_decision = rank_of(task) == Rank::Decision;
    let mut line = String::with_capacity(LINE_CHARS_MAX);
    line.push_str(if is_decision { DECIDED } else { "" });
    push_name(&mut line, &task.plan);
    if !is_decision {
        line.push(' ');
        line.push_str(task.status.as_str());
    }
    say(line, &task.plan.description, outcome)
}

fn decision(question: &Question, asker: &Task) -> String {
    let mut line = DECIDED.to_owned();
    push_name(&mut line, &asker.plan);
    say(line, &question.question, question.answer.as_deref().unwrap_or_default())
}

fn push_name(line: &mut String, task: &TaskPlan) {
    match &task.label {
        Some(label) => line.push_str(&in_a_line(label, NAME_CHARS_MAX)),
        None => write!(line, "{}", task.id).expect("a string takes all"),
    }
}

/// The line with what was to be done, or was asked, and what came of it.
fn say(mut line: String, what: &str, outcome: &str) -> String {
    line.push_str(": ");
    line.push_str(&in_a_line(what, SUBJECT_CHARS_MAX));
    let room = LINE_CHARS_MAX.saturating_sub(n_chars(&line) + " -> ".len());
    let outcome = in_a_line(outcome, room);
    if !outcome.is_empty() {
        line.push_str(" -> ");
        line.push_str(&outcome);
    }
    if fits(&line, LINE_CHARS_MAX) { line } else { shorten(&line, LINE_CHARS_MAX) }
}
