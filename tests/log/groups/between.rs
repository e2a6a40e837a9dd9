//! Faults and delays between a worker and its log at chosen moments. The runtime's time is simulated.

use std::sync::atomic::{AtomicBool, Ordering};

use crewlog_mq::{
    Appended, Backend, Cell, Checked, Clock, Error, GroupCommand, Imported, LogIdentity, Memory, NewEvent, Options,
    Page, Records, Result, Stats, Tail, Timestamp, VersionStatus, group_handler,
};
use futures::FutureExt;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::*;

type Before = Box<dyn Fn(&Append) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// An in-memory log that runs this before each append; the append is skipped if it fails.
struct Between {
    log: Memory,
    before: Before,
}

impl Backend for Between {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        async move {
            (self.before)(&append).await?;
            self.log.append(append).await
        }
        .boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        self.log.read(query, range, limit)
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.log.head()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.log.whole(at)
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.log.log()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        self.log.import(identity, records)
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.log.check()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        self.log.cells(space, from, limit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.log.stats()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.log.close().boxed()
    }

    fn now(&self) -> Timestamp {
        self.log.now()
    }

    fn tail(&self) -> &Arc<Tail> {
        self.log.tail()
    }
}

struct Ticks(Instant);

impl Clock for Ticks {
    fn wall(&self) -> Timestamp {
        Timestamp(1_700_000_000_000_000).plus(self.0.elapsed())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

fn between(before: impl Fn(&Append) -> BoxFuture<'static, Result<()>> + Send + Sync + 'static) -> EventStore {
    let clock = Arc::new(Ticks(Instant::now()));
    let log = Memory::new(Options { clock, ..Options::default() });
    EventStore::on(Between { log, before: Box::new(before) })
}

fn in_memory() -> EventStore {
    between(|_| async { Ok(()) }.boxed())
}

/// True if a partition of this version only writes its checkpoint.
fn is_of_partition(append: &Append, version: u32) -> bool {
    let cell = format!("space: \"group/facts/{version}\", key: \"partition-");
    append.writes().is_empty() && format!("{append:?}").contains(&cell)
}

async fn pass(time: Duration) {
    tokio::time::interval_at(Instant::now() + time, time).tick().await;
}

/// An event with the same content and its own id.
fn made(event: &Recorded) -> NewEvent {
    let Ok(Fact::Noted { n }) = event.decode() else { panic!("nothing else is noted") };
    NewEvent::of(&Effect::Made { n }, &crewlog_mq::Metadata::default()).expect("it can be written as JSON")
}

async fn until_taken_over(store: &EventStore) -> GroupReport {
    let is_active =
        |report: &GroupReport| report.versions.last().map(|last| last.status) == Some(VersionStatus::Active);
    until(store, "the take-over", |report| report.versions.len() == 2 && is_active(report)).await
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_does_not_stop_a_handler_with_a_valid_lease() {
    let (renewed, renewals) = watch::channel(0);
    let is_begun = Arc::new(AtomicBool::new(false));
    let has_begun = Arc::clone(&is_begun);
    let store = between(move |append| {
        let mut is_bad = false;
        if has_begun.load(Ordering::SeqCst) && is_of_partition(append, 1) {
            renewed.send_modify(|n| *n += 1);
            // The first lease would have expired by now.
            is_bad = *renewed.borrow() == 4;
        }
        async move { if is_bad { Err(Error::storage("testing", std::io::Error::other("a fault"))) } else { Ok(()) } }
            .boxed()
    });
    append(&store, "a", 1).await;
    let seen = Seen::default();
    let handler = group_handler(|event, _| {
        seen.add("", event);
        is_begun.store(true, Ordering::SeqCst);
        let mut renewals = renewals.clone();
        Box::pin(async move {
            renewals.wait_for(|n| *n >= 7).await?;
            Ok(())
        })
    });
    let group = group(&store).partitions(1).lease(Duration::from_secs(6));
    run_to(&group, Position(1), handler).await;
    assert_eq!(seen.sequences()["a"], [1], "it was not given twice");
}

#[tokio::test(start_paused = true)]
async fn a_late_first_claim_keeps_the_progress_made_meanwhile() {
    let (claim, mut claimed) = watch::channel(false);
    let (open, opened) = watch::channel(false);
    let store = between(move |append| {
        // The first claim is delayed after its worker has found no cell.
        if is_of_partition(append, 1) && !claim.send_replace(true) {
            let mut opened = opened.clone();
            return async move { opened.wait_for(|is_open| *is_open).await.map(drop).map_err(|_| Error::Closed) }
                .boxed();
        }
        async { Ok(()) }.boxed()
    });
    let (seen, group) = (Seen::default(), group(&store).partitions(1));
    for n in 0..2 {
        append(&store, "a", n).await;
    }
    group.declare().await.unwrap();
    let (tell, told) = tokio::sync::oneshot::channel();
    // Runs next to the worker, which checks for its end only after the claim.
    let script = async {
        claimed.wait_for(|is_claimed| *is_claimed).await.unwrap();
        run_to_the_end(&group, &store, seen.noting()).await;
        open.send_replace(true);
        let last = append(&store, "a", 2).await;
        group.wait_until(last).await.unwrap();
        tell.send(()).expect("the worker waits");
    };
    let stop = told.map(|told| told.expect("it is told"));
    in_time("it", async { tokio::join!(group.run_until(seen.noting(), stop), script) }).await.0.unwrap();
    assert_eq!(seen.sequences()["a"], [1, 2, 3], "nothing is handled twice");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_worker_starts_no_queued_event() {
    let store = in_memory();
    for n in 0..60 {
        append(&store, &format!("a{n}"), n).await;
    }
    let (seen, gate, (begin, mut begun)) = (Seen::default(), Arc::new(Semaphore::new(0)), watch::channel(false));
    let handler = group_handler(|event, _| {
        seen.add("", event);
        begin.send_replace(true);
        let gate = Arc::clone(&gate);
        Box::pin(async move {
            drop(gate.acquire().await?);
            Ok(())
        })
    });
    let group = group(&store).partitions(16).concurrency(1);
    let (tell, told) = tokio::sync::oneshot::channel();
    let stop = async {
        begun.wait_for(|is_begun| *is_begun).await.expect("the handler is there");
        let is_held = |report: &GroupReport| report.versions[0].partitions.iter().all(|held| held.owner.is_some());
        until(&store, "all partitions are held", is_held).await;
        tell.send(()).expect("the other waits");
    };
    let open = async {
        told.await.expect("it is told");
        pass(Duration::from_secs(1)).await;
        gate.add_permits(100);
    };
    let (ended, ()) = in_time("the end", async { tokio::join!(group.run_until(handler, stop), open) }).await;
    ended.unwrap();
    assert_eq!(seen.sequences().len(), 1, "what was begun is finished, and nothing else is begun");
}

#[tokio::test(start_paused = true)]
async fn a_replay_during_a_rebuild_does_not_allow_an_early_take_over() {
    const N: i64 = 50;
    let store = in_memory();
    for n in 0..N {
        append(&store, &if n < 5 { "bad".to_owned() } else { format!("a{}", n % 5) }, n).await;
    }
    let (blue, green) = (group(&store).park_after(1), group(&store).version(2).partitions(1));
    blue.declare().await.unwrap();
    let fails = AtomicBool::new(true);
    let [replaying, rebuilding] = [0, 20].map(|n| Arc::new(Semaphore::new(n)));
    // With new ids, so that repeated work is detected.
    let old = group_handler(|event, delivery| {
        let (fails, replaying) = (fails.load(Ordering::SeqCst), Arc::clone(&replaying));
        Box::pin(async move {
            if event.aggregate_id == "bad" {
                if fails {
                    return Err("never".into());
                }
                drop(replaying.acquire().await?);
            }
            delivery.write("effects", &event.aggregate_id, Expected::Any, vec![made(event)]);
            Ok(())
        })
    });
    let new = group_handler(|event, delivery| {
        let rebuilding = Arc::clone(&rebuilding);
        Box::pin(async move {
            rebuilding.acquire().await?.forget();
            delivery.write("effects", &event.aggregate_id, Expected::Any, vec![made(event)]);
            Ok(())
        })
    });
    let script = async {
        green.wait_until(Position(20)).await.unwrap();
        fails.store(false, Ordering::SeqCst);
        let replay = GroupCommand::Replay { version: 1, aggregate: None };
        store.groups().execute("facts", replay).await.unwrap();
        until(&store, "the replay", |report| report.versions[0].floor < Position(20)).await;
        pass(Duration::from_secs(5)).await;
        replaying.add_permits(100);
        rebuilding.add_permits(100);
        assert!(until_taken_over(&store).await.versions[1].floor >= Position(N));
        green.wait_until(store.head().await.unwrap()).await.unwrap();
    };
    let then = async {
        blue.wait_until(Position(N)).await.unwrap();
        green.run_until(new, script).await
    };
    let both = async { tokio::join!(blue.run(old), then) };
    in_time("it", both).await.1.unwrap();
    let mut all: Vec<_> = effects(&store).await.into_values().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..N).collect::<Vec<_>>(), "each has its effect once");
}

#[tokio::test(start_paused = true)]
async fn a_new_version_takes_over_under_continuous_appends() {
    // Its own report is always a little old.
    let store = between(|append| match is_of_partition(append, 2) {
        true => pass(Duration::from_millis(150)).map(Ok).boxed(),
        false => async { Ok(()) }.boxed(),
    });
    let (blue, green) = (group(&store).partitions(1), group(&store).version(2).partitions(1));
    blue.declare().await.unwrap();
    let events = async {
        for n in 0..1500 {
            append(&store, "a", n).await;
            pass(Duration::from_millis(10)).await;
        }
    };
    let take_over = async {
        tokio::select! {
            _ = until_taken_over(&store) => {}
            () = events => panic!("it never took over"),
        }
    };
    let seen = Seen::default();
    let both = async { tokio::join!(blue.run(seen.noting()), green.run_until(seen.noting(), take_over)) };
    in_time("it", both).await.1.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_read_after_a_take_over_are_handled_with_effects() {
    let (close, closed) = watch::channel(false);
    let (hold, held) = watch::channel(false);
    let (open, opened) = watch::channel(false);
    // The new version learns late that it has taken over: one of its partitions is busy with its lease.
    let store = between(move |append| {
        if format!("{append:?}").contains("event_type: \"Promoted\"") {
            close.send_replace(true);
            let mut held = held.clone();
            return async move { held.wait_for(|is_held| *is_held).await.map(drop).map_err(|_| Error::Closed) }.boxed();
        }
        if *closed.borrow() && is_of_partition(append, 2) {
            hold.send_replace(true);
            let mut opened = opened.clone();
            return async move { opened.wait_for(|is_open| *is_open).await.map(drop).map_err(|_| Error::Closed) }
                .boxed();
        }
        async { Ok(()) }.boxed()
    });
    for n in 0..3 {
        append(&store, "a", n).await;
    }
    let (blue, green) = (group(&store).partitions(1), group(&store).version(2).partitions(1));
    blue.declare().await.unwrap();
    let script = async {
        until_taken_over(&store).await;
        let last = append(&store, "a", 3).await;
        // Long enough to learn of the promotion, and short enough for the lease.
        pass(Duration::from_secs(1)).await;
        open.send_replace(true);
        green.wait_until(last).await.unwrap();
    };
    let green = green.clone().lease(Duration::from_secs(9));
    let both = async {
        let seen = Seen::default();
        let then = async {
            blue.wait_until(Position(3)).await.unwrap();
            green.run_until(seen.handler("", effect), script).await
        };
        tokio::join!(blue.run(seen.handler("", effect)), then)
    };
    in_time("it", both).await.1.unwrap();
    assert_eq!(effects(&store).await["a"], [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_version_cannot_acknowledge_in_its_handlers_append() {
    let store = in_memory();
    for n in 0..3 {
        append(&store, "a", n).await;
    }
    let (blue, green) = (group(&store), group(&store).version(2));
    blue.declare().await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let (begin, mut begun) = watch::channel(0);
    let handler = |is_late: bool| {
        let (store, gate, begin) = (store.clone(), Arc::clone(&gate), begin.clone());
        group_handler(move |event, delivery| {
            let (store, gate, begin) = (store.clone(), Arc::clone(&gate), begin.clone());
            Box::pin(async move {
                if !delivery.has_effects() {
                    return Ok(());
                }
                begin.send_modify(|n| *n += 1);
                if is_late && event.sequence == 4 {
                    drop(gate.acquire().await?);
                }
                let append = Append::to("effects", &event.aggregate_id, Expected::Any, vec![made(event)]);
                let append = delivery.acknowledge(append).await;
                delivery.acknowledged(&store.append(append).await?);
                Ok(())
            })
        })
    };
    let script = async {
        until_taken_over(&store).await;
        gate.add_permits(1);
        green.wait_until(store.head().await.unwrap()).await.unwrap();
        pass(Duration::from_secs(1)).await;
    };
    let then = async {
        blue.wait_until(Position(3)).await.unwrap();
        append(&store, "a", 3).await;
        begun.wait_for(|n| *n == 4).await.unwrap();
        green.run_until(handler(false), script).await
    };
    let both = async { tokio::join!(blue.run(handler(true)), then) };
    in_time("it", both).await.1.unwrap();
    assert_eq!(effects(&store).await["a"], [0, 1, 2, 3], "the late one was refused");
}
