//! The effect of a failure: retries first, then the policy of the task, else of the plan.

use crewlog_mq::Handler;
use crewlog_planner::event::{
    Command, Event, FailureClass, PlannerConfig, RetryClass, RetryPolicy, TaskEvent, TaskStatus,
};
use crewlog_planner::plan::{FailurePolicy, NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use proptest::prelude::*;

use super::transcript::{check, check_with};
use crate::planner::retries::retries;

/// B waits for A, C for B; D is independent.
const CHAIN: &str =
    "In parallel:\n- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c` (depends on B)\n- D: Run `d`\n";

fn with(on_failure: FailurePolicy) -> PlannerConfig {
    PlannerConfig { on_failure, retry: retries(0), ..PlannerConfig::default() }
}

#[test]
fn dependents_of_a_failed_task_are_skipped_and_the_rest_continues() {
    check_with(
        with(FailurePolicy::SkipDependants),
        CHAIN,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task A did not complete
        3 Skipped: task B did not complete
        > 4 done
        4 Completed:
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 skipped
        ",
    );
}

#[test]
fn with_continue_dependents_of_a_failed_task_still_run() {
    check_with(
        with(FailurePolicy::Continue),
        CHAIN,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 Failed (lets go): boom
        dispatched 2#1
        > 4 done
        4 Completed:
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Failed, 4 tasks: 3 completed, 1 failed
        ",
    );
}

#[test]
fn with_stop_no_task_starts_and_running_tasks_continue() {
    check_with(
        PlannerConfig { parallelism: 2, ..with(FailurePolicy::Stop) },
        "In parallel:\n- Run `a`\n- Run `b`\n- Run `c`\n- What colour?\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        dispatched 4#1 as a question
        q1 of 4, Task
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        3 Skipped: not started: the plan stopped when task 1 failed
        4 Skipped: not started: the plan stopped when task 1 failed
        > q1 blue
        ! q1 is closed: its task has ended
        > 2 done
        2 Completed:
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 skipped
        ",
    );
}

#[test]
fn with_stop_a_running_task_that_fails_is_not_retried() {
    check_with(
        PlannerConfig {
            parallelism: 3,
            retry: retries(3),
            on_failure: FailurePolicy::Stop,
            ..PlannerConfig::default()
        },
        "In parallel:\n- Run `a`\n- Run `b` (retry 2)\n- Run `c`\n- Run `d`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        dispatched 3#1
        > 2 fails one
        2 Planned: one
        2 again later
        dispatched 4#1
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        2 Failed: one
        > 4 withdrawn
        4 Skipped: not started: the plan stopped when task 1 failed
        > 3 timed-out after 5 s
        3 TimedOut: after 5 s
        ended Failed, 4 tasks: 2 failed, 1 timed out, 1 skipped
        ",
    );
}

#[test]
fn retrying_the_task_that_stopped_the_plan_reopens_the_rest() {
    check_with(
        with(FailurePolicy::SkipDependants),
        "In parallel:\n- A: Run `a` (on failure: stop)\n- B: Run `b` (depends on A)\n- C: Run `c`\n- D: Run `d` (depends on C) (retry 1)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 3#1
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        2 Skipped: not started: the plan stopped when task A failed
        4 Skipped: not started: the plan stopped when task A failed
        > 3 done
        3 Completed:
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 skipped
        > retry 1
        reopened 1 2 4
        dispatched 1#2
        dispatched 4#1
        > 4 fails once
        4 Planned: once
        4 again later
        > now 4
        4 again now
        dispatched 4#2
        > 4 done
        4 Completed:
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        ended Completed, 4 tasks: 4 completed
        ",
    );
}

#[test]
fn retrying_the_stopping_task_does_not_free_tasks_blocked_by_another_failure() {
    check_with(
        with(FailurePolicy::SkipDependants),
        "In parallel:\n- A: Run `a` (on failure: stop)\n- B: Run `b`\n- C: Run `c` (depends on B)\n- D: Run `d` (depends on A)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        > 2 fails bang
        2 Failed: bang
        3 Skipped: task B did not complete
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        4 Skipped: not started: the plan stopped when task A failed
        ended Failed, 4 tasks: 2 failed, 2 skipped
        > retry 1
        reopened 1 4
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        ended Failed, 4 tasks: 2 completed, 1 failed, 1 skipped
        ",
    );
}

#[test]
fn with_ask_a_person_decides() {
    check_with(
        with(FailurePolicy::Ask),
        CHAIN,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 NeedsClarification: boom
        q1 of 1, Failure: Task A failed: boom. Retry, done, skip, continue or stop?
        > q1 perhaps
        ! q1 accepts only these answers: retry, done, skip, continue, stop
        > q1
        ! q1 accepts only these answers: retry, done, skip, continue, stop
        > q1 retry
        q1 = retry
        1 Planned: boom
        dispatched 1#2
        > 1 fails boom again
        1 NeedsClarification: boom again
        q2 of 1, Failure: Task A failed: boom again. Retry, done, skip, continue or stop?
        > q2 Skip
        q2 = Skip
        1 Failed: boom again
        2 Skipped: task A did not complete
        3 Skipped: task B did not complete
        > 4 done
        4 Completed:
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 skipped
        ",
    );
    check_with(
        with(FailurePolicy::Ask),
        CHAIN,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 NeedsClarification: boom
        q1 of 1, Failure: Task A failed: boom. Retry, done, skip, continue or stop?
        > q1 continue
        q1 = continue
        1 Failed (lets go): boom
        dispatched 2#1
        ",
    );
    check_with(
        with(FailurePolicy::Ask),
        CHAIN,
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 4#1
        > 1 fails boom
        1 NeedsClarification: boom
        q1 of 1, Failure: Task A failed: boom. Retry, done, skip, continue or stop?
        > q1 stop
        q1 = stop
        1 Failed: boom
        stopped because of 1
        2 Skipped: not started: the plan stopped when task A failed
        3 Skipped: not started: the plan stopped when task A failed
        ",
    );
}

#[test]
fn the_failure_policy_of_a_task_overrides_the_plans() {
    check_with(
        with(FailurePolicy::Ask),
        "In parallel:\n- A: Run `a` (on failure: stop)\n- B: Run `b` (depends on A)\n- C: Run `c` (on failure: continue)\n- D: Run `d` (depends on C)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 3#1
        > 3 fails boom
        3 Failed (lets go): boom
        dispatched 4#1
        > 1 fails boom
        1 Failed: boom
        stopped because of 1
        2 Skipped: not started: the plan stopped when task A failed
        > 4 done
        4 Completed:
        ended Failed, 4 tasks: 1 completed, 2 failed, 1 skipped
        ",
    );
}

#[test]
fn a_task_failure_is_retried_only_if_the_text_allows_it() {
    check(
        "In parallel:\n- Run `a`\n- Run `b` (retry 2)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        dispatched 2#1
        > 1 fails boom
        1 Failed: boom
        > 2 fails one
        2 Planned: one
        2 again later
        > now 2
        2 again now
        dispatched 2#2
        > 2 fails two
        2 Planned: two
        2 again later
        > now 2
        2 again now
        dispatched 2#3
        > 2 fails three
        2 Failed: three
        ended Failed, 2 tasks: 2 failed
        ",
    );
}

#[test]
fn failed_starts_timeouts_and_rate_limits_are_retried() {
    check_with(
        PlannerConfig { retry: retries(1), ..PlannerConfig::default() },
        "In parallel:\n- Run `a`\n- Run `b`\n- Run `c`\n- Run `d` (retry 0)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        dispatched 3#1
        dispatched 4#1
        > 1 not-started no shell
        1 Planned: no shell
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1 not-started no shell
        1 Failed: no shell
        > 2 timed-out after 5 s
        2 Planned: after 5 s
        2 again later
        > now 2
        2 again now
        dispatched 2#2
        > 2 timed-out after 5 s
        2 TimedOut: after 5 s
        > 3 rate-limited wait
        3 waits for a limit: wait
        > now 3
        3 again now
        dispatched 3#2
        > 3 done
        3 Completed:
        > 4 timed-out after 5 s
        4 TimedOut: after 5 s
        ended Failed, 4 tasks: 1 completed, 1 failed, 2 timed out
        ",
    );
}

#[test]
fn retry_waits_grow_up_to_the_maximum() {
    let config = PlannerConfig { retry: retries(12), ..PlannerConfig::default() };
    let waits = waits(config);
    assert_eq!(waits.len(), 12);
    assert!(waits[..7].is_sorted_by(|before, after| before < after), "{waits:?}");
    assert!(waits.iter().all(|wait| (1..=60_000).contains(wait)), "{waits:?}");
    assert!(waits[7..].iter().all(|wait| *wait >= 45_000), "{waits:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(ProptestConfig::default().cases / 4) })]

    #[test]
    fn any_backoff_setting_is_respected(
        first_ms in any::<u64>(),
        longest_ms in any::<u64>(),
        jitter_percent in 0_u32..=100,
    ) {
        let policy = RetryPolicy { count: 100, first_ms, longest_ms, jitter_percent };
        let config = PlannerConfig { retry: [(RetryClass::Transient, policy)].into(), ..PlannerConfig::default() };
        let waits = waits(config);
        prop_assert_eq!(waits.len(), 100);
        prop_assert!(waits.iter().all(|wait| *wait <= longest_ms));
        let least = policy.wait_ms(20) / 100 * u64::from(100 - jitter_percent);
        prop_assert!(waits[20..].iter().all(|wait| *wait >= least), "{waits:?} from {least} on");
    }
}

#[test]
fn the_answer_stop_acts_like_the_stop_policy() {
    check_with(
        PlannerConfig { parallelism: 3, ..with(FailurePolicy::Ask) },
        "In parallel:\n- Run `a`\n- Run `b` (retry 5)\n- Run `c`\n- Run `d`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        dispatched 3#1
        > 1 fails boom
        1 NeedsClarification: boom
        q1 of 1, Failure: Task 1 failed: boom. Retry, done, skip, continue or stop?
        dispatched 4#1
        > q1 stop
        q1 = stop
        1 Failed: boom
        stopped because of 1
        > 2 fails no second try
        2 NeedsClarification: no second try
        q2 of 2, Failure: Task 2 failed: no second try. Retry, done, skip, continue or stop?
        > q2 skip
        q2 = skip
        2 Failed: no second try
        > 3 withdrawn
        3 Skipped: not started: the plan stopped when task 1 failed
        > 4 done
        4 Completed:
        ended Failed, 4 tasks: 1 completed, 2 failed, 1 skipped
        > retry 1
        reopened 1 3
        dispatched 1#2
        dispatched 3#2
        ",
    );
}

#[test]
fn a_failure_before_the_stop_policy_leaves_other_tasks_their_retries() {
    check_with(
        PlannerConfig { parallelism: 1, ..with(FailurePolicy::SkipDependants) },
        "In parallel:\n- Run `a`\n- Run `b` (retry 1)\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails boom
        1 Failed: boom
        dispatched 2#1
        > set on-failure=stop
        settings changed: more
        > 2 fails once
        2 Planned: once
        2 again later
        ",
    );
}

#[test]
fn a_paused_and_cancelled_task_starts_when_retried() {
    check_with(
        with(FailurePolicy::SkipDependants),
        "- Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > pause 1
        1 paused: not yet
        > cancel 1
        1 Cancelled: not wanted
        ended Failed, 1 task: 1 cancelled
        > retry 1
        reopened 1
        dispatched 1#2
        > startable
        1
        ",
    );
}

/// The delays of a task that can never start.
fn waits(config: PlannerConfig) -> Vec<u64> {
    let planned = Event::planned(vec![TaskPlan::new(TaskId(1), NodeKind::ToolCall, "a")], config);
    let mut planner = Planner::fold(&[planned]);
    planner.process(Command::Continue).unwrap();
    let mut waits = Vec::new();
    for attempt in 1.. {
        let (node_id, error, class) = (TaskId(1), "busy".to_owned(), FailureClass::NotStarted);
        let failed = Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskFailed { attempt, error, class, epoch: 1, run: None },
        };
        let events = planner.process(failed).unwrap();
        if planner.state().tasks[0].retry_ms.is_some() {
            planner.process(Command::RetryNow { task: node_id }).unwrap();
        }
        let wait = events.iter().find_map(|event| match event {
            Event::RetryScheduled { delay_ms, .. } => Some(*delay_ms),
            _other => None,
        });
        // Without a delay it is dispatched at once.
        if planner.state().tasks[0].status.is_end() {
            break;
        }
        waits.push(wait.unwrap_or(0));
    }
    waits
}

/// However often: it is no failure, so the task keeps its one retry.
#[test]
fn a_rate_limit_is_waited_for_and_counts_as_no_failure() {
    let mut planner = Planner::default();
    let user_input = "- Look (retry 1)\n".to_owned();
    let config = PlannerConfig { retry: retries(0), ..with(FailurePolicy::SkipDependants) };
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    let mut report = |attempt, class| {
        let (node_id, error) = (TaskId(1), "busy".to_owned());
        let failed = Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskFailed { attempt, error, class, epoch: 1, run: None },
        };
        let events = planner.process(failed).unwrap();
        let waits = events.iter().find_map(|event| match event {
            Event::LimitReached { delay_ms, .. } => Some(*delay_ms),
            _other => None,
        });
        planner.process(Command::RetryNow { task: TaskId(1) }).ok();
        (waits, planner.state().tasks[0].status)
    };
    let minutes = [1, 2, 4, 8, 16, 30, 30, 30];
    for (attempt, minutes) in (1..).zip(minutes) {
        let (wait, status) = report(attempt, FailureClass::RateLimited { retry_after_ms: None });
        let longest = minutes * 60_000;
        assert!(wait.is_some_and(|wait| (longest * 3 / 4..=longest).contains(&wait)), "{wait:?} of {longest}");
        assert_eq!(status, TaskStatus::Running, "dispatched again");
    }
    // A known time counts, unless such a wait was too short before.
    for (known, least) in [(0, 900_000), (7_000_000, 7_000_000), (u64::MAX, 691_200_000)] {
        let attempt = 9 + u32::from(known > 0) + u32::from(known > 7_000_000);
        let (wait, _) = report(attempt, FailureClass::RateLimited { retry_after_ms: Some(known) });
        assert!(wait.is_some_and(|wait| (least..least + 5_000).contains(&wait)), "{wait:?} of {known}");
    }
    // Its own failures are still counted from none.
    assert_eq!(report(12, FailureClass::Task), (None, TaskStatus::Running));
    assert_eq!(report(13, FailureClass::Task), (None, TaskStatus::Failed));
}

#[test]
fn an_error_is_truncated_by_characters_not_bytes() {
    let check = |error_char_limit, error: &str, kept: &str| {
        let config = PlannerConfig { error_char_limit, ..with(FailurePolicy::SkipDependants) };
        let transcript = format!(
            "> start\nplanned 1\ndispatched 1#1\n> 1 fails {error}\n1 Failed: {kept}\nended Failed, 1 task: 1 failed"
        );
        check_with(config, "- Run `a`\n", &transcript);
    };
    check(10, "ééééééééééé", "éé ... ééé");
    check(10, "éééééééééé", "éééééééééé");
    check(3, "日本語日本語", "日本語");
    check(7, "😀2345678", "😀 ... 8");
}
