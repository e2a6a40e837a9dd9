//! The files that a tool call changes, as targets of leases, and other agents' leases on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crewlog_executors::crew::worktree::{Worktree, real};
use crewlog_executors::crew::{Crew, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{BLOCKED_MAX, Blocked, By, LeaseHolder, Leases};
use crewlog_planner::crew::target::{Target, TargetError};

use super::git;
use super::touches::Edits;

/// The changes in one worktree.
pub struct Changes {
    pub worktree: Worktree,
    files: Vec<File>,
    /// Paths from its root that cannot be leased, with the reason.
    unleasable: BTreeMap<String, String>,
    /// True if the changes are already made, and a commit would record them.
    pub is_commit: bool,
}

/// A file, a folder or a pattern that changes.
struct File {
    target: Target,
    /// True if it can be leased for an edit: one file, not a folder or a pattern.
    is_one: bool,
}

impl File {
    fn all() -> Self {
        Self { target: Target { path: "**".to_owned(), is_pattern: true }, is_one: false }
    }
}

/// Another agent's lease on a changing file.
pub struct Hit {
    pub blocked: Blocked,
    /// The reason given by its holder.
    pub reason: String,
}

/// The changes named in a tool call, by worktree of the repository. Files elsewhere have no leases.
pub async fn changes(home: &Worktree, folder: &Path, edits: &Edits) -> Vec<Changes> {
    let mut found = BTreeMap::new();
    for touch in &edits.touches {
        let path = touch.in_folder.as_ref().filter(|_| folder.join(&touch.path).is_dir()).unwrap_or(&touch.path);
        let written = path.to_string_lossy();
        let around = home.around_path(folder, path).or_else(|| home.of_repository(&folder.join(path)));
        let Some(worktree) = around else {
            // `rm -rf ..`, and `../*`
            let is_all = touch.is_pattern && path.ends_with("*");
            let above = if is_all { path.parent() } else { Some(path.as_path()) };
            if above.is_some_and(|above| home.root.starts_with(real(&folder.join(above)))) {
                changes_in(&mut found, home.clone()).files.push(File::all());
            } else if let Some(link) = home.left_by(&folder.join(path)) {
                let why = format!("{written} leaves the repository through the link {link}");
                changes_in(&mut found, home.clone()).unleasable.insert(link, why);
            }
            continue;
        };
        let target = match touch.is_pattern {
            true => worktree.target(folder, &written),
            false => worktree.literal(folder, &written),
        };
        let name = worktree.below_root(folder, &written).unwrap_or_default();
        let changes = changes_in(&mut found, worktree);
        match target {
            Ok(target) => {
                let is_one = !target.is_pattern && !folder.join(path).is_dir();
                changes.files.push(File { target, is_one });
            }
            // `git restore .`
            Err(TargetError::TooBroad { .. } | TargetError::TooComplex { .. }) => {
                changes.files.push(File::all());
            }
            Err(error) => drop(changes.unleasable.insert(name, error.to_string())),
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    for commit in edits.commits.iter().map(|commit| folder.join(commit)).collect::<BTreeSet<_>>() {
        // A submodule has its own index, with names relative to its own root.
        let Some(worktree) = home.of_path(&commit, Path::new(".git")) else { continue };
        // Without a repository git itself refuses the commit.
        found.push(Changes::of_commit(worktree, &git::staged(&commit).await.unwrap_or_default()));
    }
    found.retain(|changes| !changes.files.is_empty() || !changes.unleasable.is_empty());
    found
}

fn changes_in(found: &mut BTreeMap<String, Changes>, worktree: Worktree) -> &mut Changes {
    found.entry(worktree.name.clone()).or_insert_with(|| Changes::none(worktree))
}

impl Changes {
    /// The files of a commit, as printed by git.
    pub fn of_commit(worktree: Worktree, names: &[String]) -> Self {
        let mut changes = Self { is_commit: true, ..Self::none(worktree) };
        for name in names {
            match Target::literal(name) {
                Ok(target) => changes.files.push(File { target, is_one: false }),
                Err(error) => drop(changes.unleasable.insert(name.clone(), error.to_string())),
            }
        }
        changes
    }

    fn none(worktree: Worktree) -> Self {
        Self { worktree, files: Vec::new(), unleasable: BTreeMap::new(), is_commit: false }
    }

    /// Fails for a path that cannot be leased, unless git ignores it.
    pub async fn check(&self) -> Result<(), Refusal> {
        let names = self.unleasable.keys().map(String::as_str).collect();
        let ignored = git::ignored(&self.worktree.root, &names).await;
        let why = self.unleasable.iter().find(|(name, _)| !ignored.contains(*name)).map(|(_, why)| why.clone());
        why.map_or(Ok(()), |why| Err(CrewError::Invalid(why).into()))
    }

    /// The identity under which an agent makes them.
    pub fn holder(&self, agent: &str) -> LeaseHolder {
        LeaseHolder { agent: agent.to_owned(), worktree: self.worktree.name.clone() }
    }

    /// The single files on which an agent has no exclusive lease of its own, and the leases of others that block the
    /// changes. First ends the leases of agents that are dead or have left. Files that git ignores have no leases.
    pub async fn compared(
        &self,
        crew: &Crew,
        agent: &str,
        is_strict: bool,
    ) -> Result<(Vec<Target>, Vec<Hit>), Refusal> {
        let (mut leases, now, holder) = (crew.leases().await?, crew.store().now(), self.holder(agent));
        let targets: Vec<_> = self.files.iter().map(|file| file.target.clone()).collect();
        if !leases.in_the_way(&holder, &targets, true, is_strict, now).is_empty() {
            drop(leases);
            crew.bury().await?;
            leases = crew.leases().await?;
        }
        let is_own = |target: &Target| {
            let mut over = leases.overlapping(target, now);
            over.any(|(_, lease)| lease.is_exclusive && lease.holder == holder)
        };
        let unleased = self.files.iter().filter(|file| file.is_one && !is_own(&file.target));
        let mut unleased: Vec<_> = unleased.map(|file| file.target.clone()).collect();
        let blocked = leases.in_the_way(&holder, &targets, true, is_strict, now).into_iter().take(BLOCKED_MAX);
        let mut hits: Vec<_> = blocked.map(|blocked| Hit::of(&leases, blocked)).collect();
        drop(leases);
        let asked = hits.iter().map(|hit| &hit.blocked.asked).chain(&unleased);
        let paths: BTreeSet<_> = asked.filter(|target| !target.is_pattern).map(|target| &*target.path).collect();
        let ignored = git::ignored(&self.worktree.root, &paths).await;
        unleased.retain(|target| !ignored.contains(&target.path));
        hits.retain(|hit| !ignored.contains(&hit.blocked.asked.path));
        Ok((unleased, hits))
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
