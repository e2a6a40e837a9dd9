//! A new version of a group rebuilds without effects, takes over once it has caught up, and the old one ends.

use crewlog_mq::{Ended, GroupCommand, VersionStatus};

use super::*;

fn statuses(report: &GroupReport) -> Vec<VersionStatus> {
    report.versions.iter().map(|version| version.status).collect()
}

#[tokio::test]
async fn a_new_version_rebuilds_without_effects_and_takes_over_with_none_lost_or_repeated() {
    for (store, _place) in logs().await {
        for n in 0..200 {
            append(&store, &format!("a{}", n % 5), n).await;
        }
        let blue = group(&store);
        let green = group(&store).version(2).partitions(7);
        run_to_the_end(&blue, &store, Seen::default().handler("", effect)).await;
        let (old, new) = (Seen::default(), Seen::default());
        let with_effects = Seen::default();
        let marking = new.handler("", |event, delivery| {
            if delivery.has_effects() {
                with_effects.add("", event);
            }
            effect(event, delivery)
        });
        let blue_runs = blue.run(old.handler("", effect));
        let script = async {
            let is_over = |report: &GroupReport| statuses(report) == [VersionStatus::Retired, VersionStatus::Active];
            let mut n = 200;
            while !store.groups().show("facts").await.is_ok_and(|report| is_over(&report)) {
                append(&store, &format!("a{}", n % 5), n).await;
                n += 1;
            }
            for _ in 0..50 {
                append(&store, &format!("a{}", n % 5), n).await;
                n += 1;
            }
            green.wait_until(store.head().await.unwrap()).await.unwrap();
            n
        };
        let (told, is_told) = tokio::sync::oneshot::channel::<()>();
        let green_runs = green.run_until(marking, async { drop(is_told.await) });
        let script = async {
            let n = script.await;
            told.send(()).unwrap();
            n
        };
        let (ended, stopped, n) = in_time("it", async { tokio::join!(blue_runs, green_runs, script) }).await;
        assert_eq!((ended.unwrap(), stopped.unwrap()), (Ended::Retired, Ended::Stopped));
        let all = |first: i64| (first..n).step_by(5).collect::<Vec<_>>();
        for (aggregate, effects) in effects(&store).await {
            assert_eq!(effects, all(aggregate[1..].parse().unwrap()), "each event has its effect once, in order");
        }
        assert_eq!(new.sequences()["a0"].len(), all(0).len(), "the new version saw all of the history");
        assert!(with_effects.sequences().values().all(|sequences| sequences[0] > 40), "none of what the old one did");
        let refused = in_time("a refusal", blue.run(old.noting())).await.unwrap_err().to_string();
        assert_eq!(refused, "version 1 of the group is retired");
    }
}

#[tokio::test]
async fn a_new_version_waits_for_the_previous_one_and_takes_over_its_parked_events() {
    for (store, _place) in logs().await {
        append(&store, "bad", 1).await;
        append(&store, "good", 1).await;
        let failing = |event: &Recorded, delivery: &mut Delivery| {
            if event.aggregate_id == "bad" { Err("never".into()) } else { effect(event, delivery) }
        };
        let blue = group(&store).park_after(1);
        run_to_the_end(&blue, &store, Seen::default().handler("", failing)).await;
        append(&store, "good", 2).await;
        let green = group(&store).version(2);
        let seen = Seen::default();
        let replay = GroupCommand::Replay { version: 2, aggregate: None };
        let script = async {
            until(&store, "the take-over", |report| {
                report.versions.last().is_some_and(|version| version.status == VersionStatus::Active)
            })
            .await;
            green.wait_until(Position(7)).await.unwrap();
            assert_eq!(effects(&store).await, BTreeMap::from([("good".to_owned(), vec![1, 2])]));
            store.groups().execute("facts", replay).await.unwrap();
            until(&store, "the replay", |report| report.versions[1].parked.is_empty()).await;
        };
        in_time("it", green.run_until(seen.handler("", effect), script)).await.unwrap();
        assert_eq!(effects(&store).await["bad"], [1], "what the old version never did is done");
    }
}
