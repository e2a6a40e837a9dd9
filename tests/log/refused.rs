//! Locations that are not logs, or cannot be used now: each gives a specific error and stays unchanged.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;

use crewlog_mq::{Error, EventStore, Position, Query};
use futures::StreamExt;
use rusqlite::Connection;

use super::{Fact, Place, check_history, everything, in_time, noting, text};

/// Every file of a folder with its size and a hash of its bytes, except `-shm`, a cache of SQLite.
fn contents(folder: &Path) -> BTreeMap<String, (usize, u64)> {
    let files = std::fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it has a name").path());
    let files = files.filter(|path| path.is_file() && !text(path).ends_with("-shm"));
    let contents = files.map(|path| (text(&path), std::fs::read(&path).expect("it can be read")));
    contents
        .map(|(path, bytes)| (path, (bytes.len(), BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes))))
        .collect()
}

async fn refusal(url: &str) -> Error {
    EventStore::open(url).await.err().unwrap_or_else(|| panic!("{url} is refused"))
}

/// The file at the location is refused with this error, and nothing in its folder changes.
async fn check(what: &str, make: impl FnOnce(&Path), is_right: impl FnOnce(&Error) -> bool, says: &str) {
    let place = Place::new();
    make(&place.path());
    let before = contents(place.folder.path());
    let error = refusal(&place.url()).await;
    assert!(is_right(&error), "{what}: {error:?}");
    let message = error.to_string();
    assert!(message.contains(says) && message.contains(&place.url()), "{what}: {message}");
    assert_eq!(contents(place.folder.path()), before, "{what} is left as it was");
}

fn write(bytes: &[u8]) -> impl FnOnce(&Path) {
    move |path| std::fs::write(path, bytes).expect("the file can be written")
}

fn execute(sql: &str) -> impl FnOnce(&Path) {
    move |path| Connection::open(path).expect("it opens").execute_batch(sql).expect("the statements run")
}

/// A whole log of two events, closed, in one file.
fn make_log(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let url = text(path);
    let made = std::thread::spawn(move || {
        runtime.block_on(async {
            let store = EventStore::open(&url).await.expect("the log opens");
            for n in 0..2 {
                store.append(noting("a", n)).await.expect("an append of any kind is accepted");
            }
        });
    });
    made.join().expect("the log is made");
    execute("PRAGMA wal_checkpoint(TRUNCATE)")(path);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let is_right = |error: &Error| matches!(error, Error::NotADatabase { .. });
    let says = "not a usable database";
    check("a word", write(b"hello"), is_right, says).await;
    check("a text", write("a line of text\n".repeat(500).as_bytes()), is_right, says).await;
    let noise: Vec<u8> = (0..10_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    check("noise", write(&noise), is_right, says).await;
    check("half a header", write(b"SQLite format 3"), is_right, says).await;
}

#[tokio::test]
async fn a_damaged_log_is_refused() {
    let truncated = |path: &Path| {
        make_log(path);
        let file = std::fs::File::options().write(true).open(path).expect("the log is there");
        file.set_len(5000).expect("the file can be cut");
    };
    check("a truncated log", truncated, |error| matches!(error, Error::NotADatabase { .. }), "not a usable").await;
}

#[tokio::test]
async fn the_database_of_another_program_is_refused() {
    let is_right = |error: &Error| matches!(error, Error::ForeignDatabase { .. });
    let says = "another program: name another file";
    check("tables", execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)"), is_right, says).await;
    check("tables in WAL", execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)"), is_right, says).await;
    check("an application id", execute("PRAGMA application_id = 77; CREATE TABLE t (a)"), is_right, says).await;
    check("an id alone", execute("PRAGMA application_id = 77"), is_right, says).await;
    check("a version alone", execute("PRAGMA user_version = 1"), is_right, says).await;
    let tables = "CREATE TABLE events (position INTEGER PRIMARY KEY); CREATE TABLE log (id); CREATE TABLE tags (tag)";
    check("tables of the same names", execute(tables), is_right, says).await;
}

#[tokio::test]
async fn a_log_of_a_newer_version_is_refused() {
    let newer = |path: &Path| {
        make_log(path);
        execute("PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE)")(path);
    };
    let is_right = |error: &Error| matches!(error, Error::NewerFormat { found: 999, .. });
    let place = Place::new();
    newer(&place.path());
    let error = refusal(&place.url()).await;
    assert!(is_right(&error) && error.to_string().contains("install a newer one"), "{error:?}");
    let n_events: i64 =
        Connection::open(place.path()).unwrap().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(n_events, 2);
}

#[tokio::test]
async fn a_log_of_another_format_is_refused_and_left_unchanged() {
    let of_format = |format: i64| {
        move |path: &Path| {
            make_log(path);
            execute(&format!("UPDATE log SET format = {format}; PRAGMA wal_checkpoint(TRUNCATE)"))(path);
        }
    };
    for older in [0, 1] {
        let is_right = |error: &Error| matches!(error, Error::OlderFormat { found, .. } if *found == older);
        check("an older format", of_format(older), is_right, "begin a new log").await;
    }
    let is_right = |error: &Error| matches!(error, Error::NewerFormat { found: 999, .. });
    check("a newer format", of_format(999), is_right, "install a newer one").await;
}

/// Logs from before the one migration that creates the tables are refused by format, whatever their migrations.
#[tokio::test]
async fn the_format_is_checked_before_the_migrations() {
    let older = |path: &Path| {
        make_log(path);
        let sql = "UPDATE log SET format = 1; PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)";
        execute(sql)(path);
    };
    let is_right = |error: &Error| matches!(error, Error::OlderFormat { found: 1, .. });
    check("two migrations", older, is_right, "has log format 1").await;
}

#[tokio::test]
async fn a_location_where_no_file_can_exist_is_refused() {
    let is_right = |error: &Error| matches!(error, Error::CannotOpen { .. });
    check("a folder", |path| std::fs::create_dir(path).expect("it can be made"), is_right, "cannot be opened").await;
    let place = Place::new();
    let missing = text(&place.folder.path().join("missing/log.db"));
    let error = refusal(&missing).await;
    assert!(is_right(&error) && error.to_string().contains(&missing), "{error:?}");
    std::fs::write(place.folder.path().join("file"), "").unwrap();
    let below_a_file = text(&place.folder.path().join("file/log.db"));
    assert!(is_right(&refusal(&below_a_file).await));
}

#[tokio::test]
async fn a_location_without_a_file_name_is_refused_with_a_hint() {
    for (url, says) in [
        ("", "the path is empty"),
        ("sqlite:", "write sqlite:PATH"),
        ("sqlite://", "write sqlite:PATH"),
        ("mysql://localhost/log", "no backend for mysql"),
        ("https://example.org/log.db", "give a path or sqlite:PATH"),
        (":memory:", "in_memory"),
        ("sqlite::memory:", "in_memory"),
        ("file:log.db?mode=memory", "give a path or sqlite:PATH"),
    ] {
        let error = refusal(url).await;
        assert!(matches!(&error, Error::Unsupported { url: named, .. } if named == url), "{url}: {error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Other programs write `?mode=ro` to avoid creating a file: creating a log of that name would be a silent surprise.
#[tokio::test]
async fn parameters_of_an_sqlite_url_are_refused() {
    let place = Place::new();
    for scheme in ["sqlite:", "sqlite://"] {
        let error = refusal(&format!("{scheme}{}?mode=ro&cache=shared", place.url())).await;
        assert!(matches!(&error, Error::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains("has no parameters, and \"mode=ro&cache=shared\" was given"), "{error}");
    }
    assert!(contents(place.folder.path()).is_empty(), "no file is made");
}

/// Permission bits do not restrict a privileged user, so the case runs only if a write really fails.
#[tokio::test]
async fn a_log_without_write_permission_is_refused() {
    let place = Place::new();
    make_log(&place.path());
    let folder = place.folder.path();
    let read_only = |is_read_only: bool| {
        for path in [place.path(), folder.to_owned()] {
            let mut permissions = std::fs::metadata(&path).unwrap().permissions();
            permissions.set_readonly(is_read_only);
            std::fs::set_permissions(&path, permissions).unwrap();
        }
    };
    read_only(true);
    let binds = std::fs::write(folder.join("probe"), "").is_err();
    let outcome = if binds { Some(refusal(&place.url()).await) } else { None };
    read_only(false);
    if let Some(error) = outcome {
        assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    }
    for path in
        ["/proc/crewlog.db", "/sys/crewlog.db"].into_iter().filter(|path| Path::new(path).parent().unwrap().exists())
    {
        let error = refusal(path).await;
        assert!(matches!(error, Error::ReadOnly { .. } | Error::CannotOpen { .. }), "{path}: {error:?}");
        assert!(error.to_string().contains(path), "{error}");
    }
}

/// One test for all effects of a lock, since each wait takes the whole timeout.
#[tokio::test]
async fn a_log_locked_by_another_program_times_out_and_works_once_released() {
    let place = Place::new();
    let store = place.open().await;
    store.append(noting("a", 0)).await.unwrap();
    let mut stream = store.subscribe::<Fact>(&Query::all()).unwrap();
    in_time("the first event", stream.next()).await.unwrap().unwrap();

    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = noting("a", 1);
    let error = in_time("the refusal", store.append(append.clone())).await.unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains("locked by another program for 5 s: end that program"), "{error}");
    assert_eq!(everything(&store).await.len(), 1, "readers are not stopped by a writer");
    holder.execute_batch("ROLLBACK").unwrap();

    assert_eq!(in_time("the append", store.append(append)).await.unwrap().last(), Position(2));
    assert_eq!(in_time("the event", stream.next()).await.unwrap().unwrap().event, Fact::Noted { n: 1 });
    check_history(&everything(&store).await);
}

#[tokio::test]
async fn opening_a_locked_database_times_out_with_an_error() {
    let place = Place::new();
    make_log(&place.path());
    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let error = in_time("the refusal", refusal(&place.url())).await;
    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
    drop(holder);
    assert_eq!(everything(&place.open().await).await.len(), 2);
}
