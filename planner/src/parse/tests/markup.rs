//! Other markup than Markdown, and signs that stand before items.

use super::{check, check_error, plan};

#[test]
fn lines_of_todo_txt_are_tasks_with_their_priority_and_their_tags_as_a_note() {
    check(
        "(A) 2026-01-02 Call Mum +family @phone due:2026-01-05\nx 2026-01-03 2026-01-01 Pay the invoice +home\n\
         (B) Write the report +work\nWater the plants\n",
        &[
            "1 ToolCall Call Mum | prio A | note +family @phone due:2026-01-05",
            "2 Processing Pay the invoice | mark Done | note +home",
            "3 Processing Write the report | prio B | note +work",
            "4 Processing Water the plants",
        ],
    );
    check(
        "- [ ] (A) Fix the crash\n- [ ] (B) Add the logo",
        &["1 CodeImplementation Fix the crash | prio A", "2 CodeImplementation Add the logo | prio B"],
    );
}

#[test]
fn headlines_of_org_are_tasks_when_they_have_a_state() {
    check(
        "#+TITLE: Release\n* Prepare\n** DONE Tag the version :git:\n   :PROPERTIES:\n   :Effort: 1h\n   :END:\n\
         \x20  Sign it.\n** TODO [#A] Publish the crate\n*** TODO Check the docs\n*** DOING Upload it\n* Later\n\
         - [ ] Announce it\n",
        &[
            "1 ToolCall Tag the version | mark Done | note git | note Sign it",
            "2 Analysis Check the docs | in Publish the crate | prio A",
            "3 ToolCall Upload it | in Publish the crate | prio A | mark InProgress",
            "4 ToolCall Announce it",
        ],
    );
}

#[test]
fn lists_of_jira_and_of_mediawiki_are_counted_by_their_signs() {
    let steps = ["1 CodeImplementation Build the image", "2 ToolCall Run this | <- 1s | $ make deploy | in Steps"];
    let text = "h2. Steps\n\n# Build the image\n# Run this:\n{code:bash}\nmake deploy\n{code}\n";
    assert_eq!(plan(text).tasks.len(), steps.len());
    check(
        "h2. Steps\n# Export the users\n# Import them:\n## Import the names\n## Import the orders\n* (/) Tell Ann\n",
        &[
            "1 Processing Export the users",
            "2 Processing Import the names | <- 1s | in Import them",
            "3 Processing Import the orders | <- 2s | in Import them",
            "4 Processing Tell Ann | mark Done",
        ],
    );
    check(
        "# Fetch it\n# Sort it\n# Print it",
        &["1 Retrieval Fetch it", "2 Processing Sort it | <- 1s", "3 Processing Print it | <- 2s"],
    );
    check("== Tasks ==\n# Fetch it\n# Sort it", &["1 Retrieval Fetch it", "2 Processing Sort it | <- 1s"]);
}

#[test]
fn steps_of_ascii_doc_are_a_sequence_and_its_boxes_have_marks() {
    check(
        "= Guide\n:toc:\n\n== Steps\n\n. Run this:\n+\n[source,sh]\n----\nmake install\n----\n. Build the bundle\n\
         .. Build the css\n.. Build the js\n. Deploy it\n",
        &[
            "1 ToolCall Run this | $ make install",
            "2 CodeImplementation Build the css | <- 1s | in Build the bundle",
            "3 CodeImplementation Build the js | <- 2s | in Build the bundle",
            "4 ToolCall Deploy it | <- 3s",
        ],
    );
    check(
        "= Todo\n\n* [x] Create the repo\n* [ ] Add the licence",
        &["1 CodeImplementation Create the repo | mark Done", "2 CodeImplementation Add the licence"],
    );
}

#[test]
fn code_between_the_steps_leaves_their_numbers_going_on() {
    check(
        "== Steps\n. Run this:\n+\n----\nmake install\n----\n. Restart it",
        &["1 ToolCall Run this | $ make install", "2 ToolCall Restart it | <- 1s"],
    );
}

#[test]
fn lists_may_begin_at_nought_and_go_on_after_what_stands_deeper() {
    check("0. Fetch it\n1. Sort it", &["1 Retrieval Fetch it", "2 Processing Sort it | <- 1s"]);
    check(
        "1. Prepare\n   a. Compile\n      i. Compile a\n      ii. Compile b\n   b. Link it\n2. Ship it",
        &[
            "1 Processing Compile a | in Compile",
            "2 Processing Compile b | <- 1s | in Compile",
            "3 Processing Link it | <- 2s | in Prepare",
            "4 ToolCall Ship it | <- 3s",
        ],
    );
    check("= Title\nAnn Lee <ann@example.org>\n\n* [*] Fetch it", &["1 Retrieval Fetch it | mark Done"]);
}

#[test]
fn lines_may_end_with_a_carriage_return_alone_and_tables_with_both() {
    for end in ["\r", "\r\n", ""] {
        let text = format!("- Add it\r- Fix it{end}");
        check(&text, &["1 CodeImplementation Add it", "2 CodeImplementation Fix it"]);
    }
    check(
        "Task | Priority\r\n--- | ---\r\nFix it | high\r\nAdd it | low\r\n",
        &["1 CodeImplementation Fix it | prio high", "2 CodeImplementation Add it | prio low"],
    );
}

#[test]
fn what_begins_with_a_preposition_under_an_item_says_how_it_is_done() {
    check(
        "- Replace the font\n  - in the header\n- Compress the images\n",
        &["1 Processing Replace the font | note in the header", "2 Processing Compress the images"],
    );
}

#[test]
fn markdown_is_read_as_no_other_markup() {
    check("# Add it\n\n* Add TODO lists\n** bold **\n", &["1 CodeImplementation Add TODO lists bold"]);
    check("(A) Build it\n(B) Test it", &["1 CodeImplementation Build it", "2 UnitTest Test it | <- 1s"]);
}

#[test]
fn headings_alone_are_the_tasks() {
    check(
        "# Relaunch\n\n## Design the page\n### Sketch it\n### Draw it\n## Test the page\n",
        &[
            "1 Processing Sketch it | in Design the page",
            "2 Processing Draw it | in Design the page",
            "3 UnitTest Test the page",
        ],
    );
    assert_eq!(plan("# Relaunch\n\n## Design it\n## Test it").title.as_deref(), Some("Relaunch"));
    check_error(
        "# Some words\n\n## Context\n\n## A part\n",
        "the plan is empty: nothing in it is a task; write at least one sentence or list item that says what to do",
    );
}

#[test]
fn lines_of_a_timetable_are_items() {
    check(
        "9:00 Stand-up\n9:30 - 10:00 Review the notes\n2:00 pm Deploy it\n",
        &["1 Processing 9:00 Stand-up", "2 Analysis 9:30 - 10:00 Review the notes", "3 ToolCall 2:00 pm Deploy it"],
    );
    check("9:00 - Stand-up\n9.30 - Call Ann", &["1 Processing 9:00 - Stand-up", "2 ToolCall 9.30 - Call Ann"]);
    assert_eq!(plan("Meet at\n9:00 in the hall.").tasks.len(), 1);
}

#[test]
fn loose_signs_begin_items_beside_others_like_them() {
    let steps = ["1 Retrieval Fetch it", "2 Processing Sort it | <- 1s"];
    for text in
        ["1.Fetch it\n2.Sort it", "1 - Fetch it\n2 - Sort it", "1: Fetch it\n2: Sort it", "[1] Fetch it\n[2] Sort it"]
    {
        check(text, &steps);
    }
    check("-Fetch it\n-Sort it", &["1 Retrieval Fetch it", "2 Processing Sort it"]);
    check("-[x] Fetch it\n-[ ] Sort it", &["1 Retrieval Fetch it | mark Done", "2 Processing Sort it"]);
    check("\u{30fb}Fetch it\n\u{30fb}Sort it", &["1 Retrieval Fetch it", "2 Processing Sort it"]);
    for text in
        ["Add two files\n2 - Main and\n4 - Other", "Set it to\n-Wall for all", "Fix it as in\n[1] Smith\n[2] Jones"]
    {
        assert_eq!(plan(text).tasks.len(), 1, "{text:?}");
    }
}

#[test]
fn signs_and_words_before_an_item_say_how_far_it_is() {
    check(
        "\u{2705} Create the page\n\u{2b1c} Add the logo\n\u{1f6a7} Fix the footer\n- Done: Write the docs\n\
         - **WIP:** Add the menu\n- [!] Fix the leak\n- [?] Add a map",
        &[
            "1 CodeImplementation Create the page | mark Done",
            "2 CodeImplementation Add the logo",
            "3 CodeImplementation Fix the footer | mark InProgress",
            "4 Processing Write the docs | mark Done",
            "5 CodeImplementation Add the menu | mark InProgress",
            "6 CodeImplementation Fix the leak",
            "7 CodeImplementation Add a map",
        ],
    );
    // Where every item has it, it is an ornament.
    check("\u{2705} Add a\n\u{2705} Add b", &["1 CodeImplementation Add a", "2 CodeImplementation Add b"]);
}

#[test]
fn bold_numbers_numbers_of_issues_and_guillemets_begin_items() {
    let tasks = ["1 Retrieval Fetch it", "2 Processing Sort it | <- 1s"];
    check("**1.** Fetch it\n**2.** Sort it", &tasks);
    check("**1. Fetch it**\n\n**2. Sort it**", &tasks);
    check("#7 Fetch it\n#8 Sort it", &["1 Retrieval Fetch it | id #7", "2 Processing Sort it | id #8"]);
    check("\u{bb} Fetch it\n\u{bb} Sort it", &["1 Retrieval Fetch it", "2 Processing Sort it"]);
    check(
        "\u{421}\u{43a}\u{430}\u{447}\u{430}\u{439}. \u{417}\u{430}\u{442}\u{435}\u{43c} \u{43f}\u{438}\u{448}\u{438}.",
        &["1 Retrieval \u{421}\u{43a}\u{430}\u{447}\u{430}\u{439}", "2 Processing \u{43f}\u{438}\u{448}\u{438} | <- 1"],
    );
}

#[test]
fn the_name_of_a_picture_may_have_blanks_and_quick_actions_are_no_tasks() {
    check(
        "Match ![the header](designs/new header.png \"new\").\n/label ~bug\n",
        &["1 Processing Match the header | ImageRef designs/new header.png"],
    );
}

#[test]
fn states_of_org_before_a_few_items_leave_a_text_markdown() {
    check(
        "Tasks:\n\n* Fix a\n* TODO write tests\n* Ship b",
        &["1 CodeImplementation Fix a", "2 UnitTest TODO write tests", "3 ToolCall Ship b"],
    );
    check(
        "* Out of scope\n* TODO Fix the bug\n* TODO Add docs",
        &["1 CodeImplementation Fix the bug", "2 CodeImplementation Add docs"],
    );
}

#[test]
fn the_first_item_under_a_title_of_ascii_doc_is_an_item() {
    check("= Release\n. Fix a\n. Fix b", &["1 CodeImplementation Fix a", "2 CodeImplementation Fix b | <- 1s"]);
    check(
        "- Build it\n\n----\n\n- Test it\n\n    . venv/bin/activate\n\n----\n\n- Ship it",
        &["1 CodeImplementation Build it", "2 UnitTest Test it | note . venv/bin/activate", "3 ToolCall Ship it"],
    );
}

#[test]
fn names_with_a_slash_are_no_tags_and_prose_is_no_todo_txt() {
    check(
        "(A) Bump the version of @types/node\n(B) Fix it",
        &["1 Processing Bump the version of @types/node", "2 CodeImplementation Fix it | <- 1s"],
    );
    let text = "2026-01-02 meeting @ann\n\nWe talked. Please fix the parser.";
    let tasks = plan(text).tasks;
    assert!(tasks.iter().any(|task| task.description.contains("fix the parser")), "{tasks:?}");
    assert!(tasks.iter().all(|task| !task.description.contains("We talked")), "{tasks:?}");
    let options = plan("Options:\n\n(A) Use redis @ann\n(B) Use memcached").tasks;
    assert!(options.iter().all(|task| task.description != "Options:"), "{options:?}");
}
