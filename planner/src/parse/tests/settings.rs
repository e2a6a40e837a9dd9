//! What a text sets for a task: limits, who, how urgent, what undoes it, what counts when nobody answers.

use super::{check, plan};
use crate::parse::{ParsedPlan, render};

#[test]
fn an_item_says_how_long_it_may_take_and_is_expected_to_take() {
    for text in ["- Build it (deadline 2h)", "- Build it (deadline: 2h)", "- Build it\n  - deadline: 2h"] {
        check(text, &["1 CodeImplementation Build it | deadline 7200000"]);
    }
    for text in
        ["- Build it (estimate: 90m)", "- Build it ~90m", "- Build it (~1.5h)", "- Build it\n  - Estimate: 1h30m"]
    {
        check(text, &["1 CodeImplementation Build it | estimate 5400000"]);
    }
    check("- Build it (deadline Friday)", &["1 CodeImplementation Build it (deadline Friday)"]);
    check("- Wait ~2h and go on", &["1 Processing Wait ~2h and go on"]);
}

#[test]
fn what_undoes_a_task_is_no_command_of_its_own() {
    check(
        "- Start it with `make up` (undo: `make down`)",
        &["1 ToolCall Start it with make up | $ make up | undo make down"],
    );
    check("- Build it (compensate: `rm -r a, b`)", &["1 CodeImplementation Build it | undo rm -r a, b"]);
    check(
        "- Build it\n  - undo: `make clean`\n- Ship it",
        &["1 CodeImplementation Build it | undo make clean", "2 ToolCall Ship it"],
    );
    check("- Build it (undo: somehow)", &["1 CodeImplementation Build it (undo: somehow)"]);
}

#[test]
fn a_question_can_have_an_answer_that_counts_when_nobody_answers() {
    let asked = "1 Clarification Go on? | default yes after 600000";
    check("- Go on? (default: yes after 10m)", &[asked]);
    check("- Go on?\n  - default: yes after 10m", &[asked]);
    check("Go on? (default: yes after 10m) Then ship it.", &[asked, "2 ToolCall ship it | <- 1"]);
    check("- Go on? (default: yes)", &["1 Clarification Go on? (default: yes)"]);
}

#[test]
fn urgency_is_written_in_many_ways() {
    for (text, priority) in [
        ("- Fix it (P1)", "P1"),
        ("- [P0] Fix it", "P0"),
        ("- P2: Fix it", "P2"),
        ("- Fix it !high", "high"),
        ("- Fix it !!", "high"),
        ("- Fix it !!!", "critical"),
        ("- Fix it (high priority)", "high"),
        ("- Fix it (priority: low)", "low"),
        ("- Fix it\n  - priority: medium", "medium"),
        ("- Fix it (P1, @ann)", "P1"),
    ] {
        let tasks = plan(text).tasks;
        let shown = (tasks[0].priority.as_deref(), tasks[0].description.as_str(), tasks[0].label.as_deref());
        assert_eq!(shown, (Some(priority), "Fix it", None), "of {text:?}");
    }
}

#[test]
fn settings_are_written_out_and_read_back() {
    let text =
        "- Build it (deadline 2h, estimate 30m, undo: `make clean`)\n- Go on? (default: \"yes, do\" after 10m)\n";
    let planned = plan(text);
    let settings = |plan: &ParsedPlan| {
        let of = |task: &crate::plan::TaskPlan| {
            (task.deadline_ms, task.estimate_ms, task.compensate.clone(), task.default_answer.clone())
        };
        plan.tasks.iter().map(of).collect::<Vec<_>>()
    };
    let again = settings(&plan(&render(&planned)));
    assert_eq!(again, settings(&planned));
    assert_eq!(again[0].0, Some(7_200_000));
    assert_eq!(again[1].3.as_ref().map(|one| one.answer.as_str()), Some("yes, do"));
}
