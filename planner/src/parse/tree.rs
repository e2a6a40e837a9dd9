//! A plan file as read, with its warnings and errors, and its earlier form, a tree of groups and steps.

use serde::Serialize;
use strum::IntoStaticStr;

use super::blocks::Inline;
use crate::crew::paths::{ATTACHMENTS_MAX, attachments};
pub(super) use crate::format::{Format, ReadOptions};
use crate::lines::Lines;
use crate::plan::{Mark, Span, TaskId, TaskPlan};

/// Warnings kept for one file.
pub const WARNINGS_MAX: usize = 1_000;

/// Maximum length of a plan file, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A plan file as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedPlan {
    /// The rules it was read by.
    pub format: Format,
    /// The first heading of level 1.
    pub title: Option<String>,
    /// The tasks in the order of the file, numbered from 1.
    pub tasks: Vec<TaskPlan>,
    /// Explanations in the text that are not tasks.
    pub context: Vec<String>,
    /// Problems that do not prevent reading, in the order of the file.
    pub warnings: Vec<Diagnostic>,
    /// Parts of the file that belong to no task, in order.
    pub parts: Vec<(Span, Part)>,
    /// The code in tasks and their notes, in the order of the file.
    pub codes: Vec<CodeUse>,
    /// Numbered items and shell fences that are not steps because the file has boxes.
    pub lost: Vec<Span>,
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
    /// The nearest enclosing group that shows a state, as an index of this list.
    pub parent: Option<usize>,
    /// Marked as optional: its group does not wait for it.
    pub optional: bool,
}

/// The role of a part of a file that belongs to no task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    /// A heading, a rule or a comment.
    Heading,
    /// Text that the plan keeps as context.
    Context,
    /// Text that is omitted, with a warning.
    #[strum(serialize = "left out")]
    LeftOut,
}

/// A piece of code in a task, and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeUse {
    /// Its first byte.
    pub at: usize,
    /// The task.
    pub task: Option<TaskId>,
    /// Its command form, 1 to 4, if it runs.
    pub form: Option<u8>,
    /// The reason why it does not run, if it has a command form.
    pub withheld: Option<String>,
}

/// The groups and steps of a file, in order; a parent comes before its parts.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    pub title: Option<String>,
    /// Explanations in the text that are not steps.
    pub context: Vec<String>,
    pub parts: Vec<(Span, Part)>,
    /// Each with its node and its byte.
    pub codes: Vec<(usize, usize, Verdict)>,
    pub lost: Vec<Span>,
    pub warnings: Vec<Warning>,
    /// False for files of tools with only written dependencies.
    pub is_ordered: bool,
    /// Kiro's waves: the names of the steps that run in parallel, wave after wave.
    pub waves: Vec<Vec<Reference>>,
}

/// A step, or a group of steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// The task of the step. `id`, `label`, `depends_on`, `group` and `condition` are set later.
    pub task: TaskPlan,
    /// The id or number written in the file.
    pub name: Option<String>,
    /// Another name that a reference may use, for a heading: `Phase 2` of `## Phase 2: Build`.
    pub alias: Option<String>,
    pub parent: Option<usize>,
    pub is_group: bool,
    /// A group from a heading, whose number yields to that of a step.
    pub is_heading: bool,
    /// The byte at which it begins.
    pub at: usize,
    /// The bytes that show its state: the character in a box, or a JSON string with its quotes.
    pub state: Option<Span>,
    pub waits_for: Vec<Reference>,
    /// Runs in parallel with its neighbours, if they are marked too.
    pub beside: bool,
    /// The parts of this group run in parallel.
    pub parts_beside: bool,
    pub when: When,
    /// A question about the step before it, which waits for the answer.
    pub asked_before: bool,
}

/// The condition under which a step runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum When {
    #[default]
    Always,
    /// The previous step succeeded, or failed.
    Outcome { succeeded: bool },
    /// The condition of the previous step does not hold.
    Otherwise,
    /// A person confirms it.
    Asked { text: String, negated: bool },
    /// The named step failed.
    Failed(Reference),
}

/// A name in a written dependency, and its byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub name: String,
    pub at: usize,
}

/// Something odd: its byte, the problem and the remedy.
pub(super) type Warning = (usize, String, String);

/// The verdict on a piece of code in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the step's command, in one of the documented forms.
    Runs { command: String, form: u8 },
    /// It has a command form, but is withheld.
    Withheld { reason: String, help: &'static str },
    /// It could be a command, but has no command form.
    Mentioned,
    /// It is text.
    Text,
}

impl Tree {
    pub fn warn(&mut self, at: usize, message: impl Into<String>, help: impl Into<String>) {
        self.warnings.push((at, message.into(), help.into()));
    }
}

impl Node {
    /// Adds the attachments in a text, each once.
    pub fn attach(&mut self, inline: &Inline) {
        for one in attachments(&inline.text, &inline.links) {
            if self.task.attachments.len() < ATTACHMENTS_MAX && !self.task.attachments.contains(&one) {
                self.task.attachments.push(one);
            }
        }
    }
}

/// Warnings with their lines and columns, in the order of the text.
pub(super) fn diagnostics(mut warnings: Vec<Warning>, lines: &Lines<'_>) -> Vec<Diagnostic> {
    warnings.sort_by_key(|(at, ..)| *at);
    let told = warnings.into_iter().take(WARNINGS_MAX).map(|(at, message, help)| {
        let (line, column) = lines.place(at);
        Diagnostic { message, line, column, help: Some(help) }
    });
    told.collect()
}

/// A warning about a place in a plan file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The problem.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The remedy.
    pub help: Option<String>,
}
