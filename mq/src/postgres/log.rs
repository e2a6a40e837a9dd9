//! An open log: its transactions and its connections. Every transaction is explicit and sets its own settings, so it
//! may run on any connection of a pooler.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query as Statement;
use sqlx::{AssertSqlSafe, Postgres, Row};
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use super::LOCK_WAIT_MAX;
use super::read::Snapshot;
use super::server::{Server, answered, is_loss};
use super::time::{NOW, ServerClock};
use super::work::WORK_MAX;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::ids::fnv1a;
use crate::position::Position;
use crate::tail::{End, Look, Tail};

/// Connections of a process that read at the same time.
const READERS_MAX: u32 = 4;
/// Imports that run at the same time; more wait.
const IMPORTS_MAX: u32 = 4;
/// Above any real number: joined appends are counted, not limited.
const JOINED_MAX: u32 = 1 << 16;
/// Connections of a kind that are kept while idle.
const IDLE_CONNECTIONS_MAX: usize = 4;
/// The server ends a transaction that holds the append lock and is idle for this long.
const IDLE_MAX: &str = "30s";

/// Reads the end of the log, the event at a position, and the server's time. The cell is [`crate::judge::LAST_CHANGE`].
fn look_at(known: &str) -> String {
    format!(
        "SELECT coalesce(e.position, 0) AS position, coalesce(e.event_id, '{}'::uuid) AS event_id, \
         coalesce(e.created_at, 0) AS created_at, k.event_id AS known_id, k.created_at AS known_at, \
         greatest(e.created_at, c.held_until, 0) AS time, \
         {NOW} AS now \
         FROM (VALUES (1)) AS one (n) \
         LEFT JOIN (SELECT position, event_id, created_at FROM events ORDER BY position DESC LIMIT 1) AS e ON true \
         LEFT JOIN (SELECT event_id, created_at FROM events WHERE position = {known}) AS k ON true \
         LEFT JOIN cells AS c ON c.space = '' AND c.key = ''",
        Uuid::nil()
    )
}

/// Takes the append lock. A separate statement then reads the head, so that it sees commits made during the wait.
const LOCK: &str = "SELECT one FROM append_lock FOR UPDATE";

/// Clears a session without ending its transaction, as `DISCARD ALL` would. The encoding is the driver's.
const CLEAR: &str = "CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; SET client_encoding = 'UTF8'; \
     UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES; SELECT pg_advisory_unlock_all(); ";

/// Above READ COMMITTED, a transaction that has read would not see commits made while it waited for the lock. The server refuses
/// to change the level of such a transaction, so the append fails.
const SAVEPOINT: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SAVEPOINT append; ";

/// Selects the permits of which a read takes one.
type Permits = fn(&Log) -> &Semaphore;
pub(super) const READING: Permits = |log| &log.readers;
/// Polling for new events never waits for readers.
pub(super) const LOOKING: Permits = |log| &log.lookers;
/// The purpose of a read, and its permits.
pub(super) type Turn = (&'static str, Permits);
/// A function that reads from a snapshot.
pub(super) type Reading<A, T> = for<'s> fn(&'s mut Snapshot<'_>, &'s A) -> BoxFuture<'s, sqlx::Result<T>>;
/// A function that reads in its own transaction. It returns false if unread rows make the connection useless.
type Transaction<A, T> = for<'c> fn(&'c Log, &'c mut PgConnection, &'c A) -> BoxFuture<'c, sqlx::Result<(T, bool)>>;

/// State shared by all parts of an open log.
pub(super) struct Log {
    pub(super) server: Server,
    /// The channel that announces commits.
    pub(super) channel: String,
    pub(super) tail: Arc<Tail>,
    pub(super) log_time: LogTime,
    pub(super) clock: Option<Arc<ServerClock>>,
    /// The settings of a reading transaction, and those of a writing one.
    settings: [String; 2],
    readers: Semaphore,
    lookers: Semaphore,
    pub(super) imports: Semaphore,
    /// Appends joined with a caller's work.
    pub(super) joined: Arc<Semaphore>,
    /// Joined appends that commit or roll back after their work.
    pub(super) finishing: Arc<Semaphore>,
    idle: Idle,
    /// Connections for callers' work only.
    pub(super) workers: Idle,
}

/// A connection to the log.
pub(super) struct Connected {
    pub(super) connection: PgConnection,
    /// The generation in which it was opened. If the log went back since, it may lead to the old server.
    pub(super) generation: u64,
}

/// Idle connections; `None` once the log is closed.
pub(super) struct Idle(Mutex<Option<Vec<Connected>>>);

impl Idle {
    fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// A connection of this generation. Older ones are closed.
    pub(super) fn take(&self, generation: u64) -> Option<Connected> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = idle.as_mut()?;
        idle.retain(|connected| connected.generation == generation);
        idle.pop()
    }

    pub(super) fn put(&self, connected: Connected) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(idle) = idle.as_mut().filter(|idle| idle.len() < IDLE_CONNECTIONS_MAX) {
            idle.push(connected);
        }
    }

    fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Log {
    pub(super) fn new(
        server: Server,
        schema: &str,
        tail: Arc<Tail>,
        (log_time, clock): (LogTime, Option<Arc<ServerClock>>),
    ) -> Self {
        // The query plan of a large log even for a small one: by index, in index order.
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
            channel: format!("crewlog_{:016x}", fnv1a(schema.bytes())),
            server,
            tail,
            log_time,
            clock,
            settings: [reading, writing],
            readers: Semaphore::new(READERS_MAX as usize),
            lookers: Semaphore::new(1),
            imports: Semaphore::new(IMPORTS_MAX as usize),
            joined: Arc::new(Semaphore::new(JOINED_MAX as usize)),
            finishing: Arc::new(Semaphore::new(JOINED_MAX as usize)),
            idle: Idle::new(),
            workers: Idle::new(),
        }
    }

    /// A statement that is prepared once per connection, or not at all if the connection may change.
    pub(super) fn statement(&self, sql: &'static str) -> Statement<'static, Postgres, PgArguments> {
        sqlx::query(sql).persistent(!self.server.is_pooled)
    }

    /// A connection for the log's own transactions only. Behind a pooler its settings would not last, so each
    /// transaction sets them itself.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        self.prepare(self.server.connect().await?).await
    }

    /// Keeps the connection that opened the log for its first read.
    pub(super) async fn keep(&self, connection: PgConnection) -> Result<()> {
        let generation = self.tail.generation();
        self.idle.put(Connected { generation, connection: self.prepare(connection).await? });
        Ok(())
    }

    async fn prepare(&self, mut connection: PgConnection) -> Result<PgConnection> {
        if !self.server.is_pooled {
            let settings = self.settings[1].replace(", true)", ", false)");
            // Prepared, because every commit looks at the log.
            let settings = format!("{settings}PREPARE look (bigint) AS {}", look_at("$1"));
            let made = answered(sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut connection)).await;
            made.map_err(|error| self.server.fault("connecting to the server", error))?;
        }
        Ok(connection)
    }

    fn looking(&self) -> fn(&str) -> String {
        if self.server.is_pooled { look_at } else { |known| format!("EXECUTE look ({known})") }
    }

    fn settings_to_read(&self) -> &str {
        if self.server.is_pooled { &self.settings[0] } else { "" }
    }

    /// Begins a write: takes the append lock, then reads the state of the log.
    pub(super) async fn begin(&self, connection: &mut PgConnection) -> sqlx::Result<Look> {
        let settings = if self.server.is_pooled { &*self.settings[1] } else { "" };
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {settings}{LOCK}; ");
        self.look(connection, &begin, self.looking()).await
    }

    /// The same in a caller's open transaction; fails if none is open. The session is cleared first.
    pub(super) async fn lock_in(&self, connection: &mut PgConnection) -> sqlx::Result<Look> {
        let (clear, settings) = (self.clear(), &self.settings[1]);
        self.look(connection, &format!("{SAVEPOINT}{clear}{settings}{LOCK}; "), look_at).await
    }

    /// Clears a session that the caller's work may have changed. Other callers, or with a pooler other programs, use it
    /// next.
    pub(super) fn clear(&self) -> String {
        // Without a pooler the driver relies on the statements that it has prepared.
        let deallocate = if self.server.is_pooled { "DEALLOCATE ALL; " } else { "" };
        format!("{CLEAR}{deallocate}")
    }

    /// The end of the log once this transaction is committed.
    pub(super) async fn uncommitted_end(&self, connection: &mut PgConnection) -> sqlx::Result<(End, Timestamp)> {
        let rows = answered(sqlx::raw_sql(AssertSqlSafe(look_at("0"))).fetch_all(connection)).await?;
        end_of(rows.last().ok_or(sqlx::Error::RowNotFound)?)
    }

    /// Reads the end of the log after the statements `begin`.
    async fn look(&self, connection: &mut PgConnection, begin: &str, look: fn(&str) -> String) -> sqlx::Result<Look> {
        let (before, asked) = (self.tail.seen(), self.log_time.monotonic());
        let sql = format!("{begin}{}", look(&before.end.head.to_string()));
        let rows = answered(sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(connection)).await?;
        let row = rows.last().ok_or(sqlx::Error::RowNotFound)?;
        let ((end, time), now) = (end_of(row)?, Timestamp(row.try_get("now")?));
        let (known_id, known_at): (Option<Uuid>, Option<i64>) = (row.try_get("known_id")?, row.try_get("known_at")?);
        let now = self.clock.as_ref().map(|clock| {
            clock.set(now);
            (asked, now)
        });
        self.log_time.after_by(time, now);
        let is_same = self.tail.saw(before, end, known_id.zip(known_at.map(Timestamp)));
        Ok(Look { end, time, now, generation: before.generation, is_same })
    }

    /// Reads the end of the log, in one round trip.
    pub(super) async fn head(self: &Arc<Self>, turn: Turn) -> Result<Look> {
        // Statements that are sent together are one transaction.
        let head: Transaction<_, _> = |log, connection, ()| {
            async { Ok((log.look(connection, log.settings_to_read(), log.looking()).await?, true)) }.boxed()
        };
        self.on_a_reader(turn, (), head).await
    }

    /// Reads in one snapshot.
    pub(super) async fn read<A, T>(self: &Arc<Self>, turn: Turn, asked: A, reading: Reading<A, T>) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let in_snapshot: Transaction<(A, Reading<A, T>), T> = |log, connection, (asked, reading)| {
            let read = async move {
                let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", log.settings_to_read());
                let end = log.look(connection, &begin, log.looking()).await?.end;
                let mut snapshot = Snapshot { log, connection, end, is_spent: false };
                let found = reading(&mut snapshot, asked).await?;
                let is_reusable = !snapshot.is_spent;
                if is_reusable {
                    end_transaction(connection, "COMMIT").await?;
                }
                Ok((found, is_reusable))
            };
            read.boxed()
        };
        self.on_a_reader(turn, (asked, reading), in_snapshot).await
    }

    /// Reads in a separate task: it proceeds whether or not the caller polls, and stops when the log is closed.
    async fn on_a_reader<A, T>(self: &Arc<Self>, (doing, permits): Turn, asked: A, read: Transaction<A, T>) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let (log, (mut reply, answer)) = (Arc::clone(self), oneshot::channel());
        tokio::spawn(async move {
            let reading = async {
                let _permit = permits(&log).acquire().await.map_err(|_| Error::Closed)?;
                // An idle connection may have been lost: then another is taken.
                while let Some(connected) = log.idle.take(log.tail.generation()) {
                    match log.read_on(connected, &asked, read).await {
                        Err(error) if is_loss(&error) => {}
                        outcome => return outcome.map_err(|error| log.server.fault(doing, error)),
                    }
                }
                let generation = log.tail.generation();
                let connected = Connected { generation, connection: log.connect().await? };
                log.read_on(connected, &asked, read).await.map_err(|error| log.server.fault(doing, error))
            };
            let found = tokio::select! {
                biased;
                () = log.tail.closed() => Err(Error::Closed),
                // Nobody waits for it any more.
                () = reply.closed() => return,
                found = reading => found,
            };
            let _ = reply.send(found);
        });
        answer.await.map_err(|error| Error::storage(doing, error))?
    }

    /// After a fault the connection is not used again.
    async fn read_on<A, T>(&self, mut connected: Connected, asked: &A, read: Transaction<A, T>) -> sqlx::Result<T> {
        let (found, is_reusable) = read(self, &mut connected.connection, asked).await?;
        if is_reusable {
            self.idle.put(connected);
        }
        Ok(found)
    }

    /// Waits for reads, imports and joined appends to end, then closes the idle connections.
    pub(super) async fn close(&self) {
        // They end by themselves, soon.
        let _ended = self.readers.acquire_many(READERS_MAX).await;
        let _ended = self.lookers.acquire().await;
        let _ended = self.imports.acquire_many(IMPORTS_MAX).await;
        // Only the caller drives such work, and may have stopped.
        let _ended = tokio::time::timeout(WORK_MAX, self.joined.acquire_many(JOINED_MAX)).await;
        // Appends whose work is done finish by themselves. No other one starts to finish after this.
        let _ended = self.finishing.acquire_many(JOINED_MAX).await;
        self.finishing.close();
        self.idle.close();
        self.workers.close();
    }
}

/// The end of the log, and the log time of the last write.
fn end_of(row: &PgRow) -> sqlx::Result<(End, Timestamp)> {
    let (head, created_at) = (Position(row.try_get("position")?), Timestamp(row.try_get("created_at")?));
    Ok((End { head, event_id: row.try_get("event_id")?, created_at }, Timestamp(row.try_get("time")?)))
}

pub(super) async fn end_transaction(connection: &mut PgConnection, sql: &'static str) -> sqlx::Result<()> {
    answered(sqlx::raw_sql(sql).execute(connection)).await.map(|_| ())
}
