//! What reading a text takes and gives, and its limits.

use serde::Serialize;

use super::error::Diagnostic;
use crate::plan::{Span, TaskPlan};

/// A text may have at most so many bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A plan may have at most so many tasks.
pub const TASKS_MAX: usize = 100_000;

/// So many warnings are kept of one text.
pub const WARNINGS_MAX: usize = 1_000;

/// How a text is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Drops the soft edges: what only the order of a list gives.
    pub relax_order: bool,
}

/// What a text means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParsedPlan {
    /// The first heading of level 1, if any.
    pub title: Option<String>,
    /// The tasks in the order of the text, numbered from 1.
    pub tasks: Vec<TaskPlan>,
    /// Prose that explains and is no task: overview, goals, requirements.
    pub context: Vec<String>,
    /// What was left out or guessed, in the order of the text.
    pub warnings: Vec<Diagnostic>,
    /// Parts of the text in no task: headings, context, comments, what is out of scope. In order, not overlapping.
    pub ignored: Vec<Span>,
}
