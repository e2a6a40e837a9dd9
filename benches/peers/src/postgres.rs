//! A separate PostgreSQL server for the run, and bare appends to the columns of the log: one connection that commits
//! all queued events together, or one transaction per event over many connections. Nothing is judged.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use crate::data::Data;
use crate::place::{Running, free_address};
use crate::subject::{Batch, Failure, Result, Store};
use crate::workload::{N_AGGREGATES, N_WRITERS, TAG, metadata};

/// The superuser of the run's own server.
const USER: &str = "bench";
/// The user that replaces root, which PostgreSQL refuses.
const NOBODY: u32 = 65534;
const GROUP_DATABASE: &str = "group_commit";
const EACH_DATABASE: &str = "each";

const SCHEMA: &str = "CREATE SEQUENCE positions CACHE 1;
    CREATE TABLE events (
        position       bigint PRIMARY KEY DEFAULT nextval('positions'),
        event_id       uuid NOT NULL UNIQUE,
        aggregate      bigint NOT NULL,
        sequence       bigint NOT NULL,
        event_version  text NOT NULL,
        data           text NOT NULL,
        metadata       text NOT NULL,
        tags           text NOT NULL,
        created_at     bigint NOT NULL,
        append_start   bigint NOT NULL,
        kind           bigint NOT NULL,
        correlation_id uuid,
        causation_id   uuid,
        UNIQUE (aggregate, sequence)
    );
    CREATE INDEX ON events (kind);
    CREATE INDEX ON events (correlation_id) WHERE correlation_id IS NOT NULL;
    CREATE INDEX ON events (causation_id) WHERE causation_id IS NOT NULL;
    CREATE TABLE tags (tag text NOT NULL, position bigint NOT NULL, PRIMARY KEY (tag, position));";
const INSERT_MANY: &str = "WITH written AS (
        INSERT INTO events SELECT position, event_id, aggregate, sequence, '1.0', data, metadata, '[\"project:bench\"]',
            position, position, 1, $7, $8
        FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
            AS new (position, event_id, aggregate, sequence, data, metadata)
        RETURNING position)
    INSERT INTO tags SELECT $9, position FROM written";
const INSERT_ONE: &str = "WITH written AS (
        INSERT INTO events (event_id, aggregate, sequence, event_version, data, metadata, tags, created_at,
            append_start, kind, correlation_id, causation_id)
        VALUES ($1, $2, $3, '1.0', $4, $5, '[\"project:bench\"]', 0, 0, 1, $6, $7)
        RETURNING position)
    INSERT INTO tags SELECT $8, position FROM written";

/// A server with its own data, ended with its owner.
pub struct Server {
    running: Running,
    pub version: String,
}

impl Server {
    pub fn start(data: &Path) -> Result<Self> {
        let bin = newest_bin()?;
        std::fs::create_dir(data)?;
        let as_root = is_root()?;
        if as_root {
            std::os::unix::fs::chown(data, Some(NOBODY), Some(NOBODY))?;
        }
        let command = |name: &str| {
            let mut command = Command::new(bin.join(name));
            command.current_dir(data).arg("-D").arg(data);
            if as_root {
                command.uid(NOBODY).gid(NOBODY);
            }
            command
        };
        let made = command("initdb")
            .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
            .stdin(Stdio::null())
            .output()?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr).trim()).into());
        }
        let address = free_address()?;
        let mut server = command("postgres");
        server.args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-c",
            "max_connections=200",
        ]);
        server.args(["-c", "shared_buffers=256MB", "-c"]).arg(format!("port={}", address.port()));
        let parent = data.parent().ok_or("the folder has no parent")?;
        let running = Running::start(server, address, parent)?;
        let version = String::from_utf8(Command::new(bin.join("postgres")).arg("--version").output()?.stdout)?;
        Ok(Self { running, version: version.trim().replace("postgres (PostgreSQL)", "PostgreSQL") })
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.running.address)
    }

    /// An empty database with this name, replacing an earlier one.
    pub async fn new_database(&self, name: &str) -> Result<()> {
        let client = connect(self.running.address, "postgres").await?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
        Ok(client.batch_execute(&format!("CREATE DATABASE {name}")).await?)
    }

    /// Its own statement on its durability.
    pub async fn settings(&self) -> Result<String> {
        let client = connect(self.running.address, "postgres").await?;
        let mut settings = Vec::new();
        for name in ["fsync", "synchronous_commit", "full_page_writes", "wal_sync_method"] {
            let value: String = client.query_one(&format!("SHOW {name}"), &[]).await?.get(0);
            settings.push(format!("{name} = {value}"));
        }
        Ok(settings.join(", "))
    }

    async fn empty(&self, database: &str) -> Result<Client> {
        self.new_database(database).await?;
        let client = connect(self.running.address, database).await?;
        client.batch_execute(SCHEMA).await?;
        Ok(client)
    }
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(output.stdout.trim_ascii() == b"0")
}

/// Debian keeps the servers of all versions side by side; elsewhere they are on the PATH.
fn newest_bin() -> Result<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    if let Some(newest) = installed.map(|entry| entry.path()).max_by_key(version) {
        return Ok(newest.join("bin"));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&paths).find(|path| path.join("initdb").exists());
    on_path.ok_or_else(|| "PostgreSQL's server is not installed".into())
}

async fn connect(address: SocketAddr, database: &str) -> Result<Client> {
    let config = format!("host={} port={} user={USER} dbname={database}", address.ip(), address.port());
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn replay(client: &Client, n_events: u64) -> Result<()> {
    let sql = "SELECT data, aggregate, event_version, metadata, tags FROM events ORDER BY position";
    let rows = client.query_raw(sql, std::iter::empty::<i64>()).await?;
    let mut rows = std::pin::pin!(rows);
    let (mut n_read, mut total) = (0, 0);
    while let Some(row) = rows.next().await {
        let row = row?;
        let data: Data = serde_json::from_str(row.try_get(0)?)?;
        for column in 2..5 {
            total += row.try_get::<_, String>(column)?.len() as u64;
        }
        total += data.n;
        n_read += 1;
    }
    std::hint::black_box(total);
    if n_read >= n_events { Ok(()) } else { Err(format!("only {n_read} events are there").into()) }
}

type Request = (Batch, oneshot::Sender<std::result::Result<(), String>>);

/// One connection that commits all queued events together, in one statement per commit.
pub struct GroupCommit {
    queue: mpsc::Sender<Request>,
    reader: Client,
}

impl GroupCommit {
    pub async fn start(server: &Server) -> Result<Self> {
        let client = server.empty(GROUP_DATABASE).await?;
        let statement = client.prepare(INSERT_MANY).await?;
        let (queue, mut requests) = mpsc::channel::<Request>(1024);
        tokio::spawn(async move {
            let mut written = Written::default();
            while let Some(first) = requests.recv().await {
                let mut queued = vec![first];
                while let Ok(next) = requests.try_recv() {
                    queued.push(next);
                }
                let (batches, replies): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
                let done = written.insert(&client, &statement, &batches).await.map_err(|failure| failure.to_string());
                for reply in replies {
                    let _ = reply.send(done.clone());
                }
            }
        });
        Ok(Self { queue, reader: connect(server.running.address, GROUP_DATABASE).await? })
    }
}

/// The events written by the one writer.
#[derive(Default)]
struct Written {
    position: i64,
    sequences: HashMap<u64, i64>,
}

impl Written {
    async fn insert(&mut self, client: &Client, statement: &Statement, batches: &[Batch]) -> Result<()> {
        let (mut positions, mut ids, mut aggregates, mut sequences) = (vec![], vec![], vec![], vec![]);
        let (mut data, mut metadatas, metadata) = (vec![], vec![], metadata());
        for batch in batches {
            let aggregate = batch.aggregate % N_AGGREGATES;
            let sequence = self.sequences.entry(aggregate).or_default();
            for n in batch.numbers() {
                self.position += 1;
                *sequence += 1;
                positions.push(self.position);
                ids.push(Uuid::now_v7());
                aggregates.push(aggregate as i64 + 1);
                sequences.push(*sequence);
                data.push(serde_json::to_string(&Data::nth(n))?);
                metadatas.push(serde_json::to_string(&metadata)?);
            }
        }
        let (correlation, causation) = (metadata.correlation_id, metadata.causation_id);
        client
            .execute(
                statement,
                &[&positions, &ids, &aggregates, &sequences, &data, &metadatas, &correlation, &causation, &TAG],
            )
            .await?;
        Ok(())
    }
}

impl Store for GroupCommit {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.queue.send((batch, reply)).await.map_err(|_| "the writer has ended")?;
            answer.await?.map_err(Failure::from)
        })
    }

    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(replay(&self.reader, n_events))
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async { Err("a table has no live end".into()) })
    }
}

/// One transaction per event, each writer on its own connection.
pub struct Each {
    connections: Vec<Mutex<(Client, Statement)>>,
    sequences: Vec<AtomicI64>,
}

impl Each {
    pub async fn connect(server: &Server) -> Result<Self> {
        server.empty(EACH_DATABASE).await?;
        let mut connections = Vec::new();
        for _ in 0..N_WRITERS {
            let client = connect(server.running.address, EACH_DATABASE).await?;
            let statement = client.prepare(INSERT_ONE).await?;
            connections.push(Mutex::new((client, statement)));
        }
        Ok(Self { connections, sequences: (0..N_AGGREGATES).map(|_| AtomicI64::new(0)).collect() })
    }
}

impl Store for Each {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (client, statement) = &*self.connections[(batch.first % N_WRITERS) as usize].lock().await;
            for n in batch.numbers() {
                let aggregate = batch.aggregate % N_AGGREGATES;
                let sequence = self.sequences[aggregate as usize].fetch_add(1, Ordering::Relaxed) + 1;
                let (data, metadata) = (serde_json::to_string(&Data::nth(n))?, metadata());
                let (correlation, causation) = (metadata.correlation_id, metadata.causation_id);
                let (aggregate, metadata) = (aggregate as i64 + 1, serde_json::to_string(&metadata)?);
                client
                    .execute(
                        statement,
                        &[&Uuid::now_v7(), &aggregate, &sequence, &data, &metadata, &correlation, &causation, &TAG],
                    )
                    .await?;
            }
            Ok(())
        })
    }

    fn replay(&self, _n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Err("it only writes".into()) })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async { Err("it only writes".into()) })
    }
}
