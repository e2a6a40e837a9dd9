//! Failing events: retried, parked, replayed, skipped, while all others continue.

use crewlog_mq::{GroupCommand, Metadata, NewEvent};

use super::*;

fn n_of(event: &Recorded) -> i64 {
    match event.decode() {
        Ok(Fact::Noted { n }) => n,
        Ok(Fact::Closed) | Err(_) => -1,
    }
}

/// The events of one worker, by `n`.
fn seen_n(seen: &Seen, aggregate_id: &str) -> Vec<i64> {
    let all = seen.0.lock().expect("it goes well");
    all.iter().filter(|(_, event)| event.aggregate_id == aggregate_id).map(|(_, event)| n_of(event)).collect()
}

#[tokio::test]
async fn a_failed_event_is_retried_and_blocks_only_its_own_aggregate() {
    for (store, _place) in logs().await {
        for n in 0..3 {
            append(&store, "bad", n).await;
            append(&store, "good", n).await;
        }
        let seen = Seen::default();
        let failing_twice = seen.handler("", |event, delivery| {
            let fails = event.aggregate_id == "bad" && n_of(event) == 1 && delivery.attempt() < 3;
            if fails { Err("not yet".into()) } else { effect(event, delivery) }
        });
        // One partition shows that other aggregates are not blocked.
        let group = group(&store).partitions(1).concurrency(1);
        run_to_the_end(&group, &store, failing_twice).await;
        assert_eq!(seen_n(&seen, "bad"), [0, 1, 1, 1, 2]);
        assert_eq!(seen_n(&seen, "good"), [0, 1, 2]);
        assert_eq!(effects(&store).await["bad"], [0, 1, 2]);
    }
}

#[tokio::test]
async fn a_repeatedly_failing_event_is_parked_with_its_successors_and_replayed_in_order() {
    for (store, _place) in logs().await {
        let group = group(&store).partitions(1).park_after(3);
        for n in 0..4 {
            append(&store, "bad", n).await;
            append(&store, "good", n).await;
        }
        let seen = Seen::default();
        let failing = |event: &Recorded, delivery: &mut Delivery| {
            let fails = event.aggregate_id == "bad" && n_of(event) == 1;
            if fails { Err("never".into()) } else { effect(event, delivery) }
        };
        run_to_the_end(&group, &store, seen.handler("", failing)).await;
        // Also later events, and with every cell deleted.
        delete_cells(&store).await;
        append(&store, "bad", 4).await;
        run_to_the_end(&group, &store, seen.handler("", failing)).await;
        assert_eq!(seen_n(&seen, "bad").iter().filter(|n| **n == 1).count(), 3, "it is not tried any more");
        assert_eq!(effects(&store).await, BTreeMap::from([("bad".into(), vec![0]), ("good".into(), vec![0, 1, 2, 3])]));
        let report = store.groups().show("facts").await.unwrap();
        let parked = &report.versions[0].parked[0];
        assert_eq!((parked.aggregate.clone(), parked.from), (aggregate("bad"), Position(3)));
        assert_eq!((parked.n_events, parked.n_attempts, &*parked.error), (4, 3, "never"));
        assert_eq!(report.versions[0].lag.n_events, 0, "what waits for a person is no lag");

        let replay = GroupCommand::Replay { version: 1, aggregate: Some(aggregate("bad")) };
        store.groups().execute("facts", replay.clone()).await.unwrap();
        assert!(store.groups().execute("facts", replay).await.unwrap().is_empty(), "it is asked for already");
        let last = append(&store, "bad", 5).await;
        let seen = Seen::default();
        let stop = async {
            until(&store, "the end of the replay", |report| report.versions[0].parked.is_empty()).await;
            group.wait_until(last).await.unwrap();
        };
        in_time("the replay", group.run_until(seen.handler("", effect), stop)).await.unwrap();
        assert_eq!(seen_n(&seen, "bad"), [1, 2, 3, 4, 5]);
        assert_eq!(effects(&store).await["bad"], [0, 1, 2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn a_failed_replay_parks_again_and_a_skip_continues_after_it() {
    for (store, _place) in logs().await {
        let group = group(&store).park_after(1);
        for n in 0..4 {
            append(&store, "bad", n).await;
        }
        let failing = |event: &Recorded, delivery: &mut Delivery| {
            if n_of(event) == 2 { Err("never".into()) } else { effect(event, delivery) }
        };
        let fails_at = async |position: i64, command: Option<GroupCommand>| {
            if let Some(command) = command {
                store.groups().execute("facts", command).await.unwrap();
            }
            let stop = async {
                let is_so = |report: &GroupReport| {
                    let parked = report.versions.first().and_then(|version| version.parked.first());
                    parked.is_some_and(|parked| parked.from.0 >= position && !parked.is_replayed)
                };
                until(&store, "it is parked", is_so).await;
            };
            in_time("parking", group.run_until(Seen::default().handler("", failing), stop)).await.unwrap();
        };
        fails_at(3, None).await;
        let before = store.head().await.unwrap();
        fails_at(3, Some(GroupCommand::Replay { version: 1, aggregate: None })).await;
        let said = store.load::<crewlog_mq::GroupEvent>(&Query::stream("groups"), Range::after(before)).await.unwrap();
        let types: Vec<_> = said.iter().map(|said| &*said.recorded.event_type).collect();
        assert_eq!(types, ["ReplayAsked", "Parked"]);
        let skip = GroupCommand::Skip { version: 1, aggregate: aggregate("bad") };
        store.groups().execute("facts", skip.clone()).await.unwrap();
        let stop = async {
            until(&store, "it flows", |report| report.versions[0].parked.is_empty()).await;
        };
        in_time("the rest", group.run_until(Seen::default().handler("", failing), stop)).await.unwrap();
        assert_eq!(effects(&store).await["bad"], [0, 1, 3]);
        let refused = store.groups().execute("facts", skip).await.unwrap_err().to_string();
        assert_eq!(refused, "nothing of facts/bad is parked in version 1 of the group");
    }
}

/// The second would record that a person skipped an event that never failed.
#[tokio::test]
async fn a_second_skip_before_anything_failed_again_is_refused() {
    for (store, _place) in logs().await {
        for n in 0..3 {
            append(&store, "bad", n).await;
        }
        let failing = Seen::default().handler("", |_, _| Err("never".into()));
        run_to_the_end(&group(&store).park_after(1), &store, failing).await;
        let skip = GroupCommand::Skip { version: 1, aggregate: aggregate("bad") };
        assert_eq!(store.groups().execute("facts", skip.clone()).await.unwrap().len(), 1);
        let refused = store.groups().execute("facts", skip.clone()).await.unwrap_err().to_string();
        assert!(refused.contains("facts/bad is being handled again"), "{refused}");
        let failing = Seen::default().handler("", |_, _| Err("never".into()));
        let stop = async {
            until(&store, "the next is parked", |report| !report.versions[0].parked[0].is_replayed).await;
        };
        in_time("the rest", group(&store).park_after(1).run_until(failing, stop)).await.unwrap();
        assert_eq!(store.groups().show("facts").await.unwrap().versions[0].parked[0].from, Position(2));
        assert_eq!(store.groups().execute("facts", skip).await.unwrap().len(), 1, "the next that failed");
    }
}

#[tokio::test]
async fn a_parked_event_is_not_counted_as_handled_before_its_replay() {
    for (store, _place) in logs().await {
        append(&store, "bad", 1).await;
        let failing = Seen::default().handler("", |_, _| Err("never".into()));
        run_to_the_end(&group(&store).park_after(1), &store, failing).await;
        let ended = GroupCommand::EndReplay { version: 1, aggregate: aggregate("bad") };
        assert!(store.groups().execute("facts", ended).await.unwrap().is_empty());
        assert_eq!(store.groups().show("facts").await.unwrap().versions[0].parked.len(), 1);
    }
}

#[tokio::test]
async fn an_undecodable_event_is_parked_at_once_unless_the_handler_skips_it() {
    for (store, _place) in logs().await {
        let strange = NewEvent::from_json("Strange", "9.0", "{}".into(), &Metadata::default()).unwrap();
        store.append(Append::to("facts", "a", Expected::Any, vec![note(0), strange, note(2)])).await.unwrap();
        let seen = Seen::default();
        run_to_the_end(&group(&store), &store, seen.handler("", effect)).await;
        assert_eq!(seen_n(&seen, "a"), [0, -1]);
        let report = store.groups().show("facts").await.unwrap();
        assert!(report.versions[0].parked[0].error.contains("cannot be read"), "{report:?}");
        let seen = Seen::default();
        let lenient = store.group("lenient").query(Query::stream("facts"));
        let passing = seen.handler("", |event, delivery| match event.decode::<Fact>() {
            Ok(_) => effect(event, delivery),
            Err(_) => Ok(()),
        });
        run_to_the_end(&lenient, &store, passing).await;
        assert_eq!(seen_n(&seen, "a"), [0, -1, 2]);
    }
}

#[tokio::test]
async fn a_panic_or_refused_append_fails_the_event_and_the_worker_continues() {
    for (store, _place) in logs().await {
        append(&store, "panics", 1).await;
        append(&store, "refused", 1).await;
        append(&store, "good", 1).await;
        let handler = Seen::default().handler("", |event, delivery| {
            assert!(event.aggregate_id != "panics", "a bug");
            if event.aggregate_id == "refused" {
                delivery.append("effects", "x", Expected::Sequence(7), &Effect::Made { n: 1 })?;
                return Ok(());
            }
            effect(event, delivery)
        });
        run_to_the_end(&group(&store).park_after(2), &store, handler).await;
        assert_eq!(effects(&store).await.keys().collect::<Vec<_>>(), ["good"]);
        let report = store.groups().show("facts").await.unwrap();
        let errors: Vec<_> = report.versions[0].parked.iter().map(|parked| &*parked.error).collect();
        assert_eq!(
            errors,
            ["the handler panicked: a bug", "aggregate effects/x is at sequence 0, and sequence 7 was expected"]
        );
    }
}

#[tokio::test]
async fn a_partition_at_its_parking_limit_stops_and_reports_it() {
    for (store, _place) in logs().await {
        let group = group(&store).partitions(1).park_after(1).parked_max(1);
        for aggregate_id in ["bad-1", "bad-2", "good"] {
            append(&store, aggregate_id, 1).await;
        }
        let failing = |event: &Recorded, delivery: &mut Delivery| {
            if event.aggregate_id.starts_with("bad") { Err("never".into()) } else { effect(event, delivery) }
        };
        let script = async {
            let is_so = |report: &GroupReport| report.versions[0].partitions[0].stopped.is_some();
            let report = until(&store, "it stands still", is_so).await;
            let version = &report.versions[0];
            let said = version.partitions[0].stopped.as_deref();
            assert_eq!(said, Some("1 aggregates are parked, and no more may be: replay or skip them"));
            assert_eq!((version.parked.len(), version.partitions[0].n_behind, version.lag.n_events), (1, 1, 2));
            assert!(effects(&store).await.is_empty(), "what comes after is not lost: it waits");
            let parked = version.parked[0].aggregate.clone();
            store.groups().execute("facts", GroupCommand::Skip { version: 1, aggregate: parked }).await.unwrap();
            until(&store, "it goes on", |report| report.versions[0].lag.n_events == 0).await;
        };
        in_time("it", group.run_until(Seen::default().handler("", failing), script)).await.unwrap();
        assert_eq!(effects(&store).await["good"], [1]);
    }
}
