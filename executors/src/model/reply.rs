//! Something that answers requests, and its answer.

use crewlog_planner::event::Usage;
use crewlog_planner::model::ModelRequest;
use futures::future::BoxFuture;

use super::error::ModelError;

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
