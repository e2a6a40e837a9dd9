//! The resident process's service for the hooks of its project, since its log is already open: answers them over a Unix
//! socket, and watches its worktree.
//!
//! A connection carries one JSON value in each direction; each sender then closes its half.

use std::fs::Permissions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use crewlog_executors::crew::Crew;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::liveness::LeaderLock;
use rustix::process::getuid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempPath;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::dialect::{Call, Verdict};
use super::identity::Origin;
use super::in_time::WAIT;
use super::moments;
use super::notes::Notes;
use super::watch::watch;
use crate::context::place::Place;

/// The longest path of a socket that every system accepts.
const PATH_BYTES_MAX: usize = 100;
/// The longest request or answer.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
const REQUESTS_MAX: usize = 64;

/// The service for hooks in this process, until it is ended.
pub struct Resident(JoinHandle<()>);

impl Resident {
    /// Answers the hooks of a project and watches a worktree. Of all processes with the same log one listens, and one
    /// watches each worktree; another takes over at its end. A fault is a warning: hooks then open the log themselves.
    pub fn start(crew: &Arc<Crew>, place: &Place, worktree: Worktree) -> Self {
        let (socket, locks) = (socket(place, crew.project()), place.workers_folder());
        let listening = format!("hook-{}", id_of(crew.project()));
        let watching = format!("watch-{}", id_of(&worktree.name));
        // The files of the log begin with its path; those of a log on a server are elsewhere.
        let log = place.file().unwrap_or_else(|| locks.clone());
        let (crew, notes) = (Arc::clone(crew), Notes::folder(place));
        Self(tokio::spawn(async move {
            let answered = async {
                let _leader = LeaderLock::wait(&locks, &listening).await?;
                let (listener, _path) = listen(socket)?;
                accept(&crew, &listener).await
            };
            let watched = async {
                let _leader = LeaderLock::wait(&locks, &watching).await?;
                watch(&crew, &worktree, &log, &notes).await
            };
            let (answered, watched): (io::Result<()>, io::Result<()>) = tokio::join!(answered, watched);
            if let Err(error) = answered {
                tracing::warn!(%error, "this process does not answer hooks: each opens the log itself");
            }
            if let Err(error) = watched {
                tracing::debug!(%error, "this process does not watch the worktree");
            }
        }))
    }

    /// Stops, and lets another process take over.
    pub async fn end(self) {
        self.0.abort();
        // It was aborted on purpose.
        let _ = self.0.await;
    }
}

/// The socket of a log and a project: next to the log, or in the user's runtime folder if that path is too long.
pub fn socket(place: &Place, project: &str) -> PathBuf {
    let beside = place.beside(&format!("hook-{}.sock", &id_of(project)[..8]));
    if beside.as_os_str().len() <= PATH_BYTES_MAX {
        return beside;
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let name = format!("crewlog-{}.sock", id_of(&beside.to_string_lossy()));
    runtime.unwrap_or_else(|| PathBuf::from("/tmp")).join(name)
}

fn id_of(name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}

/// Only this user can connect. The path is removed at the end, and the next process creates its own.
fn listen(socket: PathBuf) -> io::Result<(UnixListener, TempPath)> {
    // Left over from a killed process: the leader lock proves that nobody listens.
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
    Ok((listener, TempPath::try_from_path(socket)?))
}

async fn accept(crew: &Arc<Crew>, listener: &UnixListener) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files: some will be closed.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Before the socket's mode was set, others could connect.
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == getuid().as_raw());
        let Some(permit) = permits.clone().try_acquire_owned().ok().filter(|_| is_own) else { continue };
        let crew = Arc::clone(crew);
        tokio::spawn(async move {
            // A hook that is gone needs no answer.
            let _ = timeout(WAIT, converse(&crew, stream)).await;
            drop(permit);
        });
    }
}

async fn converse(crew: &Crew, mut stream: UnixStream) -> io::Result<()> {
    let (origin, call): (Origin, Call) = receive(&mut stream).await?;
    let verdict = moments::answer(crew, &origin, &call).await;
    send(&mut stream, &verdict.map_err(|refusal| refusal.to_string())).await
}

/// Asks the resident process. An error means that there is none, or that it cannot answer.
pub async fn ask(socket: &Path, origin: &Origin, call: &Call) -> io::Result<Verdict> {
    if socket.symlink_metadata()?.uid() != getuid().as_raw() {
        return Err(io::Error::other("the socket is another user's"));
    }
    let mut stream = UnixStream::connect(socket).await?;
    send(&mut stream, &(origin, call)).await?;
    receive::<Result<Verdict, String>>(&mut stream).await?.map_err(io::Error::other)
}

async fn send(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    stream.write_all(&serde_json::to_vec(value)?).await?;
    stream.shutdown().await
}

/// A longer value is cut, and then refused.
async fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<T> {
    let mut value = Vec::new();
    stream.take(MESSAGE_BYTES_MAX).read_to_end(&mut value).await?;
    Ok(serde_json::from_slice(&value)?)
}
