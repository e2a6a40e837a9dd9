//! How urgent a task is by the word that its text has for it. It orders tasks and decides nothing else.

/// The rank of a task without a word for it.
const NORMAL: u8 = 2;

/// The words that say how urgent a task is, with their ranks.
const WORDS: [(&str, u8); 31] = [
    ("p0", 0),
    ("critical", 0),
    ("urgent", 0),
    ("highest", 0),
    ("blocker", 0),
    ("immediate", 0),
    ("asap", 0),
    ("!!!", 0),
    ("🔺", 0),
    ("p1", 1),
    ("a", 1),
    ("high", 1),
    ("important", 1),
    ("major", 1),
    ("!!", 1),
    ("⏫", 1),
    ("p2", NORMAL),
    ("b", NORMAL),
    ("medium", NORMAL),
    ("normal", NORMAL),
    ("!", NORMAL),
    ("🔼", NORMAL),
    ("p3", 3),
    ("c", 3),
    ("low", 3),
    ("minor", 3),
    ("🔽", 3),
    ("p4", 4),
    ("lowest", 4),
    ("trivial", 4),
    ("⏬", 4),
];

/// The rank of a priority as written, 0 for what comes first. What no word says anything about is in the middle.
///
/// `P0`, `critical`, `urgent` and `!!!` rank 0; `P1`, `A`, `high` and `!!` 1; `P2`, `B`, `medium` and `!` 2, as does no
/// word at all; `P3`, `C` and `low` 3; `P4` and `lowest` 4. Case does not matter.
#[must_use]
pub fn rank(written: Option<&str>) -> u8 {
    written.and_then(known_rank).unwrap_or(NORMAL)
}

/// The rank of a word that says how urgent a task is; none of any other.
#[must_use]
pub fn known_rank(written: &str) -> Option<u8> {
    let word = written.trim();
    WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, rank)| *rank)
}

/// The words that say how urgent a task is, those that say it most first.
pub fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(word, _)| *word)
}
