//! `crewlog hook pre-commit` and `crewlog hook pre-push`: refuses to commit files that others have leased, for agents
//! and people alike, and warns of the merge risks of a push.

use std::io;
use std::io::Read;
use std::process::ExitCode;

use crewlog_executors::crew::process;
use crewlog_executors::crew::scripts::SESSIONS;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_planner::crew::agents::Agent;

use super::edits::{Changes, Hit};
use super::identity::program_of;
use super::in_time::{WAIT, on_the_log};
use super::{facts, git};
use crate::context::config::OnError;
use crate::context::crew::open;
use crate::context::{Session, agent_id, is_below_agent};
use crate::ui::failure::Failure;
use crate::ui::terminal::say;

/// The most bytes of git's input about a push.
const PUSH_BYTES_MAX: u64 = 64 * 1024;

/// A hook of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHook {
    PreCommit,
    PrePush,
}

/// Answers a hook of git; exit code 1 stops git.
pub async fn run(session: Result<Session, Failure>, hook: GitHook, on_error: OnError) -> ExitCode {
    let hits = match session {
        Ok(session) if session.place.is_unused() => Ok(Vec::new()),
        Ok(session) => on_the_log(&session, WAIT, hits(&session, hook)).await,
        Err(failure) => Err(failure),
    };
    let goes_on = match (hits, hook) {
        (Err(failure), _) => {
            say(&format!("crewlog could not look at the leases: {failure}"));
            on_error == OnError::Allow || hook == GitHook::PrePush
        }
        (Ok(hits), _) if hits.is_empty() => true,
        (Ok(hits), GitHook::PrePush) => {
            say(&format!("crewlog: warning: merge risk: {}", facts::listed(&hits)));
            true
        }
        (Ok(hits), GitHook::PreCommit) => {
            say(&match is_below_agent() {
                true => facts::refusal(&hits, true, None),
                false => format!(
                    "crewlog: {}\n  hint: `crewlog leases --force NUMBER --reason WHY` ends a lease, `git commit --no-verify` commits anyway",
                    facts::listed(&hits)
                ),
            });
            false
        }
    };
    if goes_on { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The leases of others on the files of the commit or push. A caller that is not a known agent is a person, for whom
/// all leases count.
async fn hits(session: &Session, hook: GitHook) -> Result<Vec<Hit>, Failure> {
    let hooks = &session.config()?.hooks;
    let names = match hook {
        GitHook::PreCommit => git::staged(&session.folder).await,
        GitHook::PrePush => match pushed_commits().map_err(Failure::input)? {
            none if none.is_empty() => Ok(Vec::new()),
            commits => git::pushed(&session.folder, &commits).await,
        },
    };
    let names = names.map_err(|error| Failure::user(format!("cannot list the files to be committed: {error}")))?;
    let crew = open(session).await?;
    let agents = crew.agents().await?;
    let of_session = |session: String| agents.joined_as(&session, None).map(str::to_owned);
    let told = SESSIONS.iter().filter_map(|name| std::env::var(name).ok()).find_map(of_session);
    let ancestors = process::ancestors();
    let is_superseded = |agent: &Agent| {
        program_of(agent).is_some_and(|program| process::is_elsewhere(program, &ancestors)) && !crew.is_dead(agent)
    };
    let named = agent_id().filter(|name| !agents.get(name).is_some_and(is_superseded));
    let agent = named.or(told).or_else(|| ancestors.iter().cloned().find_map(of_session));
    drop(agents);
    let changes = Changes::of_commit(Worktree::around(&session.folder), &names);
    let is_strict = hooks.strict || hook == GitHook::PrePush;
    let (_, hits) = changes.compared(&crew, agent.as_deref().unwrap_or_default(), is_strict).await?;
    // A push takes no lease and is never refused: a path that cannot be leased is no risk to it.
    if hits.is_empty() && hook == GitHook::PreCommit {
        changes.check().await?;
    }
    Ok(hits)
}

/// The commits of a push, from standard input. Each line: the local ref and its commit, the remote ref and its commit.
/// Zeros delete the remote ref.
fn pushed_commits() -> io::Result<String> {
    let mut told = String::new();
    io::stdin().lock().take(PUSH_BYTES_MAX).read_to_string(&mut told)?;
    let commits = told.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(commits.filter(|id| id.chars().any(|digit| digit != '0')).collect::<Vec<_>>().join(" "))
}
