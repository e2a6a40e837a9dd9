//! Requests to a model: a narrow trait, the client that implements it, and the record of requests.
//!
//! A [`Model`] takes a request and returns a text or a typed error. [`Client`] implements it for providers. An
//! [`Asker`] asks with retries, records requests and answers, and reuses the answers in the log. The planner's crate
//! judges the answers.

mod asker;
mod client;
mod error;
mod reply;

pub use asker::{Answered, AskError, Asker, ModelRead, NoAnswer, hash, text_aggregate};
pub use client::{Client, Key, Prices, Settings, is_provider};
pub use error::{ModelError, Wait};
pub use reply::{ANSWER_BYTES_MAX, Model, Reply};
