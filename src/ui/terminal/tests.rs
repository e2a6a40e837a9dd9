//! Tests of the one way to a terminal.

use super::*;

#[test]
fn a_line_keeps_the_colours_of_the_program_and_no_other_control() {
    for (line, expected) in [
        ("plain\n\tline", "plain\n\tline"),
        ("\u{1b}[31mred\u{1b}[0m", "\u{1b}[31mred\u{1b}[0m"),
        ("\u{1b}[8mhidden\u{1b}[30m", "\\u{1b}[8mhidden\\u{1b}[30m"),
        ("\u{1b}[2J", "\\u{1b}[2J"),
        ("\u{1b}[31", "\\u{1b}[31"),
        ("\u{1b}[31;1m", "\\u{1b}[31;1m"),
        ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("a\u{202e}b\u{200b}c\u{9b}31m\r", "a\\u{202e}b\\u{200b}c\\u{9b}31m\\u{d}"),
    ] {
        assert_eq!(escaped(line), expected, "{line:?}");
    }
}

#[test]
fn text_for_people_is_escaped_and_text_for_programs_is_not_in_a_pipe() {
    let escapes = |output| Results::new(output).escapes;
    assert!(escapes(Output::Text));
    assert_eq!([Output::Json, Output::Jsonl].map(escapes), [io::stdout().is_terminal(); 2]);
}
