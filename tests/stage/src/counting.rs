//! A backend that counts reads of the one below, and can insert an append between a read and an append.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crewlog_mq::{
    Append, Appended, Backend, Cell, Checked, EventStore, Imported, LogIdentity, Page, Position, Query, Range, Records,
    Result, Stats, Tail, Timestamp,
};
use futures::FutureExt;
use futures::future::BoxFuture;

/// The numbers of events read, of reads, and of appends.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    n_reads: Arc<AtomicUsize>,
    n_events: Arc<AtomicUsize>,
    n_appends: Arc<AtomicUsize>,
}

impl Counts {
    /// Events read since the last call.
    pub fn take_events(&self) -> usize {
        self.n_events.swap(0, Ordering::Relaxed)
    }

    /// Reads since the last call.
    pub fn take_reads(&self) -> usize {
        self.n_reads.swap(0, Ordering::Relaxed)
    }

    /// Appends since the last call.
    pub fn take_appends(&self) -> usize {
        self.n_appends.swap(0, Ordering::Relaxed)
    }
}

struct Counting {
    below: EventStore,
    counts: Counts,
    /// Appended once, before the next append that has events.
    intruder: std::sync::Mutex<Option<Append>>,
}

/// The same log, counted.
pub fn counted(below: &EventStore) -> (EventStore, Counts) {
    with_intruder(below, None)
}

/// The same log, counted; another writer appends this right before the first append.
pub fn with_intruder(below: &EventStore, intruder: Option<Append>) -> (EventStore, Counts) {
    let counts = Counts::default();
    let (below, intruder) = (below.clone(), intruder.into());
    (EventStore::on(Counting { below, counts: counts.clone(), intruder }), counts)
}

impl Backend for Counting {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        let intruder = self.intruder.lock().expect("nobody panics with it").take();
        async move {
            if let Some(intruder) = intruder {
                self.below.append(intruder).await?;
            }
            self.counts.n_appends.fetch_add(1, Ordering::Relaxed);
            self.below.append(append).await
        }
        .boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move {
            let page = self.below.read(query, range, limit).await?;
            self.counts.n_reads.fetch_add(1, Ordering::Relaxed);
            self.counts.n_events.fetch_add(page.events.len(), Ordering::Relaxed);
            Ok(page)
        }
        .boxed()
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.below.head().boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.below.whole(at).boxed()
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.below.log().boxed()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        self.below.import(identity, records).boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.below.check().boxed()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        self.below.cells(space, from, limit).boxed()
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.below.stats().boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.below.close().boxed()
    }

    fn now(&self) -> Timestamp {
        self.below.now()
    }

    fn tail(&self) -> &Arc<Tail> {
        self.below.backend().tail()
    }
}
