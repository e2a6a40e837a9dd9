//! Steps that depend on the outcome of a previous step, and steps that wait because of their box.

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, PlannerConfig};
use crewlog_planner::plan::{Mark, TaskPlan};
use crewlog_planner::planner::Planner;

use super::transcript::{check, check_changed, check_with};
use crate::planner::retries::retries;

const BRANCHES: &str =
    "1. Run `make test`\n2. If it passes, run `make ship`\n3. If it fails, run `make fix`\n4. Run `make clean`\n";

fn without_retries() -> PlannerConfig {
    PlannerConfig { retry: retries(0), ..PlannerConfig::default() }
}

#[test]
fn a_completed_step_runs_the_success_branch() {
    check(
        BRANCHES,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        3 Skipped (lets go): the condition \"step 1 succeeds\" holds
        > 2 done
        2 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        ended Completed, 4 tasks: 3 completed, 1 skipped
        ",
    );
}

#[test]
fn a_failed_step_runs_the_failure_branch_and_the_next_step_waits_for_it() {
    check(
        BRANCHES,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        4 Skipped: task 1 did not complete
        2 Skipped (lets go): the condition \"step 1 succeeds\" does not hold
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 skipped
        ",
    );
}

#[test]
fn the_step_after_a_tolerated_failure_waits_for_the_branch_too() {
    check(
        "1. Run `make test` (on failure: continue)\n2. If it fails, run `make fix`\n3. Run `make clean`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 fails boom
        1 Failed (lets go): boom
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        ",
    );
}

#[test]
fn a_step_that_times_out_counts_as_failed() {
    check_with(
        without_retries(),
        BRANCHES,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 timed-out after 5 s
        1 TimedOut: after 5 s
        4 Skipped: task 1 did not complete
        2 Skipped (lets go): the condition \"step 1 succeeds\" does not hold
        dispatched 3#1
        ",
    );
}

#[test]
fn a_step_with_retries_left_does_not_decide_a_condition_yet() {
    check(
        "1. Run `make test` (retry 1)\n2. If it passes, run `make ship`\n3. Otherwise, run `make fix`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 fails boom
        1 Planned: boom
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 2#1
        3 Skipped (lets go): the condition \"step 1 succeeds\" holds
        ",
    );
}

#[test]
fn a_retry_of_the_deciding_step_decides_its_branches_again() {
    check(
        BRANCHES,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        4 Skipped: task 1 did not complete
        2 Skipped (lets go): the condition \"step 1 succeeds\" does not hold
        dispatched 3#1
        > retry 1
        reopened 1 2 4
        dispatched 1#2
        > 3 done
        3 Completed:
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 4#1
        ",
    );
}

#[test]
fn after_parallel_steps_that_end_differently_a_person_says_whether_they_succeeded() {
    check(
        "1. In parallel:\n   - Run `a`\n   - Run `b`\n2. If it fails, run `fix`\n3. If it passes, run `ship`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        > 1 fails boom
        1 Failed: boom
        > 2 done
        2 Completed:
        q1 of 3, Condition: Does \"all of the steps 1/1, 1/2 succeed\" hold? Task 2 runs only if it does not, after 1/1, 1/2. (yes or no)
        > q1 no
        q1 = no
        dispatched 3#1
        4 Skipped (lets go): the condition \"all of the steps 1/1, 1/2 succeed\" does not hold
        ",
    );
}

#[test]
fn parallel_steps_that_end_alike_decide_together() {
    const PARALLEL: &str = "- [ ] 1. [P] Run `a`\n- [ ] 2. [P] Run `b`\n- [ ] 3. If they pass, run `ship`\n- [ ] 4. If it fails, run `fix`\n";
    check(
        PARALLEL,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        > 2 done
        2 Completed:
        > 1 done
        1 Completed:
        dispatched 3#1
        4 Skipped (lets go): the condition \"all of the steps 1, 2 succeed\" holds
        ",
    );
    check(
        PARALLEL,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        > 1 fails boom
        1 Failed: boom
        > 2 fails boom
        2 Failed: boom
        3 Skipped (lets go): the condition \"all of the steps 1, 2 succeed\" does not hold
        dispatched 4#1
        ",
    );
}

#[test]
fn an_optional_step_fails_no_plan_and_a_tolerated_failure_does() {
    for (mark, outcome) in [("[ ]*", "Completed"), ("[ ]", "Failed")] {
        check(
            &format!("- [ ] Run `a`\n- {mark} Run `b` (on failure: continue)\n"),
            &format!(
                "
                > start
                planned 1 2
                dispatched 1#1
                > 1 done
                1 Completed:
                dispatched 2#1
                > 2 fails boom
                2 Failed (lets go): boom
                ended {outcome}, 2 tasks: 1 completed, 1 failed
                "
            ),
        );
    }
}

#[test]
fn a_skipped_step_runs_neither_branch() {
    check(
        "1. Run `make`\n2. Run `make test`\n3. If it passes, run `make ship`\n4. If it fails, run `make fix`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task 1 did not complete
        3 Skipped (lets go): the condition \"step 2 succeeds\" is undecided, since nothing ran that decides it
        4 Skipped (lets go): the condition \"step 2 succeeds\" is undecided, since nothing ran that decides it
        ended Failed, 4 tasks: 1 failed, 3 skipped
        ",
    );
    check(
        "1. Run `make test`\n2. If it passes, run `make ship`\n3. Run `make clean`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > amend skip 1
        1 Skipped (lets go): better
        2 Skipped (lets go): the condition \"step 1 succeeds\" is undecided, since nothing ran that decides it
        dispatched 3#1
        ",
    );
    check(
        "1. Run `make test`\n2. If it passes, run `make ship`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > cancel 1
        1 Cancelled: not wanted
        2 Skipped (lets go): the condition \"step 1 succeeds\" is undecided, since nothing ran that decides it
        ended Failed, 2 tasks: 1 cancelled, 1 skipped
        ",
    );
}

#[test]
fn a_person_decides_the_outcome_of_a_step_without_a_command() {
    let text =
        "1. Look at the logs\n2. If it passes, run `make ship`\n3. Otherwise, run `make fix`\n4. Run `make clean`\n";
    check(
        text,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 done
        1 Completed:
        q1 of 2, Condition: Does \"step 1 succeeds\" hold? Task 2 runs only if it does, after 1. (yes or no)
        > q1 no
        q1 = no
        2 Skipped (lets go): the condition \"step 1 succeeds\" does not hold
        dispatched 3#1
        > 3 done
        3 Completed:
        dispatched 4#1
        ",
    );
    check(
        text,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 fails nobody can read them
        1 Failed: nobody can read them
        4 Skipped: task 1 did not complete
        q1 of 2, Condition: Does \"step 1 succeeds\" hold? Task 2 runs only if it does, after 1. (yes or no)
        > q1 yes
        q1 = yes
        dispatched 2#1
        3 Skipped (lets go): the condition \"step 1 succeeds\" holds
        ",
    );
}

#[test]
fn a_condition_without_a_preceding_step_asks_a_person() {
    check(
        "1. If it passes, run `make ship`\n2. Otherwise, run `make fix`\n",
        "
        > start
        planned 1 2
        q1 of 1, Condition: Does \"it succeeds\" hold? Task 1 runs only if it does. (yes or no)
        > q1 no
        q1 = no
        1 Skipped (lets go): the condition \"it succeeds\" does not hold
        dispatched 2#1
        ",
    );
}

#[test]
fn other_conditions_ask_a_person_once_the_preceding_step_has_ended() {
    check(
        "1. Run `make`\n2. If it rains, run `make tent`\n3. Run `make tea` (unless it is late)\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        q1 of 2, Condition: Does \"it rains\" hold? Task 2 runs only if it does, after 1. (yes or no)
        > q1 no
        q1 = no
        2 Skipped (lets go): the condition \"it rains\" does not hold
        q2 of 3, Condition: Does \"it is late\" hold? Task 3 runs only if it does not, after 1, 2. (yes or no)
        > q2 no
        q2 = no
        dispatched 3#1
        ",
    );
}

#[test]
fn every_step_of_a_group_inherits_its_condition() {
    check(
        "1. Run `make test`\n2. If it fails, mend it:\n   1. Run `make fix`\n   2. Run `make test`\n3. Run `make clean`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 done
        1 Completed:
        2 Skipped (lets go): the condition \"step 1 succeeds\" holds
        3 Skipped (lets go): the condition \"step 1 succeeds\" holds
        dispatched 4#1
        ",
    );
}

#[test]
fn a_conditional_task_always_waits_for_its_deciding_step() {
    check(
        "1. Run `make test`\n2. If it passes, run `make ship`\n3. Run `make tea`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > amend reorder 2 after=
        (nothing)
        > amend reorder 3 after= ; reorder 2 after=3
        amended 2 3: better
        dispatched 3#1
        > 3 done
        3 Completed:
        > 1 done
        1 Completed:
        dispatched 2#1
        > amend add before=2 - Run `make bread`
        ! task 2 is under way: to change it, cancel it, or let it end and retry it
        ",
    );
}

#[test]
fn a_step_marked_in_progress_is_paused_until_a_person_resumes_it() {
    check(
        "- [~] Run `a`\n- [ ] Run `b`\n",
        "
        > start
        planned 1 2
        1 paused: in progress when the plan was read
        > continue
        (nothing)
        > resume 1
        1 resumed
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn a_person_can_end_a_step_marked_in_progress() {
    check(
        "- [~] Run `a`\n- [ ] Run `b`\n",
        "
        > start
        planned 1 2
        1 paused: in progress when the plan was read
        > amend done 1
        1 Completed: done by a person
        dispatched 2#1
        ",
    );
    check(
        "- [~] Run `a`\n- [ ] Run `b`\n",
        "
        > start
        planned 1 2
        1 paused: in progress when the plan was read
        > cancel 1
        1 Cancelled: not wanted
        2 Skipped: task 1 did not complete
        ended Failed, 2 tasks: 1 cancelled, 1 skipped
        ",
    );
}

#[test]
fn a_question_marked_in_progress_is_asked_only_after_a_resume() {
    check(
        "- [~] Which colour?\n",
        "
        > start
        planned 1
        1 paused: in progress when the plan was read
        > resume 1
        1 resumed
        dispatched 1#1 as a question
        q1 of 1, Task
        ",
    );
}

#[test]
fn work_without_a_command_decides_a_condition_that_takes_any_work() {
    let any_work = |tasks: &mut [TaskPlan]| {
        tasks[1].condition.as_mut().expect("it has one").by_any_work = true;
    };
    let text = "1. Look at the logs\n2. If it fails, run `make fix`\n";
    let done = "
        > start
        planned 1 2
        dispatched 1#1
        > 1 done
        1 Completed:
        2 Skipped (lets go): the condition \"step 1 succeeds\" holds
        ended Completed, 2 tasks: 1 completed, 1 skipped
        ";
    let failed = "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails nobody can read them
        1 Failed: nobody can read them
        dispatched 2#1
        ";
    for transcript in [done, failed] {
        check_changed(PlannerConfig::default(), text, any_work, transcript);
    }
}

#[test]
fn a_deferred_step_and_an_added_step_in_progress_are_paused() {
    check_changed(
        PlannerConfig::default(),
        "- Run `a`\n",
        |tasks| tasks[0].mark = Mark::Deferred,
        "
        > start
        planned 1
        1 paused: deferred when the plan was read
        > amend add - [~] Run `b` / - [ ] Run `c`
        amended 2 3: better
        2 paused: in progress when the plan was read
        > resume 1
        1 resumed
        dispatched 1#1
        ",
    );
}

#[test]
fn a_plan_reports_that_it_waits_for_a_step_in_progress() {
    let mut planner = Planner::default();
    let user_input = "- [~] Run `a`\n".to_owned();
    let config = PlannerConfig::default();
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    assert!(planner.state().tasks[0].is_paused);
}
