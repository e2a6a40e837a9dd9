//! The prefix property under concurrent writers and readers: a checker examines everything that each reader saw. The
//! visible part is always 1..h for some h, h never falls, aggregates have no gap, and a writer whose append was
//! acknowledged sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{join_all, join4};

use super::generate::{Dice, meant};
use super::rig::{Rig, check_history, everything, new_name, note, notes};
use crewlog_mq::{Append, EventStore, Expected, Options, PAGE_EVENTS_MAX, Position, Query, Range, Recorded, Start};

const N_WRITERS: u64 = 6;
const N_APPENDS: u64 = 15;
/// A follower that has not received everything by then has failed.
const FOLLOWING_MAX: Duration = Duration::from_secs(60);

pub(super) async fn check(rig: &Rig, seed: u64) {
    let name = new_name();
    // Two stores, as in two processes.
    let stores = [rig.open(&name, Options::default()).await, rig.open(&name, Options::default()).await];
    let n_writing = AtomicU64::new(N_WRITERS);
    let writers = (0..N_WRITERS).map(|n| {
        let (store, n_writing) = (stores[n as usize % 2].clone(), &n_writing);
        async move {
            let written = write(&store, n, Dice::new(seed.wrapping_add(n))).await;
            n_writing.fetch_sub(1, Ordering::SeqCst);
            written
        }
    });
    let queries = [Query::all(), Query::aggregate("facts", "shared"), Query::tag("even")];
    let pages = queries.iter().zip(stores.iter().cycle()).map(|(query, store)| page_by_page(store, query, &n_writing));
    let (followers, whole) = (stores.iter().map(follow), whole_logs(&stores[1], &n_writing));
    let (written, pages, followed, whole) = join4(join_all(writers), join_all(pages), join_all(followers), whole).await;
    let history = everything(&stores[0]).await;
    check_history(&history);
    for (query, events) in queries.iter().zip(pages) {
        assert_eq!(
            events,
            meant(query, Range::default(), &history),
            "a reader missed, repeated or reordered something"
        );
    }
    for events in followed.into_iter().chain([whole]) {
        assert_eq!(events, history, "a follower missed, repeated or reordered something");
    }
    let mut acknowledged: Vec<_> = written.into_iter().flatten().collect();
    acknowledged.sort_unstable();
    let positions: Vec<_> = history.iter().map(|event| event.position).collect();
    assert_eq!(acknowledged, positions, "what was acknowledged is the log");
}

/// The number of events a writer writes: one, or three over two aggregates.
fn n_events(n: u64) -> u64 {
    if n.is_multiple_of(3) { 3 } else { 1 }
}

/// Writes to its own aggregate and to a shared one, in one stream, and immediately reads its own writes.
async fn write(store: &EventStore, writer: u64, mut dice: Dice) -> Vec<Position> {
    let mut places = Vec::new();
    for n in 0..N_APPENDS {
        let tagged = if dice.one_in(2) { note(n).with_tags(["even"]) } else { note(n) };
        let append = Append::to("facts", "shared", Expected::Any, vec![tagged]);
        let more = if n_events(n) == 3 { notes(2) } else { vec![] };
        let append = append.and("facts", &format!("own-{writer}"), Expected::Any, more);
        let appended = store.append(append).await.expect("an append of any kind is accepted");
        let head = store.head().await.expect("the head can be read");
        assert!(head >= appended.last(), "the head is {head} after {} was acknowledged", appended.last());
        let first = appended.places[0].position;
        let range = Range::after(Position(first.0 - 1));
        let found = store.read(&Query::aggregate("facts", "shared"), range, 1).await.expect("the log can be read");
        assert_eq!(found.events[0].position, first, "who was answered sees what it wrote");
        places.extend(appended.places.iter().map(|place| place.position));
    }
    places
}

/// Reads page after page until everything is written and read.
async fn page_by_page(store: &EventStore, query: &Query, n_writing: &AtomicU64) -> Vec<Recorded> {
    let (mut events, mut after) = (Vec::new(), Position(0));
    loop {
        let is_last = n_writing.load(Ordering::SeqCst) == 0;
        let page = store.read(query, Range::after(after), 7).await.expect("the log can be read");
        assert!(page.next >= after, "reads go on, and not back");
        after = page.next;
        events.extend(page.events);
        if is_last && !page.more {
            return events;
        }
        give_way().await;
    }
}

/// Reads the whole log repeatedly: it has no gap, and never loses an event.
async fn whole_logs(store: &EventStore, n_writing: &AtomicU64) -> Vec<Recorded> {
    let mut before: Vec<Recorded> = Vec::new();
    loop {
        let is_last = n_writing.load(Ordering::SeqCst) == 0;
        let events = store.read(&Query::all(), Range::default(), PAGE_EVENTS_MAX).await.expect("it can be read").events;
        check_history(&events);
        assert!(events.starts_with(&before), "what was visible stays, and new events come behind it");
        let last = events.last().map_or(Position(0), |event| event.position);
        assert_eq!(store.whole(last).await.expect("it can be read"), last, "an append is visible all at once");
        before = events;
        if is_last {
            return before;
        }
        give_way().await;
    }
}

/// The first events that a live stream brings.
async fn follow(store: &EventStore) -> Vec<Recorded> {
    let n_all = N_WRITERS * (0..N_APPENDS).map(n_events).sum::<u64>();
    let stream = store.follow(&Query::all(), Start::Beginning).take(usize::try_from(n_all).expect("they are few"));
    let events = stream.map(|event| event.expect("no read fails")).collect();
    tokio::time::timeout(FOLLOWING_MAX, events).await.expect("a follower gets all that was written")
}

/// Yields to the other futures of this task.
async fn give_way() {
    tokio::task::yield_now().await;
}
