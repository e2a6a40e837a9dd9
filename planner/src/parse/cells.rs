//! Rows of tables: Markdown's, with bars between the cells, and those that are pasted from a sheet, with tabs or commas. It
//! takes a row apart and knows what a column holds by its name; what a row means for the plan, `tables` says.

use std::borrow::Cow;

use super::phrases::{Words, list, lower};
use super::text::has_byte;
use super::{connectors, vocabulary};
use crate::plan::Span;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    Task,
    Needs,
    Status,
    /// Whether it is done, or since when.
    Done,
    /// Whether it is to be done.
    Wanted,
    /// Whether it is left out.
    Skipped,
    Priority,
    Assignee,
    Command,
    Note,
    Other,
}

/// The name of a column is no longer.
const NAME_BYTES_MAX: usize = 32;
/// So many columns are looked at.
const COLUMNS_MAX: usize = 64;

/// A cell of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'t> {
    /// Where in the row it begins.
    pub(super) at: usize,
    /// As it is written, without the quotes around it.
    written: &'t str,
    /// In quotes, where two of them are one.
    quoted: bool,
}

impl<'t> Cell<'t> {
    /// What it says.
    pub(super) fn text(&self) -> Cow<'t, str> {
        let written = self.written.trim();
        if self.quoted { written.replace("\"\"", "\"").into() } else { written.into() }
    }

    /// Its parts in a text in which its row begins at a byte: all but the second of two quotes.
    pub(super) fn spans(&self, row: usize) -> Vec<Span> {
        let begin = row + self.at;
        let mut from = begin;
        let doubled = self.written.match_indices("\"\"").filter(|_| self.quoted);
        let mut spans: Vec<Span> = doubled
            .map(|(at, _)| Span { start: std::mem::replace(&mut from, begin + at + 2), end: begin + at + 1 })
            .collect();
        spans.push(Span { start: from, end: begin + self.written.len() });
        spans
    }
}

/// True for the first line of a sheet: every cell is a name, two of them are known, one of these is that of the tasks, and
/// the next line is a row of as many cells.
pub(super) fn sheet<'t>(head: &str, next: impl FnOnce() -> &'t str) -> bool {
    let Some(sign) = parted(head).filter(|sign| *sign != '|') else { return false };
    // Most lines with a comma are prose.
    if !head.split(sign).all(|name| name.len() <= NAME_BYTES_MAX) || head.split(sign).nth(COLUMNS_MAX).is_some() {
        return false;
    }
    let columns: Vec<Column> = cells(head, sign).iter().map(|name| column(&lower(&name.text()))).collect();
    let n_known = columns.iter().filter(|column| **column != Column::Other).count();
    if n_known < 2 || !columns.contains(&Column::Task) {
        return false;
    }
    let row = cells(next(), sign);
    row.len() > 1 && fits(columns.len(), row.len(), sign) && !(sign == ',' && is_prose(&row))
}

/// True for a line that goes on the sheet with this head. A sentence with other cells than the head is none; any other line
/// with such cells is a row of which nothing is sure.
pub(super) fn continues(head: &str, line: &str) -> bool {
    let Some(sign) = parted(head).filter(|sign| *sign != '|' && line.contains(*sign)) else { return false };
    let row = cells(line, sign);
    let is_sentence = || line.trim_end().ends_with(['.', '!', '?', ':']);
    sign != ',' || !(is_prose(&row) || row.len() != cells(head, sign).len() && is_sentence())
}

/// True when a row has the cells that its head names; of one with tabs the empty cells at its end are cut off.
pub(super) fn fits(n_names: usize, n_cells: usize, sign: char) -> bool {
    n_cells == n_names || sign != ',' && n_cells < n_names
}

/// True when the cells of a line are the parts of a sentence: one is nothing but a connector or, of two, one begins with a
/// connector or the last is an instruction with a full stop.
fn is_prose(row: &[Cell]) -> bool {
    let leads = |cell: &Cell| {
        let text = cell.written.trim();
        let found = connectors::connector(text).filter(|_| !cell.quoted);
        found.is_some_and(|(_, _, length)| row.len() == 2 || length == text.len())
    };
    let instructs = |last: &Cell| {
        let text = last.written.trim();
        !last.quoted && text.ends_with(['.', '!']) && vocabulary::begins_with_verb(text)
    };
    row.iter().any(leads) || row.len() == 2 && row.last().is_some_and(instructs)
}

/// True for the line of dashes under the head of a table.
pub(super) fn is_dashes(content: &str) -> bool {
    content.contains("--") && content.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\r' | '\t' | '+'))
}

/// What parts the cells of a row.
pub(super) fn parted(row: &str) -> Option<char> {
    [b'|', b'\t', b','].into_iter().find(|sign| has_byte(row, *sign)).map(char::from)
}

/// The cells of a row; a sign in code, behind `\` or, in a sheet, between quotes does not part them. A quote opens at the
/// beginning of a cell alone, and closes only where the cell ends.
pub(super) fn cells(line: &str, sign: char) -> Vec<Cell<'_>> {
    let mut from = usize::from(sign == '|' && line.starts_with(sign));
    let row = line.trim_end();
    let row = if sign == '|' { row.strip_suffix(sign).unwrap_or(row) } else { row };
    let mut found = Vec::new();
    while let Some(rest) = row.get(from..) {
        let quoted = if sign == '|' { None } else { quoted(rest, sign) };
        let (cell, length) = quoted.unwrap_or_else(|| {
            let length = plain(rest, sign);
            (Cell { at: 0, written: &rest[..length], quoted: false }, length)
        });
        found.push(Cell { at: from + cell.at, ..cell });
        from += length + 1;
    }
    found
}

/// The length of the cell with which a text begins.
fn plain(rest: &str, sign: char) -> usize {
    let (mut code, mut escaped) = (false, false);
    let end = rest.char_indices().find(|(_, c)| {
        code ^= *c == '`';
        let parts = *c == sign && !escaped && !code;
        escaped = *c == '\\';
        parts
    });
    end.map_or(rest.len(), |(at, _)| at)
}

/// The cell in quotes with which a text begins, and how long it is with them.
fn quoted(rest: &str, sign: char) -> Option<(Cell<'_>, usize)> {
    let blank = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let begin = blank(rest);
    let inner = rest[begin..].strip_prefix('"')?;
    let mut end = 0;
    loop {
        end += inner[end..].find('"')?;
        if !inner[end + 1..].starts_with('"') {
            break;
        }
        end += 2;
    }
    let after = end + 1 + blank(&inner[end + 1..]);
    let closes = inner[after..].is_empty() || inner[after..].starts_with(sign);
    closes.then(|| (Cell { at: begin + 1, written: &inner[..end], quoted: true }, begin + 1 + after))
}

/// The names of columns, in lower case.
static NAMES: [(Column, Words); 11] = [
    (
        Column::Id,
        Words::new(|| {
            list("#|id|no|no.|nr|nr.|number|key|step #|task id|ref|nummer|n°|nº|numéro|número|numero|编号|序号|番号|№")
        }),
    ),
    (
        Column::Task,
        Words::new(|| {
            list(
                "task|tasks|description|title|step|steps|what|action|item|work|todo|name|work item|summary|aufgabe|\
                 aufgaben|schritt|titel|beschreibung|tâche|tâches|étape|titre|tarea|tareas|paso|título|tarefa|tarefas|\
                 passo|attività|compito|taak|taken|stap|任务|步骤|タスク|作業|задача|задачи|шаг|작업",
            )
        }),
    ),
    (
        Column::Needs,
        Words::new(|| {
            list(
                "depends on|depends|dependencies|dependency|deps|after|blocked by|needs|prerequisites|requires|\
                 abhängig von|hängt ab von|dépend de|dépendances|depende de|dependencias|dependências|dipende da|\
                 afhankelijk van|依赖|前置任务|依存|зависит от",
            )
        }),
    ),
    (
        Column::Status,
        Words::new(|| {
            list("status|state|progress|zustand|stand|fortschritt|statut|état|estado|stato|状态|进度|状態|статус|상태")
        }),
    ),
    (
        Column::Done,
        Words::new(|| {
            list(
                "done|done?|\u{2713}|\u{2714}|\u{2705}|complete|complete?|completed|completed?|finished|finished?|\
                 closed|closed?|resolved|done at|done on|completed at|completed on|finished at|finished on|closed at|\
                 closed on|resolved at|completion date|date completed|erledigt|erledigt?|erledigt am|fertig|\
                 abgeschlossen|fait|terminé|hecho|terminado|completado|feito|concluído|fatto|gedaan|klaar|已完成|完成|\
                 完了|готово",
            )
        }),
    ),
    (
        Column::Wanted,
        Words::new(|| {
            list(
                "run?|execute|execute?|enabled|enabled?|active?|do?|include?|wanted|wanted?|ausführen|ausführen?|\
                 exécuter|ejecutar",
            )
        }),
    ),
    (Column::Skipped, Words::new(|| list("skip|skip?|skipped|skipped?|disabled|ignore|ignore?|ignored"))),
    (Column::Priority, Words::new(|| list("priority|prio|priorität|priorité|prioridad|优先级"))),
    (
        Column::Assignee,
        Words::new(|| {
            list(
                "owner|assignee|who|assigned to|assigned|responsible|zuständig|verantwortlich|responsable|responsável|\
                 responsabile|verantwoordelijk|负责人|担当|ответственный",
            )
        }),
    ),
    (Column::Command, Words::new(|| list("command|commands|cmd|run|how to run|befehl|commande|comando|命令"))),
    (
        Column::Note,
        Words::new(|| list("note|notes|comment|comments|remark|remarks|details|bemerkung|notiz|remarque|nota|备注")),
    ),
];

/// What a column of this name, in lower case, holds.
pub(super) fn column(name: &str) -> Column {
    NAMES.iter().find(|(_, names)| names.contains(name)).map_or(Column::Other, |(column, _)| *column)
}
