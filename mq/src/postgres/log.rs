//! An open log: its transactions and its connections. Every transaction is explicit and sets what it needs for itself
//! alone, so that it does not matter on which connection of a pooler it finds itself.

use std::sync::{Arc, Mutex, PoisonError};

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query as Statement;
use sqlx::{AssertSqlSafe, Postgres, Row};
use tokio::sync::Semaphore;

use super::LOCK_WAIT_MAX;
use super::read::Reading;
use super::server::{Server, answered, is_loss};
use super::time::ServerClock;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::ids::fnv1a;
use crate::position::Position;
use crate::tail::Tail;

/// Connections of a process that read at the same time.
const READERS_MAX: usize = 4;
/// Connections for work of the caller's that are kept while idle.
const WORKERS_IDLE_MAX: usize = 4;
/// A transaction that holds the append lock and does nothing for so long is ended by the server.
const IDLE_MAX: &str = "30s";

/// Where the log ends, and what time it is on the server. The cell is [`crate::judge::LAST_CHANGE`].
pub(super) const END: &str = "SELECT coalesce(e.position, 0) AS position, \
     greatest(e.created_at, c.held_until, 0) AS time, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now \
     FROM (VALUES (1)) AS one (n) \
     LEFT JOIN (SELECT position, created_at FROM events ORDER BY position DESC LIMIT 1) AS e ON true \
     LEFT JOIN cells AS c ON c.space = '' AND c.key = ''";

/// Where the log ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct End {
    pub(super) head: Position,
    /// The log time of the last write, be it of an event or of a cell.
    pub(super) time: Timestamp,
    /// What the server's clock says, unless the log was opened with another.
    pub(super) now: Option<Timestamp>,
}

/// The append lock. The head is read by a statement behind the one that waits: only that sees what was committed meanwhile.
const LOCK: &str = "SELECT one FROM append_lock FOR UPDATE";

/// Clears a session without ending its transaction, as `DISCARD ALL` would. The encoding is what a driver asks for when it
/// connects.
const CLEAR: &str = "CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; SET client_encoding = 'UTF8'; \
     UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES; SELECT pg_advisory_unlock_all(); ";

/// What all parts of an open log share.
pub(super) struct Log {
    pub(super) server: Server,
    /// The channel that announces commits.
    pub(super) channel: String,
    pub(super) tail: Arc<Tail>,
    pub(super) log_time: LogTime,
    pub(super) clock: Option<Arc<ServerClock>>,
    /// The settings of a transaction that reads, and with what one that writes needs besides.
    settings: [String; 2],
    readers: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
    /// Connections on which work of the caller's is done, and nothing else.
    workers: Mutex<Vec<PgConnection>>,
}

impl Log {
    pub(super) fn new(
        server: Server,
        schema: &str,
        tail: Arc<Tail>,
        (log_time, clock): (LogTime, Option<Arc<ServerClock>>),
    ) -> Self {
        // Even a small log uses the query plan of a large one: by index, and in the order of the index.
        let off = ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "enable_sort", "jit"]
            .map(|name| format!("set_config('{name}', 'off', true)"))
            .join(", ");
        let reading = format!(
            "SELECT set_config('search_path', '\"{schema}\", pg_temp', true), \
             set_config('plan_cache_mode', 'force_generic_plan', true), {off}; "
        );
        let writing = format!(
            "{reading}SELECT set_config('lock_timeout', '{}ms', true), \
             set_config('idle_in_transaction_session_timeout', '{IDLE_MAX}', true), \
             set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' \
                        ELSE current_setting('synchronous_commit') END, true); ",
            LOCK_WAIT_MAX.as_millis()
        );
        Self {
            channel: format!("crewlog_{}", channel_name(schema)),
            server,
            tail,
            log_time,
            clock,
            settings: [reading, writing],
            readers: Semaphore::new(READERS_MAX),
            idle: Mutex::default(),
            workers: Mutex::default(),
        }
    }

    /// A statement that is prepared once for a connection, or not at all where the connection may change.
    pub(super) fn statement(&self, sql: &'static str) -> Statement<'static, Postgres, PgArguments> {
        sqlx::query(sql).persistent(!self.server.is_pooled)
    }

    /// A connection for the log's own transactions, which alone use it. Behind a pooler it is not ours to keep settings, so
    /// there each transaction makes them for itself.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        let mut connection = self.server.connect().await?;
        if !self.server.is_pooled {
            let settings = self.settings[1].replace(", true)", ", false)");
            let made = answered(sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut connection)).await;
            made.map_err(|error| self.server.fault("connecting to the server", error))?;
        }
        Ok(connection)
    }

    fn settings_to_read(&self) -> &str {
        if self.server.is_pooled { &self.settings[0] } else { "" }
    }

    /// Begins to write: takes the append lock, and reads what is true from then on.
    pub(super) async fn begin(&self, connection: &mut PgConnection) -> sqlx::Result<End> {
        let settings = if self.server.is_pooled { &*self.settings[1] } else { "" };
        let sql = format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {settings}{LOCK}; {END}");
        self.begin_by(connection, sql).await
    }

    /// The same in a transaction of a caller's that has begun, and fails where none has. The session is cleared first.
    pub(super) async fn lock_in(&self, connection: &mut PgConnection) -> sqlx::Result<End> {
        self.begin_by(connection, format!("SAVEPOINT append; {}{}{LOCK}; {END}", self.clear(), self.settings[1])).await
    }

    /// Clears a session that the caller's work may have changed: others use it next, behind a pooler even other programs.
    pub(super) fn clear(&self) -> String {
        // Without a pooler the driver counts on the statements that it has prepared.
        let deallocate = if self.server.is_pooled { "DEALLOCATE ALL; " } else { "" };
        format!("{CLEAR}{deallocate}")
    }

    /// Begins to read: one snapshot, and where the log ends in it.
    pub(super) async fn begin_to_read(&self, connection: &mut PgConnection) -> sqlx::Result<End> {
        let settings = self.settings_to_read();
        self.begin_by(connection, format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings}{END}")).await
    }

    /// Where the log ends, in one round trip.
    pub(super) async fn end(&self, connection: &mut PgConnection) -> sqlx::Result<End> {
        let settings = self.settings_to_read();
        self.begin_by(connection, format!("BEGIN READ ONLY; {settings}{END}; COMMIT")).await
    }

    /// Where the log will end, within a transaction that holds the append lock and has written.
    pub(super) async fn locked_end(&self, connection: &mut PgConnection) -> sqlx::Result<End> {
        self.end_by(connection, END.to_owned()).await
    }

    async fn begin_by(&self, connection: &mut PgConnection, sql: String) -> sqlx::Result<End> {
        let end = self.end_by(connection, sql).await?;
        self.log_time.after_by(end.time, end.now);
        Ok(end)
    }

    async fn end_by(&self, connection: &mut PgConnection, sql: String) -> sqlx::Result<End> {
        let rows = answered(sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(connection)).await?;
        let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
        let now = Timestamp(row.try_get("now")?);
        let now = self.clock.as_ref().map(|clock| {
            clock.set(now);
            now
        });
        Ok(End { head: Position(row.try_get("position")?), time: Timestamp(row.try_get("time")?), now })
    }

    /// Reads on a connection of its own. One that was idle may have been lost meanwhile: then another is taken.
    pub(super) async fn read<R: Reading>(&self, doing: &'static str, reading: &R) -> Result<R::Found> {
        let _permit = self.readers.acquire().await.map_err(|_| Error::Closed)?;
        while let Some(connection) = self.idle() {
            match self.read_on(connection, reading).await {
                Err(error) if is_loss(&error) => {}
                outcome => return outcome.map_err(|error| self.server.fault(doing, error)),
            }
        }
        let connection = self.connect().await?;
        self.read_on(connection, reading).await.map_err(|error| self.server.fault(doing, error))
    }

    /// After a fault the connection is not used again.
    async fn read_on<R: Reading>(&self, mut connection: PgConnection, reading: &R) -> sqlx::Result<R::Found> {
        let (found, is_reusable) = reading.read(self, &mut connection).await?;
        if is_reusable {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        Ok(found)
    }

    pub(super) fn idle_worker(&self) -> Option<PgConnection> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn keep_worker(&self, connection: PgConnection) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if workers.len() < WORKERS_IDLE_MAX {
            workers.push(connection);
        }
    }

    fn idle(&self) -> Option<PgConnection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

pub(super) async fn end_transaction(connection: &mut PgConnection, sql: &'static str) -> sqlx::Result<()> {
    answered(sqlx::raw_sql(sql).execute(connection)).await.map(|_| ())
}

/// Names of channels have 63 bytes at the most, and so have those of schemas.
fn channel_name(schema: &str) -> String {
    format!("{:016x}", fnv1a(schema.bytes()))
}
