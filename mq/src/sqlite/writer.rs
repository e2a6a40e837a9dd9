//! The one thread of a process that writes to a log: it commits all queued appends together.
//!
//! Each append of a batch is judged alone, in order, against the database and the appends accepted before it, so a
//! refusal never fails another append. There is no timer: the next batch queues while the previous one commits. While
//! idle, the thread polls for commits of other processes.

use std::mem::Discriminant;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use super::bell::Bell;
use super::checkpoint::Checkpoints;
use super::ledger::{Memory, Writing};
use super::location::Location;
use super::location::STATEMENTS_MAX;
use super::lock::AppendLock;
use super::migrations;
use super::read::{self, Snapshot};
use super::tables::{Names, look};
use crate::append::{Append, Appended};
use crate::clock::LogTime;
use crate::error::{Error, Result};
use crate::judge::Judge;
use crate::limits::POLL_INTERVAL;
use crate::query::{Query, Range};
use crate::queue::{Request, answer, drain, last_of, recorded};
use crate::tail::{Deed, Look, Tail};

/// The most events of others that are read for all followers; beyond it, each follower reads its own pages.
const OTHERS_MAX: i64 = 512;

/// The settings of a writer.
pub(super) struct Start {
    pub(super) location: Location,
    /// True if a missing log is created.
    pub(super) create: bool,
    pub(super) queue: mpsc::Receiver<Request>,
    /// True once all other connections of this process are closed. The last connection to close removes the -wal file,
    /// and two that close at once may each leave it to the other.
    pub(super) is_alone: watch::Receiver<bool>,
    /// Dropped when the log is closed and the queue is empty.
    pub(super) done: watch::Sender<()>,
    pub(super) tail: Arc<Tail>,
    pub(super) log_time: Arc<LogTime>,
}

/// Starts the thread, and returns once the log is open and migrated. The thread ends when the queue closes.
pub(super) async fn start(start: Start) -> Result<()> {
    let (ready, opened) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("crewlog-writer".into()).spawn(move || run(start, ready));
    spawned.map_err(|error| Error::storage("starting the writer", error))?;
    opened.await.map_err(|_| Error::Closed)?
}

fn run(mut start: Start, ready: oneshot::Sender<Result<()>>) {
    let opened = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Error::storage("starting the writer", error))
        .and_then(|runtime| Ok((Writer::open(&start)?, runtime)));
    match opened {
        Ok((mut writer, runtime)) => {
            // The opener may have gone; its clones of the queue then close too.
            let _ = ready.send(Ok(()));
            writer.serve(start.queue, &runtime);
            // Without a sender the store was dropped, and no close is waiting.
            let _ = runtime.block_on(start.is_alone.wait_for(|is_alone| *is_alone));
            drop(writer);
            drop(start.done);
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
    memory: Memory,
    bell: Option<Bell>,
    checkpoints: Checkpoints,
    tail: Arc<Tail>,
    data_version: i64,
    /// Set if the connection must be replaced before further use.
    is_distrusted: bool,
    /// The reported fault that keeps it from polling.
    failing: Option<Discriminant<Error>>,
}

impl Writer {
    fn open(start: &Start) -> Result<Self> {
        let location = start.location.clone();
        // A possibly foreign file is examined before a lock file is created next to it.
        let judged = location.exists().then(|| location.connect()).transpose()?;
        judged.iter().try_for_each(|connection| location.check_wal(connection))?;
        let lock = location.open_lock()?;
        let connection = match judged {
            // An existing log is opened without waiting for its writers.
            Some(connection) if migrations::is_made(&connection, &location)? => connection,
            judged => {
                // Two processes must not create one log at the same time.
                let _held = location.hold(lock.as_ref())?;
                location.make(start.create)?;
                let mut connection = judged.map_or_else(|| location.connect(), Ok)?;
                migrations::check_that_nothing_is_lost(&connection, &location, start.create)?;
                location.make_durable(&connection)?;
                migrations::make(&mut connection, &location, start.log_time.now())?;
                connection
            }
        };
        location.make_durable(&connection)?;
        location.remember();
        Checkpoints::count(&connection);
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let mut writer = Self {
            bell: Bell::beside(&location),
            checkpoints: Checkpoints::new(location.clone()),
            location,
            lock,
            connection,
            log_time: Arc::clone(&start.log_time),
            memory: Memory::default(),
            tail: Arc::clone(&start.tail),
            data_version: 0,
            is_distrusted: false,
            failing: None,
        };
        writer.look()?;
        Ok(writer)
    }

    fn serve(&mut self, mut queue: mpsc::Receiver<Request>, runtime: &tokio::runtime::Runtime) {
        let mut due = Instant::now() + POLL_INTERVAL;
        loop {
            let is_asked = match runtime.block_on(next(&mut queue, &self.tail, due)) {
                Next::Append(first) => {
                    self.commit(drain(*first, &mut queue));
                    false
                }
                Next::Close => {
                    // Queued appends are committed; later ones are refused.
                    queue.close();
                    while let Some(first) = runtime.block_on(queue.recv()) {
                        self.commit(drain(first, &mut queue));
                    }
                    return;
                }
                // While polling fails, hints do not make it more frequent.
                Next::Look => self.failing.is_none(),
                Next::End => return,
            };
            let now = Instant::now();
            if is_asked || now >= due {
                due = now + POLL_INTERVAL;
                self.attend();
            }
        }
    }

    /// Maintains the doorbell, and polls for commits of others.
    fn attend(&mut self) {
        if let Some(bell) = &mut self.bell {
            bell.attend(&self.tail);
        }
        let looked = self.look();
        self.tail.tried(Deed::Poll, &looked);
        match looked {
            Ok(()) => self.failing = None,
            Err(error) => {
                let state = std::mem::discriminant(&error);
                let is_broken = !matches!(error, Error::Locked { .. });
                if self.failing.replace(state) != Some(state) {
                    self.tail.failed(error);
                }
                if is_broken {
                    self.distrust();
                }
            }
        }
    }

    /// Detects commits of others: SQLite counts them in `data_version`.
    fn look(&mut self) -> Result<()> {
        self.renew()?;
        let fault = |error| self.location.fault("looking for new events", error);
        self.location.check_same()?;
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(fault)?;
        if version != self.data_version {
            self.publish_others().map_err(fault)?;
            self.data_version = version;
        }
        Ok(())
    }

    /// Publishes the commits of others, which are read once for all followers.
    fn publish_others(&self) -> rusqlite::Result<()> {
        let (before, head) = (self.tail.seen(), self.tail.head());
        let connection = &self.connection.unchecked_transaction()?;
        let Look { end, time, generation, is_same, .. } = look(connection, &self.tail, before)?;
        self.log_time.learn(time);
        let n_new = end.head.0 - head.0;
        if is_same && self.tail.is_followed() && (1..=OTHERS_MAX).contains(&n_new) {
            let limit = usize::try_from(n_new).unwrap_or(0);
            let (snapshot, range) = (Snapshot { connection, end }, Range::between(head, end.head));
            let page = read::page(&snapshot, &mut Names::default(), &Query::all(), range, limit)?;
            self.tail.publish(generation, page.events);
        }
        self.tail.grew(generation, end);
        Ok(())
    }

    /// Commits a batch and answers its callers.
    fn commit(&mut self, batch: Vec<Request>) {
        let (appends, replies): (Vec<Append>, Vec<_>) =
            batch.into_iter().map(|request| (request.append, request.reply)).unzip();
        match answer(replies, self.try_commit(appends)) {
            None => self.checkpoints.attend(&self.connection),
            // The fault is not one of the connection: a lock timeout, or a file that was replaced meanwhile.
            Some(Error::Locked { .. } | Error::Replaced { .. } | Error::WentBack { .. }) => {
                self.memory = Memory::default();
            }
            Some(_) => self.distrust(),
        }
    }

    /// `Err` if nothing of the batch is known to be in the log.
    fn try_commit(&mut self, appends: Vec<Append>) -> Result<Vec<Result<Appended>>> {
        let location = self.location.clone();
        let fault = |error| location.fault("appending", error);
        let held = location.hold(self.lock.as_ref())?;
        location.check_same()?;
        self.renew()?;
        let before = self.tail.seen();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let look = look(&transaction, &self.tail, before).map_err(fault)?;
        self.tail.check_look(look)?;
        let Look { end: start, generation, .. } = look;
        let reading = self.log_time.after_by(look.time, look.now);
        let writing = Writing::new(&transaction, &mut self.memory, look).map_err(fault)?;
        let mut judge = Judge::begin(writing, start.head, &reading).map_err(fault)?;
        let judged = appends.iter().map(|append| match self.tail.check(append.generation) {
            Ok(()) => judge.judge(append).map_err(fault),
            Err(refusal) => Ok(Err(refusal)),
        });
        let outcomes = judged.collect::<Result<Vec<_>>>()?;
        let (head, time) = (judge.head(), judge.written_at().unwrap_or(look.time));
        drop(judge);
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::Before(start.head, head));
        transaction.commit().map_err(fault)?;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::After(start.head, head));
        if let Some(bell) = self.bell.as_mut().filter(|_| head > start.head) {
            bell.ring(head);
        }
        let is_stepped = reading.stepped_back.is_some();
        if is_stepped {
            self.log_time.step_is_recorded();
        }
        drop(held);
        self.log_time.learn(time);
        let last = last_of(&appends, &outcomes).filter(|last| last.head == head);
        if head == start.head {
            self.tail.grew(generation, start);
        } else if self.tail.is_followed() && self.tail.head() == start.head && !is_stepped {
            self.tail.publish(generation, recorded(appends, &outcomes));
        } else if let Some(last) = last.filter(|_| !self.tail.is_followed()) {
            self.tail.grew(generation, last);
        } else if let Err(error) = self.publish_others() {
            // Everything is committed, and the next poll finds it.
            tracing::warn!(%error, "new events could not be read for those who follow");
            self.data_version = 0;
            last.inspect(|last| self.tail.grew(generation, *last));
        }
        Ok(outcomes)
    }

    /// After a fault the connection's cached state is not trusted: the next append or poll replaces it.
    fn distrust(&mut self) {
        (self.memory, self.is_distrusted) = (Memory::default(), true);
    }

    /// Replaces a distrusted connection.
    fn renew(&mut self) -> Result<()> {
        if !self.is_distrusted {
            return Ok(());
        }
        self.connection = self.location.connect_to_write()?;
        Checkpoints::count(&self.connection);
        self.data_version = 0;
        self.is_distrusted = false;
        Ok(())
    }
}

/// The thread's next step.
enum Next {
    Append(Box<Request>),
    /// The log was closed.
    Close,
    /// A poll was requested or is due.
    Look,
    /// All senders are gone, so nobody can append or follow any more.
    End,
}

async fn next(queue: &mut mpsc::Receiver<Request>, tail: &Tail, due: Instant) -> Next {
    tokio::select! {
        first = queue.recv() => first.map_or(Next::End, |first| Next::Append(Box::new(first))),
        () = tail.closed() => Next::Close,
        _ = tokio::time::timeout_at(due.into(), tail.asked()) => Next::Look,
    }
}
