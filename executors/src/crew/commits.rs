//! Commits of leased files: recorded with the leases on their files, and compared with the leases under which the files were
//! edited.

use std::pin::pin;

use crewlog_mq::{Position, Query, Range};
use crewlog_planner::crew::leases::{self, Commit, CommittedFile, LeaseCommand, LeaseEvent, LeaseHolder};
use crewlog_planner::crew::names::is_below;
use crewlog_planner::crew::target::Target;
use futures::TryStreamExt;

use super::Refusal;
use super::state::Crew;

/// The most grants that are read back.
const GRANTS_MAX: usize = 2_000;

/// A file whose lease its editor has lost to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostFile {
    /// The file.
    pub path: String,
    /// The fencing token under which the agent edited it.
    pub token: Position,
    /// The agent that held it later, with its token.
    pub later: (String, Position),
}

impl Crew {
    /// Records a command of git. Returns the files that others lease.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn record_commit(&self, commit: Commit, paths: Vec<Target>) -> Result<Vec<CommittedFile>, Refusal> {
        let command = LeaseCommand::SeeCommit { commit: commit.clone(), paths, now: self.store.now() };
        let events = self.leases.execute(command, |_, executed| executed.events).await?;
        let files = events.into_iter().flat_map(|event| match event {
            LeaseEvent::FilesCommitted { files, .. } => files,
            _another => Vec::new(),
        });
        Ok(files.filter(|file| file.foreign(&commit).is_some()).collect())
    }

    /// The files that an agent once held alone, does not hold now, and that another held since.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn lost_files(&self, own: &LeaseHolder, paths: &[Target]) -> Result<Vec<LostFile>, Refusal> {
        let now = self.store.now();
        let mut open: Vec<(&Target, Option<(String, Position)>)> = {
            let leases = self.leases().await?;
            let is_held = |path: &&Target| {
                let mut over = leases.overlapping(path, now).filter(|(_, lease)| lease.holder.worktree == own.worktree);
                over.any(|(_, lease)| is_below(&own.agent, &lease.holder.agent))
            };
            paths.iter().filter(|path| !is_held(path)).map(|path| (path, None)).collect()
        };
        let mut lost = Vec::new();
        let query = Query::aggregate(leases::STREAM, &self.project).of_types(["LeasesGranted"]);
        let mut grants = pin!(self.store.records(&query, Range::default().backwards()));
        for _ in 0..GRANTS_MAX {
            if open.is_empty() {
                break;
            }
            let Some(recorded) = grants.try_next().await? else { break };
            let LeaseEvent::LeasesGranted { request, .. } = recorded.decode()? else { continue };
            if !request.is_exclusive || request.holder.worktree != own.worktree {
                continue;
            }
            let is_own = is_below(&own.agent, &request.holder.agent);
            open.retain_mut(|(path, later)| {
                if !request.targets.iter().any(|target| target.overlaps(path)) {
                    return true;
                }
                if !is_own {
                    later.get_or_insert_with(|| (request.holder.agent.clone(), recorded.position));
                    return true;
                }
                let found =
                    later.take().map(|later| LostFile { path: path.path.clone(), token: recorded.position, later });
                lost.extend(found);
                false
            });
        }
        Ok(lost)
    }
}
