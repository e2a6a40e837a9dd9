//! The forms that a log has had: how a log of an older one becomes one of the newest, in one transaction under the append
//! lock. It never changes what an event says, and leaves a log of a newer form as it is.
//!
//! The table of migrations is that of sqlx, by which logs of every version tell what has run.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, TransactionBehavior, params};
use sqlx::migrate::Migrator;
use uuid::Uuid;

use super::location::Location;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::ids::new_event_id;
use crate::law::FORMAT;
use crate::record::Metadata;

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

/// Whether the log has its newest form and its identity.
pub(super) fn is_made(connection: &Connection, location: &Location) -> Result<bool> {
    Ok(is_migrated(connection, location)?
        && is_identified(connection).map_err(|error| location.fault("opening the log", error))?)
}

/// Brings the log to its newest form and gives a new one its identity: all of it or nothing. The append lock is held.
pub(super) fn make(connection: &mut Connection, location: &Location, now: Timestamp) -> Result<()> {
    let fault = |error| location.fault(DOING, error);
    is_migrated(connection, location)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    name_functions(&transaction).map_err(fault)?;
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

/// What stands of the migrations themselves that no crewlog has written.
pub(super) fn broken(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for migration in MIGRATIONS.iter() {
        let version = migration.version;
        let sql =
            "SELECT count(*), coalesce(max(checksum = ?2), 0) FROM _sqlx_migrations WHERE version = ?1 AND success";
        match connection.query_row(sql, params![version, &*migration.checksum], |row| Ok((row.get(0)?, row.get(1)?)))? {
            (0i64, _) => found.push(format!("migration {version} is not among those that have run")),
            (_, true) => {}
            (_, false) => found.push(format!("migration {version} has run with another text than this program's")),
        }
    }
    Ok(found)
}

/// A new database of the newest form, in memory, to hold others against.
pub(super) fn pattern() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    name_functions(&connection)?;
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

/// What migrations read the ids of metadata with; metadata that is none, or of another form, has none.
fn name_functions(connection: &Connection) -> rusqlite::Result<()> {
    name_function(connection, "correlation_of", |metadata| metadata.correlation_id)?;
    name_function(connection, "causation_of", |metadata| metadata.causation_id)
}

fn name_function(connection: &Connection, name: &str, id: fn(&Metadata) -> Option<Uuid>) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(name, 1, flags, move |context| {
        let metadata =
            context.get_raw(0).as_bytes().ok().and_then(|json| serde_json::from_slice::<Metadata>(json).ok());
        Ok(metadata.as_ref().and_then(id).map(Uuid::into_bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_any_form_is_read_and_fails_no_migration() {
        let connection = Connection::open_in_memory().unwrap();
        name_functions(&connection).unwrap();
        let id = Uuid::from_u128(7);
        let ids = |metadata: &str| -> (Option<[u8; 16]>, Option<[u8; 16]>) {
            let sql = "SELECT correlation_of(?1), causation_of(?1)";
            connection.query_row(sql, [metadata], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
        };
        let bytes = Some(id.into_bytes());
        assert_eq!(ids(&format!("{{\"correlation_id\":\"{id}\"}}")), (bytes, None));
        assert_eq!(ids(&format!("{{\"causation_id\":\"{}\"}}", id.simple())), (None, bytes));
        for other in ["", "{", "null", "12", "{\"correlation_id\":12}", "{\"correlation_id\":\"00\"}", "[]"] {
            assert_eq!(ids(other), (None, None), "{other}");
        }
        let found: Option<Vec<u8>> = connection.query_row("SELECT correlation_of(NULL)", [], |row| row.get(0)).unwrap();
        assert_eq!(found, None);
    }
}
