//! The outputs of runs, while they run and after: one bounded file for each, in a folder of this machine.
//!
//! A file has the first 8 MiB of an output and the last 8 MiB. The second half is a ring, and once that is full, the length of
//! the whole output follows it. Texts are written with their secrets replaced.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crewlog_mq::Timestamp;
use crewlog_planner::claim::OutputFile;
use crewlog_planner::plan::TaskId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::caller::host;
use crate::private::{PRIVATE, make_folder};
use crate::programs::{digest, hex};
use crate::seal::{HEAD_BYTES, OutputKeys, Seal};
use crate::transcript::shown;

/// The bytes kept of the start of an output, and of its end.
pub const HALF_BYTES: u64 = 8 << 20;
/// The bytes of all files together, unless the configuration sets another limit.
pub const RUNS_BYTES_MAX: u64 = 1 << 30;
/// How long a run may print nothing, unless the configuration sets another time.
pub const QUIET: Duration = Duration::from_secs(600);
/// The bytes of an output that are read for its last lines.
const LAST_BYTES_MAX: u64 = 64 << 10;
/// The space on the disk that outputs leave free, and the bytes after which they look.
const RESERVE: u64 = 32 << 20;
const SPACE_INTERVAL: u64 = 1 << 20;
/// The extension of encrypted files; that of others is `log`.
const SEALED: &str = "sealed";
/// A file that changed within this time may be of a running program.
const LIVE: Duration = Duration::from_secs(120);
/// The longest name of a plan that is the name of its folder too.
const NAME_BYTES_MAX: usize = 120;

/// The folder of the outputs of a log.
#[derive(Clone)]
pub struct OutputFiles {
    folder: PathBuf,
    bytes_max: u64,
    /// How long a run may print nothing before the inbox says so.
    pub quiet: Duration,
    keys: Option<Arc<dyn OutputKeys>>,
}

/// The file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTo {
    path: PathBuf,
    /// Of an encrypted plan.
    seal: Option<Seal>,
}

/// The end of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOutput {
    /// Its last lines.
    pub lines: String,
    /// When they came, by the clock of this machine.
    pub at: Timestamp,
}

impl fmt::Debug for OutputFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputFiles").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl OutputFiles {
    /// A folder, which need not exist, the bytes of all its files together, and the longest silence.
    #[must_use]
    pub fn new(folder: PathBuf, bytes_max: u64, quiet: Duration) -> Self {
        Self { folder, bytes_max, quiet, keys: None }
    }

    /// With the keys of encrypted plans.
    #[must_use]
    pub fn with_keys(self, keys: Option<Arc<dyn OutputKeys>>) -> Self {
        Self { keys, ..self }
    }

    /// The file for a run of a plan, which may be encrypted by a key of this name; none if that is not here.
    #[must_use]
    pub fn to(&self, plan: &str, task: TaskId, attempt: u32, (epoch, key): (u64, Option<&str>)) -> Option<OutputTo> {
        let seal = match key {
            Some(name) => Some(Seal::new(self.keys.as_deref()?, name)?),
            None => None,
        };
        let path = self.file(plan, task, attempt, epoch);
        let path = if seal.is_some() { path.with_extension(SEALED) } else { path };
        Some(OutputTo { path, seal })
    }

    /// The output in a file, up to now.
    ///
    /// # Errors
    /// It cannot be read, or its key is not here.
    pub fn open(&self, file: &Path) -> io::Result<Kept> {
        let is_sealed = file.extension().is_some_and(|extension| extension == SEALED);
        Kept::open(file, is_sealed.then(|| Seal::of(file, self.keys.as_deref())).transpose()?)
    }

    /// The last lines of the last run of an attempt here, as a person reads them.
    #[must_use]
    pub fn last_lines(&self, plan: &str, task: TaskId, attempt: u32, n_lines: usize) -> Option<LastOutput> {
        let kept = self.open(&self.last(plan, task, attempt)?).ok()?;
        let (text, changed_at) = (kept.last_lines(LAST_BYTES_MAX).ok()?, kept.changed_at().ok()?);
        let shown = text.lines().map(shown).filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
        let since = changed_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let lines = shown[shown.len().saturating_sub(n_lines)..].join("\n");
        Some(LastOutput { lines, at: Timestamp(0).plus(since) })
    }

    /// The file of a run.
    #[must_use]
    pub fn file(&self, plan: &str, task: TaskId, attempt: u32, epoch: u64) -> PathBuf {
        self.folder_of(plan).join(format!("{task}-{attempt}-{epoch}.log"))
    }

    /// The file of the last run of an attempt that printed something here.
    #[must_use]
    pub fn last(&self, plan: &str, task: TaskId, attempt: u32) -> Option<PathBuf> {
        self.all(plan, task, attempt).pop()
    }

    /// The files of the runs of an attempt, in their order: of one that was taken over there are several.
    #[must_use]
    pub fn all(&self, plan: &str, task: TaskId, attempt: u32) -> Vec<PathBuf> {
        let begin = format!("{task}-{attempt}-");
        let epoch = |path: &PathBuf| {
            let (epoch, extension) = path.file_name()?.to_str()?.strip_prefix(&begin)?.split_once('.')?;
            ["log", SEALED].contains(&extension).then(|| epoch.parse::<u64>().ok())?
        };
        let files = fs::read_dir(self.folder_of(plan)).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<_> = files.filter_map(|path| Some((epoch(&path)?, path))).collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }

    fn folder_of(&self, plan: &str) -> PathBuf {
        self.folder.join(folder_name(plan))
    }

    /// Removes files until those left have at most nine tenths of the limit, if they have more than that limit: first those of
    /// plans that are not `open`, the oldest first.
    ///
    /// # Errors
    /// Only those of `open`.
    pub async fn make_room<E>(&self, open: impl Future<Output = Result<Vec<String>, E>>) -> Result<(), E> {
        let mut files = self.files();
        let is_old = |file: &Found| file.changed_at.elapsed().is_ok_and(|age| age > LIVE);
        let mut n_bytes: u64 = files.iter().map(|file| file.n_bytes).sum();
        if n_bytes <= self.bytes_max {
            return Ok(());
        }
        let open: Vec<_> = open.await?.iter().map(|plan| folder_name(plan)).collect();
        files.retain(is_old);
        files.sort_by_key(|file| Reverse((open.iter().any(|open| **open == *file.folder), file.changed_at)));
        while n_bytes > self.bytes_max / 10 * 9
            && let Some(file) = files.pop()
        {
            n_bytes -= file.n_bytes;
            // Another process may have removed it.
            let _ = fs::remove_file(&file.path);
            let _ = file.path.parent().map(fs::remove_dir);
        }
        Ok(())
    }

    fn files(&self) -> Vec<Found> {
        let of_folder = |folder: fs::DirEntry| {
            let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
            files.filter_map(move |file| {
                let found = file.metadata().ok()?;
                let changed_at = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some(Found { folder: folder.file_name(), path: file.path(), n_bytes: found.len(), changed_at })
            })
        };
        fs::read_dir(&self.folder).into_iter().flatten().flatten().flat_map(of_folder).collect()
    }
}

/// A file of the folder.
struct Found {
    folder: OsString,
    path: PathBuf,
    n_bytes: u64,
    changed_at: SystemTime,
}

/// A plan's id, where that is the name of a folder.
fn folder_name(plan: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = plan.len() <= NAME_BYTES_MAX && !plan.starts_with('.') && plan.chars().all(is_plain);
    if is_name { plan.to_owned() } else { digest(&[plan.to_owned()]) }
}

/// The output of a run, as it is written. A file that cannot be written costs the output, never the result.
pub(crate) struct RunFile {
    to: OutputTo,
    file: Option<File>,
    n_bytes: u64,
}

impl RunFile {
    /// Made with the first byte.
    pub(crate) const fn new(to: OutputTo) -> Self {
        Self { to, file: None, n_bytes: 0 }
    }

    pub(crate) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.file.is_none() && !text.is_empty() {
            let OutputTo { path, seal } = &self.to;
            path.parent().map_or(Ok(()), make_folder)?;
            let file = File::options().write(true).create(true).truncate(true).mode(PRIVATE).open(path)?;
            seal.as_ref().map_or(Ok(()), |seal| file.write_all_at(&seal.head(), 0))?;
            self.file = Some(file);
        }
        let mut text = text.to_owned();
        if let Some(seal) = &self.to.seal {
            seal.apply(self.n_bytes, &mut text);
        }
        let start = head_bytes(self.to.seal.as_ref());
        let (mut rest, Some(file)) = (text.as_slice(), &self.file) else { return Ok(()) };
        while !rest.is_empty() {
            let (at, room) = place(self.n_bytes);
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            if self.n_bytes / SPACE_INTERVAL != (self.n_bytes + now.len() as u64) / SPACE_INTERVAL || self.n_bytes == 0
            {
                check_space(file)?;
            }
            file.write_all_at(now, start + at)?;
            self.n_bytes += now.len() as u64;
            rest = later;
        }
        if self.n_bytes > 2 * HALF_BYTES {
            file.write_all_at(&self.n_bytes.to_le_bytes(), start + 2 * HALF_BYTES)?;
        }
        Ok(())
    }
}

/// The log needs the last space of a disk more.
fn check_space(file: &File) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    let is_low = disk.f_bavail.saturating_mul(disk.f_frsize) < RESERVE;
    if is_low { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// The place of a byte of an output in its file, and the bytes from there to the next jump.
fn place(byte: u64) -> (u64, u64) {
    let at = if byte < HALF_BYTES { byte } else { HALF_BYTES + byte % HALF_BYTES };
    (at, HALF_BYTES - byte % HALF_BYTES)
}

fn head_bytes(seal: Option<&Seal>) -> u64 {
    seal.map_or(0, |_| HEAD_BYTES)
}

impl OutputTo {
    /// The output up to now.
    pub(crate) fn kept(&self) -> io::Result<Kept> {
        Kept::open(&self.path, self.seal.clone())
    }
}

/// The part of an output that a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The bytes of the whole output.
    pub n_bytes: u64,
    /// The file.
    pub file: PathBuf,
    seal: Option<Seal>,
}

impl Kept {
    fn open(file: &Path, seal: Option<Seal>) -> io::Result<Self> {
        let start = head_bytes(seal.as_ref());
        let length = fs::metadata(file)?.len().saturating_sub(start);
        let mut n_bytes = length.to_le_bytes();
        if length > 2 * HALF_BYTES {
            File::open(file)?.read_exact_at(&mut n_bytes, start + 2 * HALF_BYTES)?;
        }
        Ok(Self { n_bytes: u64::from_le_bytes(n_bytes), file: file.to_owned(), seal })
    }

    /// The first byte of the end, which is kept too.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.n_bytes.saturating_sub(HALF_BYTES).max(self.n_bytes.min(HALF_BYTES))
    }

    /// Writes the output from a byte on, with a line in place of the bytes that are not kept.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn copy(&self, from: u64, mut to: impl Write) -> io::Result<()> {
        let file = File::open(&self.file)?;
        let (mut byte, mut bytes) = (from, vec![0; 64 << 10]);
        while byte < self.n_bytes {
            if (HALF_BYTES..self.end()).contains(&byte) {
                writeln!(to, "\n... {} bytes dropped ...", self.end() - byte)?;
                byte = self.end();
            }
            let (at, room) = place(byte);
            let n_wanted = room.min(self.n_bytes - byte).min(bytes.len() as u64);
            let start = head_bytes(self.seal.as_ref());
            let n_read = file.read_at(&mut bytes[..usize::try_from(n_wanted).unwrap_or(usize::MAX)], start + at)?;
            if n_read == 0 {
                break;
            }
            if let Some(seal) = &self.seal {
                seal.apply(byte, &mut bytes[..n_read]);
            }
            to.write_all(&bytes[..n_read])?;
            byte += n_read as u64;
        }
        Ok(())
    }

    /// The last lines of an output, with at most this many bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn last_lines(&self, n_bytes_max: u64) -> io::Result<String> {
        let end = if self.end() > HALF_BYTES { self.end() } else { 0 };
        let (from, mut text) = (self.n_bytes.saturating_sub(n_bytes_max).max(end), Vec::new());
        self.copy(from, &mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let cut = if from > 0 { text.find('\n').map_or(0, |end| end + 1) } else { 0 };
        Ok(text[if cut < text.len() { cut } else { 0 }..].to_owned())
    }

    /// When the program last printed something.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn changed_at(&self) -> io::Result<SystemTime> {
        fs::metadata(&self.file)?.modified()
    }

    /// The record of it in the log: the hash of an encrypted output is that of the bytes in the file, which tells nothing of the text.
    pub(crate) fn record(&self) -> io::Result<OutputFile> {
        let mut hasher = Hashing(Sha256::new(), 0);
        match &self.seal {
            Some(_) => drop(io::copy(&mut File::open(&self.file)?, &mut hasher)?),
            None => self.copy(0, &mut hasher)?,
        }
        Ok(OutputFile { host: host(), n_bytes: hasher.1, sha256: hex(&hasher.0.finalize()) })
    }
}

struct Hashing(Sha256, u64);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key, of one name.
    struct Key;

    const NAME: &str = "0123456789abcdef0123456789abcdef";

    impl OutputKeys for Key {
        fn output_key(&self, name: &str) -> Option<[u8; 32]> {
            (name == NAME).then_some([7; 32])
        }
    }

    fn text_of(kept: &Kept) -> String {
        let mut text = Vec::new();
        kept.copy(0, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn plain(path: PathBuf) -> RunFile {
        RunFile::new(OutputTo { path, seal: None })
    }

    #[test]
    fn a_file_keeps_the_start_and_the_end_of_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let half = usize::try_from(HALF_BYTES).unwrap();
        let all: String = (0..3 * half / 16).map(|n| format!("{n:015}\n")).collect();
        let files = OutputFiles::new(folder.path().to_owned(), 0, QUIET).with_keys(Some(Arc::new(Key)));
        let lengths = [1, half - 1, half, half + 16, 2 * half - 1, 2 * half, 2 * half + 16, 3 * half];
        for (n_bytes, key) in lengths.into_iter().flat_map(|n_bytes| [(n_bytes, None), (n_bytes, Some(NAME))]) {
            let text = &all[..n_bytes];
            let to = files.to("p", TaskId(1), 1, (n_bytes as u64, key)).unwrap();
            let (path, mut file) = (to.path.clone(), RunFile::new(to.clone()));
            text.as_bytes().chunks(70_001).for_each(|piece| file.write(piece).unwrap());
            let kept = files.open(&path).unwrap();
            assert_eq!(kept, to.kept().unwrap());
            assert_eq!(kept.n_bytes, n_bytes as u64);
            let n_dropped = n_bytes.saturating_sub(2 * half);
            let expected = match n_dropped {
                0 => text.to_owned(),
                n => format!("{}\n... {n} bytes dropped ...\n{}", &text[..half], &text[half + n..]),
            };
            assert!(text_of(&kept) == expected, "{n_bytes}");
            let n_head = if key.is_some() { HEAD_BYTES } else { 0 };
            assert!(fs::metadata(&path).unwrap().len() <= n_head + 2 * HALF_BYTES + 8);
            let (record, stored) = (kept.record().unwrap(), fs::read(&path).unwrap());
            let is_hidden = !stored.windows(8).any(|piece| piece == &all.as_bytes()[..8]) || n_bytes < 8;
            assert_eq!(is_hidden, key.is_some() || n_bytes < 8, "{n_bytes}");
            match key {
                None => assert_eq!(record.n_bytes, expected.len() as u64),
                Some(_) => assert_eq!(record.sha256, hex(&Sha256::digest(&stored))),
            }
            let last = kept.last_lines(33).unwrap();
            assert!(text.ends_with(&last) && last.len() <= 33 && !last.is_empty(), "{n_bytes} {last:?}");
        }
        assert!(plain(folder.path().join("none")).write(b"").is_ok() && !folder.path().join("none").exists());
    }

    #[tokio::test]
    async fn room_is_made_of_the_oldest_outputs_of_ended_plans_first() {
        let folder = tempfile::tempdir().unwrap();
        let runs = OutputFiles::new(folder.path().join("runs"), 100, QUIET);
        let write = |plan: &str, task: u64, age: u64| {
            let path = runs.file(plan, TaskId(task), 1, 1);
            plain(path.clone()).write(&[b'x'; 30]).unwrap();
            let at = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        };
        let all = [("open", 1, 900), ("odd/plan", 1, 800), ("ended", 1, 500), ("ended", 2, 700)];
        all.iter().for_each(|(plan, task, age)| write(plan, *task, *age));
        let left = || {
            let is_left = |(plan, task, _): &&(&str, u64, u64)| runs.last(plan, TaskId(*task), 1).is_some();
            all.iter().filter(is_left).map(|(plan, task, _)| (*plan, *task)).collect::<Vec<_>>()
        };
        let open = || async { Ok::<_, ()>(vec!["open".to_owned()]) };
        runs.make_room(open()).await.unwrap();
        assert_eq!(left(), [("open", 1), ("ended", 1), ("ended", 2)], "the oldest of an ended plan is gone");
        runs.make_room(async { Err(()) }).await.expect("there is room");
        write("ended", 3, 1);
        write("ended", 4, 1);
        assert_eq!(runs.make_room(async { Err(()) }).await, Err(()));
        runs.make_room(open()).await.unwrap();
        assert_eq!(left(), [("open", 1)]);
    }

    #[test]
    fn the_last_run_of_an_attempt_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let runs = OutputFiles::new(folder.path().to_owned(), 0, QUIET);
        assert_eq!(runs.last("p", TaskId(1), 1), None);
        for (task, attempt, epoch) in [(1, 1, 2), (1, 1, 10), (1, 2, 11), (11, 1, 12)] {
            plain(runs.file("p", TaskId(task), attempt, epoch)).write(b"x").unwrap();
        }
        assert_eq!(runs.last("p", TaskId(1), 1), Some(runs.file("p", TaskId(1), 1, 10)));
    }

    #[test]
    fn an_encrypted_output_is_read_only_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let files = OutputFiles::new(folder.path().to_owned(), 0, QUIET);
        assert_eq!(files.to("p", TaskId(1), 1, (1, Some(NAME))), None, "without keys it is not written");
        let with_keys = files.clone().with_keys(Some(Arc::new(Key)));
        assert_eq!(with_keys.to("p", TaskId(1), 1, (1, Some("another key"))), None);
        let write = |epoch| {
            let to = with_keys.to("p", TaskId(1), 1, (epoch, Some(NAME))).unwrap();
            RunFile::new(to.clone()).write(b"the same text").unwrap();
            fs::read(to.path).unwrap()
        };
        assert_ne!(write(1)[HEAD_BYTES as usize..], write(2)[HEAD_BYTES as usize..], "each file has its own stream");
        let file = with_keys.last("p", TaskId(1), 1).unwrap();
        assert_eq!(text_of(&with_keys.open(&file).unwrap()), "the same text");
        // A plain output may begin with anything.
        let odd = "crewlog-sealed-1 and more than the head of an encrypted file, in clear text";
        let to = with_keys.to("p", TaskId(2), 1, (1, None)).unwrap();
        RunFile::new(to.clone()).write(odd.as_bytes()).unwrap();
        assert_eq!(text_of(&files.open(&to.path).unwrap()), odd);
        fs::write(folder.path().join("p/1-1-9.sealed"), "cut").unwrap();
        assert!(with_keys.open(&folder.path().join("p/1-1-9.sealed")).is_err());
        let refused = files.open(&file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(files.last_lines("p", TaskId(1), 1, 3), None);
        assert!(!format!("{:?}", with_keys.to("p", TaskId(1), 1, (3, Some(NAME)))).contains("7, 7"));
    }
}
