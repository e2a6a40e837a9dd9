//! Notices changes of leased files by other means than a tool that names them: compares the files that others lease before
//! and after each shell command.

use std::os::unix::fs::MetadataExt;

use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Caller, Crew, Refusal};
use crewlog_planner::crew::leases::{By, ForeignEdit, LeaseCommand, LeaseHolder};
use crewlog_planner::crew::names::is_below;
use crewlog_planner::crew::target::Target;

use super::calls::{Author, CallLog, CallScope, author, micros_now};
use super::dialect::Moment;
use super::edits::Hit;
use super::identity::Hook;
use super::notes::{Before, LeasedFile, hash, key};
use super::{facts, git};

/// The most files that are compared. A lease that matches more than are left is not.
const FILES_MAX: usize = 200;
/// The most candidates for a pattern.
const CANDIDATES_MAX: usize = 2_000;
/// How long ago a file may have been deleted when a watcher misses it, in microseconds.
const DELETED_MICROS: u64 = 3_000_000;
/// The call of a line that says which changes are in the log.
const RECORDED: &str = "recorded";

/// The files of the exclusive leases in a worktree, with the sessions of the holders.
async fn leased(crew: &Crew, worktree: &Worktree) -> Result<Vec<LeasedFile>, Refusal> {
    let (leases, agents, now) = (crew.leases().await?, crew.agents().await?, crew.store().now());
    let here = leases.iter().filter(|(_, lease)| {
        lease.holder.worktree == worktree.name && lease.is_exclusive && now <= lease.until && !lease.target.is_thing()
    });
    let session = |holder: &LeaseHolder| agents.get(&holder.agent).map_or_else(String::new, |it| it.session.clone());
    let here: Vec<_> = here.map(|(lease, held)| (lease, held.target.clone(), session(&held.holder))).collect();
    drop((leases, agents));
    let is_one = |target: &Target| !target.is_pattern && !worktree.root.join(&target.path).is_dir();
    let (one, many): (Vec<_>, Vec<_>) = here.into_iter().partition(|(_, target, _)| is_one(target));
    let one = one.into_iter().map(|(lease, target, session)| LeasedFile { path: target.path, lease, session });
    let mut files: Vec<_> = one.take(FILES_MAX).collect();
    let all = if many.is_empty() { Vec::new() } else { git::files(&worktree.root).await.unwrap_or_default() };
    for (lease, target, session) in many {
        let stem = target.stem();
        let below = all.iter().filter(|path| stem.is_empty() || is_below(path, stem)).take(CANDIDATES_MAX);
        let is_in = |path: &&String| Target::literal(path).is_ok_and(|path| target.overlaps(&path));
        let found: Vec<_> = below.filter(is_in).take(FILES_MAX + 1).cloned().collect();
        if files.len() + found.len() <= FILES_MAX {
            files.extend(found.into_iter().map(|path| LeasedFile { path, lease, session: session.clone() }));
        }
    }
    Ok(files)
}

impl Hook<'_> {
    /// Lists the leased files of the worktree for this and later calls, and notes the states of those of others.
    pub async fn list_leased(&self) -> Result<(), Refusal> {
        let Some(notes) = &self.origin.notes else { return Ok(()) };
        let files = leased(self.crew, &self.here).await?;
        // Without notes this call is not compared; the tool must run.
        let _ = notes.list(&self.here, self.call, files);
        Ok(())
    }

    /// The files of others that changed during the call.
    pub fn changed(&self) -> Before {
        let notes = self.origin.notes.as_ref().filter(|_| matches!(self.call.moment, Moment::After(_)));
        notes.map_or_else(Before::default, |notes| notes.changed(&self.here, self.call))
    }

    /// Records changes that no call of their holders explains. Returns the leases on them, and sentences about changes that
    /// nobody can judge.
    pub async fn judge(&self, caller: &Caller, changed: Before) -> Result<(Vec<Hit>, Vec<String>), Refusal> {
        let (mut hits, mut unknown) = (Vec::new(), Vec::new());
        let Some(notes) = self.origin.notes.as_ref().filter(|_| !changed.is_empty()) else {
            return Ok((hits, unknown));
        };
        let calls = notes.calls(&self.here);
        let seen = calls.read();
        for (LeasedFile { path, lease, .. }, before) in changed.files {
            let Ok(target) = Target::literal(&path) else { continue };
            let (leases, agents, now) = (self.crew.leases().await?, self.crew.agents().await?, self.crew.store().now());
            let own = LeaseHolder { agent: caller.agent.clone(), worktree: self.here.name.clone() };
            let mut over = leases.in_the_way(&own, std::slice::from_ref(&target), true, false, now).into_iter();
            let Some(blocked) = over.find(|blocked| blocked.by == By::Lease(lease)) else { continue };
            let holder = blocked.holder.agent.clone();
            let author = author(&seen, (&holder, &agents), Some(&key(self.call)), &path, changed.at);
            let hit = Hit::of(&leases, blocked);
            drop((leases, agents));
            let is_only = match author {
                Author::Holder => continue,
                Author::Unknown => {
                    unknown.push(facts::unjudged(&path, &holder));
                    continue;
                }
                Author::Another { is_only } => is_only,
            };
            let is_at_risk = match before.and_then(|before| before.content) {
                Some(content) => git::committed(&self.here.root, &path).await.is_none_or(|head| hash(&head) != content),
                None => false,
            };
            let agent = is_only.then(|| caller.agent.clone());
            let edit = ForeignEdit { worktree: self.here.name.clone(), path: target, agent, lease, is_at_risk };
            self.crew.record_edit(|now| LeaseCommand::SeeForeignEdit { edit, now }).await?;
            // The watcher need not record it.
            let _ = calls.add(RECORDED, true, CallScope { who: Vec::new(), paths: vec![path] });
            hits.push(hit);
        }
        Ok((hits, unknown))
    }
}

/// The lease that a change of a file violates which no hook has made: nobody's work explains it, and no hook has recorded it.
/// The outer value is `None` if somebody may have made it under a lease.
pub async fn violated(
    crew: &Crew,
    calls: &CallLog,
    here: &Worktree,
    path: &Target,
) -> Result<Option<Option<u64>>, Refusal> {
    let (leases, agents, now) = (crew.leases().await?, crew.agents().await?, crew.store().now());
    let over = leases.overlapping(path, now).filter(|(_, lease)| lease.holder.worktree == here.name);
    let over: Vec<_> = over.map(|(number, lease)| (number, lease.is_exclusive, lease.holder.agent.clone())).collect();
    let (number, holder) = match &over[..] {
        [] => return Ok(Some(None)),
        [(number, true, holder)] => (*number, holder),
        _shared => return Ok(None),
    };
    let seen = calls.read();
    let changed = here
        .root
        .join(&path.path)
        .symlink_metadata()
        .map(|found| found.ctime() * 1_000_000 + found.ctime_nsec() / 1_000);
    // A deleted file has no time: it went since the last comparison.
    let from =
        changed.map_or_else(|_| micros_now().saturating_sub(DELETED_MICROS), |at| u64::try_from(at).unwrap_or(0));
    let is_recorded = seen.iter().any(|seen| seen.call == RECORDED && seen.may_have_written(&path.path, from));
    let author = author(&seen, (holder, &agents), None, &path.path, from);
    let is_violated = !is_recorded && matches!(author, Author::Another { .. });
    Ok(is_violated.then_some(Some(number)))
}
