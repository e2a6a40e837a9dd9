//! Reads plan files and writes states back into them, as `docs/plan-format.md` describes.
//!
//! Markdown goes through `repair` and `blocks` to `steps`, which finds the steps; `line` takes each apart, `commands`
//! judges its code, `contents` adds notes, and `prose` reads files without lists. `json` reads Task Master and beads.
//! All give a `tree`, which `edges` turns into tasks with dependencies.

mod blocks;
mod canonical;
mod commands;
mod contents;
mod edges;
mod finder;
mod json;
mod line;
mod names;
mod program;
mod prose;
mod repair;
mod steps;
#[cfg(test)]
mod tests;
mod ticks;
mod tree;
mod words;

pub use blocks::front_matter;
pub use canonical::render;
pub use edges::{Added, EDGES_MAX, Named};
pub(crate) use names::is_number;
pub use ticks::{Written, expressible, write_states};
pub use tree::{CodeUse, Diagnostic, MarkAt, ParsedPlan, Part, TEXT_BYTES_MAX, WARNINGS_MAX};
pub use words::VERBS;

pub use crate::format::{Format, ReadOptions};

use std::borrow::Cow;

use crate::plan::Attachment;
use crate::validity::InvalidPlan;
use tree::Node;

/// Reads a plan file.
///
/// # Errors
/// A file without steps or too long, a dependency on no task or on several, a cycle of dependencies, broken JSON.
pub fn read(text: &str, options: ReadOptions<'_>) -> Result<ParsedPlan, InvalidPlan> {
    Ok(read_with(text, options, None)?.0)
}

/// Reads a text to be added to a plan. The text may name the plan's tasks: `named` finds them. Also returns its
/// dependencies on tasks of the plan. A name that the text defines itself means its own task.
///
/// # Errors
/// As [`read`].
pub fn read_beside(text: &str, options: ReadOptions<'_>, named: Named<'_>) -> Result<Added, InvalidPlan> {
    read_with(text, options, Some(named))
}

fn read_with(text: &str, options: ReadOptions<'_>, named: Option<Named<'_>>) -> Result<Added, InvalidPlan> {
    InvalidPlan::check_limit("bytes", text.len(), TEXT_BYTES_MAX)?;
    InvalidPlan::check_merged(text)?;
    if let Some(exported) = canonical::read(text, options) {
        return Ok((exported?, Vec::new()));
    }
    let mut tree = match options.format {
        Format::TaskMaster => json::task_master(text, options.tag)?,
        Format::Beads => json::beads(text)?,
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro => steps::read(text, options.format),
    };
    if canonical::is_marked(text) {
        let help = "correct the fields, or remove the comment in its first line";
        tree.warn(0, "this is no longer a valid exported plan; it is read as plain Markdown", help);
    }
    edges::connect(tree, text, options, named)
}

/// A text unchanged, or as one step if it contains none.
pub fn as_step(text: &str) -> Cow<'_, str> {
    let is_empty = matches!(read(text, ReadOptions::default()), Err(InvalidPlan::EmptyPlan));
    let is_step = is_empty && text.contains(char::is_alphanumeric);
    if is_step { format!("- {}", text.trim().replace('\n', "\n  ")).into() } else { text.into() }
}

/// The links, images and paths in a text, in order, each once.
pub fn attachments(text: &str) -> Vec<Attachment> {
    let mut all = Node::default();
    blocks::blocks(text).iter().for_each(|block| all.attach(&block.inline));
    all.task.attachments
}
