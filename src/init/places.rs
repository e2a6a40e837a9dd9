//! Where the files are that `init` edits: in the worktree, in the shared part of the repository, and in the home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::Host;
use crate::place::{FOLDER, Repository};
use crate::session::Session;

/// The folders that hold configuration.
#[derive(Debug)]
pub struct Places {
    /// The root of the worktree; without a repository the working directory.
    pub root: PathBuf,
    /// The root of the main worktree, where the log is.
    pub main_root: PathBuf,
    repository: Option<Repository>,
    home: PathBuf,
}

impl Places {
    pub fn of(session: &Session) -> Self {
        let repository = session.place.repository.clone();
        let root = repository.as_ref().map_or(&session.folder, |repository| &repository.worktree).clone();
        let main_root = repository.as_ref().map_or(&root, |repository| &repository.main_worktree).clone();
        let home = std::env::home_dir().unwrap_or_default();
        Self { root, main_root, repository, home }
    }

    /// The folder of the log and of what `init` remembers.
    pub fn log_folder(&self) -> PathBuf {
        self.main_root.join(FOLDER)
    }

    /// The folder of git's hooks, as git itself finds it; none without a repository.
    pub fn git_hooks(&self) -> Option<PathBuf> {
        let repository = self.repository.as_ref()?;
        let asked =
            Command::new("git").args(["rev-parse", "--git-path", "hooks"]).current_dir(&self.root).output().ok();
        let said = asked.filter(|asked| asked.status.success()).and_then(|asked| String::from_utf8(asked.stdout).ok());
        let folder = said.map(|said| PathBuf::from(said.trim_end_matches('\n')));
        Some(self.root.join(folder.unwrap_or_else(|| repository.common_dir.join("hooks"))))
    }

    /// The user's own configuration of Codex.
    pub fn codex_config(&self) -> PathBuf {
        let named = std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        named.unwrap_or_else(|| self.home.join(".codex")).join("config.toml")
    }

    /// The folders that the user of Gemini CLI trusts.
    pub fn gemini_trust(&self) -> PathBuf {
        self.home.join(".gemini").join("trustedFolders.json")
    }

    /// True of a file of the repository. Others are the user's own, and are written only with consent: in the home, all.
    pub fn is_inside(&self, path: &Path) -> bool {
        if fs::canonicalize(&self.home).is_ok_and(|home| home == self.root) {
            return false;
        }
        let common_dir = self.repository.as_ref().map(|repository| repository.common_dir.as_path());
        let folders = [Some(self.root.as_path()), common_dir].into_iter().flatten();
        folders.filter_map(|folder| fs::canonicalize(folder).ok()).any(|folder| path.starts_with(folder))
    }

    /// The path as it is shown: from the root of the worktree where it is below it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The path with its links followed. A file that is missing keeps its name below the nearest folder that is there.
pub fn followed(path: &Path) -> PathBuf {
    let (Err(_), Some(folder), Some(name)) = (fs::canonicalize(path), path.parent(), path.file_name()) else {
        return fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    };
    match fs::read_link(path) {
        // A link to a file that is missing.
        Ok(target) => followed(folder).join(target),
        Err(_) => followed(folder).join(name),
    }
}

impl Host {
    /// The program's file on the `PATH`.
    pub fn on_path(self) -> Option<PathBuf> {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(self.as_ref())).find(|file| is_executable(file))
    }

    /// True where the program is installed, or configured in this repository.
    pub fn is_found(self, places: &Places) -> bool {
        let traces: &[&str] = match self {
            Self::Claude => &[".claude"],
            Self::Codex => &[".codex"],
            Self::Gemini => &[".gemini"],
            Self::Opencode => &[".opencode", "opencode.json", "opencode.jsonc"],
        };
        self.on_path().is_some() || traces.iter().any(|trace| places.root.join(trace).exists())
    }
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
