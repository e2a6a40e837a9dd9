//! The conformance suite on every backend: one test for each block.

use crewlog_mq::conformance::{BLOCKS, check_block};

use super::backends::rigs;
use super::in_time;

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
async fn what_is_stored_is_what_was_given() {
    check("content").await;
}

#[tokio::test]
async fn an_append_is_made_whole_or_not_at_all() {
    check("atomicity").await;
}

#[tokio::test]
async fn repeating_an_append_is_safe_at_any_time() {
    check("idempotency").await;
}

#[tokio::test]
async fn cells_fence_off_who_is_late() {
    check("cells").await;
}

#[tokio::test]
async fn what_was_begun_before_closing_is_done_and_what_comes_later_is_refused() {
    check("closing").await;
}

#[tokio::test]
async fn bounds_and_pages_are_those_of_the_model_at_every_edge() {
    check("ranges").await;
}

#[tokio::test]
async fn a_query_means_the_same_whoever_evaluates_it() {
    check("queries").await;
}

#[tokio::test]
async fn every_answer_is_that_of_the_model() {
    check("model").await;
}

#[tokio::test]
async fn an_export_is_the_same_log_on_any_backend() {
    check("transfer").await;
}

#[tokio::test]
async fn of_those_who_want_one_thing_one_gets_it() {
    check("races").await;
}

#[tokio::test]
async fn readers_see_all_up_to_a_position_and_nothing_twice() {
    check("prefix").await;
}

#[test]
fn every_block_has_a_test() {
    let source = include_str!("conformance.rs");
    for (block, _) in BLOCKS {
        assert!(source.contains(&format!("check(\"{block}\")")), "{block}");
    }
}
