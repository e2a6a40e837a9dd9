//! A follower gets events in memory, news, faults, and the end; many threads use one tail.

use std::sync::mpsc::channel;

use futures::FutureExt;

use super::*;

fn event(position: i64, n_bytes: usize) -> Recorded {
    Recorded {
        position: Position(position),
        event_id: Uuid::from_u128(position.unsigned_abs().into()),
        stream_id: "s".into(),
        aggregate_id: "a".into(),
        sequence: position,
        event_type: "E".into(),
        event_version: "1.0".into(),
        data: "x".repeat(n_bytes),
        metadata: String::new(),
        tags: Vec::new(),
        created_at: Timestamp(position),
        append_start: Position(position),
    }
}

fn end(position: i64) -> End {
    End::from(&event(position, 0))
}

fn publish(tail: &Tail, generation: u64, positions: impl IntoIterator<Item = i64>) {
    tail.publish(generation, positions.into_iter().map(|position| event(position, 1)).collect());
}

/// The positions of events in memory after a position.
fn after(follower: &Follower, position: i64, limit: usize) -> Option<Vec<i64>> {
    let found = follower.after(Position(position), limit)?;
    Some(found.iter().map(|event| event.position.0).collect())
}

/// The news after a position; `None` if there is none yet.
fn news(follower: &mut Follower, read_to: i64) -> Option<Result<(), String>> {
    let told = follower.wait(Position(read_to)).now_or_never()?;
    Some(told.map_err(|error| error.to_string()))
}

/// Another event is at the known end: the log went back to `head`.
fn go_back(tail: &Tail, head: i64) -> bool {
    tail.saw(tail.seen(), end(head), Some((Uuid::nil(), Timestamp(0))))
}

#[test]
fn events_are_in_memory_while_somebody_follows() {
    let tail = Arc::new(Tail::default());
    publish(&tail, 0, 1..=3);
    let follower = tail.follow();
    assert_eq!(after(&follower, 0, 9), None, "nobody followed when they came");
    publish(&tail, 0, 4..=6);
    assert_eq!(after(&follower, 3, 9), Some(vec![4, 5, 6]));
    assert_eq!(after(&follower, 4, 1), Some(vec![5]));
    assert_eq!([after(&follower, 2, 9), after(&follower, 6, 9), after(&follower, 7, 9)], [None, None, None]);
    let second = tail.follow();
    assert_eq!(after(&second, 3, 9), Some(vec![4, 5, 6]));
    drop(follower);
    assert!(tail.is_followed());
    assert_eq!(after(&second, 3, 9), Some(vec![4, 5, 6]), "another one follows");
    drop(second);
    assert!(!tail.is_followed());
    assert_eq!(after(&tail.follow(), 3, 9), None);
}

#[test]
fn events_in_memory_have_no_gap_and_none_is_there_twice() {
    let tail = Arc::new(Tail::default());
    let follower = tail.follow();
    publish(&tail, 0, 1..=3);
    publish(&tail, 0, 2..=4);
    assert_eq!(after(&follower, 0, 9), Some(vec![1, 2, 3, 4]));
    publish(&tail, 0, 6..=7);
    assert_eq!((after(&follower, 3, 9), after(&follower, 5, 9)), (None, Some(vec![6, 7])));
    assert_eq!((tail.head(), tail.seen().end), (Position(7), end(7)));
}

#[test]
fn the_memory_of_a_tail_is_bounded() {
    const MIB: usize = 1 << 20;
    let tail = Arc::new(Tail::default());
    let follower = tail.follow();
    tail.publish(0, (1..=20).map(|position| event(position, MIB)).collect());
    assert_eq!(after(&follower, 11, 99), None);
    assert_eq!(after(&follower, 12, 99), Some((13..=20).collect()), "8 MiB of them");
    // Metadata counts too.
    let large = Recorded { metadata: "x".repeat(MIB), ..event(21, MIB) };
    tail.publish(0, vec![large]);
    assert_eq!((after(&follower, 13, 99), after(&follower, 14, 1)), (None, Some(vec![15])));
    // Bytes of forgotten events do not count: of small ones, as many as may be are kept.
    publish(&tail, 0, 23..=3000);
    let first = 3000 - i64::try_from(EVENTS_MAX).expect("it is small");
    assert_eq!((after(&follower, first - 1, 1), after(&follower, first, 1)), (None, Some(vec![first + 1])));
}

#[test]
fn news_is_a_later_event_however_it_became_known() {
    let tail = Arc::new(Tail::default());
    let mut follower = tail.follow();
    assert_eq!(news(&mut follower, 0), None);
    publish(&tail, 0, 1..=3);
    assert_eq!((news(&mut follower, 2), news(&mut follower, 3)), (Some(Ok(())), None));
    tail.grew(0, end(5));
    assert_eq!((news(&mut follower, 4), news(&mut follower, 5)), (Some(Ok(())), None));
    tail.grew(0, end(4));
    assert_eq!((tail.head(), tail.seen().end), (Position(5), end(5)), "an older one changes nothing");
    publish(&tail, 0, []);
    assert_eq!(news(&mut follower, 5), None);
}

#[test]
fn a_failed_poll_is_told_to_each_follower_once() {
    let tail = Arc::new(Tail::default());
    let (mut one, mut other) = (tail.follow(), tail.follow());
    for n in 1..=2 {
        tail.failed(Error::Closed);
        tail.failed(Error::IdReused { event_id: Uuid::nil(), position: Position(n) });
        let says = Error::IdReused { event_id: Uuid::nil(), position: Position(n) }.to_string();
        for follower in [&mut one, &mut other] {
            assert_eq!(news(follower, 0), Some(Err(says.clone())), "the last fault");
            assert_eq!(news(follower, 0), None);
        }
    }
    let mut later = tail.follow();
    assert_eq!(news(&mut later, 0), None, "it follows since after the fault");
    // An event that comes with a fault is news after it.
    tail.failed(Error::Closed);
    publish(&tail, 0, [1]);
    assert!(news(&mut later, 0).is_some_and(|told| told.is_err()));
    assert_eq!(news(&mut later, 0), Some(Ok(())));
}

#[test]
fn a_look_at_the_same_log_changes_no_generation() {
    let tail = Tail::default();
    assert!(tail.saw(tail.seen(), End::default(), None), "an empty log");
    assert!(tail.saw(tail.seen(), end(5), None));
    let before = tail.seen();
    assert_eq!((before.generation, before.end), (0, end(5)));
    assert!(tail.saw(before, end(7), Some(before.end.mark())));
    assert!(tail.saw(before, end(6), Some(before.end.mark())), "an older look");
    assert_eq!(tail.seen().end, end(7));
    assert!(tail.check(None).is_ok() && tail.check(Some(0)).is_ok() && tail.check(Some(1)).is_err());
}

#[test]
fn a_log_that_went_back_is_told_to_each_follower_until_it_enters_the_new_generation() {
    let tail = Arc::new(Tail::default());
    let mut follower = tail.follow();
    publish(&tail, 0, 1..=5);
    let stale = tail.seen();
    let mut ended = Box::pin(tail.ended(0));
    assert!(ended.as_mut().now_or_never().is_none());
    for found in [None, Some((Uuid::nil(), stale.end.created_at)), Some((stale.end.event_id, Timestamp(0)))] {
        let tail = Tail::default();
        tail.grew(0, end(5));
        assert!(!tail.saw(tail.seen(), end(2), found), "{found:?} is another event");
    }
    assert!(!go_back(&tail, 2));
    let says = Error::WentBack { known: Position(5), head: Position(2) }.to_string();
    assert_eq!(ended.now_or_never().map(|error| error.to_string()), Some(says.clone()));
    assert_eq!((tail.generation(), tail.head(), tail.seen().end), (1, Position(2), end(2)));
    // A look that began before the loss changes nothing.
    assert!(!tail.saw(stale, end(9), Some(stale.end.mark())));
    tail.grew(0, end(9));
    publish(&tail, 0, 6..=9);
    assert_eq!((tail.generation(), tail.head(), tail.seen().end), (1, Position(2), end(2)));
    let look = |is_same| Look { end: end(2), time: Timestamp(0), now: None, generation: 1, is_same };
    assert_eq!((tail.check_look(look(true)).is_ok(), tail.check_look(look(false)).is_err()), (true, true));
    assert_eq!(
        (tail.check(Some(0)).map_err(|error| error.to_string()), tail.check(Some(1)).is_ok()),
        (Err(says.clone()), true)
    );

    publish(&tail, 1, 3..=4);
    assert_eq!((follower.generation(), after(&follower, 2, 9)), (0, None), "they are of another generation");
    for _ in 0..2 {
        assert_eq!(news(&mut follower, 9), Some(Err(says.clone())));
    }
    assert_eq!([follower.enter_generation(), follower.enter_generation()], [true, false]);
    assert_eq!((follower.generation(), after(&follower, 2, 9)), (1, Some(vec![3, 4])));
    assert_eq!((news(&mut follower, 4), news(&mut follower, 3)), (None, Some(Ok(()))));
    follower.leave_generation();
    assert!(follower.enter_generation());
}

#[tokio::test]
async fn a_closed_log_ends_everything_that_waits() {
    let tail = Arc::new(Tail::default());
    let mut follower = tail.follow();
    assert!(!tail.is_closed() && tail.closed().now_or_never().is_none());
    publish(&tail, 0, [1]);
    tail.failed(Error::Closed);
    go_back(&tail, 0);
    tail.close();
    assert!(tail.is_closed() && tail.closed().now_or_never().is_some());
    assert_eq!(news(&mut follower, 0), Some(Err(Error::Closed.to_string())), "before all other news");
    for generation in [0, 1] {
        assert!(matches!(tail.ended(generation).await, Error::Closed));
    }
    // Ends at once, not in a day.
    follower.pause(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_lasts_as_long_as_asked() {
    let tail = Arc::new(Tail::default());
    let begun = tokio::time::Instant::now();
    tail.follow().pause(Duration::from_secs(60)).await;
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[test]
fn a_backend_is_asked_to_poll_by_the_first_follower_and_on_request() {
    let tail = Arc::new(Tail::default());
    let is_asked = || tail.asked().now_or_never().is_some();
    assert!(!is_asked());
    let first = tail.follow();
    assert!(is_asked());
    let second = tail.follow();
    assert!(!is_asked(), "it polls already");
    tail.ask();
    tail.ask();
    assert_eq!([is_asked(), is_asked()], [true, false], "one poll answers both");
    drop((first, second));
    drop(tail.follow());
    assert!(is_asked(), "the first one again");
}

#[test]
fn new_followers_and_the_writer_never_wait_for_each_other() {
    const N_COMMITS: i64 = 200_000;
    let tail = Arc::new(Tail::default());
    let (done, is_done) = channel();
    let (writer, reader, writer_done) = (Arc::clone(&tail), tail, done.clone());
    std::thread::spawn(move || {
        for position in 1..=N_COMMITS {
            writer.grew(0, End { head: Position(position), ..End::default() });
        }
        writer_done.send(())
    });
    std::thread::spawn(move || {
        while reader.head() < Position(N_COMMITS) {
            drop(reader.follow());
        }
        done.send(())
    });
    for _ in 0..2 {
        is_done.recv_timeout(Duration::from_secs(60)).expect("nobody waits for ever");
    }
}
