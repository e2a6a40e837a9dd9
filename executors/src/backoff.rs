//! Growing waits between retries. The number of retries is up to the caller.

use std::time::Duration;

use crewlog_mq::Error;

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(5);

/// The waits after transient failures of the log.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Before the first wait.
    pub(crate) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next wait.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }

    /// Waits that long after a fault.
    pub(crate) async fn wait(&mut self, fault: &Error) {
        warn_unless_outage(fault, "an error of the log; trying again");
        tokio::time::sleep(self.pause()).await;
    }
}

/// Warns of a fault of the log. An outage is logged once, by the log.
pub(crate) fn warn_unless_outage(fault: &Error, text: &str) {
    if fault.is_outage() {
        tracing::debug!(%fault, "{text}");
    } else {
        tracing::warn!(%fault, "{text}");
    }
}
