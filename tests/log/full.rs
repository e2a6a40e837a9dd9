//! A full disk: a clear error, no partial writes, all data readable, and the same store continues once space is free.
//!
//! If permissions allow, the test uses a small file system of one process, which ends with it; in any case it uses the
//! file size limit of a process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crewlog_mq::{Append, Error, EventStore, Expected, Metadata, NewEvent, Recorded};
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use uuid::Uuid;

use super::child::{self, Other, body, say};
use super::{Place, check_history, everything, text};

const MOUNT: &str = "mount -t tmpfs -o size=12m crewlog \"$0\" && exec \"$@\"";
const IGNORE_LIMIT: &str = "trap '' XFSZ; exec \"$@\"";

/// The body of a process whose disk is sometimes full.
#[test]
#[ignore = "runs in another process"]
fn child_that_fills_its_disk() {
    let (role, url) = child::role();
    let folder = Path::new(&url).parent().expect("a log is in a folder").to_owned();
    let disk = match role.as_str() {
        "disk" => Disk::Small { filler: folder.join("filler"), folder },
        "limit" => Disk::Limit { folder },
        other => panic!("{other} is no role"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        appends(&disk).await;
        say("appends");
        opening(&disk).await;
        say("opening");
        import(&disk).await;
        say("import");
        checkpoint(&disk).await;
        say("checkpoint");
    });
}

const ALL: [&str; 4] = ["appends", "opening", "import", "checkpoint"];

/// The resource that is full.
enum Disk {
    Small { folder: PathBuf, filler: PathBuf },
    Limit { folder: PathBuf },
}

impl Disk {
    fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Small { folder, .. } | Self::Limit { folder } => folder.join(name),
        }
    }

    fn url(&self, name: &str) -> String {
        text(&self.path(name))
    }

    /// Leaves at most this many more bytes: on the disk, or in the longest file of a log.
    fn fill_up_to(&self, n_left: u64, log: &str) {
        match self {
            Self::Small { filler, .. } => {
                let mut file = std::fs::File::options().create(true).append(true).open(filler).expect("it can be made");
                while file.write_all(&[7; 1024]).is_ok() {}
                let len = file.metadata().expect("it is there").len();
                file.set_len(len.saturating_sub(n_left)).expect("it can be cut");
            }
            Self::Limit { .. } => {
                let lengths = ["", "-wal", "-shm"].map(|suffix| {
                    std::fs::metadata(self.path(&format!("{log}{suffix}"))).map_or(0, |found| found.len())
                });
                let [database, wal, _] = lengths;
                limit(Some(database.max(wal) + n_left));
            }
        }
    }

    fn fill(&self, log: &str) {
        self.fill_up_to(0, log);
    }

    fn make_room(&self) {
        match self {
            Self::Small { filler, .. } => std::fs::remove_file(filler).expect("it is there"),
            Self::Limit { .. } => limit(None),
        }
    }
}

fn limit(longest_file: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: longest_file, maximum }).expect("a softer limit may be set");
}

/// The `n`-th append: three events of 20,000 bytes in two aggregates.
fn nth_append(n: u64) -> Append {
    let data = format!("\"{}\"", "x".repeat(20_000));
    let mut events = (0..3).map(|index| {
        let event = NewEvent::from_json("Made", "1.0", data.clone(), &Metadata::default()).expect("it is JSON");
        event.with_id(Uuid::from_u64_pair(1, 4 * n + index))
    });
    let first = events.by_ref().take(2).collect();
    Append::to("a", "a", Expected::Any, first).and("b", "b", Expected::Any, events.collect())
}

async fn open(disk: &Disk, name: &str) -> EventStore {
    EventStore::open(&disk.url(name)).await.expect("the log opens")
}

/// A log with this many appends.
async fn log_of(disk: &Disk, name: &str, n_appends: u64) -> EventStore {
    let store = open(disk, name).await;
    for n in 0..n_appends {
        store.append(nth_append(n)).await.expect("there is room");
    }
    store
}

async fn check_whole(store: &EventStore, n_appends: u64) -> Vec<Recorded> {
    let history = everything(store).await;
    check_history(&history);
    assert_eq!(history.len() as u64, 3 * n_appends);
    history
}

async fn check_sound(store: &EventStore) {
    let checked = store.check().await.expect("it can be read");
    assert_eq!((checked.findings, checked.more), (vec![], false));
}

#[track_caller]
fn check_full<T>(outcome: Result<T, Error>, log: &Path) {
    let error = outcome.err().expect("the disk is full");
    assert!(matches!(&error, Error::DiskFull { place } if Path::new(place) == log), "{error:?}");
    assert!(error.to_string().contains("make room and try again"), "{error}");
}

async fn appends(disk: &Disk) {
    let path = disk.path("appends.db");
    let store = log_of(disk, "appends.db", 5).await;
    let idle = open(disk, "appends.db").await;
    let mut n_appends = 5;
    for round in 0..3 {
        // So that it fills up sometimes in the first frame of a commit and sometimes later.
        disk.fill_up_to(round * 17_000, "appends.db");
        let refused = loop {
            match store.append(nth_append(n_appends)).await {
                Ok(_) => n_appends += 1,
                refused => break refused,
            }
        };
        check_full(refused, &path);
        let others = (0..8).map(|n| store.append(nth_append(1000 + n)));
        for refused in futures::future::join_all(others).await {
            check_full(refused, &path);
        }
        check_full(idle.append(nth_append(n_appends)).await, &path);
        check_whole(&store, n_appends).await;
        check_whole(&idle, n_appends).await;
        disk.make_room();
        for store in [&store, &idle] {
            let appended = store.append(nth_append(n_appends)).await.expect("there is room again");
            assert!(!appended.repeated, "nothing was kept of what was refused");
            assert_eq!(appended.places[0].position.0 as u64, 3 * n_appends + 1);
            n_appends += 1;
        }
    }
    check_whole(&store, n_appends).await;
    check_sound(&store).await;
    // Their -wal file goes when both are closed, which would make room while the next disk is filled.
    idle.close().await;
    store.close().await;
}

async fn opening(disk: &Disk) {
    disk.fill("new.db");
    check_full(EventStore::open(&disk.url("new.db")).await, &disk.path("new.db"));
    disk.make_room();
    let store = log_of(disk, "new.db", 1).await;
    check_whole(&store, 1).await;
}

async fn import(disk: &Disk) {
    let from = log_of(disk, "from.db", 10).await;
    let records = check_whole(&from, 10).await;
    let identity = from.log().await.expect("it has one");
    let into = open(disk, "into.db").await;
    disk.fill("into.db");
    let imported = into.import(identity.clone(), records.clone().into_iter().map(Ok)).await;
    check_full(imported, &disk.path("into.db"));
    check_whole(&into, 0).await;
    assert_ne!(into.log().await.expect("it has one").id, identity.id);
    disk.make_room();
    let imported = into.import(identity, records.into_iter().map(Ok)).await.expect("there is room again");
    assert_eq!(imported.n_added, 30);
    check_whole(&into, 10).await;
    into.append(nth_append(10)).await.expect("it goes on");
    check_sound(&into).await;
}

/// All data is in the -wal file, and the database cannot grow.
async fn checkpoint(disk: &Disk) {
    let store = log_of(disk, "kept.db", 10).await;
    match disk {
        Disk::Small { .. } => disk.fill("kept.db"),
        Disk::Limit { .. } => limit(Some(20_000)),
    }
    let other = Connection::open(disk.path("kept.db")).expect("it is a database");
    let checkpoint = || other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    checkpoint().expect_err("the disk is full");
    check_whole(&store, 10).await;
    check_sound(&store).await;
    disk.make_room();
    assert_eq!(checkpoint(), Ok(0));
    check_whole(&store, 10).await;
    store.append(nth_append(10)).await.expect("it goes on");
    check_sound(&store).await;
}

#[test]
fn a_process_at_its_file_size_limit_loses_nothing_and_continues_when_it_is_raised() {
    let place = Place::new();
    let by = ["sh", "-c", IGNORE_LIMIT, "sh"];
    let other = Other::start_by(&by, body!(child_that_fills_its_disk), "limit", &place.url(), &[]);
    assert_eq!(other.succeeds(), ALL);
}

#[test]
fn a_full_disk_loses_nothing_and_the_store_continues_once_space_is_free() {
    let place = Place::new();
    let folder = text(place.folder.path());
    let may_mount = |unshare: &[&str]| {
        let probe = Command::new(unshare[0]).args(&unshare[1..]).args(["sh", "-c", MOUNT, &folder, "true"]).output();
        probe.is_ok_and(|probe| probe.status.success())
    };
    // The mount belongs to the process and ends with it.
    let unshares: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-Urm"]];
    let unshare = unshares.into_iter().find(|unshare| may_mount(unshare));
    let unshare = unshare.expect("a file system can be mounted: as root, or with user namespaces");
    let by = [unshare, &["sh", "-c", MOUNT, &folder]].concat();
    let other = Other::start_by(&by, body!(child_that_fills_its_disk), "disk", &place.url(), &[]);
    assert_eq!(other.succeeds(), ALL);
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0, "all was on the other file system");
}
