//! Plan files that are synchronized with the log.

pub mod matching;
pub mod options;
pub mod sync;
pub mod warnings;
