//! Fail-over to an asynchronous standby under load: acknowledged events are lost, but no event moves to another
//! aggregate, and every reader of lost events is notified once and continues.
//!
//! One fail-over by default; `./test crash ROUNDS` runs more, each with another seed.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crewlog_mq::{
    Append, Cause, CellChange, CellExpected, Error, Event, EventStore, ExecuteError, Expected, Group, GroupHandler,
    Handler, Metadata, NewEvent, PAGE_EVENTS_MAX, Position, Query, Range, Recorded, Runner, Snapshot, Start,
    group_handler,
};
use futures::StreamExt;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::child::{Chance, n_rounds};
use super::{check_history, everything, in_time, went_back};
use crewlog_stage::cluster::{Cluster, Relay};

const N_STORES: u64 = 4;
/// The writers of each store.
const N_WRITERS: u64 = 2;
/// The store whose tasks pause from the fail-over until the others have written more than was lost.
const LATE: u64 = N_STORES - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The standby gets every event that is acknowledged now.
    Replicated,
    /// Events that are acknowledged now may be lost.
    Lagging,
    /// The old primary has ended.
    FailedOver,
    /// The new log is longer than the lost one.
    Overtaken,
    Ended,
}

/// The shared state that a store's tasks follow.
#[derive(Clone)]
struct Turn {
    phase: watch::Receiver<Phase>,
    is_late: bool,
}

impl Turn {
    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The phase in which to take the next step.
    async fn next(&mut self) -> Phase {
        let is_late = self.is_late;
        let phase = self.phase.wait_for(|phase| !is_late || *phase != Phase::FailedOver).await;
        *phase.expect("the test has not ended")
    }
}

/// An event of a writer, whose id encodes all of it.
#[derive(Debug, PartialEq, Eq)]
struct Meant {
    stream: String,
    aggregate: String,
    event_type: String,
    data: String,
    id: Uuid,
}

/// The `n`-th append of a writer: one to five events in one to four aggregates, sometimes new ones or of new types.
fn nth_events(writer: u64, n: u64) -> Vec<Meant> {
    let n_events = 1 + (writer + n) % 5;
    let meant = |index: u64| {
        let (stream, aggregate) = match index {
            0 | 1 => ("own".to_owned(), own(writer, n)),
            2 => ("shared".to_owned(), "all".to_owned()),
            3 => ("shared".to_owned(), format!("new-{writer}-{n}")),
            _last => (format!("stream-{}-{}", writer % 2, n / 16), "all".to_owned()),
        };
        let event_type = format!("Made{writer}x{}", n / 8);
        let data = format!("{{\"stream\":\"{stream}\",\"aggregate\":\"{aggregate}\",\"n\":{n},\"of\":{n_events}}}");
        Meant { stream, aggregate, event_type, data, id: Uuid::from_u64_pair(writer, 8 * n + index) }
    };
    (0..n_events).map(meant).collect()
}

/// The writer's own aggregate for its `n`-th append.
fn own(writer: u64, n: u64) -> String {
    format!("writer-{writer}-{}", n / 8)
}

/// A writer's knowledge of its own aggregate.
#[derive(Default)]
struct Known {
    sequence: i64,
    read_to: Position,
}

/// The append of these events with an expectation, a condition or a change of a cell.
fn nth_append(writer: u64, n: u64, known: &Known) -> Append {
    let expected = if n.is_multiple_of(2) { Expected::Any } else { Expected::Sequence(known.sequence) };
    let mut writes: Vec<(String, String, Vec<NewEvent>)> = Vec::new();
    for meant in nth_events(writer, n) {
        let event = NewEvent::from_json(&meant.event_type, "1.0", meant.data, &Metadata::default());
        let event = event.expect("it is JSON").with_id(meant.id);
        match writes.last_mut() {
            Some((stream, aggregate, events)) if (&*stream, &*aggregate) == (&meant.stream, &meant.aggregate) => {
                events.push(event);
            }
            Some(_) | None => writes.push((meant.stream, meant.aggregate, vec![event])),
        }
    }
    let mut append = Append::default();
    for (index, (stream, aggregate, events)) in writes.into_iter().enumerate() {
        append = append.and(&stream, &aggregate, if index == 0 { expected } else { Expected::Any }, events);
    }
    match n % 3 {
        0 => append
            .cell(CellChange::set("counts", &format!("writer-{writer}"), n.to_string()).expecting(CellExpected::Any)),
        1 => append.none_matching(Query::aggregate("own", &own(writer, n)), known.read_to),
        _ => append,
    }
}

/// The replies to a writer.
#[derive(Default)]
struct Answers {
    writer: u64,
    /// The appends that must be in the log, by number, and their first positions.
    kept: Vec<(u64, Position)>,
    /// Those that must be absent.
    refused: Vec<u64>,
}

async fn write(store: EventStore, writer: u64, mut turn: Turn) -> Answers {
    let mut answers = Answers { writer, ..Answers::default() };
    let mut known = Known::default();
    for n in 0.. {
        if n % 8 == 0 {
            known = Known::default();
        }
        let append = nth_append(writer, n, &known);
        let began = turn.next().await;
        if began == Phase::Ended {
            break;
        }
        for attempt in 0.. {
            let phase = turn.next().await;
            match store.append(append.clone()).await {
                Ok(appended) => {
                    // An append begun on the new primary stays, and so does one finished before the standby lagged.
                    if began >= Phase::FailedOver || turn.phase() == Phase::Replicated {
                        answers.kept.push((n, appended.places[0].position));
                    }
                    let n_own = nth_events(writer, n).len().min(2);
                    known = Known { sequence: appended.places[n_own - 1].sequence, read_to: appended.last() };
                    break;
                }
                Err(Error::SequenceMismatch { .. } | Error::MatchFound { .. }) => {
                    known = read_again(&store, &own(writer, n)).await;
                    break;
                }
                Err(error) if went_back(&error).is_some() => {
                    if attempt == 0 {
                        answers.refused.push(n);
                    }
                    known = read_again(&store, &own(writer, n)).await;
                    break;
                }
                Err(error @ (Error::IdReused { .. } | Error::PartlyKnown { .. } | Error::InvalidAppend { .. })) => {
                    panic!("writer {writer}, append {n}: {error}");
                }
                Err(_) if phase == Phase::Ended => return answers,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
    answers
}

async fn read_again(store: &EventStore, aggregate: &str) -> Known {
    let query = Query::aggregate("own", aggregate);
    loop {
        if let Ok(page) = store.read(&query, Range::default(), PAGE_EVENTS_MAX).await {
            return Known { sequence: page.events.last().map_or(0, |event| event.sequence), read_to: page.next };
        }
        tokio::task::yield_now().await;
    }
}

/// Each link names the previous one in its chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Link {
    Linked { tag: Uuid, before: Option<Uuid> },
}

impl Event for Link {}

/// The end of a chain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Chain {
    last: Option<Uuid>,
}

impl Handler for Chain {
    type Command = Uuid;
    type Event = Link;
    type Error = String;

    fn decide(&self, tag: Uuid) -> Result<Vec<Link>, String> {
        let link = Link::Linked { tag, before: self.last };
        Ok(vec![link])
    }

    fn apply(&mut self, Link::Linked { tag, .. }: &Link) {
        self.last = Some(*tag);
    }
}

impl Snapshot for Chain {
    const FOLD: &'static str = "chain";
    const VERSION: u32 = 1;
    const EVERY: u64 = 5;
}

/// Links two chains that all stores share: one guarded by its sequence, the other by a query.
async fn link(store: EventStore, mut turn: Turn) {
    let query = Query::stream("links");
    let mut runners = [
        Runner::<Chain>::new(store.clone(), "chain", "all", vec![]).with_snapshots(),
        Runner::<Chain>::over(store, query, ("links", "all"), |_| vec![]).with_snapshots(),
    ];
    while turn.next().await != Phase::Ended {
        for runner in &mut runners {
            match runner.execute(Uuid::now_v7(), &Cause::request()).await {
                Ok(_) | Err(ExecuteError::Contended { .. } | ExecuteError::Store(_)) => {}
                Err(ExecuteError::Refused(refusal)) => panic!("{refusal}"),
            }
            tokio::task::yield_now().await;
        }
    }
}

/// An item of a follower: an event, or the head of a log that went back.
type Seen = Result<Recorded, Position>;

/// Follows until the last event, `own/end`.
async fn follow(store: EventStore, query: Query) -> Vec<Seen> {
    let mut stream = Box::pin(store.follow(&query, Start::Beginning));
    let mut seen = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => {
                let is_last = event.aggregate_id == "end";
                seen.push(Ok(event));
                if is_last {
                    break;
                }
            }
            // Other faults are reported, and the stream continues.
            Err(error) => seen.extend(went_back(&error).map(Err)),
        }
    }
    seen
}

/// The group's effect for an event.
#[derive(Debug, Serialize, Deserialize)]
enum Effect {
    Made { of: Uuid },
}

impl Event for Effect {}

fn making() -> impl GroupHandler {
    group_handler(|event, delivery| {
        let effect = Effect::Made { of: event.event_id };
        let made = delivery.append("effects", &event.aggregate_id, Expected::Any, &effect);
        Box::pin(async move { Ok(made?) })
    })
}

fn group(store: &EventStore) -> Group {
    let waits = (Duration::from_millis(1), Duration::from_millis(20));
    store
        .group("makers")
        .query(Query::stream("own"))
        .partitions(4)
        .lease(Duration::from_secs(2))
        .backoff(waits.0, waits.1)
}

async fn work(store: EventStore, end: watch::Receiver<bool>) {
    loop {
        let mut end = end.clone();
        let stop = async move {
            let _ = end.wait_for(|is_ended| *is_ended).await;
        };
        if group(&store).run_until(making(), stop).await.is_ok() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn reach(store: &EventStore, goal: Position) {
    let reached = async { while !matches!(store.head().await, Ok(head) if head >= goal) {} };
    in_time("growth", reached).await;
}

async fn grow(store: &EventStore, by: u64) -> Position {
    let head = in_time("the head", store.head()).await.expect("the server is there");
    let goal = Position(head.0 + by as i64);
    reach(store, goal).await;
    goal
}

/// All tasks that use the log during a fail-over.
struct Load {
    writers: Vec<JoinHandle<Answers>>,
    linkers: Vec<JoinHandle<()>>,
    followers: Vec<(Query, JoinHandle<Vec<Seen>>)>,
    workers: Vec<JoinHandle<()>>,
    end_work: watch::Sender<bool>,
}

impl Load {
    fn start(stores: &[EventStore], phase: &watch::Receiver<Phase>) -> Self {
        let (end_work, work_ends) = watch::channel(false);
        let mut load = Self { writers: vec![], linkers: vec![], followers: vec![], workers: vec![], end_work };
        for (number, store) in (0..).zip(stores) {
            let turn = Turn { phase: phase.clone(), is_late: number == LATE };
            for writer in number * N_WRITERS..(number + 1) * N_WRITERS {
                load.writers.push(tokio::spawn(write(store.clone(), writer, turn.clone())));
            }
            load.linkers.push(tokio::spawn(link(store.clone(), turn)));
            for query in [Query::all(), Query::stream("own")] {
                load.followers.push((query.clone(), tokio::spawn(follow(store.clone(), query))));
            }
            if number < 2 {
                load.workers.push(tokio::spawn(work(store.clone(), work_ends.clone())));
            }
        }
        load
    }

    /// Ends all tasks once everyone has reached the last event; returns the replies and the items of the followers.
    async fn end(self, stores: &[EventStore]) -> (Vec<Answers>, Vec<(Query, Vec<Seen>)>) {
        let answers = in_time("the writers", join_all(self.writers)).await.into_iter().map(Result::unwrap).collect();
        in_time("the deciders", join_all(self.linkers)).await.into_iter().for_each(Result::unwrap);
        let last = NewEvent::from_json("Ended", "1.0", "{}".into(), &Metadata::default()).unwrap();
        let last = Append::to("own", "end", Expected::NoStream, vec![last]);
        let last = in_time("the end", stores[0].append(last)).await.expect("the log is there").last();
        let mut seen = Vec::new();
        for (query, follower) in self.followers {
            seen.push((query, in_time("a follower", follower).await.unwrap()));
        }
        in_time("the group", group(&stores[0]).wait_until(last)).await.expect("it goes on");
        self.end_work.send_replace(true);
        in_time("the workers", join_all(self.workers)).await.into_iter().for_each(Result::unwrap);
        (answers, seen)
    }
}

/// Each append is intact or absent; durably acknowledged ones are at their places.
fn check_appends(history: &[Recorded], answers: &[Answers]) {
    let mut appends: BTreeMap<Position, Vec<Meant>> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for event in history.iter().filter(|event| event.event_id.as_u64_pair().0 < N_STORES * N_WRITERS) {
        ids.insert(event.event_id);
        appends.entry(event.append_start).or_default().push(Meant {
            stream: event.stream_id.clone(),
            aggregate: event.aggregate_id.clone(),
            event_type: event.event_type.clone(),
            data: event.data.clone(),
            id: event.event_id,
        });
    }
    for (position, found) in &appends {
        let (writer, number) = found[0].id.as_u64_pair();
        assert_eq!(*found, nth_events(writer, number / 8), "the append at {position}");
    }
    check_history(history);
    for Answers { writer, kept, refused } in answers {
        for (n, position) in kept {
            let found = appends.get(position).map(|events| events[0].id);
            assert_eq!(found, Some(Uuid::from_u64_pair(*writer, 8 * n)), "{writer}'s append {n} at {position}");
        }
        for n in refused {
            assert!(!ids.contains(&Uuid::from_u64_pair(*writer, 8 * n)), "{writer}'s append {n} was refused");
        }
        assert!(refused.len() <= 1, "{writer} was refused more than once: {refused:?}");
    }
}

/// Each writer's cell has the value of its last append in the log that changed it.
async fn check_cells(store: &EventStore, history: &[Recorded]) {
    let mut expected = BTreeMap::new();
    for (writer, number) in history.iter().map(|event| event.event_id.as_u64_pair()) {
        if writer < N_STORES * N_WRITERS && number / 8 % 3 == 0 {
            expected.insert(format!("writer-{writer}"), (number / 8).to_string());
        }
    }
    let cells = store.cells("counts", "", 100).await.expect("they can be read");
    let found: BTreeMap<_, _> = cells.into_iter().map(|cell| (cell.key, cell.value)).collect();
    assert_eq!(found, expected, "cells change with their appends");
}

/// Every decision was made on all the events before it.
fn check_chains(history: &[Recorded]) {
    for stream in ["chain", "links"] {
        let mut last = None;
        for event in history.iter().filter(|event| event.stream_id == stream) {
            let Link::Linked { tag, before } = event.decode().expect("it is a link");
            assert_eq!(before, last, "the link at {} of {stream}", event.position);
            last = Some(tag);
        }
        assert!(last.is_some());
    }
}

/// The group has made each effect once, in the order of the causes.
fn check_effects(history: &[Recorded]) {
    let (mut causes, mut effects) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
    for event in history {
        match &*event.stream_id {
            "own" => causes.entry(&event.aggregate_id).or_default().push(event.event_id),
            "effects" => {
                let Effect::Made { of } = event.decode().expect("it is an effect");
                effects.entry(&event.aggregate_id).or_default().push(of);
            }
            _other => {}
        }
    }
    assert_eq!(effects, causes);
}

/// A follower has all events of the log, once and in order, except those it had passed before the log went back. It is
/// notified of that once, if it has read lost events.
fn check_follower(query: &Query, seen: &[Seen], history: &[Recorded]) {
    let history: Vec<_> = history.iter().filter(|event| query.matches(event)).collect();
    let end = history.iter().position(|event| event.aggregate_id == "end").expect("it is there");
    let history = &history[..=end];
    let turning = seen.iter().position(Result::is_err).unwrap_or(seen.len());
    let events = |seen: &[Seen]| seen.iter().flatten().cloned().collect::<Vec<_>>();
    let (before, after) = (events(&seen[..turning]), events(&seen[turning..]));
    let n_kept = before.iter().zip(history).take_while(|(seen, event)| seen == *event).count();
    // A lost event may have been appended again, elsewhere or at another time.
    let is_in_log = |seen: &Recorded| history.contains(&seen);
    let again = before[n_kept..].iter().find(|event| is_in_log(event));
    assert_eq!(again, None, "after {n_kept} events of {} it is out of order: {query:?}", before.len());
    let n_heard = seen.iter().filter(|seen| seen.is_err()).count();
    if *query == Query::all() || n_kept < before.len() {
        assert_eq!(n_heard, usize::from(n_kept < before.len()), "{} lost events: {query:?}", before.len() - n_kept);
    }
    let Some(Err(head)) = seen.get(turning) else {
        assert_eq!(before.len(), history.len());
        return;
    };
    assert!(n_heard == 1 && after.len() <= history.len(), "{n_heard} times, {} events: {query:?}", after.len());
    let (passed, rest) = history.split_at(history.len() - after.len());
    assert!(after.iter().eq(rest.iter().copied()), "it goes on without gap and repetition");
    let skipped = passed.last().filter(|event| event.position > *head);
    assert_eq!(skipped, None, "it goes on at {head}: {query:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failover_that_loses_events_moves_none_and_is_reported_once() {
    for _ in 0..n_rounds(1) {
        fail_over(&mut Chance::new()).await;
    }
}

async fn fail_over(chance: &mut Chance) {
    let primary = Cluster::start();
    let standby = primary.standby();
    let relay = Relay::to(&primary).await;
    let mut stores = Vec::new();
    for number in 0..N_STORES {
        let parameters = if number == 1 { "?pooler=transaction" } else { "" };
        stores.push(EventStore::open(&format!("{}{parameters}", relay.url())).await.expect("the log opens"));
    }
    let (phase, phases) = watch::channel(Phase::Replicated);
    let load = Load::start(&stores, &phases);
    grow(&stores[0], 50 + chance.below(200)).await;
    phase.send_replace(Phase::Lagging);
    in_time("the standby", standby.cut_off(&primary)).await;
    grow(&stores[0], 20 + chance.below(200)).await;
    chance.linger(20_000);
    relay.switch(None);
    let lost = EventStore::open(&primary.url()).await.expect("it is there").head().await.expect("it has a head");
    primary.go("stop");
    phase.send_replace(Phase::FailedOver);
    // Clients may reach the standby before it is writable.
    if chance.below(2) == 0 {
        relay.switch(Some(&standby));
    }
    standby.promote();
    relay.switch(Some(&standby));
    reach(&stores[0], Position(lost.0 + 1 + chance.below(100) as i64)).await;
    phase.send_replace(Phase::Overtaken);
    grow(&stores[0], 100 + chance.below(100)).await;
    phase.send_replace(Phase::Ended);
    let (answers, seen) = load.end(&stores).await;

    let promoted = EventStore::open(&standby.url()).await.expect("the log opens");
    let history = everything(&promoted).await;
    check_appends(&history, &answers);
    let checked = promoted.check().await.unwrap();
    assert_eq!((checked.findings, checked.more), (vec![], false));
    check_cells(&promoted, &history).await;
    check_chains(&history);
    check_effects(&history);
    for (query, seen) in &seen {
        check_follower(query, seen, &history);
    }
    for store in stores {
        in_time("closing", store.close()).await;
    }
}
