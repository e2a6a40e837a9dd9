//! Tables: a row is a task, its columns are its fields.

use super::build::Builder;
use super::built::Name;
use super::cells::{Column, cells, column, parted};
use super::draft::{Draft, Link, Step};
use super::inline::Inline;
use super::lines::Block;
use super::text::Flow;
use super::{built, commands, markers, meta, references, states, unasked, vocabulary};
use crate::plan::{Mark, NodeKind, Span};

impl Builder<'_> {
    /// Reads the rows of a table; the first names the columns.
    pub(super) fn table(&mut self, block: &Block) {
        let mut rows = block.pieces.iter();
        let Some(head) = rows.next() else { return };
        self.out.ignored.push(Span { start: block.span.start, end: head.end });
        let line = &self.source[head.start..head.end];
        let sign = parted(line).unwrap_or('|');
        let first = cells(line, sign);
        let columns = columns(&first);
        let names: Vec<String> = first.iter().map(|(_, cell)| cell.trim().to_owned()).collect();
        let list = usize::MAX - 1 - block.span.start;
        self.out.steps.push(Step::Open(Link::Free));
        for row in rows {
            let row = (*row, cells(&self.source[row.start..row.end], sign));
            self.row(row, &columns, &names, list);
        }
        self.out.steps.push(Step::Close);
        // The line of dashes and the frame belong to no task.
        self.out.ignored.push(block.span);
    }

    fn row(&mut self, row: (Span, Vec<(usize, &str)>), columns: &[Column], names: &[String], list: usize) {
        let (row, cells) = row;
        let line = &self.source[row.start..row.end];
        let Some((at, text)) =
            columns.iter().zip(&cells).find(|(column, _)| **column == Column::Task).map(|(_, cell)| *cell)
        else {
            return self.out.ignored.push(row);
        };
        let flow =
            Flow::new(self.source, &[Span { start: row.start + at, end: row.start + at + text.len() }], self.is_plain);
        let inline = Inline::scan(&flow.text, &self.definitions);
        let mut found = meta::extract(&flow.text, &inline, 0, flow.text.len(), true);
        found.locate(&flow);
        if found.description.is_empty() {
            return self.out.ignored.push(row);
        }
        // What is forbidden is kept as words.
        if unasked::forbids(&flow.text) || cells.iter().any(|(_, cell)| unasked::is_prohibition(cell.trim())) {
            self.out.context.push(line.trim().to_owned());
            return self.out.ignored.push(row);
        }
        let code = commands::command_in(&flow.text, &inline, 0, flow.text.len(), found.hidden);
        self.out.odd.extend(code.missed.map(|(at, code)| built::not_taken((flow.source(at), code))));
        let kind =
            code.command.as_ref().map_or_else(|| vocabulary::kind(&found.description, None), |_| NodeKind::ToolCall);
        let mut draft = Draft::new(kind, std::mem::take(&mut found.description), row.start);
        draft.plan.command = code.command;
        draft.list = Some(list);
        draft.plan.attachments = inline.attachments(&flow.text, 0, flow.text.len());
        draft.plan.spans.push(row);
        let mut link = Link::Free;
        let n = self.out.drafts.len();
        super::steps::adopt(&mut draft, &mut found);
        for ((column, (at, cell)), name) in columns.iter().zip(&cells).zip(names) {
            let cell = cell.trim();
            if cell.is_empty() && *column != Column::Needs {
                continue;
            }
            match column {
                Column::Task => {}
                Column::Id if cell.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                    link = Link::Next;
                    self.out.names.push(Name { text: cell.to_owned().into(), list: Some(list), first: n, end: n + 1 });
                }
                Column::Id => draft.plan.label = Some(cell.trim_matches(['`', '*', '[', ']']).to_owned()),
                Column::Needs => references::list(draft.needs.insert(Vec::new()), cell, row.start + at),
                Column::Status => draft.plan.mark = status(cell),
                Column::Priority => draft.plan.priority = Some(cell.to_owned()),
                Column::Assignee => draft.plan.assignee = Some(cell.trim_start_matches('@').to_owned()),
                Column::Other => match commands::in_column(name, cell).filter(|_| draft.plan.command.is_none()) {
                    Some(code) => {
                        draft.plan.kind = NodeKind::ToolCall;
                        draft.plan.command = Some(code);
                    }
                    None => draft.plan.notes.push(format!("{name}: {cell}")),
                },
            }
        }
        self.add(draft, link);
    }
}

fn columns(head: &[(usize, &str)]) -> Vec<Column> {
    let mut columns: Vec<Column> =
        head.iter().map(|(_, name)| column(&name.trim().trim_matches('*').to_lowercase())).collect();
    if !columns.contains(&Column::Task)
        && let Some(first) = columns.iter_mut().find(|column| **column == Column::Other)
    {
        *first = Column::Task;
    }
    // "Step | Task": the first of two names is that by which the row is called.
    let named = |name: &str| matches!(name.trim().trim_matches('*').to_lowercase().as_str(), "step" | "item" | "name");
    if columns.iter().filter(|column| **column == Column::Task).count() > 1
        && !columns.contains(&Column::Id)
        && head.first().is_some_and(|(_, name)| named(name))
        && let Some(first) = columns.first_mut()
    {
        *first = Column::Id;
    }
    let mut seen = false;
    for column in columns.iter_mut().filter(|column| **column == Column::Task) {
        if std::mem::replace(&mut seen, true) {
            *column = Column::Other;
        }
    }
    columns
}

fn status(cell: &str) -> Mark {
    if let Some((mark, _)) = markers::checkbox(cell) {
        return mark;
    }
    if cell.contains(['\u{1f6a7}', '\u{1f504}', '\u{23f3}']) {
        return Mark::InProgress;
    }
    let plain = cell.to_lowercase();
    let plain = plain.trim_matches(|c: char| !c.is_alphanumeric());
    let ticked = matches!(plain, "x" | "yes")
        || plain.is_empty() && cell.contains(['\u{2705}', '\u{2713}', '\u{2714}', '\u{2611}']);
    if ticked { Mark::Done } else { states::mark(plain).unwrap_or(Mark::Open) }
}
