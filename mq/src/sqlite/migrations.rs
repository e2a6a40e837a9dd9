//! Creates the log's tables and runs the migrations that are missing, in one transaction under the append lock. A log of
//! another format is refused and left as it is.
//!
//! The table of migrations has the form that sqlx gives it.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sqlx::migrate::Migrator;

use super::location::Location;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::ids::new_event_id;
use crate::law::FORMAT;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// As sqlx makes it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);";

const DOING: &str = "migrating the log";

/// Whether all migrations have run and the log has its identity.
pub(super) fn is_made(connection: &Connection, location: &Location) -> Result<bool> {
    Ok(is_migrated(connection, location)?
        && is_identified(connection).map_err(|error| location.fault("opening the log", error))?)
}

/// Runs the missing migrations and gives a new log its identity, all or nothing. The caller holds the append lock.
pub(super) fn make(connection: &mut Connection, location: &Location, now: Timestamp) -> Result<()> {
    let fault = |error| location.fault(DOING, error);
    is_migrated(connection, location)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    transaction.execute_batch(TABLE).map_err(fault)?;
    for migration in MIGRATIONS.iter() {
        let sql = "SELECT EXISTS (SELECT 1 FROM _sqlx_migrations WHERE version = ?1 AND success)";
        if transaction.query_row(sql, [migration.version], |row| row.get(0)).map_err(fault)? {
            continue;
        }
        transaction.execute_batch(migration.sql.as_str()).map_err(fault)?;
        let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES (?1, ?2, TRUE, ?3, -1)";
        let row = params![migration.version, &*migration.description, &*migration.checksum];
        transaction.execute(sql, row).map_err(fault)?;
    }
    if !is_identified(&transaction).map_err(fault)? {
        let sql = "INSERT INTO log (one, id, format, created_at) VALUES (1, ?1, ?2, ?3)";
        transaction.execute(sql, params![new_event_id().to_string(), FORMAT, now.0]).map_err(fault)?;
    }
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::Migrated);
    transaction.commit().map_err(fault)
}

/// Refuses to make a log out of what is left of one, or where none was to be made.
pub(super) fn check_that_nothing_is_lost(connection: &Connection, location: &Location, create: bool) -> Result<()> {
    let fault = |error| location.fault("opening the log", error);
    let has_table = |name: &str| has_table(connection, name).map_err(fault);
    if !create && !has_table("_sqlx_migrations")? {
        return Err(
            location.no_log_in("it has none of a log's tables; what is newest stands in the -wal file beside it")
        );
    }
    if !has_table("events")? || !has_table("log")? || is_identified(connection).map_err(fault)? {
        return Ok(());
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM events)";
    if connection.query_row(sql, [], |row| row.get(0)).map_err(fault)? {
        return Err(location.no_log_in("it has events, and the log's identity is gone"));
    }
    Ok(())
}

/// Migrations that have run with another text than this program's.
pub(super) fn broken(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for migration in MIGRATIONS.iter() {
        let sql = "SELECT EXISTS (SELECT 1 FROM _sqlx_migrations WHERE version = ?1 AND success AND checksum = ?2)";
        let row = params![migration.version, &*migration.checksum];
        if !connection.query_row(sql, row, |row| row.get(0))? {
            found.push(format!("migration {} has run with another text than this program's", migration.version));
        }
    }
    Ok(found)
}

/// A new database in memory, to compare others with.
pub(super) fn pattern() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLE)?;
    for migration in MIGRATIONS.iter() {
        connection.execute_batch(migration.sql.as_str())?;
    }
    Ok(connection)
}

fn is_migrated(connection: &Connection, location: &Location) -> Result<bool> {
    let fault = |error| location.fault("reading the schema's version", error);
    if !has_table(connection, "_sqlx_migrations").map_err(fault)? {
        return Ok(false);
    }
    if has_table(connection, "log").map_err(fault)? {
        let format = connection.query_row("SELECT format FROM log", [], |row| row.get(0)).optional().map_err(fault)?;
        format.map_or(Ok(()), |format| location.check_format(format))?;
    }
    let sql = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success";
    let found: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(fault)?;
    let supported = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    if found > supported {
        return Err(location.newer_format(found, supported));
    }
    Ok(found == supported)
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";
    connection.query_row(sql, [name], |row| row.get(0))
}

fn is_identified(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM log)", [], |row| row.get(0))
}
