//! What parts sentences in other languages than English, and what does not: "then" after a comma or an "and", numbers and
//! abbreviations with full stops. What a connector means for the place of a step, `connectors` says.

use super::phrases::{Words, begins, list, words};
use super::text::holds;
use super::vocabulary;

/// After a comma, the next step.
static LISTED: Words = Words::new(|| {
    list(
        "dann|danach|anschlie\u{df}end|daraufhin|schlie\u{df}lich|zuletzt|gleichzeitig|ensuite|puis|enfin|apr\u{e8}s cela|\
     en parall\u{e8}le|luego|despu\u{e9}s|entonces|finalmente|mientras tanto|poi|infine|depois|em seguida|por fim|daarna|\
     vervolgens|затем|потом|а затем|а потом|и затем|и потом|после этого|наконец",
    )
});
/// After "and", the next step.
static AND_THEN: Words = Words::new(|| {
    list(
        "und dann|und danach|und anschlie\u{df}end|und schlie\u{df}lich|und zuletzt|et ensuite|et puis|et enfin|y luego|\
     y despu\u{e9}s|y entonces|y finalmente|e poi|e infine|e depois|e em seguida|e por fim|en dan|en daarna|en vervolgens",
    )
});
/// After a comma, what is to be done where a condition does not hold.
static OTHERWISE: Words =
    Words::new(|| list("sonst|ansonsten|andernfalls|sinon|de lo contrario|altrimenti|sen\u{e3}o|anders|иначе"));
/// What begins a condition, whose "then" is no step after it.
const IFS: &[&str] = &["wenn", "falls", "sobald", "si", "cuando", "quand", "se", "quando", "если", "Если"];

/// True for what follows a comma when it is "then" with a step behind it.
pub(super) fn listed(rest: &str) -> bool {
    let next = rest.strip_prefix(' ').filter(|next| LISTED.after(next).is_some());
    next.is_some_and(|next| next.split_whitespace().nth(1).is_some())
}

/// True for what follows a comma when it is "otherwise" with a step behind it.
pub(super) fn otherwise(rest: &str) -> bool {
    let next = rest.strip_prefix(' ').filter(|next| OTHERWISE.after(next).is_some());
    next.is_some_and(|next| next.split_whitespace().nth(1).is_some())
}

/// True for "cleans it" behind "a script that fetches it": the sentence goes on to say what the thing does.
pub(super) fn tells(sentence: &str, rest: &str) -> bool {
    let relative = [" that ", " which ", " who "].iter().any(|word| holds(sentence, word));
    let does = |word: &str| word.strip_suffix('s').is_some_and(vocabulary::is_verb) && !vocabulary::is_verb(word);
    relative && words(rest).next().is_some_and(|word| does(word.as_str()))
}

/// True for "and then" with a step behind it.
pub(super) fn joined(rest: &str) -> bool {
    and(rest) > 0
        && (AND_THEN.after(rest).is_some() || then_later(rest).is_some())
        && rest.split_whitespace().nth(2).is_some()
}

/// True for a sentence that begins with a condition.
pub(super) fn is_conditional(sentence: &str) -> bool {
    begins(sentence.trim_start(), IFS)
}

/// The length of "and " at the start.
fn and(rest: &str) -> usize {
    match rest.as_bytes() {
        [b'u', b'n', b'd', b' ', ..] => 4,
        [b'e', b't' | b'n', b' ', ..] => 3,
        [b'e' | b'y', b' ', ..] => 2,
        _ => 0,
    }
}

/// After "and" in languages where "then" may stand behind the verb.
static THEN_LATER: Words = Words::new(|| {
    list(
        "dann|danach|anschlie\u{df}end|schlie\u{df}lich|zuletzt|daraufhin|ensuite|puis|enfin|luego|despu\u{e9}s|finalmente|\
         poi|infine|depois|daarna|vervolgens",
    )
});

/// The length of "und " in "und schreibe anschlie\u{df}end ...", "et \u{e9}cris ensuite ...".
pub(super) fn then_later(rest: &str) -> Option<usize> {
    let length = Some(and(rest)).filter(|length| *length > 0)?;
    let mut words = rest[length..].split(' ');
    let verb = words.next().filter(|verb| !verb.is_empty() && verb.chars().all(|c| c.is_alphabetic() || c == '-'))?;
    let then = words.next()?.trim_end_matches([',', ':']);
    let later = THEN_LATER.contains_ci(then) && !THEN_LATER.contains_ci(verb);
    (later && words.next().is_some()).then_some(length)
}

/// True for the full stop in "am 3. Mai" and "die 2. Fassung": a number that says which, and ends no sentence.
pub(super) fn is_ordinal(tail: &str, word: &str, after: &str) -> bool {
    static MONTHS: Words = Words::new(|| {
        list(
            "januar|februar|m\u{e4}rz|april|mai|juni|juli|august|september|oktober|november|dezember|january|february|march|may|\
             june|july|october|december",
        )
    });
    const BEFORE: [&str; 18] = [
        "am", "der", "die", "das", "dem", "den", "des", "im", "vom", "zum", "zur", "ab", "bis", "beim", "jede",
        "jeden", "ein", "eine",
    ];
    if word.is_empty() || word.len() > 2 || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let next = after.trim_start().split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let before = tail[..tail.len() - word.len()].trim_end().rsplit(' ').next().unwrap_or("");
    MONTHS.contains_ci(next) || !next.is_empty() && BEFORE.iter().any(|one| one.eq_ignore_ascii_case(before))
}

/// True within "z. B.", "d. h." and "p. ex.": one or two letters with full stops, the first of them small and single.
pub(super) fn is_short(tail: &str, word: &str, after: &str) -> bool {
    if !(1..=2).contains(&word.len()) || !tail.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let small = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let second = |text: &[u8]| match text {
        [one, b'.', ..] => one.is_ascii_alphabetic(),
        [one, two, b'.', ..] => one.is_ascii_lowercase() && two.is_ascii_lowercase(),
        _ => false,
    };
    let (before, own) = tail.split_at(tail.len() - word.len());
    let first = before.trim_end().strip_suffix('.').map(|before| before.rsplit([' ', '(']).next().unwrap_or(before));
    let closes = own.len() == 1 || own.bytes().all(|byte| byte.is_ascii_lowercase());
    (small(own) && second(after.trim_start().as_bytes())) || (closes && first.is_some_and(small))
}
