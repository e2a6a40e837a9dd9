//! The rules one by one.

use super::{check, check_error, plan};
use crate::parse::{ParseOptions, ParsedPlan, parse};

#[test]
fn numbered_items_are_a_sequence_and_bullets_are_not() {
    check("1. Add a\n2. Add b", &["1 CodeImplementation Add a", "2 CodeImplementation Add b | <- 1s"]);
    check("- Add a\n- Add b", &["1 CodeImplementation Add a", "2 CodeImplementation Add b"]);
}

#[test]
fn sentences_have_no_order_without_a_connector() {
    check("Add a. Fix b.", &["1 CodeImplementation Add a", "2 CodeImplementation Fix b"]);
    check(
        "Add a. Fix b. Then add c.",
        &["1 CodeImplementation Add a", "2 CodeImplementation Fix b", "3 CodeImplementation add c | <- 1 2"],
    );
}

#[test]
fn parallel_opens_a_branch_and_both_joins_it() {
    check(
        "Design the API. Then implement the server. Meanwhile, write the client. Once both are done, deploy.",
        &[
            "1 Processing Design the API",
            "2 CodeImplementation implement the server | <- 1",
            "3 CodeImplementation write the client | <- 1",
            "4 ToolCall deploy | <- 2 3",
        ],
    );
}

#[test]
fn beside_marked_items_the_others_are_a_sequence() {
    check(
        "- [ ] T1 Add a\n- [ ] T2 [P] Add b\n- [ ] T3 Add c",
        &[
            "1 CodeImplementation Add a | id T1",
            "2 CodeImplementation Add b | id T2",
            "3 CodeImplementation Add c | <- 1s | id T3",
        ],
    );
}

#[test]
fn written_dependencies_replace_the_order() {
    check(
        "1. Add a\n2. Add b\n3. Add c (depends on 1)",
        &["1 CodeImplementation Add a", "2 CodeImplementation Add b | <- 1s", "3 CodeImplementation Add c | <- 1"],
    );
    check(
        "- [ ] T1 Add a\n- [ ] T2 Add b\n- [ ] T3 Add c\n\nT1 -> T3",
        &[
            "1 CodeImplementation Add a | id T1",
            "2 CodeImplementation Add b | id T2",
            "3 CodeImplementation Add c | <- 1 | id T3",
        ],
    );
    check(
        "- X: Add a\n- Y: Add b (after X)\n- Z: Add c (needs X, Y)",
        &[
            "1 CodeImplementation Add a | id X",
            "2 CodeImplementation Add b | <- 1 | id Y",
            "3 CodeImplementation Add c | <- 1 2 | id Z",
        ],
    );
}

#[test]
fn before_is_a_reversed_edge() {
    check(
        "1. Build the app\n2. Ship it\n3. Back up the data (before 2)",
        &["1 CodeImplementation Build the app", "2 ToolCall Ship it | <- 1s 3", "3 Processing Back up the data"],
    );
}

#[test]
fn a_forward_dependency_moves_a_step_and_breaks_no_list() {
    check(
        "1. Add a (depends on 3)\n2. Add b\n3. Add c",
        &["1 CodeImplementation Add a | <- 3", "2 CodeImplementation Add b | <- 1s", "3 CodeImplementation Add c"],
    );
}

#[test]
fn phases_are_barriers() {
    check(
        "## Phase 1: Base\n- Add a\n- Add b\n## Phase 2: Rest\n- Add c",
        &[
            "1 CodeImplementation Add a | in Phase 1: Base",
            "2 CodeImplementation Add b | in Phase 1: Base",
            "3 CodeImplementation Add c | <- 1 2 | in Phase 2: Rest",
        ],
    );
}

#[test]
fn groups_lend_their_verb_and_keep_the_order_of_their_list() {
    check(
        "1. Write tests for:\n   - the lexer\n   - the printer\n2. Release",
        &[
            "1 UnitTest Write tests for the lexer | in Write tests for",
            "2 UnitTest Write tests for the printer | in Write tests for",
            "3 ToolCall Release | <- 1s 2s",
        ],
    );
    check(
        "1. Prepare\n   a) Install Vite\n   b) Add linting",
        &["1 ToolCall Install Vite | in Prepare", "2 CodeImplementation Add linting | <- 1s | in Prepare"],
    );
}

#[test]
fn boxes_give_the_mark_and_struck_text_is_dropped() {
    check(
        "- [x] Add a\n- [~] Add b\n- [-] Add c\n- ~~Add d~~\n- [ ] Add e",
        &[
            "1 CodeImplementation Add a | mark Done",
            "2 CodeImplementation Add b | mark InProgress",
            "3 CodeImplementation Add c | mark Cancelled",
            "4 CodeImplementation Add e",
        ],
    );
}

#[test]
fn constraints_fold_into_the_task_before() {
    check(
        "Add login. Use JWT. Don't log passwords. Make sure it is fast.",
        &["1 CodeImplementation Add login | note Use JWT | note Don't log passwords | note Make sure it is fast"],
    );
    check("Never log passwords. Add login.", &["1 CodeImplementation Add login | note Never log passwords"]);
}

#[test]
fn a_reference_is_an_attachment_of_the_task_before() {
    check("Fix the lexer. See also docs/lexer.md.", &["1 CodeImplementation Fix the lexer | FileRef docs/lexer.md"]);
}

#[test]
fn questions_come_before_the_instruction() {
    check(
        "Add a theme. Should it be dark?",
        &["1 CodeImplementation Add a theme | <- 2", "2 Clarification Should it be dark?"],
    );
    check("Which port do we use?", &["1 Clarification Which port do we use?"]);
    check("- TBD\n- Ask Ann about the port", &["1 Clarification TBD", "2 Clarification Ask Ann about the port"]);
    check(
        "1. Add a\n2. Do we need b?\n3. Add c",
        &["1 CodeImplementation Add a", "2 Clarification Do we need b? | <- 1s", "3 CodeImplementation Add c | <- 2s"],
    );
    check("Can you add a theme?", &["1 CodeImplementation Can you add a theme"]);
}

#[test]
fn only_code_that_is_to_be_run_is_a_command() {
    check("Run `make all`.", &["1 ToolCall Run make all | $ make all"]);
    check("`cargo test` must pass.", &["1 ToolCall cargo test must pass | $ cargo test"]);
    check("Build it: `make`", &["1 ToolCall Build it: make | $ make"]);
    check("- Run `npm ci` and `npm test`", &["1 ToolCall Run npm ci and npm test | $ npm ci && npm test"]);
    for text in [
        "Implement `SessionStore`",
        "Add `GET /x`",
        "Fix `src/a`",
        "Rename `--flag`",
        "Fix the `cargo test` step",
        "Add a but do not run `make x`",
    ] {
        assert_eq!(plan(text).tasks[0].command, None, "of {text:?}");
    }
    check("Add a. Don't run `rm -rf /`.", &["1 CodeImplementation Add a | note Don't run rm -rf /"]);
}

#[test]
fn a_fence_is_one_command_when_it_is_shell() {
    check(
        "Prepare the data:\n\n```sh\ncp a.csv b.csv\n./load then go\n```",
        &["1 ToolCall Prepare the data | $ cp a.csv b.csv\\n./load then go | FileRef a.csv | FileRef b.csv"],
    );
    check("Write the config:\n```json\n{\"a\": 1}\n```", &["1 Processing Write the config | note {\"a\": 1}"]);
    check("```console\n$ make\nok\n```", &["1 ToolCall make | $ make"]);
}

#[test]
fn only_the_section_of_tasks_counts() {
    let text = "# Overview\nA shop.\n# Roadmap\n1. Add a cart\n# Non-goals\n- Payment\n";
    check(text, &["1 CodeImplementation Add a cart"]);
    assert_eq!(plan(text).context, ["A shop"]);
    check("Out of scope:\n- Add b\n\nTasks:\n- Add a", &["1 CodeImplementation Add a"]);
}

#[test]
fn both_branches_follow_the_tested_task() {
    check(
        "Run the tests. If they pass, deploy; otherwise roll back. Then notify Ann.",
        &[
            "1 UnitTest Run the tests",
            "2 ToolCall deploy | <- 1 | if they pass",
            "3 ToolCall roll back | <- 1 | unless they pass",
            "4 ToolCall notify Ann | <- 2 3",
        ],
    );
}

#[test]
fn attachments_have_their_sort() {
    check(
        "Compare ![old](img/a.png), [new](https://x.y/b_(c)), https://x.y/d.svg and src/*.rs.",
        &["1 Analysis Compare old, new, https://x.y/d.svg and src/*.rs | ImageRef img/a.png | Link https://x.y/b_(c) \
           | ImageRef https://x.y/d.svg | FileRef src/*.rs"],
    );
    for text in ["Use and/or", "Add /health", "Ask ann@example.com", "Add Node.js 20", "Bump to v1.2.3"] {
        assert!(plan(text).tasks[0].attachments.is_empty(), "of {text:?}");
    }
    check("Fix [it][1].\n\n[1]: https://x.y/z", &["1 CodeImplementation Fix it | Link https://x.y/z"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    check_error(
        " \n",
        "the plan is empty: nothing in it is a task; write at least one sentence or list item that says what to do",
    );
    check_error(
        "- A: Add a (needs B)\n- B: Add b (needs A)",
        "tasks wait for each other in a circle: A -> B -> A (line 1, column 1); remove one of these dependencies",
    );
    check_error(
        "- A: Add a\n- B: Add b (needs T9)",
        "no task is called T9 (line 2, column 19); name an existing task or remove the dependency",
    );
    check_error(
        "- T1: Add a\n- T1: Add b",
        "the id T1 is used twice, on line 1 and again (line 2, column 1); rename one of the two",
    );
    check_error("- A: Add a (needs A)", "task A waits for itself (line 1, column 19); remove that dependency");
}

#[test]
fn relaxing_the_order_drops_soft_edges_only() {
    let text = "1. Add a\n2. Add b\n3. Add c (after 1)";
    let relaxed = parse(text, ParseOptions { relax_order: true }).unwrap();
    let edges: Vec<usize> = relaxed.tasks.iter().map(|task| task.depends_on.len()).collect();
    assert_eq!(edges, [0, 0, 1]);
}

#[test]
fn kinds_follow_the_verb() {
    let cases = [
        ("Test the parser", "UnitTest"),
        ("Look up the price", "Retrieval"),
        ("Look into the crash", "Analysis"),
        ("Review the change", "Analysis"),
        ("Rename the module", "Refactor"),
        ("Fix the crash", "CodeImplementation"),
        ("Write the docs", "Processing"),
        ("Write a function", "CodeImplementation"),
        ("Install Vite", "ToolCall"),
        ("Confirm with Ann", "Clarification"),
        ("Ponder the moon", "Processing"),
    ];
    for (text, kind) in cases {
        assert_eq!(plan(text).tasks[0].kind.as_str(), kind, "of {text:?}");
    }
}

#[test]
fn an_item_says_how_it_is_run() {
    check(
        "- Fetch it (retry 3, timeout 2m) @ann !high\n- Send it [on failure: continue] (priority: P2)",
        &[
            "1 Retrieval Fetch it | prio high | @ ann | retry 3 | timeout 120000",
            "2 ToolCall Send it | prio P2 | on failure Continue",
        ],
    );
}

#[test]
fn an_item_says_that_it_may_be_run_again() {
    let same = "1 ToolCall make | $ make | rerun safe";
    for text in ["- `make` (rerun: safe)", "- `make` (rerun safe)", "- `make`\n  - Rerun: safe"] {
        check(text, &[same]);
    }
    check("- `make` (retry 2, rerun: safe)", &["1 ToolCall make | $ make | retry 2 | rerun safe"]);
    check("- Fix the flaky test (rerun it often)", &["1 CodeImplementation Fix the flaky test (rerun it often)"]);
}

#[test]
fn an_item_says_which_files_it_works_on() {
    for text in [
        "- Fix the crash (files: core/**, *.toml)",
        "- Fix the crash (files core/** *.toml)",
        "- Fix the crash (files: `core/**`, `*.toml`)",
        "- Fix the crash\n  - files: core/**, *.toml",
        "- Fix the crash\n  - Files: `core/**` `*.toml`",
        "- Fix the crash\n  - **Files:** core/** *.toml",
    ] {
        assert_eq!(plan(text).tasks[0].files, ["core/**", "*.toml"], "of {text:?}");
        assert_eq!(plan(text).tasks[0].description, "Fix the crash", "of {text:?}");
        assert_eq!(plan(text).tasks[0].notes, Vec::<String>::new(), "of {text:?}");
    }
    check(
        "- Fix it (files: src/a.rs, `Makefile`, depends on 2)\n- Look at it (retry 1, files: docs/**)",
        &[
            "1 CodeImplementation Fix it | <- 2 | FileRef src/a.rs | works on src/a.rs Makefile",
            "2 Analysis Look at it | FileRef docs/** | retry 1 | works on docs/**",
        ],
    );
}

#[test]
fn files_and_that_a_task_may_be_run_again_are_written_out_and_read_back() {
    let planned = plan("- Fix it (files: src/**, a.rs; rerun: safe)\n- Look (files: b.rs)\n");
    let again = plan(&crate::parse::render(&planned));
    let settings =
        |plan: &ParsedPlan| plan.tasks.iter().map(|task| (task.files.clone(), task.rerun_safe)).collect::<Vec<_>>();
    assert_eq!(settings(&again), settings(&planned));
    assert_eq!(settings(&again)[1], (vec!["b.rs".to_owned()], false));
}

#[test]
fn what_only_speaks_of_files_stays_as_it_is() {
    check("- Fix it (files: many)", &["1 CodeImplementation Fix it (files: many)"]);
    check("- Fix it (files: a.rs and more)", &["1 CodeImplementation Fix it (files: a.rs and more) | FileRef a.rs"]);
    check(
        "- Fix it (files: a.rs, then the rest)",
        &["1 CodeImplementation Fix it (files: a.rs, then the rest) | FileRef a.rs"],
    );
    check("- Fix it\n  - Files: see the list", &["1 CodeImplementation Fix it | note Files: see the list"]);
    check("- Fix it\n  - Files:\n    - a.rs", &["1 Processing a.rs | in Files | FileRef a.rs"]);
    check("# Files:\n- Fix a.rs", &["1 CodeImplementation Fix a.rs | FileRef a.rs"]);
}

#[test]
fn a_wish_that_the_next_sentence_spells_out_is_context() {
    check("I need help with the parser. Please fix the crash.", &["1 CodeImplementation Please fix the crash"]);
    check(
        "Fix the following bug. Add a page.",
        &["1 CodeImplementation Fix the following bug", "2 CodeImplementation Add a page"],
    );
}

#[test]
fn requirements_count_before_stories() {
    check(
        "# PRD\n\n## User stories\n- As a user, I want export\n\n## Requirements\n1. Add the endpoint\n2. Add the button (depends on 1)\n\n## Open questions\n- Do we need UTF-16?",
        &[
            "1 CodeImplementation Add the endpoint | in Requirements",
            "2 CodeImplementation Add the button | <- 1 | in Requirements",
            "3 Clarification Do we need UTF-16? | in Open questions",
        ],
    );
    // Alone, a story is what there is.
    check("- As a user, I want export", &["1 Processing As a user, I want export"]);
}

#[test]
fn a_section_within_one_that_counts_takes_nothing_away() {
    check(
        "## Plan\n1. Add the endpoint\n2. Add the button\n### Tasks\n- [ ] Ask Bob",
        &[
            "1 CodeImplementation Add the endpoint",
            "2 CodeImplementation Add the button | <- 1s",
            "3 Clarification Ask Bob",
        ],
    );
}

#[test]
fn what_stands_before_a_colon_says_what_is_meant() {
    check(
        "For the release: first run `make bump`, then run `make tag`.",
        &[
            "1 ToolCall For the release: first run make bump | $ make bump",
            "2 ToolCall run make tag | <- 1 | $ make tag",
        ],
    );
    check(
        "For Friday: bump the version, then tag it.",
        &["1 Processing For Friday: bump the version", "2 ToolCall tag it | <- 1"],
    );
}

#[test]
fn letters_name_the_items_of_a_list() {
    check(
        "- [ ] a) build the image\n- [ ] b) test it (needs a)",
        &["1 ToolCall build the image", "2 UnitTest test it | <- 1"],
    );
    check("a. Build\nb. Test (after a)", &["1 CodeImplementation Build", "2 UnitTest Test | <- 1"]);
}

#[test]
fn tickets_in_brackets_on_lines_of_their_own_are_tasks() {
    check(
        "[ANN-12] Fix login\n[ANN-13] Add tests blocked by ANN-12",
        &["1 CodeImplementation Fix login | id ANN-12", "2 UnitTest Add tests | <- 1 | id ANN-13"],
    );
}

#[test]
fn dependencies_in_brackets_may_be_spanish_or_german() {
    check(
        "1. Compila\n2. Prueba\n3. Publica (depende de 1 y 2)",
        &["1 Processing Compila", "2 Processing Prueba | <- 1s", "3 ToolCall Publica | <- 1 2"],
    );
}

#[test]
fn what_stands_under_a_prohibition_is_kept_as_words() {
    for text in [
        "- Fix it\n\nDo not:\n- Run `rm -rf x`\n",
        "Fix it.\n\nNever do this:\n\n- Run `rm -rf x`\n",
        "Fix it.\n\nThe agent must not do any of the following:\n1. Run `rm -rf x`\n",
        "Fix it.\n\nForbidden commands:\n- `rm -rf x`\n",
        "# Plan\n- Fix it\n\n## Don'ts\n- Run `rm -rf x`\n",
        "Fix it.\n\nNever:\n\n* Run `rm -rf x`\n",
        "- Fix it\n- Do not:\n  - Run `rm -rf x`\n",
        "Fix it.\n\nYou should never run this:\n\n```sh\nrm -rf x\n```\n",
        "| Task | Command |\n|---|---|\n| Fix it | |\n| Never run this | `rm -rf a` |\n",
        "- Fix it\n- No ejecutes `rm -rf x`\n",
        "- Fix it\n- N'ex\u{e9}cute jamais `rm -rf x`\n",
        "- Fix it\n- Ne pas lancer: `rm -rf x`\n",
    ] {
        let tasks = plan(text).tasks;
        let shown: Vec<_> = tasks.iter().map(|task| (task.description.as_str(), task.command.as_deref())).collect();
        assert_eq!(shown, [("Fix it", None)], "of {text:?}");
    }
}

#[test]
fn what_follows_a_forbidden_list_and_what_only_speaks_of_a_prohibition_is_done() {
    check("# Don't lose data on restart\n\n- [ ] Fix the store\n", &["1 CodeImplementation Fix the store"]);
    check("Do not:\n- Run `rm -rf x`\n\nFix the parser.\n", &["1 CodeImplementation Fix the parser"]);
    for text in ["Check that users must not do this:\n- Log in\n- Log out", "Remove forbidden words:\n- Add a\n- Add b"]
    {
        assert_eq!(plan(text).tasks.len(), 2, "of {text:?}");
    }
}
