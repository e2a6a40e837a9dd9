//! The backends for all tests of the log, and how each opens logs.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::conformance::Rig;
use crewlog_mq::{
    Append, Appended, Backend, Cell as LogCell, Checked, EventStore, Imported, LogIdentity, Memory, Options, Page,
    Position, Query, Range, Records, Result, Sqlite, Stats, Tail, Timestamp,
};
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use tempfile::TempDir;
use uuid::Uuid;

use crate::cluster::Database;

/// All backends; without those on a server where `CREWLOG_TEST_POSTGRES` is `none`, as in `./test quick`.
pub fn rigs() -> Vec<Rig> {
    let mut rigs = vec![sqlite(), sqlite_shared(), sqlite_in_memory(), memory()];
    if std::env::var("CREWLOG_TEST_POSTGRES").is_ok_and(|url| url == "none") {
        return rigs;
    }
    rigs.extend(servers());
    rigs
}

/// A new log on each of them. The guard must live as long as the log, and names the backend of a failed test.
pub async fn logs() -> Vec<(EventStore, On)> {
    let mut logs = Vec::new();
    for rig in rigs() {
        let store = rig.open(&Uuid::now_v7().simple().to_string(), Options::default()).await;
        logs.push((store, On(rig)));
    }
    logs
}

/// The backend of the current test.
pub struct On(Rig);

thread_local! {
    /// On a failure the guard that is dropped first belongs to the current backend.
    static IS_SAID: Cell<bool> = const { Cell::new(false) };
}

impl Drop for On {
    fn drop(&mut self) {
        if std::thread::panicking() && !IS_SAID.replace(true) {
            eprintln!("the backend is {}", self.0.name());
        }
    }
}

fn folder() -> Arc<TempDir> {
    Arc::new(TempDir::new().expect("a folder can be made"))
}

/// A file opened by one process.
fn sqlite() -> Rig {
    let folder = folder();
    Rig::new("SQLite in a file", move |log, options| open_file(Arc::clone(&folder), log, options))
}

async fn open_file(folder: Arc<TempDir>, log: String, options: Options) -> Result<EventStore> {
    EventStore::open_with(&crate::text(&folder.path().join(log)), options).await
}

/// A file opened by two stores: operations alternate between them.
fn sqlite_shared() -> Rig {
    let folder = folder();
    Rig::new("SQLite in a file that two stores share", move |log, options| {
        let folder = Arc::clone(&folder);
        async move {
            let one = open_file(Arc::clone(&folder), log.clone(), options.clone()).await?;
            let other = open_file(folder, log, options).await?;
            Ok(EventStore::on(InTurn { stores: [one, other], n_asked: AtomicUsize::new(0) }))
        }
    })
}

fn sqlite_in_memory() -> Rig {
    kept("SQLite in memory", |options| Sqlite::in_memory(options).map_ok(EventStore::on).boxed())
}

fn memory() -> Rig {
    kept("memory", |options| async { Ok(EventStore::on(Memory::new(options))) }.boxed())
}

/// A backend that cannot be opened twice is kept, and cloned.
fn kept(name: &str, make: fn(Options) -> BoxFuture<'static, Result<EventStore>>) -> Rig {
    let known: Arc<Mutex<HashMap<String, EventStore>>> = Arc::default();
    Rig::new(name, move |log, options| {
        let known = Arc::clone(&known);
        async move {
            let found = known.lock().expect("nobody panics with it").get(&log).cloned();
            let store = match found {
                Some(store) => store,
                None => make(options).await?,
            };
            known.lock().expect("nobody panics with it").insert(log, store.clone());
            Ok(store)
        }
    })
}

/// PostgreSQL: directly, behind a pooler, and both at once on one log, like two processes.
fn servers() -> [Rig; 3] {
    let rig = |name: &str, of: fn(&Database) -> Vec<String>| {
        let prefix = Uuid::now_v7().simple().to_string();
        Rig::new(name, move |log, options| {
            let urls = of(&Database::named(&format!("{}_{log}", &prefix[20..])));
            async move {
                let mut stores = Vec::new();
                for url in urls {
                    stores.push(EventStore::open_with(&url, options.clone()).await?);
                }
                match <[EventStore; 2]>::try_from(stores) {
                    Ok(stores) => Ok(EventStore::on(InTurn { stores, n_asked: AtomicUsize::new(0) })),
                    Err(mut stores) => Ok(stores.remove(0)),
                }
            }
        })
    };
    [
        rig("PostgreSQL", |database| vec![database.url()]),
        rig("PostgreSQL behind a pooler", |database| vec![database.pooled_url()]),
        rig("PostgreSQL that two stores share", |database| vec![database.url(), database.pooled_url()]),
    ]
}

/// Two stores of one log, like two processes, used in turn.
struct InTurn {
    stores: [EventStore; 2],
    n_asked: AtomicUsize,
}

impl InTurn {
    fn next(&self) -> &Arc<dyn Backend> {
        self.stores[self.n_asked.fetch_add(1, Ordering::Relaxed) % 2].backend()
    }
}

impl Backend for InTurn {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        self.next().append(append)
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        self.next().read(query, range, limit)
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.next().head()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.next().whole(at)
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.next().log()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        self.next().import(identity, records)
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.next().check()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<LogCell>>> {
        self.next().cells(space, from, limit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.next().stats()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            for store in &self.stores {
                store.close().await;
            }
        }
        .boxed()
    }

    fn now(&self) -> Timestamp {
        // A process knows the commits that one of its stores has seen.
        self.stores[0].now().max(self.stores[1].now())
    }

    fn tail(&self) -> &Arc<Tail> {
        self.stores[0].backend().tail()
    }
}
