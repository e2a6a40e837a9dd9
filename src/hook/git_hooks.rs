//! `crewlog hook pre-commit` and `crewlog hook pre-push`: refuses a commit of files that others hold leases on, whoever runs
//! git, and warns of the merge risks of a push.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::process::ExitCode;

use super::edits::{Changes, Hit, literals};
use super::run::on_the_log;
use super::{facts, git, process};
use crate::cli::GitHook;
use crate::config::OnError;
use crate::crew::session::{agent_id, open};
use crate::crew::worktree::Worktree;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::say;
use crewlog_executors::crew::Crew;

/// Variables by which agent programs tell a command the id of their session.
const SESSIONS: [&str; 2] = ["CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID"];
/// Variables that are set below an agent program.
const SIGNS: [&str; 4] = ["AGENT_ID", "CLAUDECODE", "GEMINI_CLI", "OPENCODE"];
/// The most bytes of what git tells about a push.
const PUSH_BYTES_MAX: u64 = 64 * 1024;

/// Answers a hook of git: with exit code 1 git stops.
pub fn run(session: Result<Session, Failure>, hook: GitHook, on_error: OnError) -> ExitCode {
    let done = session.and_then(|session| match hook {
        _ if session.place.is_unused() => Ok(true),
        GitHook::PreCommit => pre_commit(&session),
        GitHook::PrePush => pre_push(&session),
    });
    let goes_on = done.unwrap_or_else(|failure| {
        say(&format!("crewlog could not look at the leases: {failure}"));
        on_error == OnError::Allow || hook == GitHook::PrePush
    });
    if goes_on { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn pre_commit(session: &Session) -> Result<bool, Failure> {
    session.config()?;
    let hits = on_the_log(session, async {
        let staged = git::staged(&session.folder, true).await.map_err(|error| no_git(&error))?;
        hits(&*open(session).await?, session, &staged, session.config()?.hooks.strict).await
    })?;
    if hits.is_empty() {
        return Ok(true);
    }
    let is_agent = SIGNS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    say(&match is_agent {
        true => facts::refusal(&hits, facts::COMMIT_REFUSED),
        false => format!(
            "crewlog: {}\n  hint: `crewlog leases --force` ends a lease, `git commit --no-verify` commits anyway",
            facts::listed(&hits)
        ),
    });
    Ok(false)
}

fn pre_push(session: &Session) -> Result<bool, Failure> {
    let mut told = String::new();
    io::stdin().lock().take(PUSH_BYTES_MAX).read_to_string(&mut told)?;
    // Each line: the local ref and its commit, the remote ref and its commit. Zeros delete the remote ref.
    let commits = told.lines().filter_map(|line| line.split(' ').nth(1));
    let commits: BTreeSet<_> = commits.filter(|id| id.chars().any(|digit| digit != '0')).collect();
    let hits = on_the_log(session, async {
        let mut names = Vec::new();
        for commit in commits {
            names.extend(git::pushed(&session.folder, commit).await.map_err(|error| no_git(&error))?);
        }
        hits(&*open(session).await?, session, &names, true).await
    })?;
    if !hits.is_empty() {
        say(&format!("crewlog: warning: merge risk: {}", facts::listed(&hits)));
    }
    Ok(true)
}

/// The leases of others on these files. Whoever has no name among the agents is a person, for whom all of them count.
async fn hits(crew: &Crew, session: &Session, names: &[String], is_strict: bool) -> Result<Vec<Hit>, Failure> {
    let agents = crew.agents().await?;
    let of_session = |session: String| agents.joined_as(&session, None).map(str::to_owned);
    let told = SESSIONS.iter().filter_map(|name| std::env::var(name).ok()).find_map(of_session);
    let agent = agent_id().or(told).or_else(|| process::ancestors().into_iter().find_map(of_session));
    drop(agents);
    let worktree = Worktree::around(&session.folder);
    let changes = Changes { worktree, files: literals(names), is_everything: false };
    let leases = crew.leases().await?;
    Ok(changes.hits(&leases, agent.as_deref().unwrap_or_default(), is_strict, crew.store().now()))
}

fn no_git(error: &io::Error) -> Failure {
    Failure::user(format!("git does not tell which files are committed: {error}"))
}
