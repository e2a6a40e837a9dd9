//! Proof of death on one host: a worker and its children hold a lock file as long as they live.
//!
//! The kernel drops the lock with the last process that holds it. So once a file can be locked exclusively, the worker
//! and all its supervisors are gone, and its tasks may be claimed at once. This works only within one folder: the
//! folder has an id, and a worker's name begins with it.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crewlog_mq::new_event_id;
use crewlog_planner::claim::Executor;

use crate::private::{PRIVATE, make_folder, write_whole};

/// The age from which any process removes a dead worker's file.
const SWEEP_AGE: Duration = Duration::from_secs(3600);

/// How often a waiting process tries to take a leader lock.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// The life of a worker, by its lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It holds its lock.
    Live,
    /// It is proven to be gone, with all its children.
    Dead,
    /// It is on another host, or its lock is in another folder.
    Unknown,
}

/// The liveness locks in a folder. A reader needs no lock of its own.
#[derive(Debug, Clone)]
pub struct Locks {
    folder: PathBuf,
    /// Unset while no worker has used the folder.
    folder_id: Option<String>,
    host: String,
}

impl Locks {
    /// The locks in a folder, which may be missing.
    pub fn of(folder: &Path) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { folder: folder.to_owned(), folder_id: std::fs::read_to_string(folder.join("id")).ok(), host }
    }

    /// The life of a worker. It tries to take the worker's lock for a moment.
    pub fn life(&self, executor: &Executor) -> Life {
        let folder_id = executor.worker.split_once('.').map(|(folder_id, _)| folder_id);
        if executor.host != self.host || folder_id.is_none() || folder_id != self.folder_id.as_deref() {
            return Life::Unknown;
        }
        match File::options().write(true).open(lock_path(&self.folder, &executor.worker)).map(|file| file.try_lock()) {
            Ok(Ok(())) => Life::Dead,
            Ok(Err(TryLockError::WouldBlock)) => Life::Live,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Life::Dead,
            Ok(Err(TryLockError::Error(_))) | Err(_) => Life::Unknown,
        }
    }
}

/// This worker's own liveness lock.
#[derive(Debug)]
pub struct LivenessLock {
    locks: Locks,
    worker: String,
    /// Shared, because the worker's supervisors hold it too.
    lock: File,
}

impl LivenessLock {
    /// Gives this process a name among the workers of a log, and a locked file in `folder`, created if missing.
    ///
    /// # Errors
    /// If the folder or the file is not writable.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        make_folder(folder)?;
        sweep(folder);
        let folder_id = id_of(folder)?;
        let worker = format!("{folder_id}.{}", new_event_id().simple());
        let lock =
            File::options().create(true).truncate(false).write(true).mode(0o600).open(lock_path(folder, &worker))?;
        lock.lock_shared()?;
        Ok(Self { locks: Locks { folder_id: Some(folder_id), ..Locks::of(folder) }, worker, lock })
    }

    /// The locks of all workers that share the folder.
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// The file that this worker's supervisors hold too.
    pub fn lock_path(&self) -> PathBuf {
        lock_path(&self.locks.folder, &self.worker)
    }

    /// This worker, acting as `name`.
    pub fn executor(&self, name: &str) -> Executor {
        Executor { name: name.to_owned(), host: self.locks.host.clone(), worker: self.worker.clone() }
    }

    /// True for this worker's own claims.
    pub fn is_own(&self, executor: &Executor) -> bool {
        executor.worker == self.worker
    }

    /// True if another worker is proven to be gone, with all its children.
    pub fn is_dead(&self, executor: &Executor) -> bool {
        let is_dead = !self.is_own(executor) && self.locks.life(executor) == Life::Dead;
        if is_dead {
            // The name is never used again.
            let _ = std::fs::remove_file(lock_path(&self.locks.folder, &executor.worker));
        }
        is_dead
    }
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // Without the file the worker counts as dead, so the file stays while a supervisor still ends a command.
        if self.lock.unlock().is_ok() && self.lock.try_lock().is_ok() {
            let _ = std::fs::remove_file(self.lock_path());
        }
    }
}

/// Lock of the active host of a process on this machine. The kernel frees it when the last holder ends.
#[derive(Debug)]
pub struct LeaderLock {
    _lock: File,
}

impl LeaderLock {
    /// Takes the leader lock of the process `name`, whose file is in `folder`; `None` if another process holds it.
    ///
    /// # Errors
    /// If the folder or the file is not writable.
    pub fn take(folder: &Path, name: &str) -> io::Result<Option<Self>> {
        make_folder(folder)?;
        let path = folder.join(format!("{name}.leader"));
        let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock once no other process holds it.
    ///
    /// # Errors
    /// As for [`LeaderLock::take`].
    pub async fn wait(folder: &Path, name: &str) -> io::Result<Self> {
        loop {
            if let Some(lock) = Self::take(folder, name)? {
                return Ok(lock);
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
    }
}

/// Removes files of workers that died long ago. A new file may belong to a worker that is about to lock it.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let age = std::fs::metadata(&path).and_then(|found| found.modified()).map(|modified| modified.elapsed());
        // The file of a leader lock stays: another process may be about to lock it.
        let is_sign = path.extension().is_some_and(|extension| extension == "lock");
        let is_old = is_sign && matches!(age, Ok(Ok(age)) if age > SWEEP_AGE);
        if is_old && File::options().write(true).open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            // Another process may have removed it at the same moment.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// The id of a folder; the first caller creates it.
fn id_of(folder: &Path) -> io::Result<String> {
    let path = folder.join("id");
    if let Ok(id) = std::fs::read_to_string(&path) {
        return Ok(id);
    }
    // The end of an event id is random, its beginning is the time.
    write_whole(&path, &new_event_id().simple().to_string()[20..], PRIVATE, false)?;
    std::fs::read_to_string(&path)
}

fn lock_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.lock"))
}
