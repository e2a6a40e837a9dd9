//! How texts name other tasks: numbers, labels, ranges, "the previous step", and plain descriptions.

use super::draft::Reference;
use super::phrases::{self, Words, after_word, strip_prefix_ci};
use super::text::{has_byte, trim};
use super::waits::after_done;

/// Words before a name that are no part of it.
static LEADS: Words = Words::new(|| {
    phrases::list("steps|step|tasks|task|items|item|issue|no.|number|both|all of|either|only|completion of|the")
});

static ABOVE: Words = Words::new(|| {
    phrases::list(
        "all of the above|all the above|all previous steps|all previous tasks|all previous|everything above|all above|\
     all of them|all of these|all other tasks|all tasks above|everything else|all prior tasks",
    )
});
static BOTH: Words = Words::new(|| phrases::list("both of them|both of the above"));
static PREVIOUS: Words = Words::new(|| {
    phrases::list(
        "the previous step|the previous task|the previous one|previous step|previous task|previous|the above|that|this",
    )
});

/// Words that are ids with a number right behind them.
static COUNTED: Words =
    Words::new(|| phrases::list("Task|Step|Story|Phase|Item|Feature|Bug|Issue|Ticket|Milestone|Node|Stage|Job|Part"));

/// What says that there is nothing to name.
static NOTHING: Words = Words::new(|| phrases::list("none|nothing|-|n/a|\u{2014}|\u{2013}|no|nil"));

/// True for "none" and its like.
pub(super) fn is_nothing(text: &str) -> bool {
    NOTHING.contains_ci(text.trim().trim_end_matches('.'))
}

/// True for what stands behind "before" where all that comes later is meant: "before you start", "before anything else".
pub(super) fn is_all_that_follows(text: &str) -> bool {
    static STARTS: Words = Words::new(|| {
        phrases::list(
            "you start|you begin|we start|we begin|starting|beginning|anything else|everything else|all else|\
             doing anything|doing anything else|you do anything|you do anything else|any of this|any of that",
        )
    });
    STARTS.contains_ci(text)
}

/// Adds all references in a text that is nothing but a list of them; words that are no names become phrases.
pub(super) fn list(found: &mut Vec<Reference>, text: &str, at: usize) {
    if is_plain_id(text) {
        return push(found, text, at);
    }
    let mut from = 0;
    for (end, sign) in separators(text) {
        push(found, &text[from..end], at + from);
        from = end + sign;
    }
    push(found, &text[from..], at + from);
}

/// The same for a text that can only name tasks: single words are names, where tasks have names.
pub(super) fn names(found: &mut Vec<Reference>, text: &str, at: usize) {
    let first = found.len();
    list(found, text, at);
    for reference in &mut found[first..] {
        if let Reference::Phrase(word, at) = reference
            && !word.contains(char::is_whitespace)
        {
            *reference = Reference::Word(std::mem::take(word), *at);
        }
    }
}

fn push(found: &mut Vec<Reference>, part: &str, at: usize) {
    let at = at + (part.len() - part.trim_start().len());
    let part = trim(part);
    if is_plain_id(part) {
        return found.push(Reference::Name(part.to_owned(), at));
    }
    let part = part.trim_end_matches(['.', ':']).trim();
    if part.is_empty() || NOTHING.contains_ci(part) {
        return;
    }
    match name(part, at) {
        Some((reference, length)) if part[length..].trim().is_empty() => found.push(reference),
        Some(_) | None => found.push(Reference::Phrase(part.to_owned(), at)),
    }
}

/// Where commas and their like stand, and how long they are.
fn separators(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.char_indices().filter_map(|(at, c)| match c {
        ',' | '&' | '+' | ';' | '\u{3001}' | '\u{ff0c}' => Some((at, c.len_utf8())),
        ' ' => {
            let word = [" and ", " or ", " plus ", " y ", " und ", " et "]
                .iter()
                .find(|word| strip_prefix_ci(&text[at..], word).is_some());
            word.map(|word| (at, word.len() - 1))
        }
        _ => None,
    })
}

/// References at the start of running text, and the bytes they take; nothing when the first is no name.
pub(super) fn prefix(text: &str, at: usize) -> Option<(Vec<Reference>, usize)> {
    let mut found = Vec::new();
    let mut end = 0;
    loop {
        let gap = text[end..].len() - text[end..].trim_start().len();
        let Some((reference, length)) = name(&text[end + gap..], at + end + gap) else { break };
        found.push(reference);
        end += gap + length;
        let rest = &text[end..];
        let Some(sign) =
            [", and ", ",", " and ", " & ", " + ", " or ", "&", "/"].iter().find(|sign| rest.starts_with(**sign))
        else {
            return Some((found, end));
        };
        let next = rest[sign.len()..].trim_start();
        if name(next, 0).is_none() {
            return Some((found, end));
        }
        end += sign.len();
    }
    (!found.is_empty()).then_some((found, end))
}

/// Single letters at the start, as the items of a list may have them, and the bytes they take: "a", "A and B".
pub(super) fn letters(text: &str, at: usize) -> Option<(Vec<Reference>, usize)> {
    let mut found = Vec::new();
    let mut end = 0;
    loop {
        let rest = &text[end..];
        let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
        let next = &rest[1..];
        if next.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '-' | '_')) {
            return None;
        }
        found.push(Reference::Name(letter.to_string(), at + end));
        end += 1;
        let signs = [", and ", ", ", " and ", " & ", "+", "&", ","];
        let Some(sign) = signs.iter().find(|sign| next.starts_with(**sign)) else { return Some((found, end)) };
        end += sign.len();
    }
}

/// True for a letter that is also a word or the name of a thing.
pub(super) fn is_small_letter(name: &Reference) -> bool {
    matches!(name, Reference::Name(name, _) if matches!(name.as_bytes(), [b'a'..=b'z']))
}

/// One name at the start, and its length.
fn name(text: &str, at: usize) -> Option<(Reference, usize)> {
    // Of words none has a digit so early.
    if text.bytes().take(2).any(|byte| byte.is_ascii_digit()) {
        return id_or_range(text, text, false, at);
    }
    // Alone these are references; before names they only lead to them.
    let alone = [("both", Reference::Both), ("all", Reference::Above), ("everything", Reference::Above)];
    for (word, reference) in alone {
        let ends = |rest: &str| rest.is_empty() || rest.starts_with([')', ',', '.', ';']);
        if after_word(text, word).is_some_and(|rest| ends(rest) || after_done(rest).is_some_and(ends)) {
            return Some((reference, word.len()));
        }
    }
    let general = [(&ABOVE, Reference::Above), (&BOTH, Reference::Both), (&PREVIOUS, Reference::Previous)];
    for (words, reference) in general {
        if let Some(rest) = words.after(text) {
            return Some((reference, text.len() - rest.len()));
        }
    }
    let mut rest = text;
    let mut led = false;
    while let Some(after) = LEADS.after(rest).filter(|after| after.starts_with(' ')) {
        // "the API" is a thing and "task API" a name.
        led |= !["the", "both", "all of", "either", "only", "completion of"]
            .iter()
            .any(|lead| strip_prefix_ci(rest, lead).is_some_and(|tail| tail.len() == after.len()));
        rest = after.trim_start();
    }
    id_or_range(text, rest, led, at)
}

/// The id at the start of `rest`, the end of `text`, or the range that begins with it.
fn id_or_range(text: &str, rest: &str, led: bool, at: usize) -> Option<(Reference, usize)> {
    let rest = rest.strip_prefix('#').unwrap_or(rest);
    let sign = rest.chars().next().filter(|c| matches!(c, '[' | '`' | '(' | '*'));
    let rest = rest.trim_start_matches(['[', '`', '(', '*']);
    let token = id(rest, led)?;
    let mut end = text.len() - rest.len() + token.len();
    if sign.is_some() {
        end += text[end..].len() - text[end..].trim_start_matches([']', '`', ')', '*']).len();
    }
    let start = at + (text.len() - rest.len());
    let tail = &text[end..];
    let joins = ["-", "\u{2013}", "..", " to ", " through ", " - ", " \u{2013} "];
    for join in joins.into_iter().filter(|_| !tail.is_empty()) {
        if let Some(last) = tail.strip_prefix(join).and_then(|after| id(after.trim_start_matches('#'), led))
            && !last.contains('-')
        {
            let length = tail.find(last).unwrap_or(0) + last.len();
            return Some((Reference::Range(token.to_owned(), last.to_owned(), start), end + length));
        }
    }
    Some((Reference::Name(token.to_owned(), start), end))
}

/// A word that can only be an id: a number, letters with a number, or one or two capitals.
fn id(text: &str, led: bool) -> Option<&str> {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')).count();
    let mut token = text[..length].trim_end_matches(['.', '-', '_']);
    // "T001-T003" is a range and "BUG-12" an id.
    if let Some(dash) = token.bytes().position(|byte| byte == b'-')
        && let (first, last) = (&token[..dash], &token[dash + 1..])
        && is_id(first, led)
        && first.bytes().any(|b| b.is_ascii_digit())
        && is_id(last, led)
    {
        token = first;
    }
    let follows = &text[token.len()..];
    let ends = follows.chars().next().is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '/' | '%' | '\''));
    // "17:30" is a time.
    let ends = ends && !follows.strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    (ends && is_id(token, led)).then_some(token)
}

/// True for `T12`: capitals and then digits, and nothing else.
pub(super) fn is_plain_id(text: &str) -> bool {
    let head = text.bytes().take(13).take_while(u8::is_ascii_uppercase).count();
    let digits = &text.as_bytes()[head..];
    (1..=12).contains(&head) && (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

pub(super) fn is_id(token: &str, led: bool) -> bool {
    let bytes = token.as_bytes();
    if bytes.is_empty() || bytes.len() > 32 {
        return false;
    }
    if !bytes.iter().any(u8::is_ascii_digit) {
        return bytes.iter().all(u8::is_ascii_uppercase) && (bytes.len() == 1 || (led && bytes.len() <= 3));
    }
    let counts = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let (head, number) = bytes.split_at(bytes.len() - bytes.iter().rev().take_while(counts).count());
    if head.is_empty() {
        return bytes[0] != b'.' && bytes.len() < 8;
    }
    let plain = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let lettered = !number.is_empty() && head.len() <= 12 && head.iter().all(plain);
    // "T1", "BUG-3" and "Step2" are ids, "IPv4" and "Python3" things.
    let shouted = head.iter().any(u8::is_ascii_uppercase) && !head.iter().any(u8::is_ascii_lowercase);
    let dashed = head.ends_with(b"-") || head.ends_with(b"_");
    let named = led || shouted || dashed || token.get(..head.len()).is_some_and(|head| COUNTED.contains_ci(head));
    let suffixed = matches!(bytes, [first, .., digit, last]
        if first.is_ascii_uppercase() && digit.is_ascii_digit() && last.is_ascii_lowercase());
    (lettered && named) || suffixed
}

/// Reads the `A -> B` lines of a text, as pairs of what stands on both sides of an arrow.
pub(super) fn chains(text: &str, source: impl Fn(usize) -> usize) -> Vec<(Vec<Reference>, Vec<Reference>)> {
    let mut found = Vec::new();
    let mut from = 0;
    let pairwise = is_pairwise(text);
    for line in text.split_inclusive(|c: char| matches!(c, '\n' | ';') || (pairwise && c == ',')) {
        let mut chain = Vec::new();
        let mut at = from;
        from += line.len();
        let arrows = line.replace('\u{2192}', "->").replace("=>", "->");
        let parts: Vec<&str> = arrows.split("->").collect();
        for part in &parts {
            let plain = part.trim().trim_end_matches(['.', ';', ',']);
            let plain = plain.rsplit(": ").next().unwrap_or(plain);
            match prefix(plain, source(at)).or_else(|| letters(plain, source(at))) {
                Some((names, length)) if plain[length..].trim().is_empty() => chain.push(names),
                Some(_) | None => return Vec::new(),
            }
            at += part.len();
        }
        if parts.len() < 2 {
            return Vec::new();
        }
        found.extend(chain.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    }
    found
}

/// True for `A -> B, A -> C`: each part has one arrow, and as a row a name would stand in it twice.
fn is_pairwise(text: &str) -> bool {
    if !has_byte(text, b',') || text.contains(['\n', ';']) {
        return false;
    }
    let sides = |part: &str| part.replace('\u{2192}', "->").replace("=>", "->");
    let plain = text.rsplit(": ").next().unwrap_or(text);
    let mut names = Vec::new();
    for part in plain.split(',') {
        let part = sides(part);
        let Some((first, then)) = part.split_once("->").filter(|(_, then)| !then.contains("->")) else { return false };
        names.extend([first, then].map(|name| name.trim().trim_end_matches('.').to_owned()));
    }
    let n_names = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < n_names
}

/// True for a line that begins like `T001 -> T002`.
pub(super) fn begins_chain(line: &str) -> bool {
    let rest = prefix(line, 0).and_then(|(_, length)| line.get(length..)).map(str::trim_start);
    rest.is_some_and(|rest| ["->", "=>", "\u{2192}"].iter().any(|arrow| rest.starts_with(arrow)))
}
