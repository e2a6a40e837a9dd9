//! The rank of a task from the word for its priority. It only affects the order of tasks.

/// The rank of a task without a priority.
const NORMAL: u8 = 2;

/// The words for each rank, the most urgent first.
const WORDS: [&[&str]; 5] = [
    &["p0", "critical", "urgent", "highest", "blocker", "immediate", "asap", "!!!", "🔺"],
    &["p1", "a", "high", "important", "major", "!!", "⏫"],
    &["p2", "b", "medium", "normal", "!", "🔼"],
    &["p3", "c", "low", "minor", "🔽"],
    &["p4", "lowest", "trivial", "⏬"],
];

/// The rank of a priority as written, 0 for the most urgent. Unknown words are in the middle.
///
/// `P0`, `critical`, `urgent` and `!!!` rank 0; `P1`, `A`, `high` and `!!` 1; `P2`, `B`, `medium`, `!` and no priority
/// 2; `P3`, `C` and `low` 3; `P4` and `lowest` 4. Case does not matter.
pub fn rank(written: Option<&str>) -> u8 {
    written.and_then(known_rank).unwrap_or(NORMAL)
}

/// The rank of a word for a priority; none for any other word.
pub fn known_rank(written: &str) -> Option<u8> {
    let word = written.trim();
    (0..).zip(WORDS).find(|(_, words)| words.iter().any(|known| known.eq_ignore_ascii_case(word))).map(|(rank, _)| rank)
}

/// The words for priorities, the most urgent first.
pub fn words() -> impl Iterator<Item = &'static str> {
    WORDS.into_iter().flatten().copied()
}
