//! Many writers and readers at once: every reader sees a prefix of one common history.

use crewlog_mq::{Append, Error, EventStore, Expected, Position, Query, Range};
use futures::future::join_all;
use tokio::sync::watch;

use super::{check_history, everything, in_time, logs, note, notes, noting};

const N_WRITERS: i64 = 64;
const N_ROUNDS: i64 = 12;
const N_AGGREGATES: i64 = 5;
const N_READERS: usize = 3;

/// Events of one writer: two appends in three have one event, the others have three in two aggregates.
async fn write(store: EventStore, writer: i64) -> i64 {
    let mut n_events = 0;
    for round in 0..N_ROUNDS {
        let n = writer * N_ROUNDS + round;
        let name = |n: i64| format!("aggregate-{}", n % N_AGGREGATES);
        let mut append = noting(&name(n), n);
        if n % 3 == 0 {
            append = append.and("facts", &name(n + 1), Expected::Any, notes([n, n]));
        }
        let appended = store.append(append).await.expect("an append of any kind is accepted");
        n_events += appended.places.len() as i64;
        for place in &appended.places {
            let after = Position(place.position.0 - 1);
            let page = store.read(&Query::all(), Range::after(after), 1).await.expect("the log can be read");
            assert_eq!(page.events[0].sequence, place.sequence, "a writer reads its own writes");
        }
    }
    n_events
}

/// Reads the whole log over and over until writing has stopped, and then once more.
async fn watch_history(store: EventStore, end: watch::Receiver<bool>) -> usize {
    let mut n_seen = 0;
    loop {
        let ended = *end.borrow();
        let history = everything(&store).await;
        check_history(&history);
        assert!(history.len() >= n_seen, "what was seen once is seen always");
        n_seen = history.len();
        assert!(store.head().await.expect("the head can be read").0 >= n_seen as i64);
        if ended {
            return n_seen;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_reader_sees_a_prefix_of_one_gapless_history_while_many_write() {
    for (store, _place) in logs().await {
        let (end, ended) = watch::channel(false);
        let readers = (0..N_READERS).map(|_| tokio::spawn(watch_history(store.clone(), ended.clone())));
        let readers: Vec<_> = readers.collect();
        let writers: Vec<_> = (0..N_WRITERS).map(|writer| tokio::spawn(write(store.clone(), writer))).collect();
        let written = in_time("the writers", join_all(writers)).await;
        let n_events: i64 = written.into_iter().map(Result::unwrap).sum();
        end.send(true).unwrap();
        for n_seen in in_time("the readers", join_all(readers)).await {
            assert_eq!(n_seen.unwrap() as i64, n_events);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_racer_on_a_sequence_wins() {
    for (store, _place) in logs().await {
        for round in 0..10 {
            let expected = if round == 0 { Expected::NoStream } else { Expected::Sequence(round) };
            let racers = (0..24).map(|n| {
                let store = store.clone();
                tokio::spawn(async move { store.append(Append::to("facts", "a", expected, vec![note(n)])).await })
            });
            let outcomes = in_time("the racers", join_all(racers.collect::<Vec<_>>())).await;
            let mut n_winners = 0;
            for outcome in outcomes {
                match outcome.unwrap() {
                    Ok(_) => n_winners += 1,
                    Err(Error::SequenceMismatch { actual, .. }) => assert_eq!(actual, round + 1),
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(n_winners, 1);
        }
        assert_eq!(store.head().await.unwrap(), Position(10));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_file_write_one_history() {
    let place = super::Place::new();
    let stores = [place.open().await, place.open().await, place.open().await];
    let appends = (0..300).map(|n| {
        let store = stores[n % 3].clone();
        tokio::spawn(async move { store.append(noting(["a", "b"][n % 2], n as i64)).await })
    });
    let outcomes = in_time("the appends", join_all(appends.collect::<Vec<_>>())).await;
    let mut positions: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().unwrap().last().0).collect();
    positions.sort_unstable();
    assert_eq!(positions, (1..=300).collect::<Vec<_>>());
    for store in stores {
        check_history(&everything(&store).await);
    }
}

/// Appends have three events each, so every append ends at a multiple of three.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_view_never_shows_part_of_an_append_under_concurrent_writes() {
    for (store, _place) in logs().await {
        let (end, ended) = watch::channel(false);
        let asker = tokio::spawn({
            let store = store.clone();
            async move {
                while !*ended.borrow() {
                    let head = store.head().await.unwrap();
                    for ahead in 1..=2 {
                        let whole = store.whole(Position(head.0 + ahead)).await.unwrap();
                        assert!(whole >= head && whole.0 % 3 == 0, "{whole} is no end of an append");
                    }
                }
            }
        });
        let writers = (0..8).map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    let append = Append::to("facts", &format!("{writer}"), Expected::Any, notes([n, n, n]));
                    store.append(append).await.unwrap();
                }
            })
        });
        for outcome in in_time("the writers", join_all(writers.collect::<Vec<_>>())).await {
            outcome.unwrap();
        }
        end.send(true).unwrap();
        in_time("the asker", asker).await.unwrap();
    }
}
