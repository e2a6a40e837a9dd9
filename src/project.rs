//! The project of a working directory, by which plans and their statistics belong together.
//!
//! `project` in `crewlog.toml` names it for clones on several machines. Otherwise it is a UUID, made at first use: in the
//! configuration of the repository's common directory, so that all worktrees share it, or in `.crewlog` without a repository.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crewlog_mq::new_event_id;

use crate::failure::Failure;
use crate::place::{FOLDER, Repository};

pub const PROJECT_BYTES_MAX: usize = 64;

const SECTION: &str = "crewlog";
const KEY: &str = "project";
/// The interval and number of waits for another process that writes git's configuration.
const LOCK_WAIT: Duration = Duration::from_millis(20);
const LOCK_TRIES_MAX: u32 = 250;

/// True of a text that can name a project in a tag.
pub fn is_project_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !text.is_empty() && text.len() <= PROJECT_BYTES_MAX && text.chars().all(is_plain)
}

/// The project's UUID, made if there is none. Processes that make one at the same time get the same.
pub fn project_id(repository: Option<&Repository>, folder: &Path) -> Result<String, Failure> {
    let path = repository.map_or_else(|| file_above(folder), |repository| repository.common_dir.join("config"));
    let found = if repository.is_some() { in_git_config(&path) } else { in_file(&path) };
    let hint = "name the project in crewlog.toml: project = \"NAME\"";
    let id = found.map_err(|error| {
        Failure::user(format!("the project's id in {} cannot be read or made: {error}", path.display())).hint(hint)
    })?;
    if is_project_name(&id) {
        return Ok(id);
    }
    Err(Failure::user(format!("{id:?} in {} is no project's id", path.display())).hint(hint))
}

/// The file of a folder that is in no repository: the nearest one above it, else a new one in its own `.crewlog`.
fn file_above(folder: &Path) -> PathBuf {
    let file = |folder: &Path| folder.join(FOLDER).join(KEY);
    folder.ancestors().map(file).find(|file| file.exists()).unwrap_or_else(|| file(folder))
}

fn in_file(path: &Path) -> io::Result<String> {
    let read = || fs::read_to_string(path).map(|text| text.trim().to_owned());
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Written aside and then linked: the first one wins, and nobody reads half a file.
    let id = new_event_id().to_string();
    let new = folder.join(format!("{id}.new"));
    fs::write(&new, &id)?;
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => read(),
    }
}

/// The id in git's configuration, written as git does: to a lock file that is renamed.
fn in_git_config(config: &Path) -> io::Result<String> {
    let config = fs::canonicalize(config)?;
    let lock = config.with_added_extension("lock");
    for _ in 0..LOCK_TRIES_MAX {
        if let Some(id) = id_in(&fs::read_to_string(&config)?) {
            return Ok(id);
        }
        match File::options().write(true).create_new(true).open(&lock) {
            Ok(file) => {
                let written = write_id(&config, file).and_then(|id| fs::rename(&lock, &config).map(|()| id));
                if written.is_err() {
                    fs::remove_file(&lock)?;
                }
                return written;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => std::thread::sleep(LOCK_WAIT),
            Err(error) => return Err(error),
        }
    }
    let reason = format!("{} is there: another program writes the file, or has crashed", lock.display());
    Err(io::Error::new(ErrorKind::WouldBlock, reason))
}

/// Writes the configuration to its lock file, with a new id unless another process has made one meanwhile.
fn write_id(config: &Path, mut lock: File) -> io::Result<String> {
    let text = fs::read_to_string(config)?;
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let (id, section) = id_in(&text).map(|id| (id, String::new())).unwrap_or_else(|| {
        let id = new_event_id().to_string();
        let section = format!("{line_end}[{SECTION}]\n\t{KEY} = {id}\n");
        (id, section)
    });
    lock.set_permissions(fs::metadata(config)?.permissions())?;
    write!(lock, "{text}{section}")?;
    lock.sync_all()?;
    Ok(id)
}

/// The last value of `crewlog.project`, as git reads it.
fn id_in(config: &str) -> Option<String> {
    let (mut is_section, mut id) = (false, None);
    for line in config.lines().map(str::trim) {
        let mut rest = line;
        if let Some((section, after)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            is_section = section.trim().eq_ignore_ascii_case(SECTION);
            rest = after;
        }
        if let Some((key, value)) = rest.split_once('=').filter(|_| is_section)
            && key.trim().eq_ignore_ascii_case(KEY)
        {
            let value = value.split([';', '#']).next().unwrap_or_default();
            id = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    id
}
