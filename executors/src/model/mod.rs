//! Asking a model: one narrow trait, the client behind it, and the record of its requests.
//!
//! A [`Model`] takes a request and gives a text or a typed error. [`Client`] is the one that speaks to providers. An
//! [`Asker`] asks with retries, records all that was asked and answered, and answers from the log what is there already.
//! Nothing here knows what an answer means: that is judged in the planner's crate.

mod asker;
mod client;
mod error;
mod retry_policy;

use crewlog_planner::event::Usage;
use crewlog_planner::model::Request;
use futures::future::BoxFuture;

pub use asker::{Answered, AskError, Asker, NoAnswer, Read, hash, text_aggregate};
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
    /// Why there is no answer.
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Tokens, as the provider counts them, and their cost by the configured prices; 0 when unknown.
    pub usage: Usage,
    /// Which model answered, as the provider says.
    pub model: String,
}
