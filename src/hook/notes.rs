//! The notes of hooks about leased files: which there are, and their states before a shell command.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crewlog_executors::crew::worktree::Worktree;
use serde::{Deserialize, Serialize};

use super::calls::{ANY, CallLog, CallScope, micros_now};
use super::dialect::{Call, Moment, ToolCall};
use crate::context::place::Place;
use crate::ui::text::sha256;

/// The most bytes of a file whose content is compared, and of all together.
const CONTENT_BYTES_MAX: u64 = 64 * 1024;
const CONTENTS_BYTES_MAX: u64 = 1024 * 1024;
/// How long a list of leased files is current if the log is on a server, whose changes no file shows, in microseconds.
const SERVER_MICROS: u64 = 10_000_000;

/// The notes of hooks on this machine, and the state of the log that the hook began with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notes {
    folder: PathBuf,
    stamp: String,
}

/// The files of a worktree that agents lease, as of a state of the log.
#[derive(Serialize, Deserialize)]
struct LeasedList {
    stamp: String,
    files: Vec<LeasedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeasedFile {
    pub path: String,
    pub lease: u64,
    /// The session of its holder, which need not be compared.
    pub session: String,
}

/// The files of others before a call.
#[derive(Default, Serialize, Deserialize)]
pub struct Before {
    pub at: u64,
    pub files: Vec<(LeasedFile, Option<FileState>)>,
}

/// The state of a file; times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    inode: u64,
    size: u64,
    modified: i128,
    /// When the content or the attributes changed: no program can set it.
    changed: i128,
    /// A hash of the content of a small file.
    pub content: Option<u64>,
}

impl Notes {
    /// The folder of the notes.
    pub fn folder(place: &Place) -> PathBuf {
        place.beside("hooks")
    }

    pub fn of(place: &Place) -> Self {
        let file = |end: &str| {
            let mut path = place.file()?.into_os_string();
            path.push(end);
            let found = fs::metadata(path).ok().filter(|found| found.len() > 0)?;
            Some(format!("{}:{}.{}", found.len(), found.mtime(), found.mtime_nsec()))
        };
        let stamp = match place.file() {
            Some(_) => format!("{:?} {:?}", file(""), file("-wal")),
            None => (micros_now() / SERVER_MICROS).to_string(),
        };
        Self { folder: Self::folder(place), stamp }
    }

    /// Takes in the beginning or the end of a tool call, with the name that the launcher gave and the processes above. True if the leased files were known, so that the log need not be
    /// read for this.
    pub fn take_in(&self, worktree: &Worktree, call: &Call, launched: (Option<&str>, &[String])) -> bool {
        let is_shell = call.is_shell();
        let (is_over, edits) = match &call.moment {
            Moment::Before(edits) => (false, Some(edits)),
            Moment::After(edits) => (true, Some(edits)),
            Moment::Start | Moment::Prompt => (true, None),
            Moment::Other if is_shell => (false, None),
            _others => return true,
        };
        let listed = self.listed(worktree);
        let is_known = !is_shell || is_over || listed.is_some();
        // Nobody leases a file here.
        if is_shell && !is_over && listed.as_ref().is_some_and(Vec::is_empty) {
            return true;
        }
        let named = edits.into_iter().flat_map(|edits| &edits.touches);
        let named = named.filter_map(|touch| worktree.below_root(&call.cwd, &touch.path.to_string_lossy()).ok());
        let paths = if is_shell { vec![ANY.to_owned()] } else { named.collect() };
        let below = call.agent.as_ref().map(|sub| format!("{}/{}", call.session, sub.id));
        let who = [Some(call.session.clone()), below, launched.0.map(str::to_owned)].into_iter().flatten();
        let who = who.chain(launched.1.iter().cloned()).collect();
        // A call that is not written can only make a change unexplained or unnoticed; the tool must run.
        let _ =
            self.make_folder().and_then(|()| self.calls(worktree).add(&key(call), is_over, CallScope { who, paths }));
        if let (true, false, Some(listed)) = (is_shell, is_over, listed) {
            let _ = self.note(worktree, call, listed);
        }
        is_known
    }

    /// Writes the list of the leased files, and notes the states of those of others before a call.
    pub fn list(&self, worktree: &Worktree, call: &Call, files: Vec<LeasedFile>) -> io::Result<()> {
        let listed = LeasedList { stamp: self.stamp.clone(), files };
        self.make_folder()?;
        fs::write(self.file("leased", &worktree.name), serde_json::to_vec(&listed)?)?;
        self.note(worktree, call, listed.files)
    }

    pub fn calls(&self, worktree: &Worktree) -> CallLog {
        CallLog::of(&self.folder, worktree)
    }

    fn make_folder(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn file(&self, kind: &str, of: &str) -> PathBuf {
        self.folder.join(format!("{kind}-{}", &sha256(of)[..32]))
    }

    /// The leased files, if the log has not changed since they were listed.
    fn listed(&self, worktree: &Worktree) -> Option<Vec<LeasedFile>> {
        let text = fs::read(self.file("leased", &worktree.name)).ok()?;
        let listed: LeasedList = serde_json::from_slice(&text).ok()?;
        (listed.stamp == self.stamp).then_some(listed.files)
    }

    /// Notes the states of the files of others, before a call.
    fn note(&self, worktree: &Worktree, call: &Call, mut files: Vec<LeasedFile>) -> io::Result<()> {
        files.retain(|file| file.session != call.session);
        if files.is_empty() {
            return Ok(());
        }
        let mut left = CONTENTS_BYTES_MAX;
        let at = micros_now();
        let state = |file: LeasedFile| {
            let found = state(&worktree.root.join(&file.path), &mut left);
            (file, found)
        };
        let before = Before { at, files: files.into_iter().map(state).collect() };
        fs::write(self.file("before", &key(call)), serde_json::to_vec(&before)?)
    }

    /// The files of others that changed during a call, with their states before it. The notes of the call end.
    pub fn changed(&self, worktree: &Worktree, call: &Call) -> Before {
        let file = self.file("before", &key(call));
        let Ok(text) = fs::read(&file) else { return Before::default() };
        let _ = fs::remove_file(file);
        let mut before: Before = serde_json::from_slice(&text).unwrap_or_default();
        before.files.retain(|(file, before)| {
            let after = state(&worktree.root.join(&file.path), &mut CONTENT_BYTES_MAX.clone());
            differs(before.as_ref(), after.as_ref())
        });
        before
    }
}

/// A call, the same before and after it.
pub fn key(call: &Call) -> String {
    let sub = call.agent.as_ref().map(|sub| sub.id.as_str()).unwrap_or_default();
    let digest = call.tool.as_ref().map(|ToolCall { digest, .. }| digest.as_str()).unwrap_or_default();
    format!("{}/{sub}/{digest}", call.session)
}

fn state(path: &Path, left: &mut u64) -> Option<FileState> {
    let found = path.symlink_metadata().ok()?;
    let is_small = found.is_file() && found.len() <= CONTENT_BYTES_MAX.min(*left);
    let content = is_small.then(|| fs::read(path).ok().map(|content| hash(&content))).flatten();
    *left -= if is_small { found.len() } else { 0 };
    let nanos = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some(FileState {
        inode: found.ino(),
        size: found.len(),
        modified: nanos(found.mtime(), found.mtime_nsec()),
        changed: nanos(found.ctime(), found.ctime_nsec()),
        content,
    })
}

pub fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// True if the content may differ. A file that was written again with its content is the same.
fn differs(before: Option<&FileState>, after: Option<&FileState>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_some() != after.is_some() };
    match (before.content, after.content) {
        _same if before == after => false,
        (Some(before), Some(after)) => before != after,
        _large => (before.inode, before.size, before.modified) != (after.inode, after.size, after.modified),
    }
}

impl Before {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
