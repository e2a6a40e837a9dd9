//! The texts of hooks for agents, of at most [`TEXT_CHARS_MAX`](super::dialect::TEXT_CHARS_MAX) characters: facts about
//! leases, agents, tasks and counts of messages. Other agents' words are quoted and cut.

use std::fmt::Write as _;

use crewlog_executors::crew::offers::Offer;
use crewlog_executors::crew::{Crew, LostFile, Refusal, TaskSummary};
use crewlog_executors::text::quoted_line;
use crewlog_planner::crew::agents::Liveness;
use crewlog_planner::crew::leases::{By, Lease, Leases, MergeRisk};
use crewlog_planner::lifecycle::State;

use super::edits::Hit;
use super::touches::Extent;
use crate::ui::text::{count, rfc3339};

/// The reason of leases taken for edits.
pub const EDITING: &str = "editing";
/// The most leases that a refusal names.
pub const HITS_MAX: usize = 5;
/// The most agents and tasks at the start of a session, and files of each agent.
const AGENTS_MAX: usize = 8;
const TASKS_MAX: usize = 5;
const FILES_MAX: usize = 4;
/// The most characters of a path, and of another agent's words.
const PATH_CHARS_MAX: usize = 120;
const WORDS_CHARS_MAX: usize = 80;

/// The reason why an edit or a commit is refused, and possible next steps.
pub fn refusal(hits: &[Hit], is_commit: bool, extent: Option<Extent>) -> String {
    let what = match (extent, is_commit) {
        (Some(extent), _) => return of_tree(hits, extent),
        (None, true) => "this commit is refused: it changes files leased by others",
        (None, false) => "this edit is refused",
    };
    let holder = hits.first().map_or("", |hit| hit.blocked.holder.agent.as_str());
    format!(
        "{what}: {}. Possible now: work on other files; call reserve_paths with wait_seconds to get the file next; \
         or ask {holder} with request_release.",
        listed(hits)
    )
}

/// The reason why a command of git is refused that changes whatever differs.
fn of_tree(hits: &[Hit], extent: Extent) -> String {
    let (what, safe) = match extent {
        Extent::Worktree => (
            "it changes the whole worktree, in which others work",
            "name your own files: `git stash push -- FILES`, `git restore -- FILES`, `git checkout COMMIT -- FILES`; or work \
             in a worktree of your own: `git worktree add`",
        ),
        Extent::Repository => (
            "the list of stashes is shared by all worktrees, in which others work",
            "keep your own changes in a commit: `git commit -- FILES`; look at stashes with `git stash list` and `show`",
        ),
    };
    format!("this command is refused: {what}: {}. Possible now: {safe}.", listed(hits))
}

/// The reason why an agent may not change a file on which the rules rest.
pub fn of_crewlog(path: &str) -> String {
    let path = quoted_line(path, PATH_CHARS_MAX);
    format!(
        "this edit is refused: crewlog's rules rest on {path}, so only a person changes it. Possible now: ask_person."
    )
}

/// The files and their leases: `a.rs is leased by bob for task backlog/3 (editing) until 2030-…Z`.
pub fn listed(hits: &[Hit]) -> String {
    first(hits.iter(), HITS_MAX, "; ", |hit| {
        let blocked = &hit.blocked;
        let file = quoted_line(&blocked.asked.path, PATH_CHARS_MAX);
        let verb = match blocked.by {
            By::Lease(_) => "leased",
            By::Waiting(_) => "awaited",
        };
        let mut text = format!("{file} is {verb} by {}", blocked.holder.agent);
        if blocked.target != blocked.asked {
            text += &format!(" as {}", quoted_line(&blocked.target.path, PATH_CHARS_MAX));
        }
        if let Some(task) = &blocked.task {
            text += &format!(" for task {}", quoted_line(task, WORDS_CHARS_MAX));
        }
        if !hit.reason.is_empty() {
            text += &format!(" ({})", quoted_line(&hit.reason, WORDS_CHARS_MAX));
        }
        text + &format!(" until {} or longer", rfc3339(blocked.until))
    })
}

/// A change during a call that nobody can judge.
pub fn unjudged(path: &str, holder: &str) -> String {
    let path = quoted_line(path, PATH_CHARS_MAX);
    format!(
        "crewlog: {path} changed during this call; {holder} leases it and runs no hooks, so it may have been {holder}."
    )
}

/// The reason why a commit of files is refused that another agent held since their edit.
pub fn lost(files: &[LostFile]) -> String {
    let shown = first(files.iter(), HITS_MAX, "; ", |LostFile { path, token, later: (holder, later) }| {
        let path = quoted_line(path, PATH_CHARS_MAX);
        format!(
            "you edited {path} under the lease with token {token}, and {holder} has had it since, with token {later}"
        )
    });
    format!(
        "this commit is refused: {shown}. Possible now: look at `git diff --cached`, lease the file again with reserve_paths, \
         and commit; or leave it out with `git restore --staged`."
    )
}

/// Overlaps with other worktrees, which do not block the edit.
pub fn merge_risks(risks: &[MergeRisk]) -> String {
    let shown = first(risks.iter(), HITS_MAX, "; ", |risk| {
        let MergeRisk { holder, target, .. } = risk;
        format!("{} leases {} in {}", holder.agent, quoted_line(&target.path, PATH_CHARS_MAX), holder.worktree)
    });
    format!("crewlog: merge risk: {shown}.")
}

/// News about its leases, one in each line.
pub fn notices(notices: &[String]) -> Option<String> {
    let lines = notices.iter().map(|notice| format!("crewlog: {notice}."));
    (!notices.is_empty()).then(|| lines.collect::<Vec<_>>().join("\n"))
}

/// The warning of a session that is open in two processes.
pub fn twin(agent: &str) -> String {
    format!(
        "crewlog: this session is open in another process too, and both are {agent}: leases do not keep one from the files of \
         the other. Tell the person, and work in one of them."
    )
}

pub fn unread(n_unread: usize) -> String {
    format!("crewlog: {}; read_inbox shows them.", count(n_unread, "unread message"))
}

/// The steps that a session is offered, in one line.
pub fn ready(offers: &[Offer]) -> String {
    let shown = first(offers.iter(), TASKS_MAX, ", ", |Offer { target, title, .. }| {
        format!("{target} {}", quoted_line(title, WORDS_CHARS_MAX))
    });
    format!("crewlog: ready for you: {shown}; next_task claims the first.")
}

/// The step that a session is offered at the end of its turn.
pub fn next_step(offer: &Offer) -> String {
    format!("{} Or end your turn: this is said once.", ready(std::slice::from_ref(offer)))
}

/// The leases and tasks that keep an agent from stopping.
pub fn still_held(leases: &[(u64, Lease)], tasks: &[String]) -> String {
    let mut parts = Vec::new();
    if !tasks.is_empty() {
        let tasks = first(tasks.iter(), TASKS_MAX, ", ", String::clone);
        parts.push(format!("the tasks {tasks} (update_task ends them or gives them back)"));
    }
    if !leases.is_empty() {
        let files = files(leases.iter().map(|(_, lease)| lease));
        parts.push(format!("leases on {files} (release_paths frees them)"));
    }
    format!("crewlog: you still hold {}. The tool leave gives everything back.", parts.join(" and "))
}

/// The text for an agent at the start of its session.
pub async fn at_start(crew: &Crew, agent: &str, worktree: &str) -> Result<String, Refusal> {
    let tasks = crew.tasks(Some(State::Running)).await?;
    let of = |name: &str| tasks.iter().filter(|task| task.assignee.as_deref() == Some(name)).collect::<Vec<_>>();
    let n_unread = crew.messages().await?.unread(agent).count();
    let mut text = format!("crewlog: you are {agent} in project {}, worktree {worktree}.\n", crew.project());
    let agents = crew.agents().await?;
    let others = agents.iter().filter(|(name, found)| *name != agent && found.liveness != Liveness::Left);
    let others: Vec<_> = others.map(|(name, found)| (name.to_owned(), found.profile.program.clone())).collect();
    drop(agents);
    let leases = crew.leases().await?;
    text += &first(others.iter(), AGENTS_MAX, "\n", |(name, program)| {
        format!("Present: {name} ({}){}", quoted_line(program, 24), work(&leases, name, &of(name)))
    });
    text += if others.is_empty() { "No other agent is present.\n" } else { "\n" };
    let _ = writeln!(text, "You{}", work(&leases, agent, &of(agent)));
    drop(leases);
    let is_going_on = !of(agent).is_empty();
    let _ = writeln!(
        text,
        "{}.{}",
        count(n_unread, "unread message"),
        if is_going_on { " get_brief shows your work so far." } else { "" }
    );
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
        let _ = write!(text, "; task {} {}", task.id, quoted_line(&task.title, WORDS_CHARS_MAX));
        if let Some(next) = &task.next_step {
            let _ = write!(text, ", next step {}", quoted_line(next, WORDS_CHARS_MAX));
        }
    }
    text
}

fn files<'a>(leases: impl Iterator<Item = &'a Lease>) -> String {
    first(leases, FILES_MAX, ", ", |lease| quoted_line(&lease.target.path, PATH_CHARS_MAX))
}

/// The first `max` items as text, and how many more there are.
fn first<T>(mut items: impl Iterator<Item = T>, max: usize, between: &str, shown: impl Fn(T) -> String) -> String {
    let text = items.by_ref().take(max).map(shown).collect::<Vec<_>>().join(between);
    match items.count() {
        0 => text,
        n_more => format!("{text}{between}{n_more} more"),
    }
}
