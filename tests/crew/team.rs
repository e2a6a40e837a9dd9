//! Agents on one log, in several processes that a test can end. It checks nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::{Caller, Claimed, Crew, Join, NewTask, Refusal, Reserve};
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::{EventStore, Query, Range, Recorded};
use crewlog_planner::claim::Ending;
use crewlog_planner::crew::agents::{Profile, Wish};
use crewlog_planner::crew::leases::{Request, TTL, Turn};
use crewlog_planner::crew::messages::{Importance, Message, Sender};
use crewlog_planner::crew::target::Target;
use tempfile::TempDir;

use crate::executors::rig::{Scripted, new_log};

pub const TREE: &str = "host:tree";
/// Without a file system.
pub const RESERVE: Reserve<'static> = Reserve { ttl: TTL, target: &Target::written };

/// A log on a backend of the machine, with the test's clock.
pub struct Team {
    pub clock: Scripted,
    folder: TempDir,
    url: String,
}

impl Team {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = new_log(&folder);
        Self { clock: Scripted::default(), folder, url }
    }

    /// On a log in a file, wherever the other tests have theirs.
    pub fn on_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().join("log").to_str().unwrap().to_owned();
        Self { clock: Scripted::default(), folder, url }
    }

    /// The log's file.
    pub fn file(&self) -> PathBuf {
        assert!(Path::new(&self.url).exists(), "{} is no file", self.url);
        PathBuf::from(&self.url)
    }

    /// The crew in another process: with its own store and liveness lock.
    pub async fn process(&self) -> Crew {
        self.process_of("p").await
    }

    pub async fn process_of(&self, project: &str) -> Crew {
        let store = EventStore::open_with(&self.url, self.clock.options()).await.unwrap();
        let life = LivenessLock::begin(&self.folder.path().join("workers")).unwrap();
        Crew::new(&store, project, Arc::new(life))
    }

    /// A process that sees the locks of another machine, not those of this one.
    pub async fn process_seeing(&self, other: &Self) -> Crew {
        let store = EventStore::open_with(&self.url, self.clock.options()).await.unwrap();
        let life = LivenessLock::begin(&other.folder.path().join("workers")).unwrap();
        Crew::new(&store, "p", Arc::new(life))
    }

    pub fn pass(&self, secs: u64) {
        self.clock.pass(Duration::from_secs(secs));
    }
}

/// A separate session for each name.
pub fn join(crew: &Crew, name: &str) -> Join {
    let profile = Profile {
        program: "claude-code".into(),
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: TREE.into(),
        process: Some(crew.process(name)),
        program_process: None,
    };
    Join { wish: Wish::of(name), session: format!("session of {name}"), profile }
}

pub async fn joined(crew: &Crew, name: &str) -> Caller {
    crew.join(join(crew, name)).await.unwrap().caller
}

pub fn request(caller: &Caller, paths: &[&str]) -> Request {
    Request {
        holder: caller.holder(),
        targets: paths.iter().map(|path| Target::written(path).unwrap()).collect(),
        is_exclusive: true,
        ttl: TTL,
        reason: "it is edited".into(),
        task: None,
        is_strict: false,
    }
}

/// The numbers of the leases, all granted.
pub async fn leased(crew: &Crew, caller: &Caller, paths: &[&str]) -> Vec<u64> {
    let granted = crew.reserve(caller, request(caller, paths), Turn::Behind).await.unwrap().unwrap();
    granted.leases.into_iter().map(|(number, _)| number).collect()
}

pub fn task(title: &str, files: &[&str]) -> NewTask {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    NewTask { key: title.to_owned(), title: title.to_owned(), files, ..NewTask::default() }
}

/// Claims `backlog/1` without leases.
pub async fn claimed(crew: &Crew, caller: &Caller) -> Result<Claimed, Refusal> {
    crew.claim(caller, "backlog/1", None).await
}

/// The end of a task.
pub fn done() -> Option<Ending> {
    Some(Ending::Completed { result: "done".to_owned(), run: None })
}

pub fn letter(from: &str, to: &str, subject: &str) -> Message {
    Message {
        from: Sender::Agent(from.to_owned()),
        to: BTreeSet::from([to.to_owned()]),
        subject: subject.to_owned(),
        body: String::new(),
        thread: None,
        importance: Importance::Normal,
        needs_ack: false,
    }
}

pub async fn recorded(crew: &Crew) -> Vec<Recorded> {
    let page = crew.store().read(&Query::all(), Range::default(), 1_000).await.unwrap();
    assert!(!page.more);
    page.events
}

/// The number of events of a type in the log.
pub async fn n_of(crew: &Crew, event_type: &str) -> usize {
    recorded(crew).await.iter().filter(|recorded| recorded.event_type == event_type).count()
}
