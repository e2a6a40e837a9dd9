//! Proof of death on one host: a worker and its children hold a lock file as long as they live.
//!
//! The kernel drops the lock with the last process that holds it. So once a file can be locked exclusively, the worker
//! and all its supervisors are gone, and its tasks may be claimed at once. This works only within one folder: the
//! folder has an id, and a worker's name begins with it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crewlog_mq::new_event_id;
use crewlog_planner::claim::Executor;

/// The age from which any process removes a dead worker's file.
const SWEEP_AGE: Duration = Duration::from_secs(3600);

/// How often a waiting process tries to take a leader lock.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// This worker's own liveness lock.
#[derive(Debug)]
pub struct LivenessLock {
    folder: PathBuf,
    folder_id: String,
    host: String,
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
        std::fs::create_dir_all(folder)?;
        sweep(folder);
        let folder_id = id_of(folder)?;
        let worker = format!("{folder_id}.{}", new_event_id().simple());
        let lock = File::options().create(true).truncate(false).write(true).open(lock_path(folder, &worker))?;
        lock.lock_shared()?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { folder: folder.to_owned(), folder_id, host, worker, lock })
    }

    /// The file that this worker's supervisors hold too.
    pub fn lock_path(&self) -> PathBuf {
        lock_path(&self.folder, &self.worker)
    }

    /// This worker, acting as `name`.
    pub fn executor(&self, name: &str) -> Executor {
        Executor { name: name.to_owned(), host: self.host.clone(), worker: self.worker.clone() }
    }

    /// True for this worker's own claims.
    pub fn is_own(&self, executor: &Executor) -> bool {
        executor.worker == self.worker
    }

    /// True if `executor` is proven to be gone, with all its children. False for another host, or for a worker whose
    /// liveness lock is in another folder, since nothing can be known there.
    pub fn is_dead(&self, executor: &Executor) -> bool {
        if !self.knows(executor) {
            return false;
        }
        let path = lock_path(&self.folder, &executor.worker);
        match File::options().write(true).open(&path).map(|file| file.try_lock()) {
            Ok(Ok(())) => {
                // The name is never used again.
                let _ = std::fs::remove_file(&path);
                true
            }
            Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) => false,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl LivenessLock {
    /// True if the liveness lock of another worker would be in this folder.
    fn knows(&self, executor: &Executor) -> bool {
        let folder_id = executor.worker.split_once('.').map(|(folder_id, _)| folder_id);
        executor.host == self.host && executor.worker != self.worker && folder_id == Some(&*self.folder_id)
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
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{name}.leader"));
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
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
    // Written under another name and then linked, so that no reader sees half a file.
    let id = new_event_id().simple().to_string();
    let new = folder.join(format!("{id}.id"));
    // Its end is random, its beginning is the time.
    std::fs::write(&new, &id[20..])?;
    let linked = std::fs::hard_link(&new, &path);
    std::fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => std::fs::read_to_string(&path),
    }
}

fn lock_path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.lock"))
}
