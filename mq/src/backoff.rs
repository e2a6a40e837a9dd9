//! Growing waits between retries. The number of retries is up to the caller.

use std::time::Duration;

use crate::error::Error;
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
        fault.warn("an error of the log; trying again");
        tokio::time::sleep(self.pause()).await;
    }
}

impl Error {
    /// Logs it as a warning with a text; not if it is part of an outage, whose beginning and end the log itself logs.
    pub fn warn(&self, text: &str) {
        if self.is_outage() {
            tracing::debug!(error = %self, "{text}");
        } else {
            tracing::warn!(error = %self, "{text}");
        }
    }
}
