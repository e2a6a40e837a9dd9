//! Checks that links answer: one HEAD request for each, within a time limit. Their content is never read, and links are
//! checked only if configured.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

use crate::web;

/// The longest time for one link.
pub const LINK_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest time for all links of a task; the remaining ones count as present.
pub const LINKS_TIME_MAX: Duration = Duration::from_secs(30);
/// The most redirects of one link.
const REDIRECTS_MAX: usize = 5;

/// Checks links.
#[derive(Debug, Clone)]
pub struct Links {
    web: reqwest::Client,
    time: Duration,
}

impl Links {
    /// Sets the time for each link, at most [`LINK_TIME_MAX`].
    ///
    /// # Errors
    /// If no connection is possible at all, because there are no root certificates.
    pub fn new(time: Duration) -> Result<Self, String> {
        let web = web::client().redirect(Policy::limited(REDIRECTS_MAX)).build().map_err(|error| error.to_string())?;
        Ok(Self { web, time: time.min(LINK_TIME_MAX) })
    }

    /// Begins to check the links of a task, on a blocking thread.
    pub(crate) fn begin(&self) -> Looking<'_> {
        Looking { links: self, runtime: Handle::current(), until: Instant::now() + LINKS_TIME_MAX }
    }

    /// The reason why a link cannot be read, if so.
    async fn head(&self, link: &str, time: Duration) -> Result<(), String> {
        let answer = match self.web.head(link).timeout(time).send().await {
            Ok(answer) => answer.status(),
            Err(error) if error.is_timeout() => return Err(format!("did not answer within {} ms", time.as_millis())),
            Err(error) if error.is_redirect() => return Err("redirects too often".to_owned()),
            // The error text could quote secret parts of the link.
            Err(_error) => return Err("cannot be reached".to_owned()),
        };
        // A server that rejects the method, or has too many requests, still exists.
        let there = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED, StatusCode::TOO_MANY_REQUESTS];
        if answer.is_success() || answer.is_redirection() || there.contains(&answer) {
            return Ok(());
        }
        Err(format!("answers {answer}"))
    }
}

/// A check of a task's links in progress.
pub(crate) struct Looking<'a> {
    links: &'a Links,
    runtime: Handle,
    until: Instant,
}

impl Looking<'_> {
    pub(crate) fn look(&self, link: &str) -> Result<(), String> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        self.runtime.block_on(self.links.head(link, self.links.time.min(left)))
    }
}
