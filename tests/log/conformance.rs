//! The conformance suite on every backend: one test for each block.

use crewlog_stage::conformance::{BLOCKS, check_block};

use super::in_time;
use crewlog_stage::backends::rigs;

/// One, unless the environment asks for more: then each block runs with the seeds from 1 to this.
fn n_seeds() -> u64 {
    let asked = std::env::var("CREWLOG_TEST_SEEDS").ok();
    asked.map_or(1, |asked| asked.parse().expect("CREWLOG_TEST_SEEDS is a number"))
}

async fn check(block: &str) {
    for seed in 1..=n_seeds() {
        for rig in rigs() {
            in_time(block, check_block(&rig, block, seed)).await;
        }
    }
}

#[tokio::test]
async fn events_are_stored_exactly_as_given() {
    check("content").await;
}

#[tokio::test]
async fn an_append_is_atomic() {
    check("atomicity").await;
}

#[tokio::test]
async fn an_append_can_be_repeated_at_any_time() {
    check("idempotency").await;
}

#[tokio::test]
async fn cells_fence_off_late_writers() {
    check("cells").await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_extends_no_lease() {
    check("time").await;
}

#[tokio::test]
async fn closing_finishes_pending_operations_and_refuses_new_ones() {
    check("closing").await;
}

#[tokio::test]
async fn ranges_and_pages_match_the_model_at_every_edge() {
    check("ranges").await;
}

#[tokio::test]
async fn every_evaluator_of_a_query_returns_the_same_events() {
    check("queries").await;
}

#[tokio::test]
async fn every_result_matches_the_model() {
    check("model").await;
}

#[tokio::test]
async fn an_export_is_identical_on_every_backend() {
    check("transfer").await;
}

#[tokio::test]
async fn exactly_one_of_several_racers_wins() {
    check("races").await;
}

#[tokio::test]
async fn readers_see_every_event_up_to_a_position_exactly_once() {
    check("prefix").await;
}

#[test]
fn every_block_has_a_test() {
    let source = include_str!("conformance.rs");
    for (block, _) in BLOCKS {
        assert!(source.contains(&format!("check(\"{block}\")")), "{block}");
    }
}
