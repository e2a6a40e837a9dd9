//! Copies the write-ahead log into the database, in its own thread so that no commit waits for it. Only if that thread
//! does not keep up, the writer does it.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::location::Location;

/// A checkpoint is due after this many more pages in the write-ahead log.
const PAGES: i32 = 1000;
/// With this many pages (64 MiB of 4 KiB pages), the writer itself copies what it can. Pages that a reader still needs
/// stay, so the write-ahead log grows while one reads.
const PAGES_MAX: i32 = 16_384;

thread_local! {
    /// The pages in the write-ahead log after the last commit of this thread.
    static N_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The checkpoints of a writer.
pub(super) struct Checkpoints {
    location: Location,
    /// Sends requests to the thread, once it has been started.
    orders: Option<(SyncSender<()>, JoinHandle<()>)>,
    /// The page count at the last checkpoint.
    n_pages: i32,
}

impl Checkpoints {
    pub(super) fn new(location: Location) -> Self {
        Self { location, orders: None, n_pages: 0 }
    }

    /// Counts the pages of each commit on this connection, and disables SQLite's checkpoints within commits.
    pub(super) fn count(connection: &Connection) {
        let counted = |_: &Wal, n_pages| {
            N_PAGES.set(n_pages);
            Ok(())
        };
        connection.wal_hook(Some(counted));
    }

    /// Call this after each commit, when no caller waits for it any more.
    pub(super) fn attend(&mut self, connection: &Connection) {
        let n_pages = N_PAGES.get();
        // Fewer pages than before: the -wal file has restarted. A checkpoint without progress is not repeated earlier.
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
            // One pending request is enough.
            let _ = orders.try_send(());
        }
    }
}

impl Drop for Checkpoints {
    /// Waits for the thread, so that its connection is closed.
    fn drop(&mut self) {
        if let Some((orders, thread)) = self.orders.take() {
            drop(orders);
            // A panic of the thread has closed it, too.
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

/// Copies as much as possible without waiting.
fn checkpoint(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        tracing::debug!(%error, "a checkpoint failed; a later one brings over the same");
    }
}
