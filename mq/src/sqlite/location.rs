//! Where a log lies on SQLite: how it is opened safely, and what its faults mean.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, ffi};
use sqlx::sqlite::SqliteConnectOptions;

use super::lock::{AppendLock, Held};
use super::readers::STATEMENTS_MAX;
use crate::error::{Error, Result};

/// "crlg", as the first migration sets it.
const APPLICATION_ID: i64 = 1_668_443_239;
/// Older ones can corrupt a WAL that two connections write (sqlite.org, "WAL-reset bug").
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How long another program's lock is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) enum Location {
    File(PathBuf),
    /// A name in SQLite's `memdb`, shared by the connections of this process.
    Memory(String),
}

impl Location {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Memory(name) => Path::new(name),
        }
    }

    pub(super) fn exists(&self) -> bool {
        matches!(self, Self::File(path) if path.exists())
    }

    /// The lock that orders the writers of several processes; one process alone has a log in memory.
    pub(super) fn open_lock(&self) -> Result<Option<AppendLock>> {
        let Self::File(path) = self else { return Ok(None) };
        let mut name = path.as_os_str().to_owned();
        name.push("-lock");
        let open = || std::fs::File::options().create(true).truncate(false).write(true).open(&name);
        match open().and_then(|file| AppendLock::new(file, open()?)) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Error::ReadOnly { path: path.clone() })
            }
            Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                Err(Error::ReadOnly { path: path.clone() })
            }
            Err(error) => Err(self.cannot_open(error)),
        }
    }

    /// Holds the append lock until the answer is dropped.
    pub(super) fn hold(&self, lock: Option<&AppendLock>) -> Result<Option<Held>> {
        let Some(lock) = lock else { return Ok(None) };
        match lock.hold(BUSY_TIMEOUT) {
            Ok(Some(held)) => Ok(Some(held)),
            Ok(None) => Err(Error::Locked { path: self.path().to_owned(), waited: BUSY_TIMEOUT }),
            Err(error) => Err(self.cannot_open(error)),
        }
    }

    /// A connection that reads and cannot write.
    pub(super) fn connect_to_read(&self) -> Result<Connection> {
        let connection = self.connect()?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.execute_batch("PRAGMA query_only = ON").map_err(|error| self.fault("opening the log", error))?;
        Ok(connection)
    }

    /// A connection that may write, to a log or to an empty file; it changes nothing yet.
    pub(super) fn connect(&self) -> Result<Connection> {
        if rusqlite::version_number() < SQLITE_VERSION_MIN {
            let reason = format!("SQLite {} is older than 3.51.3", rusqlite::version());
            return Err(self.cannot_open(std::io::Error::other(reason)));
        }
        let fault = |error| self.fault("opening the log", error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match self {
            Self::File(path) => Connection::open_with_flags(path, flags),
            Self::Memory(name) => {
                let uri = format!("file:{name}?vfs=memdb");
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
            }
        }
        .map_err(fault)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fault)?;
        self.refuse_foreign(&connection)?;
        Ok(connection)
    }

    /// How sqlx connects, for migrations.
    pub(super) fn options(&self) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new().busy_timeout(BUSY_TIMEOUT);
        match self {
            Self::File(path) => options.filename(path),
            Self::Memory(name) => options.filename(name).vfs("memdb"),
        }
    }

    /// Another process may be making the log now: the migration brings the tables and the application id in one
    /// commit, and the table of migrations, which sqlx makes before, is nobody's mark.
    fn refuse_foreign(&self, connection: &Connection) -> Result<()> {
        let number = |sql: &str| {
            let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            number.map_err(|error| self.fault("opening the log", error))
        };
        let n_tables = number("SELECT count(*) FROM sqlite_schema WHERE tbl_name != '_sqlx_migrations'")?;
        let application_id = number("PRAGMA application_id")?;
        if application_id == APPLICATION_ID || (application_id == 0 && n_tables == 0) {
            Ok(())
        } else {
            Err(Error::ForeignDatabase { path: self.path().to_owned() })
        }
    }

    /// Sets WAL and `synchronous=FULL` and reads both back, since SQLite passes over a word it does not know.
    pub(super) fn make_durable(&self, connection: &Connection) -> Result<()> {
        if let Self::Memory(_) = self {
            return Ok(());
        }
        let fault = |error| self.fault("opening the log", error);
        let journal = || connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        if journal().map_err(fault)? != "wal" {
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(fault)?;
        }
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;").map_err(fault)?;
        let journal = journal().map_err(fault)?;
        let synchronous: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).map_err(fault)?;
        if journal == "wal" && synchronous == 2 {
            return Ok(());
        }
        let reason = format!("journal_mode is {journal} and synchronous is {synchronous}, not wal and 2");
        Err(self.cannot_open(std::io::Error::other(reason)))
    }

    pub(super) fn cannot_open(&self, source: std::io::Error) -> Error {
        Error::CannotOpen { path: self.path().to_owned(), source: Arc::new(source) }
    }

    pub(super) fn newer_format(&self, found: i64, supported: i64) -> Error {
        Error::NewerFormat { path: self.path().to_owned(), found, supported }
    }

    pub(super) fn no_log_in(&self, reason: &'static str) -> Error {
        Error::NoLogIn { path: self.path().to_owned(), reason }
    }

    /// What a failed statement means.
    pub(super) fn fault(&self, doing: &'static str, error: rusqlite::Error) -> Error {
        let code = error.sqlite_error().map(|error| error.extended_code);
        self.fault_of(doing, code, error)
    }

    /// What a failed statement of a migration means.
    pub(super) fn migration_fault(&self, doing: &'static str, error: sqlx::Error) -> Error {
        let code = match &error {
            sqlx::Error::Database(error) => error.code().and_then(|code| code.parse().ok()),
            _ => None,
        };
        self.fault_of(doing, code, error)
    }

    fn fault_of(
        &self,
        doing: &'static str,
        extended_code: Option<i32>,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> Error {
        let path = self.path().to_owned();
        match extended_code.map(|code| code & 0xff) {
            Some(ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => Error::Locked { path, waited: BUSY_TIMEOUT },
            Some(ffi::SQLITE_READONLY | ffi::SQLITE_PERM) => Error::ReadOnly { path },
            Some(ffi::SQLITE_FULL) => Error::DiskFull { path },
            Some(ffi::SQLITE_CANTOPEN) => Error::CannotOpen { path, source: Arc::new(error) },
            Some(ffi::SQLITE_NOTADB | ffi::SQLITE_CORRUPT) => Error::NotADatabase { path, source: Arc::new(error) },
            _ => Error::storage(doing, error),
        }
    }
}
