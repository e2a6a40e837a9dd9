//! Why earlier attempts at a task came to nothing, and how much of that is told to who tries next.
//!
//! It is a fold of the task's events. The texts are what grows: big ones are shortened first, each with a word where all of
//! it stands, then the oldest attempts are left out and said to be. The task itself, its notes, and the questions that were
//! answered are no part of it and are never shortened.

use crate::brevity::{fair_limit, fits, n_chars};
use crate::condense::{Sort, condense, is_condensed};
use crate::event::TaskStatus;
use crate::plan::TaskId;

/// The most attempts of which is kept why they came to nothing: the last.
pub const TURNS_MAX: usize = 20;
/// The most characters that are kept of what came of one.
pub const TURN_CHARS_MAX: usize = 4_000;

/// An attempt is told when there is room for so much of what came of it; the last always is, if there is room at all.
const TURN_CHARS_MIN: usize = 200;
/// Less room than this, and nothing is told.
const ROOM_CHARS_MIN: usize = 100;

/// The attempts of a task that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    turns: Vec<Turn>,
    /// Before those.
    n_before: usize,
}

/// One attempt, and why it came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Turn {
    attempt: u32,
    status: TaskStatus,
    text: String,
    /// The text is not all that the log has.
    is_short: bool,
    /// It was an attempt of the plan that this one goes on from, in whose log all of it is.
    is_inherited: bool,
}

impl Thread {
    /// An attempt has ended so. It is kept short from the beginning: all of it is in the log.
    pub(crate) fn push(&mut self, attempt: u32, status: TaskStatus, text: &str) {
        if self.turns.len() == TURNS_MAX {
            self.turns.remove(0);
            self.n_before += 1;
        }
        // What a report says was made short before it came here.
        let is_short = !fits(text, TURN_CHARS_MAX) || is_condensed(text);
        let text = condense(text.trim_end(), TURN_CHARS_MAX, Sort::Error).into_owned();
        self.turns.push(Turn { attempt, status, text, is_short, is_inherited: false });
    }

    /// Another plan goes on from here, and has no events of these attempts.
    pub(crate) fn inherit(&mut self) {
        self.turns.iter_mut().for_each(|turn| turn.is_inherited = true);
    }

    /// The attempts in the order in which they were made, each a text, in at most `room` characters with a line's end and
    /// a mark for each.
    pub(crate) fn tell(&self, task: TaskId, room: usize) -> Vec<String> {
        if room < ROOM_CHARS_MIN {
            return Vec::new();
        }
        // From the last to the first, until one more would leave too little for each.
        let mut n_told = self.turns.len();
        loop {
            let told = &self.turns[self.turns.len() - n_told..];
            let mark = self.mark(self.turns.len() - n_told);
            let fixed = told.iter().map(|turn| n_chars(&turn.heading()) + ENDS_CHARS).sum::<usize>()
                + mark.as_ref().map_or(0, |mark| n_chars(mark) + ENDS_CHARS);
            let left = room.saturating_sub(fixed);
            let limit = fair_limit(told.iter().map(Turn::n_chars), left);
            if limit >= TURN_CHARS_MIN || n_told <= 1 {
                let turns = told.iter().map(|turn| turn.tell(task, limit.min(left)));
                let all = mark.into_iter().chain(turns).collect::<Vec<_>>();
                let n_all = all.iter().map(|text| n_chars(text) + ENDS_CHARS).sum::<usize>();
                return if n_all <= room { all } else { Vec::new() };
            }
            n_told -= 1;
        }
    }

    /// What stands for the attempts before those that are told.
    fn mark(&self, n_left_out: usize) -> Option<String> {
        let n_before = self.n_before + n_left_out;
        (n_before > 0).then(|| format!("({n_before} attempts before these are not told here)"))
    }
}

/// What stands around a text: a sign before it and the end of its line.
const ENDS_CHARS: usize = 3;

impl Turn {
    fn heading(&self) -> String {
        let how = match self.status {
            TaskStatus::Cancelled => "was cancelled",
            TaskStatus::TimedOut => "ran too long",
            TaskStatus::Failed
            | TaskStatus::Completed
            | TaskStatus::Planned
            | TaskStatus::Running
            | TaskStatus::NeedsClarification
            | TaskStatus::Skipped => "failed",
        };
        format!("Attempt {} {how}: ", self.attempt)
    }

    fn n_chars(&self) -> usize {
        n_chars(&self.text)
    }

    /// The turn with at most so many characters of its text, the reference included.
    fn tell(&self, task: TaskId, limit: usize) -> String {
        let mut text = self.heading();
        if fits(&self.text, limit) && (!self.is_short || self.is_inherited) {
            text.push_str(&self.text);
            return text;
        }
        let reference = format!("\n(all of it: crewlog events --aggregate $CREWLOG_PLAN/{task})");
        // A reference that takes more than it leaves is none.
        match limit.checked_sub(n_chars(&reference)) {
            Some(room) if !self.is_inherited && room >= n_chars(&reference) => {
                text.push_str(&condense(&self.text, room, Sort::Error));
                text.push_str(&reference);
            }
            Some(_) | None => text.push_str(&condense(&self.text, limit, Sort::Error)),
        }
        text
    }
}
