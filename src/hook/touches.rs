//! The files that one tool call changes.

use std::path::PathBuf;

use crewlog_planner::crew::CrewError;
use serde::{Deserialize, Serialize};

/// The most paths listed for one tool call.
pub const TOUCHES_MAX: usize = 200;

/// The most bytes of a command that are parsed.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// How deeply subshells and substitutions may be nested. Anything deeper is not read.
pub const DEPTH_MAX: usize = 32;

/// The changes named in one tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edits {
    /// In order of appearance, at most [`TOUCHES_MAX`].
    pub touches: Vec<Touch>,
    /// The folders in which `git commit` runs, resolved like the paths of touches; empty for the working directory.
    pub commits: Vec<PathBuf>,
    /// Commands of git that change whatever differs.
    pub trees: Vec<Tree>,
    /// True if there are more changes beyond a limit.
    pub is_cut: bool,
}

/// A command of git that changes whatever differs, in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    pub folder: PathBuf,
    pub extent: Extent,
    /// If this path exists, the command changes only that.
    pub unless: Option<PathBuf>,
}

/// How far such a command reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    Worktree,
    /// All worktrees of the repository, which have one list of stashes.
    Repository,
}

/// A path whose file, or folder with all below it, changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// As written, below the folder of the call or of a `cd`: absolute, or relative to the working directory.
    pub path: PathBuf,
    /// True when `path` is a glob that a shell or git expands.
    pub is_pattern: bool,
    /// The path that changes instead if `path` is a folder: `mv A B` writes `B`, or `B/A`.
    pub in_folder: Option<PathBuf>,
}

impl Touch {
    pub fn of(path: PathBuf) -> Self {
        Self { path, is_pattern: false, in_folder: None }
    }
}

impl Edits {
    /// Fails if some changes are unknown.
    pub fn check(&self) -> Result<(), CrewError> {
        let says = format!(
            "the call is past a limit: {TOUCHES_MAX} paths, or a command of {} KiB with {} nested subshells",
            COMMAND_BYTES_MAX / 1024,
            DEPTH_MAX
        );
        if self.is_cut { Err(CrewError::Invalid(says)) } else { Ok(()) }
    }

    pub fn add(&mut self, touch: Touch) {
        if self.touches.len() < TOUCHES_MAX {
            self.touches.push(touch);
        } else {
            self.is_cut = true;
        }
    }

    pub fn add_files<P: Into<PathBuf>>(&mut self, paths: impl IntoIterator<Item = P>) {
        paths.into_iter().for_each(|path| self.add(Touch::of(path.into())));
    }
}
