//! Hosts: wherever one ends and another continues, and however many run, they append the same as one undisturbed
//! host.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crewlog_executors::crew::reacting::{Reacting, fold, host};
use crewlog_executors::liveness::LeaderLock;
use crewlog_mq::{
    Append, Appended, Backend, Error, EventStore, LogIdentity, Metadata, NewEvent, Page, Position, Query, Range,
    Recorded, Result, Sqlite, Start, Timestamp,
};
use crewlog_planner::crew::Reactor;
use crewlog_planner::crew::conflicts::{self, Conflicts};
use crewlog_planner::crew::statistics::{self, Statistics};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::recorded::{Scripted, append_again, appends, everything, rich_log};

/// The part of two events that must be equal: everything except position and time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    id: Uuid,
    aggregate: String,
    event_type: String,
    pub(super) data: String,
    tags: Vec<String>,
    metadata: Metadata,
}

/// The events of both processes, each in order.
pub(super) type Both = [Vec<Said>; 2];

pub(super) async fn said(store: &EventStore) -> Both {
    let mut both = Both::default();
    for (of_one, stream) in both.iter_mut().zip([conflicts::STREAM, statistics::STREAM]) {
        of_one.extend(everything(store, &Query::stream(stream)).await.into_iter().map(|recorded| Said {
            metadata: recorded.metadata().unwrap(),
            id: recorded.event_id,
            aggregate: recorded.aggregate_id,
            event_type: recorded.event_type,
            data: recorded.data,
            tags: recorded.tags,
        }));
    }
    both
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it hangs")
}

/// A new log with these appends.
pub(super) async fn log_of(appends: &[&[Recorded]]) -> (EventStore, Scripted) {
    let clock = Scripted::default();
    let store = EventStore::on(Sqlite::in_memory(clock.options()).await.unwrap());
    append_again(&store, &clock, appends).await;
    (store, clock)
}

/// A host of both processes, until they have processed the log up to a position.
pub(super) async fn catch_up(store: &EventStore, up_to: Option<Position>) -> Result<()> {
    Reacting::<Conflicts>::new(store.clone()).catch_up(up_to).await?;
    Reacting::<Statistics>::new(store.clone()).catch_up(up_to).await
}

/// The events that one undisturbed host appends to a log.
pub(super) async fn by_one_host(log: &[Recorded]) -> Both {
    let (store, _clock) = log_of(&appends(log)).await;
    catch_up(&store, None).await.unwrap();
    said(&store).await
}

#[tokio::test]
async fn the_test_log_covers_every_kind_of_event() {
    let log = rich_log().await;
    let [conflicts, figures] = by_one_host(&log).await;
    assert!(log.len() > 70 && conflicts.len() > 15 && figures.len() > 3, "{} and {}", log.len(), figures.len());
    assert!(appends(&log).iter().any(|append| append.len() > 3));
    let resolutions =
        ["TaskCompleted", "TaskFailed", "NeedsClarification", "TaskReleased", "TaskStatusUpdated", "TaskClaimed"];
    for resolution in resolutions {
        let is_it = |said: &&Said| said.data.contains(&format!("\"resolution\":\"{resolution}\""));
        assert!(conflicts.iter().any(|said| is_it(&said)), "nothing is {resolution}: {conflicts:#?}");
    }
    for project in ["tree", "other"] {
        assert!(conflicts.iter().any(|said| said.aggregate == project), "{project}");
        assert!(figures.iter().any(|said| said.aggregate == project), "{project}");
    }
    let ids = conflicts.iter().chain(&figures).map(|said| said.id).collect::<BTreeSet<_>>();
    assert_eq!(ids.len(), conflicts.len() + figures.len());
    // Only the last event of an append is ever a cause: part of an append is not a state of the log.
    let causes = appends(&log).iter().map(|append| append[append.len() - 1].event_id).collect::<BTreeSet<_>>();
    for said in conflicts.iter().chain(&figures) {
        assert!(causes.contains(&said.metadata.causation_id.unwrap()) && said.metadata.correlation_id.is_some());
        assert_eq!(said.tags[said.tags.len() - 1], format!("project:{}", said.aggregate));
    }
}

#[tokio::test]
async fn after_a_host_ends_at_any_position_the_next_appends_the_rest_once() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    for position in 0..=log.len() {
        let (store, _clock) = log_of(&appends(&log)).await;
        catch_up(&store, Some(Position(i64::try_from(position).unwrap()))).await.unwrap();
        catch_up(&store, None).await.unwrap();
        assert_eq!(said(&store).await, expected, "ended at {position}");
    }
}

#[tokio::test]
async fn appends_between_two_hosts_change_nothing() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let appends = appends(&log);
    for n_appends in 0..=appends.len() {
        let (store, clock) = log_of(&appends[..n_appends]).await;
        catch_up(&store, None).await.unwrap();
        append_again(&store, &clock, &appends[n_appends..]).await;
        catch_up(&store, None).await.unwrap();
        assert_eq!(said(&store).await, expected, "ended after {n_appends} appends");
    }
}

#[tokio::test]
async fn a_host_at_the_head_appends_the_same_as_a_late_one() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let (store, clock) = log_of(&[]).await;
    let (mut conflicts, mut figures) =
        (Reacting::<Conflicts>::new(store.clone()), Reacting::<Statistics>::new(store.clone()));
    for append in appends(&log) {
        append_again(&store, &clock, &[append]).await;
        conflicts.catch_up(None).await.unwrap();
        figures.catch_up(None).await.unwrap();
    }
    assert_eq!(said(&store).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_concurrent_hosts_append_everything_once() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    for _ in 0..5 {
        let (store, _clock) = log_of(&appends(&log)).await;
        let both = [(); 2].map(|()| {
            let store = store.clone();
            tokio::spawn(async move { catch_up(&store, None).await })
        });
        for one in both {
            in_time(one).await.unwrap().unwrap();
        }
        assert_eq!(said(&store).await, expected);
    }
}

/// A difficult log: short pages, faults, and appends without a reply.
struct Hard {
    below: EventStore,
    page_events_max: usize,
    /// One in this many reads and appends fails; 0 for none.
    fails_every: usize,
    n_calls: AtomicUsize,
    /// This append is stored and never acknowledged.
    unheard: Option<usize>,
    n_appends: AtomicUsize,
    is_unheard: Arc<Notify>,
    /// The first reads of the whole log, up to this number, never return.
    n_reads_stuck: usize,
    n_reads: Arc<AtomicUsize>,
    is_stuck: Arc<Notify>,
    /// How far ahead a read of a single stream is.
    ahead: i64,
}

impl Hard {
    fn on(below: &EventStore) -> Self {
        let (n_calls, n_appends, is_unheard) = Default::default();
        let (n_reads_stuck, n_reads, is_stuck, ahead) = Default::default();
        Self {
            below: below.clone(),
            page_events_max: 500,
            fails_every: 0,
            n_calls,
            unheard: None,
            n_appends,
            is_unheard,
            n_reads_stuck,
            n_reads,
            is_stuck,
            ahead,
        }
    }

    fn may_fail(&self) -> Result<()> {
        let n_calls = self.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
        // Spread out, so that no caller falls into step with it.
        let spread = n_calls.wrapping_mul(0x9E37_79B9) >> 7;
        if self.fails_every > 0 && spread.is_multiple_of(self.fails_every) {
            return Err(Error::storage("trying", std::io::Error::other("not now")));
        }
        Ok(())
    }
}

impl Backend for Hard {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        async move {
            self.may_fail()?;
            let appended = self.below.append(append).await?;
            if Some(self.n_appends.fetch_add(1, Ordering::Relaxed)) == self.unheard {
                self.is_unheard.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(appended)
        }
        .boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move {
            self.may_fail()?;
            let is_whole = *query == Query::all();
            if is_whole && self.n_reads.fetch_add(1, Ordering::Relaxed) < self.n_reads_stuck {
                self.is_stuck.notify_one();
                std::future::pending::<()>().await;
            }
            let mut page = self.below.read(query, range, limit.min(self.page_events_max)).await?;
            if !is_whole {
                page.events.iter_mut().for_each(|recorded| recorded.position.0 += self.ahead);
            }
            Ok(page)
        }
        .boxed()
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.below.head().boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        async move {
            self.may_fail()?;
            self.below.whole(at).await
        }
        .boxed()
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.below.log().boxed()
    }

    fn import(
        &self,
        identity: LogIdentity,
        records: crewlog_mq::Records,
    ) -> BoxFuture<'_, Result<crewlog_mq::Imported>> {
        self.below.import(identity, records).boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<crewlog_mq::Checked>> {
        self.below.check().boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.below.close().boxed()
    }

    fn now(&self) -> Timestamp {
        self.below.now()
    }

    fn cells<'a>(
        &'a self,
        space: &'a str,
        from: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<crewlog_mq::Cell>>> {
        self.below.cells(space, from, limit).boxed()
    }

    fn stats(&self) -> BoxFuture<'_, Result<crewlog_mq::Stats>> {
        self.below.stats().boxed()
    }

    fn tail(&self) -> &std::sync::Arc<crewlog_mq::Tail> {
        self.below.backend().tail()
    }
}

#[tokio::test]
async fn page_boundaries_do_not_affect_the_result() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    for page_events_max in [1, 2, 3, 7] {
        let (store, _clock) = log_of(&appends(&log)).await;
        catch_up(&EventStore::on(Hard { page_events_max, ..Hard::on(&store) }), None).await.unwrap();
        assert_eq!(said(&store).await, expected, "{page_events_max} events a page");
    }
}

#[tokio::test]
async fn a_host_that_dies_before_an_acknowledgement_is_replaced_without_loss() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let mut n_cut = 0;
    loop {
        let (store, _clock) = log_of(&appends(&log)).await;
        let hard = Hard { unheard: Some(n_cut), ..Hard::on(&store) };
        let is_unheard = hard.is_unheard.clone();
        let hard = EventStore::on(hard);
        let is_cut = tokio::select! {
            () = is_unheard.notified() => true,
            done = catch_up(&hard, None) => { done.unwrap(); false }
        };
        catch_up(&store, None).await.unwrap();
        assert_eq!(said(&store).await, expected, "cut at append {n_cut}");
        if !is_cut {
            break;
        }
        n_cut += 1;
    }
    assert!(n_cut > 15, "only {n_cut} appends were cut");
}

#[tokio::test]
async fn repeated_log_failures_lose_nothing() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let (store, _clock) = log_of(&appends(&log)).await;
    let hard = EventStore::on(Hard { fails_every: 3, page_events_max: 5, ..Hard::on(&store) });
    let mut conflicts = Reacting::<Conflicts>::new(hard.clone());
    let mut figures = Reacting::<Statistics>::new(hard);
    let mut n_faults = 0;
    while conflicts.catch_up(None).await.is_err() {
        n_faults += 1;
        assert!(n_faults < 10_000, "it makes no way");
    }
    while figures.catch_up(None).await.is_err() {
        n_faults += 1;
        assert!(n_faults < 20_000, "it makes no way");
    }
    assert!(n_faults > 50);
    assert_eq!(said(&store).await, expected);
}

#[tokio::test]
async fn an_unreadable_event_is_skipped() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let (store, clock) = log_of(&appends(&log)[..10]).await;
    for (stream, aggregate) in [("planner", "one"), ("task", "one/2"), ("task", "odd"), ("weather", "x")] {
        let odd = NewEvent::from_json("Odd", "9.9", "[1]".into(), &Metadata::default()).unwrap();
        store.append(Append::to(stream, aggregate, crewlog_mq::Expected::Any, vec![odd])).await.unwrap();
    }
    append_again(&store, &clock, &appends(&log)[10..]).await;
    catch_up(&store, None).await.unwrap();
    assert_eq!(said(&store).await, expected);
}

#[tokio::test]
async fn a_reaction_already_logged_with_other_content_is_kept() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let (store, _clock) = log_of(&appends(&log)).await;
    let odd = NewEvent::from_json("StatisticsProjected", "1.0", "{}".into(), &Metadata::default()).unwrap();
    let odd = odd.with_id(expected[1][3].id);
    store.append(Append::to("elsewhere", "x", crewlog_mq::Expected::Any, vec![odd])).await.unwrap();
    catch_up(&store, None).await.unwrap();
    let mut without = expected.clone();
    without[1].remove(3);
    assert_eq!(said(&store).await, without);
}

#[tokio::test]
async fn a_reaction_logged_in_an_older_version_is_not_repeated() {
    let log = rich_log().await;
    let [_, mut expected] = by_one_host(&log).await;
    let (store, _clock) = log_of(&appends(&log)).await;
    let cause = expected[1].metadata.clone();
    let older = NewEvent::from_json("StatisticsProjected", "0.9", "{}".into(), &cause).unwrap();
    store.append(Append::to(statistics::STREAM, "tree", crewlog_mq::Expected::Any, vec![older])).await.unwrap();
    catch_up(&store, None).await.unwrap();
    let [_, mut figures] = said(&store).await;
    figures.remove(0);
    expected.drain(..2);
    assert_eq!(figures, expected, "only what follows from later events");
}

#[tokio::test]
async fn a_fold_on_demand_gives_the_appended_events() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let (store, _clock) = log_of(&appends(&log)).await;
    let head = store.head().await.unwrap();
    async fn told<R: Reactor>(store: &EventStore, head: Position) -> Vec<(Uuid, String, String)> {
        let mut told = Vec::new();
        let tell = |cause: &Recorded, said: crewlog_planner::crew::Emitted<R::Event>| {
            told.push((cause.event_id, said.project, crewlog_mq::Event::encode(&said.event).unwrap()));
        };
        fold::<R>(store, head, tell).await.unwrap();
        told
    }
    let folded = [told::<Conflicts>(&store, head).await, told::<Statistics>(&store, head).await];
    assert_eq!(store.head().await.unwrap(), head, "nothing is appended");
    let appended = expected.map(|of_one| {
        let told = of_one.into_iter().map(|said| (said.metadata.causation_id.unwrap(), said.aggregate, said.data));
        told.collect::<Vec<_>>()
    });
    assert_eq!(folded, appended);
}

/// Waits until a log has all expected events.
async fn until(store: &EventStore, expected: &Both) {
    for (of_one, stream) in expected.iter().zip([conflicts::STREAM, statistics::STREAM]) {
        let events = store.follow(&Query::stream(stream), Start::Beginning).take(of_one.len());
        in_time(events.collect::<Vec<_>>()).await;
    }
}

struct Hosting {
    stop: watch::Sender<bool>,
    tasks: Vec<tokio::task::JoinHandle<std::io::Result<()>>>,
}

impl Hosting {
    fn start(store: &EventStore, folder: &Path) -> Self {
        let (stop, is_stopped) = watch::channel(false);
        let conflicts = host::<Conflicts>(store.clone(), folder.to_owned(), is_stopped.clone());
        let figures = host::<Statistics>(store.clone(), folder.to_owned(), is_stopped);
        Self { stop, tasks: vec![tokio::spawn(conflicts), tokio::spawn(figures)] }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            in_time(task).await.unwrap().unwrap();
        }
    }

    /// As if its process had died.
    async fn die(self) {
        for task in self.tasks {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }
}

fn is_seat_taken(folder: &Path) -> bool {
    [Conflicts::NAME, Statistics::NAME].iter().all(|name| LeaderLock::take(folder, name).unwrap().is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_host_at_a_time_is_active_and_another_takes_over() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let appends = appends(&log);
    for dies in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let (clock, folder) = (Scripted::default(), place.path().join("workers"));
        let url = place.path().join("log.db").to_str().unwrap().to_owned();
        let store = EventStore::open_with(&url, clock.options()).await.unwrap();
        let other = EventStore::open_with(&url, clock.options()).await.unwrap();
        let half = appends.len() / 2;
        append_again(&store, &clock, &appends[..half]).await;
        let first = Hosting::start(&store, &folder);
        until(&store, &by_one_host(&appends[..half].concat()).await).await;
        assert!(is_seat_taken(&folder));
        let second = Hosting::start(&other, &folder);
        if dies {
            first.die().await;
        } else {
            first.stop().await;
        }
        append_again(&store, &clock, &appends[half..]).await;
        until(&store, &expected).await;
        assert!(is_seat_taken(&folder), "the second has it now");
        second.stop().await;
        assert!(!is_seat_taken(&folder), "and leaves it free");
        assert_eq!(said(&store).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_host_reading_during_writes_appends_the_same_as_a_later_one() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let place = tempfile::tempdir().unwrap();
    let (store, clock) = log_of(&[]).await;
    let slow = EventStore::on(Hard { page_events_max: 1, ..Hard::on(&store) });
    let hosting = Hosting::start(&slow, place.path());
    append_again(&store, &clock, &appends(&log)).await;
    hosting.stop().await;
    assert_eq!(said(&store).await, expected, "a host that is stopped takes in what is there first");
}

#[tokio::test]
async fn a_host_waiting_for_the_leader_lock_can_be_stopped() {
    let (place, (store, _clock)) = (tempfile::tempdir().unwrap(), log_of(&[]).await);
    let _leader_locks =
        [Conflicts::NAME, Statistics::NAME].map(|name| LeaderLock::take(place.path(), name).unwrap().unwrap());
    Hosting::start(&store, place.path()).stop().await;
}

/// Stops a host whose predecessors have processed half of a log, during its first read of the whole log.
/// Returns how often it read the whole log, and the events it appended.
async fn stopped_while_folding(log: &[Recorded], ahead: i64) -> (usize, Both) {
    let (place, (store, clock)) = (tempfile::tempdir().unwrap(), log_of(&appends(log)[..20]).await);
    catch_up(&store, None).await.unwrap();
    append_again(&store, &clock, &appends(log)[20..]).await;
    let slow = Hard { n_reads_stuck: 1, ahead, ..Hard::on(&store) };
    let (n_reads, is_stuck) = (slow.n_reads.clone(), slow.is_stuck.clone());
    let (stop, is_stopped) = watch::channel(false);
    let conflicts = tokio::spawn(host::<Conflicts>(EventStore::on(slow), place.path().to_owned(), is_stopped));
    in_time(is_stuck.notified()).await;
    stop.send_replace(true);
    in_time(conflicts).await.unwrap().unwrap();
    (n_reads.load(Ordering::Relaxed), said(&store).await)
}

#[tokio::test]
async fn a_stopping_host_finishes_a_short_fold_but_not_a_long_one() {
    let log = rich_log().await;
    let (before, expected) = (by_one_host(&appends(&log)[..20].concat()).await, by_one_host(&log).await);
    assert!(before[0].len() < expected[0].len());
    let (n_reads, near) = stopped_while_folding(&log, 0).await;
    assert_eq!((n_reads > 1, &near[0]), (true, &expected[0]), "what is left to fold is little");
    let (n_reads, far) = stopped_while_folding(&log, 1_000_000).await;
    assert_eq!((n_reads, &far[0]), (1, &before[0]), "it ends at once");
}
