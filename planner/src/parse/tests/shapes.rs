//! The many forms in which people write lists and sentences.

use super::{check, plan};

#[test]
fn abbreviations_quotes_and_decimals_split_nothing() {
    check(
        "Fix e.g. the \"first, then second\" label in 1.5 pt. Add b.",
        &["1 CodeImplementation Fix e.g. the \"first, then second\" label in 1.5 pt", "2 CodeImplementation Add b"],
    );
}

#[test]
fn bullets_of_all_sorts_begin_items() {
    for sign in ["-", "*", "+", "•", "–", "—", "▪", "◦", "●", "🚀", "- [ ]"] {
        let text = format!("{sign} Add a\n{sign} Add b");
        check(&text, &["1 CodeImplementation Add a", "2 CodeImplementation Add b"]);
    }
}

#[test]
fn numbers_of_all_sorts_are_sequences() {
    for (one, two) in [
        ("1.", "2."),
        ("1)", "2)"),
        ("(1)", "(2)"),
        ("1.1", "1.2"),
        ("i.", "ii."),
        ("a)", "b)"),
        ("Step 1:", "Step 2:"),
        ("1.", "1."),
    ] {
        let text = format!("{one} Add a\n{two} Add b");
        check(&text, &["1 CodeImplementation Add a", "2 CodeImplementation Add b | <- 1s"]);
    }
}

#[test]
fn numbering_that_restarts_is_another_list() {
    check(
        "1. Add a\n2. Add b\n1. Add c\n2. Add d (after 1)",
        &[
            "1 CodeImplementation Add a",
            "2 CodeImplementation Add b | <- 1s",
            "3 CodeImplementation Add c",
            "4 CodeImplementation Add d | <- 3",
        ],
    );
}

#[test]
fn dotted_numbers_stand_under_their_parent() {
    check(
        "1. Prepare\n1.1 Add a\n1.2 Add b\n2. Ship",
        &[
            "1 CodeImplementation Add a | in Prepare",
            "2 CodeImplementation Add b | <- 1s | in Prepare",
            "3 ToolCall Ship | <- 2s",
        ],
    );
}

#[test]
fn rows_of_a_table_are_tasks() {
    check(
        "| # | Task | Depends on | Owner |\n|---|---|---|---|\n| 1 | Add a | - | @ann |\n| 2 | Add b | 1 | |\n",
        &["1 CodeImplementation Add a | @ ann", "2 CodeImplementation Add b | <- 1"],
    );
}

#[test]
fn chinese_sentences_and_connectors_split() {
    check(
        "添加登录，然后运行测试。最后发布！",
        &["1 CodeImplementation 添加登录", "2 UnitTest 运行测试 | <- 1", "3 ToolCall 发布 | <- 2"],
    );
}

#[test]
fn quoted_lists_and_comments_are_read_as_what_they_are() {
    check(
        "> 1. Add a\n> 2. Add b\n<!-- 3. Add c -->",
        &["1 CodeImplementation Add a", "2 CodeImplementation Add b | <- 1s"],
    );
    check("---\ntitle: x\n---\nAdd a.", &["1 CodeImplementation Add a"]);
}

#[test]
fn a_tracked_parent_keeps_plain_children_as_notes() {
    check(
        "- [ ] 1. Add a\n  - with care\n  - Depends on: 2\n- [ ] 2. Add b",
        &["1 CodeImplementation Add a | <- 2 | note with care", "2 CodeImplementation Add b"],
    );
}

#[test]
fn windows_paths_are_files() {
    check(r"Read C:\logs\a.txt.", &[r"1 Retrieval Read C:\logs\a.txt | FileRef C:\logs\a.txt"]);
}

#[test]
fn invisible_characters_change_nothing() {
    let plain = "1. Add login\n2. Run tests";
    let odd = "\u{feff}1.\u{a0}Add\u{a0}login\u{200b}\r\n2. Run tests\r\n";
    let shown = |text| plan(text).tasks.iter().map(super::show).collect::<Vec<_>>();
    assert_eq!(shown(odd), shown(plain));
}
