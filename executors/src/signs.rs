//! Signs of life, in one cell for each agent or worker. Most calls of an agent, and each minute of a worker, say nothing but that
//! it lives, and nobody asks later when it did.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use crewlog_mq::{Append, CellChange, Error, EventStore, Timestamp};
use crewlog_planner::claim::{Executor, Holder, LEASE, TaskError, TaskLease};
use crewlog_planner::crew::agents::{SEEN_EVERY, SessionState};
use tokio::sync::watch;

use crate::liveness::{Life, LivenessLock};

/// The cells of one read.
const PAGE: usize = 1_000;
/// The cells with the signs of workers.
const WORKERS: &str = "worker";
/// The pauses of a worker before its first sign, after a sign, and after one that failed.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), SEEN_EVERY, Duration::from_secs(5)];
/// The longest time for one sign.
const SIGN_MAX: Duration = Duration::from_secs(20);
/// The runs of a worker stop this long before others may take its tasks.
const STOP_BEFORE: Duration = Duration::from_secs(45);
/// After this time nothing depends on the sign of a worker.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// When agents or workers were last seen, in log time.
#[derive(Debug, Clone)]
pub struct Signs {
    seen: BTreeMap<String, Timestamp>,
    /// The state of agents that was recorded with their signs, as JSON.
    shown: BTreeMap<String, String>,
    /// When one without a sign counts as seen: so long ago that its next call leaves one.
    pub(crate) unknown: Timestamp,
}

impl Signs {
    /// Those in a space of cells.
    pub(crate) async fn read(store: &EventStore, space: &str) -> Result<Self, Error> {
        let (mut seen, mut shown, mut from) = (BTreeMap::new(), BTreeMap::new(), String::new());
        loop {
            let cells = store.cells(space, &from, PAGE).await?;
            let is_last = cells.len() < PAGE;
            // It is read twice, at the end of one page and the beginning of the next.
            from = cells.last().map(|cell| cell.key.clone()).unwrap_or_default();
            for cell in cells {
                let (at, state) = cell.value.split_once(' ').unwrap_or((&cell.value, ""));
                let Ok(at) = at.parse() else { continue };
                if !state.is_empty() {
                    shown.insert(cell.key.clone(), state.to_owned());
                }
                seen.insert(cell.key, Timestamp(at));
            }
            if is_last {
                let unknown = Timestamp(store.now().0 - i64::try_from(SEEN_EVERY.as_micros()).unwrap_or_default());
                return Ok(Self { seen, shown, unknown });
            }
        }
    }

    /// The last sign of an agent or worker.
    pub(crate) fn of(&self, name: &str) -> Option<Timestamp> {
        self.seen.get(name).copied()
    }

    /// The state that was recorded with the last sign of an agent.
    pub(crate) fn state_of(&self, name: &str) -> Option<SessionState> {
        self.shown.get(name).and_then(|state| serde_json::from_str(state).ok())
    }

    /// Records that an agent or worker is seen.
    pub(crate) async fn put(store: &EventStore, space: &str, name: &str) -> Result<(), Error> {
        Self::put_with(store, space, name, &SessionState::default()).await
    }

    /// Records that an agent is seen, and its state.
    pub(crate) async fn put_with(
        store: &EventStore,
        space: &str,
        name: &str,
        state: &SessionState,
    ) -> Result<(), Error> {
        let mut sign = store.now().0.to_string();
        // The signs of workers, and of agents without hooks, stay numbers.
        if *state != SessionState::default() {
            let state = serde_json::to_string(state).expect("numbers, texts and maps of them are JSON");
            sign = format!("{sign} {state}");
        }
        store.append(Append::default().cell(CellChange::set(space, name, sign))).await.map(drop)
    }

    /// Begins those of the present that have none, and ends those of the others that left.
    pub(crate) async fn begin(
        store: &EventStore,
        space: &str,
        present: &BTreeSet<String>,
        left: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let (signs, now) = (Self::read(store, space).await?, store.now().0.to_string());
        let begun = present.iter().filter(|name| !signs.seen.contains_key(*name));
        let begun = begun.map(|name| CellChange::set(space, name, now.clone()));
        let ended = signs.seen.keys().filter(|name| left.contains(*name));
        change(store, begun.chain(ended.map(|name| CellChange::delete(space, name)))).await
    }

    /// Those of all workers.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn of_workers(store: &EventStore) -> Result<Self, Error> {
        Self::read(store, WORKERS).await
    }

    /// The last sign of the worker of an executor.
    #[must_use]
    pub fn of_worker(&self, executor: &Executor) -> Option<Timestamp> {
        self.of(&key_of(executor))
    }

    /// True unless the lease of a holder has run out and its worker has left no later sign. One without a sign counts as
    /// seen at that end.
    #[must_use]
    pub fn keep(&self, holder: &Holder, now: Timestamp) -> bool {
        let ended = holder.lease_until.unwrap_or(now);
        let is_seen = || now.since(self.of_worker(&holder.executor).unwrap_or(ended)) < LEASE;
        !holder.has_expired(now) || is_seen()
    }

    /// The host, the process and the last sign of each worker.
    pub fn workers(&self) -> impl Iterator<Item = (&str, &str, Timestamp)> {
        self.seen.iter().filter_map(|(key, seen)| {
            let (worker, host) = key.split_once('@')?;
            Some((host, worker, *seen))
        })
    }
}

async fn change(store: &EventStore, changes: impl Iterator<Item = CellChange>) -> Result<(), Error> {
    let changes: Vec<_> = changes.take(PAGE).collect();
    if changes.is_empty() {
        return Ok(());
    }
    store.append(changes.into_iter().fold(Append::default(), Append::cell)).await.map(drop)
}

fn key_of(Executor { host, worker, .. }: &Executor) -> String {
    format!("{worker}@{host}")
}

/// When a worker was last known to live: now by its lock on this host, by its sign elsewhere; never if it is proven dead. One
/// that has no sign begins now, since its log may come from a backup.
pub(crate) async fn last_seen(
    store: &EventStore,
    life: &LivenessLock,
    executor: &Executor,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    match life.locks().life(executor) {
        Life::Live => return Ok(Some(now)),
        Life::Dead => return Ok(None),
        Life::Unknown => {}
    }
    let key = key_of(executor);
    let sign = store.cell(WORKERS, &key).await?;
    let seen = sign.and_then(|cell| cell.value.parse().ok()).map(Timestamp);
    if seen.is_none() {
        Signs::put(store, WORKERS, &key).await?;
    }
    Ok(seen.or(Some(now)))
}

/// Refuses to take a task from a holder whose lease has run out while it is known to live: by its lock on this host, by a later
/// sign elsewhere. The clock of a host that slept, or was set, takes nothing from a living process.
pub(crate) async fn check_expired(
    store: &EventStore,
    life: &LivenessLock,
    task: &TaskLease,
    now: Timestamp,
) -> Result<Result<(), TaskError>, Error> {
    let Some(held) = task.holder.as_ref().filter(|held| held.has_expired(now)) else { return Ok(Ok(())) };
    let seen = last_seen(store, life, &held.executor, now).await?;
    Ok(task.check_unheld(|_| seen.is_some_and(|seen| now.since(seen) < LEASE)))
}

/// Leaves signs of life of a worker, and tells when others may soon take its tasks, since the log was out of reach for too long.
pub(crate) async fn leave_signs(store: EventStore, worker: Executor, lost: watch::Sender<()>) {
    let key = key_of(&worker);
    let (mut signed, mut pause) = (store.now(), PAUSES[0]);
    loop {
        tokio::time::sleep(pause).await;
        let now = store.now();
        let is_signed = sign(&store, WORKERS, &key).await;
        (signed, pause) = if is_signed { (now, PAUSES[1]) } else { (signed, PAUSES[2]) };
        // Log time counts the sleep of the machine. On one host a held lock keeps the tasks.
        if !store.backend().is_local() && may_be_taken(signed, store.now()) {
            tracing::warn!("the log is out of reach, and the leases of this worker end: its runs are stopped");
            lost.send_replace(());
            signed = store.now();
        }
    }
}

/// Leaves signs of life in a space, as long as it is polled, after the one with which it began.
pub(crate) async fn stay(store: &EventStore, space: &str, name: &str) -> Infallible {
    let mut pause = PAUSES[1];
    loop {
        tokio::time::sleep(pause).await;
        pause = if sign(store, space, name).await { PAUSES[1] } else { PAUSES[2] };
    }
}

async fn sign(store: &EventStore, space: &str, name: &str) -> bool {
    match tokio::time::timeout(SIGN_MAX, Signs::put(store, space, name)).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => error.warn("a sign of life was not recorded"),
        Err(_) => {}
    }
    false
}

/// Removes the sign of a worker that ends, and those of workers that nobody has heard of for long.
pub(crate) async fn end_signs(store: &EventStore, worker: &Executor) -> Result<(), Error> {
    let (signs, own, now) = (Signs::of_workers(store).await?, key_of(worker), store.now());
    let is_over = |(key, seen): &(&String, &Timestamp)| **key == own || now.since(**seen) > FORGOTTEN_AFTER;
    let over = signs.seen.iter().filter(is_over);
    change(store, over.map(|(key, _)| CellChange::delete(WORKERS, key))).await
}

/// True if others may soon take the tasks of a worker that left its last sign at a time.
fn may_be_taken(signed: Timestamp, now: Timestamp) -> bool {
    now.since(signed) + STOP_BEFORE >= LEASE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_out_of_reach_of_the_log_ends_before_its_lease() {
        let at = |seconds: u64| Timestamp(0).plus(Duration::from_secs(seconds));
        for (seconds, expected) in [(0, false), (134, false), (135, true), (3_600, true)] {
            assert_eq!(may_be_taken(at(0), at(seconds)), expected, "{seconds}");
        }
        // The last look before comes at most this much earlier.
        let last = STOP_BEFORE - PAUSES[2] - SIGN_MAX;
        assert!(last > Duration::from_secs(10), "time to stop the program: {last:?}");
    }
}
