//! Why a model gives no answer, and whether asking again may help. Nothing here waits.

use std::time::Duration;

use crewlog_planner::model::Fault;

/// Why a model gives no answer. No message holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It was rate limited.
    #[error("the model is rate limited{}: {message}", waits(.retry_after))]
    RateLimited {
        /// For how long, if it says so.
        retry_after: Option<Duration>,
        /// In the provider's words.
        message: String,
    },
    /// It has too much to do.
    #[error("the model has too much to do{}: {message}", waits(.retry_after))]
    Overloaded {
        /// The wait it asks for, if any.
        retry_after: Option<Duration>,
        /// In the provider's words.
        message: String,
    },
    /// It failed by itself.
    #[error("the model's provider failed (HTTP {status}): {message}")]
    Server {
        /// The HTTP status.
        status: u16,
        /// In the provider's words.
        message: String,
    },
    /// It took too long.
    #[error("the model did not answer within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The time that it had.
        after: Duration,
    },
    /// The connection ended before the answer did.
    #[error("the model's answer was cut off: {message}")]
    CutOff {
        /// The cause.
        message: String,
    },
    /// The answer is longer than it may be.
    #[error("the model's answer has more than {what}")]
    TooLong {
        /// Than what.
        what: String,
    },
    /// The response does not follow the protocol.
    #[error("what came from the model's provider is no answer: {message}")]
    Malformed {
        /// The difference.
        message: String,
    },
    /// The key, the request or the content was refused.
    #[error("the model's provider refused: {message}")]
    Refused {
        /// In the provider's words.
        message: String,
    },
    /// The provider cannot be reached.
    #[error("the model's provider cannot be reached: {message}")]
    Unreachable {
        /// Why.
        message: String,
    },
    /// Something is missing that asking needs.
    #[error("the model is not configured: {message}")]
    NotConfigured {
        /// The setting.
        message: String,
    },
}

fn waits(retry_after: &Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(" for {} s", wait.as_secs_f64()))
}

/// Whether to ask again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It would be refused again.
    Never,
    /// After a while.
    Backoff,
    /// Not sooner than this.
    AtLeast(Duration),
}

impl ModelError {
    /// The recorded class of failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::RateLimited { .. } => Fault::RateLimited,
            Self::Overloaded { .. } => Fault::Overloaded,
            Self::Server { .. } => Fault::Server,
            Self::TimedOut { .. } => Fault::TimedOut,
            Self::CutOff { .. } | Self::TooLong { .. } => Fault::CutOff,
            Self::Malformed { .. } => Fault::Malformed,
            Self::Refused { .. } => Fault::Refused,
            Self::Unreachable { .. } => Fault::Unreachable,
            Self::NotConfigured { .. } => Fault::NotConfigured,
        }
    }

    /// Whether asking again may help.
    pub fn wait(&self) -> Wait {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                retry_after.map_or(Wait::Backoff, Wait::AtLeast)
            }
            Self::Server { .. }
            | Self::TimedOut { .. }
            | Self::CutOff { .. }
            | Self::Malformed { .. }
            | Self::Unreachable { .. } => Wait::Backoff,
            Self::TooLong { .. } | Self::Refused { .. } | Self::NotConfigured { .. } => Wait::Never,
        }
    }
}
