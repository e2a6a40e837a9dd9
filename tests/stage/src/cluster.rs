//! Logs on a PostgreSQL server, for tests: each test has its own schema.
//!
//! `./test` starts the server and a pooler, and passes their addresses. By hand: name a test server with
//! `CREWLOG_TEST_POSTGRES=postgres://USER@HOST:PORT/DATABASE`, and pgbouncer in front of it, in transaction mode, with
//! `CREWLOG_TEST_POOLER`.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crewlog_mq::{EventStore, Options, Postgres};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::watch;
use uuid::Uuid;

/// A schema on the server that no other test uses.
pub struct Database {
    /// Its name.
    pub schema: String,
}

impl Default for Database {
    fn default() -> Self {
        Self::new()
    }
}

impl Database {
    /// One with a name of its own.
    pub fn new() -> Self {
        Self::named(&Uuid::now_v7().simple().to_string())
    }

    /// The location of a named log.
    pub fn named(name: &str) -> Self {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Self { schema: format!("t{name}") }
    }

    /// Its URL, which has no log yet.
    pub fn url(&self) -> String {
        format!("{}?schema={}", server(), self.schema)
    }

    /// The same location through the pooler.
    pub fn pooled_url(&self) -> String {
        format!("{}?schema={}&pooler=transaction", pooler(), self.schema)
    }

    /// The log in it.
    pub async fn open(&self) -> EventStore {
        EventStore::open(&self.url()).await.expect("the log opens")
    }

    /// The log in it, through the pooler.
    pub async fn open_pooled(&self) -> EventStore {
        EventStore::open(&self.pooled_url()).await.expect("the log opens through the pooler")
    }

    /// The log as a PostgreSQL backend.
    pub async fn postgres(&self) -> Postgres {
        Postgres::open(&self.url(), Options::default()).await.expect("the log opens")
    }

    /// A connection to the server that sees the log's tables.
    pub async fn connect(&self) -> PgConnection {
        let mut connection = PgConnection::connect(&server()).await.expect("the server lets one in");
        execute(&mut connection, &format!("SET search_path = {}", self.schema)).await;
        connection
    }
}

/// Carries out statements.
pub async fn execute(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.expect("the server carries it out");
}

/// The URL of the server, without parameters.
pub fn server() -> String {
    variable("CREWLOG_TEST_POSTGRES", "a PostgreSQL server that is there for tests")
}

/// The URL of the pooler, without parameters.
pub fn pooler() -> String {
    variable("CREWLOG_TEST_POOLER", "pgbouncer in transaction mode before that server")
}

fn variable(name: &str, what: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} names no server: run ./test, which starts one, or set it to the URL of {what}")
    })
}

/// A server for one test, which may stop it.
pub struct Cluster {
    folder: TempDir,
    port: u16,
}

impl Cluster {
    /// A new one.
    pub fn start() -> Self {
        let cluster = Self::place();
        let data = cluster.data();
        cluster.run("initdb", &["-D", &data, "-U", "crewlog", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        cluster.go("start");
        cluster
    }

    /// A new standby of this server, which replicates asynchronously.
    pub fn standby(&self) -> Self {
        let standby = Self::place();
        let (data, port) = (standby.data(), self.port.to_string());
        let from = ["-h", "127.0.0.1", "-p", &port, "-U", "crewlog", "-c", "fast", "--no-sync", "-R", "-D", &data];
        standby.run("pg_basebackup", &from);
        standby.go("start");
        standby
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.run("pg_ctl", &["promote", "-D", &self.data(), "-w"]);
    }

    /// Ends the replication to this standby, once it has everything committed on its primary at the time of the call.
    pub async fn cut_off(&self, primary: &Self) {
        let (mut of_primary, mut own) = (primary.connect().await, self.connect().await);
        let committed: String = one(&mut of_primary, "SELECT pg_current_wal_insert_lsn()::text").await;
        let is_there = format!("SELECT pg_last_wal_replay_lsn() >= '{committed}'::pg_lsn");
        until(async || one(&mut own, &is_there).await).await;
        execute(&mut own, "ALTER SYSTEM SET primary_conninfo = ''").await;
        execute(&mut own, "SELECT pg_reload_conf()").await;
        until(async || one(&mut of_primary, "SELECT count(*) = 0 FROM pg_stat_replication").await).await;
    }

    /// A connection to it.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.expect("the server lets one in")
    }

    /// A folder and a port for a server.
    fn place() -> Self {
        let folder = TempDir::new().expect("a folder can be made");
        if let Some(nobody) = nobody() {
            chown(folder.path(), Some(nobody), None).expect("root may give a folder away");
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it has an address").port();
        Self { folder, port }
    }

    /// Its URL, for this database.
    pub fn url(&self) -> String {
        format!("postgres://crewlog@127.0.0.1:{}/postgres", self.port)
    }

    /// `start`, `stop` or `restart`, immediately.
    pub fn go(&self, order: &str) {
        let folder = crate::text(self.folder.path());
        let options =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off", self.port);
        let (data, log) = (self.data(), format!("{folder}/log"));
        let mut arguments = vec![order, "-D", &data, "-w"];
        if order != "start" {
            arguments.extend(["-m", "immediate"]);
        }
        if order != "stop" {
            arguments.extend(["-l", &log, "-o", &options]);
        }
        self.run("pg_ctl", &arguments);
    }

    fn data(&self) -> String {
        crate::text(&self.folder.path().join("data"))
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = programs().join(program);
        let mut command = match nobody() {
            // It refuses to run as root.
            Some(nobody) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={nobody}")).arg(format!("--regid={nobody}")).arg("--clear-groups");
                command.arg(&program);
                command
            }
            None => Command::new(&program),
        };
        let done = command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        let done = done.stderr(Stdio::null()).status().expect("PostgreSQL's programs can be started");
        assert!(done.success(), "{} {arguments:?}: {done}", program.display());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        if Path::new(&data).join("postmaster.pid").exists() {
            self.run("pg_ctl", &["stop", "-D", &data, "-m", "immediate"]);
        }
    }
}

/// One address for a server that may be replaced by another one.
pub struct Relay {
    port: u16,
    target: watch::Sender<Option<u16>>,
}

impl Relay {
    /// One that leads to this server.
    pub async fn to(cluster: &Cluster) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let (target, targets) = watch::channel(Some(cluster.port));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, targets.clone()));
            }
        });
        Self { port, target }
    }

    /// Cuts all connections; new ones go to this server, or nowhere.
    pub fn switch(&self, to: Option<&Cluster>) {
        self.target.send_replace(to.map(|cluster| cluster.port));
    }

    /// Its URL, for this database.
    pub fn url(&self) -> String {
        format!("postgres://crewlog@127.0.0.1:{}/postgres", self.port)
    }
}

async fn carry(mut client: TcpStream, mut targets: watch::Receiver<Option<u16>>) {
    let Some(port) = *targets.borrow_and_update() else { return };
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = targets.changed() => {}
    }
}

/// The single value of a statement.
async fn one<T>(connection: &mut PgConnection, sql: &str) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let found = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await;
    found.expect("the server answers")
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    while !is_so().await {
        ticks.tick().await;
    }
}

/// The user that runs a server when the tests run as root.
fn nobody() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(65534)
}

fn programs() -> PathBuf {
    if let Ok(folder) = std::env::var("CREWLOG_TEST_POSTGRES_BIN") {
        return PathBuf::from(folder);
    }
    let found = Command::new("pg_config").arg("--bindir").output().expect(
        "CREWLOG_TEST_POSTGRES_BIN names no folder, and there is no pg_config: run ./test, or say where initdb is",
    );
    PathBuf::from(String::from_utf8(found.stdout).expect("a path is UTF-8").trim())
}
