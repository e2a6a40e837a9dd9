//! An append joined with a caller's SQL in one transaction.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::Postgres;
use super::batch::{self, Interned};
use super::log::{Connected, Log, end_transaction};
use super::server::answered;
use super::writer::{Fault, commit, publish};
use crate::append::{Append, Appended};
use crate::error::{Error, Result};

/// The time limit for the caller's work.
pub(super) const WORK_MAX: Duration = Duration::from_secs(30);

const DOING: &str = "appending";

impl Postgres {
    /// Appends together with the caller's work on the same database: begins a transaction, runs `work` on its
    /// connection, then takes the append lock, judges the append and commits both. If either fails or is refused, both
    /// are rolled back. A repeated append was committed with its work before, so the new work is rolled back.
    ///
    /// The lock is taken last, so that slow work blocks no other append. `work` must not end the transaction or change
    /// its isolation level, and may take 30 s. It uses the crate `sqlx` 0.9. Settings, roles, temporary tables,
    /// cursors, listeners and session locks end with it; a `PREPARE` needs its `DEALLOCATE`.
    ///
    /// # Errors
    /// As for [`crate::EventStore::append`]; the error of `work`; [`Error::TookTooLong`].
    pub async fn append_with<T, E, W>(&self, append: Append, work: W) -> Result<(Appended, T), E>
    where
        T: Send,
        E: From<Error> + Send,
        W: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send,
    {
        append.check()?;
        let log = self.open_log()?;
        let permit = Arc::clone(&log.joined).acquire_owned().await.map_err(|_| Error::Closed)?;
        if log.tail.is_closed() {
            return Err(Error::Closed.into());
        }
        let working = async {
            let mut connected = begin(log).await?;
            let worked = work(&mut connected.connection).await;
            Ok::<_, Error>((connected, worked))
        };
        let worked = tokio::time::timeout(WORK_MAX, working).await;
        let (mut connected, worked) = worked.map_err(|_| Error::TookTooLong { limit: WORK_MAX })??;
        let done = match worked {
            Ok(done) => done,
            Err(failed) => {
                // If the rollback fails, the connection is dropped.
                let sql = AssertSqlSafe(format!("ROLLBACK; {}", log.clear()));
                if answered(sqlx::raw_sql(sql).execute(&mut connected.connection)).await.is_ok() {
                    log.workers.put(connected);
                }
                return Err(failed);
            }
        };
        let finishing = Arc::clone(&log.finishing).acquire_owned().await.map_err(|_| Error::Closed)?;
        drop(permit);
        let log = Arc::clone(log);
        // It holds the append lock, so it must not depend on the caller's polling.
        let finishing = tokio::spawn(async move {
            let _permit = finishing;
            let outcome = finish(&log, &mut connected.connection, append).await;
            let outcome = outcome.map_err(|fault| fault.into_error(&log, DOING))?;
            log.workers.put(connected);
            outcome
        });
        let appended = finishing.await.map_err(|error| Error::NotAcknowledged { source: Arc::new(error) })??;
        Ok((appended, done))
    }
}

async fn begin(log: &Log) -> Result<Connected> {
    const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
    while let Some(mut connected) = log.workers.take(log.tail.generation()) {
        if end_transaction(&mut connected.connection, BEGIN).await.is_ok() {
            return Ok(connected);
        }
    }
    let generation = log.tail.generation();
    let mut connection = log.server.connect().await?;
    end_transaction(&mut connection, BEGIN).await.map_err(|error| log.server.fault(DOING, error))?;
    Ok(Connected { connection, generation })
}

async fn finish(log: &Log, connection: &mut PgConnection, append: Append) -> Result<Result<Appended>, Fault> {
    let look = log.lock_in(connection).await?;
    log.tail.check_look(look).map_err(Fault::Told)?;
    let mut interned = Interned::default();
    let written = batch::write(log, connection, (&[append], look), &mut interned, false).await?;
    let (mut outcomes, written) = written.ok_or(sqlx::Error::RowNotFound)?;
    let outcome = outcomes.pop().unwrap_or(Err(Error::Closed));
    if outcome.as_ref().is_ok_and(|appended| !appended.repeated) {
        commit(log, connection, written.news()).await?;
        publish(log, &mut interned, written);
    } else {
        end_transaction(connection, "ROLLBACK").await?;
    }
    Ok(outcome)
}
