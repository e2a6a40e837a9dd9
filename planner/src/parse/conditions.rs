//! "if ..., A" and "A unless ...": where a condition stands in a clause.

use super::draft::Reference;
use super::inline::Inline;
use super::phrases::{Words, after_word, begins, list, words};
use super::references;
use super::sentences::{Clause, Stop};
use super::starts::CONDITION;
use super::text::rfind;
use super::vocabulary;
use crate::plan::NodeKind;

/// Words before "if" that make it part of a question: "check if".
static ASKS: Words = Words::new(|| {
    list(
        "check|see|verify|ask|know|determine|test|find|confirm|tell|wonder|wondering\
     |decide|whether|even|as|what|and|or|identify|detect|validate|sure|question|like|love|great|helpful|appreciate|out",
    )
});
/// Conditions that say nothing.
static IDLE: Words = Words::new(|| {
    list(
        "needed|possible|necessary|any|applicable|you can|required|available|you want\
     |you like|desired|appropriate|relevant|so|not|in doubt|present",
    )
});

/// Where the condition ends and where the instruction begins.
pub(super) fn condition_end(text: &str, inline: &Inline, start: usize, to: usize) -> Option<(usize, usize)> {
    let mut guards = inline.guards[inline.guards.partition_point(|(_, end)| *end <= start)..].iter().peekable();
    let mut then = None;
    for (offset, c) in text[start..to].char_indices() {
        let at = start + offset;
        while guards.next_if(|(_, end)| *end <= at).is_some() {}
        if guards.peek().is_some_and(|(from, _)| *from <= at) {
            continue;
        }
        if c == ' ' && then.is_none() && text[at..to].starts_with(" then ") {
            then = Some((at, at + 6));
        }
        if matches!(c, ',' | '\u{ff0c}' | ':') && at > start {
            let comma = at + c.len_utf8();
            let rest = text[comma..to].trim_start();
            let rest = after_word(rest, "then").map_or(rest, |rest| rest.trim_start_matches([',', ' ']));
            let next = to - rest.len();
            return (!rest.is_empty()).then_some((at, next));
        }
    }
    then
}

/// "the build fails": what may happen or not, so that "when" before it is an "if".
pub(super) fn is_outcome(said: &str) -> bool {
    words(said).last().is_some_and(|last| matches!(last.as_str(), "fails" | "fail" | "failed" | "breaks" | "crashes"))
}

/// The tasks that a condition names and asks about: "1 succeeds", "steps 2 and 3 are done".
pub(super) fn tested(said: &str, at: usize) -> Option<Vec<Reference>> {
    static COMES: Words = Words::new(|| {
        list(
            "is|are|has|have|was|were|does|did|succeeds|succeed|succeeded|passes|pass|passed|fails|fail|failed|works|\
             completes|complete|finishes|finish|breaks|returns|exits|reports|finds|says",
        )
    });
    let (names, length) = references::prefix(said, at)?;
    let plain = |name: &Reference| matches!(name, Reference::Name(..) | Reference::Range(..));
    let asked = COMES.after(said[length..].trim_start()).is_some();
    (asked && names.iter().all(plain)).then_some(names)
}

/// What follows "On failure" at the start, where it is an instruction.
pub(super) fn after_failure(part: &str) -> Option<&str> {
    let rest = after_word(part, "on failure").or_else(|| after_word(part, "on error"))?;
    let rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    vocabulary::begins_with_verb(rest).then_some(rest)
}

/// "(if the tests pass)" at the end.
fn bracketed(part: &str) -> Option<(usize, usize, bool)> {
    if !part.ends_with(')') {
        return None;
    }
    let at = rfind(part, " (")?;
    let words = [(" (if ", false), (" (only if ", false), (" (unless ", true)];
    let (word, negated) = words.into_iter().find(|(word, _)| part[at..].starts_with(word))?;
    let tail = part[at + word.len()..].trim_end_matches(')');
    (!IDLE.contains(tail) && !tail.contains([';', '('])).then_some((at, word.len(), negated))
}

/// True for the "if" of "replace it with an if expression": the name of a thing.
fn is_name(before: &str, tail: &str) -> bool {
    let last = before.rsplit(' ').next().unwrap_or("");
    let article = ["a", "an", "the", "nested"];
    let named = ["expression", "expressions", "statement", "statements", "clause", "clauses", "block", "blocks"];
    article.iter().any(|one| last.eq_ignore_ascii_case(one)) || begins(tail, &named)
}

/// What begins a condition behind a step, and whether it is "unless"; the longer one behind the one with which it ends.
const WITHIN: [(&str, bool); 11] = [
    (" if ", false),
    (" wenn ", false),
    (" si ", false),
    (" unless ", true),
    (" only if ", false),
    (" au\u{df}er wenn ", true),
    (" es sei denn, ", true),
    (" sauf si ", true),
    (" \u{e0} moins que ", true),
    (" a menos que ", true),
    (" a meno che ", true),
];

/// Where " if ..." begins, where its text begins, and whether it is "unless".
pub(super) fn trailing_condition(text: &str, inline: &Inline, clause: &Clause) -> Option<(usize, usize, bool)> {
    if !inline.starts.has(CONDITION) {
        return None;
    }
    let part = &text[clause.from..clause.to];
    if let Some(found) = bracketed(part) {
        let (at, length, negated) = found;
        return Some((clause.from + at, clause.from + at + length, negated));
    }
    let found = WITHIN.iter().filter_map(|(word, negated)| rfind(part, word).map(|at| (at, word.len(), *negated)));
    let (at, word, negated) = found.max_by_key(|(at, length, _)| at + length)?;
    let at = if part[..at].ends_with(" only") { at - 5 } else { at };
    let word = if part[at..].starts_with(" only if ") { 9 } else { word };
    let before = &part[..at];
    let said = words(before).any(|one| ASKS.contains(one.as_str()));
    // "Comprueba si ..." asks whether.
    let asking = [Some(NodeKind::Analysis), Some(NodeKind::Clarification), Some(NodeKind::Retrieval)];
    let foreign = !negated && !part[..at + word].ends_with("if ") && asking.contains(&vocabulary::own_kind(before));
    let said = said || foreign;
    let tail = part[at + word..].trim();
    let place = clause.from + at;
    let guard = inline.guards.get(inline.guards.partition_point(|(_, end)| *end <= place));
    let inside = guard.is_some_and(|(from, _)| *from <= place);
    let empty = before.trim().is_empty() || tail.is_empty();
    let asks = (said || is_name(before, tail)) && !negated;
    let fits = !inside && !empty && !asks && !IDLE.contains(tail) && clause.stop != Stop::Question;
    fits.then_some((place, place + word, negated))
}
