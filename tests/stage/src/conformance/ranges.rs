//! Bounds by position and by time, both directions and pages of every size, at every edge of a small log and of an empty one.

use std::time::Duration;

use futures::StreamExt;

use super::generate::{Dice, meant};
use super::rig::{Rig, check_history, everything, import, in_pages, new_name, notes, noting, timed};
use crewlog_mq::{
    Append, Clock, Error, EventStore, Expected, Memory, Options, Position, Query, Range, Start, Timestamp,
};

pub(super) async fn check(rig: &Rig, seed: u64) {
    let mut dice = Dice::new(seed);
    let (store, hands) = rig.timed_log().await;
    // Both must agree on an empty log, too.
    check_edges(&store, &mut dice).await;
    for n_events in [1, 2, 1, 1] {
        store.append(Append::to("facts", "a", Expected::Any, notes(n_events))).await.expect("it is accepted");
        store.append(noting("b", 9)).await.expect("it is accepted");
        hands.pass(Duration::from_micros(10));
    }
    check_edges(&store, &mut dice).await;
    check_times(&store).await;
    far_starts(&store).await;
    two_clocks(rig).await;
}

/// The pages of the backend equal those of the model in every field.
async fn check_edges(store: &EventStore, dice: &mut Dice) {
    let history = everything(store).await;
    let model = EventStore::on(Memory::new(Options::default()));
    import(&model, &store.log().await.expect("a log has an identity"), &history).await;
    let end = history.len() as i64;
    let edges: Vec<_> = [i64::MIN, -1, 0, 1, 2, end - 1, end, end + 1, i64::MAX].map(Position).into();
    for after in &edges {
        for up_to in edges.iter().map(Some).chain([None]) {
            let range = Range { after: *after, up_to: up_to.copied(), ..Range::default() };
            for range in [range, range.backwards()] {
                let limit = dice.below(end as u64 + 2) as usize;
                let query = if dice.one_in(2) { Query::all() } else { Query::aggregate("facts", "a") };
                let found = store.read(&query, range, limit).await.expect("the log can be read");
                let expected = model.read(&query, range, limit).await.expect("the model can be read");
                assert_eq!(found, expected, "{query:?} {range:?} by {limit}");
            }
        }
    }
    for at in edges {
        let (found, expected) = (store.whole(at).await, model.whole(at).await);
        assert_eq!(found.expect("it can be read"), expected.expect("it can be read"), "whole at {at}");
    }
}

async fn check_times(store: &EventStore) {
    let history = everything(store).await;
    let mut times: Vec<_> = history.iter().flat_map(|event| [-1, 0, 1].map(|more| event.created_at.0 + more)).collect();
    times.extend([i64::MIN, 0, i64::MAX]);
    times.sort_unstable();
    times.dedup();
    for since in times.iter().map(|time| Some(Timestamp(*time))).chain([None]) {
        for until in times.iter().map(|time| Some(Timestamp(*time))).chain([None]) {
            let range = Range { since, until, ..Range::default() };
            for range in [range, range.backwards()] {
                let found = in_pages(store, &Query::all(), range, 3).await;
                assert_eq!(found, meant(&Query::all(), range, &history), "{range:?}");
            }
        }
    }
}

/// A process whose clock is behind continues from the log's time.
async fn two_clocks(rig: &Rig) {
    let name = new_name();
    for (hours, n_events) in [(2, 1), (0, 2), (1, 3)] {
        let (hands, options) = timed();
        let now = hands.wall();
        hands.pass(Duration::from_secs(hours * 3600));
        let store = rig.open(&name, options).await;
        store.append(Append::to("facts", "a", Expected::Any, notes(n_events))).await.expect("it is accepted");
        let history = everything(&store).await;
        check_history(&history);
        let last = history.last().map(|event| event.created_at);
        assert!(last >= Some(now.plus(Duration::from_secs(7200))), "log time goes on from {last:?}");
    }
}

/// A stream from before the first event begins with it. A stream from beyond the head reports once that the log is
/// shorter, then continues from the head.
async fn far_starts(store: &EventStore) {
    let all = Query::all();
    let mut first = std::pin::pin!(store.follow(&all, Start::After(Position(i64::MIN))));
    assert_eq!(first.next().await.expect("a log never ends").expect("it can be read").position, Position(1));
    let head = store.head().await.expect("the head can be read");
    let mut live = std::pin::pin!(store.follow(&all, Start::After(head)));
    let mut last = std::pin::pin!(store.follow(&all, Start::After(Position(i64::MAX))));
    let refusal = last.next().await;
    let says_so =
        |error: &Error| matches!(error, Error::WentBack { known, head: now } if known.0 == i64::MAX && *now == head);
    assert!(matches!(&refusal, Some(Err(error)) if says_so(error)), "{refusal:?}");
    for n in 1..=3 {
        store.append(noting("live", 1)).await.expect("it is accepted");
        for stream in [&mut live, &mut last] {
            let event = stream.next().await.expect("a log never ends").expect("it can be read");
            assert_eq!(event.position.0, head.0 + n);
        }
    }
}
