//! Commands to a group: pause, resume, reset; and its reports.

use crewlog_mq::{GroupCommand, VersionStatus};
use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn a_paused_group_receives_nothing_until_it_is_resumed() {
    for (store, _place) in logs().await {
        let (seen, group) = (Seen::default(), group(&store));
        let other = store.group("other").query(Query::stream("facts"));
        group.declare().await.unwrap();
        let command = async |command| store.groups().execute("facts", command).await.unwrap().len();
        assert_eq!((command(GroupCommand::Pause).await, command(GroupCommand::Pause).await), (1, 0));
        // In its own function, like the body of a group: unoptimised, every enclosing future would have it on the stack.
        let script = Box::pin(async {
            let is_held = |report: &GroupReport| report.versions[0].partitions.iter().all(|held| held.owner.is_some());
            until(&store, "all partitions are held", is_held).await;
            for n in 0..100 {
                append(&store, "a", n).await;
            }
            // The unpaused group has received everything.
            run_to_the_end(&other, &store, Seen::default().noting()).await;
            assert!(seen.sequences().is_empty());
            let report = store.groups().show("facts").await.unwrap();
            assert_eq!((report.is_paused, report.versions[0].lag.n_events), (true, 100));
            assert_eq!(command(GroupCommand::Resume).await, 1);
            group.wait_until(store.head().await.unwrap()).await.unwrap();
        });
        in_time("it", group.run_until(seen.noting(), script)).await.unwrap();
        assert_eq!(seen.sequences()["a"], (1..=100).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_reset_group_continues_after_the_position_whether_running_or_not() {
    for (store, _place) in logs().await {
        let group = group(&store);
        for n in 0..10 {
            append(&store, &format!("a{}", n % 2), n).await;
        }
        let seen = Seen::default();
        run_to_the_end(&group, &store, seen.noting()).await;
        let reset = |to| GroupCommand::Reset { version: 1, to: Position(to) };
        store.groups().execute("facts", reset(4)).await.unwrap();
        let script = async {
            group.wait_until(Position(10)).await.unwrap();
            store.groups().execute("facts", reset(8)).await.unwrap();
            group.wait_until(Position(10)).await.unwrap();
        };
        in_time("it", group.run_until(seen.noting(), script)).await.unwrap();
        assert_eq!(seen.sequences()["a0"], [1, 2, 3, 4, 5, 3, 4, 5, 5]);
        let refused = store.groups().execute("facts", reset(1000)).await.unwrap_err().to_string();
        assert!(refused.contains("the log ends at"), "{refused}");
    }
}

#[tokio::test]
async fn deleting_all_cells_midway_only_repeats_work() {
    for (store, _place) in logs().await {
        for n in 0..200 {
            append(&store, &format!("a{}", n % 8), n).await;
        }
        let seen = Seen::default();
        let (halfway, reached) = oneshot::channel();
        let halfway = std::sync::Mutex::new(Some(halfway));
        let counting = seen.handler("", |event, delivery| {
            if event.position >= Position(100)
                && let Some(halfway) = halfway.lock().unwrap().take()
            {
                halfway.send(()).unwrap();
            }
            effect(event, delivery)
        });
        let group = group(&store);
        let script = async {
            reached.await.unwrap();
            assert!(delete_cells(&store).await > 0);
            group.wait_until(Position(200)).await.unwrap();
        };
        in_time("it", group.run_until(counting, script)).await.unwrap();
        for (aggregate, effects) in effects(&store).await {
            let first: i64 = aggregate[1..].parse().unwrap();
            assert_eq!(effects, (0..25).map(|n| first + 8 * n).collect::<Vec<_>>(), "exactly once and in order");
        }
    }
}

#[tokio::test]
async fn a_group_reports_its_lag_per_partition_in_events_and_time() {
    for (store, _place) in logs().await {
        let group = group(&store);
        group.declare().await.unwrap();
        for n in 0..30 {
            append(&store, &format!("a{}", n % 10), n).await;
        }
        let report = store.groups().show("facts").await.unwrap();
        let version = &report.versions[0];
        assert_eq!((version.version, version.status, version.floor), (1, VersionStatus::Active, Position(0)));
        assert_eq!((version.lag.n_events, version.lag.more), (30, false));
        assert!(!version.lag.time.is_zero());
        assert_eq!(version.partitions.iter().map(|partition| partition.lag.n_events).sum::<usize>(), 30);
        run_to_the_end(&group, &store, Seen::default().noting()).await;
        let report = store.groups().show("facts").await.unwrap();
        let version = &report.versions[0];
        assert_eq!((version.floor, version.lag), (Position(31), crewlog_mq::Lag::default()));
        assert!(version.partitions.iter().all(|partition| partition.owner.is_none() && partition.epoch > 0));
        assert_eq!(store.groups().names().await.unwrap(), ["facts"]);
        let unknown = store.groups().show("others").await.unwrap_err().to_string();
        assert!(unknown.starts_with("there is no group \"others\""), "{unknown}");
    }
}
