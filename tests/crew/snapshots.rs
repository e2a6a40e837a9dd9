//! Snapshots of the processes: a host that resumes from one appends the same as a fold of the whole log, and reads
//! only the tail.

use crewlog_executors::crew::reacting::{Reacting, fold};
use crewlog_mq::{
    Append, CellChange, Error, EventStore, Expected, Metadata, NewEvent, Position, Recorded, Result, Snapshot,
};
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::globs::Pattern;
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::crew::{Emitted, Projection, Reactor};
use serde::{Deserialize, Serialize};

use super::hosts::{by_one_host, catch_up, log_of, said};
use super::recorded::{append_again, appends, rich_log};
use crewlog_stage::counting::counted;

/// The same process, with a snapshot as often as possible.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Often<R>(R);

impl<R: Reactor> Snapshot for Often<R> {
    const FOLD: &'static str = R::FOLD;
    const VERSION: u32 = R::VERSION;
    const EVERY: u64 = 1;
}

impl<R: Reactor> Projection for Often<R> {
    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error> {
        self.0.handle(recorded)
    }
}

impl<R: Reactor> Reactor for Often<R> {
    type Event = R::Event;
    const NAME: &'static str = R::NAME;
    const STREAM: &'static str = R::STREAM;

    fn emit(&mut self) -> Vec<Emitted<R::Event>> {
        self.0.emit()
    }
}

async fn catch_up_often(store: &EventStore, up_to: Option<Position>) {
    Reacting::<Often<Conflicts>>::new(store.clone()).catch_up(up_to).await.unwrap();
    Reacting::<Often<Statistics>>::new(store.clone()).catch_up(up_to).await.unwrap();
}

/// Deletes the snapshots of a projection, those of hosts and those of readers.
pub async fn drop_snapshots<S: Snapshot>(store: &EventStore) {
    let space = format!("snapshot:{}:{}", S::FOLD, S::VERSION);
    for space in [format!("view:{space}"), space] {
        store.append(Append::default().cell(CellChange::delete(&space, "{}"))).await.unwrap();
        assert!(store.cell(&space, "{}").await.unwrap().is_none());
    }
}

/// The position of a process's snapshot.
async fn snapshot_at<R: Snapshot>(store: &EventStore) -> Option<i64> {
    let cell = store.cell(&format!("snapshot:{}:{}", R::FOLD, R::VERSION), "{}").await.unwrap()?;
    let head = cell.value.lines().next().unwrap();
    serde_json::from_str::<serde_json::Value>(head).unwrap()["last"]["position"].as_i64()
}

#[tokio::test]
async fn a_host_resuming_from_a_snapshot_appends_the_same_as_a_full_fold() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    let mut n_snapshots = 0;
    for position in 0..=log.len() as i64 {
        // The events for the first part are at the end of the log, after events that have none yet.
        let (store, _clock) = log_of(&appends(&log)).await;
        catch_up_often(&store, Some(Position(position))).await;
        n_snapshots += usize::from(snapshot_at::<Conflicts>(&store).await.is_some());
        catch_up_often(&store, None).await;
        assert_eq!(said(&store).await, expected, "ended at {position}");
    }
    // There is no snapshot of part of an append.
    assert!((log.len() / 3..log.len()).contains(&n_snapshots), "{n_snapshots} of {}", log.len());
}

#[tokio::test]
async fn hosts_restarted_after_each_append_agree_whatever_happens_to_their_snapshots() {
    let log = rich_log().await;
    let expected = by_one_host(&log).await;
    for n_kept in [1, 2, 3, usize::MAX] {
        let (store, clock) = log_of(&[]).await;
        for (n, append) in appends(&log).into_iter().enumerate() {
            append_again(&store, &clock, &[append]).await;
            catch_up_often(&store, None).await;
            if (n + 1) % n_kept == 0 {
                drop_snapshots::<Conflicts>(&store).await;
                drop_snapshots::<Statistics>(&store).await;
            }
        }
        assert_eq!(said(&store).await, expected, "one of {n_kept} is deleted");
    }
}

#[tokio::test]
async fn a_restarted_host_reads_only_its_tail() {
    let (log, (store, clock)) = (rich_log().await, log_of(&[]).await);
    append_again(&store, &clock, &appends(&log)[..20]).await;
    catch_up(&store, None).await.unwrap();
    let filler = (0..3000).map(|n| NewEvent::from_json("Rained", "1.0", n.to_string(), &Metadata::default()).unwrap());
    store.append(Append::to("weather", "here", Expected::Any, filler.collect())).await.unwrap();
    catch_up(&store, None).await.unwrap();
    append_again(&store, &clock, &appends(&log)[20..]).await;

    let (counting, counts) = counted(&store);
    let before = store.head().await.unwrap().0 - snapshot_at::<Conflicts>(&store).await.unwrap();
    Reacting::<Conflicts>::new(counting.clone()).catch_up(None).await.unwrap();
    let tail = store.head().await.unwrap().0 - snapshot_at::<Conflicts>(&store).await.unwrap();
    let n_read = counts.take_events() as i64;
    assert!(before < 1000 && tail >= before, "the snapshot is near the head: {before}, {tail}");
    // Besides the tail: the last event of the snapshot, a few of its own, and their cause.
    assert!(n_read <= tail + 1 + 16 + 1, "{n_read} events for a tail of {tail}");
    catch_up(&store, None).await.unwrap();
    let (plain, _clock) = log_of(&appends(&log)).await;
    catch_up(&plain, None).await.unwrap();
    let data = |both: Vec<_>| both.into_iter().map(|said: super::hosts::Said| said.data).collect::<Vec<_>>();
    let ([conflicts, figures], [plain_conflicts, plain_figures]) = (said(&store).await, said(&plain).await);
    assert_eq!(data(conflicts), data(plain_conflicts));
    assert_eq!(data(figures), data(plain_figures));
}

#[tokio::test]
async fn snapshot_states_survive_a_round_trip_and_stay_small() {
    let log = rich_log().await;
    let (store, _clock) = log_of(&appends(&log)).await;
    for append in appends(&log) {
        let at = append[append.len() - 1].position;
        check_round_trip(&fold::<Conflicts>(&store, at, |_, _| {}).await.unwrap());
        check_round_trip(&fold::<Statistics>(&store, at, |_, _| {}).await.unwrap());
    }
}

fn check_round_trip<S: Snapshot + PartialEq + std::fmt::Debug>(state: &S) {
    let json = serde_json::to_string(state).unwrap();
    let back = serde_json::from_str::<S>(&json).unwrap();
    assert_eq!(back, *state);
    assert_eq!(serde_json::to_string(&back).unwrap(), json, "and always written alike");
    assert!(json.len() < 8_000, "{} bytes", json.len());
}

#[test]
fn patterns_survive_a_round_trip() {
    let written = ["a.rs", "src/**/*.rs", "[a-z]?x{1,2}", "**", "[!a]*", "", "C:/x", "~/é/..", "{a,b}/**/[]/"];
    for written in written {
        for pattern in [Pattern::new(Some("/work"), written), Pattern::new(None, written)] {
            let json = serde_json::to_string(&pattern).unwrap();
            assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern, "{json}");
        }
    }
}

#[tokio::test]
async fn a_state_that_lacks_an_unreadable_event_is_not_snapshotted() {
    let log = rich_log().await;
    let (store, clock) = log_of(&appends(&log)[..20]).await;
    catch_up_often(&store, None).await;
    let before = snapshot_at::<Conflicts>(&store).await;
    let odd = NewEvent::from_json("Odd", "9.9", "[1]".into(), &Metadata::default()).unwrap();
    store.append(Append::to("task", "one/2", Expected::Any, vec![odd])).await.unwrap();
    append_again(&store, &clock, &appends(&log)[20..]).await;
    for _ in 0..2 {
        catch_up_often(&store, None).await;
        // A newer program may be able to read it, and must find it unread.
        assert_eq!(snapshot_at::<Conflicts>(&store).await, before);
    }
    assert_eq!(said(&store).await, by_one_host(&log).await);
}
