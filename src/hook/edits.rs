//! The files that a tool call changes, as leases name them, and the leases of others on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crewlog_planner::crew::agents::is_below;
use crewlog_planner::crew::leases::{BLOCKED_MAX, Blocked, By, Holder, Leases};
use crewlog_planner::crew::target::{Target, TargetError};

use super::{Edits, Touch, TouchKind, git};
use crate::crew::worktree::Worktree;

/// The changes in one worktree.
pub struct Changes {
    pub worktree: Worktree,
    pub files: Vec<File>,
    /// True if something names the whole worktree: `git restore .`.
    pub is_everything: bool,
}

/// A file, a folder or a pattern that changes.
pub struct File {
    pub target: Target,
    /// True if it can be leased for an edit: one file, not a folder or a pattern.
    pub is_one: bool,
}

/// A lease of another on a file that changes.
pub struct Hit {
    pub blocked: Blocked,
    /// The words of its holder.
    pub reason: String,
}

/// The changes that a tool call names, by worktree of the repository. Files elsewhere have no leases.
pub fn changes(home: &Worktree, folder: &Path, edits: &Edits) -> Vec<Changes> {
    let mut found: BTreeMap<String, Changes> = BTreeMap::new();
    for touch in edits.touches.iter().filter(|touch| !is_other_reading(touch, &edits.touches, folder)) {
        let Some(worktree) = home.around_path(folder, &touch.path) else { continue };
        let (path, written) = (folder.join(&touch.path), touch.path.to_string_lossy());
        let target = match touch.is_pattern {
            true => worktree.target(folder, &written),
            false => worktree.literal(folder, &written),
        };
        let name = worktree.name().to_owned();
        let new = || Changes { worktree, files: Vec::new(), is_everything: false };
        match target {
            Ok(target) => {
                let is_one = !target.is_pattern && !path.is_dir();
                found.entry(name).or_insert_with(new).files.push(File { target, is_one });
            }
            Err(TargetError::TooBroad { .. } | TargetError::TooComplex { .. }) => {
                found.entry(name).or_insert_with(new).is_everything = true;
            }
            // No lease can be on it.
            Err(
                TargetError::Empty
                | TargetError::Control { .. }
                | TargetError::Outside { .. }
                | TargetError::TooLong { .. },
            ) => {}
        }
    }
    found.into_values().collect()
}

/// `mv A B` is listed as B and B/A: whether B is a folder tells which of them is meant.
fn is_other_reading(touch: &Touch, all: &[Touch], folder: &Path) -> bool {
    if touch.kind != TouchKind::MoveTo || touch.is_pattern {
        return false;
    }
    let is_folder = |path: &Path| folder.join(path).is_dir();
    let is_listed = |path: &Path| all.iter().any(|other| other.kind == TouchKind::MoveTo && other.path == path);
    let is_below_a_file = touch.path.parent().is_some_and(|parent| is_listed(parent) && !is_folder(parent));
    let is_above = all.iter().any(|other| other.kind == TouchKind::MoveTo && other.path.parent() == Some(&touch.path));
    is_below_a_file || (is_above && is_folder(&touch.path))
}

/// The files in the index of the folders in which `git commit` runs.
pub async fn staged(home: &Worktree, folder: &Path, commits: &[PathBuf]) -> Vec<Changes> {
    let mut found = Vec::new();
    for commit in commits.iter().map(|commit| folder.join(commit)).collect::<BTreeSet<_>>() {
        // A submodule has an index of its own, with names from its own root.
        let Some(worktree) = home.of_path(&commit, Path::new(".git")) else { continue };
        // Without a repository git refuses the commit itself.
        let names = git::staged(&commit, false).await.unwrap_or_default();
        found.push(Changes { files: literals(&names), worktree, is_everything: false });
    }
    found
}

/// Paths from the root of a worktree, as git prints them.
pub fn literals(names: &[String]) -> Vec<File> {
    let targets = names.iter().filter_map(|name| Target::literal(name).ok());
    targets.map(|target| File { target, is_one: true }).collect()
}

impl Changes {
    /// As whom an agent makes them.
    pub fn holder(&self, agent: &str) -> Holder {
        Holder { agent: agent.to_owned(), worktree: self.worktree.name().to_owned() }
    }

    pub fn targets(&self) -> Vec<Target> {
        self.files.iter().map(|file| file.target.clone()).collect()
    }

    /// The leases of others that keep an agent from making them.
    pub fn hits(&self, leases: &Leases, agent: &str, is_strict: bool, now: crewlog_mq::Timestamp) -> Vec<Hit> {
        let holder = self.holder(agent);
        let mut blocked = leases.in_the_way(&holder, &self.targets(), true, is_strict, now);
        if self.is_everything {
            let others = leases.iter().filter(|(_, lease)| {
                now <= lease.until
                    && !is_below(agent, &lease.holder.agent)
                    && (is_strict || lease.holder.worktree == holder.worktree)
            });
            blocked.extend(others.take(BLOCKED_MAX).map(|(number, lease)| Blocked {
                asked: lease.target.clone(),
                by: By::Lease(number),
                holder: lease.holder.clone(),
                target: lease.target.clone(),
                is_exclusive: lease.is_exclusive,
                until: lease.until,
                task: lease.task.clone(),
            }));
        }
        blocked.truncate(BLOCKED_MAX);
        blocked.into_iter().map(|blocked| Hit::of(leases, blocked)).collect()
    }

    /// The single files on which an agent has no exclusive lease of its own.
    pub fn unleased(&self, leases: &Leases, agent: &str, now: crewlog_mq::Timestamp) -> Vec<Target> {
        let holder = self.holder(agent);
        let is_own = |target: &Target| {
            let mut over = leases.overlapping(target, now);
            over.any(|(_, lease)| lease.is_exclusive && lease.holder == holder)
        };
        let targets = self.files.iter().filter(|file| file.is_one).map(|file| &file.target);
        targets.filter(|target| !is_own(target)).cloned().collect()
    }

    /// Those of the targets that git ignores.
    pub async fn ignored<'a>(&self, targets: impl Iterator<Item = &'a Target>) -> BTreeSet<String> {
        let paths: BTreeSet<_> = targets.filter(|target| !target.is_pattern).map(|target| &*target.path).collect();
        if paths.is_empty() { BTreeSet::new() } else { git::ignored(self.worktree.root(), &paths).await }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.is_everything
    }
}

impl Hit {
    pub fn of(leases: &Leases, blocked: Blocked) -> Self {
        let reason = match blocked.by {
            By::Lease(number) => leases.get(number).map(|lease| lease.reason.clone()).unwrap_or_default(),
            By::Waiting(_) => String::new(),
        };
        Self { blocked, reason }
    }
}
