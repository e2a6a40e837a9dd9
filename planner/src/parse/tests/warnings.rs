//! What a plan says of what was left out or guessed.

use super::{check, plan};

/// A text and its warnings, as `line:column message`.
#[track_caller]
fn check_warnings(text: &str, expected: &[&str]) {
    let plan = plan(text);
    let got: Vec<String> =
        plan.warnings.iter().map(|one| format!("{}:{} {}", one.line, one.column, one.message)).collect();
    assert_eq!(got, expected, "of {text:?}");
    assert!(plan.warnings.iter().all(|one| one.help.as_ref().is_some_and(|help| !help.is_empty())), "of {text:?}");
}

#[test]
fn words_that_fit_no_task_are_said_and_kept() {
    check_warnings(
        "- Add a\n- Celebrate (after the moon landing)",
        &["2:20 no task fits \"the moon landing\", so nothing waits for it"],
    );
    check_warnings(
        "- Add a page\n- Add a form\n  - depends on: the schema",
        &["3:17 no task fits \"the schema\", so nothing waits for it"],
    );
    check_warnings("After lunch, send the mail.", &["1:7 no task fits \"lunch\", so nothing waits for it"]);
    check_warnings("Send the mail before noon.", &["1:22 no task fits \"noon\", so nothing waits for it"]);
    check(
        "- Install the tool (requires Node 18)\n- Run it",
        &["1 ToolCall Install the tool | note Node 18", "2 ToolCall Run it"],
    );
    check_warnings("- Build the image\n- Push it (after the image is built)", &[]);
}

#[test]
fn a_list_outside_the_section_of_tasks_is_said_once() {
    check_warnings(
        "# Ideas\n- Add a shop\n- Add a blog\n\n# Tasks\n- Add a\n\n# Out of scope\n- Add b",
        &["2:1 a list of 2 items stands outside the section of tasks and is not read"],
    );
    check_warnings("# Goals\n- Be fast\n\n# Tasks\n- Add a", &[]);
    check_warnings("# Ideas\n- Add a shop\n\n# More\n- Add a", &[]);
}

#[test]
fn numbered_requirements_are_tasks_beside_questions_and_said_beside_other_tasks() {
    let requirements = "# Requirements\n1. Support SAML\n2. Support OIDC\n\n";
    for questions in ["# Questions", "## Open questions"] {
        let tasks = plan(&format!("{requirements}{questions}\n- Who is the admin?")).tasks;
        let texts: Vec<&str> = tasks.iter().map(|task| &*task.description).collect();
        assert_eq!(texts, ["Support SAML", "Support OIDC", "Who is the admin?"]);
    }
    check_warnings(
        &format!("{requirements}# Milestones\n- Add the login"),
        &["2:1 a list of 2 items stands outside the section of tasks and is not read"],
    );
    check_warnings(
        "# Requirements\n- Be fast\n\n# Milestones\n- Add the login",
        &["2:1 a list of 1 item stands outside the section of tasks and is not read"],
    );
}

#[test]
fn a_default_that_waits_for_nothing_is_no_default() {
    let text = "Which colour? (default: red after 0s)";
    assert_eq!(plan(text).tasks[0].default_answer, None);
    check_warnings(text, &["1:16 \"default: red after 0s\" cannot be read as a setting and stays part of the text"]);
    assert_eq!(crate::prompt::split_default("which? (default: red after 0s)").1, None);
    assert!(crate::prompt::split_default("which? (default: red after 1s)").1.is_some());
}

#[test]
fn order_that_gives_way_is_said() {
    check_warnings(
        "1. Add a (depends on 2)\n2. Add b",
        &["2:1 task 2 stands after task 1 in its list, but what is written says otherwise"],
    );
    check_warnings(
        "1. Build it\n2. Ship it\n3. Back it up (before 2)",
        &["3:1 task 3 stands after task 2 in its list, but what is written says otherwise"],
    );
    check_warnings("1. Add a\n2. Add b\n3. Add c (depends on 1)", &[]);
}

#[test]
fn settings_that_cannot_be_read_are_said_and_stay() {
    for (text, words, column) in [
        ("- Fetch it (timeout soon)", "timeout soon", 13),
        ("- Fetch it (retry many)", "retry many", 13),
        ("- Fetch it (on failure: explode)", "on failure: explode", 13),
        ("- [ ] Fetch it\n  - timeout: soon", "timeout: soon", 5),
        ("- Fetch it (rerun: perhaps)", "rerun: perhaps", 13),
    ] {
        let line = text.lines().count();
        let message = format!("{line}:{column} \"{words}\" cannot be read as a setting and stays part of the text");
        check_warnings(text, &[&message]);
    }
    check("- Fetch it (retry many)", &["1 Retrieval Fetch it (retry many)"]);
    check_warnings("- Fetch it (retry 3, timeout 2m, on failure: stop)", &[]);
    check_warnings("- Fetch it (rerun: safe, files: src/**)", &[]);
    check_warnings("- Add the page (with a retry button)", &[]);
    check_warnings("- Fix the test (rerun it)", &[]);
}

#[test]
fn a_fence_that_is_not_run_is_said() {
    check_warnings(
        "Add this:\n\n```python\nprint(1)\n```",
        &["3:1 the block of python is not run; it is kept as a remark"],
    );
    check_warnings("Run this:\n\n```sh\nmake\n```\n\nWrite this:\n\n```json\n{}\n```", &[]);
}

#[test]
fn conditions_and_plain_texts_give_no_warnings() {
    check_warnings("Add a. If it fails, stop. See also x.md, then x.md again.", &[]);
}

#[test]
fn warnings_are_limited() {
    let text = "- Fetch it (timeout soon)\n".repeat(crate::parse::WARNINGS_MAX + 5);
    assert_eq!(plan(&text).warnings.len(), crate::parse::WARNINGS_MAX);
}
