//! The processes above this one. An agent program starts both its hooks and its MCP servers, so where it gives them no
//! common id of a session, its process is that id.

use std::fs;
use std::os::unix::process::parent_id;

use crewlog_executors::liveness::pid_namespace;

/// How far up the search goes. Hooks of git may run below several tools.
const ANCESTORS_MAX: usize = 32;
/// Programs that only start another one.
const STARTERS: [&str; 12] =
    ["ash", "bash", "busybox", "dash", "env", "fish", "ksh", "nice", "sh", "sudo", "timeout", "zsh"];

/// The sessions that the processes above this one would have, the nearest first: `process:HOST:NAMESPACE:PID:STARTTIME`,
/// without shells. The start time tells a process from a later one with the same number. Empty where there is no `/proc`.
pub fn ancestors() -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let namespace = pid_namespace();
    let (mut pid, mut found) = (parent_id(), Vec::new());
    for _ in 0..ANCESTORS_MAX {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some(Status { name, parent, started }) = Status::of(&stat).filter(|_| pid > 1) else { break };
        if !STARTERS.contains(&name) {
            found.push(format!("process:{host}:{namespace}:{pid}:{started}"));
        }
        pid = parent;
    }
    found
}

/// The session of the program that started this process; the MCP server and the hooks of one agent program agree on it.
/// A launcher may run several agents in one process, each under a name of its own.
pub fn parent_session(agent: Option<&str>) -> Option<String> {
    ancestors().first().map(|process| named(process, agent))
}

/// The session of an agent in a process.
pub fn named(process: &str, agent: Option<&str>) -> String {
    agent.map_or_else(|| process.to_owned(), |agent| format!("{process}:{agent}"))
}

/// Whether a process is proven to be none of the `ancestors`: only those of the same machine and namespace are compared.
pub fn is_elsewhere(process: &str, ancestors: &[String]) -> bool {
    let place = |process: &str| process.rsplitn(3, ':').last().map(str::to_owned);
    ancestors.iter().any(|above| place(above) == place(process)) && ancestors.iter().all(|above| above != process)
}

/// A line of `/proc/PID/stat`.
struct Status<'a> {
    name: &'a str,
    parent: u32,
    started: u64,
}

impl<'a> Status<'a> {
    /// The name may have blanks and parentheses.
    fn of(stat: &'a str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        // The state is the first field after the name, and the third of the line.
        let field = |number: usize| after.split_whitespace().nth(number - 3);
        Some(Self { name, parent: field(4)?.parse().ok()?, started: field(22)?.parse().ok()? })
    }
}
