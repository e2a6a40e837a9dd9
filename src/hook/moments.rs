//! What crewlog does at each moment of a session: it joins the agent, checks and takes leases, counts messages, and
//! gives back what an agent holds at its end.

use crewlog_executors::crew::{Caller, Crew, Refusal, Reserve, Reserved};
use crewlog_planner::crew::agents::Outcome;
use crewlog_planner::crew::leases::{self, By, Lease, LeaseCommand, Which};

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
    // `doctor` reads it; that it cannot be kept is no reason to refuse.
    let _ = crew.hook_ran(call.host.program()).await;
    let home = Worktree::around(&origin.folder);
    let here = home.around_path(&call.cwd, ".git".as_ref()).unwrap_or_else(|| home.clone());
    Hook { crew, origin, call, home, here }.answer().await
}

/// One run of a hook.
struct Hook<'a> {
    crew: &'a Crew,
    origin: &'a Origin,
    call: &'a Call,
    /// The worktree of the hook's process, which says which repository counts.
    home: Worktree,
    /// The worktree that the agent works in.
    here: Worktree,
}

impl Hook<'_> {
    async fn answer(&self) -> Result<Verdict, Refusal> {
        match (&self.call.moment, &self.call.intent) {
            (Moment::PreTool, Intent::Edits(edits)) => return self.before(edits).await,
            (Moment::SessionStart { .. }, _) => {
                let caller = self.joined().await?;
                self.crew.present(&caller).await?;
                let text = facts::at_start(self.crew, &caller.agent, self.here.name()).await?;
                return Ok(Verdict::AllowWith(text));
            }
            (Moment::Other, _) | (Moment::PreTool, Intent::Nothing | Intent::OwnTool(_)) => return Ok(Verdict::Allow),
            (Moment::PostTool | Moment::Prompt | Moment::Stop | Moment::SessionEnd, _) => {}
        }
        let known = identity::known(self.crew, self.origin, self.call, self.here.name()).await?;
        let Some(caller) = known else { return Ok(Verdict::Allow) };
        match (&self.call.moment, &self.call.intent) {
            (Moment::PostTool, Intent::Edits(edits)) => self.after(&caller, edits).await,
            (Moment::Stop, _) => self.stop(&caller).await,
            (Moment::SessionEnd, _) => self.end(&caller).await,
            (_, _) => {
                self.crew.present(&caller).await?;
                Ok(Verdict::AllowWith(self.news(&caller).await?.unwrap_or_default()))
            }
        }
    }

    async fn joined(&self) -> Result<Caller, Refusal> {
        identity::joined(self.crew, self.origin, self.call, self.here.name()).await
    }

    /// A tool call with edits: refused if others hold leases on the files, else the files are leased for the agent.
    async fn before(&self, edits: &Edits) -> Result<Verdict, Refusal> {
        let touched = edits::changes(&self.home, &self.call.cwd, edits);
        let committed = edits::staged(&self.home, &self.call.cwd, &edits.commits).await;
        if touched.iter().chain(&committed).all(Changes::is_empty) {
            return Ok(Verdict::Allow);
        }
        let caller = self.joined().await?;
        let mut said = Vec::new();
        for changes in &touched {
            match self.lease(&caller, changes).await? {
                Leased::Refused(hits) => return self.refuse(&caller, changes, &hits, "this edit is refused").await,
                Leased::Granted(risks) if risks.is_empty() => {}
                Leased::Granted(risks) => said.push(facts::merge_risks(&risks)),
            }
        }
        for changes in &committed {
            let leases = self.crew.leases().await?;
            let hits = changes.hits(&leases, &caller.agent, self.origin.is_strict, self.crew.store().now());
            drop(leases);
            if !hits.is_empty() {
                return self.refuse(&caller, changes, &hits, facts::COMMIT_REFUSED).await;
            }
        }
        if edits.is_truncated {
            said.push("crewlog: this call names more changes than are checked.".to_owned());
        }
        self.crew.present(&caller).await?;
        Ok(Verdict::AllowWith(said.join("\n")))
    }

    /// Leases the files of an edit, so that two agents never edit one file unknowingly, unless others hold them.
    async fn lease(&self, caller: &Caller, changes: &Changes) -> Result<Leased, Refusal> {
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let mut hits = changes.hits(&leases, &caller.agent, self.origin.is_strict, now);
        let mut targets = changes.unleased(&leases, &caller.agent, now);
        drop(leases);
        targets.retain(|_| self.origin.lease_on_edit);
        let ignored = changes.ignored(hits.iter().map(|hit| &hit.blocked.asked).chain(&targets)).await;
        hits.retain(|hit| !ignored.contains(&hit.blocked.asked.path));
        targets.retain(|target| !ignored.contains(&target.path));
        if !hits.is_empty() || targets.is_empty() {
            return Ok(if hits.is_empty() { Leased::Granted(Vec::new()) } else { Leased::Refused(hits) });
        }
        let reserve = Reserve {
            targets,
            is_exclusive: true,
            ttl: leases::TTL,
            reason: facts::EDITING.to_owned(),
            task: None,
            is_strict: self.origin.is_strict,
            wait: None,
        };
        let caller = Caller { worktree: changes.worktree.name().to_owned(), ..caller.clone() };
        match self.crew.reserve(&caller, reserve).await? {
            Reserved::Granted { merge_risks, .. } => Ok(Leased::Granted(merge_risks)),
            Reserved::Queued { .. } => Ok(Leased::Granted(Vec::new())),
            Reserved::Denied { blocked } => {
                let leases = self.crew.leases().await?;
                Ok(Leased::Refused(blocked.into_iter().map(|blocked| Hit::of(&leases, blocked)).collect()))
            }
        }
    }

    async fn refuse(&self, caller: &Caller, changes: &Changes, hits: &[Hit], what: &str) -> Result<Verdict, Refusal> {
        for Hit { blocked, .. } in hits.iter().take(facts::HITS_MAX) {
            if let By::Lease(lease) = blocked.by {
                let (holder, target) = (changes.holder(&caller.agent), blocked.asked.clone());
                self.crew.record_edit(|now| LeaseCommand::RefuseEdit { holder, target, lease, now }).await?;
            }
        }
        Ok(Verdict::Deny(facts::refusal(hits, what)))
    }

    /// A tool call that has run: what it changed without a lease is recorded.
    async fn after(&self, caller: &Caller, edits: &Edits) -> Result<Verdict, Refusal> {
        self.crew.present(caller).await?;
        let mut said = Vec::new();
        for changes in edits::changes(&self.home, &self.call.cwd, edits) {
            let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
            let targets = changes.unleased(&leases, &caller.agent, now);
            let mut hits = changes.hits(&leases, &caller.agent, false, now);
            drop(leases);
            let ignored = changes.ignored(targets.iter()).await;
            hits.retain(|hit| targets.contains(&hit.blocked.asked) && !ignored.contains(&hit.blocked.asked.path));
            for path in targets.into_iter().filter(|target| !ignored.contains(&target.path)) {
                let (worktree, agent) = (changes.worktree.name().to_owned(), Some(caller.agent.clone()));
                self.crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent, now }).await?;
            }
            if !hits.is_empty() {
                said.push(format!("crewlog: this call changed files of others: {}.", facts::listed(&hits)));
            }
        }
        said.extend(self.news(caller).await?);
        Ok(Verdict::AllowWith(said.join("\n")))
    }

    /// The number of unread messages, when there are new ones.
    async fn news(&self, caller: &Caller) -> Result<Option<String>, Refusal> {
        let (n_new, n_unread) = self.crew.offer(&caller.agent).await?;
        Ok((n_new > 0).then(|| facts::unread(n_unread)))
    }

    /// The end of a turn: leases for edits end, and what else the agent holds keeps it from stopping, once.
    async fn stop(&self, caller: &Caller) -> Result<Verdict, Refusal> {
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let live = leases.of_agent(&caller.agent).filter(|(_, lease)| now <= lease.until);
        let own: Vec<(u64, Lease)> = live.map(|(number, lease)| (number, lease.clone())).collect();
        drop(leases);
        let (editing, held): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, lease)| lease.reason == facts::EDITING);
        if !editing.is_empty() {
            let which = Which::Numbers(editing.into_iter().map(|(number, _)| number).collect());
            self.crew.release(caller, which).await?;
        }
        if self.call.is_repeated_stop {
            return Ok(Verdict::Allow);
        }
        let tasks = self.crew.tasks_of(&caller.agent).await?;
        let is_free = held.is_empty() && tasks.is_empty();
        Ok(if is_free { Verdict::Allow } else { Verdict::RefuseStop(facts::still_held(&held, &tasks)) })
    }

    /// The end of a session, or of a subagent.
    async fn end(&self, caller: &Caller) -> Result<Verdict, Refusal> {
        if identity::owns(self.crew, self.origin, self.call, &caller.agent).await? {
            let note = "its session ended".to_owned();
            self.crew.leave(caller, Outcome::Success, note, String::new()).await?;
        }
        Ok(Verdict::Allow)
    }
}

/// What asking for the files of an edit led to.
enum Leased {
    Granted(Vec<leases::MergeRisk>),
    Refused(Vec<Hit>),
}
