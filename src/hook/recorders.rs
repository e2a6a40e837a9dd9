//! `crewlog hook post-commit`, `post-checkout`, `post-merge` and `post-rewrite`: record the commands of git that commit or change
//! leased files. Git runs them also where `--no-verify` has skipped the hook before a commit. They refuse nothing.

use std::process::ExitCode;

use crewlog_executors::crew::committed;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_planner::crew::leases::{Commit, GitChange};
use crewlog_planner::crew::target::Target;

use super::git;
use super::git_hooks::committer;
use super::in_time::{WAIT, on_the_log};
use crate::cli::programs::NamedHook;
use crate::context::Session;
use crate::context::crew::open;
use crate::ui::failure::Failure;
use crate::ui::terminal::say;

/// The most files of a command that are recorded.
const FILES_MAX: usize = 200;

/// Records the command that has run. A fault is a warning: the command is done.
pub async fn run(session: Result<Session, Failure>, hook: NamedHook, more: &[String]) -> ExitCode {
    let done = match session {
        Ok(session) if session.place.is_unused() => Ok(()),
        Ok(session) => on_the_log(&session, WAIT, record(&session, hook, more)).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = done {
        say(&format!("crewlog could not record this command: {failure}"));
    }
    ExitCode::SUCCESS
}

async fn record(session: &Session, hook: NamedHook, more: &[String]) -> Result<(), Failure> {
    let (how, range) = match (hook, more) {
        (NamedHook::PostCommit, _) => (GitChange::Commit, None),
        (NamedHook::PostMerge, _) => (GitChange::Merge, Some(("ORIG_HEAD", "HEAD"))),
        (NamedHook::PostRewrite, [command, ..]) if command == "rebase" => {
            (GitChange::Rebase, Some(("ORIG_HEAD", "HEAD")))
        }
        // The last word is 1 for a checkout of a branch or a commit. One of files keeps the commit.
        (NamedHook::PostCheckout, [before, after, flag]) if flag == "1" && before != after => {
            (GitChange::Checkout, Some((before.as_str(), after.as_str())))
        }
        // `git commit --amend` runs the hook after a commit too.
        _others => return Ok(()),
    };
    let unknown = |error| Failure::user(format!("cannot list the files that changed: {error}"));
    let names = git::of_change(&session.folder, range).await.map_err(unknown)?;
    let id = git::head(&session.folder).await.map_err(unknown)?;
    let crew = open(session).await?;
    let agent = committer(&crew).await?;
    let tasks = match &agent {
        Some(agent) => crew.tasks_of(agent).await?,
        None => Vec::new(),
    };
    let (worktree, task) = (Worktree::around(&session.folder).name, tasks.into_iter().next());
    let commit = Commit { id, how, worktree, agent, task };
    let paths = names.iter().filter_map(|name| Target::literal(name).ok()).take(FILES_MAX).collect();
    let foreign = crew.record_commit(commit.clone(), paths).await?;
    if !foreign.is_empty() {
        let mut holders: Vec<_> =
            foreign.iter().filter_map(|file| Some(file.lease.as_ref()?.holder.as_str())).collect();
        holders.sort_unstable();
        holders.dedup();
        let paths: Vec<_> = foreign.iter().map(|file| file.path.clone()).collect();
        say(&format!("crewlog: {}, leased by {}: it is recorded", committed(&commit, &paths), holders.join(", ")));
    }
    Ok(())
}
