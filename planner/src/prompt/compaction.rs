//! The history of a plan under its token budget: a summary, and a line for each end and each answer since. Compaction
//! replaces the lines by a new summary; it deletes nothing from the state and the log.

use crate::event::{Covered, Event, TaskStatus};
use crate::plan::{NodeKind, TaskId};
use crate::prompt::excerpt::{Content, excerpt};
use crate::state::{Entry, LINE_CHARS_MAX, NAME_CHARS_MAX, OUTCOME_CHARS_MAX, PlannerState, SUBJECT_CHARS_MAX};
use crate::task::{Question, Task};
use crate::text::{CHARS_PER_TOKEN, equal_share, fits, n_chars, single_line, truncate};

/// The least token budget of a plan.
pub const TOKEN_BUDGET_MIN: usize = 200;
/// The greatest token budget of a plan.
pub const TOKEN_BUDGET_MAX: usize = 1_000_000;
/// The share of the budget at which the history is compacted, in percent.
pub const SOFT_PERCENT: usize = 70;
/// The share of the budget that the history never exceeds after a decision, in percent.
pub const HARD_PERCENT: usize = 90;
/// The share of the budget that a summary may take, in percent. The rest is room for the history until the next one.
pub const SUMMARY_PERCENT: usize = 35;

/// A decision is shortened to this length before the oldest ones are omitted.
const DECISION_CHARS_MIN: usize = 40;
/// The beginning of the line of a decision.
const DECIDED: &str = "Decided in ";
/// The text around the number of omitted lines.
const OMITTED: (&str, &str) = ("(", " earlier lines are omitted)");

/// The history as text: the summary, then a line for each end and each answer since.
pub fn history(state: &PlannerState) -> String {
    lines(state).into_iter().map(|line| line + "\n").collect()
}

/// The compaction that the token budget requires now.
pub(crate) fn due(state: &PlannerState) -> Option<Event> {
    let is_past = state.history_chars() > chars_of_budget(state, SOFT_PERCENT);
    is_past.then(|| by_rule(state, chars_of_budget(state, SUMMARY_PERCENT)))
}

/// The compaction to at most `max_tokens` and at most the soft limit, if it changes anything.
pub(crate) fn compact(state: &PlannerState, max_tokens: usize) -> Option<Event> {
    let room = max_tokens.saturating_mul(CHARS_PER_TOKEN).min(chars_of_budget(state, SOFT_PERCENT).saturating_sub(1));
    let compacted = by_rule(state, room);
    let is_new = state.summary.entries().next().is_some()
        || matches!(&compacted, Event::ContextCompacted { summary, .. } if *summary != state.summary.text);
    is_new.then_some(compacted)
}

/// True if the history is within its hard limit.
pub(crate) fn is_within_budget(state: &PlannerState) -> bool {
    state.history_chars() <= chars_of_budget(state, HARD_PERCENT)
}

fn by_rule(state: &PlannerState, room: usize) -> Event {
    let summary = fit(lines(state), room).join("\n");
    Event::ContextCompacted { summary, removed_task_ids: ended_since(state), covers: covered(state) }
}

fn chars_of_budget(state: &PlannerState, percent: usize) -> usize {
    state.config.token_budget.saturating_mul(CHARS_PER_TOKEN).saturating_mul(percent) / 100
}

/// The events that the last summary does not cover.
fn covered(state: &PlannerState) -> Option<Covered> {
    let (from, to) = (state.summary.covered + 1, state.n_events);
    (from <= to).then_some(Covered { from, to })
}

/// The tasks that ended since the last summary, sorted.
fn ended_since(state: &PlannerState) -> Vec<TaskId> {
    let ended = state.summary.entries().filter_map(|entry| match entry {
        Entry::Ended(index) => Some(state.tasks[index].plan.id),
        Entry::Answered(_) => None,
    });
    let mut ended = ended.collect::<Vec<_>>();
    ended.sort_unstable();
    ended
}

/// The lines of the history, the oldest first.
pub(super) fn lines(state: &PlannerState) -> Vec<String> {
    let summary = state.summary.text.lines().map(str::to_owned);
    summary.chain(state.summary.entries().map(|entry| line(state, entry))).collect()
}

/// The line of an entry.
pub(super) fn line(state: &PlannerState, entry: Entry) -> String {
    match entry {
        Entry::Ended(index) => line_of_task(state, &state.tasks[index]),
        Entry::Answered(place) => {
            let question = &state.questions[place];
            state.task(question.task).map_or_else(String::new, |asker| line_of_answer(question, asker))
        }
    }
}

fn line_of_task(state: &PlannerState, task: &Task) -> String {
    let name = single_line(&task.plan.name(), NAME_CHARS_MAX);
    let begin = match (task.plan.kind, task.status) {
        (NodeKind::Clarification, TaskStatus::Completed) => format!("{DECIDED}{name}: "),
        (_, status) => format!("{name} {}: ", status.words()),
    };
    let outcome = match (&task.result, &task.error) {
        (Some(result), _) => excerpt(result, OUTCOME_CHARS_MAX, Content::Result(state.config.profile)),
        (None, Some(error)) => excerpt(error, OUTCOME_CHARS_MAX, Content::Error),
        (None, None) => "".into(),
    };
    join(begin, &task.plan.description, &outcome)
}

fn line_of_answer(question: &Question, asker: &Task) -> String {
    let name = single_line(&asker.plan.name(), NAME_CHARS_MAX);
    join(format!("{DECIDED}{name}: "), &question.question, question.answer.as_deref().unwrap_or_default())
}

fn join(begin: String, subject: &str, outcome: &str) -> String {
    let line = begin + &single_line(subject, SUBJECT_CHARS_MAX);
    let outcome = single_line(outcome, LINE_CHARS_MAX.saturating_sub(n_chars(&line) + " -> ".len()));
    if outcome.is_empty() { truncate(&line, LINE_CHARS_MAX) } else { format!("{line} -> {outcome}") }
}

/// The lines that fit into `room`, each with its line break, in their order: decisions first, each shortened if needed,
/// then failures, then the rest, always the newest. The first line counts the omitted ones.
pub(super) fn fit(mut lines: Vec<String>, room: usize) -> Vec<String> {
    let total = lines.iter().map(|line| n_chars(line) + 1).sum::<usize>();
    if total <= room {
        return lines;
    }
    let omitted = |n: usize| format!("{}{n}{}", OMITTED.0, OMITTED.1);
    let known = lines.first().and_then(|line| line.strip_prefix(OMITTED.0)?.strip_suffix(OMITTED.1)?.parse().ok());
    let n_before: usize = known.unwrap_or(0);
    lines.drain(..usize::from(known.is_some()));
    let mut left = room.saturating_sub(n_chars(&omitted(n_before + lines.len())) + 1);
    let mut places = (0..lines.len()).rev().collect::<Vec<_>>();
    places.sort_by_key(|place| rank(&lines[*place]));
    let n_decisions = places.iter().take_while(|place| rank(&lines[**place]) == Rank::Decision).count();
    let n_decisions = n_decisions.min(left / (DECISION_CHARS_MIN + 1));
    let limit = equal_share(places[..n_decisions].iter().map(|place| n_chars(&lines[*place]) + 1), left);
    for place in &places[..n_decisions] {
        lines[*place] = truncate(&lines[*place], limit.saturating_sub(1));
    }
    let mut is_kept = vec![false; lines.len()];
    for place in places {
        let Some(less) = left.checked_sub(n_chars(&lines[place]) + 1) else { break };
        (left, is_kept[place]) = (less, true);
    }
    let n_omitted = n_before + is_kept.iter().filter(|is_kept| !**is_kept).count();
    let kept = lines.into_iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(line, _)| line);
    let mark = (n_omitted > 0).then(|| omitted(n_omitted)).filter(|mark| fits(mark, room.saturating_sub(1)));
    mark.into_iter().chain(kept).collect()
}

/// The lines kept first when not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Decision,
    Failure,
    Other,
    Skipped,
}

fn rank(line: &str) -> Rank {
    let begin = line.split(": ").next().unwrap_or_default();
    let has_status = |status: TaskStatus| begin.ends_with(status.words());
    match () {
        () if line.starts_with(DECIDED) => Rank::Decision,
        () if has_status(TaskStatus::Failed) || has_status(TaskStatus::TimedOut) => Rank::Failure,
        () if has_status(TaskStatus::Cancelled) || has_status(TaskStatus::Skipped) => Rank::Skipped,
        () => Rank::Other,
    }
}
