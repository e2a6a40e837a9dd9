//! A layer over a log changes appends before the log judges them, and events as they are read.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::append::{Append, Appended};
use crate::backend::{Backend, LogIdentity, Records};
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;

/// The transformations of a layer.
pub(crate) trait Layer: Send + Sync + 'static {
    /// Transforms an append for the log below.
    fn stored<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>>;

    /// Transforms events of the log below for readers.
    fn restore<'a>(&'a self, below: &'a dyn Backend, events: &'a mut [Recorded]) -> BoxFuture<'a, Result<()>>;

    /// True if readers get a changed form of the event.
    fn changes(&self, event: &Recorded) -> bool;

    /// As [`Backend::keeps_snapshots`].
    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>>;
}

/// A log with a layer on top.
pub(crate) struct Layered<L> {
    below: Arc<dyn Backend>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    pub(crate) fn new(below: Arc<dyn Backend>, layer: L) -> Self {
        Self { below, layer }
    }
}

impl<L: Layer> Backend for Layered<L> {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        // The stored form may refer to events that the layer reads to create it.
        let generation = append.generation.unwrap_or_else(|| self.below.tail().generation());
        let append = append.decided_in(generation);
        async move { self.below.append(self.layer.stored(&*self.below, append).await?).await }.boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move {
            let mut page = self.below.read(query, range, limit).await?;
            self.layer.restore(&*self.below, &mut page.events).await?;
            Ok(page)
        }
        .boxed()
    }

    fn opened(&self, event: Arc<Recorded>) -> BoxFuture<'_, Result<Arc<Recorded>>> {
        async move {
            let event = self.below.opened(event).await?;
            if !self.layer.changes(&event) {
                return Ok(event);
            }
            let mut event = [Arc::unwrap_or_clone(event)];
            self.layer.restore(&*self.below, &mut event).await?;
            let [event] = event;
            Ok(Arc::new(event))
        }
        .boxed()
    }

    fn keeps_snapshots<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        self.layer.keeps_snapshots(&*self.below, query)
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.below.head()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.below.whole(at)
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.below.log()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        self.below.import(identity, records)
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.below.check()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        self.below.cells(space, from, limit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.below.stats()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.below.close()
    }

    fn now(&self) -> Timestamp {
        self.below.now()
    }

    fn tail(&self) -> &Arc<Tail> {
        self.below.tail()
    }
}
