//! Interrupted runs: it is unknown whether the task did its work.

use crewlog_planner::event::PlannerConfig;
use crewlog_planner::plan::FailurePolicy;

use super::transcript::{check, check_with};
use crate::planner::retries::retries;

fn with(on_failure: FailurePolicy) -> PlannerConfig {
    PlannerConfig { on_failure, ..PlannerConfig::default() }
}

const PAIR: &str = "- A: Run `a`\n- B: Run `b` (depends on A)\n";

#[test]
fn a_person_is_asked_whether_an_interrupted_task_did_its_work() {
    for policy in [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask] {
        check_with(
            with(policy),
            PAIR,
            "
            > start
            planned 1 2
            dispatched 1#1
            > 1 cut-off the worker died
            1 NeedsClarification: the worker died
            q1 of 1, Failure: It is unknown whether task A did its work: the worker died. Retry, done, skip, continue or stop?
            > q1 perhaps
            ! q1 accepts only these answers: retry, done, skip, continue, stop
            > q1 Done
            q1 = Done
            1 Completed: a person answered that it is done
            dispatched 2#1
            > 2 done
            2 Completed:
            ended Completed, 2 tasks: 2 completed
            ",
        );
    }
}

#[test]
fn retries_from_the_text_do_not_rerun_a_task_with_unknown_outcome() {
    check(
        "- Run `a` (retry 3) (on failure: continue)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 cut-off power
        1 NeedsClarification: power
        q1 of 1, Failure: It is unknown whether task 1 did its work: power. Retry, done, skip, continue or stop?
        > q1 retry
        q1 = retry
        1 Planned: power
        dispatched 1#2
        > 1 cut-off power again
        1 NeedsClarification: power again
        q2 of 1, Failure: It is unknown whether task 1 did its work: power again. Retry, done, skip, continue or stop?
        > q2 skip
        q2 = skip
        1 Failed: power again
        ended Failed, 1 task: 1 failed
        ",
    );
}

#[test]
fn a_rerun_safe_task_reruns_until_too_many_interruptions_and_then_asks() {
    check_with(
        PlannerConfig { retry: retries(1), ..PlannerConfig::default() },
        "- A: Run `a` (rerun: safe)\n- B: Run `b` (depends on A)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 cut-off the worker died
        1 Planned: the worker died
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1 cut-off it died again
        1 NeedsClarification: it died again
        q1 of 1, Failure: It is unknown whether task A did its work: it died again. Retry, done, skip, continue or stop?
        ",
    );
    check(
        "- Run `a` (rerun: safe) (retry 0) (on failure: continue)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 cut-off power
        1 Planned: power
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        ",
    );
}

#[test]
fn a_person_can_mark_a_failed_task_as_done() {
    check_with(
        with(FailurePolicy::Ask),
        PAIR,
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails boom
        1 NeedsClarification: boom
        q1 of 1, Failure: Task A failed: boom. Retry, done, skip, continue or stop?
        > q1 done
        q1 = done
        1 Completed: a person answered that it is done
        dispatched 2#1
        ",
    );
}

#[test]
fn a_paused_plan_asks_and_accepts_answers_but_starts_nothing() {
    check(
        "In parallel:\n- A: Run `a`\n- B: Run `b` (rerun: safe)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        dispatched 2#1
        > pause
        paused: lunch
        > 1 cut-off power
        1 NeedsClarification: power
        q1 of 1, Failure: It is unknown whether task A did its work: power. Retry, done, skip, continue or stop?
        > 2 cut-off power
        2 Planned: power
        2 again later
        > q1 retry
        q1 = retry
        1 Planned: power
        > resume
        resumed
        dispatched 1#2
        > now 2
        2 again now
        dispatched 2#2
        ",
    );
}

#[test]
fn a_stopped_plan_still_asks_and_ends_after_the_answer() {
    check_with(
        with(FailurePolicy::Stop),
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: Run `c` (rerun: safe)\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 2#1
        dispatched 3#1
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        > 3 cut-off power
        3 NeedsClarification: power
        q1 of 3, Failure: It is unknown whether task C did its work: power. Retry, done, skip, continue or stop?
        > 2 cut-off power
        2 NeedsClarification: power
        q2 of 2, Failure: It is unknown whether task B did its work: power. Retry, done, skip, continue or stop?
        > q1 done
        q1 = done
        3 Completed: a person answered that it is done
        > q2 skip
        q2 = skip
        2 Failed: power
        ended Failed, 3 tasks: 1 completed, 2 failed
        ",
    );
}

#[test]
fn stopping_a_plan_does_not_mark_a_started_task_as_never_started() {
    check_with(
        with(FailurePolicy::Stop),
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: What colour?\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 2#1
        dispatched 3#1 as a question
        q1 of 3, Task
        > 1 cut-off power
        1 NeedsClarification: power
        q2 of 1, Failure: It is unknown whether task A did its work: power. Retry, done, skip, continue or stop?
        > 2 fails boom
        2 Failed: boom
        stopped because of 2
        1 Failed: power
        3 Skipped: not started: the plan stopped when task B failed
        ended Failed, 3 tasks: 2 failed, 1 skipped
        > q2 done
        ! q2 is closed: its task has ended
        ",
    );
}
