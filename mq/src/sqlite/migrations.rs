//! Creates the log's tables and runs missing migrations, in one transaction under the append lock. A log of another
//! format is refused and left unchanged.
//!
//! The database's `user_version` is the number of migrations that have run.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::location::Location;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::ids::new_event_id;
use crate::law::{FORMAT, check_format};

/// The migrations; the first is 1.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/sqlite/0001_log.sql")];
const SUPPORTED: i64 = MIGRATIONS.len() as i64;

const DOING: &str = "migrating the log";

/// True if all migrations have run and the log has its identity.
pub(super) fn is_made(connection: &Connection, location: &Location) -> Result<bool> {
    Ok(version(connection, location)? == SUPPORTED
        && is_identified(connection).map_err(|error| location.fault("opening the log", error))?)
}

/// Runs the missing migrations and gives a new log its identity, atomically. The caller holds the append lock.
pub(super) fn make(connection: &mut Connection, location: &Location, now: Timestamp) -> Result<()> {
    let fault = |error| location.fault(DOING, error);
    let from = version(connection, location)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    for (version, migration) in (1_i64..).zip(MIGRATIONS).filter(|(version, _)| *version > from) {
        transaction.execute_batch(migration).map_err(fault)?;
        transaction.pragma_update(None, "user_version", version).map_err(fault)?;
    }
    if !is_identified(&transaction).map_err(fault)? {
        let sql = "INSERT INTO log (one, id, format, created_at) VALUES (1, ?1, ?2, ?3)";
        transaction.execute(sql, params![new_event_id().to_string(), FORMAT, now.0]).map_err(fault)?;
    }
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::Migrated);
    transaction.commit().map_err(fault)
}

/// Refuses to create a log over the remains of another one, or without `create`.
pub(super) fn check_that_nothing_is_lost(connection: &Connection, location: &Location, create: bool) -> Result<()> {
    let fault = |error| location.fault("opening the log", error);
    if version(connection, location)? == 0 {
        let reason = match location.n_bytes() {
            Some(0) => "the file is empty",
            Some(_) | None => "it has none of a log's tables, which may have been in a lost -wal file",
        };
        return if create { Ok(()) } else { Err(location.no_log_in(reason)) };
    }
    if is_identified(connection).map_err(fault)? {
        return Ok(());
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM events)";
    if connection.query_row(sql, [], |row| row.get(0)).map_err(fault)? {
        return Err(location.no_log_in("it has events, and the log's identity is gone"));
    }
    Ok(())
}

/// A new database in memory, for comparison.
pub(super) fn pattern() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    MIGRATIONS.iter().try_for_each(|migration| connection.execute_batch(migration))?;
    Ok(connection)
}

/// The number of migrations that have run; 0 if there is no log.
fn version(connection: &Connection, location: &Location) -> Result<i64> {
    let fault = |error| location.fault("reading the schema's version", error);
    let has_log = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'log')";
    if connection.query_row(has_log, [], |row| row.get(0)).map_err(fault)? {
        let format = connection.query_row("SELECT format FROM log", [], |row| row.get(0)).optional().map_err(fault)?;
        format.map_or(Ok(()), |format| check_format(location.place(), format))?;
    }
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fault)?;
    if found > SUPPORTED {
        return Err(Error::NewerFormat { place: location.place(), found, supported: SUPPORTED });
    }
    Ok(found)
}

fn is_identified(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM log)", [], |row| row.get(0))
}
