//! What a hook tells an agent, in at most [`TEXT_CHARS_MAX`](super::answer::TEXT_CHARS_MAX) characters: facts about
//! leases, agents, tasks and counts of messages. Words of other agents are quoted and cut.

use std::fmt::Write as _;

use crewlog_executors::crew::{Crew, Refusal, TaskState, TaskSummary};
use crewlog_planner::crew::agents::Liveness;
use crewlog_planner::crew::leases::{By, Lease, Leases, MergeRisk};

use super::edits::Hit;
use crate::text::{count, one_line, rfc3339};

/// The reason of the leases that edits take.
pub const EDITING: &str = "editing";
/// The beginning of the refusal of a commit.
pub const COMMIT_REFUSED: &str = "this commit is refused, its index has files of others";
/// The most leases that a refusal names.
pub const HITS_MAX: usize = 5;
/// The most agents and tasks at the start of a session, and files of each agent.
const AGENTS_MAX: usize = 8;
const TASKS_MAX: usize = 5;
const FILES_MAX: usize = 4;
/// The most characters of a path, and of another agent's words.
const PATH_CHARS_MAX: usize = 120;
const WORDS_CHARS_MAX: usize = 80;

/// Why an edit or a commit is refused, and what is possible next.
pub fn refusal(hits: &[Hit], what: &str) -> String {
    let mut text = format!("{what}: {}", listed(hits));
    let holder = hits.first().map_or("", |hit| hit.blocked.holder.agent.as_str());
    text += &format!(
        ". Possible now: work on other files; call reserve_paths with wait_seconds to get the file next; \
         or ask {holder} with send_message."
    );
    text
}

/// The files and who leases them: `a.rs is leased by bob for task backlog/3 ("editing") until 2030-…Z`.
pub fn listed(hits: &[Hit]) -> String {
    let shown = hits.iter().take(HITS_MAX).map(|hit| {
        let blocked = &hit.blocked;
        let file = one_line(&blocked.asked.path, PATH_CHARS_MAX);
        let verb = match blocked.by {
            By::Lease(_) => "leased",
            By::Waiting(_) => "awaited",
        };
        let mut text = format!("{file} is {verb} by {}", blocked.holder.agent);
        if blocked.target != blocked.asked {
            text += &format!(" as {}", one_line(&blocked.target.path, PATH_CHARS_MAX));
        }
        if let Some(task) = &blocked.task {
            text += &format!(" for task {task}");
        }
        if !hit.reason.is_empty() {
            text += &format!(" ({:?})", one_line(&hit.reason, WORDS_CHARS_MAX));
        }
        text + &format!(" until {} or longer", rfc3339(blocked.until))
    });
    let shown = shown.collect::<Vec<_>>().join("; ");
    match hits.len().saturating_sub(HITS_MAX) {
        0 => shown,
        n_more => format!("{shown}; and {n_more} more"),
    }
}

/// Overlaps with other worktrees: the edit goes on.
pub fn merge_risks(risks: &[MergeRisk]) -> String {
    let shown = risks.iter().take(HITS_MAX).map(|risk| {
        let MergeRisk { holder, target, .. } = risk;
        format!("{} leases {} in {}", holder.agent, one_line(&target.path, PATH_CHARS_MAX), holder.worktree)
    });
    format!("crewlog: merge risk: {}.", shown.collect::<Vec<_>>().join("; "))
}

pub fn unread(n_unread: usize) -> String {
    format!("crewlog: {}; read_inbox shows them.", count(n_unread, "unread message"))
}

/// What an agent still holds, which keeps it from stopping.
pub fn still_held(leases: &[(u64, Lease)], tasks: &[String]) -> String {
    let mut parts = Vec::new();
    if !tasks.is_empty() {
        let shown: Vec<_> = tasks.iter().take(TASKS_MAX).map(String::as_str).collect();
        let more = if tasks.len() > TASKS_MAX { ", ..." } else { "" };
        parts.push(format!("the tasks {}{more} (update_task ends them or gives them back)", shown.join(", ")));
    }
    if !leases.is_empty() {
        let files = files(leases.iter().map(|(_, lease)| lease));
        parts.push(format!("leases on {files} (release_paths frees them)"));
    }
    format!("crewlog: you still hold {}. The tool leave gives everything back.", parts.join(" and "))
}

/// What an agent sees at the start of its session.
pub async fn at_start(crew: &Crew, agent: &str, worktree: &str) -> Result<String, Refusal> {
    let tasks = crew.tasks(Some(TaskState::Claimed)).await?;
    let of = |name: &str| tasks.iter().filter(|task| task.assignee.as_deref() == Some(name)).collect::<Vec<_>>();
    let n_unread = crew.messages().await?.unread(agent).count();
    let mut text = format!("crewlog: you are {agent} in project {}, worktree {worktree}.\n", crew.project());
    let agents = crew.agents().await?;
    let others = agents.iter().filter(|(name, found)| *name != agent && found.liveness != Liveness::Left);
    let others: Vec<_> = others.map(|(name, found)| (name.to_owned(), found.profile.program.clone())).collect();
    drop(agents);
    let leases = crew.leases().await?;
    if others.is_empty() {
        text += "No other agent is present.\n";
    }
    for (name, program) in others.iter().take(AGENTS_MAX) {
        let _ = writeln!(text, "Present: {name} ({}){}", one_line(program, 24), work(&leases, name, &of(name)));
    }
    if others.len() > AGENTS_MAX {
        let _ = writeln!(text, "Present: {} more", others.len() - AGENTS_MAX);
    }
    let _ = writeln!(text, "You{}", work(&leases, agent, &of(agent)));
    drop(leases);
    let _ = writeln!(text, "{}.", count(n_unread, "unread message"));
    text += "The crewlog tools: get_status shows agents and leases, reserve_paths leases files, next_task claims a task, \
             read_inbox reads messages.";
    Ok(text)
}

/// The leases and tasks of an agent.
fn work(leases: &Leases, agent: &str, tasks: &[&TaskSummary]) -> String {
    let mut text = match leases.of_agent(agent).next() {
        Some(_) => format!(": leases {}", files(leases.of_agent(agent).map(|(_, lease)| lease))),
        None => ": no leases".to_owned(),
    };
    for task in tasks.iter().take(TASKS_MAX) {
        let _ = write!(text, "; task {} {:?}", task.id, one_line(&task.title, WORDS_CHARS_MAX));
        if let Some(next) = &task.next_step {
            let _ = write!(text, ", next step {:?}", one_line(next, WORDS_CHARS_MAX));
        }
    }
    text
}

fn files<'a>(leases: impl Iterator<Item = &'a Lease>) -> String {
    let mut leases = leases.peekable();
    let shown: Vec<_> =
        leases.by_ref().take(FILES_MAX).map(|lease| one_line(&lease.target.path, PATH_CHARS_MAX)).collect();
    let n_more = leases.count();
    if n_more > 0 { format!("{} and {n_more} more", shown.join(", ")) } else { shown.join(", ") }
}
