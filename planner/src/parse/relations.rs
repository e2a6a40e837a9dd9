//! Lines beside the tasks that say which waits for which: "T006 blocks T007", "Step 3 must wait for step 1", "Tests
//! (T4-T5) before implementation (T6-T8)", "Steps 2 and 3 can run in parallel". Both sides name tasks by number or id;
//! what speaks of anything else is no such line.

use super::draft::Reference;
use super::phrases::{Words, list};
use super::references;
use super::text::{find, first_word};

/// What stands on the left comes first.
static FIRST: Words = Words::new(|| {
    list(
        "blocks|block|unblocks|unblock|precedes|precede|before|comes before|come before|must come before|\
         goes before|go before|must run before|must complete before|must be complete before|\
         must be completed before|must be done before|must be finished before|must finish before|\
         should be done before|should run before|has to be done before|have to be done before|\
         needs to be done before|need to be done before|is needed for|are needed for|is required for|\
         are required for|is a prerequisite for|is a prerequisite of|are prerequisites for|are prerequisites of",
    )
});
/// What stands on the right comes first.
static LAST: Words = Words::new(|| {
    list(
        "depends on|depend on|is dependent on|are dependent on|is blocked by|are blocked by|blocked by|requires|\
         require|needs|need|waits for|wait for|waits on|wait on|must wait for|must wait on|has to wait for|\
         have to wait for|should wait for|can only start after|can start after|can begin after|must start after|\
         must begin after|must run after|must come after|must be done after|should run after|should start after|\
         runs after|run after|starts after|start after|comes after|come after|follows|follow|after",
    )
});
/// Neither does.
static BESIDE: Words = Words::new(|| {
    list(
        "in parallel|in parallel with|can run in parallel|can run in parallel with|can be done in parallel|\
         can be done in parallel with|can be run in parallel|can be run in parallel with|can go in parallel|\
         run in parallel|run in parallel with|can all run in parallel|can happen in parallel|are parallel|\
         can run at the same time|can be done at the same time|can run at the same time as|can run concurrently|\
         can run side by side|can run together|are independent|are independent of each other|is independent of|\
         are independent of",
    )
});

/// What has to pass before what follows: "1 and 2" of "1 and 2 must pass".
pub(super) fn gated(text: &str) -> Option<&str> {
    const PASSES: [&str; 9] =
        ["pass", "succeed", "complete", "finish", "be done", "be complete", "be completed", "be finished", "be green"];
    const MUST: [&str; 7] = ["must", "have to", "has to", "need to", "needs to", "should", "shall"];
    let ends = |text: &'_ str, word: &str| text.strip_suffix(word).filter(|rest| rest.ends_with(' ')).map(str::len);
    let cut = |text: &'_ str, all: &[&str]| all.iter().find_map(|word| ends(text, word));
    let said = text.trim_end();
    let said = said[..cut(said, &PASSES)?].trim_end();
    let said = said[..cut(said, &["both", "all"]).unwrap_or(said.len())].trim_end();
    let subject = &said[..cut(said, &MUST)?];
    (!subject.trim().is_empty()).then_some(subject)
}

/// Words before names in parentheses: "Tests (T4-T5)".
const WORDS_MAX: usize = 6;

/// What such lines say.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// The second wait for the first.
    pub(super) pairs: Vec<(Vec<Reference>, Vec<Reference>)>,
    /// None of these waits for another of them.
    pub(super) beside: Vec<Vec<Reference>>,
}

/// True when a text begins as such a line does.
pub(super) fn begins(text: &str) -> bool {
    if is_task(text) {
        return false;
    }
    let text = unled(text);
    let first = first_word(text);
    let word = first.trim_start_matches(['#', '*', '`', '[', '(']);
    is_lead(first)
        || word.len() == 1 && word.bytes().all(|b| b.is_ascii_alphabetic())
        || (word.len() <= 16 && word.bytes().any(|b| b.is_ascii_digit()))
}

/// True for a line between items that begins with such a sentence about steps or tasks: "Steps 2 and 3 can run in
/// parallel. ..."
pub(super) fn is_line(line: &str) -> bool {
    is_led(line) && asides(line, |at| at).is_some()
}

/// "T1: ..." and "T1 [P] ...": a task, and not what it waits for.
fn is_task(text: &str) -> bool {
    let bytes = text.as_bytes();
    let head = bytes.iter().take(13).take_while(|byte| byte.is_ascii_uppercase()).count();
    let digits = bytes[head..].iter().take(13).take_while(|byte| byte.is_ascii_digit()).count();
    let named = (1..=12).contains(&head) && (1..=12).contains(&digits);
    named && matches!(&bytes[head + digits..], [b':', b' ', ..] | [b' ', b'[', ..])
}

/// Reads a text of which each sentence is such a line, and names a task that is `known`; else there is nothing.
pub(super) fn relations(
    text: &str,
    known: impl Fn(&Reference) -> bool,
    source: impl Fn(usize) -> usize,
) -> Option<Relations> {
    read(text, Some(&known), source)
}

/// Reads such lines in a text that speaks of other things too: sides that begin with "step" or "task", or whose names
/// have letters.
pub(super) fn asides(text: &str, source: impl Fn(usize) -> usize) -> Option<Relations> {
    read(text, None, source)
}

fn read(text: &str, known: Option<&dyn Fn(&Reference) -> bool>, source: impl Fn(usize) -> usize) -> Option<Relations> {
    let mut found = Relations::default();
    let mut any = false;
    let mut at = 0;
    while at < text.len() {
        let ends = text.as_bytes()[at..].iter().position(|byte| matches!(byte, b'\n' | b';'));
        let line = &text[at..ends.map_or(text.len(), |end| at + end + 1)];
        let mut from = 0;
        while from < line.len() {
            let end = find(&line[from..], ". ").map_or(line.len(), |dot| from + dot + 2);
            let sentence = &line[from..end];
            if !sentence.trim().is_empty() {
                let place = source(at + from);
                let is_relation = match known {
                    Some(_) => relations_in(sentence, place, known, &mut found),
                    None => relation(sentence, place, known, &mut found),
                };
                any |= is_relation;
                if known.is_some() && !is_relation {
                    return None;
                }
            }
            from = end;
        }
        at += line.len();
    }
    any.then_some(found)
}

/// "Order: " and its like, which only say what follows.
static LEADS: Words = Words::new(|| list("order:|execution order:|dependencies:|dependency order:|ordering:"));

/// A line without "Order:" before it.
fn unled(text: &str) -> &str {
    LEADS.after(text).map_or(text, str::trim_start)
}

/// Reads a sentence that is one such line, or several behind commas: "Order: T2 after T1, T3 after T2".
fn relations_in(sentence: &str, at: usize, known: Option<&dyn Fn(&Reference) -> bool>, found: &mut Relations) -> bool {
    let plain = unled(sentence.trim_start());
    let at = at + sentence.len() - plain.len();
    if relation(plain, at, known, found) {
        return true;
    }
    let mut parts = Relations::default();
    let mut from = 0;
    for part in plain.split(", ") {
        let own = part.strip_prefix("and ").or_else(|| part.strip_prefix("then ")).unwrap_or(part);
        if !relation(own, at + from + part.len() - own.len(), known, &mut parts) {
            return false;
        }
        from += part.len() + 2;
    }
    found.pairs.append(&mut parts.pairs);
    found.beside.append(&mut parts.beside);
    true
}

/// Reads one sentence into `found`; false when it says something else.
fn relation(sentence: &str, at: usize, known: Option<&dyn Fn(&Reference) -> bool>, found: &mut Relations) -> bool {
    let gap = sentence.len() - sentence.trim_start().len();
    let text = sentence.trim_start();
    let side = |text, at| known.and_then(|_| references::letters(text, at)).or_else(|| side(text, at));
    let Some((left, length)) = side(text, at + gap) else { return false };
    let fits = |names: &[Reference], written: &str| match known {
        Some(known) => names.iter().any(known),
        None => is_led(written) || names.iter().all(has_letters),
    };
    if known.is_none() && !fits(&left, text) {
        return false;
    }
    let rest = text[length..].trim_start();
    let taken = |after: &str| text.len() - after.len();
    if let Some((_, after)) = BESIDE.longest(rest) {
        let others = side(after.trim_start(), at + gap + taken(after.trim_start()));
        let (others, length) = others.unwrap_or_default();
        let named = left.len() + others.len() > 1 || matches!(left.first(), Some(Reference::Range(..)));
        let rest = &after.trim_start()[length..];
        // "Steps 2 and 3 can run in parallel, all others one by one."
        let ends = (ends(rest) || known.is_none() && rest.starts_with(','))
            && (fits(&left, text) || fits(&others, after.trim_start()));
        if ends && named {
            found.beside.push(left.into_iter().chain(others).collect());
        }
        return ends && named;
    }
    let lists = [(&FIRST, true), (&LAST, false)];
    let verb = lists.into_iter().find_map(|(list, first)| list.longest(rest).map(|(_, after)| (first, after)));
    let Some((first, after)) = verb else { return false };
    let after = after.trim_start();
    let Some((right, length)) = side(after, at + gap + taken(after)) else { return false };
    let fit = match known {
        Some(_) => fits(&left, text) || fits(&right, after),
        None => fits(&right, after),
    };
    if !fit || !ends(&after[length..]) {
        return false;
    }
    found.pairs.push(if first { (left, right) } else { (right, left) });
    true
}

/// Names of tasks at the start, alone or in parentheses behind a few words, and the bytes they take.
fn side(text: &str, at: usize) -> Option<(Vec<Reference>, usize)> {
    let numbered = |names: &Vec<Reference>| names.iter().all(is_numbered);
    if let Some(found) = references::prefix(text, at).filter(|(names, _)| numbered(names)) {
        return Some(found);
    }
    let open = text.find('(')?;
    let head = &text[..open];
    if head.split_whitespace().count() > WORDS_MAX || head.contains(['.', ',', '`', '\n']) {
        return None;
    }
    let (names, length) = references::prefix(&text[open + 1..], at + open + 1).filter(|(names, _)| numbered(names))?;
    let end = open + 1 + length;
    text[end..].starts_with(')').then_some((names, end + 1))
}

/// True for a name that nothing but a task has.
fn is_numbered(name: &Reference) -> bool {
    match name {
        Reference::Name(name, _) | Reference::Range(name, _, _) => name.bytes().any(|b| b.is_ascii_digit()),
        Reference::Previous | Reference::Both | Reference::Above | Reference::Phrase(..) | Reference::Word(..) => false,
    }
}

/// True of what begins with "step 2", "tasks T1" and their like.
fn is_led(text: &str) -> bool {
    is_lead(first_word(text))
}

fn is_lead(word: &str) -> bool {
    let word = word.trim_start_matches(['*', '(']);
    ["step", "steps", "task", "tasks"].iter().any(|lead| word.eq_ignore_ascii_case(lead))
}

fn has_letters(name: &Reference) -> bool {
    match name {
        Reference::Name(name, _) | Reference::Range(name, _, _) => name.bytes().any(|b| b.is_ascii_alphabetic()),
        Reference::Previous | Reference::Both | Reference::Above | Reference::Phrase(..) | Reference::Word(..) => false,
    }
}

/// True where a sentence may end: nothing more, or a remark on it.
fn ends(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with(['.', ';', '(', '\u{2014}', '\u{2013}', '*'])
}
