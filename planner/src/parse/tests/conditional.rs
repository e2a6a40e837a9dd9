//! Conditions over more than one step.

use super::check;

const TESTED: &str = "1 ToolCall Run make test | $ make test";

#[test]
fn what_stands_under_a_condition_has_it() {
    check(
        "1. Run `make test`\n2. If it fails:\n   - Run `make undo`\n3. Otherwise run `make ship`",
        &[
            TESTED,
            "2 ToolCall Run make undo | <- 1s | $ make undo | in If it fails | if it fails",
            "3 ToolCall run make ship | <- 1s | $ make ship | unless it fails",
        ],
    );
    check(
        "1. Run `make test`\n2. If it fails:\n   - Run `make undo`\n3. Otherwise:\n   - Run `make ship`\n4. Tell Ann",
        &[
            TESTED,
            "2 ToolCall Run make undo | <- 1s | $ make undo | in If it fails | if it fails",
            "3 ToolCall Run make ship | <- 1s | $ make ship | in Otherwise | unless it fails",
            "4 Processing Tell Ann | <- 2s 3s",
        ],
    );
    check(
        "- Unless it is clean:\n  - Run `make fix`",
        &["1 ToolCall Run make fix | $ make fix | in Unless it is clean | unless it is clean"],
    );
}

#[test]
fn a_branch_keeps_its_order() {
    check(
        "1. Run `make test`\n2. If green:\n   1. Run `make a`\n   2. Run `make b`\n3. Else run `make c`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1s | $ make a | in If green | if green",
            "3 ToolCall Run make b | <- 2s | $ make b | in If green | if green",
            "4 ToolCall run make c | <- 1s | $ make c | unless green",
        ],
    );
    check(
        "1. Run `make test`\n2. If the tests fail\n   a. Run `make a`\n   b. Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1s | $ make a | in If the tests fail | if the tests fail",
            "3 ToolCall Run make b | <- 2s | $ make b | in If the tests fail | if the tests fail",
        ],
    );
}

#[test]
fn a_condition_above_a_list_or_a_paragraph_is_that_of_its_steps_alone() {
    for lead in ["When it is green:", "**When it is green:**", "**When it is green**", "When it is green"] {
        check(
            &format!("Run `make test`.\n\n{lead}\n- Run `make ship`\n\nNotify Ann."),
            &[TESTED, "2 ToolCall Run make ship | <- 1 | $ make ship | if it is green", "3 ToolCall Notify Ann"],
        );
    }
    check(
        "1. Run `make test`\n\nIf it is green:\n\n2. Run `make a`\n\nOtherwise:\n\n3. Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1 | $ make a | if it is green",
            "3 ToolCall Run make b | <- 1 | $ make b | unless it is green",
        ],
    );
    check(
        "If it fails:\n\nRun `make a`.\n\nOtherwise:\n\nRun `make b`.",
        &["1 ToolCall Run make a | $ make a | if it fails", "2 ToolCall Run make b | $ make b | unless it fails"],
    );
    check(
        "Run `make test`. If it fails:\n1. Run `make a`\n2. Run `make b`\n\nOtherwise:\n1. Run `make c`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1 | $ make a | if it fails",
            "3 ToolCall Run make b | <- 2s | $ make b | if it fails",
            "4 ToolCall Run make c | <- 1 | $ make c | unless it fails",
        ],
    );
}

#[test]
fn a_heading_can_be_a_condition() {
    check(
        "## Test\n- Run `make test`\n## If the build is green\n- Run `make a`\n- Run `make b`\n## Otherwise\n\
         - Run `make c`\n## Notify\n- Tell Ann",
        &[
            "1 ToolCall Run make test | $ make test | in Test",
            "2 ToolCall Run make a | <- 1 | $ make a | in If the build is green | if the build is green",
            "3 ToolCall Run make b | <- 1 | $ make b | in If the build is green | if the build is green",
            "4 ToolCall Run make c | <- 1 | $ make c | in Otherwise | unless the build is green",
            "5 Processing Tell Ann | in Notify",
        ],
    );
}

#[test]
fn branches_under_a_step_follow_it() {
    check(
        "- Run `make test`\n  - If it fails, run `make a`\n  - Otherwise run `make b`",
        &[
            TESTED,
            "2 ToolCall run make a | <- 1 | $ make a | if it fails",
            "3 ToolCall run make b | <- 1 | $ make b | unless it fails",
        ],
    );
    check(
        "- Run `make test`\n  - If it fails:\n    - Run `make a`\n  - Otherwise:\n    - Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1 | $ make a | in If it fails | if it fails",
            "3 ToolCall Run make b | <- 1 | $ make b | in Otherwise | unless it fails",
        ],
    );
}

#[test]
fn a_condition_inside_a_condition_needs_both() {
    check(
        "1. Run `make test`\n2. If it fails:\n   - If the disk is full:\n     - Run `make a`\n   - Otherwise:\n     \
         - Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1s | $ make a | in If the disk is full | if it fails, and the disk is full",
            "3 ToolCall Run make b | <- 1s | $ make b | in Otherwise \
             | if it fails, and it is not so that the disk is full",
        ],
    );
    check(
        "1. Run `make test`\n2. If it fails, run `make a`:\n   - Run `make b`",
        &[
            TESTED,
            "2 ToolCall run make a | <- 1s | $ make a | if it fails",
            "3 ToolCall Run make b | <- 2 | $ make b | if it fails",
        ],
    );
}

#[test]
fn conditions_in_pairs_ask_about_the_same_step() {
    let edges = |soft: &str| {
        [
            TESTED.to_owned(),
            format!("2 ToolCall run make a | <- 1{soft} | $ make a | if it passes"),
            format!("3 ToolCall run make b | <- 1{soft} | $ make b | if it fails"),
        ]
    };
    for (text, soft) in [
        ("Run `make test`. If it passes, run `make a`. If it fails, run `make b`.", ""),
        ("1. Run `make test`. If it passes, run `make a`. If it fails, run `make b`.", ""),
        ("1. Run `make test`\n2. If it passes, run `make a`\n3. If it fails, run `make b`", "s"),
        ("- Run `make test`\n- If it passes, run `make a`\n- If it fails, run `make b`", ""),
        ("- Run `make test`\n  - If it passes, run `make a`\n  - If it fails, run `make b`", ""),
    ] {
        let expected = edges(soft);
        check(text, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
    check(
        "Check whether the index exists. If yes, run `make a`. If no, run `make b`.",
        &[
            "1 Analysis Check whether the index exists",
            "2 ToolCall run make a | <- 1 | $ make a | if the index exists",
            "3 ToolCall run make b | <- 1 | $ make b | unless the index exists",
        ],
    );
}

#[test]
fn a_condition_before_a_fence_is_that_of_the_command() {
    check(
        "If the service is down:\n\n```sh\nsudo reboot\n```",
        &["1 ToolCall If the service is down | $ sudo reboot | if the service is down"],
    );
    check(
        "1. Run `make test`\n2. If it fails:\n\n   ```sh\n   make a\n   ```\n3. Otherwise:\n\n   ```sh\n   make b\n   ```",
        &[
            TESTED,
            "2 ToolCall If it fails | <- 1s | $ make a | if it fails",
            "3 ToolCall Otherwise | <- 1s | $ make b | unless it fails",
        ],
    );
}

#[test]
fn a_table_under_a_condition_has_it() {
    check(
        "1. Run `make test`\n2. If it fails:\n\n   | Task |\n   |---|\n   | Run `make a` |",
        &[
            TESTED,
            "2 Processing If it fails | <- 1s | if it fails",
            "3 ToolCall Run make a | <- 2 | $ make a | if it fails",
        ],
    );
}

#[test]
fn conditions_are_known_in_other_languages() {
    for (word, said) in
        [("Wenn", "das scheitert"), ("Falls", "es rot ist"), ("Si", "\u{e7}a \u{e9}choue"), ("Se", "fallisce")]
    {
        for sign in [",", ":"] {
            let expected = format!("2 ToolCall make a | <- 1s | $ make a | if {said}");
            check(
                &format!("1. `make test`\n2. {word} {said}{sign} `make a`"),
                &["1 ToolCall make test | $ make test", &expected],
            );
        }
    }
    check(
        "1. `make test`\n2. Als het mislukt, `make a`\n3. Sonst: `make b`",
        &[
            "1 ToolCall make test | $ make test",
            "2 ToolCall make a | <- 1s | $ make a | if het mislukt",
            "3 ToolCall make b | <- 1s | $ make b | unless het mislukt",
        ],
    );
}

#[test]
fn a_condition_at_the_end_of_a_line_above_steps_is_theirs() {
    check(
        "1. Run `make test`\n2. Roll back if it fails:\n   - Run `make a`\n3. Otherwise:\n   - Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1s | $ make a | in Roll back if it fails | if it fails",
            "3 ToolCall Run make b | <- 1s | $ make b | in Otherwise | unless it fails",
        ],
    );
    check(
        "Run `make test`.\n\n## Rollback (if it fails)\n- Run `make a`",
        &[TESTED, "2 ToolCall Run make a | <- 1 | $ make a | in Rollback (if it fails) | if it fails"],
    );
    check("Do this if it is red:\n- Run `make a`", &["1 ToolCall Run make a | $ make a | if it is red"]);
}

#[test]
fn lines_of_prose_that_begin_with_a_condition_are_branches() {
    check(
        "Run `make test`\nIf it fails:\n  Run `make a`\nElse:\n  Run `make b`",
        &[
            TESTED,
            "2 ToolCall Run make a | <- 1 | $ make a | if it fails",
            "3 ToolCall Run make b | <- 1 | $ make b | unless it fails",
        ],
    );
    for head in ["Should it fail", "In case of failure", "On failure"] {
        let said = if head == "Should it fail" { "it fail" } else { "it fails" };
        check(
            &format!("1. Run `make test`\n2. {head}:\n   - Run `make a`"),
            &[TESTED, &format!("2 ToolCall Run make a | <- 1s | $ make a | in {head} | if {said}")],
        );
    }
}

#[test]
fn settings_behind_a_condition_are_no_part_of_it() {
    check(
        "- Run `a`\n- Run `b` only if Bob agrees (depends on 1)\n- Run `c` if the tests pass (retry 2) (timeout 5m)\n- Run `d` unless it is Friday @ann [P1]",
        &[
            "1 ToolCall Run a | $ a",
            "2 ToolCall Run b | <- 1 | $ b | if Bob agrees",
            "3 ToolCall Run c | $ c | if the tests pass | retry 2 | timeout 300000",
            "4 ToolCall Run d | <- 3 | $ d | prio P1 | @ ann | unless it is Friday",
        ],
    );
    // What sets nothing belongs to the condition, and so does who is named in it.
    check(
        "- Run `b` if it is late (by our clocks)\n- Run `c` if it was approved by @ann",
        &[
            "1 ToolCall Run b | $ b | if it is late (by our clocks)",
            "2 ToolCall Run c | $ c | if it was approved by @ann",
        ],
    );
}

#[test]
fn a_condition_that_names_a_task_waits_for_it() {
    check(
        "- Run `sleep 2`\n- Run `echo shipped` if 1 succeeds\n- Run `echo b` when 1 is done\n- If 1 fails, run `c`",
        &[
            "1 ToolCall Run sleep 2 | $ sleep 2",
            "2 ToolCall Run echo shipped | <- 1 | $ echo shipped | if 1 succeeds",
            "3 ToolCall Run echo b | <- 1 | $ echo b",
            "4 ToolCall run c | <- 1 | $ c | if 1 fails",
        ],
    );
    // A number of things is no task.
    check(
        "- Run `a`\n- Run `b` if 1 test fails",
        &["1 ToolCall Run a | $ a", "2 ToolCall Run b | $ b | if 1 test fails"],
    );
}

#[test]
fn a_colon_behind_a_wait_leads_to_the_step() {
    check(
        "- Run `a`\n- Run `b`\n- When 2 is done: run `f`\n- After 1 and 2: run `g`",
        &[
            "1 ToolCall Run a | $ a",
            "2 ToolCall Run b | $ b",
            "3 ToolCall run f | <- 2 | $ f",
            "4 ToolCall run g | <- 1 2 | $ g",
        ],
    );
}

#[test]
fn a_condition_that_asks_about_a_later_task_waits_for_it() {
    check(
        "- T1 Build the app\n- T2 Roll back if T3 fails\n- T3 Deploy the app",
        &[
            "1 CodeImplementation Build the app | id T1",
            "2 ToolCall Roll back | <- 3 | id T2 | if T3 fails",
            "3 ToolCall Deploy the app | id T3",
        ],
    );
    // The later task takes the place in the order of the one that waits for it.
    check(
        "1. Build the app\n2. Roll back if 3 fails\n3. Deploy the app",
        &[
            "1 CodeImplementation Build the app",
            "2 ToolCall Roll back | <- 3 | if 3 fails",
            "3 ToolCall Deploy the app | <- 1s",
        ],
    );
    // What no task is called is a thing.
    check(
        "- Page the team if S3 fails\n- Add docs",
        &["1 Processing Page the team | if S3 fails", "2 CodeImplementation Add docs"],
    );
}

#[test]
fn conditions_behind_a_step_are_read_in_other_languages() {
    let cases = [
        ("Despliega el servicio, a menos que las pruebas fallen.", "unless las pruebas fallen"),
        (
            "Ver\u{f6}ffentliche das Paket, au\u{df}er wenn ein Test fehlschl\u{e4}gt.",
            "unless ein Test fehlschl\u{e4}gt",
        ),
        ("Publie la version sauf si un test \u{e9}choue.", "unless un test \u{e9}choue"),
        ("Publica la versi\u{f3}n si las pruebas pasan.", "if las pruebas pasan"),
    ];
    for (text, condition) in cases {
        let tasks = super::plan(text).tasks;
        assert_eq!(tasks.len(), 1, "of {text:?}");
        assert!(super::show(&tasks[0]).contains(&format!(" | {condition}")), "of {text:?}");
    }
    check("Comprueba si el servidor responde.", &["1 Analysis Comprueba si el servidor responde"]);
}
