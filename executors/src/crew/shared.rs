//! A handler shared by all callers of a process. Calls that arrive while another one waits for the database are
//! batched: one query and one append serve them all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crewlog_mq::{Cause, Error, Event, EventStore, ExecuteError, Executed, Handler, Position, Runner, Snapshot};
use tokio::sync::{MutexGuard, oneshot};

use super::Refusal;
use super::signs::{Hears, space};
use crate::caller::request;
use crate::signs::Signs;

/// The most commands in one append.
const TOGETHER_MAX: usize = 64;

/// A handler of a project.
pub(super) struct Shared<H: Handler>(Arc<Inner<H>>);

struct Inner<H: Handler> {
    store: EventStore,
    project: String,
    warm: tokio::sync::Mutex<WarmRunner<H>>,
    waiting: Mutex<Vec<Waiting<H>>>,
    n_calls: AtomicU64,
}

struct WarmRunner<H: Handler> {
    runner: Runner<H>,
    /// The last call that had begun before the log was last read.
    read_for: u64,
}

/// Takes the state after an append, and the result of one of its commands.
type Tell<H> = Box<dyn FnOnce(&H, Result<Executed<<H as Handler>::Event>, Refusal>) + Send>;

/// A command in the queue.
struct Waiting<H: Handler> {
    command: H::Command,
    cause: Cause,
    tell: Tell<H>,
}

/// A handler that is up to date. Its lock is held, so keep it only briefly.
pub struct Read<'a, H: Handler>(MutexGuard<'a, WarmRunner<H>>);

impl<H> Shared<H>
where
    H: Handler + Snapshot + Hears + Send + Sync + 'static,
    H::Command: Clone + Send,
    H::Event: Event + Send,
    H::Error: Into<Refusal> + Send,
{
    pub fn new(store: &EventStore, project: &str) -> Self {
        let warm = tokio::sync::Mutex::new(WarmRunner { runner: runner(store, project), read_for: 0 });
        let (store, project) = (store.clone(), project.to_owned());
        Self(Arc::new(Inner { store, project, warm, waiting: Mutex::default(), n_calls: AtomicU64::new(0) }))
    }

    /// The handler with all events that were in the log at the time of the call.
    pub async fn read(&self) -> Result<Read<'_, H>, Error> {
        let call = self.0.n_calls.fetch_add(1, Ordering::SeqCst) + 1;
        let mut warm = self.0.warm.lock().await;
        if warm.read_for < call {
            let read_for = self.0.n_calls.load(Ordering::SeqCst);
            warm.read_for = 0;
            self.0.hear(&mut warm.runner).await?;
            warm.runner.catch_up().await?;
            warm.read_for = read_for;
        }
        Ok(Read(warm))
    }

    /// Decides a command on the newest state and appends its events, even if the caller goes away. Returns the value of
    /// `look` for the result and the state after the append, in which a later command may already have undone this one.
    pub async fn execute<T: Send + 'static>(
        &self,
        command: H::Command,
        look: impl FnOnce(&H, Executed<H::Event>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (sender, told) = oneshot::channel();
        // A caller that is gone needs no answer.
        let tell = Box::new(move |handler: &H, executed: Result<_, Refusal>| {
            drop(sender.send(executed.map(|executed| look(handler, executed))));
        });
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { command, cause: request(), tell });
        // In a separate task: the work that others wait for continues without this caller.
        let inner = self.0.clone();
        tokio::spawn(async move { inner.execute_waiting().await });
        told.await.unwrap_or(Err(Refusal::Busy))
    }
}

impl<H> Inner<H>
where
    H: Handler + Hears,
    H::Command: Clone,
    H::Event: Event,
    H::Error: Into<Refusal>,
{
    async fn hear(&self, runner: &mut Runner<H>) -> Result<(), Error> {
        if H::HEARS {
            let signs = Signs::read(&self.store, &space(&self.project)).await?;
            runner.tell(move |handler| handler.hear(&signs));
        }
        Ok(())
    }

    async fn execute_waiting(&self) {
        let mut warm = self.warm.lock().await;
        let waiting: Vec<_> = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let n = waiting.len().min(TOGETHER_MAX);
            waiting.drain(..n).collect()
        };
        if waiting.is_empty() {
            return;
        }
        let commands = waiting.iter().map(|waiting| (waiting.command.clone(), waiting.cause.clone())).collect();
        let read_for = self.n_calls.load(Ordering::SeqCst);
        warm.read_for = 0;
        let executed = match self.hear(&mut warm.runner).await {
            Ok(()) => warm.runner.execute_all(commands).await,
            Err(error) => Err(error.into()),
        };
        match executed {
            Ok(executed) => {
                warm.read_for = read_for;
                for (Waiting { tell, .. }, executed) in waiting.into_iter().zip(executed) {
                    tell(warm.runner.handler(), executed.map_err(Into::into));
                }
            }
            Err(error) => {
                let why = || match &error {
                    ExecuteError::Store(error) => error.clone().into(),
                    ExecuteError::Refused(_) | ExecuteError::Contended { .. } => Refusal::Busy,
                };
                waiting.into_iter().for_each(|Waiting { tell, .. }| tell(warm.runner.handler(), Err(why())));
            }
        }
    }
}

impl<H: Handler> Read<'_, H>
where
    H::Command: Clone,
    H::Event: Event,
{
    /// The position up to which it was read.
    pub fn position(&self) -> Position {
        self.0.runner.position()
    }

    /// Its runner, for writes to several aggregates.
    pub(super) fn runner(&mut self) -> &mut Runner<H> {
        // After a failed append the state must be read again.
        self.0.read_for = 0;
        &mut self.0.runner
    }
}

impl<H: Handler> std::ops::Deref for Read<'_, H>
where
    H::Command: Clone,
    H::Event: Event,
{
    type Target = H;

    fn deref(&self) -> &H {
        self.0.runner.handler()
    }
}

/// A handler of the project. Its fold is named after its stream.
pub(super) fn runner<H>(store: &EventStore, project: &str) -> Runner<H>
where
    H: Handler + Snapshot,
    H::Command: Clone,
    H::Event: Event,
{
    Runner::new(store.clone(), H::FOLD, project, vec![format!("project:{project}")]).with_snapshots()
}
