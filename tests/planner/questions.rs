//! Questions of the text, of executors and of conditions. A question blocks only its dependents.

use std::fmt::Write;

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, PlannerConfig, TaskEvent, TaskStatus};
use crewlog_planner::plan::{FailurePolicy, TaskId};
use crewlog_planner::planner::{Planner, QUESTIONS_OF_TASK_MAX};

use super::transcript::{check, check_with};
use crate::planner::retries::retries;

#[test]
fn a_question_blocks_only_its_dependents_and_passes_its_answer_on() {
    check(
        "In parallel:\n- A: What colour?\n- B: Run `paint` (depends on A)\n- C: Run `sweep`\n- D: Run `dry` (depends on B)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 3#1
        dispatched 1#1 as a question
        q1 of 1, Task
        > 3 done
        3 Completed:
        > q1 blue
        q1 = blue
        1 Completed: blue
        dispatched 2#1 with blue
        > 2 done
        2 Completed:
        dispatched 4#1 with blue
        > 4 done
        4 Completed:
        ended Completed, 4 tasks: 4 completed
        ",
    );
}

#[test]
fn an_executors_question_stops_its_task_until_answered() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 asks Which one?
        q1 of 1, Executor: Which one?
        > 1 done
        (nothing)
        > q1 the left one
        q1 = the left one
        1 Planned
        dispatched 1#2 with the left one
        > 1 asks And how?
        q2 of 1, Executor: And how?
        > q2 gently
        q2 = gently
        1 Planned
        dispatched 1#3 with the left one with gently
        > 1 done
        1 Completed:
        dispatched 2#1 with the left one with gently
        ",
    );
}

#[test]
fn every_task_after_an_answered_question_gets_the_answer_once() {
    let n_tasks = 200;
    let mut text = "1. What colour?\n".to_owned();
    let mut transcript = format!("> start\nplanned {}\n", (1..=n_tasks).map(|n| format!("{n} ")).collect::<String>());
    transcript += "dispatched 1#1 as a question\nq1 of 1, Task\n> q1 blue\nq1 = blue\n1 Completed: blue\n";
    for n in 2..=n_tasks {
        writeln!(text, "{n}. Run `paint {n}`").unwrap();
        writeln!(transcript, "dispatched {n}#1 with blue\n> {n} done\n{n} Completed:").unwrap();
    }
    writeln!(transcript, "ended Completed, {n_tasks} tasks: {n_tasks} completed").unwrap();
    check(&text, &transcript);
}

#[test]
fn the_answers_passed_to_a_task_do_not_grow_with_its_failures() {
    check_with(
        PlannerConfig { on_failure: FailurePolicy::Ask, retry: retries(1), ..PlannerConfig::default() },
        "1. What colour?\n2. Run `paint`\n3. Run `dry`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1 as a question
        q1 of 1, Task
        > q1 blue
        q1 = blue
        1 Completed: blue
        dispatched 2#1 with blue
        > 2 not-started busy
        2 Planned: busy
        2 again later
        > now 2
        2 again now
        dispatched 2#2 with blue
        > 2 asks Where?
        q2 of 2, Executor: Where?
        > q2 here
        q2 = here
        2 Planned
        dispatched 2#3 with blue with here
        > 2 fails boom
        2 NeedsClarification: boom
        q3 of 2, Failure: Task 2 failed: boom. Retry, done, skip, continue or stop?
        > q3 retry
        q3 = retry
        2 Planned: boom
        dispatched 2#4 with blue with here
        > 2 fails boom
        2 NeedsClarification: boom
        q4 of 2, Failure: Task 2 failed: boom. Retry, done, skip, continue or stop?
        > q4 stop
        q4 = stop
        2 Failed: boom
        stopped because of 2
        3 Skipped: not started: the plan stopped when task 2 failed
        ended Failed, 3 tasks: 1 completed, 1 failed, 1 skipped
        > retry
        reopened 2 3
        dispatched 2#5 with blue with here
        > 2 done
        2 Completed:
        dispatched 3#1 with blue with here
        ",
    );
}

#[test]
fn two_open_questions_each_take_their_own_answer() {
    check(
        "In parallel:\n- Run `a`\n- Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        dispatched 2#1
        > 1 asks Left?
        q1 of 1, Executor: Left?
        > 2 asks Right?
        q2 of 2, Executor: Right?
        > q2 right
        q2 = right
        2 Planned
        dispatched 2#2 with right
        > q1 left
        q1 = left
        1 Planned
        dispatched 1#2 with left
        ",
    );
}

#[test]
fn the_first_answer_counts() {
    check(
        "In parallel:\n- A: What colour?\n- B: Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 2#1
        dispatched 1#1 as a question
        q1 of 1, Task
        > q1 blue
        q1 = blue
        1 Completed: blue
        > q1 blue
        (nothing)
        > q1 red
        ! q1 is closed: it was answered \"blue\"
        > q2 red
        ! the plan has no question q2
        > q0 red
        ! the plan has no question q0
        ",
    );
}

#[test]
fn a_question_of_an_ended_task_takes_no_answer() {
    check(
        "In parallel:\n- A: What colour?\n- B: Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 2#1
        dispatched 1#1 as a question
        q1 of 1, Task
        > cancel 1
        1 Cancelled: not wanted
        > q1 blue
        ! q1 is closed: its task has ended
        ",
    );
}

#[test]
fn both_branches_of_a_condition_share_one_question_and_one_branch_is_skipped() {
    let text = "1. If it rains, run `umbrella`\n2. Otherwise, run `hat`\n3. Run `walk`\n";
    check(
        text,
        "
        > start
        planned 1 2 3
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q1 maybe
        ! q1 accepts only these answers: yes, no
        > q1 Yes
        q1 = Yes
        dispatched 1#1
        2 Skipped (lets go): the condition \"it rains\" holds
        > 1 done
        1 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 2 completed, 1 skipped
        ",
    );
    check(
        text,
        "
        > start
        planned 1 2 3
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q1 no
        q1 = no
        1 Skipped (lets go): the condition \"it rains\" does not hold
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 2 completed, 1 skipped
        > retry
        (nothing)
        ",
    );
}

#[test]
fn a_withdrawn_condition_is_asked_again_for_the_other_branch() {
    check(
        "1. If it rains, run `umbrella`\n2. Otherwise, run `hat`\n",
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > cancel 1
        1 Cancelled: not wanted
        q2 of 2, Condition: Does \"it rains\" hold? Task 2 runs only if it does not. (yes or no)
        > q1 yes
        ! q1 is closed: its task has ended
        > q2 no
        q2 = no
        dispatched 2#1
        ",
    );
}

#[test]
fn a_task_skipped_by_an_answer_asks_again_when_retried() {
    check(
        "1. If it rains, run `umbrella`\n2. Run `walk`\n",
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q1 no
        q1 = no
        1 Skipped (lets go): the condition \"it rains\" does not hold
        dispatched 2#1
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 1 completed, 1 skipped
        > retry 1
        reopened 1
        q2 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q2 yes
        q2 = yes
        dispatched 1#1
        > 1 done
        1 Completed:
        ended Completed, 2 tasks: 2 completed
        ",
    );
}

#[test]
fn a_task_waits_when_its_condition_is_asked_again() {
    check(
        "1. If it rains, run `umbrella`\n2. Otherwise, run `hat`\n",
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q1 yes
        q1 = yes
        dispatched 1#1
        2 Skipped (lets go): the condition \"it rains\" holds
        > retry 2
        reopened 2
        q2 of 2, Condition: Does \"it rains\" hold? Task 2 runs only if it does not. (yes or no)
        > 1 not-started no shell
        1 Planned: no shell
        1 again later
        > q2 no
        q2 = no
        dispatched 2#1
        > now 1
        1 again now
        1 Skipped (lets go): the condition \"it rains\" does not hold
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 1 completed, 1 skipped
        ",
    );
}

#[test]
fn the_same_condition_text_after_another_step_is_a_separate_condition() {
    check(
        "1. Paint the door\n2. If it rains, run `a`\n3. Paint the wall\n4. If it rains, run `b`\n5. If it rains, run `c`\n",
        "
        > start
        planned 1 2 3 4 5
        dispatched 1#1
        > 1 done
        1 Completed:
        q1 of 2, Condition: Does \"it rains\" hold? Task 2 runs only if it does, after 1. (yes or no)
        > q1 yes
        q1 = yes
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        q2 of 4, Condition: Does \"it rains\" hold? Task 4 runs only if it does, after 3. (yes or no)
        > q2 no
        q2 = no
        4 Skipped (lets go): the condition \"it rains\" does not hold
        5 Skipped (lets go): the condition \"it rains\" does not hold
        ended Completed, 5 tasks: 3 completed, 2 skipped
        ",
    );
}

#[test]
fn a_condition_already_being_asked_is_not_asked_twice() {
    check(
        "1. If it rains, run `umbrella`\n2. If it rains, run `coat`\n",
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > q1 no
        q1 = no
        1 Skipped (lets go): the condition \"it rains\" does not hold
        2 Skipped (lets go): the condition \"it rains\" does not hold
        ended Completed, 2 tasks: 2 skipped
        > retry 1
        reopened 1
        q2 of 1, Condition: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no)
        > retry 2
        reopened 2
        > q2 yes
        q2 = yes
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn a_task_whose_executor_asks_endlessly_fails() {
    let mut planner = Planner::default();
    let config = PlannerConfig { on_failure: FailurePolicy::Stop, ..PlannerConfig::default() };
    let user_input = "- Paint\n".to_owned();
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    let node_id = TaskId(1);
    for nth in 1..=QUESTIONS_OF_TASK_MAX + 1 {
        let attempt = planner.state().task(node_id).unwrap().attempts;
        let asks = Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::NeedsClarification { attempt, question: "a?".into(), default: None, epoch: 1 },
        };
        planner.process(asks).unwrap();
        let open = planner.state().open_questions().next().map(|question| question.id);
        assert_eq!(open.is_some(), nth <= QUESTIONS_OF_TASK_MAX);
        let Some(question_id) = open else { break };
        planner.process(Command::Answer { question: question_id, answer: "b".into() }).unwrap();
    }
    let task = planner.state().task(node_id).unwrap();
    assert_eq!(task.status, TaskStatus::Failed);
    assert!(task.error.as_ref().unwrap().contains("questions_of_task_max is 20"), "{:?}", task.error);
}
