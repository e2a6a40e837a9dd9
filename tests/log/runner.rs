//! The runner: its appends, its races with other writers, and its state after a failure.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crewlog_mq::{
    Append, Cause, Error, EventStore, ExecuteError, Executed, Expected, Handler, Metadata, NewEvent, Position, Prefix,
    Query, Range, Recorded, Runner, Write,
};
use futures::FutureExt;

use super::{Fact, Place, check_history, everything, in_time, logs, note, noting};
use crewlog_stage::counting::counted;

/// Sums the noted numbers, up to a maximum, until it is closed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sum {
    total: i64,
    n_events: i64,
    closed: bool,
}

pub const TOTAL_MAX: i64 = 1000;

#[derive(Debug, Clone)]
pub enum Command {
    /// Notes each in turn; all or none.
    Add(Vec<i64>),
    /// Notes the rest up to the maximum.
    Fill,
    Close,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is too much")]
pub struct TooMuch(pub i64);

impl Handler for Sum {
    type Command = Command;
    type Event = Fact;
    type Error = TooMuch;

    fn decide(&self, command: Command) -> Result<Vec<Fact>, TooMuch> {
        let events = match command {
            Command::Add(numbers) => numbers.into_iter().map(|n| Fact::Noted { n }).collect(),
            Command::Fill => vec![Fact::Noted { n: TOTAL_MAX - self.total }],
            Command::Close if self.closed => vec![],
            Command::Close => vec![Fact::Closed],
        };
        let mut after = self.clone();
        for event in &events {
            after.apply(event);
        }
        if after.total > TOTAL_MAX {
            return Err(TooMuch(after.total));
        }
        Ok(events)
    }

    fn apply(&mut self, event: &Fact) {
        self.n_events += 1;
        match event {
            Fact::Noted { n } => self.total += n,
            Fact::Closed => self.closed = true,
        }
    }
}

pub type Sums = Runner<Sum>;

pub fn sums(store: &EventStore) -> Sums {
    Runner::new(store.clone(), "sums", "a", vec!["project:p".into()])
}

/// A warm state equals the fold of the log.
pub async fn check_state(runner: &Sums, store: &EventStore) {
    let history = store.load_events::<Fact>(&Query::aggregate("sums", "a"), None).await.expect("it can be read");
    assert_eq!(*runner.handler(), Sum::fold(&history));
    assert_eq!(runner.sequence(), history.len() as i64);
}

#[tokio::test]
async fn the_events_of_a_decision_are_one_append_with_tags_and_metadata() {
    for (store, _place) in logs().await {
        store.append(noting("other", 0)).await.unwrap();
        let mut runner = sums(&store);
        let cause = Cause::request();
        let executed = runner.execute(Command::Add(vec![1, 2, 3]), &cause).await.unwrap();
        assert_eq!((executed.events.len(), executed.position), (3, Position(4)));
        let history = everything(&store).await;
        for event in &history[1..] {
            assert_eq!((event.append_start, &*event.tags), (Position(2), &["project:p".to_owned()][..]));
            assert_eq!(event.metadata().unwrap(), *cause.metadata());
        }
        assert!(cause.metadata().correlation_id.is_some());
        check_state(&runner, &store).await;
    }
}

#[tokio::test]
async fn a_state_matches_the_rewritten_events() {
    let rewrite = |event: &NewEvent| {
        let changed = event.data().contains("13").then(|| event.data().replace("13", "0"));
        changed.map(|data| event.clone().with_json(data, event.metadata().into())).transpose()
    };
    for (store, _place) in logs().await {
        let mut runner = sums(&store.clone().rewriting(std::sync::Arc::new(rewrite)));
        for n in [1, 13, 2] {
            runner.execute(Command::Add(vec![n]), &Cause::request()).await.unwrap();
            check_state(&runner, &store).await;
        }
    }
}

/// Remembers the positions of its events.
#[derive(Debug, Clone, Default)]
struct Places {
    n_applied: usize,
    positions: Vec<i64>,
}

impl Handler for Places {
    type Command = i64;
    type Event = Fact;
    type Error = TooMuch;

    fn decide(&self, n: i64) -> Result<Vec<Fact>, TooMuch> {
        let events = vec![Fact::Noted { n }, Fact::Closed];
        Ok(events)
    }

    fn apply(&mut self, _: &Fact) {
        self.n_applied += 1;
    }

    fn placed(&mut self, position: Position) {
        self.positions.push(position.0);
    }
}

#[tokio::test]
async fn a_handler_learns_the_position_of_each_of_its_events() {
    for (store, _place) in logs().await {
        let runner = || Runner::<Places>::new(store.clone(), "places", "a", Vec::new());
        let mut warm = runner();
        warm.execute(1, &Cause::request()).await.unwrap();
        store.append(noting("other", 0)).await.unwrap();
        runner().execute(2, &Cause::request()).await.unwrap();
        let others = [write("b", Expected::NoStream)];
        warm.execute_with(3, &Cause::request(), &others).await.unwrap();
        let mut cold = runner();
        cold.catch_up().await.unwrap();
        for runner in [warm, cold] {
            assert_eq!(runner.handler().positions, [1, 2, 4, 5, 6, 7]);
            assert_eq!(runner.handler().n_applied, 6);
        }
    }
}

/// One event of another aggregate.
fn write(aggregate_id: &str, expected: Expected) -> crewlog_mq::Write {
    let events = vec![NewEvent::of(&Fact::Noted { n: 0 }, &Metadata::default()).expect("it is JSON")];
    crewlog_mq::Write { stream_id: "others".into(), aggregate_id: aggregate_id.into(), expected, events }
}

#[tokio::test]
async fn writes_of_other_aggregates_are_appended_with_a_decision_or_not_at_all() {
    for (store, _place) in logs().await {
        let (mut runner, mut rival) = (sums(&store), sums(&store));
        let others = [write("b", Expected::NoStream)];
        runner.execute_with(Command::Add(vec![1]), &Cause::request(), &others).await.unwrap();
        let history = everything(&store).await;
        assert_eq!(history.iter().map(|event| event.append_start.0).collect::<Vec<_>>(), [1, 1]);
        // Their own condition fails: the decision is not appended either, and they must be decided again.
        let others = [write("b", Expected::NoStream)];
        let stale = runner.execute_with(Command::Add(vec![2]), &Cause::request(), &others).await;
        assert!(
            matches!(&stale, Err(ExecuteError::Store(Error::SequenceMismatch { aggregate_id, .. })) if aggregate_id == "b")
        );
        // A refused decision appends none of them.
        let others = [write("c", Expected::NoStream)];
        let refused = runner.execute_with(Command::Add(vec![TOTAL_MAX]), &Cause::request(), &others).await;
        assert!(matches!(refused, Err(ExecuteError::Refused(_))), "{refused:?}");
        assert_eq!(store.head().await.unwrap(), Position(2));
        // A decision without events appends them alone.
        runner.execute(Command::Close, &Cause::request()).await.unwrap();
        rival.execute(Command::Add(vec![5]), &Cause::request()).await.unwrap();
        let late = runner.execute_as_read(Command::Close, &Cause::request()).await.unwrap();
        assert!(late.events.is_empty());
        runner.execute_with(Command::Close, &Cause::request(), &others).await.unwrap();
        rival.execute(Command::Add(vec![6]), &Cause::request()).await.unwrap();
        runner.catch_up().await.unwrap();
        assert_eq!((runner.handler().total, store.head().await.unwrap()), (12, Position(6)));
        check_state(&runner, &store).await;
    }
}

#[tokio::test]
async fn an_event_names_its_cause_and_inherits_its_correlation() {
    let store = EventStore::in_memory().await.unwrap();
    let mut runner = sums(&store);
    let request = Cause::request();
    runner.execute(Command::Add(vec![1]), &request).await.unwrap();
    let first = everything(&store).await.remove(0);
    runner.execute(Command::Add(vec![2]), &Cause::event(&first)).await.unwrap();
    runner.execute(Command::Add(vec![3]), &Cause::reaction("adder", &first)).await.unwrap();
    for event in &everything(&store).await[1..] {
        let metadata = event.metadata().unwrap();
        assert_eq!(metadata.correlation_id, request.metadata().correlation_id);
        assert_eq!(metadata.causation_id, Some(first.event_id));
    }
}

#[tokio::test]
async fn the_effect_of_an_event_without_correlation_uses_its_id_as_correlation() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(noting("a", 1)).await.unwrap();
    let first = everything(&store).await.remove(0);
    let metadata = Cause::event(&first).metadata().clone();
    assert_eq!((metadata.correlation_id, metadata.causation_id), (Some(first.event_id), Some(first.event_id)));
}

#[tokio::test]
async fn a_refused_or_ineffective_command_appends_nothing() {
    for (store, _place) in logs().await {
        let mut runner = sums(&store);
        runner.execute(Command::Add(vec![900]), &Cause::request()).await.unwrap();
        let refusal = runner.execute(Command::Add(vec![50, 51]), &Cause::request()).await.unwrap_err();
        assert!(matches!(refusal, ExecuteError::Refused(TooMuch(1001))), "{refusal}");
        check_state(&runner, &store).await;
        runner.execute(Command::Close, &Cause::request()).await.unwrap();
        let nothing = runner.execute(Command::Close, &Cause::request()).await.unwrap();
        assert_eq!(nothing, Executed { events: vec![], position: Position(2) });
        assert_eq!(store.head().await.unwrap(), Position(2));
        check_state(&runner, &store).await;
    }
}

#[tokio::test]
async fn a_command_is_decided_again_after_a_concurrent_append() {
    let place = Place::new();
    let store = place.open().await;
    let (mut first, mut second) = (sums(&store), sums(&store));
    first.execute(Command::Add(vec![100]), &Cause::request()).await.unwrap();
    second.catch_up().await.unwrap();
    let commits = place.hold_commits();
    let (one, other) = (Cause::request(), Cause::request());
    let release = async {
        tokio::task::yield_now().await;
        commits.unlock().unwrap();
    };
    let both =
        async { tokio::join!(first.execute(Command::Fill, &one), second.execute(Command::Fill, &other), release) };
    let (one, other, ()) = in_time("both", both).await;
    let mut filled: Vec<_> = [one, other].into_iter().map(|executed| executed.unwrap().events).collect();
    filled.sort_by_key(|events| format!("{events:?}"));
    assert_eq!(filled, [[Fact::Noted { n: 0 }], [Fact::Noted { n: 900 }]]);
    for runner in [&mut first, &mut second] {
        runner.catch_up().await.unwrap();
        check_state(runner, &store).await;
    }
}

#[tokio::test]
async fn a_command_executed_as_read_is_decided_again_only_on_a_conflict() {
    for (store, _place) in logs().await {
        let (counted, counts) = counted(&store);
        let (mut first, mut second) = (sums(&counted), sums(&store));
        first.execute_as_read(Command::Add(vec![100]), &Cause::request()).await.unwrap();
        counts.take_reads();
        first.execute_as_read(Command::Add(vec![1]), &Cause::request()).await.unwrap();
        assert_eq!(counts.take_reads(), 0, "all is known");
        second.execute(Command::Add(vec![500]), &Cause::request()).await.unwrap();
        // A refused or ineffective command is decided on the state already read.
        let refusal = first.execute_as_read(Command::Add(vec![900]), &Cause::request()).await.unwrap_err();
        assert!(matches!(refusal, ExecuteError::Refused(TooMuch(1001))), "{refusal}");
        assert_eq!(counts.take_reads(), 0);
        let filled = first.execute_as_read(Command::Fill, &Cause::request()).await.unwrap();
        assert_eq!(filled.events, [Fact::Noted { n: 399 }]);
        check_state(&first, &store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runners_on_one_aggregate_lose_nothing_and_each_gets_its_turn() {
    for (store, _place) in logs().await {
        let add = |store: EventStore| async move {
            let mut runner = sums(&store);
            for _ in 0..3 {
                runner.execute(Command::Add(vec![1]), &Cause::request()).await.expect("it is its turn");
            }
            check_warm(runner).await;
        };
        let all: Vec<_> = (0..40).map(|_| tokio::spawn(add(store.clone()))).collect();
        for runner in all {
            in_time("the runner", runner).await.unwrap();
        }
        let history = everything(&store).await;
        assert_eq!(history.len(), 120);
        check_history(&history);
    }
}

async fn check_warm(mut runner: Sums) {
    runner.catch_up().await.expect("it can be read");
    assert_eq!((runner.handler().total, runner.handler().n_events), (runner.sequence(), runner.sequence()));
}

/// An aggregate with a concurrent write between each read and append of the runner.
#[tokio::test]
async fn a_runner_that_keeps_losing_the_race_gives_up_and_appends_nothing() {
    let store =
        EventStore::on(Contended { below: EventStore::in_memory().await.unwrap(), n_writes: AtomicUsize::new(0) });
    let mut runner = sums(&store);
    match runner.execute(Command::Add(vec![5]), &Cause::request()).await.unwrap_err() {
        ExecuteError::Contended { stream_id, aggregate_id, attempts } => {
            assert_eq!((&*stream_id, &*aggregate_id, attempts), ("sums", "a", 32));
        }
        other => panic!("{other}"),
    }
    assert!(everything(&store).await.iter().all(|event| event.data == "{\"n\":1}"));
    runner.catch_up().await.unwrap();
    check_state(&runner, &store).await;
}

struct Contended {
    below: EventStore,
    n_writes: AtomicUsize,
}

impl crewlog_mq::Backend for Contended {
    fn append(&self, append: Append) -> futures::future::BoxFuture<'_, crewlog_mq::Result<crewlog_mq::Appended>> {
        async move {
            self.n_writes.fetch_add(1, Ordering::Relaxed);
            self.below.append(Append::to("sums", "a", Expected::Any, vec![note(1)])).await?;
            self.below.append(append).await
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        query: &'a Query,
        range: Range,
        limit: usize,
    ) -> futures::future::BoxFuture<'a, crewlog_mq::Result<crewlog_mq::Page>> {
        self.below.read(query, range, limit).boxed()
    }

    fn head(&self) -> futures::future::BoxFuture<'_, crewlog_mq::Result<Position>> {
        self.below.head().boxed()
    }

    fn whole(&self, at: Position) -> futures::future::BoxFuture<'_, crewlog_mq::Result<Position>> {
        self.below.whole(at).boxed()
    }

    fn log(&self) -> futures::future::BoxFuture<'_, crewlog_mq::Result<crewlog_mq::LogIdentity>> {
        self.below.log().boxed()
    }

    fn import(
        &self,
        identity: crewlog_mq::LogIdentity,
        records: crewlog_mq::Records,
    ) -> futures::future::BoxFuture<'_, crewlog_mq::Result<crewlog_mq::Imported>> {
        self.below.import(identity, records).boxed()
    }

    fn check(&self) -> futures::future::BoxFuture<'_, crewlog_mq::Result<crewlog_mq::Checked>> {
        self.below.check().boxed()
    }

    fn close(&self) -> futures::future::BoxFuture<'_, ()> {
        self.below.close().boxed()
    }

    fn now(&self) -> crewlog_mq::Timestamp {
        self.below.now()
    }

    fn cells<'a>(
        &'a self,
        space: &'a str,
        from: &'a str,
        limit: usize,
    ) -> futures::future::BoxFuture<'a, crewlog_mq::Result<Vec<crewlog_mq::Cell>>> {
        self.below.cells(space, from, limit).boxed()
    }

    fn stats(&self) -> futures::future::BoxFuture<'_, crewlog_mq::Result<crewlog_mq::Stats>> {
        self.below.stats().boxed()
    }

    fn tail(&self) -> &std::sync::Arc<crewlog_mq::Tail> {
        self.below.backend().tail()
    }
}

async fn caused(store: &EventStore) -> Recorded {
    store.append(noting("cause", 1)).await.expect("an append of any kind is accepted");
    everything(store).await.pop().expect("it has an event")
}

#[tokio::test]
async fn a_repeated_reaction_appends_nothing_and_keeps_the_state_correct() {
    for (store, _place) in logs().await {
        let cause = caused(&store).await;
        let mut warm = sums(&store);
        let first = warm.execute(Command::Add(vec![1, 2]), &Cause::reaction("adder", &cause)).await.unwrap();
        store.append(noting("other", 9)).await.unwrap();
        let mut cold = sums(&store);
        for runner in [&mut warm, &mut cold] {
            let again = runner.execute(Command::Add(vec![1, 2]), &Cause::reaction("adder", &cause)).await.unwrap();
            assert_eq!(again, Executed { events: vec![], position: first.position });
            check_state(runner, &store).await;
        }
        assert_eq!(store.head().await.unwrap(), Position(4));
    }
}

#[tokio::test]
async fn a_repeated_reaction_with_a_different_decision_keeps_the_first() {
    for (store, _place) in logs().await {
        let cause = caused(&store).await;
        let mut runner = sums(&store);
        runner.execute(Command::Fill, &Cause::reaction("filler", &cause)).await.unwrap();
        for other in [Command::Fill, Command::Add(vec![0, 0])] {
            let again = sums(&store).execute(other, &Cause::reaction("filler", &cause)).await.unwrap();
            assert_eq!((again.events, again.position), (vec![], Position(2)));
        }
        assert_eq!(store.head().await.unwrap(), Position(2));
    }
}

#[tokio::test]
async fn reaction_ids_are_derived_from_process_cause_and_index() {
    let store = EventStore::in_memory().await.unwrap();
    let causes = [caused(&store).await, caused(&store).await];
    let mut runner = sums(&store);
    for cause in &causes {
        for process in ["one", "two"] {
            runner.execute(Command::Add(vec![1, 1]), &Cause::reaction(process, cause)).await.unwrap();
        }
    }
    let history = everything(&store).await;
    let ids: HashSet<_> = history[2..].iter().map(|event| event.event_id).collect();
    assert_eq!(ids.len(), 8);
    assert!(history[2..].iter().all(|event| event.event_id.get_version_num() == 8));
    let derived = crewlog_mq::derived_event_id("one", causes[0].created_at, causes[0].event_id, 1);
    assert_eq!(history[3].event_id, derived);
}

#[tokio::test]
async fn an_undecodable_event_stops_the_runner_with_its_position() {
    let store = EventStore::in_memory().await.unwrap();
    sums(&store).execute(Command::Add(vec![1, 2]), &Cause::request()).await.unwrap();
    let unknown = NewEvent::from_json("Unknown", "1.0", "{}".into(), &Metadata::default()).unwrap();
    store.append(Append::to("sums", "a", Expected::Any, vec![unknown])).await.unwrap();
    let mut runner = sums(&store);
    for _ in 0..3 {
        let error = runner.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap_err();
        assert!(matches!(error, ExecuteError::Store(Error::Decode { position: Position(3), .. })), "{error}");
        assert_eq!((runner.handler().total, runner.sequence()), (3, 2), "what was read is applied once");
    }
    assert_eq!(store.head().await.unwrap(), Position(3));
}

/// A caller may stop waiting at any time, for instance on a timeout.
#[tokio::test]
async fn a_runner_stays_correct_after_a_dropped_execution() {
    let place = Place::new();
    let store = place.open().await;
    let mut runner = sums(&store);
    runner.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap();
    let n_polls_max = 40;
    for n_polls in 1..=n_polls_max {
        let commits = place.hold_commits();
        {
            let cause = Cause::request();
            let mut execution = std::pin::pin!(runner.execute(Command::Add(vec![1]), &cause));
            for _ in 0..n_polls {
                assert!(futures::poll!(&mut execution).is_pending(), "no commit happens meanwhile");
                tokio::task::yield_now().await;
            }
        }
        commits.unlock().unwrap();
        store.append(noting("fence", 0)).await.unwrap();
        runner.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap();
        check_state(&runner, &store).await;
    }
}

#[tokio::test]
async fn a_runner_stays_correct_after_a_failed_append() {
    let store = EventStore::in_memory().await.unwrap();
    let mut runner = Sums::new(store.clone(), "sums", "a", vec!["x".repeat(1000)]);
    let error = runner.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap_err();
    assert!(matches!(error, ExecuteError::Store(Error::LimitPassed { limit: "name_bytes_max", .. })), "{error}");
    runner.catch_up().await.unwrap();
    check_state(&runner, &store).await;
}

#[tokio::test]
async fn a_prefix_is_folded_first_and_only_once_even_after_a_reload() {
    for (store, _place) in logs().await {
        for n in [1, 2, 4] {
            store.append(noting("other", n)).await.unwrap();
        }
        let others = everything(&store).await;
        let query = Query::aggregate(&others[0].stream_id, &others[0].aggregate_id);
        let prefix = vec![Prefix { query, up_to: Position(2) }];
        let runner_with = |tag: &str| Sums::new(store.clone(), "sums", "a", vec![tag.into()]).behind(prefix.clone());
        let mut runner = runner_with("t");
        for _ in 0..2 {
            runner.catch_up().await.unwrap();
            assert_eq!((runner.handler().total, runner.sequence()), (3, 0), "nothing of its own is there yet");
        }
        runner.execute(Command::Add(vec![10]), &Cause::request()).await.unwrap();
        assert_eq!((runner.handler().total, runner.sequence()), (13, 1));
        // Neither new events of the other history nor a lost state changes the prefix.
        store.append(noting("other", 500)).await.unwrap();
        let mut failing = runner_with(&"x".repeat(1000));
        failing.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap_err();
        failing.catch_up().await.unwrap();
        runner.execute(Command::Add(vec![100]), &Cause::request()).await.unwrap();
        failing.catch_up().await.unwrap();
        assert_eq!(failing.handler(), runner.handler());
        assert_eq!((runner.handler().total, runner.sequence()), (113, 2));
        // It affects the decision.
        let refused = runner.execute(Command::Add(vec![888]), &Cause::request()).await.unwrap_err();
        assert!(matches!(refused, ExecuteError::Refused(TooMuch(1001))), "{refused}");
    }
}

/// Like a fail-over that lost the end of the other history.
#[tokio::test]
async fn a_prefix_beyond_the_end_of_the_log_is_an_error_until_the_log_has_it() {
    for (store, _place) in logs().await {
        store.append(noting("other", 1)).await.unwrap();
        let prefix = vec![Prefix { query: Query::aggregate("facts", "other"), up_to: Position(2) }];
        let mut runner = Sums::new(store.clone(), "sums", "a", vec![]).behind(prefix);
        for _ in 0..2 {
            let refused = runner.execute(Command::Add(vec![10]), &Cause::request()).await.unwrap_err();
            let ExecuteError::Store(Error::WentBack { known, head }) = refused else { panic!("{refused}") };
            assert_eq!((known, head), (Position(2), Position(1)));
        }
        store.append(noting("other", 2)).await.unwrap();
        runner.execute(Command::Add(vec![10]), &Cause::request()).await.unwrap();
        assert_eq!(runner.handler().total, 13);
    }
}

/// A sum that another process may overtake: it writes to the sum's log while the command is decided.
#[derive(Debug, Clone, Default)]
struct Overtaken(Sum);

impl Handler for Overtaken {
    type Command = (Command, Option<String>);
    type Event = Fact;
    type Error = TooMuch;

    fn decide(&self, (command, log): Self::Command) -> Result<Vec<Fact>, TooMuch> {
        let write = |log: String| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it can be made");
            runtime.block_on(async {
                let store = EventStore::open(&log).await.expect("the log opens");
                sums(&store).execute(Command::Add(vec![5]), &Cause::request()).await.expect("it is accepted");
            });
        };
        let other = log.map(|log| std::thread::spawn(move || write(log)).join());
        assert!(other.is_none_or(|joined| joined.is_ok()));
        self.0.decide(command)
    }

    fn apply(&mut self, event: &Fact) {
        self.0.apply(event);
    }
}

#[tokio::test]
async fn writes_of_others_alone_hide_no_event_that_came_before_them() {
    let place = Place::new();
    let store = EventStore::open(&place.url()).await.expect("the log opens");
    let mut runner: Runner<Overtaken> = Runner::new(store.clone(), "sums", "a", Vec::new());
    runner.execute((Command::Close, None), &Cause::request()).await.expect("it is accepted");
    let event = NewEvent::of(&Fact::Noted { n: 1 }, &Metadata::default()).expect("it can be written");
    let write =
        Write { stream_id: "facts".into(), aggregate_id: "b".into(), expected: Expected::Any, events: vec![event] };
    let nothing = (Command::Close, Some(place.url()));
    let executed = runner.execute_with(nothing, &Cause::request(), &[write]).await.expect("it is accepted");
    assert!(executed.events.is_empty());
    runner.catch_up().await.expect("it can be read");
    assert_eq!(runner.handler().0.total, 5, "what another process wrote meanwhile is read");
}
