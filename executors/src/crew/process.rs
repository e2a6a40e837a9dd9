//! The processes of agent programs: finds the ancestors of this one, and detects ended ones. A program starts both its
//! hooks and its MCP servers, so if it gives them no common session id, its process serves as one.
//!
//! A process is written `process:HOST:NAMESPACE:PID:STARTTIME`. The start time tells it from later ones with its
//! number.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::parent_id;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::liveness::Life;

/// The height of the search. Hooks of git may run below several tools.
const ANCESTORS_MAX: usize = 32;
/// Programs that only start another one.
const STARTERS: [&str; 12] =
    ["ash", "bash", "busybox", "dash", "env", "fish", "ksh", "nice", "sh", "sudo", "timeout", "zsh"];

/// The ancestors of this process, nearest first, without shells. Empty without `/proc`.
pub fn ancestors() -> Vec<String> {
    from(parent_id())
}

/// This process, as one of the ancestors of those that it starts. `None` without `/proc`.
#[must_use]
pub fn own() -> Option<String> {
    from(std::process::id()).into_iter().next()
}

/// A process and its ancestors.
fn from(mut pid: u32) -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (namespace, mut found) = (pid_namespace(), Vec::new());
    for _ in 0..ANCESTORS_MAX {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some(Status { name, parent, started, .. }) = Status::of(&stat).filter(|_| pid > 1) else { break };
        if !STARTERS.contains(&name) {
            found.push(format!("process:{host}:{namespace}:{pid}:{started}"));
        }
        pid = parent;
    }
    found
}

/// The life of a process; `None` for other names. It is unknown for another namespace.
pub(super) fn life(process: &str) -> Option<Life> {
    let ["process", _, namespace, pid, started] = process.split(':').collect::<Vec<_>>()[..] else { return None };
    if namespace != pid_namespace() {
        return Some(Life::Unknown);
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        let has_ended = test_kill_process(Pid::from_raw(pid.parse().ok()?)?) == Err(Errno::SRCH);
        return Some(if has_ended { Life::Dead } else { Life::Unknown });
    };
    let found = Status::of(&stat)?;
    let has_ended = found.is_zombie || found.started.to_string() != started;
    Some(if has_ended { Life::Dead } else { Life::Live })
}

/// The namespace of process numbers: the boot of the machine, since host names are not unique, and the namespace, since
/// containers have their own. A constant without `/proc`.
pub fn pid_namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    format!("{}-{namespace}", boot.split('-').next().unwrap_or_default())
}

/// The session of the program that started this process; the MCP server and the hooks of one agent program agree on it.
/// A launcher may run several agents in one process, each with its own name.
pub fn parent_session(agent: Option<&str>) -> Option<String> {
    ancestors().first().map(|process| named(process, agent))
}

/// The session of an agent in a process.
pub fn named(process: &str, agent: Option<&str>) -> String {
    agent.map_or_else(|| process.to_owned(), |agent| format!("{process}:{agent}"))
}

/// True if a process is certainly not among the `ancestors`: only those of the same machine and namespace are compared.
pub fn is_elsewhere(process: &str, ancestors: &[String]) -> bool {
    let place = |process: &str| process.rsplitn(3, ':').last().map(str::to_owned);
    ancestors.iter().any(|above| place(above) == place(process)) && ancestors.iter().all(|above| above != process)
}

/// A line of `/proc/PID/stat`.
struct Status<'a> {
    name: &'a str,
    is_zombie: bool,
    parent: u32,
    started: u64,
}

impl<'a> Status<'a> {
    /// The name may contain blanks and parentheses.
    fn of(stat: &'a str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        // The state is the first field after the name, and the third of the line.
        let field = |number: usize| after.split_whitespace().nth(number - 3);
        let (is_zombie, parent) = (field(3)? == "Z", field(4)?.parse().ok()?);
        Some(Self { name, is_zombie, parent, started: field(22)?.parse().ok()? })
    }
}
