//! The connections of a process that read a log: a few, opened when they are needed, each used by one read at a time on a
//! thread that may block.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::location::Location;
use super::tables::Names;
use crate::error::{Error, Result};

const READERS_MAX: usize = 4;

#[derive(Clone)]
pub(super) struct Readers(Arc<Inner>);

struct Inner {
    location: Location,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<(Connection, Names)>>,
}

impl Readers {
    pub(super) fn new(location: Location) -> Self {
        Self(Arc::new(Inner { location, permits: Arc::new(Semaphore::new(READERS_MAX)), idle: Mutex::default() }))
    }

    /// Reads on a connection of its own; after a fault that connection is not used again.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.read_events(doing, |connection, _| read(connection)).await
    }

    /// [`Readers::read`] for events, with the names that the connection has met.
    pub(super) async fn read_events<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection, &mut Names) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| Error::Closed)?;
        let inner = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            // The read goes on when nobody waits for it any more, and so long it counts.
            let _permit = permit;
            inner.location.check_same()?;
            let (connection, mut names) = inner.connection()?;
            match read(&connection, &mut names) {
                Ok(found) => {
                    inner.idle.lock().unwrap_or_else(PoisonError::into_inner).push((connection, names));
                    Ok(found)
                }
                Err(error) => Err(inner.location.fault(doing, error)),
            }
        });
        work.await.map_err(|error| Error::storage(doing, error))?
    }
}

impl Readers {
    /// Lets the reads that run come to their end, begins no other, and closes the connections.
    pub(super) async fn close(&self) {
        let all = u32::try_from(READERS_MAX).unwrap_or(u32::MAX);
        let is_first = self.0.permits.acquire_many(all).await;
        self.0.permits.close();
        drop(is_first);
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Inner {
    fn connection(&self) -> Result<(Connection, Names)> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(idle) => Ok(idle),
            None => Ok((self.location.connect_to_read()?, Names::default())),
        }
    }
}
