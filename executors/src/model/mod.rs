//! Requests to a model: a narrow trait, the client that implements it, and the record of requests.
//!
//! A [`Model`] takes a request and returns a text or a typed error. [`Client`] implements it for providers. An
//! [`Asker`] asks with retries, records requests and answers, and reuses the answers in the log. The planner's crate
//! judges the answers.

mod asker;
mod client;
mod error;
mod retry_policy;

use crewlog_planner::event::Usage;
use crewlog_planner::model::ModelRequest;
use futures::future::BoxFuture;

pub use asker::{Answered, AskError, Asker, ModelRead, NoAnswer, hash, text_aggregate};
pub use client::{Client, Key, Prices, Settings, is_provider};
pub use error::{ModelError, Wait};
pub use retry_policy::RetryPolicy;

/// The most bytes of an answer.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Something that answers requests.
pub trait Model: Send + Sync {
    /// Asks once.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Tokens, as the provider counts them, and their cost by the configured prices; 0 when unknown.
    pub usage: Usage,
    /// The model that answered, as named by the provider.
    pub model: String,
}
