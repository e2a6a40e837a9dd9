//! The folders and files of plans, as plans keep them: relative to a worktree of their project, so that they run on in a renamed
//! folder and in another clone.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::worktree::{Repository, real, repository_of};
use crate::consent::Places;
use crate::private::{PRIVATE, make_folder, write_whole};

/// The paths of plans on this machine, for the project of a working directory.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// The project; unset if it has no id yet.
    pub project: Option<String>,
    /// Its repository.
    pub repository: Option<Repository>,
    /// The folder in which this account notes the worktrees of its projects.
    pub notes: Option<PathBuf>,
}

impl Folders {
    /// Notes where the project is, for commands that begin elsewhere.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note(&self) -> io::Result<()> {
        let (Some(notes), Some(project), Some(repository)) = (&self.notes, &self.project, &self.repository) else {
            return Ok(());
        };
        let (file, worktree) = (notes.join(project), repository.worktree.to_string_lossy());
        if fs::read_to_string(&file).is_ok_and(|noted| noted == worktree) {
            return Ok(());
        }
        make_folder(notes)?;
        write_whole(&file, &worktree, PRIVATE, true).map(drop)
    }

    /// The repository of a project on this machine.
    fn repository_of(&self, project: &str) -> Option<Repository> {
        if self.project.as_deref() == Some(project) {
            return self.repository.clone();
        }
        let noted = fs::read_to_string(self.notes.as_ref()?.join(project)).ok()?;
        Repository::around(Path::new(&noted))
    }

    /// A path as plans keep it: `@PROJECT/./src` in the main worktree, `@PROJECT:NAME:BRANCH/./src` in a linked one; absolute
    /// outside of a repository.
    #[must_use]
    pub fn keep(&self, path: &Path) -> String {
        let place = || {
            let (project, repository) = (self.project.as_ref()?, self.repository.as_ref()?);
            let below = path.strip_prefix(&repository.worktree).ok()?.to_str()?;
            let linked = match repository.worktree == repository.main_worktree {
                true => String::new(),
                false => {
                    let git_dir = Repository::git_dir(&repository.worktree)?;
                    let name = git_dir.file_name()?.to_str().filter(|name| !name.contains(':'))?;
                    format!(":{name}:{}", branch_of(&git_dir).unwrap_or_default())
                }
            };
            Some(format!("@{project}{linked}/./{below}"))
        };
        place().unwrap_or_else(|| path.to_string_lossy().into_owned())
    }

    /// Keeps a folder that need not be in the worktree of the working directory.
    #[must_use]
    pub fn keep_other(&self, folder: &Path) -> String {
        let is_own = |other: &Repository| {
            self.repository.as_ref().is_some_and(|own| real(&own.common_dir) == real(&other.common_dir))
        };
        Self { repository: Repository::around(folder).filter(is_own), ..self.clone() }.keep(folder)
    }

    /// Where a kept path is on this machine.
    ///
    /// # Errors
    /// The reason why it is nowhere.
    pub fn locate(&self, kept: &str) -> Result<PathBuf, String> {
        let Some((project, linked, below)) = parts(kept) else { return Ok(PathBuf::from(kept)) };
        let Some(repository) = self.repository_of(project) else {
            return Err("its repository is neither here nor known on this machine".to_owned());
        };
        let root = match linked.and_then(|linked| linked.split_once(':')) {
            Some((name, branch)) => linked_worktree(&repository, name, branch)
                .ok_or_else(|| format!("neither the worktree {name} nor one of the branch {branch:?} is here"))?,
            // A bare repository has no main worktree.
            None if repository.main_worktree == repository.common_dir => repository.worktree.clone(),
            None => repository.main_worktree.clone(),
        };
        Ok(if below.is_empty() { root } else { root.join(below) })
    }
}

impl Places for Folders {
    fn find(&self, kept: &str) -> Result<PathBuf, String> {
        let folder = self.locate(kept)?;
        if folder.is_dir() { Ok(folder) } else { Err(format!("the folder {} is not there", folder.display())) }
    }

    fn repository(&self, kept: &str) -> PathBuf {
        match parts(kept) {
            Some((project, ..)) => self.repository_of(project).map_or_else(PathBuf::new, |known| known.common_dir),
            None => repository_of(Path::new(kept)),
        }
    }
}

/// The project of a kept path, its linked worktree, and the rest; none for an absolute path.
fn parts(kept: &str) -> Option<(&str, Option<&str>, &str)> {
    let (place, below) = kept.strip_prefix('@')?.split_once("/./")?;
    let (project, linked) = place.split_once(':').map_or((place, None), |(project, linked)| (project, Some(linked)));
    Some((project, linked, below))
}

/// The part of a kept path that is the same in all worktrees.
#[must_use]
pub fn below_root(kept: &str) -> &str {
    parts(kept).map_or(kept, |(.., below)| &kept[kept.len() - "./".len() - below.len()..])
}

/// The linked worktree of this name, else a worktree of the branch.
fn linked_worktree(repository: &Repository, name: &str, branch: &str) -> Option<PathBuf> {
    let admin = repository.common_dir.join("worktrees");
    let root = |git_dir: &Path| {
        let dot_git = PathBuf::from(fs::read_to_string(git_dir.join("gitdir")).ok()?.trim());
        dot_git.parent().filter(|root| root.is_dir()).map(Path::to_owned)
    };
    let on_branch = |git_dir: &PathBuf| branch_of(git_dir).as_deref() == Some(branch);
    let others = || fs::read_dir(&admin).into_iter().flatten().flatten().map(|entry| entry.path()).filter(on_branch);
    let main = || Some(repository.main_worktree.clone()).filter(|_| on_branch(&repository.common_dir));
    root(&admin.join(name)).or_else(|| others().find_map(|git_dir| root(&git_dir))).or_else(main)
}

/// The branch that a worktree has checked out, by its git folder.
fn branch_of(git_dir: &Path) -> Option<String> {
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
