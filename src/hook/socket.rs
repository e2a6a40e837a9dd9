//! The Unix socket by which a resident process answers hooks: its log is open and its handlers are warm.
//!
//! A request is a length in 4 bytes, most significant first, a JSON object of that length, and the host's input. The answer
//! is a length and a JSON object. Of all processes with the same log and project one listens, which holds a leader lock.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Stream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crewlog_executors::crew::Crew;
use rustix::process::getuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::answer::Verdict;
use super::dialect::{INPUT_BYTES_MAX, parse};
use super::identity::Origin;
use super::moments;
use super::resident::lead;
use crate::place::Place;

/// How long an answer may take.
pub const WAIT: Duration = Duration::from_secs(2);
/// The version of the protocol.
const VERSION: u32 = 1;
/// The longest path of a socket that every system takes.
const PATH_BYTES_MAX: usize = 100;
/// The longest JSON object of a request or an answer.
const OBJECT_BYTES_MAX: usize = 64 * 1024;
/// The most requests at a time.
const REQUESTS_MAX: usize = 64;

/// The place of the socket of a log and a project.
#[derive(Debug, Clone)]
pub struct Socket {
    path: PathBuf,
    locks: PathBuf,
    name: String,
}

/// What comes before the host's input.
#[derive(Serialize, Deserialize)]
struct Request {
    version: u32,
    n_input_bytes: usize,
    origin: Origin,
}

/// What the resident process says.
#[derive(Serialize, Deserialize)]
enum Answer {
    Decided(Verdict),
    /// It cannot decide: its log failed, or it speaks another version.
    Failed(String),
}

impl Socket {
    /// Beside the log. A path that is too long for a socket moves to the user's runtime folder.
    pub fn of(place: &Place, project: &str) -> Self {
        let id = &Uuid::new_v5(&Uuid::NAMESPACE_URL, project.as_bytes()).simple().to_string()[..8];
        let name = format!("hook-{id}");
        let beside = place.beside(&format!("{name}.sock"));
        let path = match beside.as_os_str().len() <= PATH_BYTES_MAX {
            true => beside,
            false => {
                let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, beside.as_os_str().as_encoded_bytes());
                runtime_folder().join(format!("{}.sock", id.simple()))
            }
        };
        Self { path, locks: place.workers_folder(), name }
    }
}

/// `$XDG_RUNTIME_DIR/crewlog`, or a folder in `/tmp`.
fn runtime_folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let is_short = |folder: &PathBuf| folder.as_os_str().len() + 50 <= PATH_BYTES_MAX;
    let in_tmp = || Path::new("/tmp").join(format!("crewlog-{}", getuid().as_raw()));
    runtime.map(|folder| folder.join("crewlog")).filter(is_short).unwrap_or_else(in_tmp)
}

/// Answers the hooks of a project until `stop` is set. While another process listens, it waits to take over.
///
/// # Errors
/// When the folder of the leader locks or that of the socket cannot be written, or is another user's.
pub async fn serve(crew: Arc<Crew>, socket: Socket, stop: watch::Receiver<bool>) -> io::Result<()> {
    let Socket { path, locks, name } = socket;
    lead(&locks, &name, stop.clone(), || accept(crew, path, stop)).await
}

async fn accept(crew: Arc<Crew>, path: PathBuf, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let listener = listen(&path)?;
    let permits = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|is_set| *is_set) => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files: some will be closed.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == getuid().as_raw());
        let Some(permit) = permits.clone().try_acquire_owned().ok().filter(|_| is_own) else { continue };
        let crew = Arc::clone(&crew);
        tokio::spawn(async move {
            // A hook that is gone needs no answer.
            let _ = timeout(WAIT, converse(&crew, stream)).await;
            drop(permit);
        });
    }
    // The next process makes its own.
    let _ = fs::remove_file(&path);
    Ok(())
}

/// Only this user can connect: the folder may be open to others, the socket is not, and each peer is checked.
fn listen(path: &Path) -> io::Result<UnixListener> {
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
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn converse(crew: &Crew, mut stream: UnixStream) -> io::Result<()> {
    let answer = match read_request(&mut stream).await {
        Ok((origin, input)) => match parse(&input) {
            Ok(call) => match moments::answer(crew, &origin, &call).await {
                Ok(verdict) => Answer::Decided(verdict),
                Err(refusal) => Answer::Failed(refusal.to_string()),
            },
            Err(error) => Answer::Failed(error.to_string()),
        },
        Err(error) => Answer::Failed(error.to_string()),
    };
    let answer = serde_json::to_vec(&answer)?;
    stream.write_all(&length(&answer)?).await?;
    stream.write_all(&answer).await?;
    stream.shutdown().await
}

async fn read_request(stream: &mut UnixStream) -> io::Result<(Origin, Vec<u8>)> {
    let mut object = vec![0; bounded(stream.read_u32().await? as usize, OBJECT_BYTES_MAX)?];
    stream.read_exact(&mut object).await?;
    let Request { version, n_input_bytes, origin } = serde_json::from_slice(&object)?;
    if version != VERSION {
        return Err(io::Error::other(format!("the resident process speaks version {VERSION}, the hook {version}")));
    }
    let mut input = vec![0; bounded(n_input_bytes, INPUT_BYTES_MAX)?];
    stream.read_exact(&mut input).await?;
    Ok((origin, input))
}

/// Asks the resident process. An error says that there is none, or that it does not answer.
pub fn ask(socket: &Socket, origin: &Origin, input: &[u8]) -> io::Result<Verdict> {
    let found = socket.path.symlink_metadata()?;
    if found.uid() != getuid().as_raw() {
        return Err(io::Error::other("the socket is another user's"));
    }
    let request = Request { version: VERSION, n_input_bytes: input.len(), origin: origin.clone() };
    let request = serde_json::to_vec(&request)?;
    let request = [&length(&request)?[..], &request, input].concat();
    let (path, (sender, receiver)) = (socket.path.clone(), mpsc::channel());
    // A process that hangs accepts nothing, and then even connecting may wait.
    std::thread::spawn(move || sender.send(exchange(&path, &request)));
    match receiver.recv_timeout(WAIT).map_err(io::Error::other)?? {
        Answer::Decided(verdict) => Ok(verdict),
        Answer::Failed(error) => Err(io::Error::other(error)),
    }
}

fn exchange(path: &Path, request: &[u8]) -> io::Result<Answer> {
    let mut stream = Stream::connect(path)?;
    stream.write_all(request)?;
    let mut n_bytes = [0; 4];
    stream.read_exact(&mut n_bytes)?;
    let mut answer = vec![0; bounded(u32::from_be_bytes(n_bytes) as usize, OBJECT_BYTES_MAX)?];
    stream.read_exact(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

fn length(object: &[u8]) -> io::Result<[u8; 4]> {
    let n_bytes = bounded(object.len(), OBJECT_BYTES_MAX)?;
    Ok(u32::try_from(n_bytes).map_err(io::Error::other)?.to_be_bytes())
}

fn bounded(n_bytes: usize, max: usize) -> io::Result<usize> {
    if n_bytes <= max { Ok(n_bytes) } else { Err(io::Error::other(format!("{n_bytes} bytes, over {max}"))) }
}
