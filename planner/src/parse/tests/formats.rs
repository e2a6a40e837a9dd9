//! Plans that other programs write as JSON.

use super::{check, check_error, plan};
use crate::plan::Mark;

#[test]
fn a_file_of_task_master_has_groups_with_ids_of_their_own_and_tags() {
    let tasks = r#"[
        {"id": 1, "title": "Set up the repository", "description": "With CI.", "status": "done", "dependencies": [],
         "priority": "high", "details": "As https://example.org/ci. says", "testStrategy": "It is green"},
        {"id": 2, "title": "Implement accounts", "status": "pending", "dependencies": [1], "subtasks": [
            {"id": 1, "title": "Add the table in db/users.sql", "status": "in-progress", "dependencies": []},
            {"id": 2, "title": "Add the endpoint", "status": "pending", "dependencies": [1]},
            {"id": 3, "title": "Write tests", "status": "deferred", "dependencies": ["2.2"]}]},
        {"id": 3, "title": "Run `make release`", "status": "pending", "dependencies": [2]}]"#;
    let expected = [
        "1 CodeImplementation Set up the repository | id 1 | prio high | mark Done | Link https://example.org/ci \
         | note With CI. | note As https://example.org/ci. says | note Test: It is green",
        "2 CodeImplementation Add the table in db/users.sql | <- 1 | id 2.1 | in Implement accounts | mark InProgress \
         | FileRef db/users.sql",
        "3 CodeImplementation Add the endpoint | <- 2 | id 2.2 | in Implement accounts",
        "4 UnitTest Write tests | <- 3 | id 2.3 | in Implement accounts | mark Cancelled",
        "5 ToolCall Run make release | <- 4 | id 3 | $ make release",
    ];
    check(&format!(r#"{{"tasks": {tasks}, "metadata": {{}}}}"#), &expected);
    let other = r#"{"tasks": [{"id": 9, "title": "Elsewhere", "status": "pending"}]}"#;
    check(&format!(r#"{{"feature": {other}, "master": {{"tasks": {tasks}}}}}"#), &expected);
}

#[test]
fn tasks_of_claude_code_say_whom_they_block_and_by_whom_they_are_blocked() {
    check(
        r#"[{"id": "1", "subject": "Fix the parser", "description": "In parse.rs", "status": "completed",
             "blocks": ["2"], "blockedBy": []},
            {"id": "2", "subject": "Review it", "activeForm": "Reviewing", "status": "in_progress", "blockedBy": ["1"],
             "owner": "ana"},
            {"id": "3", "subject": "Deploy it", "status": "pending", "blockedBy": ["1", "2"]}]"#,
        &[
            "1 CodeImplementation Fix the parser | id 1 | mark Done | FileRef parse.rs | note In parse.rs",
            "2 Analysis Review it | <- 1 | id 2 | @ ana | mark InProgress",
            "3 ToolCall Deploy it | <- 1 2 | id 3",
        ],
    );
    check(
        r#"{"todos": [{"content": "Look into the crash", "status": "pending", "priority": "high", "id": "a"},
                      {"content": "Rename it", "status": "pending", "id": "b"}]}"#,
        &["1 Analysis Look into the crash | id a | prio high", "2 Refactor Rename it | id b"],
    );
}

#[test]
fn the_steps_of_a_codex_plan_are_a_sequence() {
    let steps = r#"[{"step": "Look into it", "status": "completed"}, {"step": "Fix it", "status": "in_progress"},
                    {"step": "Test it", "status": "pending"}]"#;
    let expected = [
        "1 Analysis Look into it | mark Done",
        "2 CodeImplementation Fix it | <- 1s | mark InProgress",
        "3 UnitTest Test it | <- 2s",
    ];
    check(steps, &expected);
    let whole = format!(r#"{{"explanation": "Because", "plan": {steps}}}"#);
    check(&whole, &expected);
    assert_eq!(plan(&whole).title.as_deref(), Some("Because"));
}

#[test]
fn beads_stand_one_a_line_with_an_epic_as_their_group() {
    check(
        concat!(
            r#"{"id":"bd-1","title":"Accounts","status":"open","priority":1,"issue_type":"epic"}"#,
            "\n",
            r#"{"id":"bd-2","title":"Add the table","status":"closed","priority":0,"dependencies":[{"issue_id":"bd-2","depends_on_id":"bd-1","type":"parent-child"}]}"#,
            "\n",
            r#"{"id":"bd-3","title":"Add the endpoint","status":"open","priority":2,"assignee":"bo","dependencies":[{"depends_on_id":"bd-2","type":"blocks"},{"depends_on_id":"bd-1","type":"parent-child"},{"depends_on_id":"bd-9","type":"related"}]}"#,
            "\n",
            r#"{"id":"bd-4","title":"Deploy it","status":"open","dependencies":[{"depends_on_id":"bd-1","type":"blocks"}]}"#,
            "\n",
            r#"{"id":"bd-5","title":"Gone","status":"tombstone"}"#,
            "\n",
        ),
        &[
            "1 CodeImplementation Add the table | id bd-2 | in Accounts | prio P0 | mark Done",
            "2 CodeImplementation Add the endpoint | <- 1 | id bd-3 | in Accounts | prio P2 | @ bo",
            "3 ToolCall Deploy it | <- 2 | id bd-4",
        ],
    );
}

#[test]
fn what_is_wrong_in_such_a_list_is_said_with_its_place() {
    let entry = |id: &str, needs: &str| format!(r#"{{"id": "{id}", "title": "Do {id}", "blockedBy": [{needs}]}}"#);
    let list = |entries: &[String]| format!("[{}]", entries.join(",\n "));
    check_error(
        &list(&[entry("a", ""), entry("b", r#""c""#)]),
        "no task is called c (line 2, column 2); name an existing task or remove the dependency",
    );
    check_error(
        &list(&[entry("a", ""), entry("A", "")]),
        "the id A is used twice, on line 1 and again (line 2, column 2); rename one of the two",
    );
    check_error(
        &list(&[entry("a", r#""b""#), entry("b", r#""a""#)]),
        "tasks wait for each other in a circle: a -> b -> a (line 1, column 2); remove one of these dependencies",
    );
    check_error(&list(&[entry("a", r#""a""#)]), "task a waits for itself (line 1, column 2); remove that dependency");
}

#[test]
fn json_that_is_no_list_of_tasks_or_is_broken_is_an_error_with_its_place() {
    let no_task = "an entry needs a title, and an id, a status or a step";
    let line = r#"{"id": "a", "title": "Do a"}"#;
    for (text, problem, place) in [
        (r#"{"tasks": []}"#.to_owned(), "there is no entry in it", "1, column 1"),
        ("\n[]".to_owned(), "there is no entry in it", "2, column 1"),
        ("[1, 2, 3]".to_owned(), no_task, "1, column 2"),
        (r#"["Fix it"]"#.to_owned(), no_task, "1, column 2"),
        (r#"{"port": 80}"#.to_owned(), no_task, "1, column 1"),
        (r#"[{"title": "Only a title"}]"#.to_owned(), no_task, "1, column 2"),
        (format!("[{line},\n {{\"id\": \"b\", \"title\": \"\"}}]"), no_task, "2, column 2"),
        (format!("[{line},\n {{\"id\": \"b\""), "EOF while parsing an object", "2, column 11"),
        (format!("[{line},]"), "expected value", "1, column 31"),
        (format!("{line}\n{{\"id\": }}\n{line}"), "expected value", "2, column 8"),
    ] {
        let expected =
            format!("this JSON is no list of tasks: {problem} (line {place}); mend it, or write the tasks as text");
        check_error(&text, &expected);
    }
}

#[test]
fn text_that_only_begins_like_json_is_read_as_any_text() {
    for text in [
        "{ not json",
        "[x] Fix it",
        "[ ] Fix it",
        "[1] Fix it",
        "[link](a.md): fix it",
        r#"{"port": 80} is wrong, fix it"#,
        "{\"port\": 80}\nis wrong, fix it",
    ] {
        assert_eq!(plan(text).tasks.len(), 1, "{text}");
    }
}

#[test]
fn what_is_written_of_a_group_goes_to_its_tasks_and_what_is_not_read_is_said() {
    let text = r#"{"other": {"tasks": [{"id": 9, "title": "Elsewhere"}]}, "master": {"tasks": [
        {"id": 1, "title": "Implement accounts", "description": "As in a.md", "testStrategy": "Green", "priority": "high",
         "subtasks": [{"id": 1, "title": "Add the table", "details": "Own"}, {"id": 2, "title": "Test it", "priority": "low"}]}]}}"#;
    check(
        text,
        &[
            "1 CodeImplementation Add the table | id 1.1 | in Implement accounts | prio high | FileRef a.md | note Own \
             | note As in a.md | note Test: Green",
            "2 UnitTest Test it | id 1.2 | in Implement accounts | prio low | FileRef a.md | note As in a.md \
             | note Test: Green",
        ],
    );
    let warnings = plan(text).warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].line, &*warnings[0].message), (1, "the tasks of the tag other are not read"));
    let long = "word ".repeat(300_000);
    let under = r#"{"id": 1, "title": "Add a"}, {"id": 2, "title": "Add b"}"#;
    let plan = plan(&format!(r#"[{{"id": 1, "title": "All", "description": "{long}", "subtasks": [{under}]}}]"#));
    assert_eq!(plan.tasks.iter().map(|task| task.notes.len()).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn a_task_that_blocks_what_is_not_here_is_read_with_a_warning() {
    let plan = plan(r#"{"id": "1", "subject": "Fix it", "status": "pending", "blocks": ["2"], "blockedBy": []}"#);
    assert_eq!(plan.tasks.len(), 1);
    assert_eq!(plan.warnings[0].message, "Fix it blocks 2, which is not here");
}

/// How the only task is that has these fields, and whether its command is run and something is said.
fn state(fields: &str) -> (Mark, bool, bool) {
    let read = plan(&format!("[{{\"id\": 1, \"title\": \"Run `make`\", {fields}}}]"));
    (read.tasks[0].mark, read.tasks[0].command.is_some(), !read.warnings.is_empty())
}

#[test]
fn a_status_that_says_no_is_cancelled_and_one_that_nobody_knows_runs_nothing() {
    for (status, mark) in [
        ("rejected", Mark::Cancelled),
        ("Skipped", Mark::Cancelled),
        ("wont_do", Mark::Cancelled),
        ("won't do", Mark::Cancelled),
        ("wontfix", Mark::Cancelled),
        ("finished", Mark::Done),
        ("resolved", Mark::Done),
        ("In Progress", Mark::InProgress),
        ("blocked", Mark::Open),
        ("backlog", Mark::Open),
        ("failed", Mark::Open),
    ] {
        assert_eq!(state(&format!("\"status\": \"{status}\"")), (mark, true, false), "{status}");
    }
    assert_eq!(state(r#""status": "nyet""#), (Mark::Open, false, true));
    let said = plan(r#"[{"id": 1, "title": "Run `make`", "status": "nyet"}]"#);
    let message = "\"status: nyet\" of Run `make` cannot be read, so it stays open and no command of it is run";
    assert_eq!((said.warnings[0].line, &*said.warnings[0].message), (1, message));
}

#[test]
fn what_is_switched_off_is_cancelled_and_a_switch_that_cannot_be_read_runs_nothing() {
    for (fields, expected) in [
        (r#""if": "never""#, (Mark::Cancelled, true, false)),
        (r#""enabled": false"#, (Mark::Cancelled, true, false)),
        (r#""skip": true"#, (Mark::Cancelled, true, false)),
        (r#""done": "yes""#, (Mark::Done, true, false)),
        (r#""done": false, "enabled": true, "skip": false, "if": null"#, (Mark::Open, true, false)),
        (r#""if": "branch == main""#, (Mark::Open, false, true)),
        (r#""skip": ["ci"]"#, (Mark::Open, false, true)),
        (r#""completed": "maybe""#, (Mark::Open, false, true)),
    ] {
        assert_eq!(state(fields), expected, "{fields}");
    }
    let under = r#"{"id": 2, "title": "B", "subtasks": [{"id": 3, "title": "Run `make`"}]}"#;
    let read = plan(&format!(r#"[{{"id": 1, "title": "A", "enabled": false, "subtasks": [{under}]}}]"#));
    assert_eq!(read.tasks[0].mark, Mark::Cancelled);
    let read = plan(&format!(r#"[{{"id": 1, "title": "A", "if": "it rains", "subtasks": [{under}]}}]"#));
    assert_eq!(read.tasks[0].command, None);
}
