//! The retries of failed requests to a model, and the waits before them.

use std::time::Duration;

use super::error::{ModelError, Wait};

/// The retries of failed requests to a model, and the waits before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most retries of one request.
    pub retries_max: u32,
    /// The wait before the first retry; it doubles each time.
    pub first: Duration,
    /// The longest wait. If a provider asks for a longer one, the request fails.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries_max: 2, first: Duration::from_millis(500), longest: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// The wait before the next retry; `None` when a retry cannot help.
    pub fn pause(&self, error: &ModelError, n_retries: u32) -> Option<Duration> {
        if n_retries >= self.retries_max {
            return None;
        }
        let backoff = self.first.saturating_mul(1 << n_retries.min(20)).min(self.longest);
        match error.wait() {
            Wait::Never => None,
            Wait::Backoff => Some(backoff),
            Wait::AtLeast(wait) if wait > self.longest => None,
            Wait::AtLeast(wait) => Some(wait.max(backoff)),
        }
    }
}
