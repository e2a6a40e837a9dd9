//! Errors of a plan file, and warnings about it.

use serde::Serialize;

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

/// Why a text or a list of tasks is not a plan.
///
/// Lines and columns count from 1, columns in characters; both are 0 when there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing in it is a task.
    #[error(
        "the plan is empty: nothing in it is a task; write at least one sentence or list item that says what to do"
    )]
    EmptyPlan,
    /// Tasks wait for each other in a circle.
    #[error("tasks wait for each other in a circle: {}{}; remove one of these dependencies", cycle.join(" -> "), place(*line, *column))]
    DependencyCycle {
        /// The names in order of waiting, the first repeated at the end.
        cycle: Vec<String>,
        /// The line of the first task.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// A dependency names no task.
    #[error("no task is called {id}{}; name an existing task or remove the dependency", place(*line, *column))]
    UnknownId {
        /// The name as written.
        id: String,
        /// The line of the reference.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// A dependency of a text that is added to a plan names a task of neither.
    #[error(
        "neither the text nor the plan has a task called {id}{}; name an existing task or remove the dependency",
        place(*line, *column)
    )]
    UnknownAnywhere {
        /// The name as written.
        id: String,
        /// The line of the reference.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// A dependency names a task by a name that is written twice.
    #[error("{id}{} is the name of several tasks; write one of {} instead", place(*line, *column), candidates.join(", "))]
    AmbiguousId {
        /// The name as written.
        id: String,
        /// The names that each have one task.
        candidates: Vec<String>,
        /// The line of the reference.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// Two tasks have the same name.
    #[error(
        "the id {id} is used twice, on line {first_line} and again (line {line}, column {column}); rename one of the two"
    )]
    DuplicateId {
        /// The name.
        id: String,
        /// The line of the second use.
        line: usize,
        /// Its column.
        column: usize,
        /// The line of the first use.
        first_line: usize,
    },
    /// A task waits for itself.
    #[error("task {id} waits for itself{}; remove that dependency", place(*line, *column))]
    SelfDependency {
        /// The name.
        id: String,
        /// The line of the task.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// The number of a task is not above that of the task before it.
    #[error("task {id} comes after task {previous}; number the tasks in rising order from 1")]
    IdOrder {
        /// The number.
        id: u64,
        /// The number before it, 0 for the first task.
        previous: u64,
    },
    /// A file of another tool that is not in its format.
    #[error("this file is not valid {format}: {problem}{}; correct it, or choose another format with --format", place(*line, *column))]
    BadJson {
        /// The format.
        format: &'static str,
        /// The problem.
        problem: String,
        /// The line of it.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// More of something than a plan may have.
    #[error("{value} {limit} are more than {max}; split the plan into several")]
    LimitPassed {
        /// What there is too much of.
        limit: &'static str,
        /// How much there is.
        value: usize,
        /// How much there may be.
        max: usize,
    },
}

/// Where in the text, if there is one.
fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(" (line {line}, column {column})") }
}

impl ParseError {
    /// The name of the variant, by which programs tell errors apart.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EmptyPlan => "EmptyPlan",
            Self::DependencyCycle { .. } => "DependencyCycle",
            Self::UnknownId { .. } | Self::UnknownAnywhere { .. } => "UnknownId",
            Self::AmbiguousId { .. } => "AmbiguousId",
            Self::DuplicateId { .. } => "DuplicateId",
            Self::SelfDependency { .. } => "SelfDependency",
            Self::IdOrder { .. } => "IdOrder",
            Self::BadJson { .. } => "BadJson",
            Self::LimitPassed { .. } => "LimitPassed",
        }
    }

    /// Line and column of what is wrong, both from 1; nothing for what is wrong with the whole or has no text.
    #[must_use]
    pub const fn place(&self) -> Option<(usize, usize)> {
        match self {
            Self::DependencyCycle { line, column, .. }
            | Self::UnknownId { line, column, .. }
            | Self::UnknownAnywhere { line, column, .. }
            | Self::AmbiguousId { line, column, .. }
            | Self::DuplicateId { line, column, .. }
            | Self::SelfDependency { line, column, .. }
            | Self::BadJson { line, column, .. }
                if *line > 0 =>
            {
                Some((*line, *column))
            }
            Self::EmptyPlan
            | Self::DependencyCycle { .. }
            | Self::UnknownId { .. }
            | Self::UnknownAnywhere { .. }
            | Self::AmbiguousId { .. }
            | Self::DuplicateId { .. }
            | Self::SelfDependency { .. }
            | Self::IdOrder { .. }
            | Self::BadJson { .. }
            | Self::LimitPassed { .. } => None,
        }
    }
}
