//! The figures of projects, as a transcript of a log and of what is said of it.

use crewlog_planner::crew::statistics::{Figures, Statistics, StatisticsEvent};

use super::transcript::check;

fn told(project: &str, event: &StatisticsEvent) -> String {
    let StatisticsEvent::StatisticsProjected(figures) = event;
    let Figures { completed, failed, active, success_rate, mean_duration_ms, .. } = figures;
    let Figures { mean_steps, mean_iterations, most_active_kind, .. } = figures;
    format!(
        "{project}: {completed} done {failed} failed {active} active, {success_rate} %, {mean_duration_ms} ms, \
         {mean_steps} steps, {mean_iterations} tries, {most_active_kind}"
    )
}

#[test]
fn a_figure_that_changes_is_said_once_for_each_append() {
    check::<Statistics>(
        "
p planned 2; p/1 dispatched ToolCall
p/1 claimed ana
    x: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
after 1500 ms
p/1 completed
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
p/1 is Completed; p/2 dispatched UnitTest
    x: 1 done 0 failed 0 active, 100 %, 1500 ms, 0 steps, 1 tries, ToolCall
after 10 ms
p/2 claimed ben; p/2 failed
p/2 is Failed; p ended Failed
    x: 1 done 1 failed 0 active, 50 %, 1500 ms, 0 steps, 1 tries, ToolCall
",
        told,
    );
}

#[test]
fn a_retry_takes_a_failure_back() {
    check::<Statistics>(
        "
p planned 1; p/1 dispatched Refactor
p/1 claimed ana
    x: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
after 40 ms
p/1 failed; p/1 is TimedOut; p ended Failed
    x: 0 done 1 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, Refactor
p reopened 1; p/1 dispatched Refactor
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
after 60 ms
p/1 claimed ana; p/1 completed
p/1 is Completed; p ended Completed
    x: 1 done 0 failed 0 active, 100 %, 100 ms, 1 steps, 2 tries, Refactor
",
        told,
    );
}

#[test]
fn a_completed_plan_that_is_opened_again_is_not_completed() {
    check::<Statistics>(
        "
p planned 3; p/1 is Cancelled; p/2 is Completed; p/3 dispatched Analysis
p/3 is Completed; p ended Completed
    x: 1 done 0 failed 0 active, 100 %, 0 ms, 3 steps, 1 tries, Analysis
p reopened 1; p/1 dispatched Analysis
    x: 1 done 0 failed 0 active, 100 %, 0 ms, 0 steps, 1 tries, Analysis
p/1 is Completed; p ended Completed
    x: 2 done 0 failed 0 active, 100 %, 0 ms, 3 steps, 1 tries, Analysis
",
        told,
    );
}

#[test]
fn boxes_and_answered_questions_are_no_completed_tasks() {
    check::<Statistics>(
        "
p planned 2; p/1 is Completed; p/2 asked
p/2 is Completed; p ended Completed
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 2 steps, 0 tries, unknown
",
        told,
    );
}

#[test]
fn what_the_plan_takes_is_held_by_nobody() {
    check::<Statistics>(
        "
p planned 2; p/1 dispatched ToolCall; p/2 dispatched ToolCall
p/1 claimed ana
    x: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
p/1 claimed ben
p/1 is Cancelled
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
p/1 stopped
p/2 is Cancelled
p/2 claimed ana
p/2 stopped
",
        told,
    );
}

#[test]
fn projects_have_figures_of_their_own() {
    check::<Statistics>(
        "
p planned 1; p/1 dispatched ToolCall; q@y planned 1; q@y/1 dispatched ToolCall; r@ planned 1; r@/1 dispatched ToolCall
q@y/1 claimed ana; p/1 claimed ana; r@/1 claimed ana
    -: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
    x: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
    y: 0 done 0 failed 1 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
p/1 released
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, unknown
",
        told,
    );
}

#[test]
fn means_are_rounded_to_two_decimals_and_the_first_of_equal_kinds_counts() {
    check::<Statistics>(
        "
p planned 3; p/1 dispatched UnitTest; p/2 dispatched Analysis; p/3 dispatched UnitTest
p/1 is Completed
    x: 1 done 0 failed 0 active, 100 %, 0 ms, 0 steps, 1 tries, UnitTest
p/2 is Completed
    x: 2 done 0 failed 0 active, 100 %, 0 ms, 0 steps, 1 tries, Analysis
p/3 is Planned; p/3 dispatched UnitTest
p/3 is Completed; p ended Completed
    x: 3 done 0 failed 0 active, 100 %, 0 ms, 3 steps, 1.33 tries, UnitTest
q planned 1; q/1 dispatched Analysis
q/1 is Failed; q ended Failed
    x: 3 done 1 failed 0 active, 75 %, 0 ms, 3 steps, 1.33 tries, Analysis
q reopened 1; q/1 dispatched Analysis
    x: 3 done 0 failed 0 active, 100 %, 0 ms, 3 steps, 1.33 tries, UnitTest
s planned 2; s/1 dispatched Analysis; s/2 dispatched Analysis
s/1 is Failed; s/2 is Failed; q/1 is Failed; s ended Failed
    x: 3 done 3 failed 0 active, 50 %, 0 ms, 3 steps, 1.33 tries, Analysis
t planned 2; t/1 dispatched UnitTest
t/1 is Completed; t ended Completed
    x: 4 done 3 failed 0 active, 57.14 %, 0 ms, 2.5 steps, 1.25 tries, Analysis
",
        told,
    );
}
