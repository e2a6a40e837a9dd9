//! Budgets: a plan pauses before it exceeds its budget.

use crewlog_planner::event::{Budget, PlannerConfig, Usage};
use crewlog_planner::plan::{FailurePolicy, SubPlan, TaskPlan};
use crewlog_planner::state::Measure;

use super::transcript::{check_changed, check_with, unordered};
use crate::planner::retries::retries;

fn of_tokens(tokens: u64) -> PlannerConfig {
    let budget = Budget { tokens: Some(tokens), ..Budget::default() };
    PlannerConfig { budget, parallelism: 1, on_failure: FailurePolicy::Continue, ..PlannerConfig::default() }
}

#[test]
fn a_plan_pauses_before_exceeding_its_budget_and_reports_the_required_amount() {
    check_with(
        of_tokens(1_000),
        "In parallel:\n- Paint\n- Dry\n- Sweep\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 used 400
        1#1 used 400 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 used 600
        2#1 used 600 and 0 tokens
        > 2 done
        2 Completed:
        paused: the budget of 1000 tokens is used up: 1000 tokens spent
        > continue
        (nothing)
        > resume
        resumed
        paused: the budget of 1000 tokens is used up: 1000 tokens spent
        > set tokens=1100
        settings changed: more
        > resume
        resumed
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}

#[test]
fn running_tasks_reserve_their_estimate_and_the_plan_pauses_once_idle() {
    let config = PlannerConfig { parallelism: 3, ..of_tokens(1_000) };
    check_with(
        config,
        "In parallel:\n- A: Look\n- B: Paint (depends on A)\n- C: Dry (depends on A)\n- D: Sweep (depends on A)\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        > 1 used 300
        1#1 used 300 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1
        dispatched 3#1
        dispatched 4#1
        > 2 used 300
        2#1 used 300 and 0 tokens
        > 2 done
        2 Completed:
        > 3 done
        3 Completed:
        ",
    );
}

#[test]
fn one_task_runs_alone_while_the_usage_of_tasks_is_unknown() {
    let config = PlannerConfig { parallelism: 4, ..of_tokens(1_500) };
    check_with(
        config,
        "In parallel:\n- Paint\n- Dry\n- Sweep\n- Run `sweep all`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 4#1
        dispatched 1#1
        > 4 done
        4 Completed:
        > 1 used 1000
        1#1 used 1000 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn a_run_that_did_not_start_leaves_the_average_unknown() {
    let config = PlannerConfig { parallelism: 4, ..of_tokens(1_500) };
    check_with(
        config,
        "In parallel:\n- Wash\n- Paint\n- Sweep\n- Dry\n- Mow\n",
        "
        > start
        planned 1 2 3 4 5
        dispatched 1#1
        > cancel 1
        1 Cancelled: not wanted
        dispatched 2#1
        > 2 asks Which paint?
        q1 of 2, Executor: Which paint?
        dispatched 3#1
        > 3 fails no broom
        3 Failed (lets go): no broom
        dispatched 4#1
        dispatched 5#1
        > 4 used 700
        4#1 used 700 and 0 tokens
        > 4 done
        4 Completed:
        ",
    );
}

#[test]
fn a_withdrawn_run_counts_in_the_average_if_its_usage_is_known() {
    let config = PlannerConfig { parallelism: 4, ..of_tokens(1_500) };
    check_with(
        config,
        "In parallel:\n- Wash\n- Paint\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 withdrawn
        1 Planned
        dispatched 1#2
        > 1 used 300
        1#2 used 300 and 0 tokens
        > 1 withdrawn
        1 Planned
        dispatched 1#3
        dispatched 2#1
        ",
    );
}

#[test]
fn usage_that_is_reported_again_counts_once() {
    check_with(
        of_tokens(1_000),
        "In parallel:\n- Wash\n- Paint\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 used 600
        1#1 used 600 and 0 tokens
        > 1 used 600
        (nothing)
        > 1 done
        1 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn a_sub_plan_says_nothing_about_the_usage_of_a_task() {
    let delegate = |tasks: &mut [TaskPlan]| {
        tasks[0].sub_plan = Some(SubPlan { text: "Build".into(), agent: None, request: None });
    };
    check_changed(
        PlannerConfig { parallelism: 4, ..of_tokens(1_000) },
        "In parallel:\n- Build\n- Wash\n- Paint\n",
        delegate,
        "
        > start
        planned 1 2 3
        dispatched 1#1, which may use 1000 tokens
        > 1 used 100
        1#1 used 100 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 used 200
        2#1 used 200 and 0 tokens
        > 2 done
        2 Completed:
        dispatched 3#1
        ",
    );
}

#[test]
fn commands_start_even_after_the_token_budget_is_used_up() {
    check_changed(
        of_tokens(50),
        "- A: Paint the whole house\n- B: Run `sweep all`\n- C: Run `sweep again`\n- D: Dry\n",
        unordered,
        "
        > start
        planned 1 2 3 4
        dispatched 2#1
        dispatched 1#1
        > 1 used 60
        1#1 used 60 and 0 tokens
        > 1 done
        1 Completed:
        > 2 done
        2 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        paused: the budget of 50 tokens is used up: 60 tokens spent
        ",
    );
}

#[test]
fn commands_count_once_one_has_reported_usage() {
    check_with(
        of_tokens(500),
        "1. Run `sh a.sh`\n2. Run `sh a.sh`\n3. Run `sh a.sh`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > 1 used 300
        1#1 used 300 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 used 300
        2#1 used 300 and 0 tokens
        > 2 done
        2 Completed:
        paused: the budget of 500 tokens is used up: 600 tokens spent
        ",
    );
}

#[test]
fn a_failed_task_is_retried_only_within_the_budget() {
    check_with(
        of_tokens(1_000),
        "- Paint (retry 3)\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 used 500
        1#1 used 500 and 0 tokens
        > 1 fails no colour
        1 Planned: no colour
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1 used 500
        1#2 used 500 and 0 tokens
        > 1 fails no colour
        1 Planned: no colour
        1 again later
        > now 1
        1 again now
        paused: the budget of 1000 tokens is used up: 1000 tokens spent
        ",
    );
}

#[test]
fn a_task_that_was_stopped_for_the_budget_of_its_plan_waits_and_for_its_own_fails() {
    check_with(
        of_tokens(1_000),
        "- Paint\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 used 1000
        1#1 used 1000 and 0 tokens
        > 1 over-budget too much
        1 Planned: too much
        paused: the budget of 1000 tokens is used up: 1000 tokens spent
        ",
    );
    check_with(
        PlannerConfig { retry: retries(0), ..of_tokens(1_000) },
        "- Paint\n",
        "
        > start
        planned 1
        dispatched 1#1
        > 1 used 10
        1#1 used 10 and 0 tokens
        > 1 over-budget too much
        1 Failed (lets go): too much
        ended Failed, 1 task: 1 failed
        ",
    );
}

#[test]
fn late_usage_reports_count_for_every_existing_attempt() {
    check_with(
        PlannerConfig::default(),
        "- Paint\n",
        "
        > start
        planned 1
        dispatched 1#1
        > cancel
        cancelled: not wanted
        1 Cancelled: not wanted
        ended Cancelled, 1 task: 1 cancelled
        > 1 used 500
        1#1 used 500 and 0 tokens
        > 1 used 0
        (nothing)
        > 1#2 used 500
        (nothing)
        > 1#0 used 500
        (nothing)
        > 9 used 500
        ! the plan has no task 9
        ",
    );
}

#[test]
fn a_time_budget_reserves_the_estimates_of_running_tasks() {
    let budget = Budget { duration_ms: Some(60_000), ..Budget::default() };
    let config = PlannerConfig { budget, ..PlannerConfig::default() };
    let long = |tasks: &mut [TaskPlan]| tasks.iter_mut().for_each(|task| task.estimate_ms = Some(60_000));
    check_changed(
        config,
        "In parallel:\n- Run `a`\n- Run `b`\n- Run `c`\n",
        long,
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
        ",
    );
}

#[test]
fn amounts_are_formatted_with_their_unit() {
    let usage =
        Usage { input_tokens: 1, output_tokens: 2, cost_micros: 2_500_000, duration_ms: 1_500, ..Usage::default() };
    let words = [Measure::Tokens, Measure::Cost, Measure::Duration].map(|measure| measure.words(measure.of(&usage)));
    assert_eq!(words, ["3 tokens", "a cost of 2.500000", "1.5 s"]);
}

#[test]
fn only_one_sub_plan_at_a_time_gets_the_remaining_budget() {
    let delegate = |tasks: &mut [TaskPlan]| {
        unordered(tasks);
        for task in &mut tasks[1..3] {
            task.sub_plan = Some(SubPlan { text: task.description.clone(), agent: None, request: None });
        }
    };
    check_changed(
        PlannerConfig { parallelism: 9, ..of_tokens(1_000) },
        "In parallel:\n- Look\n- Build\n- Ship\n- Sweep\n- Run `free`\n",
        delegate,
        "
        > start
        planned 1 2 3 4 5
        dispatched 5#1
        dispatched 1#1
        > 1 used 100
        1#1 used 100 and 0 tokens
        > 1 done
        1 Completed:
        dispatched 2#1, which may use 900 tokens
        > 2 used 600
        2#1 used 600 and 0 tokens
        > 2 done
        2 Completed:
        dispatched 3#1, which may use 300 tokens
        > 3 used 150
        3#1 used 150 and 0 tokens
        > 3 done
        3 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        > 5 done
        5 Completed:
        ended Completed, 5 tasks: 5 completed
        ",
    );
}
