//! Questions, items under commands, and dependencies by name.

use super::{check, check_error, plan};

#[test]
fn what_ends_in_a_question_mark_is_a_question() {
    let cases = ["Go on?", "Continue (y/n)?", "Deploy to production?", "Run `make deploy`?", "Merge now?"];
    for text in cases {
        for written in [text.to_owned(), format!("- {text}"), format!("1. {text}"), format!("- [ ] {text}")] {
            let tasks = plan(&written).tasks;
            let shown = (tasks[0].kind.as_str(), tasks[0].description.replace('`', ""), &tasks[0].command);
            assert_eq!(shown, ("Clarification", text.replace('`', ""), &None), "of {written:?}");
        }
    }
    check(
        "1. Build it\n2. Deploy to production?\n3. Ship it",
        &[
            "1 CodeImplementation Build it",
            "2 Clarification Deploy to production? | <- 1s",
            "3 ToolCall Ship it | <- 2s",
        ],
    );
    check(
        "Build it. Deploy to production?",
        &["1 CodeImplementation Build it | <- 2", "2 Clarification Deploy to production?"],
    );
    check("Could you run `make all`?", &["1 ToolCall Could you run make all | $ make all"]);
}

#[test]
fn a_command_with_items_under_it_stays_a_task() {
    check(
        "1. Build with `echo BUILD`\n   - Then run `echo LINT`\n2. Ship with `echo SHIP`",
        &[
            "1 ToolCall Build with echo BUILD | $ echo BUILD",
            "2 ToolCall run echo LINT | <- 1 | $ echo LINT",
            "3 ToolCall Ship with echo SHIP | <- 2s | $ echo SHIP",
        ],
    );
    check(
        "- Build\n  with `make all`\n  - it takes long\n  - Then run `make lint`\n  - needs network\n- Ship it",
        &[
            "1 ToolCall Build with make all | $ make all | note it takes long | note needs network",
            "2 ToolCall run make lint | <- 1 | $ make lint",
            "3 ToolCall Ship it",
        ],
    );
    check(
        "- Build with `make all`\n  1. Run `make a`\n  2. Run `make b`",
        &[
            "1 ToolCall Build with make all | $ make all",
            "2 ToolCall Run make a | <- 1 | $ make a",
            "3 ToolCall Run make b | <- 2s | $ make b",
        ],
    );
}

#[test]
fn remarks_under_a_step_are_its_notes() {
    check(
        "- Build the app\n  - it takes long\n  - needs network\n- Ship it",
        &["1 CodeImplementation Build the app | note it takes long | note needs network", "2 ToolCall Ship it"],
    );
    check(
        "- Build the app\n  - Add a button\n  - the menu",
        &["1 CodeImplementation Add a button | in Build the app", "2 CodeImplementation the menu | in Build the app"],
    );
}

#[test]
fn a_level_that_gives_no_name_is_said() {
    let text =
        "- Release\n  - Prepare\n    - Build with `make all`\n      - Then run `make lint`\n        - slow\n- Ship";
    let shown: Vec<String> = plan(text).warnings.into_iter().map(|one| one.message).collect();
    assert_eq!(shown, ["\"Release\" holds only other groups, so no task has its name"]);
    let deep: String = (0..70).map(|n| format!("{}- Step{n}\n", "  ".repeat(n))).collect();
    let shown = plan(&deep).warnings;
    assert!(shown.iter().any(|one| one.message.contains("stands too deep")), "{shown:?}");
}

#[test]
fn a_written_name_that_no_task_has_is_an_error() {
    let unknown = |name: &str, line: usize, column: usize| {
        format!(
            "no task is called {name} (line {line}, column {column}); name an existing task or remove the dependency"
        )
    };
    let cases = [
        ("- Migrate: Move it\n- Test: Test it (depends on: Migrate, Tset)", "Tset", 2, 39),
        ("- Migrate: Move it\n- Ship it (blocked by Migrat)", "Migrat", 2, 23),
        ("- Migrate: Move it\n- Ship it\n  - needs: Migrat", "Migrat", 3, 12),
        ("- [ ] T1 Add a\n- [ ] T2 Add b (depends on Tx)", "Tx", 2, 28),
    ];
    for (text, name, line, column) in cases {
        check_error(text, &unknown(name, line, column));
    }
}

#[test]
fn a_written_name_gives_an_edge() {
    let cases = [
        ("- Database: Create it\n- API: Build it (depends on database)", "1"),
        ("- Migrate: Move it\n- Ship it once Migrate is done", "1"),
        ("- Migrate: Move it\n- Once Migrate is done: ship it", "1"),
        ("- Migrate: Move it\n- Ship it (needs Migrate, the green car)", "1"),
        ("- A: Move it\n- Test: Look\n- Ship it (blocked by A, Test; retry 2)", "1 2"),
        ("- Setup:\n  - Add a\n  - Add b\n- Ship it (depends on Setup)", "1 2"),
    ];
    for (text, expected) in cases {
        let tasks = plan(text).tasks;
        let edges: Vec<String> = tasks.last().unwrap().depends_on.iter().map(|one| one.task.to_string()).collect();
        assert_eq!(edges.join(" "), expected, "of {text:?}");
    }
    let found = plan("- Migrate: Move it\n- Ship it (depends on Migrate, the green car)").warnings;
    assert_eq!(found[0].message, "no task fits \"the green car\", so nothing waits for it");
}

#[test]
fn a_wish_in_four_sentences_is_three_tasks_with_their_constraint_and_link() {
    check(
        "Add login with session cookies. Use basic auth. Read API spec at https://example.com/spec.pdf. Then write unit tests.",
        &[
            "1 CodeImplementation Add login with session cookies | note Use basic auth",
            "2 Retrieval Read API spec at https://example.com/spec.pdf | Link https://example.com/spec.pdf",
            "3 UnitTest write unit tests | <- 1 2",
        ],
    );
    check("Analyze code and run tests", &["1 Analysis Analyze code and run tests"]);
}

#[test]
fn an_attachment_keeps_the_words_that_its_link_was_written_with() {
    let tasks = plan("1. Read [the design](docs/design.md), ![a sketch](a.png) and docs/plan.md").tasks;
    let labels = tasks[0].attachments.iter().map(|one| one.label.as_deref()).collect::<Vec<_>>();
    assert_eq!(labels, [Some("the design"), Some("a sketch"), None]);
}
