//! Faults of a PostgreSQL server and of the connection: no acknowledged append is lost or repeated, and all
//! followers recover by themselves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crewlog_mq::{Append, Error, EventStore, Expected, Position, Query, Start};
use futures::StreamExt;
use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{check_history, everything, in_time, note, noting};
use crewlog_stage::cluster::{Cluster, Database, execute, server};

/// Appends until stopped, each event until it is acknowledged. Returns the acknowledged positions.
async fn write(store: EventStore, writer: i64, end: watch::Receiver<bool>) -> BTreeMap<i64, uuid::Uuid> {
    let mut acknowledged = BTreeMap::new();
    for n in 0.. {
        if *end.borrow() {
            return acknowledged;
        }
        let event = note(writer * 1_000_000 + n);
        let id = event.event_id();
        let append = Append::to("facts", &format!("{writer}"), Expected::Any, vec![event]);
        let appended = loop {
            match store.append(append.clone()).await {
                Ok(appended) => break appended,
                Err(Error::SequenceMismatch { .. }) => panic!("nothing was expected"),
                Err(_) if *end.borrow() => return acknowledged,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let before = acknowledged.insert(appended.last().0, id);
        assert!(before.is_none(), "a place is given once");
    }
    acknowledged
}

/// Writers and a follower while `disturb` runs; afterwards every acknowledged append is at its position.
async fn under_load(writing: [EventStore; 2], reading: EventStore, disturb: impl AsyncFnOnce()) {
    let (end, ended) = watch::channel(false);
    let writers = (0..8).map(|n| tokio::spawn(write(writing[n % 2].clone(), n as i64, ended.clone())));
    let writers: Vec<_> = writers.collect();
    let mut live = Box::pin(reading.follow(&Query::all(), Start::Beginning));
    let follower = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(item) = live.next().await {
            // The stream reports the fault and continues.
            let Ok(event) = item else { continue };
            let is_last = event.stream_id == "end";
            seen.push(event);
            if is_last {
                break;
            }
        }
        seen
    });
    disturb().await;
    end.send(true).expect("somebody listens");
    let acknowledged = in_time("the writers", join_all(writers)).await.into_iter().flat_map(Result::unwrap);
    let acknowledged: BTreeMap<_, _> = acknowledged.collect();
    assert!(!acknowledged.is_empty());
    let last = Append::to("end", "end", Expected::Any, vec![note(0)]);
    in_time("the end", async {
        while writing[0].append(last.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let history = everything(&writing[0]).await;
    check_history(&history);
    for (position, id) in acknowledged {
        assert_eq!(history[position as usize - 1].event_id, id, "what was acknowledged is there");
    }
    assert_eq!(
        in_time("the follower", follower).await.expect("it ends"),
        history,
        "a stream gives all of it, once, in order"
    );
}

/// Waits until the log has grown by this much.
async fn grown(store: &EventStore, by: i64) {
    let start = in_time("the head", async {
        loop {
            match store.head().await {
                Ok(head) => break head,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    let goal = Position(start.await.0 + by);
    in_time("growth", async { while !matches!(store.head().await, Ok(head) if head >= goal) {} }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_restart_under_load_loses_no_acknowledged_append() {
    let cluster = Cluster::start();
    let stores = [EventStore::open(&cluster.url()).await.unwrap(), EventStore::open(&cluster.url()).await.unwrap()];
    let reading = EventStore::open(&cluster.url()).await.unwrap();
    let watched = reading.clone();
    under_load(stores, reading, async || {
        for _ in 0..3 {
            grown(&watched, 50).await;
            cluster.go("restart");
        }
        grown(&watched, 50).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminated_sessions_under_load_lose_no_acknowledged_append() {
    let database = Database::new();
    let url = format!("{}&application_name={}", database.url(), database.schema);
    let stores = [EventStore::open(&url).await.unwrap(), EventStore::open(&url).await.unwrap()];
    let reading = EventStore::open(&url).await.unwrap();
    let watched = database.open().await;
    let mut connection = database.connect().await;
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'",
        database.schema
    );
    under_load(stores, reading, async || {
        for _ in 0..10 {
            grown(&watched, 20).await;
            execute(&mut connection, &sql).await;
        }
        grown(&watched, 20).await;
    })
    .await;
}

#[tokio::test]
async fn a_terminated_listening_session_is_replaced_and_listens_again() {
    let database = Database::new();
    let url = format!("{}&application_name={}", database.url(), database.schema);
    let reading = EventStore::open(&url).await.unwrap();
    let writing = database.open().await;
    let mut live = Box::pin(reading.follow(&Query::all(), Start::Beginning));
    let mut connection = database.connect().await;
    // The first follower makes it listen.
    writing.append(noting("a", 1)).await.unwrap();
    in_time("the event", live.next()).await.unwrap().unwrap();
    let listening = format!(
        "SELECT pid FROM pg_stat_activity WHERE application_name = '{}' AND query LIKE 'LISTEN%'",
        database.schema
    );
    let mut last_pid = 0;
    for n in 2..=4 {
        let pid: i32 = in_time("the listener", async {
            loop {
                let sql = sqlx::AssertSqlSafe(listening.clone());
                match sqlx::query_scalar(sql).fetch_optional(&mut connection).await.unwrap() {
                    Some(pid) if pid != last_pid => break pid,
                    Some(_) | None => tokio::task::yield_now().await,
                }
            }
        })
        .await;
        last_pid = pid;
        execute(&mut connection, &format!("SELECT pg_terminate_backend({pid})")).await;
        writing.append(noting("a", n)).await.unwrap();
        let event = in_time("the event", live.next()).await.unwrap().unwrap();
        assert_eq!(event.position, Position(n));
    }
}

/// A proxy to the server that can drop the reply of the next commit.
struct Lossy {
    address: SocketAddr,
    loses_next: Arc<AtomicBool>,
}

impl Lossy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("the address is whole");
        let loses_next = Arc::new(AtomicBool::new(false));
        let loses = Arc::clone(&loses_next);
        let host = server()
            .split_once('@')
            .expect("the address is whole")
            .1
            .split_once('/')
            .expect("the address is whole")
            .0
            .to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&host).await.expect("the address is whole");
                tokio::spawn(carry(client, server, Arc::clone(&loses)));
            }
        });
        Self { address, loses_next }
    }

    fn url(&self, database: &Database) -> String {
        let of_server = server();
        let host =
            of_server.split_once('@').expect("the address is whole").1.split_once('/').expect("the address is whole").0;
        database.url().replacen(host, &self.address.to_string(), 1)
    }
}

/// Forwards in both directions. A commit with a dropped reply reaches the server, and the connection ends.
async fn carry(client: TcpStream, server: TcpStream, loses: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_lost = Arc::new(AtomicBool::new(false));
    let lost = Arc::clone(&is_lost);
    let up = async move {
        let mut bytes = [0; 65536];
        while let Ok(n) = from_client.read(&mut bytes).await {
            let is_commit = bytes[..n].windows(6).any(|part| part == b"COMMIT") && contains(&bytes[..n], b"pg_notify");
            if is_commit && loses.swap(false, Ordering::SeqCst) {
                lost.store(true, Ordering::SeqCst);
            }
            if n == 0 || to_server.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    };
    let down = async move {
        let mut bytes = [0; 65536];
        while let Ok(n) = from_server.read(&mut bytes).await {
            if n == 0 || is_lost.load(Ordering::SeqCst) || to_client.write_all(&bytes[..n]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

#[tokio::test]
async fn a_commit_with_a_lost_reply_has_an_unknown_outcome_and_can_be_repeated() {
    let database = Database::new();
    let way = Lossy::start().await;
    let store = EventStore::open(&way.url(&database)).await.unwrap();
    store.append(noting("a", 1)).await.unwrap();
    for n in 2..5 {
        let append = Append::to("facts", "a", Expected::Sequence(n - 1), vec![note(n)]);
        way.loses_next.store(true, Ordering::SeqCst);
        let error = in_time("the answer", store.append(append.clone())).await.unwrap_err();
        assert!(matches!(error, Error::NotAcknowledged { .. }), "{error:?}");
        let repeated = in_time("the repetition", store.append(append)).await.unwrap();
        assert_eq!((repeated.repeated, repeated.last()), (true, Position(n)), "it was there");
    }
    check_history(&everything(&store).await);
}
