//! The reasons why a model gives no answer, and whether a retry may help.

use std::time::Duration;

use crewlog_planner::event::RetryPolicy;
use crewlog_planner::model::Fault;
use crewlog_planner::text::{duration, millis};

/// The reason why a model gives no answer. No message contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "names and messages say what the fields hold")]
pub enum ModelError {
    /// It was rate limited.
    #[error("the model is rate limited{}: {message}", waits(.retry_after))]
    RateLimited { retry_after: Option<Duration>, message: String },
    /// It is overloaded.
    #[error("the model is overloaded{}: {message}", waits(.retry_after))]
    Overloaded { retry_after: Option<Duration>, message: String },
    /// It failed internally.
    #[error("the model's provider failed (HTTP {status}): {message}")]
    Server { status: u16, message: String },
    /// It took too long.
    #[error("the model did not answer within {}", duration(millis(*.after)))]
    TimedOut { after: Duration },
    /// The connection ended before the answer did.
    #[error("the model's answer was cut off: {message}")]
    CutOff { message: String },
    /// The answer is too long.
    #[error("the model's answer has more than {what}")]
    TooLong { what: String },
    /// The response does not follow the protocol.
    #[error("the model's provider sent an invalid answer: {message}")]
    Malformed { message: String },
    /// The key, the request or the content was refused.
    #[error("the model's provider refused: {message}")]
    Refused { message: String },
    /// The provider cannot be reached.
    #[error("the model's provider cannot be reached: {message}")]
    Unreachable { message: String },
    /// A required setting is missing.
    #[error("the model is not configured: {message}")]
    NotConfigured { message: String },
}

fn waits(retry_after: &Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(" for {}", duration(millis(wait))))
}

/// The advice on retries.
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

    /// The advice on retrying this request.
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
    /// The wait before the next retry; `None` when a retry cannot help, or the provider asks for too long a wait.
    pub fn pause(&self, policy: RetryPolicy, n_retries: u32) -> Option<Duration> {
        let (backoff, longest) = (policy.wait_ms(n_retries), Duration::from_millis(policy.longest_ms));
        let least = match self.wait() {
            Wait::Never => return None,
            Wait::Backoff => Duration::ZERO,
            Wait::AtLeast(wait) => wait,
        };
        (n_retries < policy.count && least <= longest).then(|| least.max(Duration::from_millis(backoff)))
    }
}
