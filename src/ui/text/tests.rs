//! Text as a terminal shows it.

use super::*;

#[test]
fn control_and_bidi_characters_are_escaped() {
    assert_eq!(visible("a\u{1b}[31mb\u{7}\u{202e}c\nd\te"), "a\\u{1b}[31mb\\u{7}\\u{202e}c\nd\te");
}

#[test]
fn a_line_is_truncated_at_character_boundaries() {
    assert_eq!(one_line("ä  ö\nü", 10), "ä ö ü");
    assert_eq!(one_line("äöüäöü", 5), "äö...");
}

#[test]
fn words_are_shell_quoted_only_when_needed() {
    assert_eq!(shell_word("a-b/c.db"), "a-b/c.db");
    assert_eq!(shell_word("a b'c"), r"'a b'\''c'");
}

#[test]
fn timestamps_are_printed_as_rfc_3339_in_utc() {
    assert_eq!(rfc3339(Timestamp(1_763_712_000_000_001)), "2025-11-21T08:00:00.000001Z");
}
