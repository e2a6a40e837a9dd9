//! `crewlog hook pre-commit` and `crewlog hook pre-push`: refuses to commit files that others have leased, for agents
//! and people alike, and warns of the merge risks of a push.

use std::io;
use std::io::Read;
use std::process::ExitCode;

use crewlog_executors::crew::scripts::SESSIONS;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Crew, LostFile, process};
use crewlog_planner::crew::agents::Agent;
use crewlog_planner::crew::target::Target;

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

/// Answers a hook of git; exit code 1 stops git.
pub async fn run(session: Result<Session, Failure>, is_push: bool, on_error: OnError) -> ExitCode {
    let hits = match session {
        Ok(session) if session.place.is_unused() => Ok((Vec::new(), Vec::new())),
        Ok(session) => on_the_log(&session, WAIT, hits(&session, is_push)).await,
        Err(failure) => Err(failure),
    };
    let goes_on = match (hits, is_push) {
        (Ok((_, lost)), _) if !lost.is_empty() => {
            say(&facts::lost(&lost));
            false
        }
        (Err(failure), _) => {
            say(&format!("crewlog could not look at the leases: {failure}"));
            on_error == OnError::Allow || is_push
        }
        (Ok((hits, _)), _) if hits.is_empty() => true,
        (Ok((hits, _)), true) => {
            say(&format!("crewlog: warning: merge risk: {}", facts::listed(&hits)));
            true
        }
        (Ok((hits, _)), false) => {
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
/// all leases count. Also the files of a commit that an agent edited under a lease that it has lost to another since.
async fn hits(session: &Session, is_push: bool) -> Result<(Vec<Hit>, Vec<LostFile>), Failure> {
    let hooks = &session.config()?.hooks;
    let names = match is_push {
        false => git::staged(&session.folder).await,
        true => match pushed_commits().map_err(Failure::input)? {
            none if none.is_empty() => Ok(Vec::new()),
            commits => git::pushed(&session.folder, &commits).await,
        },
    };
    let names = names.map_err(|error| Failure::user(format!("cannot list the files to be committed: {error}")))?;
    let crew = open(session).await?;
    let agent = committer(&crew).await?;
    let changes = Changes::of_commit(Worktree::around(&session.folder), &names);
    let is_strict = hooks.strict || is_push;
    let (_, hits) = changes.compared(&crew, agent.as_deref().unwrap_or_default(), is_strict).await?;
    // A push takes no lease and is never refused: a path that cannot be leased is no risk to it.
    if hits.is_empty() && !is_push {
        changes.check().await?;
        if let Some(agent) = agent {
            let paths: Vec<_> = names.iter().filter_map(|name| Target::literal(name).ok()).collect();
            return Ok((hits, crew.lost_files(&changes.holder(&agent), &paths).await?));
        }
    }
    Ok((hits, Vec::new()))
}

/// The agent that runs git; `None` for a person.
pub async fn committer(crew: &Crew) -> Result<Option<String>, Failure> {
    let agents = crew.agents().await?;
    let of_session = |session: String| agents.joined_as(&session, None).map(str::to_owned);
    let told = SESSIONS.iter().filter_map(|name| std::env::var(name).ok()).find_map(of_session);
    let ancestors = process::ancestors();
    let is_superseded = |agent: &Agent| {
        program_of(agent).is_some_and(|program| process::is_elsewhere(program, &ancestors)) && !crew.is_dead(agent)
    };
    let named = agent_id().filter(|name| !agents.get(name).is_some_and(is_superseded));
    Ok(named.or(told).or_else(|| ancestors.iter().cloned().find_map(of_session)))
}

/// The commits of a push, from standard input. Each line: the local ref and its commit, the remote ref and its commit.
/// Zeros delete the remote ref.
fn pushed_commits() -> io::Result<String> {
    let mut told = String::new();
    io::stdin().lock().take(PUSH_BYTES_MAX).read_to_string(&mut told)?;
    let commits = told.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(commits.filter(|id| id.chars().any(|digit| digit != '0')).collect::<Vec<_>>().join(" "))
}
