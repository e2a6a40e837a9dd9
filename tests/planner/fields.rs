//! Fields that a transcript tells only if it is asked to, of each event that has them.

use crewlog_planner::event::{Budget, PlannerConfig};
use crewlog_planner::plan::{DefaultAnswer, NodeKind, TaskPlan};

use super::transcript::{check_changed, check_with};
use crate::planner::retries::retries_after;

/// A command with all that an executor needs, and a question with a default.
fn changed(tasks: &mut [TaskPlan]) {
    let [dig, colour, ..] = tasks else { panic!("it has two tasks") };
    *dig = TaskPlan {
        command: Some("dig --deep".into()),
        kind: NodeKind::ToolCall,
        notes: vec!["Mind the roots.".into()],
        files: vec!["garden/".into()],
        timeout_ms: Some(300_000),
        retry: Some(2),
        rerun_safe: true,
        priority: Some("high".into()),
        ..dig.clone()
    };
    *colour = TaskPlan {
        kind: NodeKind::Clarification,
        default_answer: Some(DefaultAnswer { answer: "red".into(), after_ms: 60_000 }),
        ..colour.clone()
    };
}

const TEXT: &str = "1. Dig\n2. Which colour is it?\n3. Paint it (assignee: ann)\n";

#[test]
fn what_was_planned_reaches_its_executor_and_its_person() {
    let config = PlannerConfig { folder: Some("/g".into()), parallelism: 2, ..PlannerConfig::default() };
    check_changed(
        config,
        TEXT,
        changed,
        r#"
        > start
        planned 1 2 3
        {"title": null, "config": {"parallelism": 2, "folder": "/g"}}
        dispatched 1#1
        {"command": {"ExecuteTask": {"kind": "ToolCall", "parameters": {"description": "Dig", "command": "dig --deep", "notes": null, "files": ["garden/"], "timeout_ms": null, "folder": "/g", "assignee": null}}}}
        > 1 done deep enough
        1 Completed: deep enough
        dispatched 2#1 as a question
        {"command": {"RequestClarification": {"question": "Which colour is it?"}}}
        q1 of 2, Task
        {"default": {"answer": "red", "after_ms": 60000}}
        > tick 5000
        Question(QuestionId(1)) until 65000
        {"due": 65000000}
        > tick 65000
        Question(QuestionId(1)) fired
        {"due": 65000000}
        q1 = red (by default)
        2 Completed: red
        dispatched 3#1 with red
        {"command": {"ExecuteTask": {"kind": "Processing", "parameters": {"assignee": "ann", "answers": null}}}}
        "#,
    );
}

#[test]
fn a_change_has_whole_tasks_and_all_settings_and_a_pause_its_remedy() {
    let budget = Budget { tokens: Some(100), ..Budget::default() };
    check_with(
        PlannerConfig { budget, retry: retries_after(1_000), ..PlannerConfig::default() },
        TEXT,
        r#"
        > start
        planned 1 2 3
        dispatched 1#1
        > amend edit 3 priority=high
        amended 3: better
        {"tasks": [{"id": 3, "description": "Paint it", "assignee": "ann", "priority": "high", "depends_on": [{"task": 2}]}]}
        > set retries=5
        settings changed: more
        {"config": {"retry": {"transient": {"count": 5, "first_ms": 1000}}, "budget": {"tokens": 100}}}
        > 1 used {"input_tokens": 60, "output_tokens": 40, "cost_micros": 7, "duration_ms": 9, "estimated_tokens": 3}
        1#1 used 60 and 40 tokens
        {"epoch": 1, "usage": {"cost_micros": 7, "duration_ms": 9, "estimated_tokens": 3}}
        > 1 not-started busy
        1 Planned: busy
        1 again later
        {"delay_ms": 750}
        > tick 0
        Retry(TaskId(1)) is set
        {"due": 750000}
        > pause
        paused: lunch
        {"reason": "lunch", "from_parent": false}
        "#,
    );
}
