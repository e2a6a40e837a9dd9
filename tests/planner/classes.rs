//! The classes of failures, each with its own retries.

use crewlog_planner::event::{PlannerConfig, RetryClass, RetryPolicy};
use crewlog_planner::plan::FailurePolicy;

use super::transcript::check_with;

/// A task that fails in every class, each with a count of its own.
#[test]
fn each_class_of_failures_has_its_own_count_and_its_own_counter() {
    let count = |class, count| (class, RetryPolicy { count, ..RetryClass::policy(class) });
    let counts = [
        count(RetryClass::Transient, 1),
        count(RetryClass::Permanent, 2),
        count(RetryClass::ForPerson, 1),
        count(RetryClass::RateLimited, 1),
        count(RetryClass::Unknown, 1),
    ];
    check_with(
        PlannerConfig { retry: counts.into(), on_failure: FailurePolicy::SkipDependants, ..PlannerConfig::default() },
        "- Run `a` (rerun: safe)\n",
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
        > 1 not-started busy
        1 Planned: busy
        1 again later
        > now 1
        1 again now
        dispatched 1#3
        > 1 rate-limited wait
        1 waits for a limit: wait
        > now 1
        1 again now
        dispatched 1#4
        > 1 for-person nobody is logged in
        1 Planned: nobody is logged in
        1 again later
        > now 1
        1 again now
        dispatched 1#5
        > 1 cut-off lost
        1 Planned: lost
        1 again later
        > now 1
        1 again now
        dispatched 1#6
        > 1 fails two
        1 Planned: two
        1 again later
        > now 1
        1 again now
        dispatched 1#7
        > 1 rate-limited wait
        1 waits for a limit: wait
        > now 1
        1 again now
        dispatched 1#8
        > 1 for-person still nobody
        1 NeedsClarification: still nobody
        q1 of 1, Failure: Task 1 needs a person first: still nobody. Retry, done, skip, continue or stop?
        > q1 retry
        q1 = retry
        1 Planned: still nobody
        dispatched 1#9
        > 1 not-started busy
        1 Failed: busy
        ended Failed, 1 task: 1 failed
        ",
    );
}
