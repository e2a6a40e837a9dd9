//! Lists of other programs in YAML, in front matter and in fences.

use super::{check, check_error, plan};
use crate::parse::{ParseError, ParseOptions, parse, parse_beside};
use crate::plan::TaskId;

#[test]
fn the_todos_in_the_front_matter_are_the_tasks_and_the_text_below_is_context() {
    let text = "---\nname: Add auth\ntodos:\n  - id: setup\n    content: Install the library\n    status: completed\n  \
                - id: impl\n    content: Implement the route in src/login.rs\n    dependencies:\n      - setup\n---\n\n\
                # Add auth\n\nThe API has\nno sessions yet.\n";
    check(
        text,
        &[
            "1 ToolCall Install the library | id setup | mark Done",
            "2 CodeImplementation Implement the route in src/login.rs | <- 1 | id impl | FileRef src/login.rs",
        ],
    );
    let read = plan(text);
    assert_eq!(read.title.as_deref(), Some("Add auth"));
    assert_eq!(read.context, ["# Add auth", "The API has no sessions yet."]);
    check("---\ntitle: Notes\n---\nAdd a logo.", &["1 CodeImplementation Add a logo"]);
}

#[test]
fn steps_in_yaml_are_a_sequence_unless_they_say_what_they_wait_for() {
    check(
        "# how it goes\nname: Release\nsteps:\n  - name: Build the image # slow\n    id: build\n  - name: 'Scan it''s layers'\n  \
         - task: \"Push: the image\"\n    needs: [build]\n    notes: >\n      To the mirror\n      as well.\n    done: true\n",
        &[
            "1 ToolCall Build the image | id build",
            "2 Processing Scan it's layers | <- 1s",
            "3 ToolCall Push: the image | <- 1 | mark Done | note To the mirror as well.",
        ],
    );
    check(
        "tasks: # of today\n- title: Fetch it\n- title: Sort it\n  depends_on: Fetch it\n",
        &["1 Retrieval Fetch it", "2 Processing Sort it | <- 1"],
    );
}

#[test]
fn a_command_of_its_own_is_kept_and_said_and_not_run() {
    let text = "steps:\n  - name: Build\n    run: |\n      make\n      make check\n  - name: Run `make push`\n";
    check(
        text,
        &[
            "1 CodeImplementation Build | note Command: make\\nmake check",
            "2 ToolCall Run make push | <- 1s | $ make push",
        ],
    );
    let said = plan(text).warnings;
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].line, said[0].column, &*said[0].message), (2, 3, "the command of Build is not run"));
}

#[test]
fn a_list_in_a_fence_is_the_plan_when_the_words_before_say_so_or_nothing_else_is_listed() {
    let list = "{\"plan\": [{\"step\": \"Inspect it\", \"status\": \"completed\"}, {\"step\": \"Fix it\"}]}";
    let tasks = ["1 Analysis Inspect it | mark Done", "2 CodeImplementation Fix it | <- 1s"];
    check(&format!("Here is the plan:\n\n```json\n{list}\n```\n\nLet me know what you think.\n"), &tasks);
    check(&format!("```\n{list}\n```"), &tasks);
    check(&format!("update_plan:\n```json\n{list}\n```"), &tasks);
    check(
        "Plan:\n\n```yaml\ntodos:\n  - id: a\n    content: Fetch it\n  - id: b\n    content: Sort it\n    deps: [a]\n```",
        &["1 Retrieval Fetch it | id a", "2 Processing Sort it | <- 1 | id b"],
    );
    let posted = plan(&format!("Post these tasks to the tracker:\n\n```json\n{list}\n```\n"));
    assert_eq!(posted.tasks.len(), 1);
    let beside = plan(&format!("- Add a\n- Add b\n\n```json\n{list}\n```\n"));
    assert_eq!(beside.tasks.len(), 2);
    check_error(
        "```json\n{\"tasks\": [{\"id\": 1, \"title\": \"Do it\", \"dependencies\": [3]}]}\n```",
        "no task is called 3 (line 2, column 12); name an existing task or remove the dependency",
    );
}

#[test]
fn dependencies_on_the_command_line_of_beads_are_read() {
    check(
        "{\"id\":\"bd-1\",\"title\":\"Create it\",\"deps\":[]}\n{\"id\":\"bd-2\",\"title\":\"Review it\",\"deps\":[\"bd-1\"]}\n\
         {\"id\":\"bd-3\",\"title\":\"Ship it\",\"deps\":[\"blocks:bd-2\",\"related:bd-9\"]}\n",
        &[
            "1 CodeImplementation Create it | id bd-1",
            "2 Analysis Review it | <- 1 | id bd-2",
            "3 ToolCall Ship it | <- 2 | id bd-3",
        ],
    );
}

#[test]
fn lists_of_words_in_json_are_tasks_where_the_list_has_a_name() {
    check(
        "{\"tasks\": [\"Fix it\", \"Run `make`\"]}",
        &["1 CodeImplementation Fix it", "2 ToolCall Run make | $ make"],
    );
    check("{\"steps\": [\"Fix it\", \"Test it\"]}", &["1 CodeImplementation Fix it", "2 UnitTest Test it | <- 1s"]);
}

#[test]
fn text_that_only_looks_like_yaml_is_read_as_any_text() {
    for (text, n_tasks) in [
        ("tasks:\n- Build it\n- Test it\n", 2),
        ("name: x\nPlease add a logo.", 2),
        ("steps:\n  - Fix: the parser\n  - Test: the parser\n", 2),
        ("- name: the parser\n- fix it\n- test it", 3),
        ("todo: add a logo", 1),
        ("steps:\n\t- name: Build it\n", 1),
    ] {
        assert_eq!(plan(text).tasks.len(), n_tasks, "{text:?}: {:?}", plan(text).tasks);
    }
}

/// A list of one task, in a fence.
const FENCE: &str = "```json\n[{\"id\":1,\"title\":\"Run `rm -rf z`\",\"status\":\"open\"}]\n```\n";

#[test]
fn a_list_that_is_forbidden_or_rejected_or_only_shown_is_not_carried_out() {
    for before in [
        "Never execute the following plan:",
        "Do not execute this plan:",
        "Don't run these tasks:",
        "Old plan (obsolete, do not execute):",
        "Here is the plan that Bob wanted, which I refuse:",
        "Fix the bug.\n\nThe rejected plan of the other agent was:",
        "This plan is wrong, fix it:",
        "The API returns tasks like this example:",
        "Implement the tasks API. The tasks look so:",
        "Nobody wants this.\nIt was never approved. Here is the plan:",
        "The team rejected it.\n\nPlan:",
        "Summarise these tasks:",
        "Use these tasks to test the parser:",
        "Fix the parser.\n\n## Won't do\n",
        "Fix the parser.\n\n## Out of scope\n\nPlan:",
        "Fix the parser.\n\n## Steps to reproduce\n",
        "Fix the parser.\n\n## Example\n",
        "# Parser\n\n## Response\n",
        "Fix the parser.\n\n<details><summary>The plan that broke everything</summary>\n",
        "<details>\n<summary>What happened</summary>\n\nThe plan:\n",
        "> He said:\n>",
        "- Add a\n- Add b\n",
    ] {
        let text = format!("{before}\n{FENCE}");
        let Ok(read) = parse(&text, ParseOptions::default()) else { continue };
        assert!(read.tasks.iter().all(|task| task.command.is_none()), "{text:?}: {:?}", read.tasks);
        assert_eq!(before.contains("Fix the parser"), read.tasks[0].description == "Fix the parser", "{text:?}");
        let said = "the list of tasks in this fence is not read as the plan";
        assert!(read.warnings.iter().any(|one| one.message == said), "{text:?}: {:?}", read.warnings);
    }
}

#[test]
fn a_list_that_is_given_as_the_plan_is_carried_out() {
    for before in [
        "",
        "Please execute the following plan:",
        "Carry out these tasks:",
        "Here's the updated plan:",
        "**Plan**\n",
        "# Release\n",
        "# Release\n\n## Tasks\n",
        "The login is slow. Here is the plan:",
        "Tasks for today:",
        "TodoWrite:",
    ] {
        let read = plan(&format!("{before}\n{FENCE}"));
        assert_eq!(read.tasks[0].command.as_deref(), Some("rm -rf z"), "{before}: {:?}", read.tasks);
        assert_eq!(read.warnings, [], "{before}");
    }
}

#[test]
fn a_list_in_a_text_with_steps_of_its_own_hides_none_of_them() {
    for (text, own) in [
        (format!("Carry out this plan:\n{FENCE}\nThen run `make deploy` and tell the team."), "make deploy"),
        (format!("Use this plan:\n{FENCE}\n1. Fix A\n2. Fix B"), "Fix B"),
        (format!("Execute this plan:\n{FENCE}\nThen this plan:\n{FENCE}"), "Execute this plan"),
        (format!("Summarise these tasks:\n{FENCE}"), "Summarise these tasks"),
        (format!("Execute this plan:\n{FENCE}\nNever push to main."), "Never push to main"),
        ("---\ntasks:\n- title: Sort it\n---\n# Tasks\n- [ ] Fix the bug".to_owned(), "Fix the bug"),
    ] {
        let read = plan(&text);
        let all = format!("{:?}", read.tasks);
        assert!(all.contains(own) && !read.warnings.is_empty(), "{text:?}: {all}");
        assert!(read.tasks.iter().all(|task| task.command.as_deref() != Some("rm -rf z")), "{text:?}: {all}");
    }
    let read = plan("---\ntasks:\n- title: Sort it\n---\nFix the bug.\n\nDeploy it.");
    assert_eq!(read.tasks.len(), 1);
    let said: Vec<_> = read.warnings.iter().map(|one| one.line).collect();
    assert_eq!(said, [5, 7], "{:?}", read.warnings);
}

#[test]
fn a_list_that_is_added_to_a_plan_may_wait_for_tasks_of_it() {
    let named = |name: &str| (name == "T1").then_some(TaskId(7));
    for text in [
        "tasks:\n- title: Fix it\n- title: Test it\n  needs: [T1]\n",
        r#"[{"id": "A", "title": "Fix it"}, {"id": "B", "title": "Test it", "dependencies": ["T1"]}]"#,
        "```json\n[{\"id\": 1, \"title\": \"Fix it\"}, {\"id\": 2, \"title\": \"Test it\", \"dependencies\": [\"T1\"]}]\n```",
    ] {
        let read = parse_beside(text, ParseOptions::default(), &named);
        assert_eq!(read.map(|(_, waits)| waits), Ok(vec![(TaskId(2), TaskId(7))]), "{text}");
    }
    let unknown = parse_beside("tasks:\n- title: Fix it\n  needs: [T2]\n", ParseOptions::default(), &named);
    assert!(matches!(unknown, Err(ParseError::UnknownId { .. })), "{unknown:?}");
}

#[test]
fn every_field_that_names_an_entry_may_stand_first_in_yaml() {
    for first in ["title", "subject", "content", "step", "name", "task", "description", "id", "taskId", "key", "status"]
    {
        let text = format!("- {first}: open\n  title: Fix it\n  id: a\n  status: open\n");
        let text = match first {
            "title" | "id" | "status" => text.replacen(&format!("\n  {first}:"), "\n  note:", 1),
            _ => text,
        };
        assert!(plan(&text).tasks[0].label.is_some(), "{text}");
    }
}
