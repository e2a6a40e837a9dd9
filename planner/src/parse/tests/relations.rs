//! Lines that say which task waits for which, and plans as tools write them.

use super::{ParseError, ParseOptions, check, check_error, parse, plan};
use crate::parse::parse_beside;
use crate::plan::TaskId;

#[test]
fn a_sentence_behind_a_list_that_names_two_of_its_tasks_is_no_task() {
    let list = "1. Build a\n2. Build b\n3. Build c\n\n";
    let tasks = |third: &'static str| ["1 CodeImplementation Build a", "2 CodeImplementation Build b | <- 1s", third];
    for said in ["Task 3 depends on task 1.", "3 needs 1.", "Step 1 blocks step 3", "Step 3 must wait for step 1."] {
        check(&format!("{list}{said}"), &tasks("3 CodeImplementation Build c | <- 1"));
    }
    check_error(
        &format!("{list}Step 3 needs step 7."),
        "no task is called 7 (line 5, column 19); name an existing task or remove the dependency",
    );
    let people = plan(&format!("{list}Task force meets at 5."));
    assert_eq!(people.tasks.len(), 4, "{:?}", people.tasks);
}

#[test]
fn steps_that_can_run_side_by_side_do_not_wait_for_each_other() {
    check(
        "1. Lint\n2. Test\n3. Build\n4. Deploy\n\nSteps 2 and 3 can run in parallel.",
        &[
            "1 Processing Lint",
            "2 UnitTest Test | <- 1s",
            "3 CodeImplementation Build | <- 1s",
            "4 ToolCall Deploy | <- 2s 3s",
        ],
    );
    check(
        "1. Lint\n2. Test\n3. Build\n\nSteps 1-3 are independent.",
        &["1 Processing Lint", "2 UnitTest Test", "3 CodeImplementation Build"],
    );
}

#[test]
fn a_section_of_dependencies_joins_the_tasks_that_it_names_and_nothing_else() {
    check(
        "## Tasks\n- [ ] T1 Write tests\n- [ ] T2 Write more tests\n- [ ] T3 Build it\n- [ ] T4 Ship it\n\n\
         ## Dependencies\n- Tests (T1-T2) before implementation (T3)\n- **T3** blocks T4\n- Models before services\n\
         - Phase 2 depends on the setup\n",
        &[
            "1 UnitTest Write tests | id T1",
            "2 UnitTest Write more tests | id T2",
            "3 CodeImplementation Build it | <- 1 2 | id T3",
            "4 ToolCall Ship it | <- 3 | id T4",
        ],
    );
}

#[test]
fn numbers_with_a_dot_go_on_over_remarks_and_a_star_behind_a_box_is_a_sign() {
    check(
        "- [x] 1. Set up\n- [ ] 2. Models\n  - [ ] 2.1 Create types\n    - _Requirements: 2.1_\n  - [ ] 2.2 Add the model\n\
         - [ ] 3. Storage\n  - [ ]* 3.1 Write unit tests\n",
        &[
            "1 CodeImplementation Set up | mark Done",
            "2 CodeImplementation Create types | <- 1s | in Models | note _Requirements: 2.1_",
            "3 CodeImplementation Add the model | <- 2s | in Models",
            "4 UnitTest Write unit tests | <- 3s | in Storage",
        ],
    );
}

#[test]
fn a_loud_remark_under_a_heading_is_no_heading_and_no_task() {
    let plan = plan("## Phase 1: Tests\n**CRITICAL: These MUST fail first**\n- [ ] T1 Write tests\n");
    assert_eq!(plan.tasks.len(), 1);
    assert_eq!(plan.tasks[0].group.as_deref(), Some("Phase 1: Tests"));
    assert_eq!(plan.context, ["CRITICAL: These MUST fail first"]);
}

#[test]
fn a_remark_on_the_order_alone_is_a_dependency() {
    check(
        "- Run the integration tests\n- Write it. It must run after the integration tests.\n",
        &[
            "1 UnitTest Run the integration tests",
            "2 Processing Write it | <- 1 | note It must run after the integration tests",
        ],
    );
}

#[test]
fn a_row_of_steps_between_arrows_is_one_step_each() {
    check(
        "* deploy to staging -> smoke test -> deploy to prod",
        &["1 ToolCall deploy to staging", "2 UnitTest smoke test | <- 1", "3 ToolCall deploy to prod | <- 2"],
    );
    check("- Map A -> B -> C", &["1 Processing Map A -> B -> C"]);
}

#[test]
fn a_ticket_is_the_task_that_speaks_of_it() {
    check(
        "- Fix the crash #123\n- Add a regression test (blocked by #123)",
        &["1 CodeImplementation Fix the crash #123", "2 UnitTest Add a regression test | <- 1"],
    );
    check_error(
        "- Fix the crash\n- Add a regression test (blocked by #123)",
        "no task is called 123 (line 2, column 38); name an existing task or remove the dependency",
    );
}

#[test]
fn that_two_tasks_run_something_makes_neither_wait() {
    let plan = plan("Run the smoke tests. Back up the database before running the migrations.");
    assert!(plan.tasks.iter().all(|task| task.depends_on.is_empty()), "{:?}", plan.tasks);
    check("- Contract test POST /users", &["1 UnitTest Contract test POST /users"]);
}

#[test]
fn what_is_told_of_other_things_is_no_order() {
    let background = "# Context\nES6 before ES5. Python3 requires OpenSSL3.\n# Background\nTask 12 blocks task 13. Issue 1 depends on 2.\n\
                      # Todo\n- Build a\n- Build b\n";
    check(background, &["1 CodeImplementation Build a", "2 CodeImplementation Build b"]);
    assert_eq!(plan("1. Build a\n\n- IPv6 before IPv4").tasks.len(), 2);
}

#[test]
fn many_names_on_both_sides_are_joined_once_or_refused() {
    let names = (1..=600).map(|n| format!("T{n}")).collect::<Vec<_>>();
    let tasks = names.iter().map(|name| format!("- {name}: do it\n")).collect::<String>();
    let (first, then) = (names[..300].join(","), names[300..].join(","));
    let said = format!("- {first} before {then}\n").repeat(30);
    let refused = parse(&format!("{tasks}\n## Dependencies\n{said}"), ParseOptions::default()).unwrap_err();
    assert_eq!(refused.to_string(), "2070000 dependencies are more than 2000000; split the plan into several");
    assert_eq!(plan(&format!("{tasks}\n## Dependencies\n- {first} before {then}\n")).tasks[599].depends_on.len(), 300);
}

#[test]
fn code_that_a_text_forbids_or_shows_is_not_run() {
    let commands = |text: &str| plan(text).tasks.iter().filter_map(|task| task.command.clone()).collect::<Vec<_>>();
    for lead in ["Never do this:", "This is what you must not run:", "Do not run anything in production, e.g.:"] {
        for code in ["```sh\nmake wipe\n```", "```\nmake wipe\n```", "    $ make wipe"] {
            assert_eq!(commands(&format!("Fix the bug.\n\n{lead}\n\n{code}\n\nAdd a test.")), [""; 0], "{lead} {code}");
        }
    }
    for lead in ["The error that users see is:", "We saw the following in the log:", "Example of what went wrong:"] {
        for code in ["```\ncurl -X POST http://a/reset\n```", "    curl -X POST http://a/reset"] {
            assert_eq!(commands(&format!("Fix the bug.\n\n{lead}\n\n{code}\n\nAdd a test.")), [""; 0], "{lead} {code}");
        }
    }
    for lead in [
        "I get this:",
        "The build fails:",
        "Yesterday I did this and it broke:",
        "Before (what I ran yesterday):",
        "Bob wrote:",
        "Danger:",
    ] {
        for code in ["```sh\nmake wipe\n```", "```console\n$ make wipe\nno such target\n```"] {
            assert_eq!(commands(&format!("Fix the bug.\n\n{lead}\n\n{code}\n\nAdd a test.")), [""; 0], "{lead} {code}");
        }
    }
    for lead in ["If the tests failed, run:", "When it broke, do this:", "Install what you got with:"] {
        let text = format!("Fix the bug.\n\n{lead}\n\n```sh\nmake all\n```\n");
        assert_eq!(commands(&text), ["make all"], "{lead}");
    }
    for lead in ["Do this:", "Then run:", "Run this and look at the output:"] {
        assert_eq!(commands(&format!("Fix the bug.\n\n{lead}\n\n    make all\n")), ["make all"], "{lead}");
        assert_eq!(commands(&format!("Fix the bug.\n\n{lead}\n\n```\nmake all\n```\n")), ["make all"], "{lead}");
    }
}

#[test]
fn what_must_pass_before_a_step_is_waited_for() {
    check(
        "1. Lint: `npm run lint`\n2. Test: `npm test`\n3. Both 1 and 2 must pass before `npm publish`",
        &[
            "1 ToolCall Lint: npm run lint | $ npm run lint",
            "2 ToolCall Test: npm test | <- 1s | $ npm test",
            "3 ToolCall npm publish | <- 1 2 | $ npm publish",
        ],
    );
}

#[test]
fn an_after_before_a_number_is_read_in_other_languages() {
    for after in ["Después de 1,", "Nach 1:", "Après 1,", "Depois de 1,", "Dopo 1,"] {
        let text = format!("1. Alpha\n2. Beta\n3. {after} Gamma");
        check(&text, &["1 Processing Alpha", "2 Processing Beta | <- 1s", "3 Processing Gamma | <- 1"]);
    }
    check("1. Alpha\n2. Beta nach Berlin", &["1 Processing Alpha", "2 Processing Beta nach Berlin | <- 1s"]);
}

#[test]
fn a_name_means_a_task_of_the_text_before_one_of_the_plan() {
    let named = |name: &str| match name {
        "T1" => Some(TaskId(7)),
        "the parser" => Some(TaskId(9)),
        _ => name.parse().ok().filter(|id| *id < 6).map(TaskId),
    };
    let waits = |text: &str| parse_beside(text, ParseOptions::default(), &named).map(|(_, waits)| waits);
    let to = |all: &[(u64, u64)]| Ok(all.iter().map(|(task, of)| (TaskId(*task), TaskId(*of))).collect::<Vec<_>>());
    assert_eq!(waits("- Fix it (after T1)"), to(&[(1, 7)]));
    assert_eq!(waits("- Fix it (after 4-5)"), to(&[(1, 4), (1, 5)]));
    assert_eq!(waits("- T1: Fix it\n- Test it (after T1)"), to(&[]));
    assert_eq!(waits("1. Fix it\n2. Test it (after 1)"), to(&[]));
    assert_eq!(waits("1. Fix it\n2. Test it (after 2)"), to(&[(2, 2)]));
    assert_eq!(waits("- T2: Fix it\n- Test it (after 1)"), to(&[(2, 1)]));
    assert_eq!(waits("- Lint it\n- Test it (after the parser)"), to(&[(2, 9)]));
    assert_eq!(waits("## The parser\n- Write it\n\n## Tests\n- Test it (after the parser)"), to(&[]));
    let ambiguous = waits("- Fix it\n- Test it (after 1)");
    assert!(matches!(ambiguous, Err(ParseError::AmbiguousId { .. })), "{ambiguous:?}");
}
