//! Agents by directory, and the edits without leases.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use crewlog_mq::{Error, Query, Range};
use crewlog_planner::crew::agents::Liveness;
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::target::Target;
use crewlog_planner::lifecycle::State;
use futures::{StreamExt, TryStreamExt};

use super::{AsOf, EditView, FilesCell, FilesRow, FilesView};
use crate::ui::text::rfc3339;

/// The most directories and agents of the table; the busiest ones stay.
const ROWS_MAX: usize = 40;
const COLUMNS_MAX: usize = 12;
const EDITS_MAX: usize = 50;
/// The most events that are read for edits.
const READ_MAX: usize = 2_000;

impl AsOf {
    /// Agents by directory: the files that each leases, means to touch, or touched without a lease.
    pub async fn files(&self) -> Result<FilesView, Error> {
        let mut cells: BTreeMap<(String, String), FilesCell> = BTreeMap::new();
        let mut put = |path: &str, agent: &str, to: fn(&mut FilesCell) -> &mut Vec<String>| {
            let paths = to(cells.entry((directory(path), agent.to_owned())).or_default());
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        };
        for lease in self.leases(|_| true).await? {
            match lease.lease {
                Some(_) => put(&lease.path, &lease.agent, |cell| &mut cell.holds),
                None => put(&lease.path, &lease.agent, |cell| &mut cell.means),
            }
        }
        for task in self.tasks().await?.iter().filter(|task| matches!(task.state, State::Running | State::Interrupted))
        {
            for path in &task.files {
                put(path, task.assignee.as_deref().unwrap_or_default(), |cell| &mut cell.means);
            }
        }
        let edits = self.edits(None, EDITS_MAX).await?;
        for edit in edits.iter().filter(|edit| edit.event == "UnleasedEdit") {
            put(&edit.path, edit.agent.as_deref().unwrap_or("unknown"), |cell| &mut cell.touched);
        }
        let agents = self.handled(&self.kept.agents).await?;
        let present =
            agents.0.iter().filter(|(_, agent)| agent.liveness != Liveness::Left).map(|(name, _)| name.to_owned());
        let (rows, n_more_rows) = most(cells.keys().map(|(row, _)| row), ROWS_MAX);
        let (mut columns, n_more_columns) = most(cells.keys().map(|(_, column)| column), COLUMNS_MAX);
        let room = COLUMNS_MAX.saturating_sub(columns.len());
        let others: Vec<_> = present.filter(|agent| !columns.contains(agent)).take(room).collect();
        columns.extend(others);
        let agents: Vec<String> = columns.into_iter().collect();
        let row = |directory: String| FilesRow {
            cells: agents
                .iter()
                .map(|agent| cells.get(&(directory.clone(), agent.clone())).cloned().unwrap_or_default())
                .collect(),
            directory,
        };
        let (rows, n_more) = (rows.into_iter().map(row).collect(), n_more_rows + n_more_columns);
        Ok(FilesView { at: self.at, rows, agents, edits, n_more })
    }

    /// The last refused edits and changes without a lease, of one file or of all, newest first.
    pub async fn edits(&self, of: Option<&Target>, limit: usize) -> Result<Vec<EditView>, Error> {
        let query = Query::aggregate(leases::STREAM, self.project()).of_types(["EditRefused", "UnleasedEdit"]);
        let mut found = Vec::new();
        let mut records = pin!(self.store().records(&query, Range::up_to(self.at).backwards()).take(READ_MAX));
        while found.len() < limit
            && let Some(recorded) = records.try_next().await?
        {
            let (path, agent, lease, at) = match recorded.decode()? {
                LeaseEvent::EditRefused { holder, target, lease, at } => {
                    (target.path, Some(holder.agent), Some(lease), at)
                }
                LeaseEvent::UnleasedEdit { path, agent, lease, at, .. } => (path, agent, lease, at),
                // The query selects no other types.
                _another => continue,
            };
            let overlaps = |of: &Target| Target::literal(&path).is_ok_and(|edited| of.overlaps(&edited));
            if of.is_none_or(overlaps) {
                let (event, position, at) = (recorded.event_type, recorded.position, rfc3339(at));
                found.push(EditView { event, path, agent, lease, position, at });
            }
        }
        Ok(found)
    }
}

/// The directory of a path: at most its first two parts.
fn directory(path: &str) -> String {
    let Some((folders, _)) = path.rsplit_once('/') else { return "./".to_owned() };
    let plain = folders.split('/').take_while(|part| !part.contains(['*', '?', '[', '{'])).take(2);
    let plain = plain.collect::<Vec<_>>().join("/");
    if plain.is_empty() { "./".to_owned() } else { format!("{plain}/") }
}

/// The most frequent names, at most `max`, and the number of the others.
fn most<'a>(names: impl Iterator<Item = &'a String>, max: usize) -> (BTreeSet<String>, usize) {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
    let n_more = counts.len().saturating_sub(max);
    (counts.into_iter().take(max).map(|(name, _)| name.clone()).collect(), n_more)
}
