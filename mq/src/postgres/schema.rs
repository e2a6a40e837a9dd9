//! Creates a log and migrates its schema in one transaction under its own lock, so any number of processes may open an
//! empty database at once, also behind a pooler.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::server::{Server, answered, code_of};
use super::time::NOW;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::law::{FORMAT, check_format};

/// The migrations; the first is 1.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/postgres/0001_log.sql")];
const SUPPORTED: i64 = MIGRATIONS.len() as i64;
/// "crewlog": the lock under which schemas are changed.
const LOCK: i64 = 0x0063_7265_776c_6f67;
/// Tables of a log, whose names must be free.
const TABLES: &str = "'log', 'append_lock', 'aggregates', 'kinds', 'events', 'tags', 'cells', 'recorded_events', \
     'schema_versions'";

const DOING: &str = "opening the log";

/// Opens the log of a server. Creates or migrates it through `migrate` if necessary. Returns its schema, and the
/// connection that found it.
pub(super) async fn open(
    server: &Server,
    migrate: &Server,
    create: bool,
    now: Option<Timestamp>,
) -> Result<(String, PgConnection)> {
    let mut connection = server.connect().await?;
    let schema = schema_of(server, &mut connection).await?;
    let server = server.clone().in_schema(&schema);
    let version = version(&server, &mut connection, &schema).await?;
    check(&server, version, create)?;
    if version < SUPPORTED {
        let migrate = migrate.clone().in_schema(&schema);
        let mut connection = migrate.connect().await?;
        // If dropped unfinished, everything is rolled back.
        bring_up_to_date(&migrate, &mut connection, &schema, create, now).await?;
    }
    match format(&mut connection, &schema).await.map_err(|error| server.fault(DOING, error))? {
        None => return Err(foreign(&server, "log without an identity")),
        Some(found) => check_format(server.place(), found)?,
    }
    may_append(&server, &mut connection, &schema).await?;
    Ok((schema, connection))
}

/// The schema in the URL, or else the first of the search path.
async fn schema_of(server: &Server, connection: &mut PgConnection) -> Result<String> {
    let sql = "SELECT current_schema()::text AS schema, current_setting('server_encoding') AS encoding";
    let row = one(connection, sql).await.map_err(|error| server.fault(DOING, error))?;
    let encoding: String = row.try_get("encoding").map_err(|error| server.fault(DOING, error))?;
    if encoding != "UTF8" {
        return Err(Error::Unsupported {
            url: server.place(),
            reason: format!("its encoding is {encoding}; make the database with encoding UTF8"),
        });
    }
    let found: Option<String> = row.try_get("schema").map_err(|error| server.fault(DOING, error))?;
    server.schema.clone().or(found).ok_or_else(|| Error::Unsupported {
        url: server.place(),
        reason: "no schema of its search path is there; name one with ?schema=NAME".to_owned(),
    })
}

/// The version of a schema; 0 if there is no log.
async fn version(server: &Server, connection: &mut PgConnection, schema: &str) -> Result<i64> {
    let fault = |error| server.fault(DOING, error);
    let sql = format!(
        "SELECT c.relname::text AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
         WHERE n.nspname = '{schema}' AND c.relname IN ({TABLES}) ORDER BY c.relname = 'schema_versions' DESC, 1 LIMIT 1"
    );
    let rows = answered(sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *connection)).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Ok(0) };
    let name: String = row.try_get("name").map_err(fault)?;
    if name != "schema_versions" {
        return Err(foreign(server, &format!("table {name}")));
    }
    let sql = format!("SELECT coalesce(max(version), 0)::bigint AS version FROM \"{schema}\".schema_versions");
    match one(connection, &sql).await {
        Ok(row) => row.try_get("version").map_err(fault),
        // The column is missing, or has another type.
        Err(error) if code_of(&error).is_some_and(|code| code.starts_with("42") && code != "42501") => {
            Err(foreign(server, &format!("table {name}")))
        }
        Err(error) => Err(fault(error)),
    }
}

fn foreign(server: &Server, found: &str) -> Error {
    let reason = format!("it has a {found} that is no log's; name another schema with ?schema=NAME");
    Error::ForeignDatabase { place: server.place(), reason }
}

fn check(server: &Server, version: i64, create: bool) -> Result<()> {
    if version > SUPPORTED {
        return Err(Error::NewerFormat { place: server.place(), found: version, supported: SUPPORTED });
    }
    if version == 0 && !create {
        return Err(Error::NoLog { place: server.place() });
    }
    Ok(())
}

async fn bring_up_to_date(
    server: &Server,
    connection: &mut PgConnection,
    schema: &str,
    create: bool,
    now: Option<Timestamp>,
) -> Result<()> {
    let fault = |error| server.fault("migrating the log", error);
    run(connection, format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({LOCK})"))
        .await
        .map_err(fault)?;
    // Another process may have been faster.
    let from = version(server, connection, schema).await?;
    check(server, from, create)?;
    let mut sql = String::new();
    if from == 0 {
        let exists = format!("SELECT count(*) AS n FROM pg_namespace WHERE nspname = '{schema}'");
        if one(connection, &exists).await.and_then(|row| row.try_get::<i64, _>("n")).map_err(fault)? == 0 {
            sql += &format!("CREATE SCHEMA \"{schema}\"; ");
        }
    }
    sql += &format!("SELECT set_config('search_path', '\"{schema}\", pg_temp', true); ");
    if from == 0 {
        sql += "CREATE TABLE schema_versions (version BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now()); ";
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > from) {
        sql += &format!("{migration}; INSERT INTO schema_versions (version) VALUES ({version}); ");
    }
    if from == 0 {
        let now = now.map_or_else(|| NOW.to_owned(), |now| now.0.to_string());
        let id = Uuid::now_v7();
        sql += &format!("INSERT INTO log (one, id, format, created_at) VALUES (1, '{id}', {FORMAT}, {now}); ");
    }
    run(connection, sql + "COMMIT").await.map_err(fault)
}

async fn format(connection: &mut PgConnection, schema: &str) -> sqlx::Result<Option<i64>> {
    one(connection, &format!("SELECT max(format) AS format FROM \"{schema}\".log")).await?.try_get("format")
}

/// Detects a read-only user or standby at open, instead of at the first append.
async fn may_append(server: &Server, connection: &mut PgConnection, schema: &str) -> Result<()> {
    let sql = format!(
        "BEGIN READ WRITE; SELECT one FROM \"{schema}\".append_lock FOR UPDATE SKIP LOCKED; \
         INSERT INTO \"{schema}\".events SELECT * FROM \"{schema}\".events WHERE false; \
         INSERT INTO \"{schema}\".aggregates SELECT * FROM \"{schema}\".aggregates WHERE false; ROLLBACK"
    );
    run(connection, sql).await.map_err(|error| server.fault(DOING, error))
}

async fn one(connection: &mut PgConnection, sql: &str) -> sqlx::Result<PgRow> {
    let sql = AssertSqlSafe(sql.to_owned());
    answered(sqlx::raw_sql(sql).fetch_one(connection)).await
}

async fn run(connection: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    answered(sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection)).await.map(|_| ())
}
