//! The processes of a supervisor's session, which Linux lists. Of these the supervisor ends those of a run, recognised by
//! their variable [`RUN`], and a worker ends all after their supervisor was lost.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::leaders::Leaders;
use super::protocol::{RUN, mark_of_all};

/// How long to look at a process that loads a program.
const LOADING_MS_MAX: u32 = 300;

/// Every process, including ended ones that nobody has waited for.
fn pids() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| pid_of(entry.file_name().to_str()?))
}

/// For the supervisor: signals the descendants of a command that have left its group for another of the session, as `timeout`
/// does, or of any session.
pub(super) fn signal_descendants(leader: Pid, signal: Signal, in_any_session: bool) {
    let (mut found, mut next) = (vec![leader], 0);
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        if group(pid, getpid()).map_or(in_any_session, |group| group != i64::from(leader.as_raw_pid())) {
            let _ = kill_process(pid, signal);
        }
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        found.extend(threads.filter_map(|thread| pids_in(thread.path().join("children"))).flatten());
    }
}

/// For the supervisor, after the group of a run is gone, or with no mark after all are: kills the rest and waits for it. A killed
/// process hands its children to the supervisor before it can be waited for, so each round has something to wait for or is the
/// last. A daemon, which has a session of its own, continues, unless all are to end.
pub(super) fn end_strays(mark: Option<&str>, leaders: &Leaders, in_any_session: bool) {
    loop {
        let leaders = leaders.lock();
        let is_stray = |pid: &Pid| {
            // One that is ending (`PF_EXITING`) shows no variables, and until it has ended its children are not here.
            let is_ending = || stat(*pid, [9]).is_some_and(|[flags]| flags & 4 != 0);
            let is_of_run = || mark.is_none_or(|mark| is_in_run(*pid, |run| run == mark));
            let is_near = || in_any_session || group(*pid, getpid()).is_some();
            !leaders.contains(pid) && (is_ending() || is_near() && is_of_run())
        };
        let strays: Vec<Pid> = children().into_iter().filter(is_stray).collect();
        drop(leaders);
        if strays.is_empty() {
            return;
        }
        for pid in strays {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// For the worker, which cannot wait for them: kills the members, and the processes of runs that end whole, until a round
/// finds no new one.
pub(super) fn end(supervisor: Pid) {
    let (mut killed, mark) = (HashSet::new(), mark_of_all(supervisor.as_raw_pid()));
    loop {
        let is_member = |pid: &Pid| group(*pid, supervisor).is_some() || is_in_run(*pid, |run| run.starts_with(&mark));
        let fresh: Vec<Pid> = pids().filter(is_member).filter(|pid| killed.insert(*pid)).collect();
        if fresh.is_empty() {
            return;
        }
        for pid in fresh {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The children of this process, which starts them all on its main thread.
fn children() -> Vec<Pid> {
    let own = getpid();
    // Some kernels have no such list.
    pids_in(format!("/proc/self/task/{own}/children").into())
        .unwrap_or_else(|| pids().filter(|pid| group(*pid, own).is_some()).collect())
}

fn pids_in(file: PathBuf) -> Option<Vec<Pid>> {
    let pids = std::fs::read_to_string(file).ok()?;
    Some(pids.split_whitespace().filter_map(pid_of).collect())
}

/// True if one of the marks of a process is meant. It has those of all runs around it.
fn is_in_run(pid: Pid, is_meant: impl Fn(&str) -> bool) -> bool {
    let environment = environment(pid);
    let mut variables = environment.split(|byte| *byte == 0);
    let marks = variables.find_map(|found| found.strip_prefix(RUN.as_bytes())?.strip_prefix(b"="));
    String::from_utf8_lossy(marks.unwrap_or_default()).split(',').any(is_meant)
}

/// The variables of a process, none if they may not be read. While it loads a program, Linux shows none or a part of them:
/// such a process is looked at again, for a while, since its disk may not answer.
fn environment(pid: Pid) -> Vec<u8> {
    let mut last = Vec::new();
    for _ in 0..LOADING_MS_MAX {
        match std::fs::read(format!("/proc/{pid}/environ")) {
            Ok(read) if n_bytes(pid) != Some(read.len() as u64) => last = read,
            read => return read.unwrap_or_default(),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    last
}

/// The size of the variables of a process, 0 once it has ended; `None` while it loads a program, whose code Linux sets last.
fn n_bytes(pid: Pid) -> Option<u64> {
    let [memory, code, begin, end] = stat(pid, [23, 26, 50, 51]).unwrap_or_default();
    if memory > 0 && code == 0 { None } else { u64::try_from(end - begin).ok() }
}

fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// The process group of a process of a supervisor's session.
fn group(pid: Pid, supervisor: Pid) -> Option<i64> {
    let [group, session] = stat(pid, [5, 6])?;
    (pid != supervisor && session == i64::from(supervisor.as_raw_pid())).then_some(group)
}

/// Numbers of `/proc/<pid>/stat` by their places in `man 5 proc_pid_stat`. The name in the second place may hold anything.
fn stat<const N: usize>(pid: Pid, places: [usize; N]) -> Option<[i64; N]> {
    let stat = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(places.map(|place| fields.get(place - 3).and_then(|field| field.parse().ok()).unwrap_or_default()))
}
