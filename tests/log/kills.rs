//! Writers killed at random points: every acknowledged append is at its reported position, and no append is torn.
//!
//! Few rounds by default; `./test crash ROUNDS` runs thousands.

use std::collections::BTreeMap;

use crewlog_mq::{
    Append, CellChange, CellExpected, EventStore, Expected, Metadata, NewEvent, Position, Query, Recorded,
};
use uuid::Uuid;

use super::child::{self, Chance, Other, body, n_rounds, say};
use super::{Place, check_history, everything};

const N_PROCESSES: u64 = 3;
const N_THREADS: u64 = 4;
/// The maximum events of one append.
const N_EVENTS_MAX: u64 = 5;

/// The `n`-th append of a writer: one to five events in one, two or three aggregates; each contains their number. One in
/// three changes the writer's own cell, and one in three has a condition that holds.
fn nth_append(writer: u64, n: u64) -> (Append, u64) {
    let n_events = 1 + (writer + n) % N_EVENTS_MAX;
    let mut events = (0..n_events).map(|index| {
        let event = NewEvent::from_json("Made", "1.0", format!("{{\"of\":{n_events}}}"), &Metadata::default());
        event.expect("it is JSON").with_id(Uuid::from_u64_pair(writer, 8 * n + index))
    });
    let own = format!("writer-{writer}");
    let mut append = Append::to("own", &own, Expected::Any, events.by_ref().take(2).collect());
    for (index, event) in events.enumerate() {
        append = append.and("shared", &format!("all-{index}"), Expected::Any, vec![event]);
    }
    append = match n % 3 {
        0 => append.cell(CellChange::set("counts", &own, n.to_string()).expecting(CellExpected::Any)),
        1 => append.none_matching(Query::stream("nobody"), Position(0)),
        _ => append,
    };
    (append, n_events)
}

/// The body of a process that writes until it is killed.
#[test]
#[ignore = "runs in another process"]
fn child_that_writes_until_killed() {
    let (role, url) = child::role();
    let first: u64 = role.parse().expect("the role is the first of its writers");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EventStore::open(&url).await.expect("the log opens");
        let writers = (first..first + N_THREADS).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0.. {
                    let (append, _) = nth_append(writer, n);
                    let appended = store.append(append).await.expect("an append of any kind is accepted");
                    say(&format!("{writer} {n} {}.", appended.places[0].position));
                }
            })
        });
        futures::future::join_all(writers.collect::<Vec<_>>()).await;
    });
}

/// Reported by a writer: its number, that of the append, and the first position.
type Told = (u64, u64, Position);

fn told(line: &str) -> Option<Told> {
    // The last line of a killed process may be truncated: then it reported nothing.
    let mut numbers = line.split(' ').map(str::parse);
    let mut number = || numbers.next()?.ok();
    Some((number()?, number()?, Position(i64::try_from(number()?).ok()?)))
}

/// Kills the processes of one round at random points, and returns the acknowledged appends.
fn kill_all(place: &Place, round: u64, chance: &mut Chance) -> Vec<Told> {
    let start = |process: u64| {
        let first = (1 + round) * 100 + process * N_THREADS;
        Other::start(body!(child_that_writes_until_killed), &first.to_string(), &place.url(), &[])
    };
    let mut others: Vec<Other> = (0..N_PROCESSES).map(start).collect();
    let mut acknowledged = Vec::new();
    let mut hear = |other: &mut Other, lines: usize| {
        let heard: Vec<_> = std::iter::from_fn(|| other.next()).take(lines).collect();
        // A truncated position may still be a number: the last line counts only if it is known to be complete.
        acknowledged.extend(heard.iter().filter_map(|line| told(line.strip_suffix('.')?)));
    };
    for other in &mut others {
        hear(other, chance.below(40) as usize);
        chance.linger(3_000);
        other.kill();
    }
    for other in &mut others {
        hear(other, usize::MAX);
    }
    acknowledged
}

/// Every append that was started is complete or absent; every acknowledged one is at its position.
fn check_appends(history: &[Recorded], acknowledged: &[Told]) {
    check_history(history);
    let mut appends: BTreeMap<Position, Vec<Uuid>> = BTreeMap::new();
    for event in history {
        appends.entry(event.append_start).or_default().push(event.event_id);
    }
    for ids in appends.values() {
        let (writer, number) = ids[0].as_u64_pair();
        let (_, n_events) = nth_append(writer, number / 8);
        let expected: Vec<_> = (0..n_events).map(|index| Uuid::from_u64_pair(writer, number / 8 * 8 + index)).collect();
        assert_eq!(*ids, expected, "an append is torn");
    }
    for (writer, n, position) in acknowledged {
        let found = appends.get(position).and_then(|ids| ids.first());
        assert_eq!(found, Some(&Uuid::from_u64_pair(*writer, 8 * n)), "{writer}'s append {n} at {position}");
    }
}

/// Each cell has the value of the last append in the log that changed it.
async fn check_cells(store: &EventStore, history: &[Recorded]) {
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    for event in history.iter().filter(|event| event.position == event.append_start) {
        let (writer, number) = event.event_id.as_u64_pair();
        if number / 8 % 3 == 0 {
            expected.insert(format!("writer-{writer}"), (number / 8).to_string());
        }
    }
    let mut found = BTreeMap::new();
    let mut from = String::new();
    loop {
        let cells = store.cells("counts", &from, 100).await.expect("they can be read");
        let Some(last) = cells.last() else { break };
        from = format!("{}\u{1}", last.key);
        found.extend(cells.into_iter().map(|cell| (cell.key, cell.value)));
    }
    assert_eq!(found, expected, "cells change with their appends");
}

#[tokio::test]
async fn writers_killed_at_random_points_lose_and_tear_no_append() {
    let mut chance = Chance::new();
    let (mut place, mut acknowledged) = (Place::new(), Vec::new());
    for round in 0..n_rounds(6) {
        // A long log would slow down a round.
        if round % 50 == 49 {
            (place, acknowledged) = (Place::new(), Vec::new());
        }
        acknowledged.extend(kill_all(&place, round, &mut chance));
        // Only the killed processes used it: the -wal file is recovered.
        let store = place.open().await;
        let history = everything(&store).await;
        check_appends(&history, &acknowledged);
        check_cells(&store, &history).await;
        assert_eq!(store.head().await.unwrap().0, history.len() as i64);
        let writer = 50_000_000 + round;
        let (append, _) = nth_append(writer, 0);
        let next = store.append(append.clone()).await.expect("the log goes on");
        assert_eq!(next.places[0].position.0, history.len() as i64 + 1, "the log goes on at its head");
        assert!(store.append(append).await.expect("it is a repetition").repeated);
        acknowledged.push((writer, 0, next.places[0].position));
        let checked = store.check().await.unwrap();
        assert_eq!((checked.findings, checked.more), (vec![], false));
    }
}
