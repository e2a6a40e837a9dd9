//! The order in which startable tasks start: by priority, critical path, position and limits.

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Order, PlannerConfig, Setting};
use crewlog_planner::plan::{NodeKind, TaskId};
use crewlog_planner::planner::Planner;
use crewlog_planner::priority::rank;

use super::transcript::check_with;

fn one_at_a_time() -> PlannerConfig {
    PlannerConfig { parallelism: 1, ..PlannerConfig::default() }
}

#[test]
fn tasks_start_by_urgency_and_then_by_plan_order() {
    check_with(
        one_at_a_time(),
        "In parallel:\n- Run `a` (priority: low)\n- Run `b`\n- Run `c` (priority: high)\n- Run `d` (priority: P0)\n- Run `e` (priority: high)\n",
        "
        > start
        planned 1 2 3 4 5
        dispatched 4#1
        > 4 done
        4 Completed:
        dispatched 3#1
        > amend edit 1 priority=urgent
        amended 1: better
        > 3 done
        3 Completed:
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 5#1
        > 5 done
        5 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn written_priorities_are_ranked_as_expected() {
    let ranked = [
        ("P0", 0),
        ("urgent", 0),
        ("Critical", 0),
        ("!!!", 0),
        ("p1", 1),
        ("HIGH", 1),
        ("medium", 2),
        ("P2", 2),
        ("low", 3),
        ("P3", 3),
        ("lowest", 4),
        ("purple", 2),
    ];
    for (written, expected) in ranked {
        assert_eq!(rank(Some(written)), expected, "{written}");
    }
    assert_eq!(rank(None), 2);
}

#[test]
fn the_task_with_the_longest_remaining_critical_path_starts_first() {
    check_with(
        PlannerConfig { order: Order::CriticalPath, ..one_at_a_time() },
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: Run `c` (depends on B)\n- D: Run `d` (depends on C)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > amend add after=1 1. Run `e` / 2. Run `f`
        amended 5 6: better
        > 3 done
        3 Completed:
        dispatched 1#1
        > 1 done
        1 Completed:
        dispatched 5#1
        > 5 done
        5 Completed:
        dispatched 4#1
        ",
    );
}

#[test]
fn a_kind_or_assignee_at_its_limit_does_not_block_others() {
    let config = PlannerConfig {
        parallelism: 3,
        parallelism_by_kind: [(NodeKind::Analysis, 1)].into(),
        parallelism_by_executor: [("ann".to_owned(), 1)].into(),
        ..PlannerConfig::default()
    };
    check_with(
        config,
        "In parallel:\n- Analyze the logs\n- Analyze the metrics\n- Refactor the parser @ann\n- Refactor the lexer @ann\n\
         - Refactor the printer\n- Refactor the reader\n",
        "
        > start
        planned 1 2 3 4 5 6
        dispatched 1#1
        dispatched 3#1
        dispatched 5#1
        > 5 done
        5 Completed:
        dispatched 6#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        > 3 done
        3 Completed:
        dispatched 4#1
        ",
    );
}

#[test]
fn the_limit_of_an_assignee_ignores_letter_case() {
    check_with(
        PlannerConfig { parallelism_by_executor: [("Ann".to_owned(), 1)].into(), ..PlannerConfig::default() },
        "In parallel:\n- Refactor the parser @ann\n- Refactor the lexer @ANN\n- Refactor the reader\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 3#1
        > set aNN=2
        settings changed: more
        dispatched 2#1
        ",
    );
}

#[test]
fn an_unclaimed_task_of_a_standing_plan_does_not_use_up_parallelism() {
    check_with(
        PlannerConfig { standing: true, ..one_at_a_time() },
        "In parallel:\n- Paint the door\n- (P1) Paint the wall\n- Paint the roof\n",
        "
        > start
        planned 1 2 3
        dispatched 2#1
        dispatched 1#1
        dispatched 3#1
        > startable
        2 1 3
        ",
    );
}

#[test]
fn changed_limits_apply_from_the_next_start() {
    check_with(
        one_at_a_time(),
        "In parallel:\n- Run `a`\n- Run `b` (retry 2)\n- Run `c`\n- Run `d`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > set parallelism=3
        settings changed: more
        dispatched 2#1
        dispatched 3#1
        > set parallelism=3
        (nothing)
        > set parallelism=1
        settings changed: more
        > 2 not-started boom
        2 Planned: boom
        2 again later
        > 1 done
        1 Completed:
        > 3 done
        3 Completed:
        dispatched 4#1
        > set parallelism=2 bob=0
        ! parallelism of a kind or an assignee is 0: it must be from 1 to 1000
        > set questions=1
        ! parallelism of questions cannot be limited: choose another kind
        > now 2
        2 again now
        > 4 done
        4 Completed:
        dispatched 2#2
        ",
    );
}

#[test]
fn startable_tasks_put_claimed_ones_first_and_then_the_most_urgent() {
    let mut planner = Planner::default();
    let user_input =
        "In parallel:\n- (P3) Run `make a`\n- Run `make b`\n- (P1) Run `make c`\n- Run `make d`\n- Paint the door\n"
            .to_owned();
    let config = PlannerConfig::default();
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    let begin = |planner: &Planner, held: &[u64]| {
        let startable = planner.state().startable(|task| held.contains(&task.0));
        startable.into_iter().map(|task| task.0).collect::<Vec<_>>()
    };
    assert_eq!(begin(&planner, &[]), [3, 2, 4, 5, 1], "all that were dispatched, the most urgent first");
    let configure = |changes: Vec<Setting>| Command::Configure { changes, reason: String::new() };
    planner.process(configure(vec![Setting::Parallelism(2)])).unwrap();
    assert_eq!(begin(&planner, &[]), [3, 2, 4, 5, 1], "tasks that nobody holds take no room");
    assert_eq!(begin(&planner, &[1]), [3, 2, 4, 5]);
    assert_eq!(begin(&planner, &[1, 2, 4]), [5], "what has begun goes on");
    planner.process(Command::PauseTask { task: TaskId(3), reason: String::new() }).unwrap();
    assert_eq!(begin(&planner, &[1]), [2, 4, 5], "what is paused does not start");
    planner.process(configure(vec![Setting::ParallelismOfKind(NodeKind::ToolCall, Some(1))])).unwrap();
    assert_eq!(begin(&planner, &[1]), [5], "a kind has its limit too");
    planner.process(Command::Pause { reason: String::new() }).unwrap();
    assert_eq!(begin(&planner, &[]), Vec::<u64>::new(), "nothing of a paused plan starts");
}
