//! How a worker comes to hold a task that was dispatched: with a place to run it in, once nothing holds it back, and against
//! others who want it. It runs nothing, and says nothing of how a task ended.

use std::collections::BTreeMap;
use std::time::Duration;

use crewlog_mq::{EventStore, ExecuteError, Runner};
use crewlog_planner::claim::{Executor, TaskClaim, TaskCommand, TaskError};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::agent::Agent;
use crate::backoff::Backoff;
use crate::dispatched::Dispatch;
use crate::liveness::SignOfLife;
use crate::pauses::{Held, Holds};
use crate::planning::is_for_ever;
use crate::roster::Actor;
use crate::run::{Stop, wanted};

/// How often a worker looks whether the holder of a task that it wants has died.
const HOLDER_INTERVAL: Duration = Duration::from_millis(100);
/// How many such looks there are at the most before the task is asked for again.
const HOLDER_LOOKS_MAX: u32 = 10;
/// How often it is looked whether a task has room by now that others kept from it: what they give back, the plan does not tell.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);
/// How often a task is asked for before somebody is told.
const HELD_SILENTLY_MAX: u32 = 10;

/// With what a worker claims tasks.
pub(crate) struct Claiming {
    store: EventStore,
    life: SignOfLife,
    places: Semaphore,
    /// By agent: the tasks that it may carry out at once.
    agent_places: BTreeMap<String, Semaphore>,
    holds: Holds,
    /// Told when something may no longer be held back.
    resumed: watch::Sender<()>,
}

/// A place among those of an actor, if it has a limit of its own, and one among all.
///
/// A task that only waits, for a plan of its own or for an answer, takes neither: what it waits for may need them.
pub(crate) type Places<'a> = (Option<SemaphorePermit<'a>>, Option<SemaphorePermit<'a>>);

impl Claiming {
    /// For at most `jobs` tasks at once, and of each agent as many as it takes.
    pub(crate) fn new(store: EventStore, life: SignOfLife, jobs: usize, agents: &[Agent]) -> Self {
        let agent_places = agents.iter().map(|agent| (agent.name.clone(), Semaphore::new(agent.jobs)));
        let (agent_places, places) = (agent_places.collect(), Semaphore::new(jobs));
        Self { store, life, places, agent_places, holds: Holds::default(), resumed: watch::channel(()).0 }
    }

    /// By what others see that who claims here is alive.
    pub(crate) fn life(&self) -> &SignOfLife {
        &self.life
    }

    /// Has what is held back looked at again: it may no longer be.
    pub(crate) fn look_again(&self) {
        self.resumed.send_replace(());
    }

    /// Wins the task with a place to run it in, sooner or later; `None` when it is no longer to be had. No place is
    /// kept while somebody else holds the task, and no claim is left behind half made.
    pub(crate) async fn win(
        &self,
        actor: Actor<'_>,
        claim: &mut Runner<TaskClaim>,
        dispatch: &Dispatch,
        stop: &mut watch::Receiver<Option<Stop>>,
    ) -> Option<(Places<'_>, u64)> {
        let mut dead_epoch = None;
        let mut backoff = Backoff::new();
        let mut n_held = 0_u32;
        loop {
            let mut holder = None;
            let places = tokio::select! {
                places = self.places_unless_held_back(actor, dispatch) => places?,
                _ = wanted(stop) => return None,
            };
            let command = TaskCommand::Claim {
                attempt: dispatch.attempt,
                executor: self.life.executor(actor.name()),
                now: self.store.now(),
                dead_epoch,
            };
            let cause = dispatch.cause.clone().keeping(command.recorded());
            let pause = match claim.execute(command, &cause).await {
                Ok(_) => return Some((places, claim.handler().epoch())),
                Err(ExecuteError::Refused(TaskError::Held { executor, epoch, .. })) => {
                    if self.life.is_dead(&executor) {
                        dead_epoch = Some(epoch);
                        continue;
                    }
                    n_held += 1;
                    if n_held == HELD_SILENTLY_MAX {
                        let (plan, task) = (&dispatch.plan, dispatch.task);
                        tracing::debug!(plan, %task, holder = %executor, "waiting for another worker's task");
                    }
                    holder = Some(executor);
                    Duration::ZERO
                }
                Err(ExecuteError::Refused(TaskError::AttemptEnded { .. } | TaskError::StaleEpoch { .. })) => {
                    return None;
                }
                Err(error @ (ExecuteError::Contended { .. } | ExecuteError::Store(_))) => {
                    tracing::warn!(%error, task = %dispatch.task, "a claim failed and is tried again");
                    backoff.pause()
                }
            };
            drop(places);
            let waited = async {
                tokio::time::sleep(pause).await;
                if let Some(holder) = holder {
                    self.wait_for(&holder, n_held).await;
                }
            };
            tokio::select! {
                () = waited => {}
                _ = wanted(stop) => return None,
            }
        }
    }

    /// A place among those of the actor, and one among all. The scarcer comes first, so that nobody who waits for it
    /// keeps a place from others.
    async fn places_for(&self, actor: Actor<'_>) -> Option<Places<'_>> {
        if actor.only_waits() {
            return Some((None, None));
        }
        let of_actor = match self.agent_places.get(actor.name()) {
            Some(places) => Some(places.acquire().await.ok()?),
            None => None,
        };
        Some((of_actor, Some(self.places.acquire().await.ok()?)))
    }

    /// The same, once neither the task nor its plan is paused, and no more run than may; until then no place is kept. The
    /// log is asked each time: of a pause that stands there before the place was free the subscription may not have told yet.
    async fn places_unless_held_back(&self, actor: Actor<'_>, dispatch: &Dispatch) -> Option<Places<'_>> {
        let mut resumed = self.resumed.subscribe();
        let mut backoff = Backoff::new();
        loop {
            let places = self.places_for(actor).await?;
            resumed.borrow_and_update();
            match self.holds.back(&self.store, &dispatch.plan, dispatch.task, dispatch.position).await {
                Ok(None) => return Some(places),
                Ok(Some(held)) => {
                    drop(places);
                    tokio::select! {
                        changed = resumed.changed() => changed.ok()?,
                        () = tokio::time::sleep(ROOM_INTERVAL), if held == Held::NoRoom => {}
                    }
                }
                Err(error) if is_for_ever(&error) => {
                    tracing::warn!(%error, task = %dispatch.task, "whether a task is held back cannot be read; it is left to others");
                    return None;
                }
                Err(error) => {
                    drop(places);
                    tracing::warn!(%error, task = %dispatch.task, "it is asked again whether a task is held back");
                    backoff.wait().await;
                }
            }
        }
    }

    /// Returns when a holder has died, or after a while that grows with the number of times that it was in the way.
    async fn wait_for(&self, holder: &Executor, n_held: u32) {
        for _ in 0..n_held.min(HOLDER_LOOKS_MAX) {
            tokio::time::sleep(HOLDER_INTERVAL).await;
            if self.life.is_dead(holder) {
                return;
            }
        }
    }
}
