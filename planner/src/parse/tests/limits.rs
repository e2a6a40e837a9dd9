//! Properties of arbitrary texts, and the limits.

use proptest::prelude::*;

use super::super::{Format, Part, ReadOptions, TEXT_BYTES_MAX, read};
use crate::validity::InvalidPlan;

/// Pieces of texts, each relevant to some rule.
const PIECES: [&str; 43] = [
    "[a link\n  depends on 1](http://x) ",
    "- [ ] ",
    "- [x] ",
    "- [-] ",
    "- [ ]* ",
    "1. ",
    "2.1 ",
    "(3) ",
    "a) ",
    "- ",
    "\u{2022} ",
    "# ",
    "## ",
    "### T001: ",
    "Step 1: ",
    "```sh\n",
    "```\n",
    "$ ls -l\n",
    "`make all`",
    "Run ",
    "Build: ",
    "If it passes, ",
    "Otherwise, ",
    "(after 1)",
    "(after T001)",
    "[P] ",
    "(P1)",
    "In parallel:\n",
    "Acceptance:\n",
    "> ",
    "| Task |\n|---|\n",
    "---\n",
    "~~",
    "**",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "word ",
    "? ",
    ". ",
    "\u{4e2d}\u{3002}",
    "\0",
];

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_belongs_to_a_task_a_heading_the_context_or_a_warning(text in texts()) {
        for format in [Format::Markdown, Format::Kiro] {
            let Ok(plan) = read(&text, ReadOptions { format, ..ReadOptions::default() }) else { continue };
            let mut known = vec![false; text.len()];
            let spans = plan.tasks.iter().flat_map(|task| task.spans.iter().copied());
            for span in spans.chain(plan.parts.iter().map(|(span, _)| *span)) {
                known[span.start..span.end].fill(true);
            }
            let lost = text.char_indices().find(|(at, c)| !known[*at] && c.is_alphanumeric());
            prop_assert_eq!(lost, None, "{:?} of {:?}", lost, text);
            let left_out = plan.parts.iter().any(|(_, part)| *part == Part::LeftOut);
            prop_assert!(!left_out || !plan.warnings.is_empty());
        }
    }

    #[test]
    fn parsing_is_deterministic_and_never_panics(text in texts(), cut in 0..400_usize) {
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        for format in Format::ALL.iter().copied() {
            let options = ReadOptions { format, ..ReadOptions::default() };
            prop_assert_eq!(read(&text[..cut], options), read(&text[..cut], options));
        }
    }
}

#[test]
fn a_text_beyond_a_limit_is_refused_with_limit_and_value() {
    let long = " ".repeat(TEXT_BYTES_MAX + 1);
    let error = read(&long, ReadOptions::default()).expect_err("it is too long");
    assert_eq!(error, InvalidPlan::LimitPassed { limit: "bytes", value: TEXT_BYTES_MAX + 1, max: TEXT_BYTES_MAX });
    let many = "- x\n".repeat(100_001);
    let error = read(&many, ReadOptions::default()).expect_err("it has too many tasks");
    assert_eq!(error, InvalidPlan::LimitPassed { limit: "tasks", value: 100_001, max: 100_000 });
    let wide = "- [ ] [P] x\n".repeat(3_000);
    let error = read(&format!("{wide}- [ ] y\n{wide}").repeat(2), ReadOptions::default());
    assert!(error.is_ok(), "three thousand beside each other are few");
}

#[test]
fn deep_nesting_and_endless_lines_are_read_in_bounded_time_and_memory() {
    let nested: String = (0..2_000).map(|depth| format!("{}- x\n", " ".repeat(2 * depth))).collect();
    let quoted = format!("{}x\n- y\n", "> ".repeat(50_000));
    let fences = "```sh\n".repeat(20_000);
    let brackets = format!("- {}\n", "(".repeat(200_000));
    let backticks = format!("- {}\n", "`a".repeat(100_000));
    let stars = format!("- {}\n", "*a_".repeat(100_000));
    let links = format!("- {}\n", "[a](".repeat(50_000));
    let sentences = "Add a. ".repeat(50_000);
    let waits: String = (1..5_000).map(|n| format!("{n}. x (after {})\n", n % 97 + 1)).collect();
    for text in [nested, quoted, fences, brackets, backticks, stars, links, sentences, waits] {
        let _ = read(&text, ReadOptions::default());
    }
}

#[test]
fn an_empty_text_is_not_a_plan() {
    for text in ["", " \n\t\n", "\u{feff}", "# Title\n\nOnly prose that orders nothing.\n", "\u{200b}"] {
        assert_eq!(read(text, ReadOptions::default()), Err(InvalidPlan::EmptyPlan), "{text:?}");
    }
}
