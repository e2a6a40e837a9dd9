//! Files without lists: sentences that begin with a verb, and tables of tasks.

use std::ops::Range;

use super::blocks::{Inline, Kind};
use super::finder::Finder;
use super::line::{self, is_question, says_parallel, verb_of};
use super::names::is_number;
use super::tree::Part;
use super::words::{NEXT, NOTES, after_any, after_order, first_word, kind_of, sentences};
use crate::plan::{Mark, Span};

/// The steps of a paragraph.
pub(super) fn paragraph(finder: &mut Finder<'_>, place: usize) {
    let block = &finder.blocks[place];
    finder.tree.parts.push((block.span, Part::Context));
    let has_comment = finder.text[block.span.start..block.span.end].contains("<!--");
    finder.doubtful.extend(has_comment.then_some(finder.section));
    let masked = block.inline.masked();
    let mut found = Vec::new();
    for Range { mut start, end } in sentences(&masked) {
        for cut in cuts(&masked[start..end]).iter().map(|cut| cut + start).collect::<Vec<_>>() {
            found.push(block.inline.slice(std::mem::replace(&mut start, cut)..cut));
        }
        found.push(block.inline.slice(start..end));
    }
    let mut first = true;
    for part in found.into_iter().filter(|part| !part.text.is_empty()) {
        let begins = verb_of(&part.text);
        let is_note = after_any(begins, &NOTES).is_some() || after_any(&part.text, &NOTES).is_some();
        let meanwhile = after_any(&part.text, &["meanwhile"]).map(|rest| rest.trim_start_matches([',', ' ']));
        let bare = part.slice(part.text.len() - meanwhile.unwrap_or(&part.text).len()..part.text.len());
        let asks = is_question(&bare.text);
        let is_step = !is_note
            && (asks
                || says_parallel(&bare.text)
                || after_any(&bare.text, &["if", "otherwise"]).is_some()
                || kind_of(&first_word(verb_of(&bare.text))).is_some());
        if is_step {
            let parent = finder.group(finder.section);
            let node = finder.step(from_verb(&bare), None, parent);
            if meanwhile.is_some() {
                // It runs next to the previous step.
                for beside in finder.current.into_iter().chain([node]) {
                    finder.tree.nodes[beside].beside = true;
                }
            }
            // A question right after a step is asked before that step.
            finder.tree.nodes[node].asked_before = asks && !first && finder.tree.nodes.len() > 1;
            if !asks {
                finder.current = Some(node);
            }
            finder.drafts[node].span = Some(bare.span());
            first = asks && first;
        } else if let Some(step) = finder.current.filter(|_| is_note) {
            let node = &mut finder.tree.nodes[step];
            node.task.notes.push(part.text.trim_end_matches('.').to_owned());
            node.attach(&part);
        } else {
            finder.doubtful.insert(finder.section);
            finder.tree.context.push(part.text);
        }
    }
}

/// A sentence from its verb on, without its full stop.
fn from_verb(inline: &Inline) -> Inline {
    let rest = after_order(&inline.text);
    let start = inline.text.len() - rest.len();
    inline.slice(start..start + rest.trim_end_matches(['.', '!', ',', ';', '\u{3002}', ' ']).len())
}

/// The places where "then" or a similar word, or a semicolon, splits a sentence.
fn cuts(sentence: &str) -> Vec<usize> {
    let (mut found, mut passed) = (Vec::new(), 1);
    for (at, c) in sentence.char_indices().filter(|(_, c)| matches!(c, ',' | ';' | ' ')) {
        let rest = sentence[at..].trim_start_matches([',', ';', ' ']);
        let then = after_any(rest, if c == ' ' { &["then", "and then"] } else { &NEXT });
        let is_cut = at >= passed && (then.is_some() || c == ';');
        if is_cut && kind_of(&first_word(verb_of(rest))).is_some() {
            found.push(sentence.len() - rest.len());
            passed = sentence.len() - then.unwrap_or(rest).len();
        }
    }
    found
}

/// True for a table with a column of tasks.
pub(super) fn is_plan(rows: &[Vec<Inline>]) -> bool {
    column(rows, "task").is_some() || (column(rows, "title").is_some() && column(rows, "status").is_some())
}

fn column(rows: &[Vec<Inline>], name: &str) -> Option<usize> {
    rows.first()?.iter().position(|cell| cell.text.trim().eq_ignore_ascii_case(name))
}

/// Makes a step from each row.
pub(super) fn table(finder: &mut Finder<'_>, place: usize) {
    let Kind::Table(rows) = std::mem::replace(&mut finder.blocks[place].kind, Kind::Other) else { return };
    finder.tree.parts.push((finder.blocks[place].span, Part::Heading));
    const KNOWN: [&str; 9] = ["task", "title", "id", "#", "depends on", "owner", "status", "priority", "command"];
    for cells in rows.iter().skip(1) {
        let cell = |name: &str| {
            let cell = column(&rows, name).and_then(|place| cells.get(place));
            cell.filter(|cell| !matches!(cell.text.trim(), "" | "-"))
        };
        let is_known = |head: &Inline| KNOWN.iter().any(|name| head.text.trim().eq_ignore_ascii_case(name));
        let notes = rows[0].iter().zip(cells).filter(|(head, cell)| !is_known(head) && !cell.text.trim().is_empty());
        let notes = notes.map(|(head, cell)| format!("{}: {}", head.text.trim(), cell.text.trim()));
        let text = |name: &str| cell(name).map(|cell| cell.text.trim().to_owned());
        let Some(task) = cell("task").or_else(|| cell("title")) else { continue };
        let parent = finder.group(finder.section);
        let node = finder.step(task.clone(), None, parent);
        let ends = cells.iter().filter(|cell| !cell.text.is_empty()).map(Inline::span);
        finder.drafts[node].span = ends.reduce(|all, cell| Span { end: cell.end, ..all });
        if let Some(command) = cell("command") {
            if command.codes.is_empty() {
                finder.tree.warn(command.at(0), "this cell has no code and does not run", "write the command as code");
            }
            finder.drafts[node].command = Some(command.clone());
        }
        let waits_for = cell("depends on").and_then(|cell| line::names(&cell.text, cell.at(0), &finder.headings));
        let mark = match text("status").map(|status| status.to_lowercase()).as_deref() {
            Some("done" | "completed") => Some(Mark::Done),
            Some("in progress" | "doing" | "started") => Some(Mark::InProgress),
            Some("cancelled") => Some(Mark::Cancelled),
            None | Some("open" | "todo" | "pending") => None,
            Some(_) => {
                let help = "write done, in progress, cancelled or open; until then a person has to resume the step";
                finder.tree.warn(cell("status").map_or(0, |cell| cell.at(0)), "unknown status", help);
                Some(Mark::Deferred)
            }
        };
        let made = &mut finder.tree.nodes[node];
        made.waits_for.extend(waits_for.into_iter().flatten());
        let name = text("id").or_else(|| text("#")).filter(|name| is_number(name) || !name.contains(' '));
        made.name = name.or(made.name.take());
        let task = &mut made.task;
        task.notes.extend(notes);
        task.assignee = text("owner").map(|name| name.trim_start_matches('@').to_owned()).or(task.assignee.take());
        task.priority = text("priority").or(task.priority.take());
        task.mark = mark.unwrap_or(task.mark);
    }
}
