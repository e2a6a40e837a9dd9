//! The hooks of agent programs and of git: determines which files a tool call changes, asks the log or the process that
//! has it open, and answers in the program's form.
//!
//! `dialect`, `patch` and `shell` are pure; they open no file, no log and no connection.

mod calls;
mod dialect;
pub mod edits;
pub mod facts;
mod git;
mod git_hooks;
mod identity;
mod in_time;
mod moments;
mod notes;
mod patch;
mod permission;
mod recorders;
mod resident;
mod run;
mod shell;
mod sight;
mod status_line;
#[cfg(test)]
mod tests;
mod touches;
mod watch;
mod witness;

pub use self::resident::Resident;
pub use self::run::run;
