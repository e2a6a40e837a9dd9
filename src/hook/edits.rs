//! The files that a tool call changes, as targets of leases, and other agents' leases on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crewlog_executors::crew::worktree::{Worktree, real};
use crewlog_executors::crew::{Crew, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{BLOCKED_MAX, Blocked, By, LeaseHolder, Leases};
use crewlog_planner::crew::names::is_below;
use crewlog_planner::crew::target::{Target, TargetError};
use tokio::time::timeout;

use super::git;
use super::in_time::RECORD_WAIT;
use super::touches::{Edits, Extent, Touch, Tree};

/// The changes in one worktree.
pub struct Changes {
    pub worktree: Worktree,
    files: Vec<File>,
    /// Paths from its root that cannot be leased, with the reason.
    unleasable: BTreeMap<String, String>,
    /// True if the changes are already made, and a commit would record them.
    pub is_commit: bool,
    /// How far a command of git reaches that changes whatever differs.
    pub extent: Option<Extent>,
    /// The files among them on which the crew's rules rest.
    pub of_crewlog: Vec<String>,
    /// Why some changes are not known.
    fault: Option<String>,
}

/// The files and folders on which the rules rest, from the root of a worktree: the log, the configuration, and the files that
/// have our hooks.
const OF_CREWLOG: [&str; 13] = [
    ".crewlog",
    "crewlog.toml",
    ".git/hooks/pre-commit",
    ".git/hooks/pre-merge-commit",
    ".git/hooks/pre-push",
    ".git/hooks/post-commit",
    ".git/hooks/post-checkout",
    ".git/hooks/post-merge",
    ".git/hooks/post-rewrite",
    ".claude/settings.json",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".opencode/plugin/crewlog.js",
];

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
    let exists = |tree: &&Tree| tree.unless.as_ref().is_some_and(|path| folder.join(path).symlink_metadata().is_ok());
    let (files, trees) = edits.trees.iter().partition::<Vec<_>, _>(exists);
    let files = files.into_iter().filter_map(|tree| tree.unless.clone()).map(Touch::of);
    let roots = home.others();
    for touch in edits.touches.iter().cloned().chain(files) {
        let path = touch.in_folder.as_ref().filter(|_| folder.join(&touch.path).is_dir()).unwrap_or(&touch.path);
        let written = path.to_string_lossy();
        // A change of the root of another worktree, or of a folder above it, changes all of that.
        let above = real(&folder.join(path));
        for other in roots.iter().filter(|other| !touch.is_pattern && other.root.starts_with(&above)) {
            changes_in(&mut found, other.clone()).files.push(File::all());
        }
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
        changes.of_crewlog.extend(is_of_crewlog(&changes.worktree.root, &name).then(|| name.clone()));
        match target {
            Ok(target) => {
                let is_one = !target.is_pattern && !folder.join(path).is_dir();
                changes.files.push(File { target, is_one });
            }
            // `git restore .`
            Err(TargetError::TooBroad { .. } | TargetError::TooComplex { .. }) => {
                changes.files.push(File::all());
            }
            Err(error) => changes.add_unleasable(name, error.to_string()),
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    for Tree { folder: at, extent, .. } in trees {
        // Another repository has leases of its own.
        let Some(worktree) = home.of_path(&folder.join(at), Path::new(".git")) else { continue };
        let all = Changes { files: vec![File::all()], extent: Some(*extent), ..Changes::none(worktree) };
        found.push(all);
    }
    for commit in edits.commits.iter().map(|commit| folder.join(commit)).collect::<BTreeSet<_>>() {
        // A submodule has its own index, with names relative to its own root.
        let Some(worktree) = home.of_path(&commit, Path::new(".git")) else { continue };
        found.push(match git::staged(&commit).await {
            Ok(names) => Changes::of_commit(worktree, &names),
            Err(error) => {
                let why = format!("the files of the commit are not known: {error}");
                Changes { is_commit: true, fault: Some(why), ..Changes::none(worktree) }
            }
        });
    }
    found.retain(|changes| !changes.files.is_empty() || !changes.unleasable.is_empty() || changes.fault.is_some());
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
                Err(error) => changes.add_unleasable(name.clone(), error.to_string()),
            }
        }
        changes
    }

    fn none(worktree: Worktree) -> Self {
        Self {
            worktree,
            files: Vec::new(),
            unleasable: BTreeMap::new(),
            is_commit: false,
            extent: None,
            of_crewlog: Vec::new(),
            fault: None,
        }
    }

    /// A file whose name no lease can have may still be under one.
    fn add_unleasable(&mut self, name: String, why: String) {
        self.files.push(File { target: likeness(&name), is_one: false });
        self.unleasable.insert(name, why);
    }

    /// Fails for a path that cannot be leased, unless git ignores it, and where changes are not known.
    pub async fn check(&self) -> Result<(), Refusal> {
        self.fault.clone().map_or(Ok(()), |why| Err(CrewError::Invalid(why)))?;
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
        let is_strict = is_strict || self.extent == Some(Extent::Repository);
        let (mut leases, now, holder) = (crew.leases().await?, crew.store().now(), self.holder(agent));
        let targets: Vec<_> = self.files.iter().map(|file| file.target.clone()).collect();
        if !leases.in_the_way(&holder, &targets, true, is_strict, now).is_empty() {
            drop(leases);
            // Where this cannot be written, they count.
            let _ = timeout(RECORD_WAIT, crew.bury()).await;
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

/// True for a file on which the rules rest. A program's settings count once they have our hook.
fn is_of_crewlog(root: &Path, name: &str) -> bool {
    let is_it = |own: &&&str| name == **own || is_below(name, own) || is_below(own, name);
    let has_hook = |own: &str| std::fs::read_to_string(root.join(own)).is_ok_and(|text| text.contains("crewlog"));
    OF_CREWLOG.iter().find(is_it).is_some_and(|own| own.contains("crewlog") || has_hook(own))
}

/// A target that overlaps with every lease that a file of this name can be under: what no target may have is any character,
/// and a path that is too long ends early.
fn likeness(name: &str) -> Target {
    let any = |char: char| char.is_control() || "*?[]{}\\".contains(char);
    let path: String = name.chars().map(|char| if any(char) { '?' } else { char }).collect();
    let mut target = Target { is_pattern: path.contains('?'), path };
    while Target::written(&target.path).is_err() {
        match target.path.rsplit_once('/') {
            Some((folder, _)) => target.path = folder.to_owned(),
            None => return File::all().target,
        }
    }
    target
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
