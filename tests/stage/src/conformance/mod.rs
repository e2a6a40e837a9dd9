//! The conformance suite for backends: [`check_block`] panics at the first difference, with the block, the seed and the
//! backend. It asserts no speed. docs/embedding.md shows how to run it.

mod atomicity;
mod cells;
mod closing;
mod content;
mod generate;
mod idempotency;
mod model;
mod prefix;
mod queries;
mod races;
mod ranges;
mod rig;
mod time;
mod transfer;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;

pub use rig::{Hands, Rig};

/// One part of the suite: a function of a rig and a seed, which panics if the backend violates its contract.
pub type Block = for<'a> fn(&'a Rig, u64) -> BoxFuture<'a, ()>;

/// The blocks by name, fast ones first.
pub const BLOCKS: &[(&str, Block)] = &[
    ("content", |rig, _| content::check(rig).boxed()),
    ("atomicity", |rig, _| atomicity::check(rig).boxed()),
    ("idempotency", |rig, seed| idempotency::check(rig, seed).boxed()),
    ("cells", |rig, _| cells::check(rig).boxed()),
    ("time", |rig, _| time::check(rig).boxed()),
    ("closing", |rig, _| closing::check(rig).boxed()),
    ("ranges", |rig, seed| ranges::check(rig, seed).boxed()),
    ("queries", |rig, seed| queries::check(rig, seed).boxed()),
    ("model", |rig, seed| model::check(rig, seed).boxed()),
    ("transfer", |rig, seed| transfer::check(rig, seed).boxed()),
    ("races", |rig, _| races::check(rig).boxed()),
    ("prefix", |rig, seed| prefix::check(rig, seed).boxed()),
];

/// Runs one block against a backend.
///
/// # Panics
/// At the first violation of the contract, or if the block does not exist.
pub async fn check_block(rig: &Rig, name: &str, seed: u64) {
    let Some((_, block)) = BLOCKS.iter().find(|(block, _)| *block == name) else {
        panic!("there is no block {name}");
    };
    if let Err(panic) = AssertUnwindSafe(block(rig, seed)).catch_unwind().await {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        panic!("{}: block {name} with seed {seed}: {}", rig.name(), said.unwrap_or("it panicked"));
    }
}
