//! The location of a log on SQLite: how it is opened safely, and the meaning of its faults.

use std::fs::{Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use super::lock::{AppendLock, Held};
use crate::error::{Error, Result};

/// "crlg", set by the first migration.
const APPLICATION_ID: i64 = 1_668_443_239;
/// Older versions can corrupt a WAL that two connections write (sqlite.org, "WAL-reset bug").
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// A disk with less free space than this counts as full: a page of the database and its frame.
const PROBE_BYTES: usize = 8192;
/// Prepared statements kept per connection.
pub(super) const STATEMENTS_MAX: usize = 64;
/// The time limit for waiting on another program's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) enum Location {
    /// A database file, and the files found at open: open handles keep using those even if the path is replaced.
    File(PathBuf, Arc<Files>),
    /// A name in SQLite's `memdb`, shared by the connections of this process.
    Memory(String),
}

/// To write a new file that only this account can read, since a log has the output of commands.
pub(super) fn private() -> OpenOptions {
    OpenOptions::new().write(true).mode(0o600).clone()
}

/// Identifies a file independently of its name: device and inode.
pub(super) type FileId = (u64, u64);

/// The open files of a log.
#[derive(Debug, Default)]
pub(super) struct Files {
    log: OnceLock<FileId>,
    /// It exists as long as any connection has the log open.
    wal: OnceLock<FileId>,
}

impl Location {
    /// A log in a file. Unsuitable files are refused before SQLite touches them.
    pub(super) fn file(path: PathBuf) -> Result<Self> {
        let location = Self::File(path, Arc::default());
        let found = std::fs::metadata(location.path());
        if found.as_ref().is_ok_and(|found| !found.is_file()) {
            return Err(location.cannot_open(std::io::Error::other("it is a folder or the like, and no file")));
        }
        // SQLite would delete the -wal file.
        let is_empty = found.map_or(true, |found| found.len() == 0);
        if is_empty && std::fs::metadata(location.with_ending("-wal")).is_ok_and(|wal| wal.len() > 0) {
            let reason =
                "it is empty or gone, and the -wal file beside it is not: put the log back, or move the -wal file away";
            return Err(location.no_log_in(reason));
        }
        Ok(location)
    }

    /// SQLite identifies a -wal file by its name alone, and would accept the commits of another log's. So once the
    /// database file itself has events, its identity must equal the one read through the -wal file.
    pub(super) fn check_wal(&self, connection: &Connection) -> Result<()> {
        let Self::File(path, _) = self else { return Ok(()) };
        let id =
            |connection: &Connection| connection.query_row("SELECT id FROM log", [], |row| row.get::<_, String>(0));
        // A log that is not created yet has no identity.
        let Ok(whole) = id(connection) else { return Ok(()) };
        // Reads without a lock while others write, so a failed read proves nothing.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let alone = Connection::open_with_flags(immutable(path), flags).and_then(|alone| {
            let has_events =
                alone.query_row("SELECT EXISTS (SELECT 1 FROM events)", [], |row| row.get::<_, bool>(0))?;
            if has_events { id(&alone).map(Some) } else { Ok(None) }
        });
        match alone {
            Ok(Some(alone)) if alone != whole => {
                // Otherwise the last connection to close writes the -wal file into the database.
                let kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
                kept.map_err(|error| self.fault("opening the log", error))?;
                Err(self.no_log_in("the -wal file beside it is of another log: move it away, or put its own back"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Remembers the file's identity for [`Location::check_same`].
    pub(super) fn remember(&self) {
        if let Self::File(path, files) = self
            && let Some(found) = id_at(path)
        {
            files.log.get_or_init(|| found);
        }
    }

    /// Refuses to write if the log or its -wal file was deleted or replaced: nobody would ever read the writes.
    pub(super) fn check_same(&self) -> Result<()> {
        let Self::File(path, files) = self else { return Ok(()) };
        let Some(log) = files.log.get() else { return Ok(()) };
        if id_at(path) != Some(*log) {
            return Err(Error::Replaced { place: self.place() });
        }
        let wal = self.with_ending("-wal");
        match (files.wal.get(), id_at(&wal)) {
            (Some(known), found) if found != Some(*known) => Err(Error::Replaced { place: wal.display().to_string() }),
            (None, Some(found)) => {
                files.wal.get_or_init(|| found);
                Ok(())
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::File(path, _) => path,
            Self::Memory(name) => Path::new(name),
        }
    }

    /// For messages.
    pub(super) fn place(&self) -> String {
        self.path().display().to_string()
    }

    pub(super) fn exists(&self) -> bool {
        // A log that cannot be looked at exists.
        matches!(self, Self::File(path, _) if path.try_exists().unwrap_or(true))
    }

    /// Makes an empty file if it is wanted and missing. SQLite gives its other files the same mode.
    pub(super) fn make(&self, is_wanted: bool) -> Result<()> {
        let (true, Self::File(path, _)) = (is_wanted, self) else { return Ok(()) };
        match private().create_new(true).open(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(self.cannot_open(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The path of a file next to the log, with this ending; `None` for a log in memory.
    pub(super) fn beside(&self, ending: &str) -> Option<PathBuf> {
        matches!(self, Self::File(..)).then(|| self.with_ending(ending))
    }

    /// The bytes of the database file and its write-ahead log; `None` for a log in memory.
    pub(super) fn n_bytes(&self) -> Option<i64> {
        let files = [self.beside("")?, self.beside("-wal")?];
        let lengths = files.map(|path| std::fs::metadata(path).map_or(0, |found| found.len()));
        i64::try_from(lengths.iter().sum::<u64>()).ok()
    }

    fn with_ending(&self, ending: &str) -> PathBuf {
        let mut name = self.path().as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// The lock that orders writers across processes; a log in memory needs none.
    pub(super) fn open_lock(&self) -> Result<Option<AppendLock>> {
        let Some(name) = self.beside("-lock") else { return Ok(None) };
        let open = || private().create(true).open(&name);
        match open().and_then(|file| AppendLock::new(file, open()?)) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if is_of_no_permission(&error) => Err(self.read_only()),
            Err(error) if is_of_a_full_disk(&error) => Err(Error::DiskFull { place: self.place() }),
            Err(error) => Err(self.cannot_open(error)),
        }
    }

    /// Holds the append lock until the result is dropped.
    pub(super) fn hold(&self, lock: Option<&AppendLock>) -> Result<Option<Held>> {
        let Some(lock) = lock else { return Ok(None) };
        match lock.hold(BUSY_TIMEOUT) {
            Ok(Some(held)) => Ok(Some(held)),
            Ok(None) => Err(Error::Locked { place: self.place(), waited: BUSY_TIMEOUT }),
            Err(error) => Err(self.cannot_open(error)),
        }
    }

    /// A read-only connection.
    pub(super) fn connect_to_read(&self) -> Result<Connection> {
        let connection = self.connect()?;
        self.check_same()?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.execute_batch("PRAGMA query_only = ON").map_err(|error| self.fault("opening the log", error))?;
        Ok(connection)
    }

    /// A connection for writing to an existing log, with durable commits.
    pub(super) fn connect_to_write(&self) -> Result<Connection> {
        // Connecting would create a missing file.
        self.check_same()?;
        let connection = self.connect()?;
        self.check_same()?;
        self.make_durable(&connection)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
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
            Self::File(path, _) => Connection::open_with_flags(path, flags),
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

    /// Another process may be creating the log now: all three values change in one commit, so the application id comes
    /// last.
    fn refuse_foreign(&self, connection: &Connection) -> Result<()> {
        let number = |sql: &str| {
            let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            number.map_err(|error| self.fault("opening the log", error))
        };
        let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0 && number("PRAGMA user_version")? == 0;
        match number("PRAGMA application_id")? {
            APPLICATION_ID => Ok(()),
            0 if is_empty => Ok(()),
            _ => Err(Error::ForeignDatabase { place: self.place(), reason: "name another file".to_owned() }),
        }
    }

    /// Sets WAL and `synchronous=FULL` and reads both back, since SQLite ignores words it does not know.
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
        Error::CannotOpen { place: self.place(), source: Arc::new(source) }
    }

    pub(super) fn no_log_in(&self, reason: &'static str) -> Error {
        Error::NoLogIn { place: self.place(), reason }
    }

    fn read_only(&self) -> Error {
        let reason = "make the file and its folder writable".to_owned();
        Error::ReadOnly { place: self.place(), reason }
    }

    /// Converts an error of a statement.
    pub(super) fn fault(&self, doing: &'static str, error: rusqlite::Error) -> Error {
        let place = self.place();
        // A referenced row is missing, or has another form.
        let is_no_row_of_a_log = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::QueryReturnedNoRows
        );
        if is_no_row_of_a_log {
            return Error::NotADatabase { place, source: Arc::new(error) };
        }
        let code = error.sqlite_error().map_or(0, |error| error.extended_code);
        match code & 0xff {
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Error::Locked { place, waited: BUSY_TIMEOUT },
            ffi::SQLITE_READONLY | ffi::SQLITE_PERM => self.read_only(),
            ffi::SQLITE_FULL => Error::DiskFull { place },
            ffi::SQLITE_IOERR if self.is_out_of_room(code) => Error::DiskFull { place },
            ffi::SQLITE_IOERR if code == ffi::SQLITE_IOERR_SHORT_READ => {
                Error::NotADatabase { place, source: Arc::new(error) }
            }
            ffi::SQLITE_CANTOPEN if self.is_out_of_room(ffi::SQLITE_IOERR_WRITE) => Error::DiskFull { place },
            ffi::SQLITE_CANTOPEN if self.is_closed_to_writers() => self.read_only(),
            ffi::SQLITE_CANTOPEN => Error::CannotOpen { place, source: Arc::new(error) },
            ffi::SQLITE_NOTADB | ffi::SQLITE_CORRUPT => Error::NotADatabase { place, source: Arc::new(error) },
            _ => Error::storage(doing, error),
        }
    }

    /// SQLite distinguishes a full disk from a failing one, but misses a quota, a limit on file size, and a full disk
    /// when it creates its index of the -wal file. So the lock file, whose content does not matter, is extended for a
    /// moment as a test.
    fn is_out_of_room(&self, code: i32) -> bool {
        use ffi::{SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
        let is_of_room = [ffi::SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_TRUNCATE].contains(&code)
            || [SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE].contains(&code);
        is_of_room && matches!(self, Self::File(..)) && self.probe().is_err_and(|error| is_of_a_full_disk(&error))
    }

    /// True if the log is read-only: without its -wal file SQLite only reports that it cannot be opened.
    fn is_closed_to_writers(&self) -> bool {
        self.exists() && self.probe().is_err_and(|error| is_of_no_permission(&error))
    }

    fn probe(&self) -> std::io::Result<()> {
        use std::io::{Seek, SeekFrom, Write};
        let files = [self.path().to_owned(), self.with_ending("-wal"), self.with_ending("-shm")];
        let lengths = files.map(|path| std::fs::metadata(path).map_or(0, |found| found.len()));
        let longest = lengths.into_iter().max().unwrap_or(0);
        let mut file = private().create(true).open(self.with_ending("-lock"))?;
        let written = file.seek(SeekFrom::Start(longest)).and_then(|_| file.write_all(&[0; PROBE_BYTES]));
        let emptied = file.set_len(0);
        written.and(emptied)
    }
}

/// SQLite's URI for a file that nobody changes; it makes SQLite ignore the -wal file.
fn immutable(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let escaped = bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") });
    format!("file:{}?immutable=1", escaped.collect::<String>())
}

fn is_of_no_permission(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

fn is_of_a_full_disk(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

fn id_at(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().as_ref().and_then(id_of)
}

#[cfg(unix)]
pub(super) fn id_of(found: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

/// Other systems do not let an open file be deleted.
#[cfg(not(unix))]
pub(super) fn id_of(_found: &Metadata) -> Option<FileId> {
    None
}
