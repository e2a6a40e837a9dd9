//! What every backend must do, as a suite that any backend can be put to: [`check`] runs all of it and panics at the first
//! thing that differs, with the block, the seed and the backend. It asserts no speed.
//! docs/embedding.md shows how to run it.

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

/// One part of the suite: a function of a rig and a seed, which panics at what a backend must not do.
pub type Block = for<'a> fn(&'a Rig, u64) -> BoxFuture<'a, ()>;

/// The blocks by name, the quick ones first.
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

/// Puts a backend to every block, with one seed. Other seeds make other logs, queries and orders.
///
/// # Panics
/// At the first thing that a backend must not do.
pub async fn check(rig: &Rig, seed: u64) {
    for (name, _) in BLOCKS {
        check_block(rig, name, seed).await;
    }
}

/// Puts a backend to one block.
///
/// # Panics
/// At the first thing that a backend must not do, and when there is no such block.
pub async fn check_block(rig: &Rig, name: &str, seed: u64) {
    let Some((_, block)) = BLOCKS.iter().find(|(block, _)| *block == name) else {
        panic!("there is no block {name}");
    };
    if let Err(panic) = AssertUnwindSafe(block(rig, seed)).catch_unwind().await {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        panic!("{}: block {name} with seed {seed}: {}", rig.name(), said.unwrap_or("it panicked"));
    }
}
