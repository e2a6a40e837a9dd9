//! The tool calls that may write files of a worktree, as hooks saw them begin and end. They are in a file next to the log, since
//! all agents of a worktree are on one machine.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crewlog_executors::crew::worktree::Worktree;
use crewlog_planner::crew::agents::{Agent, Agents};
use crewlog_planner::crew::names::is_below;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ui::text::now;

/// How long a call without an end may be running, in microseconds: a program that was killed reports none.
const CALL_MICROS_MAX: u64 = 3_600_000_000;
/// The most bytes of a file of calls. Then it becomes the older one of two.
const FILE_BYTES_MAX: u64 = 128 * 1024;
/// The path of a call that may write any file.
pub const ANY: &str = "**";

/// The beginning or the end of a call, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct CallLine {
    at: u64,
    call: String,
    is_over: bool,
    #[serde(flatten)]
    scope: CallScope,
}

/// The names of a call's author, and the paths that it may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallScope {
    /// Its agent, session and processes, as far as a hook knows them without the log.
    pub who: Vec<String>,
    pub paths: Vec<String>,
}

/// A call that began, and may have ended.
pub struct SeenCall {
    pub call: String,
    scope: CallScope,
    began: u64,
    ended: Option<u64>,
}

/// The calls in a worktree.
#[derive(Debug)]
pub struct CallLog(PathBuf);

impl CallLog {
    pub fn of(folder: &Path, worktree: &Worktree) -> Self {
        let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, worktree.name.as_bytes()).simple();
        Self(folder.join(format!("calls-{name}")))
    }

    /// Writes the beginning or the end of a call, in one write: others append at the same time.
    pub fn add(&self, call: &str, is_over: bool, scope: CallScope) -> io::Result<()> {
        let line = CallLine { at: micros_now(), call: call.to_owned(), is_over, scope };
        if fs::metadata(&self.0).is_ok_and(|file| file.len() > FILE_BYTES_MAX) {
            fs::rename(&self.0, self.older())?;
        }
        let text = format!("{}\n", serde_json::to_string(&line)?);
        OpenOptions::new().create(true).append(true).open(&self.0)?.write_all(text.as_bytes())
    }

    /// The last calls, the oldest first. A line that cannot be read is left out.
    pub fn read(&self) -> Vec<SeenCall> {
        let text = [self.older(), self.0.clone()].map(|file| fs::read_to_string(file).unwrap_or_default()).concat();
        let mut calls: Vec<SeenCall> = Vec::new();
        for CallLine { at, call, is_over, scope } in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            let open = calls.iter_mut().rev().find(|seen| is_over && seen.call == call && seen.ended.is_none());
            match open {
                Some(seen) => seen.ended = Some(at),
                None => calls.push(SeenCall { call, scope, began: at, ended: is_over.then_some(at) }),
            }
        }
        calls
    }

    fn older(&self) -> PathBuf {
        self.0.with_extension("old")
    }
}

impl SeenCall {
    /// True if an agent made the call, or a program that acts for it: one without an agent of its own.
    fn is_of(&self, name: &str, agents: &Agents) -> bool {
        let Some(Agent { session, profile, .. }) = agents.get(name) else { return false };
        let who = &self.scope.who;
        // The calls of a subagent have its own id.
        let program = profile.program_process.as_ref().filter(|_| !name.contains('/'));
        let is_another = |who: &String| agents.joined_as(who, None).is_some_and(|other| other != name);
        who.iter().any(|who| who == name || who == session)
            || (program.is_some_and(|program| who.contains(program)) && !who.iter().any(is_another))
    }

    /// True if the call may have written a file at a time or later.
    pub fn may_have_written(&self, path: &str, from: u64) -> bool {
        let is_in_time = match self.ended {
            Some(ended) => ended >= from,
            None => micros_now().saturating_sub(self.began) < CALL_MICROS_MAX,
        };
        is_in_time && self.scope.paths.iter().any(|own| own == ANY || own == path || is_below(path, own))
    }
}

/// The author of a change of a leased file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The holder may be it.
    Holder,
    /// The holder runs no hooks, so nobody can tell.
    Unknown,
    /// Another one. `is_only` if no third call ran at the time.
    Another { is_only: bool },
}

/// Judges a change since a time under a holder's lease. `own` is the call during which it was made, if any.
pub fn author(
    calls: &[SeenCall],
    (holder, agents): (&str, &Agents),
    own: Option<&str>,
    path: &str,
    from: u64,
) -> Author {
    let others = || calls.iter().filter(|seen| own != Some(seen.call.as_str()) && !seen.scope.who.is_empty());
    let (of_holder, of_third): (Vec<_>, Vec<_>) = others().partition(|seen| seen.is_of(holder, agents));
    if of_holder.is_empty() {
        return Author::Unknown;
    }
    let may_be = |of: &[&SeenCall]| of.iter().any(|seen| seen.may_have_written(path, from));
    if may_be(&of_holder) { Author::Holder } else { Author::Another { is_only: !may_be(&of_third) } }
}

/// The time of this machine in microseconds.
pub fn micros_now() -> u64 {
    u64::try_from(now().0).unwrap_or_default()
}
