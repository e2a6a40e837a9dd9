//! Bringing what the write-ahead log holds into the database: by a thread of its own, so that no commit waits for it, and by
//! the writer itself only where that thread does not keep up.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::location::Location;

/// After so many more pages in the write-ahead log it is time.
const PAGES: i32 = 1000;
/// With so many pages in it, the writer brings over what it can by itself: 64 MiB of pages of 4 KiB. What a reader still needs
/// stays, so the write-ahead log grows for as long as one reads.
const PAGES_MAX: i32 = 16_384;

thread_local! {
    /// How many pages the write-ahead log had after the last commit of this thread.
    static N_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The checkpoints of a writer.
pub(super) struct Checkpoints {
    location: Location,
    /// To the thread, once there was need of it.
    orders: Option<(SyncSender<()>, JoinHandle<()>)>,
    /// The pages when it was last time.
    n_pages: i32,
}

impl Checkpoints {
    pub(super) fn new(location: Location) -> Self {
        Self { location, orders: None, n_pages: 0 }
    }

    /// Counts the pages of each commit on this connection, in place of SQLite's checkpoints within commits.
    pub(super) fn count(connection: &Connection) {
        let counted = |_: &Wal, n_pages| {
            N_PAGES.set(n_pages);
            Ok(())
        };
        connection.wal_hook(Some(counted));
    }

    /// To be called after each commit, when nobody waits for it any more.
    pub(super) fn attend(&mut self, connection: &Connection) {
        let n_pages = N_PAGES.get();
        // With fewer pages than before, the -wal file has restarted. A checkpoint without progress is not repeated earlier.
        if n_pages < self.n_pages || n_pages - self.n_pages >= PAGES {
            self.n_pages = n_pages;
            if n_pages >= PAGES_MAX {
                checkpoint(connection);
            } else if n_pages >= PAGES {
                self.order();
            }
        }
    }

    fn order(&mut self) {
        if self.orders.is_none() {
            let (orders, ordered) = sync_channel(1);
            let location = self.location.clone();
            let thread = std::thread::Builder::new().name("crewlog-checkpoint".into());
            match thread.spawn(move || serve(&location, &ordered)) {
                Ok(thread) => self.orders = Some((orders, thread)),
                Err(error) => tracing::warn!(%error, "the thread that makes checkpoints could not be started"),
            }
        }
        if let Some((orders, _)) = &self.orders {
            // One that waits already is enough.
            let _ = orders.try_send(());
        }
    }
}

impl Drop for Checkpoints {
    /// Waits for the thread, so that its connection is closed too.
    fn drop(&mut self) {
        if let Some((orders, thread)) = self.orders.take() {
            drop(orders);
            // A thread that panicked has closed it as well.
            let _ = thread.join();
        }
    }
}

fn serve(location: &Location, ordered: &Receiver<()>) {
    match location.connect_to_write() {
        Ok(connection) => {
            for () in ordered {
                checkpoint(&connection);
            }
        }
        Err(error) => tracing::warn!(%error, "checkpoints are left to the writer"),
    }
}

/// Brings over what can be without waiting for anybody.
fn checkpoint(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        tracing::debug!(%error, "a checkpoint failed; a later one brings over the same");
    }
}
