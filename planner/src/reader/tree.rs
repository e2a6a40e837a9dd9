//! A plan file between reading and ordering: its groups and steps as a tree, with names and dependencies as written.

use super::error::Diagnostic;
use crate::plan::{Span, TaskPlan};

/// Warnings kept for one file.
pub const WARNINGS_MAX: usize = 1_000;

/// The groups and steps of a file, in its order; a parent comes before its parts.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    pub title: Option<String>,
    /// Text that explains the plan and is no step.
    pub context: Vec<String>,
    /// Bytes that belong to no step: headings, context, sections left out. In order, not overlapping.
    pub ignored: Vec<Span>,
    pub warnings: Vec<Warning>,
    /// False for the files of tools that know only written dependencies.
    pub is_ordered: bool,
    /// Kiro's waves: the names of the steps that run side by side, wave after wave.
    pub waves: Vec<Vec<Reference>>,
}

/// A step, or a group of steps.
#[derive(Debug)]
pub(super) struct Node {
    /// What is known of the step. `id`, `label`, `depends_on`, `group` and `condition` are set later.
    pub task: TaskPlan,
    /// The id or number written in the file.
    pub name: Option<String>,
    /// Another name that a reference may use, for a heading: `Phase 2` of `## Phase 2: Build`.
    pub alias: Option<String>,
    pub parent: Option<usize>,
    pub is_group: bool,
    /// The byte at which it begins.
    pub at: usize,
    /// The bytes that show its state: the character in a box, or a JSON string with its quotes.
    pub state: Option<Span>,
    pub waits_for: Vec<Reference>,
    /// Runs beside its neighbours that say so too.
    pub beside: bool,
    /// The parts of this group run side by side.
    pub parts_beside: bool,
    pub when: When,
    /// A question that is asked before the step in front of it.
    pub asked_before: bool,
}

/// When a step runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum When {
    #[default]
    Always,
    /// The step before it succeeded, or failed.
    Outcome { succeeded: bool },
    /// The condition of the step before it does not hold.
    Otherwise,
    /// A person says so.
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

/// Something odd at a byte.
#[derive(Debug)]
pub(super) struct Warning {
    pub at: usize,
    pub message: String,
    pub help: String,
}

impl Node {
    pub fn new(task: TaskPlan, at: usize) -> Self {
        Self {
            task,
            name: None,
            alias: None,
            parent: None,
            is_group: false,
            at,
            state: None,
            waits_for: Vec::new(),
            beside: false,
            parts_beside: false,
            when: When::Always,
            asked_before: false,
        }
    }
}

impl Tree {
    pub fn warn(&mut self, at: usize, message: impl Into<String>, help: impl Into<String>) {
        self.warnings.push(Warning { at, message: message.into(), help: help.into() });
    }

    /// The warnings with their lines and columns, in the order of the text.
    pub fn diagnostics(warnings: Vec<Warning>, lines: &Lines<'_>) -> Vec<Diagnostic> {
        let mut warnings = warnings;
        warnings.sort_by_key(|warning| warning.at);
        let told = warnings.into_iter().take(WARNINGS_MAX).map(|Warning { at, message, help }| {
            let (line, column) = lines.place(at);
            Diagnostic { message, line, column, help: Some(help) }
        });
        told.collect()
    }
}

/// Finds the line and column of a byte.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..at.min(self.text.len())).unwrap_or("");
        (line, before.chars().count() + 1)
    }
}
