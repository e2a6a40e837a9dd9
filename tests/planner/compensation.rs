//! Undoing completed tasks, last first.

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, PlannerConfig, TaskEvent};
use crewlog_planner::plan::{FailurePolicy, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;

use super::transcript::check_changed;

fn undoing() -> PlannerConfig {
    PlannerConfig { compensate: true, ..PlannerConfig::default() }
}

fn undo(tasks: &mut [TaskPlan]) {
    for task in tasks.iter_mut().take(2) {
        task.compensate = Some(format!("undo {}", task.id));
    }
}

const TEXT: &str = "1. Run `a`\n2. Run `b`\n3. Run `c`\n";

#[test]
fn a_failed_plan_undoes_completed_tasks_in_reverse_order() {
    check_changed(
        undoing(),
        TEXT,
        undo,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 fails no
        3 Failed: no
        amended 4 5: the plan failed; undoing it
        dispatched 4#1
        > retry
        ! the plan is being undone: wait for its undo tasks, or cancel the plan, then retry
        > 4 fails stuck
        4 Failed (lets go): stuck
        dispatched 5#1
        > 5 done
        5 Completed:
        ended Failed, 3 tasks: 2 completed, 1 failed; 1 undone; 1 could not be undone
        > continue
        (nothing)
        ",
    );
}

#[test]
fn a_plan_that_stops_at_a_failure_starts_its_undo_tasks() {
    let config = PlannerConfig { on_failure: FailurePolicy::Stop, ..undoing() };
    check_changed(
        config,
        TEXT,
        undo,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 fails no
        2 Failed: no
        stopped because of 2
        3 Skipped: not started: the plan stopped when task 2 failed
        amended 4: the plan failed; undoing it
        dispatched 4#1
        > startable
        4
        > 4 done
        4 Completed:
        ended Failed, 3 tasks: 1 completed, 1 failed, 1 skipped; 1 undone
        ",
    );
}

#[test]
fn a_retry_reruns_undone_tasks_and_undoes_them_again_on_failure() {
    check_changed(
        undoing(),
        TEXT,
        undo,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 fails no
        2 Failed: no
        3 Skipped: task 2 did not complete
        amended 4: the plan failed; undoing it
        dispatched 4#1
        > 4 done
        4 Completed:
        ended Failed, 3 tasks: 1 completed, 1 failed, 1 skipped; 1 undone
        > retry
        reopened 1 2 3
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 2#2
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 fails no
        3 Failed: no
        amended 5 6: the plan failed; undoing it
        dispatched 5#1
        > 5 done
        5 Completed:
        dispatched 6#1
        > 6 done
        6 Completed:
        ended Failed, 3 tasks: 2 completed, 1 failed; 2 undone
        > retry 3
        reopened 1 2 3
        dispatched 1#3
        > 1 done
        1 Completed:
        dispatched 2#3
        > 2 done
        2 Completed:
        dispatched 3#2
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}

#[test]
fn a_cancel_with_compensation_undoes_the_plan_and_a_second_cancel_stops_that() {
    check_changed(
        PlannerConfig::default(),
        TEXT,
        undo,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > pause
        paused: lunch
        > undo
        settings changed: not wanted
        cancelled: not wanted
        3 Cancelled: not wanted
        resumed
        amended 4 5: the plan was cancelled; undoing it
        dispatched 4#1
        > cancel
        cancelled: not wanted
        4 Cancelled: not wanted
        5 Cancelled: not wanted
        ended Cancelled, 3 tasks: 2 completed, 1 cancelled; 2 could not be undone
        > undo
        (nothing)
        ",
    );
}

#[test]
fn a_failed_plan_can_be_compensated_later_but_a_completed_one_cannot() {
    check_changed(
        PlannerConfig::default(),
        "1. Run `a`\n2. Run `b`\n",
        undo,
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 fails no
        2 Failed: no
        ended Failed, 2 tasks: 1 completed, 1 failed
        > undo
        settings changed: not wanted
        amended 3: the plan failed; undoing it
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Failed, 2 tasks: 1 completed, 1 failed; 1 undone
        > retry
        reopened 1 2
        dispatched 1#2
        > 1 done
        1 Completed:
        dispatched 2#2
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 2 completed
        > undo
        (nothing)
        ",
    );
}

#[test]
fn tasks_done_before_the_plan_or_without_an_undo_are_not_undone() {
    check_changed(
        undoing(),
        "- [x] Run `a`\n- [ ] Run `b`\n",
        |tasks| tasks[0].compensate = Some("undo".into()),
        "
        > start
        planned 1 2
        1 Completed: done before the plan began
        dispatched 2#1
        > 2 fails no
        2 Failed: no
        ended Failed, 2 tasks: 1 completed, 1 failed
        ",
    );
}

#[test]
fn a_cancelled_compensating_task_does_not_block_the_next_one() {
    check_changed(
        undoing(),
        TEXT,
        undo,
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 fails no
        3 Failed: no
        amended 4 5: the plan failed; undoing it
        dispatched 4#1
        > cancel 4
        4 Cancelled (lets go): not wanted
        dispatched 5#1
        > 5 done
        5 Completed:
        ended Failed, 3 tasks: 2 completed, 1 failed; 1 undone; 1 could not be undone
        ",
    );
}

#[test]
fn a_compensating_task_whose_number_is_taken_is_named_undo() {
    let mut planner = Planner::default();
    let user_input = "3. Run `a` (undo: `x`)\n4. Run `b`\n".to_owned();
    planner.process(Command::of_text(user_input, undoing(), false).unwrap()).unwrap();
    let (node_id, attempt, result) = (TaskId(1), 1, String::new());
    planner
        .process(Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskCompleted { attempt, result, epoch: 1, run: None },
        })
        .unwrap();
    planner.process(Command::Cancel { task: None, reason: String::new() }).unwrap();
    let names = planner.state().tasks.iter().map(|task| task.plan.name()).collect::<Vec<_>>();
    assert_eq!(names, ["3", "4", "undo/3"]);
}
