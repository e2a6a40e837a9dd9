//! The summary of a plan's history and the events since; both decide when the context is compacted.

use serde::{Deserialize, Serialize};

use crate::text::n_chars;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// A task ended: its index.
    Ended(usize),
    /// A question was answered: its index.
    Answered(usize),
}

/// The summary, and the entries since.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) text: String,
    /// The entries since, in order, each with the most characters of its line.
    since: Vec<(Entry, usize)>,
    /// Characters of the summary and of all lines since.
    pub(super) n_chars: usize,
    /// The last event that the summary covers.
    pub(crate) covered: u64,
}

impl Summary {
    /// The entries since the summary, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.since.iter().map(|(entry, _)| *entry)
    }

    pub(super) fn add(&mut self, entry: Entry, name: &str, subject: &str, outcome: &str) {
        let n_chars = [(name, NAME_CHARS_MAX), (subject, SUBJECT_CHARS_MAX), (outcome, OUTCOME_CHARS_MAX)];
        let n_chars = n_chars.iter().map(|(text, max)| text.chars().take(*max).count()).sum::<usize>() + FRAME_CHARS;
        self.since.push((entry, n_chars.min(LINE_CHARS_MAX + 1)));
        self.n_chars += n_chars.min(LINE_CHARS_MAX + 1);
    }

    pub(super) fn keep(&mut self, is_kept: impl Fn(Entry) -> bool) {
        self.since.retain(|(entry, _)| is_kept(*entry));
        self.count();
    }

    fn count(&mut self) {
        let text = if self.text.is_empty() { 0 } else { n_chars(&self.text) + 1 };
        self.n_chars = text + self.since.iter().map(|(_, n_chars)| n_chars).sum::<usize>();
    }
}
