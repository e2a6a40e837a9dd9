//! The lacks of the executors of this machine for a plan.

use std::collections::BTreeSet;
use std::path::Path;

use crewlog_planner::plan::TaskPlan;

use crate::agent::{Agent, Program};
use crate::roster::Roster;

/// Names in its open tasks that nobody configured, and programs of named executors that are not on the `PATH`.
#[must_use]
pub fn lacking(roster: &Roster, tasks: &[TaskPlan], folder: &Path) -> Vec<String> {
    let open = tasks.iter().filter(|task| !task.mark.is_end() && task.command.is_none());
    let named: BTreeSet<_> = open.filter_map(|task| task.assignee.as_ref()).collect();
    let lacks = |name: &&String| match roster.agents.iter().find(|agent| agent.name == **name) {
        None => Some(format!("no executor here is called {name}: an agent of this name has to take its tasks")),
        Some(Agent { program: Program::Argv(words), .. }) => {
            let program = words.first().filter(|program| !is_found(program, folder))?;
            Some(format!("executor {name} cannot start: {program} is not on the PATH"))
        }
        Some(_of_shell) => None,
    };
    named.iter().filter_map(lacks).collect()
}

/// True if a program is a file: on the `PATH`, or below a folder if its name has a slash.
#[must_use]
pub fn is_found(program: &str, folder: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if program.contains('/') { folder.join(program).is_file() } else { on_path() }
}
