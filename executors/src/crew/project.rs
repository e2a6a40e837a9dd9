//! The folder of a log in a repository, and the id of a project: a UUID, made at first use in a file of git's folder, or in
//! `.crewlog` without a repository.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crewlog_mq::{Position, new_event_id};

use super::worktree::{FOLDER, Repository, upwards};
use crate::private::{PRIVATE, make_folder, write_whole};

/// The file with the id.
const FILE: &str = "project";
/// The longest name of a project, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// True of a text that can name a project in a tag.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(is_plain)
}

/// The project's id, made if there is none. Processes that make one at the same time get the same.
///
/// # Errors
/// A file that cannot be read or made, or one with something else in it.
pub fn id(repository: Option<&Repository>, folder: &Path) -> Result<String, String> {
    let path = file(repository, folder);
    let id = repository.map_or(Ok(()), Repository::check).and_then(|()| in_file(&path));
    let id = id.map_err(|error| format!("the project's id in {} cannot be read or made: {error}", path.display()))?;
    if is_name(&id) { Ok(id) } else { Err(format!("invalid project id {id:?} in {}", path.display())) }
}

/// The file with the project's id, which may be missing. Without a repository it is the nearest one above, else one in the
/// folder's own `.crewlog`.
#[must_use]
pub fn file(repository: Option<&Repository>, folder: &Path) -> PathBuf {
    let below = |folder: &Path| folder.join(FOLDER).join(FILE);
    let above = || upwards(folder).map(below).find(|file| file.exists()).unwrap_or_else(|| below(folder));
    repository.map_or_else(above, |repository| repository.common_dir.join("crewlog").join(FILE))
}

fn in_file(path: &Path) -> io::Result<String> {
    let read = || fs::read_to_string(path).map(|text| text.trim().to_owned());
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    // A log's folder has the output of commands; git's folder is for all users of the repository.
    let mode = if folder.ends_with(FOLDER) { 0o700 } else { 0o777 };
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    // The first one wins.
    write_whole(path, &new_event_id().to_string(), 0o644, false)?;
    read()
}

/// Makes the folder of a log and hides it from git: an ignore rule, and a nested repository so that `git clean -fdx` spares it.
///
/// # Errors
/// It cannot be made, or the repository is none.
pub fn prepare(repository: Option<&Repository>, folder: &Path) -> io::Result<()> {
    repository.map_or(Ok(()), Repository::check)?;
    // Only for the user: what commands print is in the log.
    make_folder(folder)?;
    let Some(repository) = repository else { return Ok(()) };
    let nested = folder.join(".git");
    fs::create_dir_all(nested.join("objects"))?;
    fs::create_dir_all(nested.join("refs"))?;
    if !nested.join("HEAD").exists() {
        fs::write(nested.join("HEAD"), "ref: refs/heads/none\n")?;
    }
    let rule = format!("/{FOLDER}/");
    let exclude = repository.common_dir.join("info").join("exclude");
    let rules = fs::read_to_string(&exclude).unwrap_or_default();
    if rules.lines().any(|line| line.trim() == rule) {
        return Ok(());
    }
    fs::create_dir_all(repository.common_dir.join("info"))?;
    let mut file = File::options().create(true).append(true).open(&exclude)?;
    let line_end = if rules.is_empty() || rules.ends_with('\n') { "" } else { "\n" };
    writeln!(file, "{line_end}{rule}")
}

/// The position in a file up to which a log came by an import: decisions up to there are those of another log.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn imported(file: &Path) -> Result<Position, String> {
    match fs::read_to_string(file) {
        Ok(text) => text
            .trim()
            .parse()
            .map(Position)
            .map_err(|_| format!("{} holds no position: it is damaged", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Position(0)),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// Writes such a file.
///
/// # Errors
/// It cannot be written.
pub fn note_import(file: &Path, head: Position) -> Result<(), String> {
    let write = || {
        make_folder(file.parent().unwrap_or(Path::new(".")))?;
        write_whole(file, &format!("{}\n", head.0), PRIVATE, true)
    };
    write().map(drop).map_err(|error: io::Error| format!("{} cannot be written: {error}", file.display()))
}
