//! What crewlog does at each moment of a session: it joins the agent, checks and takes leases, counts messages, and
//! gives back what an agent holds at its end.

use crewlog_executors::crew::{Caller, Crew, Refusal, Reserve, Reserved};
use crewlog_planner::crew::agents::Outcome;
use crewlog_planner::crew::leases::{self, Lease, LeaseCommand, Which};

use super::answer::Verdict;
use super::dialect::Call;
use super::edits::{self, Changes, Hit};
use super::identity::{self, Origin};
use super::{Edits, Intent, Moment, facts};
use crate::crew::worktree::Worktree;

/// Decides about one run of a hook.
///
/// # Errors
/// A fault of the log, or a name that no agent can have.
pub async fn answer(crew: &Crew, origin: &Origin, call: &Call) -> Result<Verdict, Refusal> {
    let home = Worktree::around(&origin.folder);
    let here = home.around_path(&call.cwd, ".git".as_ref()).unwrap_or_else(|| home.clone());
    match (&call.moment, &call.intent) {
        (Moment::PreTool, Intent::Edits(edits)) => return before(crew, origin, call, (&home, &here), edits).await,
        (Moment::SessionStart { .. }, _) => {
            let caller = identity::joined(crew, origin, call, here.name()).await?;
            crew.present(&caller).await?;
            return Ok(Verdict::AllowWith(facts::at_start(crew, &caller.agent, here.name()).await?));
        }
        (Moment::Other, _) | (Moment::PreTool, Intent::Nothing | Intent::OwnTool(_)) => return Ok(Verdict::Allow),
        (Moment::PostTool | Moment::Prompt | Moment::Stop | Moment::SessionEnd, _) => {}
    }
    let Some(caller) = identity::known(crew, origin, call, here.name()).await? else { return Ok(Verdict::Allow) };
    match (&call.moment, &call.intent) {
        (Moment::PostTool, Intent::Edits(edits)) => after(crew, call, &home, &caller, edits).await,
        (Moment::Stop, _) => stop(crew, call, &caller).await,
        (Moment::SessionEnd, _) => {
            if identity::owns(crew, origin, call, &caller.agent).await? {
                let note = "its session ended".to_owned();
                crew.leave(&caller, Outcome::Success, note, String::new()).await?;
            }
            Ok(Verdict::Allow)
        }
        (_, _) => {
            crew.present(&caller).await?;
            news(crew, &caller).await
        }
    }
}

/// A tool call with edits: refused if others hold leases on the files, else the files are leased for the agent.
async fn before(
    crew: &Crew,
    origin: &Origin,
    call: &Call,
    (home, here): (&Worktree, &Worktree),
    edits: &Edits,
) -> Result<Verdict, Refusal> {
    let touched = edits::changes(home, &call.cwd, edits);
    let committed = edits::staged(home, &call.cwd, &edits.commits).await;
    let n_files = |changes: &Changes| changes.files.len() + usize::from(changes.is_everything);
    if touched.iter().chain(&committed).map(n_files).sum::<usize>() == 0 {
        return Ok(Verdict::Allow);
    }
    let caller = identity::joined(crew, origin, call, here.name()).await?;
    let agent = &caller.agent;
    let mut said = Vec::new();
    for changes in &touched {
        let leases = crew.leases().await?;
        let now = crew.store().now();
        let mut hits = changes.hits(&leases, agent, origin.is_strict, now);
        let mut free = if origin.lease_on_edit { changes.unleased(&leases, agent, now) } else { Vec::new() };
        drop(leases);
        if hits.is_empty() && free.is_empty() {
            continue;
        }
        let ignored = changes.ignored(hits.iter().map(|hit| &hit.asked).chain(&free)).await;
        hits.retain(|hit| !ignored.contains(&hit.asked.path));
        free.retain(|target| !ignored.contains(&target.path));
        if !hits.is_empty() {
            return refuse(crew, changes, agent, &hits, "this edit is refused").await;
        }
        if free.is_empty() {
            continue;
        }
        match lease(crew, origin, &caller, changes, free).await? {
            Leased::Refused(hits) => return refuse(crew, changes, agent, &hits, "this edit is refused").await,
            Leased::Granted(risks) if risks.is_empty() => {}
            Leased::Granted(risks) => said.push(facts::merge_risks(&risks)),
        }
    }
    for changes in &committed {
        let hits = changes.hits(&*crew.leases().await?, agent, origin.is_strict, crew.store().now());
        if !hits.is_empty() {
            return refuse(crew, changes, agent, &hits, "this commit is refused, its index has files of others").await;
        }
    }
    if edits.is_truncated {
        said.push("crewlog: this call names more changes than are checked.".to_owned());
    }
    crew.present(&caller).await?;
    Ok(Verdict::AllowWith(said.join("\n")))
}

enum Leased {
    Granted(Vec<leases::MergeRisk>),
    Refused(Vec<Hit>),
}

/// Leases the files of an edit, so that two agents never edit one file unknowingly.
async fn lease(
    crew: &Crew,
    origin: &Origin,
    caller: &Caller,
    changes: &Changes,
    targets: Vec<crewlog_planner::crew::target::Target>,
) -> Result<Leased, Refusal> {
    let reserve = Reserve {
        targets,
        is_exclusive: true,
        ttl: leases::TTL,
        reason: facts::EDITING.to_owned(),
        task: None,
        is_strict: origin.is_strict,
        wait: None,
    };
    let caller = Caller { worktree: changes.worktree.name().to_owned(), ..caller.clone() };
    match crew.reserve(&caller, reserve).await? {
        Reserved::Granted { merge_risks, .. } => Ok(Leased::Granted(merge_risks)),
        Reserved::Queued { .. } => Ok(Leased::Granted(Vec::new())),
        Reserved::Denied { blocked } => {
            let leases = crew.leases().await?;
            Ok(Leased::Refused(blocked.into_iter().map(|blocked| Hit::of(&leases, blocked)).collect()))
        }
    }
}

async fn refuse(crew: &Crew, changes: &Changes, agent: &str, hits: &[Hit], what: &str) -> Result<Verdict, Refusal> {
    for hit in hits.iter().take(facts::HITS_MAX) {
        if let Some(lease) = hit.lease {
            let (holder, target) = (changes.holder(agent), hit.asked.clone());
            crew.record_edit(|now| LeaseCommand::RefuseEdit { holder, target, lease, now }).await?;
        }
    }
    Ok(Verdict::Deny(facts::refusal(hits, what)))
}

/// A tool call that has run: what it changed without a lease is recorded.
async fn after(crew: &Crew, call: &Call, home: &Worktree, caller: &Caller, edits: &Edits) -> Result<Verdict, Refusal> {
    crew.present(caller).await?;
    let mut said = Vec::new();
    for changes in edits::changes(home, &call.cwd, edits) {
        let leases = crew.leases().await?;
        let now = crew.store().now();
        let (free, hits) =
            (changes.unleased(&leases, &caller.agent, now), changes.hits(&leases, &caller.agent, false, now));
        drop(leases);
        if free.is_empty() {
            continue;
        }
        let ignored = changes.ignored(free.iter()).await;
        for path in free.into_iter().filter(|target| !ignored.contains(&target.path)) {
            let (worktree, agent) = (changes.worktree.name().to_owned(), Some(caller.agent.clone()));
            crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent, now }).await?;
        }
        let hits: Vec<_> = hits.into_iter().filter(|hit| !ignored.contains(&hit.asked.path)).collect();
        if !hits.is_empty() {
            said.push(format!("crewlog: this call changed files of others: {}.", facts::listed(&hits)));
        }
    }
    if let Verdict::AllowWith(text) = news(crew, caller).await? {
        said.push(text);
    }
    Ok(Verdict::AllowWith(said.join("\n")))
}

/// The number of unread messages, when there are new ones.
async fn news(crew: &Crew, caller: &Caller) -> Result<Verdict, Refusal> {
    Ok(match crew.offer(&caller.agent).await? {
        (0, _) => Verdict::Allow,
        (_, n_unread) => Verdict::AllowWith(facts::unread(n_unread)),
    })
}

/// The end of a turn: leases for edits end, and what else the agent holds keeps it from stopping, once.
async fn stop(crew: &Crew, call: &Call, caller: &Caller) -> Result<Verdict, Refusal> {
    let leases = crew.leases().await?;
    let now = crew.store().now();
    let live = leases.of_agent(&caller.agent).filter(|(_, lease)| now <= lease.until);
    let own: Vec<(u64, Lease)> = live.map(|(number, lease)| (number, lease.clone())).collect();
    drop(leases);
    let (editing, held): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, lease)| lease.reason == facts::EDITING);
    if !editing.is_empty() {
        crew.release(caller, Which::Numbers(editing.into_iter().map(|(number, _)| number).collect())).await?;
    }
    if call.is_repeated_stop {
        return Ok(Verdict::Allow);
    }
    let tasks = crew.tasks_of(&caller.agent).await?;
    Ok(match held.is_empty() && tasks.is_empty() {
        true => Verdict::Allow,
        false => Verdict::RefuseStop(facts::still_held(&held, &tasks)),
    })
}
