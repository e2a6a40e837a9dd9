//! Deadlines of plans, tasks and questions. A `tick` sets the time, in milliseconds.

use crewlog_mq::{Handler, Timestamp};
use crewlog_planner::event::{Command, Event, PlannerConfig, Setting, Timer};
use crewlog_planner::plan::{DefaultAnswer, FailurePolicy, TaskPlan};
use crewlog_planner::planner::Planner;

use super::transcript::{check_changed, check_with};

fn within(deadline_ms: u64) -> PlannerConfig {
    PlannerConfig { deadline_ms: Some(deadline_ms), ..PlannerConfig::default() }
}

fn default(answer: &str, after_ms: u64) -> Option<DefaultAnswer> {
    Some(DefaultAnswer { answer: answer.into(), after_ms })
}

#[test]
fn a_plan_past_its_deadline_ends_every_open_task_and_fails() {
    check_with(
        within(60_000),
        "1. Run `a`\n2. Run `b`\n3. Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > tick 1000
        Plan until 61000
        > tick 2000
        (nothing)
        > 1 done
        1 Completed:
        dispatched 2#1
        > tick 60999
        (nothing)
        > tick 61000
        Plan fired
        2 TimedOut: the plan passed its deadline, 1 min after its start
        3 Skipped: not started: the plan passed its deadline, 1 min after its start
        ended Failed, 3 tasks: 1 completed, 1 timed out, 1 skipped
        > 2 done
        (nothing)
        > tick 90000
        (nothing)
        > retry
        reopened 2 3
        dispatched 2#2
        > tick 100000
        Plan until 160000
        ",
    );
}

#[test]
fn a_task_past_its_deadline_times_out_finally_with_its_attempts_counted() {
    let late = |tasks: &mut [TaskPlan]| (tasks[0].deadline_ms, tasks[0].retry) = (Some(5_000), Some(9));
    check_changed(
        PlannerConfig::default(),
        "1. Run `a`\n2. Run `b`\n3. Run `c`\n",
        late,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > tick 0
        Task(TaskId(1)) until 5000
        > 1 fails once
        1 Planned: once
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > tick 4999
        (nothing)
        > tick 5000
        Task(TaskId(1)) fired
        1 TimedOut: passed its deadline, 5 s after its start
        2 Skipped: task 1 did not complete
        3 Skipped: task 2 did not complete
        ended Failed, 3 tasks: 1 timed out, 2 skipped
        > tick 5000
        (nothing)
        ",
    );
}

#[test]
fn the_failure_policy_decides_how_a_late_task_affects_the_rest() {
    let late = |tasks: &mut [TaskPlan]| tasks[0].deadline_ms = Some(5_000);
    let policy = |on_failure| PlannerConfig { on_failure, ..PlannerConfig::default() };
    check_changed(
        policy(FailurePolicy::Continue),
        "1. Run `a`\n2. Run `b`\n",
        late,
        "
        > start
        planned 1 2
        dispatched 1#1
        > tick 0
        Task(TaskId(1)) until 5000
        > tick 5000
        Task(TaskId(1)) fired
        1 TimedOut (lets go): passed its deadline, 5 s after its start
        dispatched 2#1
        ",
    );
    check_changed(
        policy(FailurePolicy::Ask),
        "1. Run `a`\n2. Run `b`\n",
        late,
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 asks Which one?
        q1 of 1, Executor: Which one?
        > tick 0
        Task(TaskId(1)) until 5000
        > tick 5000
        Task(TaskId(1)) fired
        q1 withdrawn: its task passed its deadline
        1 NeedsClarification: passed its deadline, 5 s after its start
        q2 of 1, Failure: Task 1 failed: passed its deadline, 5 s after its start. Retry, done, skip, continue or stop?
        > tick 9000
        (nothing)
        > q2 retry
        q2 = retry
        1 Planned: passed its deadline, 5 s after its start
        dispatched 1#2
        > tick 10000
        Task(TaskId(1)) until 15000
        ",
    );
}

#[test]
fn an_unanswered_question_gets_its_default_answer() {
    let asks = |tasks: &mut [TaskPlan]| {
        tasks[0].default_answer = default("blue", 600);
        tasks[1].default_answer = default("oak", 600);
    };
    check_changed(
        PlannerConfig::default(),
        "In parallel:\n- What colour?\n- What wood?\n- C: Run `paint` (depends on 1)\n",
        asks,
        "
        > start
        planned 1 2 3
        dispatched 1#1 as a question
        q1 of 1, Task
        dispatched 2#1 as a question
        q2 of 2, Task
        > tick 100
        Question(QuestionId(1)) until 700
        Question(QuestionId(2)) until 700
        > q2 elm
        q2 = elm
        2 Completed: elm
        > tick 699
        (nothing)
        > tick 700
        Question(QuestionId(1)) fired
        q1 = blue (by default)
        1 Completed: blue
        dispatched 3#1 with blue
        > q1 red
        ! q1 is closed: it was answered \"blue\"
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}

#[test]
fn the_first_of_two_simultaneous_timers_may_cancel_the_second() {
    let late = |tasks: &mut [TaskPlan]| {
        (tasks[0].deadline_ms, tasks[0].on_failure) = (Some(5), Some(FailurePolicy::Stop));
        tasks[1].default_answer = default("blue", 5);
    };
    check_changed(
        PlannerConfig::default(),
        "In parallel:\n- Run `a`\n- What colour?\n",
        late,
        "
        > start
        planned 1 2
        dispatched 1#1
        dispatched 2#1 as a question
        q1 of 2, Task
        > tick 0
        Task(TaskId(1)) until 5
        Question(QuestionId(1)) until 5
        > tick 5
        Task(TaskId(1)) fired
        1 TimedOut: passed its deadline, 5 ms after its start
        stopped because of 1
        2 Skipped: not started: the plan stopped when task 1 failed
        ended Failed, 2 tasks: 1 timed out, 1 skipped
        ",
    );
}

#[test]
fn a_pause_does_not_extend_the_deadline() {
    check_with(
        within(1_000),
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > tick 0
        Plan until 1000
        > pause
        paused: lunch
        > tick 1000
        Plan fired
        1 TimedOut: the plan passed its deadline, 1 s after its start
        ended Failed, 1 task: 1 timed out
        ",
    );
}

#[test]
fn the_next_timer_and_unset_timers_are_reported() {
    let (user_input, config) = ("1. Run `a`\n".to_owned(), within(1_000));
    let mut planner = Planner::default();
    assert_eq!(planner.state().next_timer(), None);
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    assert_eq!(planner.state().next_timer(), Some((None, Timer::Plan)));
    planner.process(Command::SetTimers { now: Timestamp(5) }).unwrap();
    assert_eq!(planner.state().next_timer(), Some((Some(Timestamp(1_000_005)), Timer::Plan)));
    planner.process(Command::Cancel { task: None, reason: "no".into() }).unwrap();
    assert_eq!(planner.state().next_timer(), None);
}

#[test]
fn a_timer_fires_only_with_the_time_that_it_is_set_to() {
    let (user_input, config) = ("1. Run `a`\n".to_owned(), within(1_000));
    let mut planner = Planner::default();
    let mut order = |command| planner.process(command).unwrap();
    order(Command::of_text(user_input, config, false).unwrap());
    order(Command::SetTimers { now: Timestamp(0) });
    order(Command::Configure { changes: vec![Setting::DeadlineMs(Some(5_000))], reason: "more".into() });
    let fire = |due| Command::FireTimer { timer: Timer::Plan, due: Timestamp(due) };
    assert_eq!(order(fire(1_000_000)), [], "it is not set yet");
    order(Command::SetTimers { now: Timestamp(500_000) });
    assert_eq!(order(fire(1_000_000)), [], "it was set to another time");
    let fired = order(fire(5_500_000));
    assert!(matches!(fired[0], Event::TimerFired { timer: Timer::Plan, .. }), "{fired:?}");
}

#[test]
fn new_work_after_the_deadline_restarts_the_deadline_of_a_standing_plan() {
    check_with(
        PlannerConfig { standing: true, ..within(60_000) },
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > tick 1000
        Plan until 61000
        > tick 61000
        Plan fired
        1 TimedOut: the plan passed its deadline, 1 min after its start
        ended Failed, 1 task: 1 timed out
        > tick 61000
        (nothing)
        > amend add Run `b`
        amended 2: better
        dispatched 2#1
        > tick 70000
        Plan until 130000
        > tick 130000
        Plan fired
        2 TimedOut: the plan passed its deadline, 1 min after its start
        ended Failed, 2 tasks: 2 timed out
        ",
    );
}
