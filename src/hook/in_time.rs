//! The time limits of a hook, and the log opened within them.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use crate::context::Session;
use crate::ui::failure::Failure;

/// The time limit for the resident process, and then for the log.
pub const WAIT: Duration = Duration::from_secs(2);

/// How long a record of what was decided may delay the answer.
pub const RECORD_WAIT: Duration = Duration::from_millis(500);

/// The time limit for closing the log after the answer. A log that is not closed loses nothing.
pub const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// Opens the log for a time, and closes it.
pub async fn on_the_log<T>(
    session: &Session,
    wait: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = || Err(Failure::user(format!("the log did not answer within {} s", wait.as_secs())));
    let done = timeout(wait, work).await.unwrap_or_else(|_| late());
    let _ = timeout(CLOSE_WAIT, session.place.close()).await;
    done
}
