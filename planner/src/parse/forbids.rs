//! Words that forbid. Whoever asks whether something is forbidden asks here: heads of lists, sections, sentences, rows
//! of tables, and what stands before code.
//!
//! It only reads the words; what follows from them is for others.

use super::phrases::{Words, after_any, after_word, begins, list, lower};
use super::text::holds;
use super::vocabulary;

/// The name of what is forbidden has no more words.
const NAME_WORDS_MAX: usize = 6;

/// What a prohibition begins with.
static BEGINS: Words = Words::new(|| {
    list(
        "don't|do not|dont|never|avoid|must not|must never|mustn't|should not|should never|shouldn't|no need to|cannot|\
         can't|without|refrain from|not allowed|what not to do|things not to do|what never to do|don'ts|donts|do nots|\
         nunca|jam\u{e1}s|no ejecutes|no ejecutar|no ejecute|no lances|no lanzar|no hagas|no hacer|no uses|no usar|\
         no borres|no borrar|no corras|no correr|ne pas|ne jamais|jamais|niemals|nie|nicht|auf keinen fall|non eseguire|\
         non usare|non fare|mai|n\u{e3}o|nao|\u{43d}\u{435}|\u{43d}\u{438}\u{43a}\u{43e}\u{433}\u{434}\u{430}|\
         \u{43d}\u{435}\u{43b}\u{44c}\u{437}\u{44f}",
    )
});
/// The same in Chinese characters, which no space ends.
const HAN: &[&str] =
    &["\u{4e0d}\u{8981}", "\u{7981}\u{6b62}", "\u{8bf7}\u{52ff}", "\u{5207}\u{52ff}", "\u{4e0d}\u{5f97}"];
/// What forbids behind a subject: "the agent must not".
const MODALS: &[&str] = &[
    " must not ",
    " must never ",
    " mustn't ",
    " should not ",
    " should never ",
    " shouldn't ",
    " shall not ",
    " shall never ",
    " may not ",
    " may never ",
    " is not to ",
    " are not to ",
    " not allowed ",
    " not permitted ",
];
/// What names the forbidden.
static NAMES: Words = Words::new(|| {
    list("forbidden|prohibited|disallowed|banned|prohibido|prohibidos|interdit|interdits|verboten|vietato|proibido")
});
/// What forbids the code behind it wherever it stands.
const ANYWHERE: &[&str] = &[
    "don't",
    "don\u{2019}t",
    "do not",
    "not ",
    "never",
    "avoid",
    "no longer",
    "hold off",
    "kein",
    "n'ex",
    "n\u{2019}ex",
    "no usar",
    "nunca",
    "no ejecut",
    "no lances",
    "no lanzar",
    "no hagas",
    "no uses",
    "no borr",
    "no corr",
    "ne pas",
    "jamais",
    "nicht ",
    "niemals",
    "verboten",
    "interdit",
    "prohibid",
    "non eseguire",
    "n\u{e3}o ",
    "\u{43d}\u{435} ",
    "\u{43d}\u{438}\u{43a}\u{43e}\u{433}\u{434}\u{430}",
    "\u{43d}\u{435}\u{43b}\u{44c}\u{437}\u{44f}",
];

/// "Never do this", "Please don't": a text that begins as a prohibition.
pub(super) fn is_prohibition(text: &str) -> bool {
    let rest = after_any(text, &["please", "pls", "plz"]).map_or(text, str::trim_start);
    let kept =
        || begins(rest, &["don't forget to", "do not forget to", "never mind", "don't hesitate", "do not hesitate"]);
    (BEGINS.after(rest).is_some() || !rest.is_ascii() && foreign(rest) || negated(rest)) && !kept()
}

fn foreign(text: &str) -> bool {
    HAN.iter().any(|word| text.starts_with(word))
}

/// "N'ex\u{e9}cute jamais", "Ne lance pas".
fn negated(text: &str) -> bool {
    let ne =
        text.starts_with(['n', 'N']) && (after_word(text, "ne").is_some() || text[1..].starts_with(['\'', '\u{2019}']));
    ne && {
        let all = lower(text);
        holds(&all, " jamais") || holds(&all, " pas") || holds(&all, " rien")
    }
}

/// True for words that forbid what stands under them: a prohibition, "the agent must not", "Forbidden commands".
pub(super) fn forbids(text: &str) -> bool {
    let bare = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = bare.trim_end_matches(|c: char| !c.is_alphanumeric());
    let straight = if bare.is_ascii() { bare.to_owned() } else { bare.replace('\u{2019}', "'") };
    let plain = after_any(&straight, &["and", "but", "also", "then", "please"]).map_or(&*straight, str::trim_start);
    if is_prohibition(plain) {
        return true;
    }
    if vocabulary::begins_with_verb(plain) {
        return false;
    }
    let all = format!("{} ", lower(plain));
    let mut names = all.split_whitespace();
    let named = names.clone().nth(NAME_WORDS_MAX).is_none();
    let mut ends = || [names.clone().next(), names.next_back()].into_iter().flatten().any(|word| NAMES.contains(word));
    MODALS.iter().any(|modal| holds(&all, modal)) || named && ends()
}

/// True when some word before a piece of code, in lower case, forbids it.
pub(super) fn forbids_code(before: &str) -> bool {
    ANYWHERE.iter().any(|word| holds(before, word)) || !before.is_ascii() && HAN.iter().any(|word| holds(before, word))
}
