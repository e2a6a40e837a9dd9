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

#[test]
fn durations_have_at_most_two_units() {
    const HOUR: u64 = 3_600_000;
    for (ms, expected) in [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (2_549, "2.5 s"),
        (9_999, "9.9 s"),
        (31_900, "31 s"),
        (60_000, "1 min"),
        (489_000, "8 min 9 s"),
        (2 * HOUR, "2 h"),
        (8 * HOUR + 540_000, "8 h 9 min"),
        (23 * HOUR + 59 * 60_000 + 59_999, "23 h 59 min"),
        (76 * HOUR, "3 d 4 h"),
        (u64::MAX, "213503982334 d 14 h"),
    ] {
        assert_eq!(duration(ms), expected);
    }
}

#[test]
fn ages_have_one_unit_and_end_after_a_day() {
    let now = Timestamp(1_763_712_000_000_000);
    for (secs, expected) in
        [(0, "just now"), (31, "31 s ago"), (125, "2 min ago"), (8 * 3_600, "8 h ago"), (86_399, "23 h ago")]
    {
        assert_eq!(ago(Timestamp(now.0 - secs * 1_000_000), now), expected);
    }
    // The date depends on the reader's time zone.
    let date = ago(Timestamp(now.0 - 40 * 86_400_000_000), now);
    assert!(["2025-10-11", "2025-10-12"].contains(&date.as_str()), "{date}");
    assert_eq!(ago(Timestamp(i64::MIN), Timestamp(i64::MAX)), "106751991 d ago");
}

#[test]
fn written_times_are_recognized_and_nothing_else() {
    let moment = Timestamp(1_763_712_000_000_001);
    assert_eq!(moment_of(&rfc3339(moment)), Some(moment));
    for text in [
        "",
        "Z",
        "2025-11-21T08:00:00Z",
        "2025-13-21T08:00:00.000001Z",
        "2025-11-21T08:00:00.000001",
        "ä".repeat(14).as_str(),
    ] {
        assert_eq!(moment_of(text), None, "{text}");
    }
}
