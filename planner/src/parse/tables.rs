//! Tables: a row is a task, its columns are its fields.

use super::build::Builder;
use super::built::{Name, Odd};
use super::cells::{Cell, Column, cells, column, fits, parted};
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
        let head = Head {
            columns: columns(&first),
            names: first.iter().map(|name| name.text().into_owned()).collect(),
            list: usize::MAX - 1 - block.span.start,
            sign,
        };
        self.out.steps.push(Step::Open(Link::Free));
        for row in rows {
            self.row(*row, &cells(&self.source[row.start..row.end], sign), &head);
        }
        self.out.steps.push(Step::Close);
        // The line of dashes and the frame belong to no task.
        self.out.ignored.push(block.span);
    }

    fn row(&mut self, row: Span, cells: &[Cell], head: &Head) {
        let Some((_, task)) = head.columns.iter().zip(cells).find(|(column, _)| **column == Column::Task) else {
            return self.out.ignored.push(row);
        };
        let flow = Flow::joined(self.source, &task.spans(row.start), "", self.is_plain);
        let inline = Inline::scan(&flow.text, &self.definitions);
        let mut found = meta::extract(&flow.text, &inline, 0, flow.text.len(), true);
        found.locate(&flow);
        if found.description.is_empty() {
            return self.out.ignored.push(row);
        }
        // What is forbidden is kept as words.
        if unasked::forbids(&flow.text) || cells.iter().any(|cell| unasked::is_prohibition(&cell.text())) {
            self.out.context.push(self.source[row.start..row.end].trim().to_owned());
            return self.out.ignored.push(row);
        }
        let code = commands::command_in(&flow.text, &inline, 0, flow.text.len(), found.hidden);
        self.out.odd.extend(code.missed.map(|(at, code)| built::not_taken((flow.source(at), code))));
        let kind =
            code.command.as_ref().map_or_else(|| vocabulary::kind(&found.description, None), |_| NodeKind::ToolCall);
        let mut draft = Draft::new(kind, std::mem::take(&mut found.description), row.start);
        draft.plan.command = code.command;
        draft.list = Some(head.list);
        draft.plan.attachments = inline.attachments(&flow.text, 0, flow.text.len());
        draft.plan.spans.push(row);
        super::steps::adopt(&mut draft, &mut found);
        let mut read = Read { draft, link: Link::Free, number: None, doubt: None };
        for ((column, cell), name) in head.columns.iter().zip(cells).zip(&head.names) {
            let text = cell.text();
            if !text.is_empty() || *column == Column::Needs {
                read.field(*column, name, &text, row.start + cell.at);
            }
        }
        if head.sign != '|' && !fits(head.names.len(), cells.len(), head.sign) {
            let message = "this row has other cells than its head has names, so no command of it is run".to_owned();
            read.doubt = Some(Odd { at: row.start, message, help: "write a cell with a comma between quotes".into() });
        }
        self.out.odd.extend(read.withhold());
        if let Some(number) = read.number {
            let n = self.out.drafts.len();
            self.out.names.push(Name { text: number.into(), list: Some(head.list), first: n, end: n + 1 });
        }
        self.add(read.draft, read.link);
    }
}

/// The head of a table.
struct Head {
    columns: Vec<Column>,
    names: Vec<String>,
    list: usize,
    sign: char,
}

/// What has been read of a row.
struct Read {
    draft: Draft,
    link: Link,
    number: Option<String>,
    /// Why no command of it is run.
    doubt: Option<Odd>,
}

impl Read {
    fn field(&mut self, column: Column, name: &str, cell: &str, at: usize) {
        let plan = &mut self.draft.plan;
        let code = matches!(column, Column::Command | Column::Wanted).then(|| commands::in_column(cell)).flatten();
        match column {
            Column::Task => {}
            Column::Id if cell.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                self.link = Link::Next;
                self.number = Some(cell.to_owned());
            }
            Column::Id => plan.label = Some(cell.trim_matches(['`', '*', '[', ']']).to_owned()),
            Column::Needs => references::list(self.draft.needs.insert(Vec::new()), cell, at),
            Column::Status => self.status(states::in_cell(cell), name, cell, at),
            Column::Done => self.status(states::in_done_cell(cell), name, cell, at),
            Column::Command | Column::Wanted if plan.command.is_none() && code.is_some() => {
                plan.kind = NodeKind::ToolCall;
                plan.command = code;
            }
            Column::Wanted => self.status(wanted(states::said_yes(cell)), name, cell, at),
            Column::Skipped => self.status(wanted(states::said_yes(cell).map(|said| !said)), name, cell, at),
            Column::Command if states::said_yes(cell) == Some(false) => plan.mark = Mark::Cancelled,
            Column::Priority => plan.priority = Some(cell.to_owned()),
            Column::Assignee => plan.assignee = Some(cell.trim_start_matches('@').to_owned()),
            Column::Command | Column::Note | Column::Other => {
                plan.notes.push(format!("{name}: {cell}"));
                if unasked::withholds(cell) {
                    let message = format!("no command of this row is run, since {name} says \"{cell}\"");
                    self.doubt = Some(Odd { at, message, help: "take these words away if it is to be run".into() });
                }
            }
        }
    }

    /// Keeps how far the row is: a column that leaves it open says nothing against another, nor a skip against what is done.
    fn status(&mut self, read: Option<Mark>, name: &str, cell: &str, at: usize) {
        let plan = &mut self.draft.plan;
        let mark = markers::checkbox(cell).map(|(mark, _)| mark).or(read);
        let Some(mark) = mark else {
            plan.notes.push(format!("{name}: {cell}"));
            let message = format!("\"{cell}\" as {name} cannot be read, so no command of this row is run");
            let help = "write open, in progress, done or cancelled, or yes or no where the column asks for that";
            self.doubt = Some(Odd { at, message, help: help.into() });
            return;
        };
        if mark != Mark::Open && plan.mark != Mark::Done {
            plan.mark = mark;
        }
    }

    /// Takes the command away where there is a doubt.
    fn withhold(&mut self) -> Option<Odd> {
        let doubt = self.doubt.take()?;
        let plan = &mut self.draft.plan;
        if let Some(code) = plan.command.take() {
            plan.kind = vocabulary::kind(&plan.description, None);
            if !plan.description.contains(&code) {
                plan.notes.push(format!("Command: {code}"));
            }
        }
        Some(doubt)
    }
}

/// How far a row is by whether it is wanted.
fn wanted(said: Option<bool>) -> Option<Mark> {
    said.map(|said| if said { Mark::Open } else { Mark::Cancelled })
}

fn columns(head: &[Cell]) -> Vec<Column> {
    let mut columns: Vec<Column> =
        head.iter().map(|name| column(&name.text().trim_matches('*').to_lowercase())).collect();
    if !columns.contains(&Column::Task)
        && let Some(first) =
            columns.iter_mut().find(|column| matches!(column, Column::Other | Column::Note | Column::Command))
    {
        *first = Column::Task;
    }
    // "Step | Task": the first of two names is that by which the row is called.
    let named = |name: &str| matches!(name.trim().trim_matches('*').to_lowercase().as_str(), "step" | "item" | "name");
    if columns.iter().filter(|column| **column == Column::Task).count() > 1
        && !columns.contains(&Column::Id)
        && head.first().is_some_and(|name| named(&name.text()))
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
