//! Reading: queries against a naive filter, limits, pages, and views without partial appends.

use crewlog_mq::{Append, EventStore, Expected, Metadata, NewEvent, Page, Position, Query, Range, Recorded};
use futures::StreamExt;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Fact, everything, logs, note, notes, noting};

/// The parts of one event of a random log: stream, aggregate, type, tags.
type Traits = (&'static str, &'static str, Fact, Vec<&'static str>);

/// The number of events before the random ones: a backend may read a short range differently from a long one.
const N_BEFORE: i64 = 300;
const STREAMS: [&str; 2] = ["s", "t"];
const AGGREGATES: [&str; 3] = ["1", "2", "3"];
const TAGS: [&str; 3] = ["x", "y", "z"];

fn some_traits() -> impl Strategy<Value = Traits> {
    (
        prop::sample::select(&STREAMS[..]),
        prop::sample::select(&AGGREGATES[..]),
        prop::sample::select(vec![Fact::Noted { n: 1 }, Fact::Closed]),
        prop::sample::subsequence(&TAGS[..], 0..=3),
    )
}

fn some_query() -> impl Strategy<Value = Query> {
    (
        prop::sample::select(vec!["", "s", "t", "none"]),
        prop::option::weighted(0.4, prop::sample::select(vec!["1", "2", "3", "none"])),
        prop::option::weighted(0.3, prop::sample::select(vec!["Noted", "Closed", "None"])),
        prop::collection::vec(prop::sample::select(vec!["x", "y", "z", "none"]), 0..=2),
    )
        .prop_map(|(stream_id, aggregate_id, event_type, tags)| Query {
            stream_id: stream_id.into(),
            event_type: event_type.map(Into::into),
            aggregate_id: aggregate_id.map(Into::into),
            tags: tags.into_iter().map(Into::into).collect(),
            ..Query::default()
        })
}

fn some_range() -> impl Strategy<Value = Range> {
    let position = || prop_oneof![0..20i64, N_BEFORE - 10..N_BEFORE + 35];
    (position(), prop::option::of(position())).prop_map(|(after, up_to)| Range {
        after: Position(after),
        up_to: up_to.map(Position),
        ..Range::default()
    })
}

/// The meaning of a query, without a database.
fn matches(query: &Query, range: Range, event: &Recorded) -> bool {
    (query.stream_id.is_empty() || query.stream_id == event.stream_id)
        && query.aggregate_id.as_ref().is_none_or(|aggregate_id| *aggregate_id == event.aggregate_id)
        && query.event_type.as_ref().is_none_or(|event_type| *event_type == event.event_type)
        && query.tags.iter().all(|tag| event.tags.contains(tag))
        && event.position > range.after
        && range.up_to.is_none_or(|up_to| event.position <= up_to)
}

async fn log_of(traits: &[Traits]) -> EventStore {
    let store = EventStore::in_memory().await.expect("a log in memory");
    let before = notes(0..N_BEFORE).into_iter().zip(TAGS.iter().cycle()).map(|(event, tag)| event.with_tags([*tag]));
    let before = Append::to("s", "1", Expected::Any, before.collect());
    store.append(before).await.expect("an append of any kind is accepted");
    for (stream_id, aggregate_id, fact, tags) in traits {
        let event = NewEvent::of(fact, &Metadata::default()).expect("a fact is JSON").with_tags(tags.iter().copied());
        let append = Append::to(stream_id, aggregate_id, Expected::Any, vec![event]);
        store.append(append).await.expect("an append of any kind is accepted");
    }
    store
}

/// Reads page after page, and checks the invariants of each page.
async fn in_pages(store: &EventStore, query: &Query, mut range: Range, limit: usize) -> Vec<Recorded> {
    let mut all = Vec::new();
    loop {
        let Page { events, next, more } = store.read(query, range, limit).await.expect("the log can be read");
        assert!(events.len() <= limit && next >= range.after);
        assert!(events.iter().all(|event| event.position > range.after && event.position <= next));
        all.extend(events);
        if !more {
            return all;
        }
        assert!(next > range.after, "a page before the last makes progress");
        range.after = next;
    }
}

#[test]
fn a_query_matches_a_naive_filter_at_any_page_size() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let logs = prop::collection::vec(some_traits(), 0..30);
    let reads = prop::collection::vec((some_query(), some_range(), 1..12usize), 12);
    let property = |(traits, reads): (Vec<Traits>, Vec<(Query, Range, usize)>)| {
        runtime.block_on(async {
            let store = log_of(&traits).await;
            let all = everything(&store).await;
            for (query, range, limit) in reads {
                let expected: Vec<_> = all.iter().filter(|event| matches(&query, range, event)).cloned().collect();
                prop_assert_eq!(&in_pages(&store, &query, range, 10_000).await, &expected, "{:?} {:?}", query, range);
                prop_assert_eq!(&in_pages(&store, &query, range, limit).await, &expected, "{:?} {:?}", query, range);
            }
            Ok(())
        })
    };
    TestRunner::new(config).run(&(logs, reads), property).unwrap();
}

#[tokio::test]
async fn every_page_size_gives_the_same_events() {
    for (store, _place) in logs().await {
        for n in 0..23 {
            let event = note(n).with_tags([if n % 3 == 0 { "third" } else { "other" }]);
            store.append(Append::to("facts", ["a", "b"][n as usize % 2], Expected::Any, vec![event])).await.unwrap();
        }
        for query in [Query::all(), Query::aggregate("facts", "a"), Query::tag("third"), Query::stream("facts")] {
            for range in [Range::default(), Range::between(Position(5), Position(20))] {
                let whole = in_pages(&store, &query, range, 10_000).await;
                for limit in 1..=24 {
                    assert_eq!(in_pages(&store, &query, range, limit).await, whole, "{query:?} by {limit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_page_reports_the_position_up_to_which_it_is_complete() {
    for (store, _place) in logs().await {
        for n in 1..=6 {
            store.append(noting(["a", "b"][n as usize % 2], n)).await.unwrap();
        }
        let a = Query::aggregate("facts", "a");
        for (query, after, up_to, limit, n_events, next, more) in [
            (Query::all(), 0, None, 4, 4, 4, true),
            (Query::all(), 4, None, 4, 2, 6, false),
            (Query::all(), 0, None, 6, 6, 6, false),
            (Query::all(), 6, None, 4, 0, 6, false),
            (Query::all(), 99, None, 4, 0, 99, false),
            (Query::all(), 0, Some(3), 3, 3, 3, false),
            (Query::all(), 0, Some(99), 9, 6, 6, false),
            (Query::all(), 5, Some(3), 9, 0, 5, false),
            (Query::all(), 0, None, 0, 0, 0, true),
            (Query::stream("none"), 0, None, 4, 0, 6, false),
            (a.clone(), 0, None, 2, 2, 4, true),
            (a, 0, Some(3), 9, 1, 3, false),
        ] {
            let range = Range { after: Position(after), up_to: up_to.map(Position), ..Range::default() };
            let page = store.read(&query, range, limit).await.unwrap();
            assert_eq!(
                (page.events.len(), page.next, page.more),
                (n_events, Position(next), more),
                "{query:?} {range:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_page_is_limited_in_bytes_but_has_at_least_one_event() {
    for (store, _place) in logs().await {
        let large = format!("\"{}\"", "x".repeat(24 << 20));
        for _ in 0..4 {
            let event = NewEvent::from_json("T", "1", large.clone(), &Metadata::default()).unwrap();
            store.append(Append::to("raw", "a", Expected::Any, vec![event])).await.unwrap();
        }
        let page = store.read(&Query::all(), Range::default(), 100).await.unwrap();
        assert!((1..4).contains(&page.events.len()) && page.more, "{} events", page.events.len());
        assert_eq!(in_pages(&store, &Query::all(), Range::default(), 100).await.len(), 4);
    }
}

#[tokio::test]
async fn loading_reads_all_pages() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(Append::to("facts", "a", Expected::Any, notes(1..=2500))).await.unwrap();
    let loaded: Vec<Fact> = store.load_events(&Query::all(), Some(Position(3))).await.unwrap();
    assert_eq!(loaded, (4..=2500).map(|n| Fact::Noted { n }).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_view_as_of_a_position_ends_with_the_last_complete_append() {
    for (store, _place) in logs().await {
        assert_eq!(store.whole(Position(7)).await.unwrap(), Position(0));
        for n_events in [1, 3, 1, 2] {
            store.append(Append::to("facts", "a", Expected::Any, notes(0..n_events))).await.unwrap();
        }
        let whole = [0, 1, 1, 1, 4, 5, 5, 7, 7, 7];
        for (at, expected) in whole.into_iter().enumerate() {
            assert_eq!(store.whole(Position(at as i64)).await.unwrap(), Position(expected), "as of {at}");
        }
        assert_eq!(store.whole(Position(i64::MAX)).await.unwrap(), Position(7));
    }
}

/// A cancelled read continues in the background; until it ends it must count as one.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_reads_do_not_use_up_connections() {
    let place = super::Place::new();
    let store = place.open().await;
    for n in 0..50 {
        store.append(noting("a", n)).await.unwrap();
    }
    let path = std::fs::canonicalize(place.path()).unwrap();
    let n_open = || {
        let links =
            std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.unwrap().path().read_link().ok());
        links.filter(|link| *link == path).count()
    };
    for _ in 0..200 {
        let mut read = Box::pin(store.records(&Query::all(), Range::default()).collect::<Vec<_>>());
        // It starts, and is dropped.
        let _ = futures::poll!(&mut read);
    }
    // Queued reads come before new ones.
    futures::future::join_all((0..8).map(|_| store.head())).await;
    assert!(n_open() <= 6, "{} connections", n_open());
}
