//! The signs before list items: bullets, numbers, letters, boxes.

use std::borrow::Cow;

use super::phases;
use super::phrases::{Words, list, lower, strip_prefix_ci};
use super::text::{find_early, is_blank, is_cjk, is_invisible, spaces};
use crate::plan::Mark;

/// What stands before an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marker<'t> {
    /// A sign without order.
    Bullet,
    /// `1.`, `2.1`, `Step 3:`; the number as written.
    Number(Cow<'t, str>),
    /// `a)`.
    Letter(Cow<'t, str>),
    /// `iv.`.
    Roman(Cow<'t, str>),
}

impl<'t> Marker<'t> {
    pub(super) fn number(&self) -> Option<&Cow<'t, str>> {
        match self {
            Self::Bullet => None,
            Self::Number(number) | Self::Letter(number) | Self::Roman(number) => Some(number),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        !matches!(self, Self::Bullet)
    }

    /// 0 for bullets, then numbers, letters and Roman numbers: a list has one rank.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::Bullet => 0,
            Self::Number(_) => 1,
            Self::Letter(_) => 2,
            Self::Roman(_) => 3,
        }
    }
}

/// A marker, the box after it, and the bytes they take.
pub(super) struct Found<'t> {
    pub(super) marker: Marker<'t>,
    pub(super) mark: Option<Mark>,
    pub(super) skip: usize,
}

/// Reads the signs at the start of a line without indentation.
pub(super) fn item<'t>(content: &'t str, previous: Option<&str>, in_list: bool) -> Option<Found<'t>> {
    let mut skip = 0;
    let mut marker = None;
    let mut mark = None;
    if let Some((length, glyph)) = bullet(content) {
        skip = length;
        marker = Some(Marker::Bullet);
        mark = glyph;
    } else if let Some((number, length)) = ordered(content, previous, in_list) {
        skip = length;
        marker = Some(number);
    }
    skip += spaces(&content[skip..]);
    // "1. \u{2705} Book the room"
    if mark.is_none()
        && marker.is_some()
        && let Some((length, Some(glyph))) = bullet(&content[skip..])
    {
        mark = Some(glyph);
        skip += length + spaces(&content[skip + length..]);
    }
    if let Some((found, length)) = checkbox(&content[skip..]) {
        mark = Some(found);
        skip += length + spaces(&content[skip + length..]);
        marker = marker.or(Some(Marker::Bullet));
    }
    if let Some((found, length)) = status(&content[skip..]).filter(|_| mark.is_none() && marker.is_some()) {
        mark = Some(found);
        skip += length;
    }
    let marker = marker.or_else(|| (skip == 0 && begins_with_id(content)).then_some(Marker::Bullet))?;
    if marker == Marker::Bullet
        && let Some((number, length)) = ordered(&content[skip..], previous, in_list)
            .filter(|(m, _)| m.rank() == 1 || (mark.is_some() && is_lettered(m, &content[skip..])))
            .or_else(|| mark.and_then(|_| dotted(&content[skip..])))
    {
        let end = skip + length;
        return Some(Found { marker: number, mark, skip: end + spaces(&content[end..]) });
    }
    Some(Found { marker, mark, skip })
}

/// True for a line of words, with or without a bullet before it; in Markdown no other sign begins such a line.
pub(super) fn begins_with_words(content: &str) -> bool {
    match content.as_bytes() {
        [b'-' | b'*' | b'+', b' ', first, ..] => first.is_ascii_alphanumeric() || *first == b'[',
        [first, ..] => first.is_ascii_alphanumeric(),
        [] => false,
    }
}

/// `a) `, the name of an item; `(A)` behind a box is its priority.
fn is_lettered(marker: &Marker, content: &str) -> bool {
    matches!(marker, Marker::Letter(_)) && content.as_bytes().get(1) == Some(&b')')
}

/// True for "T1: fix it", "BUG-7: fix it" and "#7 Fix it": a line that is an item without a sign before it.
fn begins_with_id(content: &str) -> bool {
    if let Some(number) = content.strip_prefix('#') {
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        return rest.len() < number.len() && rest.starts_with(' ') && super::vocabulary::begins_with_verb(rest);
    }
    // "[ANN-12] Fix the login"
    if let Some((id, rest)) = content.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let ticket = id.split_once('-').is_some_and(|(project, number)| {
            (2..=10).contains(&project.len())
                && project.bytes().all(|byte| byte.is_ascii_uppercase())
                && (1..=6).contains(&number.len())
                && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        return ticket && rest.starts_with(' ') && super::vocabulary::begins_with_verb(rest);
    }
    if !content.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    let head = content.bytes().take(11).take_while(u8::is_ascii_uppercase).count();
    let rest = &content[head..];
    let dashed = rest.strip_prefix('-');
    let digits = dashed.unwrap_or(rest);
    let n_digits = digits.bytes().take(7).take_while(u8::is_ascii_digit).count();
    let named = match dashed {
        Some(_) => (2..=10).contains(&head) && !matches!(&content[..head], "UTF" | "SHA" | "ISO" | "RFC" | "CVE"),
        None => matches!(&content[..head], "T" | "P" | "US" | "A" | "B" | "F" | "TASK" | "STEP" | "BUG"),
    };
    let after = &digits[n_digits..];
    // "T001 Create the table" is an item, "T001 is done" a sentence.
    let plain = (dashed.is_some() || matches!(&content[..head], "T" | "TASK"))
        && after.starts_with(' ')
        && super::vocabulary::begins_with_verb(after);
    let signed = after.starts_with(": ") || (after.starts_with(". ") && &content[..head] == "T");
    named && (1..=6).contains(&n_digits) && (signed || plain)
}

/// The letter of "A: build it".
pub(super) fn letter(content: &str) -> Option<u8> {
    match content.as_bytes() {
        [letter, b':', b' ', ..] if letter.is_ascii_uppercase() => Some(*letter),
        _ => None,
    }
}

/// True when what comes is white space or the end.
pub(super) fn ends(rest: &str) -> bool {
    rest.starts_with(' ') || rest.trim_start_matches(is_invisible).chars().next().is_none_or(is_blank)
}

/// "Done: ", "WIP: " before the words of an item, and their length.
fn status(content: &str) -> Option<(Mark, usize)> {
    const WORDS: [(&str, Mark); 7] = [
        ("done", Mark::Done),
        ("completed", Mark::Done),
        ("doing", Mark::InProgress),
        ("in progress", Mark::InProgress),
        ("wip", Mark::InProgress),
        ("cancelled", Mark::Cancelled),
        ("canceled", Mark::Cancelled),
    ];
    let first = content.as_bytes().first()? | 0x20;
    if !matches!(first, b'd' | b'i' | b'w' | b'c' | b'*') {
        return None;
    }
    let bold = content.len() - content.trim_start_matches('*').len();
    WORDS.iter().find_map(|(word, mark)| {
        let rest = strip_prefix_ci(&content[bold..], word)?;
        let rest = rest.trim_start_matches('*').strip_prefix(':')?.trim_start_matches('*');
        let from = content.len() - rest.len() + spaces(rest);
        (ends(rest) && from < content.len() && (bold == 0 || bold == 2)).then_some((*mark, from))
    })
}

/// The length of a bullet, and the mark that its glyph is.
fn bullet(content: &str) -> Option<(usize, Option<Mark>)> {
    let c = content.chars().next()?;
    if c.is_ascii() && !matches!(c, '-' | '*' | '+') {
        return None;
    }
    let mut length = c.len_utf8();
    // Signs of warning stand before remarks.
    if matches!(c, '\u{26a0}' | '\u{2757}' | '\u{203c}' | '\u{2139}' | '\u{1f4a1}') {
        return None;
    }
    let plain = matches!(c, '-' | '*' | '+' | '\u{2022}' | '\u{2013}' | '\u{2014}' | '\u{2023}' | '\u{2043}')
        || matches!(c, '\u{b7}' | '\u{bb}' | '\u{203a}' | '\u{30fb}' | '\u{25aa}'..='\u{25ef}');
    let glyph = match c {
        '\u{2610}' => Some(Mark::Open),
        '\u{2611}' | '\u{2705}' | '\u{2713}' | '\u{2714}' => Some(Mark::Done),
        '\u{1f6a7}' | '\u{23f3}' | '\u{1f504}' => Some(Mark::InProgress),
        '\u{2b1c}' | '\u{1f532}' | '\u{25a1}' | '\u{25fb}' => Some(Mark::Open),
        _ => None,
    };
    if !plain && glyph.is_none() && !is_emoji(c) {
        return None;
    }
    // Modifiers and joined parts belong to the emoji before them.
    for part in content[length..].chars() {
        if !(matches!(part, '\u{fe0f}' | '\u{200d}' | '\u{1f3fb}'..='\u{1f3ff}') || (!plain && is_emoji(part))) {
            break;
        }
        length += part.len_utf8();
    }
    let rest = &content[length..];
    ((ends(rest) || c == '\u{30fb}') && (c == '-' || !rest.trim_start_matches(is_blank).is_empty()))
        .then_some((length, glyph))
}

pub(super) fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1f300}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{23e9}'..='\u{23fa}')
}

/// True for an emoji that says nothing of how far an item is.
pub(super) fn is_picture(c: char) -> bool {
    let known = matches!(c, '\u{2610}' | '\u{2611}' | '\u{274c}' | '\u{274e}' | '\u{2b1c}' | '\u{2b1b}' | '\u{1f532}');
    is_emoji(c) && !is_state(c) && !known && !matches!(c, '\u{2794}'..='\u{27be}')
}

/// True for a sign before an item that says how far it is, unless it is an ornament.
pub(super) fn is_state(c: char) -> bool {
    matches!(c, '\u{2705}' | '\u{2713}' | '\u{2714}' | '\u{1f6a7}' | '\u{23f3}' | '\u{1f504}')
}

/// `[ ]`, `[x]`, `[~]`, `[-]`, `[!]`, `[?]` and their length.
pub(super) fn checkbox(content: &str) -> Option<(Mark, usize)> {
    let rest = content.strip_prefix('[')?;
    let inner = &rest[..find_early(rest, b']', 4)?];
    let mark = match inner.trim_matches(is_blank) {
        "" if inner.chars().all(is_blank) && rest.len() > inner.len() => Mark::Open,
        "x" | "X" | "*" | "\u{2713}" | "\u{2714}" => Mark::Done,
        "~" | "/" | ">" => Mark::InProgress,
        "-" => Mark::Cancelled,
        // What is important, and what is in question, is still to be done.
        "!" | "?" => Mark::Open,
        _ => return None,
    };
    // A star behind the box marks what may be left out.
    let length = inner.len() + 2 + usize::from(rest[inner.len()..].starts_with("]*"));
    let rest = content.get(length..)?;
    ends(rest).then_some((mark, length))
}

/// A number, a letter or a Roman number with its sign, and its length.
fn ordered<'t>(content: &'t str, previous: Option<&str>, in_list: bool) -> Option<(Marker<'t>, usize)> {
    if let Some(found) = stepped(content) {
        return Some(found);
    }
    if content.as_bytes().first().is_some_and(|first| *first >= 0x80) {
        return wide(content, previous);
    }
    let open = usize::from(content.starts_with('('));
    let body = &content[open..];
    let length = body.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'.').count();
    let token = body[..length].trim_end_matches('.');
    let tail = &body[token.len()..];
    if token.is_empty() || token.len() > 12 {
        return None;
    }
    let sign = tail.chars().next();
    let closed = match sign {
        Some(')') => true,
        Some('.' | ':') => open == 0,
        Some('\u{3001}' | '\u{ff0e}' | '\u{ff09}') => true,
        Some('\u{fe0f}' | '\u{20e3}') => return keycap(token, content),
        _ => false,
    };
    let signed = if closed { sign.map_or(0, char::len_utf8) } else { 0 };
    // A word without a sign is no number, nor is "T1:".
    if (signed == 0 || sign == Some(':')) && token.as_bytes()[0].is_ascii_alphabetic() {
        return None;
    }
    let after = &tail[signed..];
    let wide = sign.is_some_and(|c| matches!(c, '\u{3001}' | '\u{ff0e}' | '\u{ff09}'));
    if !(ends(after) || wide || (signed > 0 && after.starts_with(is_cjk))) {
        return None;
    }
    // "A. Smith" is a name and "A. Book the flight" an item.
    if token == "A" && sign == Some('.') && super::vocabulary::begins_with_verb(after) {
        return Some((Marker::Letter("a".into()), open + token.len() + signed));
    }
    // "1 Clean the data" and "2 Train the model", one under the other.
    if signed == 0 && counts(token, after, previous) {
        return Some((Marker::Number(strip_zeros(token).into()), token.len()));
    }
    let marker = numbered(token, sign, signed > 0, open > 0, previous, in_list)?;
    Some((marker, open + token.len() + signed))
}

/// The number of "2.2 Flip the default" behind a box.
fn dotted(content: &str) -> Option<(Marker<'_>, usize)> {
    if !content.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (number, rest) = content.split_once(' ')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let counted = number.len() <= 12 && number.contains('.') && number.split('.').all(digits);
    let begins = rest.starts_with(|c: char| c.is_uppercase() || c == '`');
    (counted && begins).then(|| (Marker::Number(number.into()), number.len()))
}

/// True for a number without a sign before an instruction, when it begins a list or goes on with one.
fn counts(token: &str, after: &str, previous: Option<&str>) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let dotted = token.contains('.') && token.split('.').all(digits);
    let next = || {
        let above = previous.and_then(|previous| previous.split('.').next()?.parse::<u64>().ok());
        digits(token) && token.parse().is_ok_and(|own: u64| above.is_some_and(|above| own == above + 1))
    };
    let capital = after.trim_start().starts_with(|c: char| c.is_ascii_uppercase());
    capital && (token == "1" || dotted || next()) && super::vocabulary::begins_with_verb(after)
}

/// Numbers that are not ASCII: `\u{4e00}\u{3001}`, `\u{ff11}\u{ff0e}`, `\u{2460}`, and `\u{7b2c}\u{4e00}\u{6b65}` for the first step.
fn wide<'t>(content: &'t str, previous: Option<&str>) -> Option<(Marker<'t>, usize)> {
    let first = content.chars().next()?;
    if let '\u{2460}'..='\u{2473}' = first {
        return Some((Marker::Number((first as u32 - 0x245f).to_string().into()), first.len_utf8()));
    }
    let step = first == '\u{7b2c}';
    let open = usize::from(step || first == '\u{ff08}') * first.len_utf8();
    let (value, length) = wide_number(&content[open..])?;
    let mut end = open + length;
    if step {
        end += content[end..].strip_prefix('\u{6b65}').map(|_| '\u{6b65}'.len_utf8())?;
    }
    let sign = content[end..].chars().next()?;
    let signs = ['\u{3001}', '\u{ff0e}', '\u{ff09}', '.', ')'];
    let fits = signs.contains(&sign) || (step && matches!(sign, '\u{ff1a}' | ':' | '\u{ff0c}' | ' '));
    // "\u{4e09}\u{3001}\u{56db}" alone is no third item.
    let above = previous.and_then(|previous| previous.parse().ok()).unwrap_or(0_u32);
    let rest = &content[end + sign.len_utf8()..];
    let follows = value == 1 || value == above + 1;
    (fits && follows && !rest.trim().is_empty())
        .then(|| (Marker::Number(value.to_string().into()), end + sign.len_utf8()))
}

/// A number in full-width digits, in Chinese up to 99, or after `\u{7b2c}` in plain digits, and its length.
fn wide_number(text: &str) -> Option<(u32, usize)> {
    const DIGITS: [char; 9] =
        ['\u{4e00}', '\u{4e8c}', '\u{4e09}', '\u{56db}', '\u{4e94}', '\u{516d}', '\u{4e03}', '\u{516b}', '\u{4e5d}'];
    let (mut value, mut ten, mut length) = (0_u32, None, 0);
    for c in text.chars().take(4) {
        let han = DIGITS.iter().position(|digit| *digit == c).map(|n| n as u32 + 1);
        let digit = c.to_digit(10).or_else(|| (c as u32).checked_sub(0xff10).filter(|digit| *digit < 10));
        match (han, digit) {
            (Some(han), _) => value = han,
            (None, Some(digit)) => value = value * 10 + digit,
            (None, None) if c == '\u{5341}' && ten.is_none() => ten = Some(std::mem::take(&mut value).max(1)),
            (None, None) => break,
        }
        length += c.len_utf8();
    }
    let value = value + ten.map_or(0, |ten| 10 * ten);
    (value > 0).then_some((value, length))
}

fn numbered<'t>(
    token: &'t str,
    sign: Option<char>,
    closed: bool,
    open: bool,
    previous: Option<&str>,
    in_list: bool,
) -> Option<Marker<'t>> {
    if token.bytes().all(|b| b.is_ascii_digit()) {
        return (closed && sign != Some(':')).then(|| Marker::Number(strip_zeros(token).into()));
    }
    if token.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())) {
        let follows = previous.is_some_and(|p| follows(p, token));
        return (closed || follows || token.ends_with(".1")).then(|| Marker::Number(token.into()));
    }
    if !closed || sign == Some(':') || !token.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    let lower = lower(token);
    let one_case = token == lower || token == token.to_ascii_uppercase();
    let letter_follows = token.len() == 1
        && previous.is_some_and(|p| p.len() == 1 && p.as_bytes()[0].wrapping_add(1) == lower.as_bytes()[0]);
    if letter_follows && in_list {
        return Some(Marker::Letter(lower));
    }
    if one_case && phases::roman(&lower).is_some() && (&*lower == "i" || in_list) {
        return Some(Marker::Roman(lower));
    }
    let begins = &*lower == "a" && (token == "a" || open || sign == Some(')'));
    (token.len() == 1 && (begins || (in_list && (open || sign == Some(')'))))).then_some(Marker::Letter(lower))
}

/// `Step 2:`, `**Task 3.**`, `**3.**`: lines that people number with a word.
fn stepped(content: &str) -> Option<(Marker<'_>, usize)> {
    // Two letters tell nearly all other lines from these.
    if !matches!(content.as_bytes(), [b'*', ..] | [b's' | b'S', b't' | b'T', ..] | [b't' | b'T', b'a' | b'A', ..]) {
        return None;
    }
    let bold = content.len() - content.trim_start_matches('*').len();
    let named = ["step ", "task "].iter().find_map(|word| strip_prefix_ci(&content[bold..], word));
    // A number alone does it when it is bold: `**1.** ...`, `**1. ...**`.
    let short = |rest: &&str| bold == 2 && rest.bytes().take(4).take_while(u8::is_ascii_digit).count() < 4;
    let rest = named.or(Some(&content[bold..]).filter(short))?;
    let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let number = rest[..digits].trim_end_matches('.');
    let tail = &rest[number.len()..];
    let sign = tail.chars().next().filter(|c| matches!(c, ':' | '.' | ')' | '\u{ff1a}')).map(char::len_utf8);
    let dash = tail.trim_start().chars().next().filter(|c| matches!(c, '-' | '\u{2013}' | '\u{2014}'));
    let length = match (sign, dash) {
        (Some(length), _) => length,
        (None, Some(dash)) if named.is_some() => tail.len() - tail.trim_start().len() + dash.len_utf8(),
        (None, _) => return None,
    };
    let mut after = &tail[length..];
    if bold > 0 {
        after = after.trim_start_matches('*');
    }
    let fits = !number.is_empty() && number.len() <= 12 && !after.trim().is_empty() && after.starts_with(is_blank);
    // A bold text that goes on after the sign keeps its own asterisks.
    (fits).then(|| (Marker::Number(number.into()), content.len() - after.len()))
}

fn keycap<'t>(token: &'t str, content: &str) -> Option<(Marker<'t>, usize)> {
    let rest = content[token.len()..].trim_start_matches(['\u{fe0f}', '\u{20e3}']);
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    (digits && ends(rest)).then(|| (Marker::Number(strip_zeros(token).into()), content.len() - rest.len()))
}

fn strip_zeros(digits: &str) -> &str {
    let short = digits.trim_start_matches('0');
    if short.is_empty() { "0" } else { short }
}

/// True when a dotted number goes on from the number before it.
fn follows(previous: &str, token: &str) -> bool {
    let parts: Vec<&str> = token.split('.').collect();
    let before: Vec<&str> = previous.split('.').collect();
    let shared = parts.iter().zip(&before).take_while(|(a, b)| a == b).count();
    shared + 1 >= parts.len() || shared + 1 >= before.len()
}

/// A line that leads to a list below it is no longer.
const LEAD_BYTES_MAX: usize = 60;

/// A line such as `**Goal**: ...` that is never the rest of the item above it.
pub(super) fn label_line(content: &str) -> bool {
    let label = content.starts_with("**") && content.len() < 2_000 && content.contains(':');
    let leads = content.ends_with(':') && content.len() <= LEAD_BYTES_MAX;
    label || leads || super::references::begins_chain(content) || phases::begins(content) || begins_anew(content)
}

/// "Then deploy both.", "Steps 2 and 3 can run in parallel.": a sentence after a list, and no rest of its last item.
fn begins_anew(content: &str) -> bool {
    static WORDS: Words =
        Words::new(|| list("Then |Then, |Finally, |Finally |After that, |Afterwards, |Lastly, |Once all |Once both "));
    let counted = ["Steps ", "Tasks "].iter().find_map(|word| content.strip_prefix(word));
    WORDS.begin(content) || counted.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
