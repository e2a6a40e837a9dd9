//! What has been read of a text when its tasks are not joined yet.

use std::borrow::Cow;

use super::draft::{Draft, Reference, Step};
use super::error::Diagnostic;
use super::parsed::WARNINGS_MAX;
use super::text::Lines;
use crate::plan::{Attachment, Span};

/// Everything read from a text, before the tasks are numbered.
#[derive(Debug, Default)]
pub(super) struct Built<'t> {
    pub(super) title: Option<String>,
    pub(super) drafts: Vec<Draft>,
    pub(super) steps: Vec<Step>,
    pub(super) context: Vec<String>,
    pub(super) ignored: Vec<Span>,
    /// `A -> B` lines and "B needs A".
    pub(super) chains: Vec<Chain>,
    /// "Steps 2 and 3 can run in parallel": none of these waits for another of them because of the order of the text.
    /// With each, whether a name that no task has is none.
    pub(super) beside: Vec<(Vec<Reference>, bool)>,
    /// What the reader of the plan should know.
    pub(super) odd: Vec<Odd>,
    /// A numbered list of requirements was taken for context.
    pub(super) requires: bool,
    /// Numbers of items, numbers and ids of groups.
    pub(super) names: Vec<Name<'t>>,
}

/// Tasks that wait for others, by their names.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) first: Vec<Reference>,
    pub(super) then: Vec<Reference>,
    /// It stands where other things are spoken of too: a name that no task has is none.
    pub(super) lenient: bool,
}

/// Something that was left out or guessed, and the byte where it stands.
#[derive(Debug, Clone)]
pub(super) struct Odd {
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: Cow<'static, str>,
}

/// The warning of words that look like a setting.
pub(super) fn unread((at, words): (usize, String)) -> Odd {
    let who = ["assignee", "owner", "assigned"].iter().any(|word| words.to_ascii_lowercase().starts_with(word));
    let timed = ["deadline", "estimate", "default"].iter().any(|word| words.to_ascii_lowercase().starts_with(word));
    let undoes = ["undo", "compensate"].iter().any(|word| words.to_ascii_lowercase().starts_with(word));
    let help = "write for example (retry 3), (timeout 10m), (rerun: safe), (files: src/a.rs) or (on failure: continue), where skip, stop \
                and ask are the others";
    let help = match () {
        () if who => "write one name: @ann, or (assignee: ann)",
        () if timed => "write a time such as 30m, 2h or 1h30m: (deadline 2h), (estimate 30m), (default: yes after 10m)",
        () if undoes => "write the command between backticks: (undo: `make clean`)",
        () => help,
    };
    Odd {
        at,
        message: format!("\"{words}\" cannot be read as a setting and stays part of the text"),
        help: help.into(),
    }
}

/// The warning of code that looks like a command and is read as a name.
pub(super) fn not_taken((at, code): (usize, String)) -> Odd {
    let message = format!("`{code}` is not taken as a command");
    Odd { at, message, help: format!("write: Run `{code}`").into() }
}

/// What is odd, in the order of the text; the first [`WARNINGS_MAX`] of it.
pub(super) fn diagnostics(mut odd: Vec<Odd>, lines: &Lines<'_>) -> Vec<Diagnostic> {
    odd.sort_by_key(|one| one.at);
    let shown = odd.into_iter().take(WARNINGS_MAX).map(|one| {
        let (line, column) = lines.place(one.at);
        Diagnostic { message: one.message, line, column, help: Some(one.help.into_owned()) }
    });
    shown.collect()
}

/// A name that stands for the drafts `first..end`.
#[derive(Debug)]
pub(super) struct Name<'t> {
    pub(super) text: Cow<'t, str>,
    /// The list in which a number counts; ids count everywhere.
    pub(super) list: Option<usize>,
    pub(super) first: usize,
    pub(super) end: usize,
}

/// Sorted and without overlap.
pub(super) fn merge_spans(spans: &mut Vec<Span>) {
    spans.sort_unstable();
    spans.dedup_by(|span, last| {
        let overlaps = span.start < last.end;
        if overlaps {
            last.end = last.end.max(span.end);
        }
        overlaps
    });
}

/// Adds what is not there yet.
pub(super) fn attach(to: &mut Vec<Attachment>, more: Vec<Attachment>) {
    for one in more {
        if !to.iter().any(|old| old.kind == one.kind) {
            to.push(one);
        }
    }
}

pub(super) fn merge_needs(draft: &mut Draft, needs: Option<Vec<Reference>>) {
    match (&mut draft.needs, needs) {
        (Some(all), Some(mut needs)) => all.append(&mut needs),
        (none, Some(needs)) => *none = Some(needs),
        (_, None) => {}
    }
}
