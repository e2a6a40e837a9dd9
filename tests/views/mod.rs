//! The views over HTTP: the same as on the command line, at any position; commands, streams and permissions.

mod access;
pub mod api;
mod at;
mod callers;
mod commands;
mod names;
mod stream;

pub use self::api::Api;
