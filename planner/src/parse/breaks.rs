//! Line ends that end a clause: one instruction per line, and jotted lists.

use super::connectors::connector;
use super::phrases::{Word, words};
use super::sentences::{Splitter, tail_of};
use super::text::is_cjk;
use super::{heads, roles, unasked, vocabulary};

/// A line of a jotted list is shorter.
const JOTTED_BYTES_MAX: usize = 64;

impl Splitter<'_> {
    /// A line end splits when the lines are instructions, one per line, and not wrapped prose.
    pub(super) fn line_breaks(&self, at: usize) -> bool {
        let next = self.text[at + 1..].trim_start();
        let line = tail_of(self.text, self.last(), at, 200);
        let line = line.rsplit('\n').next().unwrap_or(line);
        let width = next.split_whitespace().next().map_or(0, str::len);
        let capital = next.chars().next().is_some_and(|c| c.is_uppercase() || c == '`');
        let joined = line.trim_end().ends_with([',', '-', '\u{2013}']) || line.trim_end().ends_with(" and");
        // "If it fails:" and what it leads to are one, and it begins a line of its own.
        if line.trim_end().ends_with(':') && heads::head(line).is_some_and(|head| head.rest.is_empty()) {
            return false;
        }
        if is_under_denial(tail_of(self.text, self.last(), at, 200)) {
            return false;
        }
        let begins = || ["If ", "Unless ", "Else", "Otherwise"].iter().any(|word| next.starts_with(word));
        if !joined && (begins() || roles::closes(next)) {
            return true;
        }
        let short = !joined && line.len() + width < 60;
        let labelled = || ["TODO:", "FIXME:", "Note:", "NB:"].iter().any(|label| next.starts_with(label));
        // "Second: upgrade it" under "First: make a backup".
        let counted = || connector(next).is_some_and(|(.., length)| next[..length].trim_end().ends_with(':'));
        let instructs = || vocabulary::begins_with_verb(next) || labelled() || counted() || roles::is_constraint(next);
        short && ((capital && instructs()) || Self::is_jotted(line, next))
    }

    /// "buy flour" above "bake bread": short instructions in lower case, one per line; also "then bake it" and "pls don't
    /// burn it", and lines in Chinese characters, which have no case.
    fn is_jotted(line: &str, next: &str) -> bool {
        let jotted = |line: &str| {
            let bare = connector(line).map_or(line, |(.., length)| &line[length..]);
            let han = || line.starts_with(is_cjk) && vocabulary::own_kind(line).is_some();
            line.len() < JOTTED_BYTES_MAX
                && !line.ends_with(['.', ';', ':', '\u{3002}', '\u{ff0c}', '\u{3001}'])
                && (line.starts_with(|c: char| c.is_ascii_lowercase())
                    && (vocabulary::begins_with_verb(bare) || unasked::is_prohibition(line))
                    || han())
        };
        let next = next.lines().next().unwrap_or("").trim_end();
        jotted(next) && (jotted(line.trim()) || asks_below(line))
    }
}

/// True below "Never do this:", "What Bob did:" and their like: the lines are what is forbidden, told or shown.
fn is_under_denial(lines: &str) -> bool {
    let label = lines.split('\n').map(str::trim).find_map(|line| line.strip_suffix(':'));
    let said = label.filter(|label| !label.is_empty());
    said.is_some_and(|said| {
        let past = |word: Word| matches!(word.as_str(), "did" | "done" | "said" | "says" | "ran");
        unasked::forbids_below(said) || unasked::quotes(said) || unasked::denies(said) || words(said).any(past)
    })
}

/// "hey, pls do these:" above jotted lines.
fn asks_below(line: &str) -> bool {
    let asks = |word: Word| matches!(word.as_str(), "please" | "pls" | "plz");
    let denies = |word: Word| matches!(word.as_str(), "not" | "dont" | "don't" | "never" | "already" | "said" | "says");
    line.ends_with(':') && words(line).any(asks) && !words(line).any(denies) && !unasked::forbids(line)
}
