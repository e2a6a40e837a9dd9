//! The worktree of a caller, and the names of files in leases: each file has one name, however it is written.

use std::env;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crewlog_planner::crew::target::{Target, TargetError};

use super::owner::{distrusted, is_there};

/// The folder of a log, and of the project's id where there is no repository.
pub const FOLDER: &str = ".crewlog";
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// The most broken links that are followed in one path.
const LINKS_MAX: usize = 40;

/// A worktree: the root of the paths in leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, with links resolved.
    pub root: PathBuf,
    /// Its name in leases: the machine and the path.
    pub name: String,
    common_dir: Option<PathBuf>,
}

impl Worktree {
    /// The worktree around a folder, or the folder itself outside of a repository.
    pub fn around(folder: &Path) -> Self {
        let folder = real(folder);
        let repository = Repository::around(&folder);
        let root = repository.as_ref().map_or(folder, |repository| real(&repository.worktree));
        let common_dir = repository.map(|repository| real(&repository.common_dir));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = format!("{host}:{}", root.display());
        Self { root, name, common_dir }
    }

    /// The worktree of the same repository that contains a path; `None` if it is elsewhere. Relative paths start at
    /// `folder`.
    pub fn of_path(&self, folder: &Path, path: &Path) -> Option<Self> {
        let path = real(&folder.join(path));
        let other = Self::around(path.parent().unwrap_or(&path));
        (self.is_of_repository(&other) && path.starts_with(&other.root)).then_some(other)
    }

    /// The worktree for a path's leases: that of [`Worktree::of_path`], else this one if it contains the path, as
    /// without a repository or around a submodule.
    pub fn around_path(&self, folder: &Path, path: &Path) -> Option<Self> {
        let is_below = || real(&folder.join(path)).starts_with(&self.root);
        self.of_path(folder, path).or_else(|| is_below().then(|| self.clone()))
    }

    /// The other worktrees of the repository that are there.
    pub fn others(&self) -> Vec<Self> {
        let Some(common_dir) = &self.common_dir else { return Vec::new() };
        let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.filter_map(|entry| fs::read_to_string(entry.path().join("gitdir")).ok());
        let linked = linked.filter_map(|dot_git| Path::new(dot_git.trim()).parent().map(Path::to_owned));
        let main = common_dir.parent().map(Path::to_owned).filter(|_| common_dir.ends_with(".git"));
        let others = linked.chain(main).filter_map(|root| self.of_repository(&root));
        others.filter(|other| other.root != self.root).collect()
    }

    /// The worktree of the same repository with this root; `None` if there is none.
    pub fn of_repository(&self, root: &Path) -> Option<Self> {
        let other = Self::around(root);
        (self.is_of_repository(&other) && other.root == real(root)).then_some(other)
    }

    fn is_of_repository(&self, other: &Self) -> bool {
        other.root == self.root || (other.common_dir.is_some() && other.common_dir == self.common_dir)
    }

    /// A file or folder; wildcard characters are literal.
    pub fn literal(&self, folder: &Path, written: &str) -> Result<Target, TargetError> {
        Target::literal(&self.below_root(folder, written)?)
    }

    /// A thing, a pattern if it has wildcards, else a file or folder. The wildcards in the name of a file or folder that exists
    /// are literal: `app/[id]/new.tsx`.
    pub fn target(&self, folder: &Path, written: &str) -> Result<Target, TargetError> {
        if let Some(thing) = Target::thing(written) {
            return thing;
        }
        let is_wild = |path: &Path| path.as_os_str().to_string_lossy().contains(WILDCARDS);
        let existing = Path::new(written).ancestors().find(|above| folder.join(above).symlink_metadata().is_ok());
        let (existing, path) = (existing.unwrap_or(Path::new("")), self.below_root(folder, written)?);
        match Path::new(written).strip_prefix(existing).is_ok_and(is_wild) {
            false => Target::literal(&path),
            true if !is_wild(existing) => Target::written(&path),
            // A pattern cannot have literal wildcards; `?` is also each of them.
            true => {
                let n = self.below_root(folder, &existing.to_string_lossy())?.len();
                let (literal, pattern) = path.split_at_checked(n).unwrap_or((&path, ""));
                Target::written(&format!("{}{pattern}", literal.replace(WILDCARDS, "?").replace([']', '}'], "?")))
            }
        }
    }

    /// The link through which a path leaves the worktree, relative to its root.
    pub fn left_by(&self, path: &Path) -> Option<String> {
        let link = |path: &Path| Some(real(path.parent()?).join(path.file_name()?)).filter(|link| link.is_symlink());
        let below = |link: PathBuf| Some(link.strip_prefix(&self.root).ok()?.to_str()?.to_owned());
        path.ancestors().filter_map(link).find_map(below)
    }

    /// The path relative to the root of the worktree. Links are resolved as far as the path exists and has no wildcard.
    pub fn below_root(&self, folder: &Path, written: &str) -> Result<String, TargetError> {
        // [`Target`] refuses an empty path.
        if written.trim().is_empty() {
            return Ok(written.to_owned());
        }
        let path = real(&folder.join(written));
        let outside = || TargetError::Outside { path: written.chars().take(80).collect() };
        let below = path.strip_prefix(&self.root).map_err(|_| outside())?;
        let below = below.to_str().ok_or_else(outside)?;
        Ok(if below.is_empty() { ".".to_owned() } else { below.to_owned() })
    }
}

/// The folder as a shell knows it after `cd`: `..` takes back a name, even that of a link.
#[must_use]
pub fn as_written(folder: &Path) -> PathBuf {
    folder.components().fold(PathBuf::new(), |mut found, part| {
        let is_name = matches!(found.components().next_back(), Some(Component::Normal(_)));
        if part != Component::ParentDir || !is_name || !found.pop() {
            found.push(part);
        }
        found
    })
}

/// A repository, seen from a folder in it.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The root of the worktree that the folder is in.
    pub worktree: PathBuf,
    /// The root of the worktree that all others belong to.
    pub main_worktree: PathBuf,
    /// The folder shared by all worktrees: refs, objects, configuration.
    pub common_dir: PathBuf,
}

/// A folder and those above it, the nearest first. The search ends below a folder that another account owns or that
/// everybody may write.
pub fn upwards(folder: &Path) -> impl Iterator<Item = &Path> {
    as_git_looks(folder).take_while(move |above| *above == folder || distrusted(above).is_none())
}

/// A folder and those above it, as far up as git looks for a repository: below the folders that `GIT_CEILING_DIRECTORIES`
/// names.
fn as_git_looks(folder: &Path) -> impl Iterator<Item = &Path> {
    let ceilings: Vec<PathBuf> =
        env::var_os("GIT_CEILING_DIRECTORIES").map(|list| env::split_paths(&list).collect()).unwrap_or_default();
    folder.ancestors().take_while(move |above| *above == folder || !ceilings.iter().any(|ceiling| ceiling == above))
}

/// The repository of a folder by git's folder, the same in all its worktrees; without one the folder.
#[must_use]
pub fn repository_of(folder: &Path) -> PathBuf {
    Repository::around(folder).map_or_else(|| folder.to_owned(), |repository| repository.common_dir)
}

impl Repository {
    /// Checks that git's folder is there: a worktree of a repository that was moved away names one that is not.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`], with the remedy.
    pub fn check(&self) -> io::Result<()> {
        let gone = || {
            let (worktree, folder) = (self.worktree.display(), self.common_dir.display());
            format!(
                "{worktree}/.git names {folder}, which is not there; `git worktree repair` in the repository mends it"
            )
        };
        if self.common_dir.is_dir() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::NotFound, gone())) }
    }

    /// Checks that its folders can be believed.
    ///
    /// # Errors
    /// The reason.
    pub fn check_owner(&self) -> Result<(), String> {
        let folders = [&self.worktree, &self.worktree.join(".git"), &self.main_worktree, &self.common_dir];
        folders.into_iter().find_map(|folder| distrusted(folder)).map_or(Ok(()), Err)
    }

    /// The repository that git would find from a folder, if the search for one ends before it, and the folder at which.
    pub fn hidden_from(folder: &Path) -> Option<(Self, PathBuf)> {
        let seen = upwards(folder).count();
        let end = as_git_looks(folder).nth(seen)?.to_owned();
        let hidden = Self::of_first(as_git_looks(folder).skip(seen))?;
        Some((hidden, end)).filter(|(hidden, _)| hidden.check_owner().is_ok())
    }

    /// The repository that a folder is in, read from git's own files.
    pub fn around(folder: &Path) -> Option<Self> {
        Self::of_first(upwards(folder))
    }

    /// Git's folder for a worktree.
    pub(super) fn git_dir(worktree: &Path) -> Option<PathBuf> {
        let dot_git = worktree.join(".git");
        match dot_git.is_dir() {
            true => Some(dot_git),
            false => Some(worktree.join(fs::read_to_string(&dot_git).ok()?.strip_prefix("gitdir:")?.trim())),
        }
    }

    fn of_first<'a>(mut folders: impl Iterator<Item = &'a Path>) -> Option<Self> {
        // The log's own folder only looks like a repository.
        let is_worktree = |above: &&Path| is_there(&above.join(".git")) && !above.ends_with(FOLDER);
        let worktree = folders.find(is_worktree)?.to_owned();
        let git_dir = Self::git_dir(&worktree)?;
        match fs::read_to_string(git_dir.join("commondir")) {
            Ok(common_dir) => {
                let common_dir = fs::canonicalize(git_dir.join(common_dir.trim())).ok()?;
                let is_bare = common_dir.file_name().is_none_or(|name| name != ".git");
                let main_worktree = if is_bare { &common_dir } else { common_dir.parent()? };
                Some(Self { main_worktree: main_worktree.to_owned(), worktree, common_dir })
            }
            // A main worktree or a submodule: a repository of its own.
            Err(_) => Some(Self { main_worktree: worktree.clone(), worktree, common_dir: git_dir }),
        }
    }
}

/// The path without links, `.` and `..`: its existing part as the system resolves it, the rest as written. A broken
/// link counts as its target.
pub fn real(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..LINKS_MAX {
        let link = path.ancestors().find_map(|above| Some((above, above.read_link().ok()?)));
        let Some((link, to)) = link.filter(|(link, _)| !link.exists()) else { break };
        let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
        path = link.parent().unwrap_or(link).join(to).join(rest);
    }
    let existing = |above: &Path| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?));
    let Some((mut found, rest)) = path.ancestors().find_map(existing) else { return path };
    for name in rest.components() {
        if name == Component::ParentDir {
            found.pop();
        } else {
            found.push(name);
        }
    }
    found
}
