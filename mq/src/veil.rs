//! A veil over a log: it transforms appended events before they are judged, and transforms them back for readers. The
//! log below does not know of it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::append::{Append, Appended};
use crate::backend::{Backend, Records};
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::identity::LogIdentity;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;

/// Hides part of the events from readers of the database, for example by encryption.
///
/// It may change only `data`, the `extra` part of `metadata`, and tags; queries match the stored form.
/// An import and a check see the stored form too.
pub trait Veil: Send + Sync + 'static {
    /// The append in the form to be stored in the log `below`. Equal events must be sealed to equal bytes, so that a
    /// repeated append is recognised.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] if it cannot be sealed; nothing is then appended.
    fn seal<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>>;

    /// Opens stored events. Content that can never be opened is replaced by a text that says so.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] if they cannot be opened now, but could be once a problem is fixed.
    fn open(&self, events: &mut [Recorded]) -> Result<()>;

    /// True if the state of a fold over these events may be stored next to the log, in plain form.
    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>>;
}

/// A log with a veil over it.
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
        // Sealing may read the log.
        let generation = append.generation.unwrap_or_else(|| self.below.tail().generation());
        let append = append.decided_in(generation);
        async move {
            let sealed = self.veil.seal(&*self.below, append).await?;
            // The sealed form is longer.
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

    fn is_local(&self) -> bool {
        self.below.is_local()
    }

    fn tail(&self) -> &Arc<Tail> {
        self.below.tail()
    }
}
