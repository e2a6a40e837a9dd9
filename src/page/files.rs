//! Who works where: agents by directories, the leases, and the edits that leases did not cover.

use askama::Template;

use super::crew::n_leases;
use super::look::Look;
use super::words::{Markup, ago, cut, grouped};
use crate::failure::Failure;
use crate::views::FilesCell;

/// The most leases that are listed.
const LEASES_MAX: usize = 500;
/// The most paths that a cell names.
const PATHS_MAX: usize = 5;

#[derive(Template)]
#[template(path = "files.html", whitespace = "minimize")]
struct Card {
    agents: Vec<String>,
    rows: Vec<Row>,
    n_more: usize,
    n_leases: String,
    leases: Vec<Lease>,
    /// Whether this is the page of the files.
    is_open: bool,
}

struct Row {
    directory: String,
    cells: Vec<Cell>,
}

struct Cell {
    class: &'static str,
    signs: String,
    words: String,
}

struct Lease {
    number: Option<u64>,
    path: String,
    agent: String,
    words: &'static str,
    until: Markup,
    reason: String,
    form: Option<Markup>,
}

/// The card of the files.
pub async fn files(look: &Look<'_>) -> Result<Markup, Failure> {
    let files = look.shown.files().await?;
    let leases = look.shown.leases(|_, _, _| true).await?;
    let is_open = look.asked.tab() == super::asked::Tab::Files;
    if files.rows.is_empty() && leases.is_empty() && !is_open {
        return Ok(Markup::default());
    }
    let n_leases = n_leases(leases.len());
    let leases = leases.into_iter().take(LEASES_MAX).map(|lease| Lease {
        number: lease.lease,
        words: match (lease.lease.is_some(), lease.is_exclusive) {
            (true, true) => "exclusive,",
            (true, false) => "shared,",
            (false, _) => "waits for it,",
        },
        until: ago(&lease.until),
        reason: cut(&lease.reason, 80),
        form: lease.lease.filter(|_| is_open).map(|number| {
            let form = look.form("end-leases", vec![("force", number.to_string())]);
            form.required("reason", "why").button("End the lease").markup()
        }),
        path: cut(&lease.path, 200),
        agent: lease.agent,
    });
    let rows = files
        .rows
        .into_iter()
        .map(|row| Row { directory: cut(&row.directory, 60), cells: row.cells.iter().map(cell).collect() });
    Ok(Markup::of(&Card {
        agents: files.agents.iter().map(|agent| cut(agent, 40)).collect(),
        rows: rows.collect(),
        n_more: files.n_more,
        n_leases,
        leases: leases.collect(),
        is_open,
    }))
}

fn cell(cell: &FilesCell) -> Cell {
    let kinds = [
        ("✕", "touched without a lease", &cell.touched),
        ("■", "holds", &cell.holds),
        ("□", "means to touch", &cell.means),
    ];
    let some = || kinds.iter().filter(|(_, _, paths)| !paths.is_empty());
    let words: Vec<_> = some()
        .map(|(_, what, paths)| {
            let mut named: Vec<_> = paths.iter().take(PATHS_MAX).map(|path| cut(path, 80)).collect();
            if paths.len() > PATHS_MAX {
                named.push(format!("{} more", paths.len() - PATHS_MAX));
            }
            format!("{what} {}", named.join(", "))
        })
        .collect();
    let class = match some().next() {
        Some((_, "touched without a lease", _)) => "c-x",
        Some((_, "holds", _)) => "c-h",
        Some(_) | None => "",
    };
    Cell { class, signs: some().map(|(sign, _, _)| *sign).collect(), words: words.join("; ") }
}

#[derive(Template)]
#[template(path = "edits.html", whitespace = "minimize")]
struct Edits {
    edits: Vec<Edit>,
}

struct Edit {
    class: &'static str,
    what: &'static str,
    path: String,
    agent: String,
    at: Markup,
    position: String,
    href: String,
}

/// The last edits that were refused or that no lease covered.
pub async fn edits(look: &Look<'_>) -> Result<Markup, Failure> {
    let edits = look.shown.edits(None, 50).await?;
    let edits = edits.into_iter().map(|edit| {
        let is_refused = edit.event == "EditRefused";
        Edit {
            class: if is_refused { "sub" } else { "c-x" },
            what: if is_refused { "refused" } else { "✕ without a lease" },
            path: cut(&edit.path, 120),
            agent: edit.agent.as_deref().map_or_else(|| "someone".to_owned(), |agent| cut(agent, 40)),
            at: ago(&edit.at),
            position: grouped(edit.position.0),
            href: look.link_event(edit.position),
        }
    });
    Ok(Markup::of(&Edits { edits: edits.collect() }))
}
