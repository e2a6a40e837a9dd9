//! Agent programs as processes: runs one to its end, and finds those that are open in a repository.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crewlog_executors::supervisor::{Spec, Supervisor, SupervisorProgram};

use super::places::Places;
use crate::cli::programs::Host;
use crate::ui::text::one_line;

const ERROR_CHARS_MAX: usize = 100;

/// A program to run in the repository.
pub fn spec(places: &Places, argv: Vec<String>) -> Spec {
    Spec { argv, cwd: Some(places.root.clone()), ends_all: true, ..Spec::default() }
}

/// Runs a program and returns its output. An exit code other than 0 is an error. After the time limit the program is
/// killed with all its children.
pub async fn run(spec: Spec, limit: Duration) -> Result<String, String> {
    let program = SupervisorProgram::this_binary(["supervise"]).map_err(|error| error.to_string())?;
    Supervisor::new(program, None).output(spec, limit).await.map_err(|reason| one_line(&reason, ERROR_CHARS_MAX))
}

/// The processes of these programs whose working directory is in the folder, as `claude (process 12)`. Empty without `/proc`.
pub fn open_sessions(hosts: &[Host], folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let open = processes.filter_map(|process| {
        let (pid, path) = (process.file_name().to_string_lossy().parse::<u32>().ok()?, process.path());
        let words = fs::read(path.join("cmdline")).ok()?;
        let is_in = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        // A script is the first argument of its interpreter.
        let mut names =
            words.split(|byte| *byte == 0).take(2).filter_map(|word| word.rsplit(|byte| *byte == b'/').next());
        let host = names.find_map(|name| hosts.iter().find(|host| host.as_ref().as_bytes() == name))?;
        let status = fs::read_to_string(path.join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()?;
        is_in.then_some((pid, parent, *host))
    });
    let mut open: Vec<_> = open.collect();
    open.sort();
    // A launcher and the program that it has started are one session.
    let is_started = |parent: u32| open.iter().any(|(pid, ..)| *pid == parent);
    let sessions = open.iter().filter(|(_, parent, _)| !is_started(*parent));
    sessions.map(|(pid, _, host)| format!("{} (process {pid})", host.as_ref())).collect()
}
