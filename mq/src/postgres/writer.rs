//! The one task of a process that writes to a log: it commits all queued appends together.
//!
//! A commit is never repeated blindly: if its reply is lost, the callers get an "outcome unknown" error.

use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;

use super::batch::{self, Interned, Written};
use super::log::{Log, end_transaction};
use super::server::{answered, is_loss};
use crate::append::{Append, Appended};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::queue::{Request, answer, drain};
use crate::tail::Look;

/// The error that ended a transaction, by its outcome.
pub(super) enum Fault {
    /// Nothing of it is in the log.
    Before(sqlx::Error),
    /// Nothing of it is in the log, and the error is already converted.
    Told(Error),
    /// The outcome of the commit is unknown.
    Unknown(sqlx::Error),
}

impl Fault {
    pub(super) fn into_error(self, log: &Log, doing: &'static str) -> Error {
        match self {
            Self::Before(error) => log.server.fault(doing, error),
            Self::Told(error) => error,
            Self::Unknown(error) => Error::NotAcknowledged { source: Arc::new(error) },
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Before(error)
    }
}

/// Writes until the log is closed and its queue is empty.
pub(super) async fn serve(log: Arc<Log>, mut queue: mpsc::Receiver<Request>) {
    let mut writer = Writer { log: Arc::clone(&log), connection: None, interned: Interned::default() };
    while let Some(first) = next(&log, &mut queue).await {
        let begun = writer.begin().await;
        // Includes the appends that were queued during the wait for the lock.
        writer.commit(begun, drain(first, &mut queue)).await;
    }
}

async fn next(log: &Log, queue: &mut mpsc::Receiver<Request>) -> Option<Request> {
    if !log.tail.is_closed() {
        tokio::select! {
            () = log.tail.closed() => {}
            next = queue.recv() => return next,
        }
    }
    queue.close();
    queue.recv().await
}

struct Writer {
    log: Arc<Log>,
    connection: Option<PgConnection>,
    interned: Interned,
}

impl Writer {
    /// Begins a transaction and takes the append lock. An idle connection may have been lost: then another is taken.
    /// After a fault the cached state of the connection is dropped.
    async fn begin(&mut self) -> Result<(PgConnection, Look), Fault> {
        if let Some(mut connection) = self.connection.take() {
            match self.log.begin(&mut connection).await {
                Err(error) if is_loss(&error) => {}
                begun => return Ok((connection, begun?)),
            }
        }
        self.interned = Interned::default();
        let mut connection = self.log.connect().await.map_err(Fault::Told)?;
        let look = self.log.begin(&mut connection).await?;
        Ok((connection, look))
    }

    /// Commits a batch and answers its callers.
    async fn commit(&mut self, begun: Result<(PgConnection, Look), Fault>, batch: Vec<Request>) {
        let (appends, replies): (Vec<Append>, Vec<_>) =
            batch.into_iter().map(|request| (request.append, request.reply)).unzip();
        let outcomes = self.try_commit(begun, &appends).await.map_err(|fault| fault.into_error(&self.log, "appending"));
        answer(replies, outcomes);
    }

    async fn try_commit(
        &mut self,
        begun: Result<(PgConnection, Look), Fault>,
        appends: &[Append],
    ) -> Result<Vec<Result<Appended>>, Fault> {
        let (mut connection, look) = begun?;
        let outcomes = transact(&self.log, &mut connection, look, appends, &mut self.interned).await?;
        self.connection = Some(connection);
        Ok(outcomes)
    }
}

/// Appends in an open transaction, and publishes the result.
async fn transact(
    log: &Log,
    connection: &mut PgConnection,
    mut look: Look,
    appends: &[Append],
    interned: &mut Interned,
) -> Result<Vec<Result<Appended>>, Fault> {
    log.tail.check_look(look).map_err(Fault::Told)?;
    let mut done = batch::write(log, connection, (appends, look), interned, true).await?;
    if done.is_none() {
        end_transaction(connection, "ROLLBACK").await?;
        look = log.begin(connection).await?;
        log.tail.check_look(look).map_err(Fault::Told)?;
        done = batch::write(log, connection, (appends, look), interned, false).await?;
    }
    let (outcomes, written) = done.ok_or(sqlx::Error::WorkerCrashed)?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::Before(look.end.head, written.head));
    commit(log, connection, written.news()).await?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::After(look.end.head, written.head));
    publish(log, interned, written);
    Ok(outcomes)
}

/// Commits, and notifies all listeners of a new head.
pub(super) async fn commit(log: &Log, connection: &mut PgConnection, news: Option<Position>) -> Result<(), Fault> {
    let notify = match news {
        Some(head) => format!("SELECT pg_notify('{}', '{head}'); COMMIT", log.channel),
        None => "COMMIT".to_owned(),
    };
    let committed = answered(sqlx::raw_sql(AssertSqlSafe(notify)).execute(connection)).await;
    committed.map(|_| ()).map_err(|error| if is_loss(&error) { Fault::Unknown(error) } else { Fault::Before(error) })
}

/// Makes a commit known in this process.
pub(super) fn publish(log: &Log, interned: &mut Interned, mut written: Written) {
    if written.step_is_recorded {
        log.log_time.step_is_recorded();
    }
    if let Some(time) = written.time {
        log.log_time.learn(time);
    }
    log.tail.publish(written.generation, std::mem::take(&mut written.events));
    interned.learn(written);
}
