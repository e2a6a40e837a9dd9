//! The reader threads of a process: a few, started on demand, each with its own connection. They take reads from one queue,
//! so a read proceeds whether or not its caller polls; the caller only awaits the answer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::location::Location;
use super::read::Snapshot;
use super::tables::{Names, look};
use crate::error::{Error, Result};
use crate::tail::{Look, Tail};

const THREADS_MAX: usize = 4;
/// A read checks after this many steps of SQLite whether the log was closed or its caller is gone.
pub(super) const STEPS: i32 = 10_000;

/// The reading threads of an open log. They end with its last clone.
#[derive(Clone)]
pub(super) struct Readers(Arc<Handle>);

struct Handle(Arc<Shared>);

struct Shared {
    location: Location,
    tail: Arc<Tail>,
    queue: Mutex<Queue>,
    /// Wakes an idle thread.
    work: Condvar,
    n_threads: watch::Sender<usize>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    n_idle: usize,
    is_closed: bool,
}

type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// The state of one thread. After a fault its connection is replaced.
struct Reader {
    shared: Arc<Shared>,
    open: Option<(Connection, Names)>,
}

impl Readers {
    pub(super) fn new(location: Location, tail: Arc<Tail>) -> Self {
        let (queue, work, n_threads) = (Mutex::default(), Condvar::new(), watch::Sender::new(0));
        Self(Arc::new(Handle(Arc::new(Shared { location, tail, queue, work, n_threads }))))
    }

    /// Reads in one snapshot, with the connection's cache of names.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Snapshot<'_>, &mut Names) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        // Dropped with this future.
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let job: Job = Box::new(move |reader| {
            // A caller that is gone needs no answer.
            if waiting.strong_count() > 0 {
                let _ = reply.send(reader.read(doing, waiting, read));
            }
        });
        self.0.0.push(job)?;
        // No answer: the log was closed, or the thread has ended.
        let lost = |error| if self.0.0.tail.is_closed() { Error::Closed } else { Error::storage(doing, error) };
        answer.await.map_err(lost)?
    }

    /// Starts no further read, stops running reads, and closes the connections.
    pub(super) async fn close(&self) {
        self.0.0.close();
        // The sender lives as long as this.
        let _ = self.0.0.n_threads.subscribe().wait_for(|n_threads| *n_threads == 0).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Shared {
    /// Queues a job, and starts a thread if none is free.
    fn push(self: &Arc<Self>, job: Job) -> Result<()> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(Error::Closed);
        }
        queue.jobs.push_back(job);
        let n_threads = *self.n_threads.borrow();
        if queue.jobs.len() <= queue.n_idle || n_threads == THREADS_MAX {
            self.work.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("crewlog-reader".into()).spawn(move || shared.serve());
        match spawned {
            Ok(_thread) => self.n_threads.send_modify(|n_threads| *n_threads += 1),
            // The existing threads take the job.
            Err(_) if n_threads > 0 => {}
            Err(error) => return Err(Error::storage("starting a reader", error)),
        }
        Ok(())
    }

    fn serve(self: Arc<Self>) {
        let _leaving = Leaving(Arc::clone(&self));
        let mut reader = Reader { shared: self, open: None };
        while let Some(job) = reader.shared.next() {
            job(&mut reader);
        }
    }

    /// The next job; `None` once the log is closed.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            queue.n_idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.n_idle -= 1;
        }
    }

    fn close(&self) {
        let jobs = {
            let mut queue = self.queue();
            queue.is_closed = true;
            std::mem::take(&mut queue.jobs)
        };
        // Dropped outside the lock; the callers get `Closed`.
        drop(jobs);
        self.work.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uncounts a thread that ends or panics, after its connection is closed.
struct Leaving(Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.n_threads.send_modify(|n_threads| *n_threads -= 1);
    }
}

impl Reader {
    fn read<T>(
        &mut self,
        doing: &'static str,
        waiting: Weak<()>,
        read: impl FnOnce(&Snapshot<'_>, &mut Names) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let Shared { location, tail, .. } = &*self.shared;
        location.check_same()?;
        let (connection, mut names) = match self.open.take() {
            Some(open) => open,
            None => (location.connect_to_read()?, Names::default()),
        };
        let read_all = || {
            let closing = Arc::clone(tail);
            let is_over = move || closing.is_closed() || waiting.strong_count() == 0;
            connection.progress_handler(STEPS, Some(is_over))?;
            let before = tail.seen();
            let transaction = connection.unchecked_transaction()?;
            let Look { end, generation, is_same, .. } = look(&transaction, tail, before)?;
            names.enter(generation, is_same);
            read(&Snapshot { connection: &transaction, end }, &mut names)
        };
        match read_all() {
            Ok(found) => {
                self.open = Some((connection, names));
                Ok(found)
            }
            Err(_) if tail.is_closed() => Err(Error::Closed),
            Err(error) => Err(location.fault(doing, error)),
        }
    }
}
