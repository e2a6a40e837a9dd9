//! Running plans in this process.

pub mod by_model;
pub mod notices;
pub mod offering;
pub mod progress;
pub mod runtime;
pub mod session;
