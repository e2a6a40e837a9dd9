//! The locations of the files that `init` edits: in the worktree, the shared part of the repository, and the home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crewlog_executors::crew::lacking::is_found;
use crewlog_executors::crew::worktree::Repository;
use crewlog_executors::private::user_folder;

use crate::cli::programs::Host;
use crate::context::Session;

/// The folders that hold configuration.
#[derive(Debug)]
pub struct Places {
    /// The root of the worktree; without a repository, the working directory.
    pub root: PathBuf,
    /// The root of the main worktree, which contains the log.
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

    /// The folder of git's hooks, as git itself finds it; `None` without git or a repository.
    pub fn git_hooks(&self) -> Option<PathBuf> {
        let mut git = Command::new("git");
        let ran = git.args(["rev-parse", "--git-path", "hooks"]).current_dir(&self.root).output().ok()?;
        let folder = String::from_utf8(ran.stdout).ok().filter(|_| ran.status.success())?;
        Some(self.root.join(folder.trim_end_matches('\n')))
    }

    /// The path of a configuration file: below `~` in the user's home, else in the worktree.
    pub fn configuration(&self, name: &str) -> PathBuf {
        match name.strip_prefix("~/") {
            Some(".codex/config.toml") => self.codex_config(),
            Some(name) => self.home.join(name),
            None => self.root.join(name),
        }
    }

    /// The user's own configuration of Codex.
    pub fn codex_config(&self) -> PathBuf {
        let named = std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        named.unwrap_or_else(|| self.home.join(".codex")).join("config.toml")
    }

    /// The plugin of opencode for all folders of the user.
    pub fn opencode_plugin(&self) -> PathBuf {
        let own = user_folder("XDG_CONFIG_HOME", ".config").unwrap_or_default();
        own.with_file_name("opencode").join("plugin").join("crewlog.js")
    }

    /// The folders that the user of Gemini CLI trusts.
    pub fn gemini_trust(&self) -> PathBuf {
        self.home.join(".gemini").join("trustedFolders.json")
    }

    /// True for a file in the repository. Other files are the user's own, including all in the home, and need consent.
    pub fn is_inside(&self, path: &Path) -> bool {
        let is_home = fs::canonicalize(&self.home).is_ok_and(|home| home == self.root);
        let is_shared = self.repository.as_ref().is_some_and(|repository| path.starts_with(&repository.common_dir));
        !is_home && (path.starts_with(&self.root) || is_shared)
    }

    /// True for a folder that others get with the repository.
    pub fn is_committed(&self, folder: &Path) -> bool {
        let is_of_git = self.repository.as_ref().is_some_and(|repository| folder.starts_with(&repository.common_dir));
        folder.starts_with(&self.root) && !is_of_git
    }

    /// True for a file that other worktrees share.
    pub fn is_shared(&self, path: &Path) -> bool {
        let common_dir = self.repository.iter().map(|repository| &repository.common_dir);
        let mut holding = common_dir.filter(|folder| path.starts_with(folder));
        holding.any(|folder| fs::read_dir(folder.join("worktrees")).is_ok_and(|mut others| others.next().is_some()))
    }

    /// The path for display, relative to the root of the worktree if it is below it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

impl Host {
    /// The named programs, or those found if none are named.
    pub fn chosen(named: &[Self], places: &Places) -> Vec<Self> {
        let is_chosen = |host: &Self| named.contains(host) || (named.is_empty() && host.is_found(places));
        Self::ALL.into_iter().filter(is_chosen).collect()
    }

    /// True if the program is on the `PATH`, or configured in this repository.
    fn is_found(self, places: &Places) -> bool {
        let name: &str = self.as_ref();
        let traces = [format!(".{name}"), format!("{name}.json"), format!("{name}.jsonc")];
        is_found(name, &places.root) || traces.iter().any(|trace| places.root.join(trace).exists())
    }
}
