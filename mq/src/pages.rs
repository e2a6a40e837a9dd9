//! Reads a range page by page, prefetching the next page. It never holds more than two pages.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::query::{Query, Range};
use crate::recorded::Page;
use crate::tail::Deed;

/// The pages of a range, one after another.
pub(crate) struct Pages {
    backend: Arc<dyn Backend>,
    query: Arc<Query>,
    limit: usize,
    next: Next,
    /// All pages are of this generation of the log.
    generation: u64,
    /// Set from the start in a pinned store, else by the first page. Until then the generation may still change.
    has_begun: bool,
}

enum Next {
    Unread(Range),
    Reading(Range, BoxFuture<'static, Result<Page>>),
    End,
}

impl Pages {
    /// The pages of one generation of the log: `pinned`, or the generation of the first page.
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        query: Query,
        range: Range,
        limit: usize,
        pinned: Option<u64>,
    ) -> Self {
        let generation = pinned.unwrap_or_else(|| backend.tail().generation());
        let (query, next, has_begun) = (Arc::new(query), Next::Unread(range), pinned.is_some());
        Self { backend, query, limit, next, generation, has_begun }
    }

    /// The next page; `None` after the last. After an error the same page is read again.
    ///
    /// # Errors
    /// A fault of the database, or [`crate::Error::WentBack`] if the log went back.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>> {
        loop {
            let (range, read) = match std::mem::replace(&mut self.next, Next::End) {
                Next::Unread(range) => (range, self.read(range).await),
                Next::Reading(range, reading) => (range, reading.await),
                Next::End => return Ok(None),
            };
            self.backend.tail().tried(Deed::Read, &read);
            match read.and_then(|page| self.backend.tail().check(Some(self.generation)).map(|()| page)) {
                Ok(page) => {
                    self.has_begun = true;
                    if let Some(rest) = range.rest(&page) {
                        self.begin(rest);
                    }
                    return Ok(Some(page));
                }
                Err(error) => {
                    self.next = Next::Unread(range);
                    if self.has_begun || !matches!(error, Error::WentBack { .. }) {
                        return Err(error);
                    }
                    self.generation = self.backend.tail().generation();
                }
            }
        }
    }

    /// Begins to read a page. It is awaited later, so it needs no waker now.
    fn begin(&mut self, range: Range) {
        let mut reading = self.read(range);
        if let Poll::Ready(read) = reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            reading = Box::pin(std::future::ready(read));
        }
        self.next = Next::Reading(range, reading);
    }

    fn read(&self, range: Range) -> BoxFuture<'static, Result<Page>> {
        let (backend, query, limit) = (Arc::clone(&self.backend), Arc::clone(&self.query), self.limit);
        Box::pin(async move { backend.read(&query, range, limit).await })
    }
}
