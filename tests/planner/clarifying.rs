//! Questions that are withdrawn, asked by people, or opened by answers.

use crewlog_planner::event::PlannerConfig;
use crewlog_planner::plan::FailurePolicy;
use crewlog_planner::prompt::split_default;

use super::transcript::{check, check_changed, unordered};

#[test]
fn a_withdrawn_question_is_skipped_and_frees_its_dependents() {
    check(
        "- What colour?\n- Run `paint` (depends on 1)\n",
        "
        > start
        planned 1 2
        dispatched 1#1 as a question
        q1 of 1, Task
        > withdraw q1
        q1 withdrawn: nobody knows
        1 Skipped (lets go): nobody knows
        dispatched 2#1
        > withdraw q1
        (nothing)
        > q1 blue
        ! q1 is closed: its task has ended
        > withdraw q7
        ! the plan has no question q7
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 1 completed, 1 skipped
        ",
    );
}

#[test]
fn an_executor_with_a_withdrawn_question_runs_again_without_an_answer() {
    check(
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 asks Which one?
        q1 of 1, Executor: Which one?
        > withdraw q1
        q1 withdrawn: nobody knows
        1 Planned
        dispatched 1#2
        ",
    );
}

#[test]
fn a_question_that_the_plan_depends_on_cannot_be_withdrawn() {
    check_changed(
        PlannerConfig { on_failure: FailurePolicy::Ask, ..PlannerConfig::default() },
        "1. If it rains, run `a`\n2. Run `b`\n",
        unordered,
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        dispatched 2#1
        > withdraw q1
        ! q1 cannot be withdrawn, because the plan needs its answer: answer one of yes, no
        > 2 fails no
        2 NeedsClarification: no
        q2 of 2, Failure: Task 2 failed: no. Retry, done, skip, continue or stop?
        > withdraw q2
        ! q2 cannot be withdrawn, because the plan needs its answer: answer one of retry, done, skip, continue, stop
        > q1 no
        q1 = no
        1 Skipped (lets go): the condition \"it rains\" does not hold
        > withdraw q1
        ! q1 is closed: it was answered \"no\"
        ",
    );
}

#[test]
fn a_question_about_a_task_blocks_only_that_task() {
    check(
        "1. Run `a`\n2. Run `b`\n3. Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > ask 2 How many?
        q1 of 2, Executor: How many?
        > ask 2 And where? | here 600
        q2 of 2, Executor: And where?
        > ask 1 Now?
        ! task 1 is under way: questions can be added only before its start, or while it waits for an answer
        > tick 0
        Question(QuestionId(2)) until 600
        > 1 done
        1 Completed:
        > q1 three
        q1 = three
        > tick 600
        Question(QuestionId(2)) fired
        q2 = here (by default)
        2 Planned
        dispatched 2#1 with three with here
        > 2 done
        2 Completed:
        dispatched 3#1 with three with here
        ",
    );
}

#[test]
fn an_answer_may_open_a_follow_up_question_that_the_task_also_waits_for() {
    check(
        "- What colour?\n- Run `paint` (depends on 1)\n",
        "
        > start
        planned 1 2
        dispatched 1#1 as a question
        q1 of 1, Task
        > also q1 blue | Light or dark?
        q2 of 1, Task
        q1 = blue
        > q2 dark
        q2 = dark
        1 Completed: blue / dark
        dispatched 2#1 with blue with dark
        > also q2 light | Sure?
        ! q2 is closed: it was answered \"dark\"
        ",
    );
    check(
        "- What colour?\n- Run `paint` (depends on 1)\n",
        "
        > start
        planned 1 2
        dispatched 1#1 as a question
        q1 of 1, Task
        > also q1 blue | Light or dark?
        q2 of 1, Task
        q1 = blue
        > withdraw q2
        q2 withdrawn: nobody knows
        1 Completed: blue
        dispatched 2#1 with blue
        ",
    );
}

#[test]
fn an_executor_continues_when_all_questions_about_its_task_are_answered() {
    check(
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 asks Which one?
        q1 of 1, Executor: Which one?
        > also q1 the left | Sure?
        q2 of 1, Executor: Sure?
        q1 = the left
        > q2 yes
        q2 = yes
        1 Planned
        dispatched 1#2 with the left with yes
        ",
    );
}

#[test]
fn an_answer_ends_the_wait_for_the_next_try() {
    check(
        "1. Run `a` (retry 3)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 fails no
        1 Planned: no
        1 again later
        > pause
        paused: lunch
        > ask 1 How many?
        q1 of 1, Executor: How many?
        > q1 three
        q1 = three
        1 Planned
        > tick 0
        (nothing)
        > resume
        resumed
        dispatched 1#2 with three
        ",
    );
}

#[test]
fn now_retries_a_waiting_task_at_once() {
    check(
        "1. Run `a` (retry 3)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > now 1
        ! task 1 is under way: only a task that waits for its retry delay can be retried now
        > 1 fails no
        1 Planned: no
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > now 1
        ! task 1 is under way: only a task that waits for its retry delay can be retried now
        > 1#1 done
        (nothing)
        > 1 fails no
        1 Planned: no
        1 again later
        > pause
        paused: lunch
        > now 1
        ! the plan is paused: resume it first
        ",
    );
}

#[test]
fn a_default_answer_is_parsed_from_the_end_of_an_agents_question() {
    let said = |question: &str| {
        let (question, default) = split_default(question);
        (question, default.map(|default| (default.answer, default.after_ms)))
    };
    let check = |typed: &str, question: &str, default: Option<(&str, u64)>| {
        let default = default.map(|(answer, after)| (answer.to_owned(), after));
        assert_eq!(said(typed), (question.to_owned(), default), "{typed}");
    };
    check("Which colour? (default: blue after 10m)", "Which colour?", Some(("blue", 600_000)));
    check("Which? (of 3) (default: the day after 2 h)", "Which? (of 3)", Some(("the day", 7_200_000)));
    let odd = ["Which?", "Which? (default: blue)", "Which? (default: blue after a while)", "(default: blue after 1s)"];
    for typed in
        odd.into_iter().chain(["Which? (default: after 1s)", "Which? (default: blue after 99999999999999999999d)"])
    {
        check(typed, typed, None);
    }
}
