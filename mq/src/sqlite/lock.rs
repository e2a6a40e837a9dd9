//! The lock that orders the writers of several processes. Waiting happens in the kernel, with a time limit.
//!
//! SQLite's own waiting is unfair: it sleeps and retries, and the p99 of many writers grows fourfold. But a wait in the
//! kernel has no time limit, and a process that is stopped during a commit would silently block all others. So a
//! separate thread waits, and a caller that gives up is skipped.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// One process's handle on the append lock of a log.
pub(super) struct AppendLock {
    file: Arc<File>,
    waiting: mpsc::Sender<SyncSender<io::Result<Held>>>,
}

impl AppendLock {
    /// Two openings of one file: the blocking wait must not share its lock with the non-blocking attempts.
    pub(super) fn new(file: File, waiting_file: File) -> io::Result<Self> {
        let (waiting, waiters) = mpsc::channel::<SyncSender<io::Result<Held>>>();
        let theirs = Arc::new(waiting_file);
        std::thread::Builder::new().name("crewlog-lock".into()).spawn(move || {
            for waiter in waiters {
                let locked = theirs.lock().map(|()| Held(Arc::clone(&theirs)));
                // A waiter that gave up has dropped its end; the lock comes back with the error and is dropped.
                drop(waiter.send(locked));
            }
        })?;
        Ok(Self { file: Arc::new(file), waiting })
    }

    /// Holds the lock until the result is dropped; `None` after the time limit.
    pub(super) fn hold(&self, at_most: Duration) -> io::Result<Option<Held>> {
        match self.file.try_lock() {
            Ok(()) => return Ok(Some(Held(Arc::clone(&self.file)))),
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        // Without a buffer, the sender learns whether the lock was received.
        let (waiter, turn) = mpsc::sync_channel(0);
        self.waiting
            .send(waiter)
            .map_err(|_| io::Error::other("the thread that waits for the append lock has ended"))?;
        match turn.recv_timeout(at_most) {
            Ok(locked) => locked.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the wait for the append lock was cut off")),
        }
    }
}

/// The lock, until dropped.
pub(super) struct Held(Arc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the append lock could not be released");
        }
    }
}
