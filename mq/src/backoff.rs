//! Growing waits between retries. The number of retries is up to the caller.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits::BACKOFF;

/// The waits after faults of the log that can pass.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// Before the first wait.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: BACKOFF.0 }
    }

    /// The next wait.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(BACKOFF.1);
        pause
    }

    /// Waits that long after a fault.
    pub async fn wait(&mut self, fault: &Error) {
        fault.warn("log error; retrying");
        tokio::time::sleep(self.pause()).await;
    }

    /// Waits before a retry; false if a retry cannot help.
    pub async fn wait_to_retry(&mut self, fault: &Error) -> bool {
        if fault.is_permanent() {
            tracing::warn!(error = %fault, "permanent log error; not retried");
            return false;
        }
        self.wait(fault).await;
        true
    }
}

/// Repeats work until it is done, or until a retry cannot help.
///
/// # Errors
/// That of the last attempt.
pub async fn retrying<T, F: Future<Output = Result<T>>>(mut work: impl FnMut() -> F) -> Result<T> {
    let mut backoff = Backoff::new();
    loop {
        match work().await {
            Err(error) if backoff.wait_to_retry(&error).await => {}
            done => return done,
        }
    }
}

impl Error {
    /// True for an error that a retry would repeat.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.is_final()
            || matches!(
                self,
                Self::Decode { .. }
                    | Self::Encode { .. }
                    | Self::LimitPassed { .. }
                    | Self::InvalidAppend { .. }
                    | Self::Veil(_)
            )
    }

    /// Logs it as a warning with a text; not if it is part of an outage, whose beginning and end the log itself logs.
    pub fn warn(&self, text: &str) {
        if self.is_outage() {
            tracing::debug!(error = %self, "{text}");
        } else {
            tracing::warn!(error = %self, "{text}");
        }
    }
}
