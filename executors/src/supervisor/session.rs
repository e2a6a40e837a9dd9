//! The processes of a supervisor's session, which Linux lists. Of these the supervisor ends those of a run, recognised by
//! their variable [`RUN`], and a worker ends all after their supervisor was lost.

use std::collections::HashSet;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::leaders::Leaders;
use super::protocol::{RUN, mark_of_all};

/// A process of the supervisor's session.
struct Member {
    group: i32,
}

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
        let member = member(pid, getpid());
        if member.as_ref().map_or(in_any_session, |member| member.group != leader.as_raw_pid()) {
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
            let has_ended = || matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(Some(_)));
            let is_of_run = || mark.is_none_or(|mark| is_in_run(*pid, |run| run == mark));
            let is_near = || in_any_session || member(*pid, getpid()).is_some();
            !leaders.contains(pid) && !has_ended() && is_near() && is_of_run()
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
        let is_member = |pid: &Pid| member(*pid, supervisor).is_some() || is_in_run(*pid, |run| run.starts_with(&mark));
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
    let listed = pids_in(format!("/proc/self/task/{own}/children").into());
    listed.unwrap_or_else(|| pids().filter(|pid| member(*pid, own).is_some()).collect())
}

fn pids_in(file: PathBuf) -> Option<Vec<Pid>> {
    let pids = std::fs::read_to_string(file).ok()?;
    Some(pids.split_whitespace().filter_map(pid_of).collect())
}

/// True if one of the marks of a process is meant. It has those of all runs around it.
fn is_in_run(pid: Pid, is_meant: impl Fn(&str) -> bool) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    let marks = variables.find_map(|found| found.strip_prefix(RUN.as_bytes())?.strip_prefix(b"="));
    String::from_utf8_lossy(marks.unwrap_or_default()).split(',').any(is_meant)
}

fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// Reads `/proc/<pid>/stat`: `pid (name) state parent group session ...`, where the name may hold anything.
fn member(pid: Pid, supervisor: Pid) -> Option<Member> {
    let stat = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let _state = fields.next()?;
    let mut numbers = fields.map_while(|field| field.parse::<i32>().ok());
    let (_parent, group, session) = (numbers.next()?, numbers.next()?, numbers.next()?);
    (pid != supervisor && session == supervisor.as_raw_pid()).then_some(Member { group })
}
