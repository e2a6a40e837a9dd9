//! Logs on a PostgreSQL server, for tests: each test has a schema of its own.
//!
//! `./test` starts the server and a pooler, and says where they are. By hand: name a server that is there for tests by
//! `CREWLOG_TEST_POSTGRES=postgres://USER@HOST:PORT/DATABASE`, and pgbouncer before it, in transaction mode, by
//! `CREWLOG_TEST_POOLER`.

use crewlog_mq::{EventStore, Options, Postgres};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use uuid::Uuid;

/// A place on the server that no other test uses.
pub struct Database {
    pub schema: String,
}

impl Database {
    pub fn new() -> Self {
        Self { schema: format!("t{}", Uuid::now_v7().simple()) }
    }

    /// Its URL, at which there is no log yet.
    pub fn url(&self) -> String {
        format!("{}?schema={}", server(), self.schema)
    }

    /// The same place through the pooler.
    pub fn pooled_url(&self) -> String {
        format!("{}?schema={}&pooler=transaction", pooler(), self.schema)
    }

    pub async fn open(&self) -> EventStore {
        EventStore::open(&self.url()).await.expect("the log opens")
    }

    pub async fn open_pooled(&self) -> EventStore {
        EventStore::open(&self.pooled_url()).await.expect("the log opens through the pooler")
    }

    /// The log, for what only PostgreSQL can do.
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
