//! Reads plan files and writes states back into them, as `docs/plan-format.md` describes.

mod error;
mod json;
mod ticks;
mod tree;

pub use error::{Diagnostic, ParseError};
pub use ticks::{Written, write_states};
pub use tree::WARNINGS_MAX;

use serde::{Deserialize, Serialize};

use crate::plan::{Mark, Span, TaskId, TaskPlan};

/// Maximum length of a plan file, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of tasks in a plan.
pub const TASKS_MAX: usize = 100_000;

/// The tool whose rules a file is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain Markdown.
    #[default]
    Markdown,
    /// `tasks.md` of spec-kit.
    SpecKit,
    /// `tasks.md` of OpenSpec.
    OpenSpec,
    /// `tasks.md` of Kiro and cc-sdd.
    Kiro,
    /// `tasks.json` of Task Master.
    TaskMaster,
    /// `issues.jsonl` of beads.
    Beads,
}

/// How to read a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The rules to read it by.
    pub format: Format,
    /// Drops the order in which the steps are written; only written dependencies remain.
    pub parallel: bool,
    /// The tag of a Task Master file to read; `master`, else the first, when unset.
    pub tag: Option<&'a str>,
}

/// A plan file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPlan {
    /// The rules it was read by.
    pub format: Format,
    /// The first heading of level 1.
    pub title: Option<String>,
    /// The tasks in the order of the file, numbered from 1.
    pub tasks: Vec<TaskPlan>,
    /// Text that explains the plan and is no task.
    pub context: Vec<String>,
    /// Problems that do not prevent reading, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    /// Parts of the file in no task, in order and not overlapping.
    pub ignored: Vec<Span>,
    /// Every place in the file that shows the state of a task or a group, in the order of the file.
    pub marks: Vec<MarkAt>,
}

/// A place in the file that shows a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkAt {
    /// The character in a box, or a JSON string with its quotes.
    pub span: Span,
    /// The state shown.
    pub mark: Mark,
    /// The task; unset for a group.
    pub of: Option<TaskId>,
    /// The nearest group around it that shows a state, as an index of this list.
    pub parent: Option<usize>,
    /// Marked as optional: its group does not wait for it.
    pub optional: bool,
}
