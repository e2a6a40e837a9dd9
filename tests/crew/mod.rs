//! The processes that react to all plans: the events they derive from a log, identical for any host.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod doctor;
mod hooks;
mod host;
mod hosts;
mod init;
mod judged;
mod killed;
mod lists;
mod mail;
mod mcp;
mod needs;
mod opencode;
mod plugin;
pub mod recorded;
mod scripts;
mod snapshots;
pub mod team;
mod together;
