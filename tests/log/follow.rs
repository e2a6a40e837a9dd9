//! Following a log: history, then live events, in one stream.

use std::time::Duration;

use crewlog_mq::{
    Append, Envelope, Error, EventStore, EventStream, Expected, Followed, Metadata, NewEvent, Position, Query, Range,
    Start, Timestamp,
};
use futures::{FutureExt, StreamExt};

use super::{Fact, Place, in_time, logs, note, notes, noting};

async fn next(stream: &mut EventStream<Fact>) -> Result<Envelope<Fact>, Error> {
    in_time("the next event", stream.next()).await.expect("a stream has no end")
}

async fn take(mut stream: EventStream<Fact>, n_events: i64) -> Vec<i64> {
    let mut positions = Vec::new();
    for _ in 0..n_events {
        positions.push(next(&mut stream).await.expect("every event can be decoded").recorded.position.0);
    }
    positions
}

async fn write(store: EventStore, writer: i64, n_events: i64) {
    for n in 0..n_events {
        store.append(noting(&format!("{writer}"), n)).await.expect("an append of any kind is accepted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn history_and_live_events_join_without_gaps_or_duplicates_under_concurrent_writes() {
    for (store, _place) in logs().await {
        store.append(Append::to("facts", "history", Expected::Any, notes(0..1100))).await.unwrap();
        let writers: Vec<_> = (0..8).map(|writer| tokio::spawn(write(store.clone(), writer, 50))).collect();
        let starts = [(Start::Beginning, 0), (Start::After(Position(600)), 600), (Start::After(Position(1100)), 1100)];
        let readers: Vec<_> = [starts, starts]
            .into_iter()
            .flatten()
            .map(|(start, after)| {
                let stream = store.subscribe_from(&Query::all(), start).unwrap();
                tokio::spawn(async move { (after, take(stream, 1500 - after).await) })
            })
            .collect();
        for reader in readers {
            let (after, positions) = reader.await.unwrap();
            assert_eq!(positions, (after + 1..=1500).collect::<Vec<_>>());
        }
        for writer in writers {
            writer.await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_idle_stream_wakes_for_each_new_event() {
    for (store, _place) in logs().await {
        let mut stream = store.subscribe::<Fact>(&Query::all()).unwrap();
        for n in 0..20 {
            assert!(stream.next().now_or_never().is_none(), "nothing comes before it is written");
            store.append(noting("a", n)).await.unwrap();
            assert_eq!(next(&mut stream).await.unwrap().event, Fact::Noted { n });
        }
    }
}

#[tokio::test]
async fn a_stream_from_now_starts_after_the_head_and_misses_nothing() {
    for (store, _place) in logs().await {
        store.append(Append::to("facts", "old", Expected::Any, notes([1, 2, 3]))).await.unwrap();
        let stream = store.subscribe_from(&Query::all(), Start::Now).unwrap();
        let reader = tokio::spawn(take(stream, 5));
        while !reader.is_finished() {
            store.append(noting("a", 4)).await.unwrap();
            tokio::task::yield_now().await;
        }
        let positions = reader.await.unwrap();
        assert!(positions[0] > 3, "{positions:?}");
        assert_eq!(positions, (positions[0]..positions[0] + 5).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_stream_yields_only_events_that_match_its_query() {
    for (store, _place) in logs().await {
        let mut stream = store.subscribe::<Fact>(&Query::tag("wanted").of_type("Noted")).unwrap();
        for n in 0..40 {
            let event = if n % 4 == 0 { note(n).with_tags(["wanted"]) } else { note(n) };
            store.append(Append::to("facts", "a", Expected::Any, vec![event])).await.unwrap();
            if n % 4 == 0 {
                assert_eq!(next(&mut stream).await.unwrap().event, Fact::Noted { n });
            }
        }
    }
}

#[tokio::test]
async fn a_stream_yields_an_error_for_an_undecodable_event_and_continues() {
    for (store, _place) in logs().await {
        store.append(noting("a", 1)).await.unwrap();
        let other = |event_type, version| {
            let event = NewEvent::from_json(event_type, version, "{\"n\":2}".into(), &Metadata::default());
            Append::to("facts", "a", Expected::Any, vec![event.unwrap()])
        };
        store.append(other("Unknown", "1.0")).await.unwrap();
        store.append(other("Noted", "9.0")).await.unwrap();
        let mut streams = [(); 2].map(|()| store.subscribe::<Fact>(&Query::all()).unwrap());
        store.append(noting("a", 4)).await.unwrap();
        for stream in &mut streams {
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(match next(stream).await {
                    Ok(envelope) => (envelope.recorded.position.0, "event"),
                    Err(Error::Decode { position, .. }) => (position.0, "undecodable"),
                    Err(other) => panic!("{other}"),
                });
            }
            assert_eq!(seen, [(1, "event"), (2, "undecodable"), (3, "undecodable"), (4, "event")]);
        }
    }
}

#[tokio::test]
async fn a_stream_sees_commits_of_another_store_on_the_same_file() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    for n in 0..10 {
        writer.append(noting("a", n)).await.unwrap();
        assert_eq!(next(&mut stream).await.unwrap().event, Fact::Noted { n });
    }
}

/// The reader's store never writes, so only its own poll of the file can wake the stream.
#[tokio::test]
async fn a_stream_outlives_its_store_handle() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    drop(reader);
    writer.append(noting("a", 1)).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().event, Fact::Noted { n: 1 });
}

#[tokio::test]
async fn a_stream_from_a_time_starts_with_the_first_event_at_or_after_it() {
    for (store, _place) in logs().await {
        let mut made = Vec::new();
        for n in 0..5 {
            made.push(store.append(noting("a", n)).await.unwrap().created_at);
        }
        let first = async |since: Timestamp| {
            let mut stream = store.subscribe_from::<Fact>(&Query::all(), Start::At(since)).unwrap();
            next(&mut stream).await.unwrap().recorded
        };
        assert_eq!(first(Timestamp(0)).await.position, Position(1));
        let expected = made.iter().position(|at| *at == made[3]).unwrap() as i64 + 1;
        assert_eq!(first(made[3]).await.position, Position(expected));
        // Events before a start time in the future are skipped.
        let soon = store.now().plus(Duration::from_millis(50));
        let writing = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(5));
            loop {
                ticks.tick().await;
                store.append(noting("a", 9)).await.unwrap();
            }
        };
        let seen = tokio::select! {
            seen = first(soon) => seen,
            () = writing => unreachable!("it has no end"),
        };
        assert!(seen.created_at >= soon && seen.position > Position(5));
    }
}

#[tokio::test]
async fn a_stream_reports_each_time_it_catches_up() {
    for (store, _place) in logs().await {
        store.append(Append::to("facts", "a", Expected::Any, notes(0..3))).await.unwrap();
        let mut stream = Box::pin(store.follow_marked(&Query::stream("facts"), Start::After(Position(1))));
        let mut told = async || match in_time("the next item", stream.next()).await.unwrap().unwrap() {
            Followed::Event(event) => event.position.0,
            Followed::CaughtUp(position) => -position.0,
        };
        assert_eq!([told().await, told().await, told().await], [2, 3, -3]);
        store.append(noting("a", 3)).await.unwrap();
        assert_eq!(told().await, 4, "a live event is no news of that kind");
        // More at once than memory keeps for slow readers.
        store.append(Append::to("facts", "a", Expected::Any, notes(0..3000))).await.unwrap();
        for n in 5..=3004 {
            assert_eq!(told().await, n);
        }
        assert_eq!(told().await, -3004);
    }
}

#[tokio::test]
async fn waiting_for_a_position_ends_when_another_store_writes_it() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let waiting = async {
        reader.wait_until(Position(2)).await.unwrap();
        reader.head().await.unwrap()
    };
    let writing = async {
        for n in 0..2 {
            writer.append(noting("a", n)).await.unwrap();
        }
    };
    let (head, ()) = in_time("the position", async { tokio::join!(waiting, writing) }).await;
    assert_eq!(head, Position(2));
    in_time("what is there", reader.wait_until(Position(1))).await.unwrap();
}

#[tokio::test]
async fn the_records_of_a_range_can_be_read_from_either_end() {
    for (store, _place) in logs().await {
        store.append(Append::to("facts", "a", Expected::Any, notes(0..1200))).await.unwrap();
        let range = Range::between(Position(100), Position(1150));
        let positions = async |range| {
            let records = store.records(&Query::stream("facts"), range).map(|record| record.unwrap().position.0);
            records.collect::<Vec<_>>().await
        };
        assert_eq!(positions(range).await, (101..=1150).collect::<Vec<_>>());
        assert_eq!(positions(range.backwards()).await, (101..=1150).rev().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn following_an_oversized_query_yields_an_error_at_once_and_ends() {
    for (store, _place) in logs().await {
        let query = (0..=crewlog_mq::TAGS_MAX).fold(Query::all(), |query, n| query.and_tag(n.to_string()));
        let mut stream = std::pin::pin!(store.follow(&query, Start::Beginning));
        let told = in_time("a refusal", stream.next()).await.expect("it is told");
        assert!(matches!(told, Err(Error::LimitPassed { .. })), "{told:?}");
        assert!(in_time("the end", stream.next()).await.is_none());
    }
}
