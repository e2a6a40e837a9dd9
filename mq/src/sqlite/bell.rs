//! The doorbell of a log: a small file next to it, written after each commit, so that other processes learn of it
//! before their next poll. It is only a hint: a process that misses it finds the commit by polling.
//!
//! Watching the `-wal` file instead would wake too early: it is written before the commit is visible.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::location::{FileId, Location, id_of, private};
use crate::position::Position;
use crate::tail::Tail;

/// Rung in place of a head: poll unconditionally.
pub(super) const LOOK_ANYWAY: Position = Position(i64::MAX);

/// A process's handle on the doorbell. The first watching process creates the file; without a file nobody watches.
pub(super) struct Bell {
    path: PathBuf,
    open: Option<Open>,
    /// True once a fault of it was reported.
    is_told: bool,
}

struct Open {
    file: File,
    /// `None` on systems without file ids.
    id: Option<FileId>,
    /// Set while this process follows the log.
    watcher: Option<RecommendedWatcher>,
}

impl Bell {
    /// The doorbell of a log in a file, opened if the file exists.
    pub(super) fn beside(location: &Location) -> Option<Self> {
        let mut bell = Self { path: location.beside("-bell")?, open: None, is_told: false };
        bell.keep(false);
        Some(bell)
    }

    /// [`Bell::ring`] for callers that ring only occasionally.
    pub(super) fn ring_beside(location: &Location, head: Position) {
        if let Some(mut bell) = Self::beside(location) {
            bell.ring(head);
        }
    }

    /// Tells all watchers the head of the log. Call it before the next commit is possible, so that the last write
    /// belongs to the last commit.
    pub(super) fn ring(&mut self, head: Position) {
        let Some(Open { file, .. }) = &mut self.open else { return };
        let rung = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&head.0.to_le_bytes()));
        if let Err(error) = rung {
            self.tell(&error);
            self.open = None;
        }
    }

    /// Maintains the bell: replaces its file if that is gone, and watches it while the log is followed.
    pub(super) fn attend(&mut self, tail: &Arc<Tail>) {
        let is_followed = tail.is_followed();
        self.keep(is_followed);
        let Some(open) = &mut self.open else { return };
        if !is_followed {
            open.watcher = None;
        } else if open.watcher.is_none() {
            match watch(&self.path, Arc::clone(tail)) {
                Ok(watcher) => open.watcher = Some(watcher),
                Err(error) => self.tell(&error),
            }
        }
    }

    /// Opens the file that currently has the name; creates one if `make` is set.
    fn keep(&mut self, make: bool) {
        let found = std::fs::metadata(&self.path).ok();
        if let (Some(found), Some(open)) = (&found, &self.open)
            && open.id == id_of(found)
        {
            return;
        }
        self.open = None;
        if found.is_none() && !make {
            return;
        }
        match open(&self.path) {
            Ok(open) => self.open = Some(open),
            Err(error) => self.tell(&error),
        }
    }

    /// Warns once that notifications between processes do not work.
    fn tell(&mut self, error: &dyn std::error::Error) {
        if !std::mem::replace(&mut self.is_told, true) {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the doorbell cannot be used; commits of others are found by looking");
        }
    }
}

fn open(path: &Path) -> std::io::Result<Open> {
    let file = private().read(true).create(true).open(path)?;
    let id = id_of(&file.metadata()?);
    Ok(Open { file, id, watcher: None })
}

/// Requests a poll if the bell shows a newer head than this process knows, and on any other change of the file.
fn watch(path: &Path, tail: Arc<Tail>) -> notify::Result<RecommendedWatcher> {
    let mut file = File::open(path).map_err(notify::Error::io)?;
    let mut told = move || {
        let mut head = [0; 8];
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut head)).map(|()| i64::from_le_bytes(head))
    };
    let handle = move |event: notify::Result<Event>| match event.map(|event| event.kind) {
        Ok(EventKind::Access(_)) => {}
        // The commits of this process ring too, and are already known.
        Ok(EventKind::Modify(ModifyKind::Data(_))) if told().is_ok_and(|head| head <= tail.head().0) => {}
        Ok(_) | Err(_) => tail.ask(),
    };
    let mut watcher = notify::recommended_watcher(handle)?;
    watcher.watch(path, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
