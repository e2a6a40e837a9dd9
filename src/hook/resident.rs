//! What a resident process does for the hooks of its project, since its log is open and its handlers are warm: it answers
//! them over a Unix socket, and watches its worktree.
//!
//! A connection carries one JSON value each way; whoever sends one then closes its half.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LeaderLock;
use rustix::process::getuid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::dialect::{Call, Verdict};
use super::moments::{self, Origin};
use super::run::WAIT;
use super::watch::watch;
use crate::cli::Host;
use crate::crew::worktree::Worktree;
use crate::place::Place;

/// For how long a run of a host's hook need not be noted again.
const NOTED_FOR: Duration = Duration::from_secs(60);
/// The longest path of a socket that every system takes.
const PATH_BYTES_MAX: usize = 100;
/// The longest request or answer.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;
/// The most requests at a time.
const REQUESTS_MAX: usize = 64;

/// The resident side of hooks in this process, until it is ended.
pub struct Resident(JoinHandle<()>);

impl Resident {
    /// Answers the hooks of a project and watches a worktree. Of all processes with the same log one listens, and one
    /// watches each worktree; another takes over. A fault is a warning: hooks then open the log themselves.
    pub fn start(crew: &Arc<Crew>, place: &Place, worktree: Worktree) -> Self {
        let (socket, locks) = (socket(place, crew.project()), place.workers_folder());
        let listening = format!("hook-{}", id_of(crew.project()));
        let watching = format!("watch-{}", id_of(worktree.name()));
        let (answers, crew) = (Answers { crew: Arc::clone(crew), noted: Mutex::default() }, Arc::clone(crew));
        Self(tokio::spawn(async move {
            let answered = async {
                let _leader = LeaderLock::wait(&locks, &listening).await?;
                accept(Arc::new(answers), &Listener::at(socket)?).await
            };
            let watched = async {
                let _leader = LeaderLock::wait(&locks, &watching).await?;
                watch(&crew, &worktree).await
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
        // The end that was asked for is no fault.
        let _ = self.0.await;
    }
}

/// The socket of a log and a project: beside the log, or in the user's runtime folder if that path is too long.
pub fn socket(place: &Place, project: &str) -> PathBuf {
    let beside = place.beside(&format!("hook-{}.sock", &id_of(project)[..8]));
    match beside.as_os_str().len() <= PATH_BYTES_MAX {
        true => beside,
        false => runtime_folder().join(format!("{}.sock", id_of(&beside.to_string_lossy()))),
    }
}

fn id_of(name: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}

/// `$XDG_RUNTIME_DIR/crewlog`, or a folder in `/tmp`.
fn runtime_folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let is_short = |folder: &PathBuf| folder.as_os_str().len() + 50 <= PATH_BYTES_MAX;
    let in_tmp = || Path::new("/tmp").join(format!("crewlog-{}", getuid().as_raw()));
    runtime.map(|folder| folder.join("crewlog")).filter(is_short).unwrap_or_else(in_tmp)
}

/// A socket, which is removed at the end.
struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Only this user can connect: the folder may be open to others, the socket is not.
    fn at(path: PathBuf) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if folder == runtime_folder() {
            let found = folder.symlink_metadata()?;
            if !found.is_dir() || found.uid() != getuid().as_raw() || found.mode() & 0o077 != 0 {
                return Err(io::Error::other(format!("{} is open to other users", folder.display())));
            }
        }
        // Left by a process that was killed: the leader lock says that nobody listens.
        let _ = fs::remove_file(&path);
        let socket = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { socket, path })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The next process makes its own.
        let _ = fs::remove_file(&self.path);
    }
}

async fn accept(answers: Arc<Answers>, listener: &Listener) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let Ok((stream, _)) = listener.socket.accept().await else {
            // Too many open files: some will be closed.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Before the socket had its mode, others could connect.
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == getuid().as_raw());
        let Some(permit) = permits.clone().try_acquire_owned().ok().filter(|_| is_own) else { continue };
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            // A hook that is gone needs no answer.
            let _ = timeout(WAIT, answers.converse(stream)).await;
            drop(permit);
        });
    }
}

/// Answers hooks, and remembers whose runs were noted.
struct Answers {
    crew: Arc<Crew>,
    noted: Mutex<BTreeMap<Host, Instant>>,
}

impl Answers {
    async fn converse(&self, mut stream: UnixStream) -> io::Result<()> {
        let (origin, call): (Origin, Call) = receive(&mut stream).await?;
        if self.is_news(call.host) {
            // `doctor` reads it; that it cannot be kept is no reason to refuse.
            let _ = self.crew.hook_ran(call.host.program()).await;
        }
        let verdict = moments::answer(&self.crew, &origin, &call).await;
        send(&mut stream, &verdict.map_err(|refusal| refusal.to_string())).await
    }

    fn is_news(&self, host: Host) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = noted.get(&host).is_none_or(|at| at.elapsed() >= NOTED_FOR);
        if is_news {
            noted.insert(host, Instant::now());
        }
        is_news
    }
}

/// Asks the resident process. An error says that there is none, or that it cannot answer.
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
