//! Tests of rates: each caller has its own, second by second.

use super::*;

#[tokio::test(start_paused = true)]
async fn each_caller_has_its_calls_of_a_second() {
    let rates = Rates::default();
    let n_within = |caller: &str| (0..5).filter(|_| rates.is_within(caller, 3)).count();
    assert_eq!((n_within("ada"), n_within("bob")), (3, 3));
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_eq!(n_within("ada"), 0);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(n_within("ada"), 3);
}

#[tokio::test(start_paused = true)]
async fn callers_of_the_past_are_forgotten() {
    let rates = Rates::default();
    (0..=CALLERS_MAX).for_each(|n| _ = rates.is_within(&n.to_string(), 1));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(rates.is_within("ada", 1));
    assert_eq!(rates.0.lock().unwrap().len(), 1);
}
