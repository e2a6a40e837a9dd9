//! "If it fails:", "Otherwise:" above steps: the words that make all that stands under them conditional.
//!
//! It only reads the words; what a "not" or an "otherwise" refers to is not known here.

use super::phrases::{Words, after_any, after_word, list, words};
use super::vocabulary;
use crate::plan::Condition;

/// What stands under a condition.
#[derive(Debug)]
pub(super) struct Branch {
    /// How much is open inside it, itself with it.
    pub(super) depth: usize,
    /// Its own condition, which "otherwise" after it turns round.
    pub(super) own: Condition,
    /// The condition of what stands around it.
    pub(super) outer: Option<Condition>,
}

impl Branch {
    /// Both conditions in one.
    pub(super) fn whole(&self) -> Condition {
        self.outer.as_ref().map_or_else(|| self.own.clone(), |outer| both(outer, &self.own))
    }

    /// The condition of a step that stands in it and may have one of its own.
    pub(super) fn give(&self, step: Option<Condition>) -> Condition {
        match (step, &self.outer) {
            (None, _) => self.whole(),
            // The same thing is asked again, or "otherwise" stands in the branch itself.
            (Some(step), None) if step.text == self.own.text => step,
            (Some(step), Some(outer)) if step.text == self.own.text => both(outer, &step),
            (Some(step), _) => both(&self.whole(), &step),
        }
    }
}

fn both(first: &Condition, second: &Condition) -> Condition {
    if first == second {
        return first.clone();
    }
    let said = |one: &Condition| match one.negated {
        true => format!("it is not so that {}", one.text),
        false => one.text.clone(),
    };
    Condition { text: format!("{}, and {}", said(first), said(second)), negated: false, outcome_of: None }
}

/// What a line that leads to steps asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// "If it fails:"
    This(Condition),
    /// "Otherwise:"
    Otherwise,
}

/// A line that leads to steps.
#[derive(Debug)]
pub(super) struct Head<'t> {
    pub(super) asks: Asks,
    /// What it says beside: "do the following".
    pub(super) rest: &'t str,
}

static OTHERWISE: Words = Words::new(|| {
    list(
        "otherwise|else|or else|sonst|ansonsten|andernfalls|sinon|altrimenti|de lo contrario|caso contrário|si no|sen\u{e3}o|иначе|Иначе|\u{5426}\u{5219}",
    )
});
/// What ends in no outcome is a time and no condition: "When done:", "When to deploy".
static STATES: Words = Words::new(|| {
    list("is|are|was|were|has|have|does|isn't|aren't|doesn't|fail|fails|failed|pass|passes|succeeds|breaks|crashes")
});
static DONE: Words = Words::new(|| list("done|finished|complete|completed|over"));

/// Words of other languages for "if", which are other words too unless a comma or a colon follows the condition.
pub(super) const FOREIGN: [&str; 10] =
    ["wenn", "falls", "sofern", "si", "se", "als", "indien", "wanneer", "если", "Если"];

/// All words with which a condition begins, here or in the language of another: most lines begin with none.
static OPENINGS: Words = Words::new(|| {
    list(
        "otherwise|else|or else|sonst|ansonsten|andernfalls|sinon|altrimenti|de lo contrario|caso contrário|\u{5426}\u{5219}|and|but|then|on |\
         upon |unless|only if|if|in case|\u{5982}\u{679c}|\u{3082}\u{3057}|when|should|wenn|falls|sofern|si|se|als|indien|wanneer|\
         если|Если|иначе|Иначе|sinon|si no|sen\u{e3}o",
    )
});

/// False for a text that begins with no word of a condition.
pub(super) fn may_open(text: &str) -> bool {
    OPENINGS.begin_ci(text)
}

/// True for a foreign "if" with a condition and a comma or a colon behind it.
pub(super) fn is_foreign(text: &str) -> bool {
    after_any(text, &FOREIGN).is_some_and(|rest| rest.starts_with(' ') && rest.contains([',', ':']))
}

/// Of a longer condition only so many bytes are kept, since each step under it has a copy.
const CONDITION_BYTES_MAX: usize = 2_000;

/// Reads a line that may lead to steps.
pub(super) fn head(line: &str) -> Option<Head<'_>> {
    if !may_open(line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#'))) {
        return None;
    }
    const SIGNS: [char; 12] = ['*', '_', '#', ':', '\u{ff1a}', ',', '\u{ff0c}', '.', '\u{2026}', '-', '\u{2014}', ' '];
    let colon = line.trim_end_matches(['*', '_', ' ', '\n']).ends_with([':', '\u{ff1a}']);
    let plain = line.trim().trim_start_matches(['*', '_', '#', ' ']).trim_end_matches(SIGNS);
    let plain = after_any(plain, &["and", "but", "then"]).map_or(plain, |rest| rest.trim_start_matches([',', ' ']));
    let bare = |rest: &'_ str| rest.trim_start_matches(SIGNS).len();
    let tail = |rest: &str| &plain[plain.len() - bare(rest)..];
    if let Some(rest) = OTHERWISE.after(plain) {
        return Some(Head { asks: Asks::Otherwise, rest: tail(rest) });
    }
    if let Some(rest) = after_word(plain, "if not").filter(|rest| rest.is_empty() || rest.starts_with([',', ':'])) {
        return Some(Head { asks: Asks::Otherwise, rest: tail(rest) });
    }
    let ends = [
        ("on failure", "it fails"),
        ("upon failure", "it fails"),
        ("in case of failure", "it fails"),
        ("in case of error", "it fails"),
        ("on error", "it fails"),
        ("on success", "it succeeds"),
        ("upon success", "it succeeds"),
    ];
    for (word, said) in ends {
        if let Some(rest) = after_word(plain, word).filter(|rest| rest.is_empty() || rest.starts_with([',', ':'])) {
            let asks = Asks::This(Condition { text: said.to_owned(), negated: false, outcome_of: None });
            return Some(Head { asks, rest: tail(rest) });
        }
    }
    let openings =
        ["unless", "only if", "if", "in case", "\u{5982}\u{679c}", "\u{3082}\u{3057}", "when", "whenever", "should"];
    let found = openings.iter().find_map(|word| Some((*word, after_word(plain, word)?)));
    let foreign = || Some(("si", after_any(plain, &FOREIGN).filter(|rest| colon && rest.starts_with(' '))?));
    let (word, rest) = found.or_else(foreign)?;
    let (said, rest) = part(rest.trim_start_matches([',', ' ']));
    let timed = matches!(word, "when" | "whenever" | "should");
    let state = words(said).any(|one| STATES.contains(one.as_str()));
    let done = words(said).last().is_some_and(|last| DONE.contains(last.as_str()));
    if said.is_empty() || timed && (!state || done) {
        return None;
    }
    let said = &said[..said.floor_char_boundary(CONDITION_BYTES_MAX)];
    let text = plain_words(said.strip_suffix(" or not").unwrap_or(said));
    Some(Head { asks: Asks::This(Condition { text, negated: word == "unless", outcome_of: None }), rest })
}

/// The condition, and what is to be done: "it fails", "do the following".
fn part(said: &str) -> (&str, &str) {
    let signs = said.char_indices().filter(|(_, c)| matches!(c, ',' | ':' | '\u{ff0c}' | '\u{ff1a}'));
    for (at, sign) in signs.take(16) {
        let rest = said[at + sign.len_utf8()..].trim_start();
        let rest = after_word(rest, "then").unwrap_or(rest).trim_start_matches([',', ' ']);
        if rest.starts_with('`') || vocabulary::begins_with_verb(rest) || after_any(rest, &["do", "please"]).is_some() {
            return (said[..at].trim_end(), rest);
        }
    }
    let said = said.strip_suffix(" then").unwrap_or(said);
    (said.trim_end_matches([',', ' ']), "")
}

/// The words of a condition without the signs of emphasis and code.
fn plain_words(said: &str) -> String {
    let kept: String = said.replace("**", "").replace('`', "");
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True when two conditions that follow each other ask about the same thing: "it passes", "it fails".
pub(super) fn same_subject(first: &str, second: &str) -> bool {
    let goes_on = words(second).any(|word| matches!(word.as_str(), "again" | "still" | "too" | "also" | "then"));
    let subject = |text: &str| {
        let article = |word: &str| matches!(word, "the" | "a" | "an" | "all" | "any" | "no" | "der" | "die" | "das");
        words(text).map(|word| word.as_str().to_owned()).find(|word| !article(word))
    };
    !goes_on && subject(first).is_some_and(|one| subject(second).is_some_and(|two| one == two))
}
