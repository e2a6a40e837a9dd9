//! Settings of retries.

use std::collections::BTreeMap;

use crewlog_planner::event::{RetryClass, RetryPolicy};

/// This many retries of failures that are not the task's own.
pub fn retries(count: u32) -> BTreeMap<RetryClass, RetryPolicy> {
    let others = [RetryClass::Transient, RetryClass::Unknown];
    others.into_iter().map(|class| (class, RetryPolicy { count, ..class.policy() })).collect()
}

/// The usual number of them, each after this time.
pub fn retries_after(ms: u64) -> BTreeMap<RetryClass, RetryPolicy> {
    let after = |class: &RetryClass| RetryPolicy { first_ms: ms, longest_ms: ms, ..class.policy() };
    RetryClass::ALL.iter().map(|class| (*class, after(class))).collect()
}
