//! Commands of people: cancel, pause, resume, retry, compact.

use crewlog_planner::event::PlannerConfig;

use super::transcript::{check, check_with};

fn one_at_a_time() -> PlannerConfig {
    PlannerConfig { parallelism: 1, ..PlannerConfig::default() }
}

#[test]
fn a_cancelled_task_skips_its_dependents_and_its_late_result_is_ignored() {
    check(
        "In parallel:\n- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 3#1
        > cancel 1
        1 Cancelled: not wanted
        2 Skipped: task A did not complete
        > 1 done late
        (nothing)
        > cancel 1
        (nothing)
        > cancel 9
        ! the plan has no task 9
        > 3 done
        3 Completed:
        ended Failed, 3 tasks: 1 completed, 1 cancelled, 1 skipped
        ",
    );
}

#[test]
fn a_cancelled_plan_ends_at_once_and_stays_cancelled() {
    check_with(
        one_at_a_time(),
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: What colour?\n- D: Run `d` (depends on C)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 3#1 as a question
        q1 of 3, Task
        > 1 done
        1 Completed:
        dispatched 2#1
        > cancel
        cancelled: not wanted
        2 Cancelled: not wanted
        3 Cancelled: not wanted
        4 Cancelled: not wanted
        ended Cancelled, 4 tasks: 1 completed, 3 cancelled
        > cancel
        (nothing)
        > cancel 2
        (nothing)
        > 2 done late
        (nothing)
        > q1 blue
        ! q1 is closed: its task has ended
        > continue
        (nothing)
        > pause
        ! the plan has ended: retry a task that failed, or continue the plan in a fork
        > resume
        (nothing)
        ",
    );
}

#[test]
fn a_paused_plan_starts_nothing_and_loses_nothing() {
    check_with(
        one_at_a_time(),
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: What colour?\n- D: Run `paint` (depends on C)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 3#1 as a question
        q1 of 3, Task
        > pause
        paused: lunch
        > pause
        (nothing)
        > 1 done
        1 Completed:
        > q1 blue
        q1 = blue
        3 Completed: blue
        > continue
        (nothing)
        > resume
        resumed
        dispatched 2#1
        > resume
        (nothing)
        > 2 done
        2 Completed:
        dispatched 4#1 with blue
        > pause
        paused: lunch
        > 4 done
        4 Completed:
        ended Completed, 4 tasks: 4 completed
        ",
    );
}

#[test]
fn a_failure_during_a_pause_is_retried_after_the_resume() {
    check(
        "- Run `a` (retry 1)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > pause
        paused: lunch
        > 1 fails boom
        1 Planned: boom
        1 again later
        > resume
        resumed
        > now 1
        1 again now
        dispatched 1#2
        > 1 fails boom
        1 Failed: boom
        ended Failed, 1 task: 1 failed
        ",
    );
}

#[test]
fn a_retry_does_not_end_a_pause() {
    check(
        "In parallel:\n- Run `a`\n- Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        dispatched 2#1
        > 1 fails boom
        1 Failed: boom
        > pause
        paused: lunch
        > retry 1
        reopened 1
        > resume
        resumed
        dispatched 1#2
        ",
    );
}

#[test]
fn a_retry_reopens_the_task_and_the_tasks_skipped_because_of_it() {
    check(
        "In parallel:\n- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c` (depends on B)\n- D: Run `d`\n- E: Run `e` (depends on D)\n",
        "
        > start
        planned 1 2 3 4 5
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task A did not complete
        3 Skipped: task B did not complete
        > 4 fails boom
        4 Failed: boom
        5 Skipped: task D did not complete
        ended Failed, 5 tasks: 2 failed, 3 skipped
        > retry 1
        reopened 1 2 3
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Failed, 5 tasks: 3 completed, 1 failed, 1 skipped
        > retry
        reopened 4 5
        dispatched 4#2
        > 4 done
        4 Completed:
        dispatched 5#1
        > 5 done
        5 Completed:
        ended Completed, 5 tasks: 5 completed
        > retry
        (nothing)
        > retry 1
        ! task A is done: only one that failed, timed out, or was cancelled or skipped can be retried
        > retry 9
        ! the plan has no task 9
        ",
    );
}

#[test]
fn a_retry_of_a_skipped_task_names_the_task_that_blocks_it() {
    check(
        "- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c` (depends on B)\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task A did not complete
        3 Skipped: task B did not complete
        ended Failed, 3 tasks: 1 failed, 2 skipped
        > retry 2
        ! task B cannot start because task A is failed: retry task A first
        > retry 3
        ! task C cannot start because task A is failed: retry task A first
        > retry 1
        reopened 1 2 3
        dispatched 1#2
        ",
    );
}

#[test]
fn a_retry_does_not_reopen_cancelled_or_conditionally_skipped_tasks() {
    check(
        "- [-] Run `old`\n- [ ] If it rains, run `umbrella`\n- [ ] Run `walk`\n",
        "
        > start
        planned 1 2 3
        1 Cancelled (lets go): cancelled before the plan began
        q1 of 2, Condition: Does \"it rains\" hold? Task 2 runs only if it does, after 1. (yes or no)
        > q1 no
        q1 = no
        2 Skipped (lets go): the condition \"it rains\" does not hold
        dispatched 3#1
        > 3 fails boom
        3 Failed: boom
        ended Failed, 3 tasks: 1 failed, 1 cancelled, 1 skipped
        > retry
        reopened 3
        dispatched 3#2
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 1 completed, 1 cancelled, 1 skipped
        > retry
        (nothing)
        ",
    );
}

#[test]
fn a_retried_task_gets_its_full_retries_back() {
    check(
        "- Run `a` (retry 1)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 fails one
        1 Planned: one
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1 fails two
        1 Failed: two
        ended Failed, 1 task: 1 failed
        > retry
        reopened 1
        dispatched 1#3
        > 1 fails three
        1 Planned: three
        1 again later
        > now 1
        1 again now
        dispatched 1#4
        > 1 fails four
        1 Failed: four
        ended Failed, 1 task: 1 failed
        ",
    );
}

#[test]
fn an_asking_task_is_skipped_when_its_reopened_dependency_is_cancelled() {
    check(
        "- A: Run `a` (on failure: continue)\n- B: Run `b` (depends on A)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails boom
        1 Failed (lets go): boom
        dispatched 2#1
        > 2 asks Which one?
        q1 of 2, Executor: Which one?
        > retry 1
        reopened 1
        dispatched 1#2
        > cancel 1
        1 Cancelled: not wanted
        > q1 the left one
        q1 = the left one
        2 Planned
        2 Skipped: task A did not complete
        ended Failed, 2 tasks: 1 cancelled, 1 skipped
        ",
    );
}

#[test]
fn a_task_waits_again_for_a_reopened_dependency() {
    check(
        "- A: Run `a` (on failure: continue)\n- B: Run `b` (depends on A) (retry 1)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails boom
        1 Failed (lets go): boom
        dispatched 2#1
        > retry 1
        reopened 1
        dispatched 1#2
        > 2 fails boom
        2 Planned: boom
        2 again later
        > now 2
        2 again now
        > 1 done
        1 Completed:
        dispatched 2#2
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 2 completed
        ",
    );
}

#[test]
fn compaction_summarises_each_ended_task_once() {
    check(
        "1. Run `a`\n2. Run `b`\n3. Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > compact 100
        (nothing)
        > 1 done a  long
        1 Completed: a  long
        dispatched 2#1
        > compact 100
        compacted 1: 1 done: Run `a` -> a long
        > compact 100
        (nothing)
        > 2 fails boom
        2 Failed: boom
        3 Skipped: task 2 did not complete
        ended Failed, 3 tasks: 1 completed, 1 failed, 1 skipped
        > compact 16
        compacted 2 3: (2 earlier lines are omitted) / 2 failed: Run `b` -> boom
        > compact 0
        compacted :
        > compact 0
        (nothing)
        ",
    );
}
