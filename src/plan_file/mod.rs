//! Plan files that are synchronized with the log.

pub mod matching;
pub mod sync;
