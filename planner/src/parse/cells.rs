//! Rows of tables: Markdown's, with bars between the cells, and those that are pasted from a sheet, with tabs or commas. It
//! takes a row apart and knows what a column holds by its name; what a row means for the plan, `tables` says.

use super::phrases::lower;
use super::text::has_byte;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    Task,
    Needs,
    Status,
    Priority,
    Assignee,
    Other,
}

/// The name of a column is no longer.
const NAME_BYTES_MAX: usize = 32;
/// So many columns are looked at.
const COLUMNS_MAX: usize = 64;

/// True for the first line of a sheet: every cell is a name, two of them are known, one of these is that of the tasks, and
/// the next line has no more cells than there are names.
pub(super) fn sheet(head: &str, next: &str) -> bool {
    let Some(sign) = parted(head).filter(|sign| *sign != '|') else { return false };
    // Most lines with a comma are prose.
    if !head.split(sign).all(|name| name.len() <= NAME_BYTES_MAX) || head.split(sign).nth(COLUMNS_MAX).is_some() {
        return false;
    }
    let columns: Vec<Column> = cells(head, sign).iter().map(|(_, name)| column(&lower(name.trim()))).collect();
    let n_known = columns.iter().filter(|column| **column != Column::Other).count();
    n_known > 1 && columns.contains(&Column::Task) && (2..=columns.len()).contains(&cells(next, sign).len())
}

/// True for the line of dashes under the head of a table.
pub(super) fn is_dashes(content: &str) -> bool {
    content.contains("--") && content.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\r' | '\t' | '+'))
}

/// What parts the cells of a row.
pub(super) fn parted(row: &str) -> Option<char> {
    [b'|', b'\t', b','].into_iter().find(|sign| has_byte(row, *sign)).map(char::from)
}

/// The cells of a row and where each begins; a sign in code, behind `\` or, in a sheet, between quotes does not part them.
pub(super) fn cells(line: &str, sign: char) -> Vec<(usize, &str)> {
    let framed = sign == '|' && line.starts_with(sign);
    let trimmed = line.trim_end();
    let trimmed = if sign == '|' { trimmed.strip_suffix(sign).unwrap_or(trimmed) } else { trimmed };
    let mut found = Vec::new();
    let mut from = usize::from(framed);
    let mut code = false;
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in trimmed.char_indices().skip_while(|(at, _)| *at < usize::from(framed)) {
        code ^= c == '`';
        quoted ^= c == '"' && sign != '|';
        if c == sign && !escaped && !code && !quoted {
            found.push(cell(trimmed, from, at, sign));
            from = at + 1;
        }
        escaped = c == '\\';
    }
    found.push(cell(trimmed, from.min(trimmed.len()), trimmed.len(), sign));
    found
}

/// A cell, in a sheet without the quotes around it.
fn cell(row: &str, from: usize, to: usize, sign: char) -> (usize, &str) {
    let cell = row.get(from..to).unwrap_or("");
    let inner = cell.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|_| sign != '|');
    inner.map_or((from, cell), |inner| (from + cell.len() - cell.trim_start().len() + 1, inner))
}

/// What a column of this name, in lower case, holds.
pub(super) fn column(name: &str) -> Column {
    match name {
        "#" | "id" | "no" | "no." | "nr" | "number" | "key" | "step #" | "task id" | "ref" => Column::Id,
        "task" | "tasks" | "description" | "title" | "step" | "steps" | "what" | "action" | "item" | "work"
        | "todo" | "name" | "work item" | "summary" => Column::Task,
        "depends on" | "depends" | "dependencies" | "dependency" | "deps" | "after" | "blocked by" | "needs"
        | "prerequisites" | "requires" => Column::Needs,
        "status" | "state" | "done" | "done?" | "\u{2713}" | "progress" => Column::Status,
        "priority" | "prio" => Column::Priority,
        "owner" | "assignee" | "who" | "assigned to" | "assigned" | "responsible" => Column::Assignee,
        _ => Column::Other,
    }
}
