//! Damaged files: truncated, of another log, deleted or replaced while in use. The readable part is
//! a prefix of the history that ends with a complete append; or a refusal names the problem. Nothing is ever invented.

use std::path::{Path, PathBuf};

use crewlog_mq::{Append, Error, EventStore, Expected, Options, Position, Query, Recorded};
use futures::StreamExt;
use rusqlite::Connection;

use super::child::{self, Other, body, say};
use super::{Fact, Place, check_history, everything, in_time, notes, noting, text};

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", text(path)))
}

/// A log of small pages, half of it in the -wal file: its two files, and its history.
async fn small_log() -> (Vec<u8>, Vec<u8>, Vec<Recorded>) {
    let place = Place::new();
    let sql = "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; VACUUM";
    Connection::open(place.path()).expect("it is the test's own").execute_batch(sql).expect("it is the test's own");
    let store = place.open().await;
    for n in 0..10 {
        let append = Append::to("facts", "a", Expected::Any, notes(0..=n % 4));
        store.append(append.and("facts", "b", Expected::Any, notes(0..1))).await.expect("it is the test's own");
        if n == 5 {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            Connection::open(place.path())
                .expect("it is the test's own")
                .query_row(sql, [], |_| Ok(()))
                .expect("it is the test's own");
        }
    }
    let files = ["", "-wal"].map(|suffix| std::fs::read(beside(&place.path(), suffix)).expect("it is the test's own"));
    let [database, wal] = files;
    (database, wal, everything(&store).await)
}

/// Opens the remains of a log, and returns the number of events, or the error of the refusal.
async fn look(database: &[u8], wal: &[u8], whole: &[Recorded]) -> Result<usize, Error> {
    let place = Place::new();
    std::fs::write(place.path(), database).expect("it is the test's own");
    if !wal.is_empty() {
        std::fs::write(beside(&place.path(), "-wal"), wal).expect("it is the test's own");
    }
    let store = EventStore::open_with(&place.url(), Options { create: false, ..Options::default() }).await?;
    let mut found = Vec::new();
    while let Some(last) = {
        let after = found.last().map_or(Position(0), |event: &Recorded| event.position);
        let page = store.read(&Query::all(), crewlog_mq::Range::after(after), 1000).await?;
        found.extend(page.events);
        page.more.then_some(page.next)
    } {
        assert!(last > Position(0));
    }
    assert!(whole.starts_with(&found), "what is found is the beginning of what was");
    let is_whole = whole.get(found.len()).is_none_or(|next| next.append_start == next.position);
    assert!(is_whole, "it ends with a whole append");
    assert_eq!(store.head().await?.0 as usize, found.len());
    let checked = store.check().await?;
    let appended = store.append(noting("c", 1)).await;
    if checked.findings.is_empty() {
        assert_eq!(appended?.last().0 as usize, found.len() + 1, "the log goes on at its head");
    } else if let Ok(appended) = appended {
        assert_eq!(appended.last().0 as usize, found.len() + 1);
    }
    Ok(found.len())
}

#[track_caller]
fn check_clear(error: &Error) {
    let is_clear = matches!(error, Error::NotADatabase { .. } | Error::NoLogIn { .. } | Error::ForeignDatabase { .. });
    assert!(is_clear, "{error:?}");
}

#[tokio::test]
async fn a_wal_file_truncated_anywhere_leaves_complete_appends() {
    let (database, wal, whole) = small_log().await;
    let mut lengths = Vec::new();
    for len in (0..=wal.len()).step_by(311).chain([wal.len()]) {
        lengths.push(look(&database, &wal[..len], &whole).await.unwrap_or_else(|error| panic!("{len}: {error:?}")));
    }
    assert!(lengths.is_sorted() && lengths.last() == Some(&whole.len()), "{lengths:?}");
    lengths.dedup();
    assert_eq!(lengths.len(), 5, "each append is there or not: {lengths:?}");
}

#[tokio::test]
async fn a_database_truncated_anywhere_is_refused_or_reads_as_a_prefix() {
    let (database, wal, whole) = small_log().await;
    for wal in [&wal[..], &[]] {
        for len in (0..database.len()).step_by(389) {
            if let Err(error) = look(&database[..len], wal, &whole).await {
                check_clear(&error);
            }
        }
    }
}

#[tokio::test]
async fn the_wal_file_of_an_empty_or_missing_log_is_kept() {
    let (database, wal, whole) = small_log().await;
    for is_there in [true, false] {
        let place = Place::new();
        let wal_path = beside(&place.path(), "-wal");
        if is_there {
            std::fs::write(place.path(), "").unwrap();
        }
        std::fs::write(&wal_path, &wal).unwrap();
        let error = EventStore::open(&place.url()).await.expect_err("it is refused");
        assert!(matches!(error, Error::NoLogIn { .. }) && error.to_string().contains("put the log back"), "{error:?}");
        assert_eq!(std::fs::read(&wal_path).unwrap(), wal);
        std::fs::write(place.path(), &database).unwrap();
        assert_eq!(everything(&place.open().await).await, whole);
    }
}

#[tokio::test]
async fn a_location_that_is_not_a_regular_file_is_refused_at_once() {
    let place = Place::new();
    let fifo = place.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let circle = place.folder.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let nowhere = place.folder.path().join("nowhere");
    std::os::unix::fs::symlink(place.folder.path().join("missing/log.db"), &nowhere).unwrap();
    for path in [&fifo, &circle, &nowhere, place.folder.path(), Path::new("/dev/null")] {
        let opened = in_time("the refusal", EventStore::open(&text(path))).await;
        let error = opened.expect_err("it is refused");
        assert!(matches!(error, Error::CannotOpen { .. }) && error.to_string().contains(&text(path)), "{error:?}");
    }
}

/// Its commits are complete and their checksums correct, so SQLite would accept them for this log.
#[tokio::test]
async fn the_wal_file_of_another_log_is_refused() {
    let (one, other) = (Place::new(), Place::new());
    one.open().await.append(noting("a", 1)).await.unwrap();
    close(&one).await;
    let store = other.open().await;
    store.append(noting("a", 1)).await.unwrap();
    assert!(std::fs::copy(beside(&other.path(), "-wal"), beside(&one.path(), "-wal")).unwrap() > 0);
    let error = EventStore::open(&one.url()).await.expect_err("it is refused");
    assert!(error.to_string().contains("the -wal file beside it is of another log"), "{error:?}");
    std::fs::remove_file(beside(&one.path(), "-wal")).unwrap();
    assert_eq!(everything(&one.open().await).await.len(), 1);
}

/// Moves the whole log into its one file, once the last store is gone.
async fn close(place: &Place) {
    let connection = Connection::open(place.path()).expect("it is the test's own");
    in_time("the end of the store", async {
        loop {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("it is the test's own");
            if connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0)).is_ok() {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("it is the test's own");
    drop(connection);
}

#[tokio::test]
async fn a_log_deleted_or_replaced_while_open_refuses_appends() {
    let place = Place::new();
    let store = place.open().await;
    store.append(noting("a", 1)).await.unwrap();
    let mut stream = store.subscribe::<Fact>(&Query::all()).unwrap();
    in_time("the first event", stream.next()).await.unwrap().unwrap();
    let away = place.folder.path().join("away");
    std::fs::rename(place.path(), &away).unwrap();
    let is_replaced = |error: &Error| matches!(error, Error::Replaced { place: named } if *named == place.url());
    for is_there in [false, true] {
        if is_there {
            std::fs::copy(&away, place.path()).unwrap();
        }
        let error = store.append(noting("a", 2)).await.unwrap_err();
        assert!(is_replaced(&error) && error.to_string().contains("deleted or replaced"), "{error:?}");
        assert!(is_replaced(&store.head().await.unwrap_err()));
        let told = in_time("the fault", stream.next()).await.expect("a stream goes on");
        assert!(is_replaced(&told.expect_err("the log is gone")), "a follower is told");
    }
    std::fs::rename(&away, place.path()).unwrap();
    store.append(noting("a", 2)).await.expect("it is back");
    assert_eq!(everything(&store).await.len(), 2);
    check_history(&everything(&store).await);
}

/// The body of a process without write permission.
#[test]
#[ignore = "runs in another process"]
fn child_that_opens_an_unwritable_log() {
    let (_, url) = child::role();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let store = match EventStore::open(&url).await {
            Ok(store) => store,
            Err(error) => return error,
        };
        // If the index of the -wal file can be created next to it, the log can at least be read.
        assert_eq!(everything(&store).await.len(), 1);
        store.append(noting("a", 2)).await.expect_err("the file may not be written")
    });
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    say(&error.to_string());
}

#[tokio::test]
async fn a_log_without_write_permission_says_what_to_change() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.open().await.append(noting("a", 1)).await.unwrap();
    close(&place).await;
    let before = std::fs::read(place.path()).unwrap();
    let set = |path: &Path, mode: u32| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    // A user with these capabilities drops them.
    let bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"];
    let by: &[&str] = if rustix::process::geteuid().is_root() { &bound } else { &[] };
    for (folder, file) in [(0o700, 0o400), (0o500, 0o600), (0o500, 0o400)] {
        for suffix in ["-lock", "-shm", "-wal"] {
            // An existing file would need no creation.
            let _ = std::fs::remove_file(beside(&place.path(), suffix));
        }
        set(&place.path(), file);
        set(place.folder.path(), folder);
        let other = Other::start_by(by, body!(child_that_opens_an_unwritable_log), "open", &place.url(), &[]);
        let said = other.succeeds();
        set(place.folder.path(), 0o700);
        assert_eq!(said, [format!("{} cannot be written: make the file and its folder writable", place.url())]);
    }
    set(&place.path(), 0o600);
    assert_eq!(std::fs::read(place.path()).unwrap(), before);
    assert_eq!(everything(&place.open().await).await.len(), 1);
}

#[tokio::test]
async fn a_log_whose_wal_file_is_deleted_while_open_refuses_appends() {
    let place = Place::new();
    let (store, other) = (place.open().await, place.open().await);
    store.append(noting("a", 1)).await.unwrap();
    other.append(noting("b", 1)).await.unwrap();
    std::fs::remove_file(format!("{}-wal", place.url())).unwrap();
    for store in [&store, &other] {
        let refusal = store.append(noting("a", 2)).await.unwrap_err();
        assert!(matches!(&refusal, Error::Replaced { place } if place.ends_with("log.db-wal")), "{refusal}");
    }
}
