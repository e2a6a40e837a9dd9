//! A veil over a log: what is appended is changed before it is judged, and what is read is changed back. The log below knows
//! nothing of it. Nothing here knows what a veil hides, or how.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::backend::{Backend, LogIdentity, Records};
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::record::{Append, Appended, Checked, Imported, Page, Recorded, Stats};
use crate::tail::Tail;

/// Hides some of what events say from whoever has the database alone, such as by encryption.
///
/// Only `data`, what `metadata` has beside its ids, and tags may differ below; queries are answered by what stands there.
/// An import, and a check, see what stands there too.
pub trait Veil: Send + Sync + 'static {
    /// The append as it is to stand in the log `below`. Equal events must be sealed to equal bytes, or a repeated append
    /// would not be known as one.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] when it cannot be sealed; nothing is then appended.
    fn seal<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>>;

    /// Makes of events as they stand in the log what they say. What cannot be opened for good says so in its place.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] when they cannot be opened as long as something is not mended.
    fn open(&self, events: &mut [Recorded]) -> Result<()>;

    /// Whether the state of a fold over these events may be kept beside the log, where it would lie open.
    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>>;
}

/// A log under a veil.
pub(crate) struct Veiled {
    below: Arc<dyn Backend>,
    veil: Arc<dyn Veil>,
}

impl Veiled {
    pub(crate) fn new(below: Arc<dyn Backend>, veil: Arc<dyn Veil>) -> Self {
        Self { below, veil }
    }
}

impl Backend for Veiled {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        async move {
            let sealed = self.veil.seal(&*self.below, append).await?;
            // What is sealed is longer.
            sealed.check()?;
            self.below.append(sealed).await
        }
        .boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move {
            let mut page = self.below.read(query, range, limit).await?;
            self.veil.open(&mut page.events)?;
            Ok(page)
        }
        .boxed()
    }

    fn opened(&self, event: Arc<Recorded>) -> BoxFuture<'_, Result<Arc<Recorded>>> {
        async move {
            let mut event = [Arc::unwrap_or_clone(self.below.opened(event).await?)];
            self.veil.open(&mut event)?;
            let [event] = event;
            Ok(Arc::new(event))
        }
        .boxed()
    }

    fn keeps_snapshots<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        self.veil.keeps_snapshots(&*self.below, query)
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
