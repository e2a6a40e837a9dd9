//! How much of a plan's past is told, under its token budget.
//!
//! The past is the summary, and a line for everything that has happened since it was made. Here is only chosen what is
//! told: the full results stay in the state and in the log.

use crate::brevity::{fair_limit, n_chars, shorten};
use crate::condense::{Sort, condense};
use crate::event::{Covered, Event, Purpose, Summaries};
use crate::past::{Fact, NOT_TOLD, PastLines, RANKS, Rank, decision, line_of};
use crate::plan::TaskId;
use crate::state::PlannerState;
use crate::task::Task;

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

/// How short a decision becomes before the oldest of them are left out.
const DECISION_CHARS_MIN: usize = 40;

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
        self.tokens_of(self.past.n_chars)
    }

    /// Whether a model's summary is wanted and has not come.
    #[must_use]
    pub fn wants_summary(&self) -> bool {
        self.past.requested.is_some()
    }

    /// The most characters of a summary that somebody else writes.
    #[must_use]
    pub fn summary_chars_max(&self) -> usize {
        self.chars_of_budget(SUMMARY_PERCENT)
    }

    /// About how many tokens so many characters are, by what has been reported so far.
    #[must_use]
    pub fn tokens_of(&self, n_chars: usize) -> usize {
        usize::try_from(self.gauges.n_tokens(None, n_chars)).unwrap_or(usize::MAX)
    }

    /// A part of the token budget, in percent, as characters by what has been reported so far.
    #[must_use]
    pub fn chars_of_budget(&self, percent: usize) -> usize {
        self.gauges.n_chars(None, self.config.token_budget).saturating_mul(percent) / 100
    }

    /// What a summary is to be made of, in about `chars_max` characters: the one before it, what was decided, and what
    /// came of the tasks named, fuller than their lines say.
    #[must_use]
    pub fn to_summarise(&self, task_ids: &[TaskId], chars_max: usize) -> String {
        let (decisions, _) = self.decisions(chars_max / 4);
        let decisions = decisions.into_iter().map(|(_, line)| line + "\n").collect::<String>();
        let mut text = format!("{}\n{decisions}", shorten(self.past.summary(), chars_max / 4));
        let ended = task_ids.iter().filter_map(|id| self.task(*id)).collect::<Vec<_>>();
        let share = (chars_max / 2) / ended.len().max(1);
        for task in ended {
            let outcome = task.result.as_deref().or(task.error.as_deref()).unwrap_or_default();
            let what = format!("## {} {}: {}", task.plan.name(), task.status.as_str(), task.plan.description);
            let outcome = condense(outcome, share, Sort::Result(self.config.profile));
            text += &format!("\n{}\n{outcome}\n", shorten(&what, share));
        }
        text
    }

    /// The lines of the past without those of what is told itself: results of tasks, and answers by their places.
    pub(crate) fn past_without(&self, tasks: &[&Task], answers: &[usize]) -> PastLines<'_> {
        let answers = answers.iter().filter_map(|place| match self.questions[*place].purpose {
            Purpose::Task => self.index(self.questions[*place].task).map(Fact::End),
            Purpose::Executor | Purpose::Condition | Purpose::Failure => Some(Fact::Answer(*place)),
        });
        let ends = tasks.iter().filter_map(|task| self.index(task.plan.id)).map(Fact::End);
        self.past.without(&ends.chain(answers).collect::<Vec<_>>(), |fact| self.line(fact))
    }

    /// What ranks highest and happened last, in lines of at most `room` characters, in the order of the plan.
    fn tell(&self, room: usize) -> String {
        let n_facts = self.past.n_known();
        let mark = |n_left_out: usize| format!("{NOT_TOLD}{n_left_out} of what happened earlier)");
        let mut told = self.choose(room);
        let mut first = None;
        if told.len() < n_facts
            && let Some(room) = room.checked_sub(n_chars(&mark(n_facts)) + 1)
        {
            let fewer = self.choose(room);
            // With room for the mark alone, what it would stand for is told instead.
            if !fewer.is_empty() || told.is_empty() {
                first = Some(mark(n_facts - fewer.len()));
                told = fewer;
            }
        }
        told.sort_unstable_by_key(|(fact, _)| match fact {
            Fact::End(index) => (*index, usize::MAX),
            Fact::Answer(place) => (self.index(self.questions[*place].task).unwrap_or(usize::MAX), *place),
        });
        first.into_iter().chain(told.into_iter().map(|(_, line)| line)).collect::<Vec<_>>().join("\n")
    }

    /// The decisions, the last first, each short enough for all to have room, and the room that they leave.
    fn decisions(&self, room: usize) -> (Vec<(Fact, String)>, usize) {
        let newest = self.past.newest(Rank::Decision);
        let decisions = newest.take(room / (DECISION_CHARS_MIN + 1));
        let mut told = decisions.map(|fact| (fact, self.line(fact))).collect::<Vec<_>>();
        let limit = fair_limit(told.iter().map(|(_, line)| n_chars(line) + 1), room);
        let mut left = room;
        for (_, line) in &mut told {
            *line = shorten(line, limit.saturating_sub(1));
            left -= n_chars(line) + 1;
        }
        (told, left)
    }

    fn choose(&self, room: usize) -> Vec<(Fact, String)> {
        let (mut told, mut left) = self.decisions(room);
        let others = RANKS[1..].iter().flat_map(|rank| self.past.newest(*rank));
        for (fact, line) in others.map(|fact| (fact, self.line(fact))) {
            let Some(less) = left.checked_sub(n_chars(&line) + 1) else { break };
            left = less;
            told.push((fact, line));
        }
        told
    }

    fn line(&self, fact: Fact) -> String {
        match fact {
            Fact::End(index) => line_of(&self.tasks[index], self.config.profile),
            Fact::Answer(place) => {
                let question = &self.questions[place];
                self.task(question.task).map_or_else(String::new, |asker| decision(question, asker))
            }
        }
    }
}

/// The compaction that the token budget wants now, if any. After it none is wanted.
///
/// Where a model writes the summaries it is asked past the soft limit, and what has happened by the hard one without its
/// answer is compacted by rule.
pub(crate) fn due(state: &PlannerState) -> Option<Event> {
    let is_past = |percent| state.past.n_chars > state.chars_of_budget(percent);
    match state.config.summaries {
        Summaries::Rule if !is_past(SOFT_PERCENT) => None,
        Summaries::Model if !is_past(HARD_PERCENT) => {
            let is_wanted = is_past(SOFT_PERCENT) && state.past.requested.is_none();
            let max_tokens = state.config.token_budget * SUMMARY_PERCENT / 100;
            is_wanted.then(|| Event::CompactionRequested { task_ids: ended_since(state), max_tokens })
        }
        Summaries::Rule | Summaries::Model => {
            let (summary, removed_task_ids) = compaction(state, state.chars_of_budget(SUMMARY_PERCENT));
            let covers = covered(state, state.n_events);
            Some(Event::ContextCompacted { summary, removed_task_ids, covers })
        }
    }
}

/// The compaction by a summary that somebody else wrote, while one is wanted. It stands for the tasks named, and for every
/// answer until now: decisions that it leaves out are told before it, and it is shortened to the room that is left.
pub(crate) fn compact_by(state: &PlannerState, summary: &str, task_ids: &[TaskId]) -> Option<Event> {
    // One that was wanted before, and came too late, knows nothing of what has happened since.
    if state.past.requested.as_deref() != Some(task_ids) {
        return None;
    }
    let room = state.chars_of_budget(SUMMARY_PERCENT);
    let (decisions, _) = state.decisions(room);
    let mut body = shorten(summary.trim(), room);
    let mut missing = String::new();
    // What is put before it makes it shorter, and that may take another decision from it.
    loop {
        let lacking =
            decisions.iter().filter(|(_, line)| !body.contains(line.as_str()) && !missing.contains(line.as_str()));
        let lacking = lacking.fold(String::new(), |text, (_, line)| text + line + "\n");
        if lacking.is_empty() {
            break;
        }
        missing.push_str(&lacking);
        body = shorten(summary.trim(), room.saturating_sub(n_chars(&missing)));
    }
    let text = missing + &body;
    let removed = ended_since(state).into_iter().filter(|task| task_ids.contains(task)).collect();
    let (summary, covers) = (text.trim_end().to_owned(), covered(state, state.past.requested_at));
    Some(Event::ContextCompacted { summary, removed_task_ids: removed, covers })
}

/// The compaction of a plan to at most `max_tokens`, and never to more than the budget lets stand, if it says
/// anything new. Open tasks and questions are no part of the past and are never removed.
pub(crate) fn compact(state: &PlannerState, max_tokens: usize) -> Option<Event> {
    let room = state.gauges.n_chars(None, max_tokens).min(state.chars_of_budget(SOFT_PERCENT).saturating_sub(1));
    let (summary, removed_task_ids) = compaction(state, room);
    let is_new = summary != state.past.summary() || !removed_task_ids.is_empty();
    let covers = covered(state, state.n_events);
    is_new.then_some(Event::ContextCompacted { summary, removed_task_ids, covers })
}

/// What a summary stands for that is made of all up to an event, beside what the one before it did.
fn covered(state: &PlannerState, to: u64) -> Option<Covered> {
    let from = state.past.covered + 1;
    (from <= to).then_some(Covered { from, to })
}

/// The summary of all that has happened, and the tasks that the one before it did not stand for.
fn compaction(state: &PlannerState, room: usize) -> (String, Vec<TaskId>) {
    (state.tell(room), ended_since(state))
}

/// The tasks that have ended since the summary was made, sorted.
fn ended_since(state: &PlannerState) -> Vec<TaskId> {
    let mut ended = state.past.ended_since().map(|index| state.tasks[index].plan.id).collect::<Vec<_>>();
    ended.sort_unstable();
    ended
}

/// True when the past is as short as it must be after a decision.
pub(crate) fn is_within_budget(state: &PlannerState) -> bool {
    state.past.n_chars <= state.chars_of_budget(HARD_PERCENT)
}
