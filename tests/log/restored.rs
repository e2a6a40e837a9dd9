//! A log that is set back to an earlier state while processes have it open, as by a restored backup: appends, readers,
//! followers, deciders and groups continue from the current log.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{
    Append, Backend, Cause, Error, Event, EventStore, ExecuteError, Expected, Followed, GroupHandler, Handler,
    Metadata, NewEvent, Position, Query, Range, Recorded, Runner, Snapshot, Start, Veil, group_handler,
};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use rusqlite::Connection;
use rusqlite::backup::Backup;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use super::child::{self, Other, body};
use super::{Place, check_history, everything, in_time, noting, went_back};
use crewlog_stage::cluster::{Database, execute};

/// A log with copies of earlier states.
pub(super) enum Site {
    File(Place),
    /// Copies are tables of other schemas. Sessions may end when one is restored, like on a server restart.
    Server {
        database: Database,
        is_pooled: bool,
        ends_sessions: bool,
    },
}

impl Site {
    /// One at a time, so that a failed test names only the current one.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let server = |is_pooled, ends_sessions| Self::Server { database: Database::new(), is_pooled, ends_sessions };
        let servers = [(false, false), (false, true), (true, false)];
        std::iter::once_with(|| Self::File(Place::new()))
            .chain(servers.into_iter().map(move |(is_pooled, ends_sessions)| server(is_pooled, ends_sessions)))
    }

    fn url(&self) -> String {
        match self {
            Self::File(place) => place.url(),
            Self::Server { database, is_pooled: true, .. } => database.pooled_url(),
            Self::Server { database, is_pooled: false, .. } => {
                format!("{}&application_name={}", database.url(), database.schema)
            }
        }
    }

    pub(super) async fn open(&self) -> EventStore {
        EventStore::open(&self.url()).await.expect("the log opens")
    }

    /// Appends to `facts` like another process, which closes the log; each word is an aggregate.
    async fn write(&self, aggregates: &str) {
        let store = self.open().await;
        for (aggregate, n) in aggregates.split(' ').zip(100..) {
            store.append(noting(aggregate, n)).await.expect("an append of any kind is accepted");
        }
        store.close().await;
    }

    /// Stores a copy with this name.
    pub(super) async fn keep(&self, name: &str) {
        match self {
            Self::File(place) => copy(&place.path(), &self.copy_of(name)),
            Self::Server { database, .. } => {
                let mut connection = database.connect().await;
                execute(&mut connection, &format!("CREATE SCHEMA {}_{name}", database.schema)).await;
                for table in self.tables().await {
                    let sql = format!("CREATE TABLE {0}_{name}.{table} AS TABLE {0}.{table}", database.schema);
                    execute(&mut connection, &sql).await;
                }
            }
        }
    }

    /// Replaces the log by a copy; the log may be open.
    pub(super) async fn bring_back(&self, name: &str) {
        match self {
            Self::File(place) => copy(&self.copy_of(name), &place.path()),
            Self::Server { database, ends_sessions, .. } => {
                let mut connection = database.connect().await;
                let (schema, mut sql) = (&database.schema, "BEGIN;".to_owned());
                for table in self.tables().await {
                    sql += &format!("TRUNCATE {table}; INSERT INTO {table} TABLE {schema}_{name}.{table};");
                }
                execute(&mut connection, &(sql + "COMMIT")).await;
                if *ends_sessions {
                    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ";
                    execute(&mut connection, &format!("{sql}'{schema}'")).await;
                }
            }
        }
    }

    fn copy_of(&self, name: &str) -> PathBuf {
        match self {
            Self::File(place) => place.folder.path().join(format!("{name}.copy")),
            Self::Server { .. } => unreachable!("its copies are schemas"),
        }
    }

    async fn tables(&self) -> Vec<String> {
        match self {
            Self::File(_) => vec![],
            Self::Server { database, .. } => {
                let sql = format!("SELECT tablename::text FROM pg_tables WHERE schemaname = '{}'", database.schema);
                let tables = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut database.connect().await).await;
                tables.expect("they can be listed")
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log is {}", self.url());
        }
    }
}

/// Through SQLite's backup, which writes into the file like another process.
fn copy(from: &Path, to: &Path) {
    let from = Connection::open(from).expect("it is a database");
    let mut to = Connection::open(to).expect("a database can be made");
    to.busy_timeout(Duration::from_secs(5)).expect("it can be set");
    let backup = Backup::new(&from, &mut to).expect("it begins");
    backup.run_to_completion(i32::MAX, Duration::from_millis(1), None).expect("it is done");
}

/// A log with copies `base`, of two events; `same`, with three more; and `longer`, with four others. Now it is `same`,
/// and `other` has the same number of events.
pub(super) async fn with_copies(site: &Site) {
    site.write("a b").await;
    site.keep("base").await;
    for (name, aggregates) in [("longer", "a x x y"), ("other", "x a y"), ("same", "lost a b")] {
        site.bring_back("base").await;
        site.write(aggregates).await;
        site.keep(name).await;
    }
}

/// The log is sound, and a store that was open all the time sees the same as a new one.
async fn check(site: &Site, store: &EventStore) -> Vec<Recorded> {
    let fresh = site.open().await;
    let history = everything(&fresh).await;
    check_history(&history);
    let checked = fresh.check().await.unwrap();
    assert_eq!((checked.findings, checked.more), (vec![], false));
    // On every reading connection.
    for seen in futures::future::join_all((0..8).map(|_| everything(store))).await {
        assert_eq!(seen, history);
    }
    assert_eq!(store.head().await.unwrap().0, history.len() as i64);
    fresh.close().await;
    history
}

fn places(history: &[Recorded]) -> Vec<(&str, i64)> {
    history.iter().map(|event| (&*event.aggregate_id, event.sequence)).collect()
}

/// The body of another process, which appends to an aggregate.
#[test]
#[ignore = "runs in another process"]
fn child_that_appends_once() {
    let (aggregate, url) = child::role();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EventStore::open(&url).await.expect("the log opens");
        store.append(noting(&aggregate, 1)).await.expect("it has never known another log");
        store.close().await;
    });
}

/// The lost event had introduced its aggregate and its type; the numbers of both are then given to others.
#[tokio::test]
async fn an_append_to_a_log_that_went_back_is_refused_at_most_once_and_reaches_its_aggregate() {
    for site in Site::all() {
        let store = site.open().await;
        store.append(noting("first", 0)).await.unwrap();
        site.keep("past").await;
        let of_type = |event_type: &str, n: i64| {
            let event = NewEvent::from_json(event_type, "1.0", n.to_string(), &Metadata::default()).unwrap();
            Append::to("things", event_type, Expected::Any, vec![event])
        };
        store.append(noting("ada", 1)).await.unwrap();
        store.append(of_type("Lost", 1)).await.unwrap();
        assert_eq!(everything(&store).await.len(), 3);
        site.bring_back("past").await;

        Other::start(body!(child_that_appends_once), "bob", &site.url(), &[]).succeeds();
        let other = site.open().await;
        other.append(of_type("Made", 1)).await.unwrap();
        // Unless the process has already noticed.
        if let Err(refused) = store.append(noting("ada", 2)).await {
            // The end of the log when it was noticed: before or after the append of the other store.
            assert!(matches!(went_back(&refused), Some(Position(2 | 3))), "{refused}");
            store.append(noting("ada", 3)).await.expect("it is known by now");
        }
        store.append(of_type("Lost", 2)).await.expect("it is known by now");
        let history = check(&site, &store).await;
        assert_eq!(places(&history), [("first", 1), ("bob", 1), ("Made", 1), ("ada", 1), ("Lost", 1)]);
        for event_type in ["Lost", "Made"] {
            let query = Query::stream("things").of_type(event_type);
            let found = store.read(&query, Range::default(), 10).await.unwrap().events;
            assert_eq!(places(&found), [(event_type, 1)]);
        }
        other.append(noting("bob", 4)).await.expect("it has known no other log");
    }
}

/// The next events, until there are no more for now; each with the aggregate and number, or the head of a log that went
/// back.
async fn next(stream: &mut (impl Stream<Item = crewlog_mq::Result<Recorded>> + Unpin), n: usize) -> Vec<String> {
    let mut items = Vec::new();
    while items.len() < n {
        match in_time("an item", stream.next()).await.expect("a stream has no end") {
            Ok(event) => items.push(format!("{} {}", event.position, event.aggregate_id)),
            // Lost connections are skipped.
            Err(error) => items.extend(went_back(&error).map(|head| format!("went back to {head}"))),
        }
    }
    items
}

#[tokio::test]
async fn a_follower_ahead_of_the_log_is_notified_once_and_continues_from_its_head() {
    for site in Site::all() {
        with_copies(&site).await;
        for (copy, then) in [
            ("base", vec!["went back to 2"]),
            ("other", vec!["went back to 5", "5 y"]),
            ("longer", vec!["went back to 6", "5 x", "6 y"]),
        ] {
            site.bring_back("same").await;
            let store = site.open().await;
            let mut streams: Vec<_> = [Start::Beginning, Start::After(Position(3))]
                .map(|start| store.follow(&Query::all(), start).boxed())
                .into();
            assert_eq!(next(&mut streams[0], 5).await, ["1 a", "2 b", "3 lost", "4 a", "5 b"]);
            assert_eq!(next(&mut streams[1], 2).await, ["4 a", "5 b"]);
            site.bring_back(copy).await;
            for stream in &mut streams {
                assert_eq!(next(stream, then.len()).await, then, "{copy}");
            }
            let head = store.head().await.unwrap();
            site.write("new").await;
            for stream in &mut streams {
                assert_eq!(next(stream, 1).await, [format!("{} new", head.0 + 1)], "{copy}");
                assert!(stream.next().now_or_never().is_none(), "{copy}");
            }
            store.close().await;
        }
    }
}

/// Nobody appends after it.
#[tokio::test]
async fn a_follower_ahead_of_a_quiet_log_is_notified() {
    for site in Site::all() {
        with_copies(&site).await;
        for (copy, head) in [("other", 5), ("base", 2), ("longer", 6)] {
            site.bring_back("same").await;
            let store = site.open().await;
            let mut stream = store.follow(&Query::stream("facts"), Start::Beginning).boxed();
            assert_eq!(next(&mut stream, 5).await.len(), 5);
            site.bring_back(copy).await;
            assert_eq!(next(&mut stream, 1).await, [format!("went back to {head}")], "{copy}");
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_follower_continues_after_its_last_event_if_that_still_exists() {
    for site in Site::all() {
        with_copies(&site).await;
        let store = site.open().await;
        let mut ahead = store.follow(&Query::all(), Start::Beginning).boxed();
        let mut slow = store.follow(&Query::all(), Start::Beginning).boxed();
        assert_eq!(next(&mut slow, 5).await, next(&mut ahead, 5).await);
        store.append(noting("lost", 1)).await.unwrap();
        assert_eq!(next(&mut ahead, 1).await, ["6 lost"]);
        site.bring_back("same").await;
        // Now the process has noticed.
        assert_eq!(next(&mut ahead, 1).await, ["went back to 5"]);
        site.write("new").await;
        assert_eq!(next(&mut ahead, 1).await, ["6 new"]);
        assert_eq!(next(&mut slow, 1).await, ["6 new"]);
    }
}

/// A veil that cannot open the events of one aggregate.
struct KeyLost(&'static str);

impl Veil for KeyLost {
    fn seal<'a>(&'a self, _below: &'a dyn Backend, append: Append) -> BoxFuture<'a, crewlog_mq::Result<Append>> {
        std::future::ready(Ok(append)).boxed()
    }

    fn open(&self, events: &mut [Recorded]) -> crewlog_mq::Result<()> {
        let is_closed = events.iter().any(|event| event.aggregate_id == self.0);
        if is_closed { Err(Error::Veil(Arc::new(std::io::Error::other("the key is lost")))) } else { Ok(()) }
    }

    fn keeps_snapshots<'a>(&'a self, _: &'a dyn Backend, _: &'a Query) -> BoxFuture<'a, crewlog_mq::Result<bool>> {
        std::future::ready(Ok(false)).boxed()
    }
}

#[tokio::test]
async fn a_follower_hears_that_the_log_went_back_even_if_it_cannot_decrypt_the_new_event() {
    for site in Site::all() {
        with_copies(&site).await;
        let store = site.open().await.veiled(Arc::new(KeyLost("y")));
        let mut stream = store.follow(&Query::all(), Start::Beginning).boxed();
        assert_eq!(next(&mut stream, 5).await.len(), 5);
        site.bring_back("other").await;
        assert_eq!(next(&mut stream, 1).await, ["went back to 5"]);
    }
}

/// It has read to the end of the log, and none of its own events was lost.
#[tokio::test]
async fn a_caught_up_follower_reports_a_lower_position_only_after_the_error() {
    for site in Site::all() {
        with_copies(&site).await;
        let store = site.open().await;
        for start in [Start::Beginning, Start::After(Position(2)), Start::After(Position(5))] {
            site.bring_back("same").await;
            let mut stream = store.follow_marked(&Query::aggregate("facts", "none"), start).boxed();
            let mut next = async || loop {
                match in_time("an item", stream.next()).await.expect("a stream has no end") {
                    Ok(Followed::CaughtUp(position)) => break format!("caught up to {position}"),
                    Ok(Followed::Event(event)) => panic!("{event:?} does not match"),
                    Err(error) if went_back(&error).is_some() => break error.to_string(),
                    // Lost connections are skipped.
                    Err(_) => {}
                }
            };
            while next().await != "caught up to 5" {}
            site.bring_back("base").await;
            let mut seen = vec![next().await];
            while seen.last().is_some_and(|last| last != "caught up to 2") {
                seen.push(next().await);
            }
            // After a lost connection it may report again that it has caught up with the old log.
            seen.retain(|item| item != "caught up to 5");
            assert_eq!(seen.len(), 2, "{start:?}: {seen:?}");
            assert!(seen[0].contains("position 5 was known, and now it ends at 2"), "{start:?}: {seen:?}");
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Step {
    Stepped { after: Vec<String>, to: String },
}

impl Event for Step {}

/// All steps so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) steps: Vec<String>,
}

impl Handler for Route {
    type Command = String;
    type Event = Step;
    type Error = String;

    fn decide(&self, to: String) -> Result<Vec<Step>, String> {
        let step = Step::Stepped { after: self.steps.clone(), to };
        Ok(vec![step])
    }

    fn apply(&mut self, Step::Stepped { to, .. }: &Step) {
        self.steps.push(to.clone());
    }
}

impl Snapshot for Route {
    const FOLD: &'static str = "path";
    const VERSION: u32 = 1;
    const EVERY: u64 = 1;
}

/// Deciders on one aggregate and on a query, with snapshots and without.
pub(super) fn runners(store: &EventStore) -> Vec<Runner<Route>> {
    let on_one = |name: &str| Runner::new(store.clone(), "paths", name, vec![]);
    let on_all = |name: &str| {
        let query = Query::aggregate("paths", name);
        Runner::over(store.clone(), query, ("paths", name), |_| vec![])
    };
    vec![on_one("1"), on_one("2").with_snapshots(), on_all("3"), on_all("4").with_snapshots()]
}

async fn step(runners: &mut [Runner<Route>], to: &str) {
    for runner in runners {
        runner.execute(to.to_owned(), &Cause::request()).await.expect("it is decided");
    }
}

#[tokio::test]
async fn a_decider_that_read_lost_events_decides_on_the_current_log() {
    for site in Site::all() {
        let writer = site.open().await;
        step(&mut runners(&writer), "base").await;
        site.keep("base").await;
        step(&mut runners(&writer), "new").await;
        site.keep("new").await;
        site.bring_back("base").await;
        writer.close().await;

        let store = site.open().await;
        let (mut deciding, mut reading) = (runners(&store), runners(&store));
        step(&mut deciding, "lost").await;
        for runner in &mut reading {
            runner.catch_up().await.unwrap();
            assert_eq!(runner.handler().steps, ["base", "lost"]);
        }
        site.bring_back("new").await;
        for runner in &mut reading {
            let told = runner.catch_up().await.map_err(|error| went_back(&error));
            assert!(matches!(told, Err(Some(_))), "its user has seen a lost event: {told:?}");
            runner.catch_up().await.unwrap();
            assert_eq!(runner.handler().steps, ["base", "new"], "{}", runner.aggregate_id());
        }
        for runner in &mut deciding {
            let told = runner.execute("then".to_owned(), &Cause::request()).await;
            let Err(ExecuteError::Store(error)) = told else { panic!("its user has seen a lost event: {told:?}") };
            assert!(went_back(&error).is_some(), "{error}");
            runner.execute("then".to_owned(), &Cause::request()).await.unwrap();
            assert_eq!(runner.handler().steps, ["base", "new", "then"], "{}", runner.aggregate_id());
        }
        for event in check(&site, &store).await {
            let Step::Stepped { after, to } = event.decode().unwrap();
            let expected: &[&str] = match &*to {
                "base" => &[],
                "new" => &["base"],
                _then => &["base", "new"],
            };
            assert_eq!(after, expected, "{} at {}", event.aggregate_id, event.position);
        }
    }
}

#[tokio::test]
async fn a_pinned_store_ends_with_the_log_that_it_was_opened_on() {
    for site in Site::all() {
        with_copies(&site).await;
        let store = site.open().await;
        let pinned = store.pinned();
        let (mut runners, mut stream) = (runners(&pinned), Box::pin(pinned.follow(&Query::all(), Start::Beginning)));
        step(&mut runners, "seen").await;
        for _ in 0..9 {
            in_time("an event", stream.next()).await.unwrap().unwrap();
        }
        site.bring_back("longer").await;
        let last = loop {
            if let Err(error) = in_time("the end of the stream", stream.next()).await.unwrap() {
                break error;
            }
        };
        assert!(went_back(&last).is_some(), "{last}");
        assert!(in_time("nothing", stream.next()).await.is_none(), "it says so once, and ends");
        // Each time, and also for a store that is pinned again.
        for pinned in [pinned.clone(), pinned.pinned()] {
            let outcomes = [
                ("append", pinned.append(noting("a", 1)).await.err()),
                ("read", pinned.read(&Query::all(), Range::default(), 1).await.err()),
                ("head", pinned.head().await.err()),
                ("cells", pinned.cells("space", "", 1).await.err()),
                ("load", pinned.load_events::<Step>(&Query::stream("none"), None).await.err()),
                ("wait_until", pinned.wait_until(Position(1)).await.err()),
            ];
            for (what, refusal) in outcomes {
                assert!(refusal.as_ref().and_then(went_back).is_some(), "{what}: {refusal:?}");
            }
        }
        for runner in &mut runners {
            for _ in 0..2 {
                let executed = runner.execute("then".to_owned(), &Cause::request()).await;
                assert!(
                    matches!(&executed, Err(ExecuteError::Store(error)) if went_back(error).is_some()),
                    "{executed:?}"
                );
            }
        }
        let n_events = check(&site, &store).await.len();
        store.append(noting("a", 1)).await.expect("the store itself goes on");
        assert_eq!(store.head().await.unwrap().0, n_events as i64 + 1);
    }
}

/// Appends an effect to the aggregate of each event.
fn noting_effects() -> impl GroupHandler {
    group_handler(|event, delivery| {
        let step = Step::Stepped { after: vec![], to: event.event_id.to_string() };
        let noted = delivery.append("effects", &event.aggregate_id, Expected::Any, &step);
        Box::pin(async move { Ok(noted?) })
    })
}

#[tokio::test]
async fn a_group_that_handled_lost_events_handles_their_replacements_once() {
    for site in Site::all() {
        let store = site.open().await;
        let group = store.group("facts").query(Query::stream("facts")).partitions(2).lease(Duration::from_secs(1));
        group.declare().await.unwrap();
        let work = async {
            while let Err(error) = group.run(noting_effects()).await {
                // The restore of a server ends its sessions, also that of a worker that is about to begin.
                let is_due = |error: &Error| went_back(error).is_some() || matches!(error, Error::Storage { .. });
                assert!(matches!(&error, ExecuteError::Store(error) if is_due(error)), "{error}");
            }
        };
        let disturb = async {
            let handled = async || {
                let head = in_time("the head", store.head()).await.unwrap();
                in_time("the group", group.wait_until(head)).await.unwrap();
            };
            site.write("a b").await;
            handled().await;
            site.keep("base").await;
            site.write("lost a lost b c").await;
            handled().await;
            site.bring_back("base").await;
            site.write("c b new").await;
            handled().await;
        };
        tokio::select! {
            () = work => panic!("it has no end"),
            () = disturb => {}
        }
        let history = check(&site, &store).await;
        let of = |stream: &str| history.iter().filter(move |event| event.stream_id == stream).collect::<Vec<_>>();
        let mut effects: Vec<_> = of("effects").iter().map(|event| event.decode::<Step>().unwrap()).collect();
        let mut causes: Vec<_> = of("facts").iter().map(|event| event.event_id.to_string()).collect();
        effects.sort_by_key(|Step::Stepped { to, .. }| to.clone());
        causes.sort();
        assert_eq!(effects.into_iter().map(|Step::Stepped { to, .. }| to).collect::<Vec<_>>(), causes);
        store.close().await;
    }
}
