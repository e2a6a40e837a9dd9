//! Notices changes of leased files by other means than a tool that names them: compares the files that others lease before
//! and after each shell command.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Caller, Crew, Refusal};
use crewlog_planner::crew::leases::{By, ForeignEdit, LeaseCommand, LeaseHolder};
use crewlog_planner::crew::names::is_below;
use crewlog_planner::crew::target::Target;
use serde::{Deserialize, Serialize};

use super::calls::{ANY, Author, Calls, Scope, author, micros_now};
use super::dialect::{Call, Moment, ToolCall};
use super::edits::Hit;
use super::identity::{Hook, Origin};
use super::{facts, git};
use crate::context::place::Place;
use crate::ui::text::sha256;

/// The most files that are compared. A lease that matches more than are left is not.
const FILES_MAX: usize = 200;
/// The most candidates for a pattern.
const CANDIDATES_MAX: usize = 2_000;
/// The most bytes of a file whose content is compared, and of all together.
const CONTENT_BYTES_MAX: u64 = 64 * 1024;
const CONTENTS_BYTES_MAX: u64 = 1024 * 1024;
/// How long a list of leased files is current if the log is on a server, whose changes no file shows.
const SERVER_SECONDS: u64 = 10;
/// How long ago a file may have been deleted when a watcher misses it, in microseconds.
const DELETED_MICROS: u64 = 3_000_000;
/// The call of a line that says which changes are in the log.
const RECORDED: &str = "recorded";

/// The notes of hooks on this machine, and the state of the log that the hook began with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notes {
    folder: PathBuf,
    stamp: String,
}

/// The files of a worktree that agents lease, as of a state of the log.
#[derive(Serialize, Deserialize)]
struct Listed {
    stamp: String,
    files: Vec<LeasedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct LeasedFile {
    path: String,
    lease: u64,
    /// The session of its holder, which need not be compared.
    session: String,
}

/// The files of others before a call.
#[derive(Default, Serialize, Deserialize)]
pub struct Before {
    at: u64,
    files: Vec<(LeasedFile, Option<FileState>)>,
}

/// The state of a file; times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    inode: u64,
    size: u64,
    modified: i128,
    /// When the content or the attributes changed: no program can set it.
    changed: i128,
    /// A hash of the content of a small file.
    content: Option<u64>,
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
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let stamp = match place.file() {
            Some(_) => format!("{:?} {:?}", file(""), file("-wal")),
            None => (seconds / SERVER_SECONDS).to_string(),
        };
        Self { folder: Self::folder(place), stamp }
    }

    /// Takes in the beginning or the end of a tool call. True if the leased files were known, so that the log need not be
    /// read for this.
    pub fn take_in(&self, worktree: &Worktree, origin: &Origin, call: &Call) -> bool {
        let is_shell = call.tool.as_ref().is_some_and(|tool| tool.is_shell);
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
        let who = [Some(call.session.clone()), below, origin.agent.clone()].into_iter().flatten();
        let who = who.chain(origin.ancestors.iter().cloned()).collect();
        // A call that is not written can only make a change unexplained or unnoticed; the tool must run.
        let _ = self.make_folder().and_then(|()| self.calls(worktree).add(&key(call), is_over, Scope { who, paths }));
        if let (true, false, Some(listed)) = (is_shell, is_over, listed) {
            let _ = self.note(worktree, call, listed);
        }
        is_known
    }

    pub fn calls(&self, worktree: &Worktree) -> Calls {
        Calls::of(&self.folder, worktree)
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
        let listed: Listed = serde_json::from_slice(&text).ok()?;
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
    fn changed(&self, worktree: &Worktree, call: &Call) -> Before {
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
fn key(call: &Call) -> String {
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

fn hash(content: &[u8]) -> u64 {
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

/// The files of the exclusive leases in a worktree, with the sessions of the holders.
async fn leased(crew: &Crew, worktree: &Worktree) -> Result<Vec<LeasedFile>, Refusal> {
    let (leases, agents, now) = (crew.leases().await?, crew.agents().await?, crew.store().now());
    let here = leases.iter().filter(|(_, lease)| {
        lease.holder.worktree == worktree.name && lease.is_exclusive && now <= lease.until && !lease.target.is_thing()
    });
    let session = |holder: &LeaseHolder| agents.get(&holder.agent).map_or_else(String::new, |it| it.session.clone());
    let here: Vec<_> = here.map(|(lease, held)| (lease, held.target.clone(), session(&held.holder))).collect();
    drop((leases, agents));
    let is_one = |target: &Target| !target.is_pattern && !worktree.root.join(&target.path).is_dir();
    let (one, many): (Vec<_>, Vec<_>) = here.into_iter().partition(|(_, target, _)| is_one(target));
    let one = one.into_iter().map(|(lease, target, session)| LeasedFile { path: target.path, lease, session });
    let mut files: Vec<_> = one.take(FILES_MAX).collect();
    let all = if many.is_empty() { Vec::new() } else { git::files(&worktree.root).await.unwrap_or_default() };
    for (lease, target, session) in many {
        let stem = target.stem();
        let below = all.iter().filter(|path| stem.is_empty() || is_below(path, stem)).take(CANDIDATES_MAX);
        let is_in = |path: &&String| Target::literal(path).is_ok_and(|path| target.overlaps(&path));
        let found: Vec<_> = below.filter(is_in).take(FILES_MAX + 1).cloned().collect();
        if files.len() + found.len() <= FILES_MAX {
            files.extend(found.into_iter().map(|path| LeasedFile { path, lease, session: session.clone() }));
        }
    }
    Ok(files)
}

impl Hook<'_> {
    /// Lists the leased files of the worktree for this and later calls, and notes the states of those of others.
    pub async fn list_leased(&self) -> Result<(), Refusal> {
        let Some(notes) = &self.origin.notes else { return Ok(()) };
        let files = leased(self.crew, &self.here).await?;
        let listed = Listed { stamp: notes.stamp.clone(), files };
        let text = serde_json::to_vec(&listed).unwrap_or_default();
        // Without notes this call is not compared; the tool must run.
        let file = notes.file("leased", &self.here.name);
        let written = notes.make_folder().and_then(|()| fs::write(file, text));
        let _ = written.and_then(|()| notes.note(&self.here, self.call, listed.files));
        Ok(())
    }

    /// The files of others that changed during the call.
    pub fn changed(&self) -> Before {
        let notes = self.origin.notes.as_ref().filter(|_| matches!(self.call.moment, Moment::After(_)));
        notes.map_or_else(Before::default, |notes| notes.changed(&self.here, self.call))
    }

    /// Records changes that no call of their holders explains. Returns the leases on them, and sentences about changes that
    /// nobody can judge.
    pub async fn judge(&self, caller: &Caller, changed: Before) -> Result<(Vec<Hit>, Vec<String>), Refusal> {
        let (mut hits, mut unknown) = (Vec::new(), Vec::new());
        let Some(notes) = self.origin.notes.as_ref().filter(|_| !changed.is_empty()) else {
            return Ok((hits, unknown));
        };
        let calls = notes.calls(&self.here);
        let seen = calls.read();
        for (LeasedFile { path, lease, .. }, before) in changed.files {
            let Ok(target) = Target::literal(&path) else { continue };
            let (leases, agents, now) = (self.crew.leases().await?, self.crew.agents().await?, self.crew.store().now());
            let own = LeaseHolder { agent: caller.agent.clone(), worktree: self.here.name.clone() };
            let mut over = leases.in_the_way(&own, std::slice::from_ref(&target), true, false, now).into_iter();
            let Some(blocked) = over.find(|blocked| blocked.by == By::Lease(lease)) else { continue };
            let holder = blocked.holder.agent.clone();
            let author = author(&seen, (&holder, &agents), Some(&key(self.call)), &path, changed.at);
            let hit = Hit::of(&leases, blocked);
            drop((leases, agents));
            let is_only = match author {
                Author::Holder => continue,
                Author::Unknown => {
                    unknown.push(facts::unjudged(&path, &holder));
                    continue;
                }
                Author::Another { is_only } => is_only,
            };
            let is_at_risk = match before.and_then(|before| before.content) {
                Some(content) => git::committed(&self.here.root, &path).await.is_none_or(|head| hash(&head) != content),
                None => false,
            };
            let agent = is_only.then(|| caller.agent.clone());
            let edit = ForeignEdit { worktree: self.here.name.clone(), path: target, agent, lease, is_at_risk };
            self.crew.record_edit(|now| LeaseCommand::SeeForeignEdit { edit, now }).await?;
            // The watcher need not record it.
            let _ = calls.add(RECORDED, true, Scope { who: Vec::new(), paths: vec![path] });
            hits.push(hit);
        }
        Ok((hits, unknown))
    }
}

impl Before {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The lease that a change of a file violates which no hook has made: nobody's work explains it, and no hook has recorded it.
/// The outer value is `None` if somebody may have made it under a lease.
pub async fn violated(
    crew: &Crew,
    calls: &Calls,
    here: &Worktree,
    path: &Target,
) -> Result<Option<Option<u64>>, Refusal> {
    let (leases, agents, now) = (crew.leases().await?, crew.agents().await?, crew.store().now());
    let over = leases.overlapping(path, now).filter(|(_, lease)| lease.holder.worktree == here.name);
    let over: Vec<_> = over.map(|(number, lease)| (number, lease.is_exclusive, lease.holder.agent.clone())).collect();
    let (number, holder) = match &over[..] {
        [] => return Ok(Some(None)),
        [(number, true, holder)] => (*number, holder),
        _shared => return Ok(None),
    };
    let seen = calls.read();
    let changed = here
        .root
        .join(&path.path)
        .symlink_metadata()
        .map(|found| found.ctime() * 1_000_000 + found.ctime_nsec() / 1_000);
    // A deleted file has no time: it went since the last comparison.
    let from =
        changed.map_or_else(|_| micros_now().saturating_sub(DELETED_MICROS), |at| u64::try_from(at).unwrap_or(0));
    let is_recorded = seen.iter().any(|seen| seen.call == RECORDED && seen.may_have_written(&path.path, from));
    let author = author(&seen, (holder, &agents), None, &path.path, from);
    let is_violated = !is_recorded && matches!(author, Author::Another { .. });
    Ok(is_violated.then_some(Some(number)))
}
