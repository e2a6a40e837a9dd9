//! The rules by which a crew coordinates, without a log: patterns of paths, files that a text mentions, conflicts and
//! statistics.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod conflicts;
mod globs;
mod mentions;
mod statistics;
mod transcript;
