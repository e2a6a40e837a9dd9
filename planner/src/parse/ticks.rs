//! Writes states back into a plan file as the smallest change of its bytes.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use super::{Format, MarkAt, ParsedPlan};
use crate::plan::{Mark, Span, TaskId};

/// A file with states written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The new text.
    pub text: String,
    /// The bytes of the old text that were replaced, in order; an empty span is an insertion.
    pub changed: Vec<Span>,
    /// Tasks with a state but without a place in the file to show it, by number.
    pub unwritten: Vec<TaskId>,
}

/// Writes the states of tasks into the text that a plan was read from.
///
/// A state without a mark in the format changes nothing. A group is marked done when its required parts have ended and
/// one is done. If the caller set `plan.marks` to an earlier state, the part counts as ended now; its bytes stay. `now`
/// is the time, as RFC 3339, for formats that record it.
pub fn write_states(text: &str, plan: &ParsedPlan, states: &[(TaskId, Mark)], now: &str) -> Written {
    let old = |place: usize| plan.marks.get(place).and_then(|mark| text.get(mark.span.start..mark.span.end));
    let shows = |word: &str| (0..plan.marks.len()).any(|place| old(place) == Some(word));
    let capital = plan.format == Format::SpecKit && shows("X") && !shows("x");
    let new = |mark: Mark| if capital && mark == Mark::Done { Some("X") } else { word(plan.format, mark) };
    let places: HashMap<_, _> = plan.marks.iter().enumerate().filter_map(|(at, mark)| Some((mark.of?, at))).collect();
    let mut shown = plan.marks.iter().map(|mark| mark.mark).collect::<Vec<_>>();
    let (mut written, mut kept, mut unwritten) = (Vec::new(), Vec::new(), Vec::new());
    for (task, mark) in states.iter().copied().collect::<BTreeMap<_, _>>() {
        let Some(place) = places.get(&task).copied().filter(|place| old(*place).is_some()) else {
            unwritten.extend(Some(task).filter(|_| !mark.is_open()));
            continue;
        };
        if let (true, Some(new), Some(old)) = (shown[place] != mark, new(mark), old(place)) {
            shown[place] = mark;
            // The caller may have set a place to an earlier state than the text shows.
            if new.eq_ignore_ascii_case(old) { kept.push(place) } else { written.push(place) }
        }
    }
    let ended = end_groups(&plan.marks, &mut shown, written.iter().chain(&kept));
    written.extend(ended);

    let mut edits = Vec::new();
    for place in written {
        if let (Some(old), Some(new)) = (old(place), new(shown[place])) {
            edits.push((Span::of(text, old), new.to_owned()));
            if plan.format == Format::Beads {
                edits.extend(times(text, plan.marks[place].span.start, shown[place], now));
            }
        }
    }
    edits.sort_unstable();
    let (mut result, mut end, mut changed) = (String::with_capacity(text.len()), 0, Vec::new());
    for (span, new) in edits {
        if let Some(kept) = text.get(end..span.start) {
            result.push_str(kept);
            result.push_str(&new);
            end = span.end;
            changed.push(span);
        }
    }
    result.push_str(text.get(end..).unwrap_or_default());
    Written { text: result, changed, unwritten }
}

/// The mark that is read back after a state was written; open for a state without a mark in the format.
pub fn expressible(format: Format, mark: Mark) -> Mark {
    if word(format, mark).is_some() { mark } else { Mark::Open }
}

/// The text for a state in a format: the character in a box, or a JSON string.
const fn word(format: Format, mark: Mark) -> Option<&'static str> {
    match (format, mark) {
        (Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro, Mark::Open) => Some(" "),
        (Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro, Mark::Done) => Some("x"),
        (Format::Markdown, Mark::InProgress) => Some("~"),
        (Format::Kiro, Mark::InProgress) | (Format::Markdown, Mark::Cancelled) => Some("-"),
        (Format::TaskMaster, Mark::Open) => Some("\"pending\""),
        (Format::TaskMaster, Mark::InProgress) => Some("\"in-progress\""),
        (Format::TaskMaster, Mark::Done) => Some("\"done\""),
        (Format::TaskMaster, Mark::Cancelled) => Some("\"cancelled\""),
        (Format::Beads, Mark::Open) => Some("\"open\""),
        (Format::Beads, Mark::InProgress) => Some("\"in_progress\""),
        (Format::Beads, Mark::Done) => Some("\"closed\""),
        (Format::SpecKit | Format::OpenSpec, Mark::InProgress | Mark::Cancelled)
        | (Format::Kiro | Format::Beads, Mark::Cancelled)
        | (_, Mark::Deferred) => None,
    }
}

/// The marks of the parts of a group; optional parts count only if all parts are optional.
#[derive(Clone, Copy, Default)]
struct Parts {
    n_required: usize,
    n_open_required: usize,
    n_open_optional: usize,
    n_done: usize,
    n_ended_now: usize,
}

/// Marks the groups that end because of written states as done, innermost first, and returns their places.
fn end_groups<'a>(marks: &[MarkAt], shown: &mut [Mark], written: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut parts = vec![Parts::default(); marks.len()];
    for place in written.filter(|place| shown[**place].is_end()) {
        parts[*place].n_ended_now += 1;
    }
    let mut ended = Vec::new();
    // A group comes before its parts.
    for place in (0..marks.len()).rev() {
        let own = parts[place];
        let parts_ended = if own.n_required > 0 { own.n_open_required == 0 } else { own.n_open_optional == 0 };
        let is_group = marks[place].of.is_none();
        if is_group && parts_ended && own.n_done > 0 && own.n_ended_now > 0 && shown[place] != Mark::Done {
            shown[place] = Mark::Done;
            ended.push(place);
        }
        let Some(parent) = marks[place].parent else { continue };
        let is_open = usize::from(!(parts_ended && shown[place].is_end()));
        let group = &mut parts[parent];
        if marks[place].optional {
            group.n_open_optional += is_open;
        } else {
            group.n_required += 1;
            group.n_open_required += is_open;
        }
        group.n_done += own.n_done + usize::from(shown[place] == Mark::Done);
        group.n_ended_now += own.n_ended_now;
    }
    ended
}

/// Sets the times that beads stores with a state, in the record around a byte.
fn times(text: &str, at: usize, mark: Mark, now: &str) -> Vec<(Span, String)> {
    let names: &[&str] = match mark {
        Mark::Done => &["updated_at", "closed_at"],
        Mark::Open | Mark::InProgress => &["updated_at"],
        Mark::Cancelled | Mark::Deferred => &[],
    };
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let record = line.trim_start_matches('\u{feff}').trim();
    let Ok(fields) = serde_json::from_str::<HashMap<String, &RawValue>>(record) else { return Vec::new() };
    let now = serde_json::Value::from(now).to_string();
    let (mut edits, mut missing) = (Vec::new(), String::new());
    for name in names {
        match fields.get(*name) {
            Some(value) if value.get() == now => {}
            Some(value) => edits.push((Span::of(text, value.get()), now.clone())),
            None => missing.push_str(&format!(",\"{name}\":{now}")),
        }
    }
    if !missing.is_empty() {
        let brace = Span::of(text, record).end - 1;
        edits.push((Span { start: brace, end: brace }, missing));
    }
    edits
}
