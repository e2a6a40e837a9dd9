//! Text to plan, deterministically: the same text gives the same tasks, on any machine and without a model.
//!
//! What another program or this one has written is read field by field (`canonical`, `formats`, `embedded`, `yaml`,
//! `values`, `states`). Any other text is cut into blocks (`lines`, `cells`, `phases`, `markers`, `loose`, `dialects`,
//! `markup`, `inlined`), what stands inside a line is found (`bytes`, `pairs`, `starts`, `inline`, `paths`,
//! `addresses`), the headings say which parts count (`heads`, `sections`, `numbered`), items form a tree (`outline`),
//! running text is cut into clauses (`speakers`, `sentences`, `breaks`, `questions`, `connectors`, `elsewhere`,
//! `labels`), a letter of requests is read as one (`letters`, `mails`), each clause is judged by its words (`phrases`,
//! `roles`, `crew`, `unasked`, `told`, `vocabulary`, `foreign`, `conditions`, `commands`) and becomes a draft or a
//! remark on one (`branches`, `steps`, `items`, `fences`, `tables`, `meta`, `waits`, `tags`, `settings`); lines that
//! only say what waits for what are read apart (`relations`, `diagrams`, `orders`). Then the drafts are put in order
//! (`draft`), the names in them are looked up (`names`), and both are joined (`edges`) to a graph without circles
//! (`graph`). Imports run one way, in this order.
//!
//! Which items are tasks:
//! - An item with items under it is a group, which lends its name and its verb, unless it has a box, an id or a command
//!   of its own and none of the items under it has a box, an id or a number: then it is a task, and they are its notes.
//!   An item with a command is never a group: items under it that are steps (a command, a box, an id, a number, "then
//!   ...") follow it. An item that says what to do, over items that only say something, is a task with notes.
//!   When all items under it begin with "if" or "otherwise", it is a task, and they are the tasks that follow it.
//! - Items under a task, and items that only limit, link or describe what stands above them, are notes.
//! - Groups in a numbered list keep its order: what stands in one waits for the ends of the one before.
//! - An item is one task, split only at "then", "otherwise" and their like, and between a step and the command behind
//!   it; never when it has a box or an id.
//!
//! What stands under "if ..." or "otherwise", be it an item, a heading or a line above a list, has that condition.
//!
//! Which edges are hard: written dependencies, connectors such as "then", questions, conditions and phases. Soft are
//! those that only the order of a list gives.
//!
//! What ends in a question mark is a question, unless it is a polite request. A single word in a written list of
//! dependencies is a name wherever tasks have names, and a name that no task has is an error.
//!
//! The parser never runs anything, reads no file, knows no clock, and panics on no input. It never makes a command of
//! prose: only code between backticks or in a fence can become one, and only where the words around it are an order to
//! the crew (`crew`).

mod addresses;
mod branches;
mod breaks;
mod build;
mod built;
mod bytes;
mod canonical;
mod cells;
mod commands;
mod conditions;
mod connectors;
mod crew;
mod diagrams;
mod dialects;
mod draft;
mod edges;
mod elsewhere;
mod embedded;
mod error;
mod fences;
mod fields;
mod foreign;
mod formats;
mod graph;
mod heads;
mod inline;
mod inlined;
mod items;
mod labels;
mod letters;
mod lines;
mod lint;
mod loose;
mod mails;
mod markers;
mod markup;
mod meta;
mod names;
mod numbered;
mod orders;
mod outline;
mod pairs;
mod parsed;
pub(crate) mod paths;
mod phases;
mod phrases;
mod plain;
mod questions;
mod references;
mod relations;
mod roles;
mod sections;
mod sentences;
mod settings;
mod shell;
mod speakers;
mod starts;
mod states;
mod steps;
mod tables;
mod tags;
#[cfg(test)]
mod tests;
mod text;
mod told;
mod unasked;
mod values;
mod vocabulary;
mod waits;
mod yaml;

pub use canonical::render;
pub use error::{Diagnostic, ParseError};
pub use graph::{EDGES_MAX, validate};
pub use lint::lint;
pub use parsed::{ParseOptions, ParsedPlan, TASKS_MAX, TEXT_BYTES_MAX, WARNINGS_MAX};

use crate::plan::{Attachment, NodeKind, TaskId};

/// What a text refers to: links, images, paths; in its order, each once.
#[must_use]
pub fn attachments(text: &str) -> Vec<Attachment> {
    inline::Inline::scan(text, &inline::Definitions::new()).attachments(text, 0, text.len())
}

/// Reads a text.
///
/// # Errors
///
/// When nothing in it is a task, when it is too long, or when its dependencies name no task, a task twice or a circle.
pub fn parse(text: &str, options: ParseOptions) -> Result<ParsedPlan, ParseError> {
    read(text, options, None, &mut Vec::new())
}

/// Reads a text that is added to a plan. What its tasks wait for may be tasks of the plan, which `named` finds by their
/// names: each is given with the task of the text that waits for it. A name that the text has itself means its own task.
///
/// # Errors
///
/// As [`parse`], and [`ParseError::AmbiguousId`] for the number of a task that both have and the text does not write.
pub fn parse_beside(
    text: &str,
    options: ParseOptions,
    named: &dyn Fn(&str) -> Option<TaskId>,
) -> Result<(ParsedPlan, Vec<(TaskId, TaskId)>), ParseError> {
    let mut outer = Vec::new();
    let parsed = read(text, options, Some(named), &mut outer)?;
    Ok((parsed, outer))
}

fn read(
    text: &str,
    options: ParseOptions,
    named: Option<names::Elsewhere<'_>>,
    outer: &mut Vec<(TaskId, TaskId)>,
) -> Result<ParsedPlan, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ParseError::LimitPassed { limit: "bytes", value: text.len(), max: TEXT_BYTES_MAX });
    }
    if text::blank(text) {
        return Err(ParseError::EmptyPlan);
    }
    if let Some(plan) = canonical::read(text, options) {
        return plan;
    }
    let unread = match embedded::read(text, formats::Asked { options, elsewhere: named }) {
        embedded::Held::Plan(plan) => {
            let (plan, waits) = plan?;
            outer.extend(waits);
            return Ok(plan);
        }
        embedded::Held::Text(unread) => unread,
    };
    let (bared, fence) = embedded::bared(text).unzip();
    let text = bared.as_deref().unwrap_or(text);
    let mut built = build::build(text, false);
    let asks = |built: &built::Built| {
        let mut drafts = built.drafts.iter().map(|draft| &draft.plan);
        drafts.all(|plan| plan.kind == NodeKind::Clarification || sections::is_story(&plan.description))
    };
    if built.drafts.is_empty() {
        built = build::build(text, true);
    } else if built.requires && asks(&built) {
        // Requirements beside nothing but questions and stories are what is to be done.
        built = Some(build::build(text, true)).filter(|wide| !asks(wide)).unwrap_or(built);
    }
    // "Summarise these tasks:" over a fence is a step by itself.
    let bare = if built.drafts.is_empty() { unread.without(text) } else { None };
    if let Some(bare) = &bare {
        built = build::build(bare, false);
        unread.lend(text, &mut built.drafts);
    }
    if built.drafts.is_empty() {
        return Err(ParseError::EmptyPlan);
    }
    if built.drafts.len() > TASKS_MAX {
        return Err(ParseError::LimitPassed { limit: "tasks", value: built.drafts.len(), max: TASKS_MAX });
    }
    built.odd.extend(unread.odd);
    let lines = text::Lines::new(text);
    let title = built.title.take();
    let context = std::mem::take(&mut built.context);
    let mut ignored = std::mem::take(&mut built.ignored);
    let tasks = edges::connect(&mut built, &lines, options.relax_order, named, outer)?;
    ignored.extend(fence.into_iter().flatten());
    built::merge_spans(&mut ignored);
    let warnings = built::diagnostics(built.odd, &lines);
    Ok(ParsedPlan { title, tasks, context, warnings, ignored })
}
