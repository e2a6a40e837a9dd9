//! The one thread of a process that writes to a log: it drains what has queued into one commit.
//!
//! Each append of a batch is judged alone, in order, against the database and the accepted part of its batch, so
//! that a refusal never fails a neighbour. There is no timer: the previous commit is the time in which the next
//! batch queues. While idle, the thread looks whether another process has committed.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::ledger::{Interned, Writing};
use super::location::Location;
use super::lock::AppendLock;
use super::migrations;
use super::readers::STATEMENTS_MAX;
use super::tables::{End, end_of};
use crate::clock::LogTime;
use crate::error::{Error, Result};
use crate::judge::Judge;
use crate::record::{Append, Appended};
use crate::tail::Tail;

/// The most appends of one commit.
const BATCH_APPENDS_MAX: usize = 512;
/// About the most bytes of one commit.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How often an idle writer looks whether another process has committed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// An append on its way to the writer.
pub(super) struct Request {
    pub(super) append: Append,
    pub(super) reply: oneshot::Sender<Result<Appended>>,
}

/// What a writer begins with.
pub(super) struct Start {
    pub(super) location: Location,
    /// Whether a log may be made where there is none.
    pub(super) create: bool,
    pub(super) queue: mpsc::Receiver<Request>,
    pub(super) tail: Arc<Tail>,
    pub(super) log_time: Arc<LogTime>,
}

/// Starts the thread, and returns when the log is open and its schema up to date. It ends when the queue closes.
pub(super) async fn start(start: Start) -> Result<()> {
    let (ready, opened) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("crewlog-writer".into()).spawn(move || run(start, ready));
    spawned.map_err(|error| Error::storage("starting the writer", error))?;
    opened.await.map_err(|_| Error::Closed)?
}

fn run(start: Start, ready: oneshot::Sender<Result<()>>) {
    let opened = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Error::storage("starting the writer", error))
        .and_then(|runtime| Ok((Writer::open(&start)?, runtime)));
    match opened {
        Ok((writer, runtime)) => {
            // The opener may have gone; its clones of the queue then close too.
            let _ = ready.send(Ok(()));
            writer.serve(start.queue, &runtime);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

struct Writer {
    location: Location,
    lock: Option<AppendLock>,
    connection: Connection,
    log_time: Arc<LogTime>,
    interned: Interned,
    tail: Arc<Tail>,
    data_version: i64,
}

impl Writer {
    fn open(start: &Start) -> Result<Self> {
        let location = start.location.clone();
        // What may be another program's is judged before a lock file is put beside it.
        let judged = location.exists().then(|| location.connect()).transpose()?;
        let lock = location.open_lock()?;
        let connection = match judged {
            // What is made already is opened without waiting for anybody who writes.
            Some(connection) if migrations::is_made(&connection, &location)? => connection,
            judged => {
                // Two processes that make one log must do it one after the other.
                let _held = location.hold(lock.as_ref())?;
                let mut connection = judged.map_or_else(|| location.connect(), Ok)?;
                migrations::check_that_nothing_is_lost(&connection, &location, start.create)?;
                location.make_durable(&connection)?;
                migrations::make(&mut connection, &location, start.log_time.now())?;
                connection
            }
        };
        location.make_durable(&connection)?;
        location.remember();
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let mut writer = Self {
            location,
            lock,
            connection,
            log_time: Arc::clone(&start.log_time),
            interned: Interned::default(),
            tail: Arc::clone(&start.tail),
            data_version: 0,
        };
        writer.look()?;
        Ok(writer)
    }

    fn serve(mut self, mut queue: mpsc::Receiver<Request>, runtime: &tokio::runtime::Runtime) {
        loop {
            match runtime.block_on(async { tokio::time::timeout(LOOK_INTERVAL, queue.recv()).await }) {
                Ok(Some(first)) => self.commit(drain(first, &mut queue)),
                Ok(None) => return,
                Err(_) => {
                    if let Err(error) = self.look() {
                        tracing::warn!(%error, "looking for the commits of other processes failed");
                        self.tail.failed(error);
                    }
                }
            }
        }
    }

    /// Learns of commits that others made: SQLite counts them in `data_version`.
    fn look(&mut self) -> Result<()> {
        let fault = |error| self.location.fault("looking for new events", error);
        self.location.check_same()?;
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(fault)?;
        if version != self.data_version {
            let end = end_of(&self.connection).map_err(fault)?;
            self.data_version = version;
            self.publish(end);
        }
        Ok(())
    }

    fn publish(&self, end: End) {
        self.log_time.learn(end.created_at);
        self.tail.grew(end.head);
    }

    /// Commits a batch and answers each of its callers.
    fn commit(&mut self, batch: Vec<Request>) {
        let (appends, replies): (Vec<Append>, Vec<_>) =
            batch.into_iter().map(|request| (request.append, request.reply)).unzip();
        match self.try_commit(&appends) {
            Ok(outcomes) => {
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    // A caller that went away does not undo its append.
                    let _ = reply.send(outcome);
                }
            }
            Err(error) => {
                tracing::warn!(%error, appends = appends.len(), "a commit failed");
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
                // A lock that was not to be had says nothing against the connection, nor what the name stands for now.
                if !matches!(error, Error::Locked { .. } | Error::Replaced { .. }) {
                    self.reopen();
                }
            }
        }
    }

    /// `Err` when nothing of the batch is known to be in the log.
    fn try_commit(&mut self, appends: &[Append]) -> Result<Vec<Result<Appended>>> {
        let location = self.location.clone();
        let fault = |error| location.fault("appending", error);
        let held = location.hold(self.lock.as_ref())?;
        location.check_same()?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let start = end_of(&transaction).map_err(fault)?;
        let reading = self.log_time.after(start.created_at);
        let mut judge = Judge::new(Writing::new(&transaction, &self.interned), start.head, reading.now);
        if let Some(step) = reading.stepped_back {
            judge.record_step(step).map_err(fault)?;
        }
        let outcomes = appends.iter().map(|append| judge.judge(append).map_err(fault)).collect::<Result<Vec<_>>>()?;
        let (head, interned) = (judge.head(), judge.ledger.into_interned());
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::Before(start.head, head));
        transaction.commit().map_err(fault)?;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::After(start.head, head));
        drop(held);
        if reading.stepped_back.is_some() {
            self.log_time.step_is_recorded();
        }
        self.interned.learn(interned);
        if head > start.head {
            self.publish(End { head, created_at: reading.now });
        } else {
            self.publish(start);
        }
        Ok(outcomes)
    }

    /// After a failed commit nothing that the connection holds is trusted.
    fn reopen(&mut self) {
        self.interned = Interned::default();
        let connected = self.location.check_same().and_then(|()| self.location.connect());
        match connected.and_then(|connection| self.location.make_durable(&connection).map(|()| connection)) {
            Ok(connection) => {
                self.connection = connection;
                self.data_version = 0;
            }
            Err(error) => tracing::warn!(%error, "reopening the log failed; the next append tries again"),
        }
    }
}

/// All that has queued behind `first`, up to the size of a batch.
fn drain(first: Request, queue: &mut mpsc::Receiver<Request>) -> Vec<Request> {
    let size = |request: &Request| -> usize {
        let events = request.append.writes.iter().flat_map(|write| &write.events);
        events.map(|event| event.data.len() + event.metadata.len()).sum()
    };
    let mut n_bytes = size(&first);
    let mut batch = vec![first];
    while batch.len() < BATCH_APPENDS_MAX && n_bytes < BATCH_BYTES_MAX {
        let Ok(request) = queue.try_recv() else { break };
        n_bytes += size(&request);
        batch.push(request);
    }
    batch
}
