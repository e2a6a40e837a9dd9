//! The statistics of projects, as a transcript of a log and the resulting events.

use crewlog_planner::crew::statistics::{Figures, Statistics, StatisticsEvent};
use crewlog_planner::crew::{Projection, Reactor};

use super::transcript::{Log, check};

fn told(project: &str, event: &StatisticsEvent) -> String {
    let StatisticsEvent::StatisticsProjected(figures) = event;
    let Figures { completed, failed, active, success_rate, mean_duration_ms, .. } = figures;
    let Figures { mean_steps, mean_iterations, most_active_executor, .. } = figures;
    format!(
        "{project}: {completed} done {failed} failed {active} active, {success_rate} %, {mean_duration_ms} ms, \
         {mean_steps} steps, {mean_iterations} tries, {most_active_executor}"
    )
}

#[test]
fn statistics_are_appended_when_a_plan_ends_and_not_before() {
    check::<Statistics>(
        "
p planned 2; p/1 dispatched ToolCall
p/1 claimed ana
after 1500 ms
p/1 completed
p/1 is Completed; p/2 dispatched UnitTest
after 10 ms
p/2 claimed ben
p/2 failed
p/2 is Failed; p ended Failed 2
    x: 1 done 1 failed 0 active, 50 %, 1500 ms, 0 steps, 1 tries, ana
p/1 claimed ana
p cancelled; p ended Cancelled 2
",
        told,
    );
}

#[test]
fn a_plan_of_400_tasks_projects_statistics_at_most_ten_times() {
    let (mut log, mut statistics, mut n_projected) = (Log::default(), Statistics::default(), 0);
    let mut take = |line: &str| {
        for recorded in log.append(line) {
            statistics.handle(&recorded).unwrap();
        }
        n_projected += statistics.emit().len();
    };
    take("p planned 400");
    for task in 1..=400 {
        take(&format!("p/{task} dispatched ToolCall"));
        take(&format!("p/{task} claimed ana"));
        take(&format!("p/{task} completed"));
        take(&format!("p/{task} is Completed"));
    }
    take("p ended Completed 400");
    assert_eq!(n_projected, 9, "one for each 50 ended tasks, and one for the end");
    let figures = statistics.of("x");
    assert_eq!((figures.completed, figures.mean_steps), (400, 400.0));
}

#[test]
fn a_task_that_completes_on_a_retry_counts_as_failed_and_completed() {
    check::<Statistics>(
        "
p planned 1; p/1 dispatched Refactor
p/1 claimed ana
after 40 ms
p/1 failed; p/1 is TimedOut; p ended Failed 1
    x: 0 done 1 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, ana
p reopened 1; p/1 dispatched Refactor
after 60 ms
p/1 claimed ana
after 5 ms
p/1 released
p/1 claimed ben; p/1 failed; p/1 is Planned; p/1 dispatched Refactor
p/1 claimed ben; p/1 completed
p/1 is Completed; p ended Completed 1
    x: 1 done 1 failed 0 active, 50 %, 5 ms, 1 steps, 2 tries, ana
",
        told,
    );
}

#[test]
fn an_unclaimed_dispatch_is_not_an_iteration() {
    check::<Statistics>(
        "
p planned 1; p/1 dispatched Refactor
p/1 is Planned; p/1 dispatched Refactor
p/1 claimed ana; p/1 completed; p/1 is Completed; p ended Completed 1
    x: 1 done 0 failed 0 active, 100 %, 0 ms, 1 steps, 1 tries, ana
",
        told,
    );
}

#[test]
fn ticked_boxes_and_answered_questions_do_not_count_as_completed_tasks() {
    check::<Statistics>(
        "
p planned 2; p/1 is Completed; p/2 asked
p/2 is Completed; p ended Completed 2
    x: 0 done 0 failed 0 active, 0 %, 0 ms, 2 steps, 0 tries, unknown
",
        told,
    );
}

#[test]
fn undo_tasks_and_tasks_of_sub_plans_do_not_count() {
    check::<Statistics>(
        "
p planned 2; p/1 dispatched ToolCall; p/2 dispatched Processing %
p/1 claimed ana; p/2 claimed plan
p/1 completed; p/1 is Completed
p/2 failed; p/2 is Failed; p/3 dispatched ToolCall !
p/3 claimed shell; p/3 completed; p/3 is Completed; p ended Failed 2
    x: 1 done 0 failed 0 active, 100 %, 0 ms, 0 steps, 1 tries, ana
",
        told,
    );
}

#[test]
fn a_cancelled_task_has_no_holder() {
    let (mut log, mut statistics) = (Log::default(), Statistics::default());
    let mut active = |line: &str| {
        for recorded in log.append(line) {
            statistics.handle(&recorded).unwrap();
        }
        statistics.of("x").active
    };
    assert_eq!(active("p planned 2; p/1 dispatched ToolCall; p/2 dispatched ToolCall"), 0);
    assert_eq!(active("p/1 claimed ana"), 1);
    assert_eq!(active("p/1 claimed ben"), 1);
    assert_eq!(active("p/1 is Cancelled"), 0);
    assert_eq!(active("p/1 stopped"), 0);
    assert_eq!(active("p/2 is Cancelled"), 0);
    assert_eq!(active("p/2 claimed ana"), 0);
}

#[test]
fn a_task_whose_lease_expires_is_not_active_until_it_is_claimed_again() {
    let (mut log, mut statistics) = (Log::default(), Statistics::default());
    let mut active = |line: &str| {
        for recorded in log.append(line) {
            statistics.handle(&recorded).unwrap();
        }
        statistics.of("x").active
    };
    assert_eq!(active("p planned 1; p/1 dispatched ToolCall; p/1 claimed ana"), 1);
    assert_eq!(active("p/1 expires"), 0);
    assert_eq!(active("p/1 claimed ben"), 1);
    assert_eq!(active("p/1 completed; p/1 is Completed"), 0);
}

#[test]
fn each_project_has_its_own_statistics_and_an_unknown_one_has_zeros() {
    check::<Statistics>(
        "
p planned 1; p/1 dispatched ToolCall; q@y planned 1; q@y/1 dispatched ToolCall; r@ planned 1; r@/1 dispatched ToolCall
q@y/1 claimed ana; p/1 claimed ana; r@/1 claimed ana
q@y/1 is Completed; q@y ended Completed 1; r@/1 is Failed; r@ ended Failed 1
    -: 0 done 1 failed 0 active, 0 %, 0 ms, 0 steps, 0 tries, ana
    y: 1 done 0 failed 0 active, 100 %, 0 ms, 1 steps, 1 tries, ana
",
        told,
    );
    assert_eq!(Statistics::default().of("z"), Figures::default());
}

#[test]
fn means_are_rounded_to_two_decimals_and_ties_go_to_the_first_executor() {
    check::<Statistics>(
        "
p planned 3; p/1 dispatched UnitTest; p/2 dispatched Analysis; p/3 dispatched UnitTest
p/1 claimed ben; p/1 is Completed
p/2 claimed ana; p/2 is Completed
p/3 claimed ben; p/3 is Planned; p/3 dispatched UnitTest
p/3 claimed ben; p/3 is Completed; p ended Completed 3
    x: 3 done 0 failed 0 active, 100 %, 0 ms, 3 steps, 1.33 tries, ben
q planned 1; q/1 dispatched Analysis
q/1 claimed ana; q/1 is Failed; q ended Failed 1
    x: 3 done 1 failed 0 active, 75 %, 0 ms, 3 steps, 1.33 tries, ana
t planned 2; t/1 dispatched UnitTest; t/2 dispatched UnitTest
t/1 claimed ben; t/2 claimed ben; t/1 is Failed; t/2 is Completed; t ended Completed 2
    x: 4 done 2 failed 0 active, 66.67 %, 0 ms, 2.5 steps, 1.25 tries, ben
",
        told,
    );
}
