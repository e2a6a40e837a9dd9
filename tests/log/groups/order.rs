//! The delivery of events to workers, and its order.

use std::collections::BTreeMap;
use std::time::Duration;

use crewlog_mq::{Append, Envelope, Expected, GroupCommand, Metadata, NewEvent, Position, Query, Start};
use tokio::sync::oneshot;

use super::*;

fn one_to(n: i64) -> Vec<i64> {
    (1..=n).collect()
}

#[tokio::test]
async fn every_matching_event_is_handled_once_in_aggregate_order() {
    for (store, _place) in logs().await {
        for n in 0..300 {
            append(&store, &format!("a{}", n % 10), n).await;
            store.append(Append::to("others", "x", Expected::Any, vec![note(n)])).await.unwrap();
        }
        let seen = Seen::default();
        run_to_the_end(&group(&store), &store, seen.noting()).await;
        let expected: BTreeMap<_, _> = (0..10).map(|n| (format!("a{n}"), one_to(30))).collect();
        assert_eq!(seen.sequences(), expected);
        // Another run starts where this one ended.
        append(&store, "a0", 0).await;
        let seen = Seen::default();
        run_to_the_end(&group(&store), &store, seen.noting()).await;
        assert_eq!(seen.sequences(), BTreeMap::from([("a0".to_owned(), vec![31])]));
    }
}

#[tokio::test]
async fn a_running_worker_receives_new_events() {
    for (store, _place) in logs().await {
        let seen = Seen::default();
        let group = group(&store);
        group.declare().await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = group.run_until(seen.noting(), async { drop(stopped.await) });
        let writer = async {
            for n in 0..15 {
                let position = append(&store, "a", n).await;
                in_time("the group", group.wait_until(position)).await.unwrap();
                assert_eq!(seen.sequences()["a"].len() as i64, n + 1, "who waits for the group reads what it made");
            }
            stop.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(worker, writer);
        assert_eq!(ended.unwrap(), crewlog_mq::Ended::Stopped);
    }
}

#[tokio::test]
async fn a_group_starts_at_its_declared_position() {
    for (store, _place) in logs().await {
        for n in 0..5 {
            append(&store, "a", n).await;
        }
        let seen = Seen::default();
        run_to_the_end(&group(&store).start(Start::After(Position(3))), &store, seen.noting()).await;
        assert_eq!(seen.sequences()["a"], [4, 5]);
    }
}

#[tokio::test]
async fn workers_share_partitions_fairly_and_take_over_released_ones() {
    for (store, _place) in logs().await {
        for n in 0..100 {
            append(&store, &format!("a{}", n % 20), n).await;
        }
        let seen = Seen::default();
        let group = group(&store).partitions(6).lease(Duration::from_secs(4));
        let (stop, stopped) = oneshot::channel::<()>();
        let leaving = group.run_until(seen.noting(), async { drop(stopped.await) });
        let (staying, third) = (group.run(seen.noting()), group.run(seen.noting()));
        let held = |report: &crewlog_mq::GroupReport| {
            let mut held = BTreeMap::<_, usize>::new();
            for partition in &report.versions[0].partitions {
                *held.entry(partition.owner.clone()).or_default() += 1;
            }
            let is_all = !held.contains_key(&None);
            let mut counts: Vec<_> = held.into_values().collect();
            counts.sort_unstable();
            (is_all, counts)
        };
        let script = async {
            until(&store, "a fair share", |report| held(report) == (true, vec![2, 2, 2])).await;
            stop.send(()).unwrap();
            until(&store, "what was left", |report| held(report) == (true, vec![3, 3])).await;
        };
        let leaving = async { leaving.await.map(drop).unwrap() };
        tokio::select! {
            _ = staying => panic!("it was not told to stop"),
            _ = third => panic!("it was not told to stop"),
            ((), ()) = async { tokio::join!(script, leaving) } => {}
        }
        for (aggregate, sequences) in seen.sequences() {
            assert_eq!(sequences, one_to(5), "{aggregate}: nothing was repeated, since nobody was killed");
        }
    }
}

#[tokio::test]
async fn an_effect_commits_with_the_acknowledgement_and_names_its_cause() {
    for (store, _place) in logs().await {
        for n in 0..20 {
            append(&store, &format!("a{}", n % 2), n).await;
        }
        let group = group(&store);
        run_to_the_end(&group, &store, Seen::default().handler("", effect)).await;
        let all = store.load::<Effect>(&Query::stream("effects"), Default::default()).await.unwrap();
        assert_eq!(all.len(), 20);
        let Envelope { event: Effect::Made { n }, metadata, .. } = &all[0];
        let cause = Query::event(metadata.causation_id.expect("it has a cause"));
        assert_eq!(store.load_events::<Fact>(&cause, None).await.unwrap(), [Fact::Noted { n: *n }]);
        // Without any checkpoint everything is handled again, and nothing is appended twice.
        assert!(delete_cells(&store).await > 0);
        let seen = Seen::default();
        run_to_the_end(&group, &store, seen.handler("", effect)).await;
        assert_eq!(seen.sequences()["a0"], one_to(10));
        assert_eq!(effects(&store).await["a0"], (0..10).map(|n| 2 * n).collect::<Vec<_>>());
    }
}

/// Appends its effects itself, with the acknowledgement.
struct Acknowledging {
    store: EventStore,
    seen: Seen,
    /// True if the same event has the same effects.
    is_stable: bool,
}

impl GroupHandler for Acknowledging {
    fn handle<'a>(
        &'a self,
        event: &'a Recorded,
        delivery: &'a mut Delivery,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        self.seen.add("", event);
        Box::pin(async move {
            let made = NewEvent::from_json("Made", "1.0", "{\"n\":1}".into(), &Metadata::default())?;
            let id = crewlog_mq::derived_event_id("own", event.created_at, event.event_id, 0);
            let made = if self.is_stable { made.with_id(id) } else { made };
            let append = Append::to("effects", &event.aggregate_id, Expected::Any, vec![made]);
            let append = delivery.acknowledge(append).await;
            delivery.acknowledged(&self.store.append(append).await?);
            // It is too late to repeat this.
            Err("after the acknowledgement".into())
        })
    }
}

#[tokio::test]
async fn a_handler_may_acknowledge_in_its_own_append() {
    for (store, _place) in logs().await {
        for n in 0..12 {
            append(&store, &format!("a{}", n % 3), n).await;
        }
        let seen = Seen::default();
        let own = Acknowledging { store: store.clone(), seen: seen.clone(), is_stable: false };
        run_to_the_end(&group(&store), &store, own).await;
        assert_eq!(seen.sequences()["a1"], one_to(4));
        assert_eq!(effects(&store).await["a1"].len(), 4);
    }
}

#[tokio::test]
async fn a_repeated_append_of_a_handler_still_acknowledges() {
    for (store, _place) in logs().await {
        for n in 0..6 {
            append(&store, &format!("a{}", n % 2), n).await;
        }
        let (group, seen) = (group(&store), Seen::default());
        let own = || Acknowledging { store: store.clone(), seen: seen.clone(), is_stable: true };
        run_to(&group, Position(6), own()).await;
        let reset = GroupCommand::Reset { version: 1, to: Position(0) };
        store.groups().execute("facts", reset).await.unwrap();
        run_to(&group, Position(6), own()).await;
        assert_eq!(seen.sequences()["a0"], [1, 2, 3, 1, 2, 3]);
        assert_eq!(effects(&store).await["a0"].len(), 3);
    }
}

#[tokio::test]
async fn all_workers_must_declare_a_group_identically() {
    let (store, _place) = logs().await.into_iter().next_back().unwrap();
    let first = group(&store);
    first.declare().await.unwrap();
    first.declare().await.unwrap();
    let check = async |group: Group, says: &str| {
        let error = group.declare().await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    check(first.clone().partitions(5), "version 1 of the group has another number of partitions").await;
    check(first.clone().query(Query::all()), "version 1 of the group has another query").await;
    check(first.clone().partitions(0), "1 to 1024 partitions").await;
    check(first.clone().version(0), "version 0 cannot be new").await;
    check(first.clone().lease(Duration::ZERO), "more than nothing").await;
    check(store.group("no name"), "letters, digits").await;
    let unknown = first.clone().version(7).wait_until(Position(1)).await.unwrap_err().to_string();
    assert_eq!(unknown, "the group has no version 7, it has 1");
    assert!(matches!(store.head().await, Ok(Position(1))), "what was refused left nothing");
}
