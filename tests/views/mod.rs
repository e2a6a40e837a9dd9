//! The views over HTTP: the same as the command line shows, at any position; commands, streams and who may do what.

mod access;
mod api;
mod at;
mod commands;
mod stream;

pub use self::api::Api;
