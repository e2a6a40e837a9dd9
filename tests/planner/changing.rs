//! Pauses, standing plans, limits and other programs: changes to a plan other than by text.

use crewlog_mq::Handler;
use crewlog_planner::event::{Amendment, Command, Edit, Event, PlannerConfig, TaskEvent, TaskStatus};
use crewlog_planner::plan::{Dependency, NodeKind, Origin, Proposal, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::{AMENDMENTS_MAX, Planner, PlannerError};

use super::amending::{done, planner_of};
use super::transcript::{check, check_with};

#[test]
fn a_paused_task_is_not_started_and_a_running_one_is_not_retried() {
    check_with(
        PlannerConfig { parallelism: 1, ..PlannerConfig::default() },
        "In parallel:\n- Run `a`\n- Run `b` (retry 1)\n- Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > pause 2
        2 paused: not yet
        > pause 2
        (nothing)
        > 1 done
        1 Completed:
        dispatched 3#1
        > pause 1
        ! task 1 is done: only its dependencies can be changed; one that is not done can be retried
        > pause 9
        ! the plan has no task 9
        > 3 done
        3 Completed:
        > continue
        (nothing)
        > resume 2
        2 resumed
        dispatched 2#1
        > resume 2
        (nothing)
        > pause 2
        2 paused: not yet
        > 2 fails boom
        2 Planned: boom
        2 again later
        > resume 2
        2 resumed
        > now 2
        2 again now
        dispatched 2#2
        > pause 2
        2 paused: not yet
        > 2 done
        2 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}

#[test]
fn a_failed_dependency_ends_a_paused_task() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > pause 2
        2 paused: not yet
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task 1 did not complete
        ended Failed, 2 tasks: 1 failed, 1 skipped
        > retry
        reopened 1 2
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn a_standing_plan_waits_for_work_and_continues_even_after_a_cancel() {
    let standing = PlannerConfig { standing: true, ..PlannerConfig::default() };
    check_with(
        standing.clone(),
        "Run `a`",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 done
        1 Completed:
        > continue
        (nothing)
        > amend add Run `b`
        amended 2: better
        dispatched 2#1
        > cancel
        cancelled: not wanted
        2 Cancelled: not wanted
        ended Cancelled, 2 tasks: 1 completed, 1 cancelled
        > amend add Run `c`
        amended 3: better
        dispatched 3#1
        > 3 done
        3 Completed:
        > set standing=false
        settings changed: more
        ended Failed, 3 tasks: 2 completed, 1 cancelled
        ",
    );
    let mut planner = planner_of("Run `a`", standing);
    assert!(!planner.state().waits_for_work());
    planner.process(done(1)).unwrap();
    assert!(planner.state().waits_for_work());
}

#[test]
fn amendments_have_limits() {
    let mut planner = planner_of("1. Run `a`\n2. Run `b`\n", PlannerConfig::default());
    let amend = |amendments| Command::Amend { amendments, reason: String::new() };
    let too_many = vec![Amendment::Skip { task: TaskId(1), keeps_order: true }; AMENDMENTS_MAX + 1];
    let (value, max) = (AMENDMENTS_MAX + 1, AMENDMENTS_MAX);
    assert_eq!(planner.process(amend(too_many)), Err(PlannerError::TooMany("amendments", value, max)));
    let notes = vec!["x".repeat(1 << 20); 17];
    let long = vec![Amendment::Edit { task: TaskId(2), edits: vec![Edit::Notes(notes)] }];
    assert!(matches!(planner.process(amend(long)), Err(PlannerError::TaskTooLong(..))));
    assert_eq!(planner.process(amend(Vec::new())), Ok(Vec::new()));
}

#[test]
fn task_definitions_from_another_program_follow_the_same_rules() {
    let mut planner = planner_of("1. Run `a`\n2. Run `b`\n", PlannerConfig::default());
    let define = |tasks| Command::Amend { amendments: vec![Amendment::Define { tasks }], reason: String::new() };
    let task = |id, waits_for: &[u64]| {
        let hard = |id: &u64| Dependency { task: TaskId(*id), strength: Strength::Hard };
        let depends_on = waits_for.iter().map(hard).collect();
        TaskPlan { depends_on, ..TaskPlan::new(TaskId(id), NodeKind::Analysis, "look") }
    };
    for tasks in [vec![task(1, &[])], vec![task(2, &[3])], vec![task(3, &[4])], vec![task(3, &[4]), task(4, &[3])]] {
        assert!(planner.process(define(tasks.clone())).is_err(), "{tasks:?}");
    }
    let events = planner.process(define(vec![task(5, &[2])])).unwrap();
    assert_eq!(events, [Event::TasksAmended { tasks: vec![task(5, &[2])], reason: String::new(), source: None }]);
    let gap = planner.process(define(vec![task(4, &[])]));
    assert_eq!(gap, Err(PlannerError::UnknownTask(TaskId(4))), "no number below the last is given again");
    assert_eq!(planner.state().next_id(), 6);
}

#[test]
fn a_log_with_an_invalid_amendment_is_read_without_it() {
    let task = |id| TaskPlan::new(TaskId(id), NodeKind::Analysis, "look");
    let planned = |tasks| Event::planned(tasks, PlannerConfig::default());
    let amended = |tasks| Event::TasksAmended { tasks, reason: String::new(), source: None };
    let planner = Planner::fold(&[planned(vec![task(2), task(4)]), amended(vec![task(3), task(6), task(1)])]);
    let ids = planner.state().tasks.iter().map(|task| task.plan.id.0).collect::<Vec<_>>();
    assert_eq!(ids, [2, 4, 6], "a number that is not above the last is passed over");
    assert!(planner.state().tasks.iter().all(|task| task.status == TaskStatus::Planned));
}

#[test]
fn a_new_task_is_not_named_by_the_number_of_another() {
    let mut planner = Planner::default();
    let (user_input, config) = ("1. Run `a`\n2. Run `b`\n".to_owned(), PlannerConfig::default());
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    let new = TaskPlan { label: Some("1".into()), ..TaskPlan::new(TaskId(3), NodeKind::ToolCall, "Run it") };
    let amendments = vec![Amendment::Define { tasks: vec![new] }];
    let refused = planner.process(Command::Amend { amendments, reason: String::new() }).unwrap_err();
    assert_eq!(refused, PlannerError::LabelTaken("1".into(), "1".into()));
}

#[test]
fn a_task_with_a_duplicate_dependency_starts_when_that_has_ended() {
    let twice = [Strength::Soft, Strength::Hard].map(|strength| Dependency { task: TaskId(1), strength });
    let mut planner = Planner::default();
    let tasks = vec![
        TaskPlan { command: Some("a".into()), ..TaskPlan::new(TaskId(1), NodeKind::ToolCall, "a") },
        TaskPlan { depends_on: twice.to_vec(), ..TaskPlan::new(TaskId(2), NodeKind::ToolCall, "b") },
    ];
    let (title, source, context, origin) = (None, String::new(), Vec::new(), Origin::default());
    let proposal = Box::new(Proposal { tasks, title, source, context, origin });
    let config = PlannerConfig::default();
    planner.process(Command::Initialize { proposal, attachments: Vec::new(), config }).unwrap();
    let done = Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::TaskCompleted { attempt: 1, result: String::new(), epoch: 1, run: None },
    };
    let events = planner.process(done).unwrap();
    assert!(matches!(events.last(), Some(Event::TaskDispatched { task_id: TaskId(2), .. })), "{events:?}");
}
