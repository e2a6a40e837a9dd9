//! The hooks of agent programs and of git: reads what a tool call changes, asks the log or the process that has it open,
//! and answers in the form that the program understands.
//!
//! `dialect`, `patch`, `shell` and `answer` are pure; they open no file, no log and no connection.

mod answer;
mod dialect;
mod edits;
mod facts;
mod git;
mod git_hooks;
mod identity;
mod moments;
mod patch;
pub mod process;
mod resident;
mod run;
mod shell;
mod socket;
#[cfg(test)]
mod tests;
mod watch;

use std::path::{Path, PathBuf};

pub use self::resident::Resident;
pub use self::run::run;

/// The most paths that are listed of one tool call.
pub const TOUCHES_MAX: usize = 200;

/// An agent program that runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode, through the plugin that crewlog generates.
    Opencode,
}

impl Host {
    /// The name of the program in profiles of agents.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini-cli",
            Self::Opencode => "opencode",
        }
    }
}

/// When in a session a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// A session begins or goes on.
    SessionStart {
        /// `startup`, `resume`, or another word of the host; empty when it gives none.
        source: String,
    },
    /// A person or script gave a prompt.
    Prompt,
    /// A tool call that has not run yet.
    PreTool,
    /// A tool call that has run.
    PostTool,
    /// The agent is about to end its turn.
    Stop,
    /// The session has ended.
    SessionEnd,
    /// Any other event: it changes nothing and gets no answer.
    Other,
}

/// What a tool call will change, or has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// No file that can be seen in the input.
    Nothing,
    /// Paths and commits.
    Edits(Edits),
    /// A call to crewlog's own MCP server, by the tool's name there: `reserve_paths`.
    OwnTool(String),
}

/// The changes named in one tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    /// In order of appearance, at most [`TOUCHES_MAX`].
    pub touches: Vec<Touch>,
    /// The folders in which `git commit` runs, resolved like the paths of touches; empty for the working directory.
    pub commits: Vec<PathBuf>,
    /// True when a limit hides further changes.
    pub is_truncated: bool,
}

/// One path that changes.
///
/// `mv A B` and `cp A B` do not say whether B is a folder, so both `B` and `B/A` are listed: ignore the first where B
/// is a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// As written, below the folder of the call or of a `cd`: absolute, or relative to the working directory.
    pub path: PathBuf,
    /// How it changes.
    pub kind: TouchKind,
    /// True when `path` is a glob that a shell or git expands.
    pub is_pattern: bool,
}

/// How a path changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    /// The file gets new content.
    Write,
    /// The path and all below it is removed.
    Delete,
    /// The path and all below it goes elsewhere.
    MoveFrom,
    /// The path is the place of a file or folder that was moved or copied.
    MoveTo,
}

impl Edits {
    fn add(&mut self, path: PathBuf, kind: TouchKind, is_pattern: bool) {
        if self.touches.len() < TOUCHES_MAX {
            self.touches.push(Touch { path, kind, is_pattern });
        } else {
            self.is_truncated = true;
        }
    }

    fn add_literal(&mut self, folder: &Path, path: &str, kind: TouchKind) {
        self.add(folder.join(path), kind, false);
    }
}
