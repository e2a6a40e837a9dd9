//! Keeping what is told short: error texts, and the summary of what has been done.

use crate::event::Event;
use crate::plan::TaskId;
use crate::state::{PlannerState, Task};

/// About so many characters make a token, when nothing better is known.
const CHARS_PER_TOKEN: usize = 4;
/// What one task may say in the summary, in characters.
const LINE_CHARS_MAX: usize = 240;

/// A text of at most `chars_max` characters: its beginning and its end, where errors say most.
#[must_use]
pub fn shorten(text: &str, chars_max: usize) -> String {
    let n_chars = text.chars().count();
    if n_chars <= chars_max {
        return text.to_owned();
    }
    let mark = " ... ";
    let Some(room) = chars_max.checked_sub(mark.len()) else {
        return text.chars().take(chars_max).collect();
    };
    let head = text.chars().take(room / 2);
    let tail = text.chars().skip(n_chars - (room - room / 2));
    head.chain(mark.chars()).chain(tail).collect()
}

/// The compaction of a plan to at most `max_tokens`, if it says anything new. Ended tasks are told in a line each,
/// the newest first to be kept; open tasks and questions are no part of the summary and are never removed.
pub(crate) fn compact(state: &PlannerState, max_tokens: usize) -> Option<Event> {
    let mut room = max_tokens.saturating_mul(CHARS_PER_TOKEN);
    let mut lines = Vec::new();
    for task in state.tasks.iter().filter(|task| task.status.is_end()).rev() {
        let line = line_of(task);
        let n_chars = line.chars().count() + 1;
        if n_chars > room {
            break;
        }
        room -= n_chars;
        lines.push(line);
    }
    lines.reverse();
    let ended = state.tasks.iter().filter(|task| task.status.is_end());
    let removed_task_ids = ended.map(|task| task.plan.id).collect::<Vec<TaskId>>();
    let summary = lines.join("\n");
    let is_new = summary != state.context_summary || removed_task_ids != state.compacted;
    is_new.then_some(Event::ContextCompacted { summary, removed_task_ids })
}

fn line_of(task: &Task) -> String {
    let outcome = task.result.as_ref().or(task.error.as_ref()).map_or("", |text| text.as_str());
    let outcome = outcome.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{} {}: {} -> {outcome}", task.plan.name(), task.status.as_str(), task.plan.description);
    shorten(&line, LINE_CHARS_MAX)
}
