//! Specific to PostgreSQL: its lock, its pooler, its query plans, a caller's SQL in an append, and opening.

use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{
    Append, CellChange, CellExpected, Error, EventStore, Expected, Metadata, NewEvent, Options, Position, Postgres,
    Query, Range, Start,
};
use futures::future::{FutureExt, join_all};
use futures::{Stream, StreamExt};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::{check_history, everything, in_time, note, notes, noting};
use crewlog_stage::cluster::{Database, execute, server};

#[tokio::test]
async fn an_append_is_visible_to_every_store_on_the_database() {
    let database = Database::new();
    let (store, other) = (database.open().await, database.open_pooled().await);
    let appended = store.append(Append::to("facts", "a", Expected::NoStream, notes(1..=3))).await.unwrap();
    assert_eq!(appended.last(), Position(3));
    let refused = other.append(Append::to("facts", "a", Expected::NoStream, vec![note(4)])).await.unwrap_err();
    assert!(matches!(refused, Error::SequenceMismatch { actual: 3, .. }), "{refused}");
    other.append(noting("b", 4)).await.unwrap();
    for store in [&store, &other] {
        assert_eq!(store.head().await.unwrap(), Position(4));
        check_history(&everything(store).await);
        let page = store.read(&Query::aggregate("facts", "a"), Range::default().backwards(), 2).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.position.0).collect::<Vec<_>>(), [3, 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_stores_that_open_an_empty_database_concurrently_share_one_log() {
    let database = Database::new();
    let openers = (0..10).map(|n| {
        let url = if n % 2 == 0 { database.url() } else { database.pooled_url() };
        tokio::spawn(async move {
            let store = EventStore::open(&url).await.unwrap();
            store.append(noting("a", n)).await.unwrap();
            store.log().await.unwrap().id
        })
    });
    let ids: Vec<_> = in_time("the openers", join_all(openers.collect::<Vec<_>>())).await;
    let ids: Vec<_> = ids.into_iter().map(Result::unwrap).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(database.open().await.head().await.unwrap(), Position(10));
}

/// The next event of a stream.
async fn next(live: &mut (impl Stream<Item = crewlog_mq::Result<crewlog_mq::Recorded>> + Unpin)) -> Position {
    in_time("the event", live.next()).await.expect("a stream has no end").expect("it is an event").position
}

#[tokio::test]
async fn a_stream_sees_direct_and_pooled_commits_of_another_store() {
    let database = Database::new();
    let (writer, listening, polling) = (database.open().await, database.open().await, database.open_pooled().await);
    for reader in [&listening, &polling] {
        let mut live = Box::pin(reader.follow(&Query::all(), Start::After(writer.head().await.unwrap())));
        for n in 0..3 {
            let position = writer.append(noting("a", n)).await.unwrap().last();
            assert_eq!(next(&mut live).await, position);
        }
    }
}

/// Like a stopped writer: it has the lock and has inserted an event without a commit.
async fn hold(connection: &mut PgConnection, position: i64) {
    execute(connection, "BEGIN; SELECT one FROM append_lock FOR UPDATE").await;
    let sql = format!(
        "INSERT INTO events (position, event_id, aggregate, kind, sequence, created_at, append_start, event_type, \
         event_version, tags, metadata, data) SELECT {position}, gen_random_uuid(), aggregate, kind, sequence + 1, \
         created_at, {position}, event_type, event_version, tags, metadata, data FROM events ORDER BY position DESC LIMIT 1"
    );
    execute(connection, &sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_stalled_before_its_commit_delays_no_reader_and_no_event_is_skipped() {
    let database = Database::new();
    let (store, reader) = (database.open().await, database.open_pooled().await);
    store.append(noting("a", 1)).await.unwrap();
    let mut connection = database.connect().await;
    hold(&mut connection, 2).await;
    let mut live = Box::pin(reader.follow(&Query::all(), Start::Beginning));
    assert_eq!(next(&mut live).await, Position(1));
    let others = (0..8).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.append(noting("b", n)).await.unwrap().last().0 })
    });
    let others: Vec<_> = others.collect();
    for _ in 0..20 {
        assert_eq!(reader.head().await.unwrap(), Position(1), "what is not committed is not seen");
        assert_eq!(everything(&reader).await.len(), 1);
    }
    execute(&mut connection, "COMMIT").await;
    let positions = in_time("the others", join_all(others)).await;
    let mut positions: Vec<i64> = positions.into_iter().map(Result::unwrap).collect();
    positions.sort_unstable();
    assert_eq!(positions, (3..=10).collect::<Vec<_>>());
    for position in 2..=10 {
        assert_eq!(next(&mut live).await, Position(position), "nothing is skipped");
    }
    check_history(&everything(&reader).await);
}

#[tokio::test]
async fn waiting_too_long_for_the_append_lock_is_a_retryable_error() {
    let database = Database::new();
    let store = database.open().await;
    store.append(noting("a", 1)).await.unwrap();
    let mut connection = database.connect().await;
    hold(&mut connection, 2).await;
    let append = noting("a", 2);
    let error = in_time("the answer", store.append(append.clone())).await.unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    execute(&mut connection, "ROLLBACK").await;
    assert_eq!(store.append(append).await.unwrap().last(), Position(2));
}

#[tokio::test]
async fn a_long_idle_unrelated_transaction_blocks_neither_readers_nor_writers() {
    let database = Database::new();
    let (store, reader) = (database.open().await, database.open().await);
    let mut idle = database.connect().await;
    execute(&mut idle, "CREATE TABLE of_another (n BIGINT)").await;
    execute(&mut idle, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    execute(&mut idle, "INSERT INTO of_another VALUES (1); SELECT count(*) FROM events").await;
    let mut live = Box::pin(reader.follow(&Query::all(), Start::Beginning));
    for n in 1..=50 {
        store.append(noting("a", n)).await.unwrap();
        assert_eq!(next(&mut live).await, Position(n));
    }
    execute(&mut idle, "COMMIT").await;
}

#[tokio::test]
async fn reads_that_take_long_do_not_delay_live_events() {
    let database = Database::new();
    let (store, writer) = (database.open().await, database.open().await);
    let mut live = Box::pin(store.follow(&Query::all(), Start::Beginning));
    writer.append(noting("a", 1)).await.unwrap();
    assert_eq!(next(&mut live).await, Position(1));
    let mut lock = database.connect().await;
    execute(&mut lock, "BEGIN").await;
    execute(&mut lock, "LOCK TABLE log").await;
    // As many reads as may run at once, all waiting for the lock.
    let mut long = Box::pin(join_all((0..4).map(|_| store.log())));
    assert!(futures::poll!(&mut long).is_pending());
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'log'::regclass";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut lock).await.unwrap() < 4 {}
    for n in 2..=3 {
        writer.append(noting("a", n)).await.unwrap();
        assert_eq!(next(&mut live).await, Position(n));
    }
    execute(&mut lock, "ROLLBACK").await;
    assert!(in_time("the long reads", long).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_hot_query_uses_an_index_without_sort_or_scan() {
    let database = Database::new();
    let store = database.postgres().await;
    let typed = EventStore::on(store.clone());
    for n in 0..10 {
        let events = notes(0..100).into_iter().map(|event| event.with_tags([format!("tag:{n}"), "all".to_owned()]));
        typed.append(Append::to("facts", &format!("{n}"), Expected::Any, events.collect())).await.unwrap();
    }
    let id = everything(&typed).await[7].event_id;
    let queries = [
        (Query::all(), "events_pkey"),
        (Query::stream("facts"), "events_by_kind"),
        (Query::stream("facts").of_type("Noted"), "events_by_kind"),
        (Query::aggregate("facts", "3"), "events_aggregate_sequence_key"),
        (Query::tag("tag:3"), "tags_pkey"),
        (Query::tag("tag:3").and_tag("all"), "tags_pkey"),
        (Query::event(id), "events_event_id_key"),
        (Query::correlation(id), "events_by_correlation"),
        (Query::caused_by(id), "events_by_causation"),
        (Query::tag("tag:3").or(Query::correlation(id)), "tags_pkey"),
    ];
    for (query, index) in queries {
        for range in [Range::default(), Range::default().backwards()] {
            let plan = store.explain(&query, range, 100).await.unwrap().join("\n");
            assert!(plan.contains(index), "{query:?}\n{plan}");
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("Bitmap") && !plan.contains("Hash"),
                "{query:?}\n{plan}"
            );
            assert!(!plan.contains("->  Sort") && !plan.starts_with("Sort"), "{query:?}\n{plan}");
        }
    }
}

async fn count(database: &Database) -> i64 {
    let mut connection = database.connect().await;
    sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut connection).await.expect("they can be counted")
}

#[derive(Debug)]
enum Failed {
    Log(Error),
    Work,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Log(error)
    }
}

/// An append that also writes a row to a table of the caller.
async fn with_order(store: &Postgres, append: Append, fails: bool) -> Result<(Position, &'static str), Failed> {
    let done = store.append_with(append, |connection| {
        async move {
            sqlx::query("INSERT INTO orders VALUES (1)").execute(connection).await.map_err(|_| Failed::Work)?;
            if fails { Err(Failed::Work) } else { Ok("done") }
        }
        .boxed()
    });
    done.await.map(|(appended, done)| (appended.last(), done))
}

#[tokio::test]
async fn a_callers_sql_commits_with_the_append_or_not_at_all() {
    let database = Database::new();
    let url = format!("{}&options[search_path]={}", database.url(), database.schema);
    let store = Postgres::open(&url, Options::default()).await.unwrap();
    execute(&mut database.connect().await, "CREATE TABLE orders (n BIGINT)").await;
    let append = Append::to("facts", "a", Expected::NoStream, vec![note(1)]);
    let done = with_order(&store, append.clone(), false).await.unwrap();
    assert_eq!((done, count(&database).await), ((Position(1), "done"), 1));
    let failed = with_order(&store, noting("a", 2), true).await.unwrap_err();
    assert!(matches!(failed, Failed::Work));
    let refused = with_order(&store, Append::to("facts", "a", Expected::NoStream, vec![note(3)]), false).await;
    assert!(matches!(refused, Err(Failed::Log(Error::SequenceMismatch { actual: 1, .. }))), "{refused:?}");
    let repeated = with_order(&store, append, false).await.unwrap();
    assert_eq!(repeated.0, Position(1), "a repetition gives the first place");
    assert_eq!(count(&database).await, 1, "what failed, was refused or repeated has left nothing");
    let store = EventStore::on(store);
    assert_eq!(store.append(noting("a", 4)).await.unwrap().last(), Position(2));
}

#[tokio::test]
async fn a_callers_temporary_tables_do_not_shadow_the_tables_of_the_log() {
    let database = Database::new();
    let store = database.postgres().await;
    let sql = "CREATE TEMP TABLE events (LIKE events); CREATE TEMP TABLE tags (tag TEXT, position BIGINT)";
    let sql = sql.replace("LIKE events", &format!("LIKE {}.events", database.schema));
    for n in 1..=2 {
        let sql = sql.clone();
        let append = Append::to("facts", "a", Expected::Any, vec![note(n).with_tags(["x"])]);
        let done = store.append_with(append, |connection| {
            async move {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.expect("none of these is left");
                Ok::<_, Error>(())
            }
            .boxed()
        });
        assert_eq!(done.await.unwrap().0.last(), Position(n));
    }
    let store = EventStore::on(store);
    assert_eq!(store.append(noting("a", 3)).await.unwrap().last(), Position(3));
    assert_eq!(store.read(&Query::tag("x"), Range::default(), 10).await.unwrap().events.len(), 2);
}

/// Session state visible on a connection: settings, the role, temporary tables, cursors and listeners, besides sessions' locks.
const SESSION: &str = "SELECT concat_ws(' ', current_setting('work_mem') = '77MB', current_user = 'pg_monitor', \
     to_regclass('pg_temp.mine') IS NOT NULL, EXISTS (SELECT 1 FROM pg_cursors WHERE name = 'mine'), \
     EXISTS (SELECT 1 FROM pg_listening_channels()), \
     EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND database = \
                 (SELECT oid FROM pg_database WHERE datname = current_database())))";

#[tokio::test]
async fn a_callers_sql_leaves_no_session_state_to_the_next() {
    let leaves = "CREATE TEMP TABLE mine (n INT); DECLARE mine CURSOR WITH HOLD FOR SELECT 1; LISTEN mine; \
         SELECT pg_advisory_lock(4711); SET work_mem = '77MB'; SET ROLE pg_monitor";
    for url_of in [Database::url, Database::pooled_url] {
        let url = url_of(&Database::new());
        let store = async || Postgres::open(&url, Options::default()).await.unwrap();
        let first = Append::to("facts", "a", Expected::NoStream, vec![note(1)]);
        let refused = Append::to("facts", "a", Expected::NoStream, vec![note(2)]);
        let appends = [(first.clone(), true), (noting("fails", 2), false), (first, true), (refused, false)];
        let appends = appends.into_iter().chain([(noting("b", 3), true)]);
        // Two clients, which behind a pooler take turns on one session.
        let (one, other) = (store().await, store().await);
        for ((append, is_done), store) in appends.flat_map(|append| [(append.clone(), &one), (append, &other)]) {
            let fails = append.writes()[0].aggregate_id == "fails";
            let work = store.append_with(append, |connection| {
                async move {
                    let found: String = sqlx::query_scalar(SESSION).fetch_one(&mut *connection).await.unwrap();
                    assert_eq!(found, "f f f f f f");
                    sqlx::raw_sql(leaves).execute(connection).await.unwrap();
                    if fails { Err(Error::Closed) } else { Ok(()) }
                }
                .boxed()
            });
            assert_eq!(work.await.is_ok(), is_done, "{url}");
        }
    }
}

#[tokio::test]
async fn a_callers_sql_does_not_block_other_appends_and_times_out() {
    let database = Database::new();
    let store = database.postgres().await;
    let other = EventStore::on(store.clone());
    let error = store.append_with(noting("a", 1), |_| {
        async move {
            // The lock is taken after the caller's SQL.
            assert_eq!(other.append(noting("b", 1)).await.unwrap().last(), Position(1));
            tokio::time::pause();
            std::future::pending::<Result<(), Error>>().await
        }
        .boxed()
    });
    let error = error.await.unwrap_err();
    assert!(matches!(error, Error::TookTooLong { .. }), "{error:?}");
    tokio::time::resume();
    assert_eq!(EventStore::on(store).head().await.unwrap(), Position(1));
}

/// Its snapshot is older than the lock: commits made since would seem to be lost.
#[tokio::test]
async fn a_callers_sql_that_changes_the_isolation_is_refused_and_the_log_is_not_thought_to_have_gone_back() {
    for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
        let database = Database::new();
        let store = database.postgres().await;
        let (log, pinned) = (EventStore::on(store.clone()), EventStore::on(store.clone()).pinned());
        let done = store.append_with(noting("a", 1), |connection| {
            let log = log.clone();
            async move {
                let sql = format!("SET TRANSACTION ISOLATION LEVEL {isolation}; SELECT 1");
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
                log.append(noting("b", 1)).await.map(drop)
            }
            .boxed()
        });
        let refused = done.await.expect_err("nothing may be appended on an old snapshot").to_string();
        assert!(refused.contains("ISOLATION LEVEL"), "{refused}");
        assert_eq!(pinned.append(noting("c", 1)).await.unwrap().last(), Position(2));
    }
}

async fn refusal(url: &str) -> Error {
    match EventStore::open(url).await {
        Ok(_) => panic!("{url} is refused"),
        Err(error) => error,
    }
}

/// True for the expected error.
type IsIt = fn(&Error) -> bool;

#[tokio::test]
async fn each_connection_failure_has_its_own_error_without_the_password() {
    let (host, _) = server().rsplit_once('/').map(|(host, name)| (host.to_owned(), name.to_owned())).unwrap();
    let user = host.split_once("://").unwrap().1.split_once('@').unwrap().0.to_owned();
    let with = |name: &str| host.replacen(&format!("//{user}@"), &format!("//{name}:hushhush@"), 1);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let database = Database::new();
    let cases: [(String, IsIt); 7] = [
        (format!("{}/nowhere", with(&user)), |error| matches!(error, Error::NoDatabase { .. })),
        (format!("{}/postgres", with("nobody")), |error| matches!(error, Error::AccessRefused { .. })),
        (format!("postgres://u:hushhush@127.0.0.1:{port}/x"), |error| matches!(error, Error::Unreachable { .. })),
        (format!("{}/postgres?schema=a-b", with(&user)), |error| matches!(error, Error::Unsupported { .. })),
        (format!("{}/postgres?sslmod=require", with(&user)), |error| matches!(error, Error::Unsupported { .. })),
        (format!("{}/postgres?pooler=maybe&password=hushhush", with(&user)), |error| {
            matches!(error, Error::Unsupported { .. })
        }),
        ("postgres://u:hushhush@[/x".to_owned(), |error| matches!(error, Error::Unsupported { .. })),
    ];
    for (url, is_right) in cases {
        let error = refusal(&url).await;
        assert!(is_right(&error), "{url}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("hushhush"), "{error:?}");
    }
    let options = Options { create: false, ..Options::default() };
    let error = EventStore::open_with(&database.url(), options).await.err();
    assert!(matches!(error, Some(Error::NoLog { .. })), "{error:?}");
}

#[tokio::test]
async fn a_foreign_or_newer_schema_is_refused_and_left_unchanged() {
    let foreign = Database::new();
    execute(
        &mut foreign.connect().await,
        &format!("CREATE SCHEMA {0}; CREATE TABLE {0}.events (n BIGINT)", foreign.schema),
    )
    .await;
    let error = refusal(&foreign.url()).await;
    assert!(matches!(error, Error::ForeignDatabase { .. }), "{error:?}");
    let newer = Database::new();
    newer.open().await;
    execute(&mut newer.connect().await, "INSERT INTO schema_versions (version) VALUES (99)").await;
    let error = refusal(&newer.url()).await;
    assert!(matches!(error, Error::NewerFormat { found: 99, .. }), "{error:?}");
}

#[tokio::test]
async fn a_schema_of_another_format_is_refused() {
    let database = Database::new();
    database.open().await;
    execute(&mut database.connect().await, "UPDATE log SET format = 1").await;
    let error = refusal(&database.url()).await;
    assert!(matches!(error, Error::OlderFormat { found: 1, .. }), "{error:?}");
    execute(&mut database.connect().await, "UPDATE log SET format = 99").await;
    let error = refusal(&database.url()).await;
    assert!(matches!(error, Error::NewerFormat { found: 99, .. }), "{error:?}");
}

#[tokio::test]
async fn a_read_only_user_is_refused_at_open() {
    let database = Database::new();
    database.open().await;
    let (schema, mut connection) = (&database.schema, database.connect().await);
    let role = format!("reader_{schema}");
    let sql = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    );
    execute(&mut connection, &sql).await;
    let error = refusal(&format!("{}&user={role}", database.url())).await;
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    execute(&mut connection, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_separate_migration_url_creates_the_log_behind_a_pooler() {
    let database = Database::new();
    let options = Options { migrate_url: Some(database.url()), ..Options::default() };
    let store = EventStore::open_with(&database.pooled_url(), options).await.unwrap();
    assert_eq!(store.append(noting("a", 1)).await.unwrap().last(), Position(1));
    let closed = Options { migrate_url: Some("postgres://u@127.0.0.1:1/x".into()), ..Options::default() };
    let error = EventStore::open_with(&Database::new().pooled_url(), closed).await.err();
    assert!(matches!(error, Some(Error::Unreachable { .. })), "{error:?}");
}

#[tokio::test]
async fn a_log_uses_the_servers_clock_unless_a_test_sets_its_own() {
    let database = Database::new();
    let store = database.open().await;
    let mut connection = database.connect().await;
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let before: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    let made = store.append(noting("a", 1)).await.unwrap().created_at.0;
    let after: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert!(before <= made && made <= after);
    struct Still;
    impl crewlog_mq::Clock for Still {
        fn wall(&self) -> crewlog_mq::Timestamp {
            crewlog_mq::Timestamp(7_000_000_000_000_000)
        }
        fn monotonic(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }
    let options = Options { clock: Arc::new(Still), ..Options::default() };
    let timed = EventStore::open_with(&database.url(), options).await.unwrap();
    assert_eq!(timed.append(noting("a", 2)).await.unwrap().created_at.0, 7_000_000_000_000_000);
}

/// The server's clock cannot be set, so the last write is moved instead.
#[tokio::test]
async fn a_server_clock_that_was_set_back_extends_no_lease() {
    let database = Database::new();
    let stores = [database.open().await, database.open_pooled().await];
    let mut connection = database.connect().await;
    let lease = || CellChange::set("lease", "a", String::new()).held_for(Duration::from_secs(30));
    stores[0].append(Append::default().cell(lease())).await.unwrap();
    execute(&mut connection, "UPDATE cells SET held_until = held_until + 3600000000").await;
    let sql = "SELECT held_until FROM cells WHERE space = 'lease'";
    let before: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    for store in stores {
        let refusal = store.append(Append::default().cell(lease().expecting(CellExpected::Free))).await.unwrap_err();
        assert!(matches!(refusal, Error::CellMismatch { .. }), "{refusal}");
        store.append(Append::default().cell(lease())).await.unwrap();
        let until: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        assert!((before..before + 20_000_000).contains(&until), "from {before} to {until}");
        let steps = store.read(&Query::aggregate("log", "clock"), Range::default(), 10).await.unwrap().events;
        assert_eq!(steps[0].event_type, "ClockStepped");
        assert!(store.now() >= steps[0].created_at);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reading_the_store_while_streaming_records_does_not_deadlock() {
    let database = Database::new();
    let store = database.open().await;
    for n in 0..3 {
        store.append(Append::to("facts", "a", Expected::Any, notes(n * 500..(n + 1) * 500))).await.unwrap();
    }
    // As many reads as may run at once, all started before any of them reads further.
    let all_have_begun = Arc::new(tokio::sync::Barrier::new(4));
    let readers = (0..4).map(|_| {
        let (store, all_have_begun) = (store.clone(), Arc::clone(&all_have_begun));
        tokio::spawn(async move {
            let mut records = Box::pin(store.records(&Query::all(), Range::default()));
            let mut n_read = 0;
            while let Some(record) = records.next().await {
                if n_read == 0 {
                    all_have_begun.wait().await;
                }
                let range = Range::after(record.unwrap().position);
                store.read(&Query::all(), range, 1).await.unwrap();
                n_read += 1;
            }
            n_read
        })
    });
    let read = in_time("the readers", join_all(readers.collect::<Vec<_>>())).await;
    assert_eq!(read.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [1500; 4]);
}

/// jsonb accepts less than JSON allows: the text columns store such an event unchanged, and its jsonb is null.
#[tokio::test]
async fn the_view_reads_every_event_that_the_log_takes() {
    let database = Database::new();
    let store = database.open().await;
    let hostile = [r#"{"text":"a\u0000b"}"#.to_owned(), r#""\ud800""#.to_owned(), "1e999999".to_owned()];
    for json in hostile.iter().cloned().chain(["{\"n\":7}".into()]) {
        let event = NewEvent::from_json("Noted", "1.0", json, &Metadata::default()).unwrap();
        store.append(Append::to("facts", "a", Expected::Any, vec![event])).await.unwrap();
    }
    let mut connection = database.connect().await;
    let sql = "SELECT data, data_json::text FROM recorded_events ORDER BY position";
    let rows: Vec<(String, Option<String>)> = sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap();
    let of_hostile = hostile.into_iter().map(|json| (json, None));
    let expected: Vec<_> = of_hostile.chain([("{\"n\":7}".into(), Some("{\"n\": 7}".into()))]).collect();
    assert_eq!(rows, expected);
}
