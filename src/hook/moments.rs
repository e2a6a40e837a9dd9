//! The actions at each moment of a session: joins the agent, checks and takes leases, counts messages, and returns the
//! agent's leases and tasks at its end.

use crewlog_executors::crew::briefs::{CONTEXT_FULL, WHEN_FULL};
use crewlog_executors::crew::offers::Offer;
use crewlog_executors::crew::{Caller, Crew, Refusal};
use crewlog_planner::crew::agents::{Activity, Agent, LeaveOutcome};
use crewlog_planner::crew::asks::Withdrawn;
use crewlog_planner::crew::leases::{By, Lease, LeaseCommand, MergeRisk, Request, Turn, Which};
use crewlog_planner::crew::{CrewError, leases};
use tokio::time::timeout;

use super::dialect::{Call, Moment, Verdict};
use super::edits::{Changes, Hit};
use super::identity::{Hook, Origin, Tie};
use super::in_time::RECORD_WAIT;
use super::notes::Before;
use super::touches::Edits;
use super::{edits, facts};
use crate::ui::text::count;

/// Decides on one run of a hook.
///
/// # Errors
/// A fault of the log, or an invalid name of an agent.
pub async fn answer(crew: &Crew, origin: &Origin, call: &Call) -> Result<Verdict, Refusal> {
    let hook = Hook::new(crew, origin, call);
    let decided = decide(crew, &hook).await;
    // Nothing is decided by it.
    let _ = timeout(RECORD_WAIT, hook.observe(matches!(decided, Ok(Verdict::Refuse(_))))).await;
    // Only `doctor` reads it, so a failure to store it is ignored.
    let _ = timeout(RECORD_WAIT, crew.hook_ran(call.host.program())).await;
    match decided {
        Err(Refusal::Crew(error @ CrewError::Superseded(_))) => Ok(match &call.moment {
            Moment::Before(edits) if edits.touches.is_empty() => {
                Verdict::Refuse(format!("this commit is refused: {error}"))
            }
            Moment::Before(_) => Verdict::Refuse(format!("this edit is refused: {error}")),
            _after_it => Verdict::Allow(String::new()),
        }),
        decided => decided,
    }
}

async fn decide(crew: &Crew, hook: &Hook<'_>) -> Result<Verdict, Refusal> {
    let call = hook.call;
    match &call.moment {
        Moment::Before(edits) => {
            // Without the list only this call's changes are not compared.
            let _ = hook.list_leased().await;
            return hook.before(edits).await;
        }
        Moment::Other => {
            if call.is_shell() {
                hook.list_leased().await?;
            }
            return Ok(Verdict::Allow(String::new()));
        }
        Moment::Start => {
            let twin = hook.known().await?.filter(|(_, agent)| hook.is_twin(agent) && hook.tie(agent) == Tie::Session);
            let caller = hook.joined().await?;
            crew.present(&caller).await?;
            let start = facts::at_start(crew, &caller.agent, &hook.here.name).await?;
            let notices = facts::notices(&crew.notices(&caller.agent).await?);
            let twin = twin.map(|(caller, _)| facts::twin(&caller.agent));
            let lines = [start].into_iter().chain(twin).chain(notices).chain(hook.ready(&caller).await?);
            return Ok(Verdict::Allow(lines.collect::<Vec<_>>().join("\n")));
        }
        Moment::Moved => return hook.moved().await,
        Moment::StatusLine { own } => return hook.status_line(*own).await,
        Moment::Prompt
        | Moment::After(_)
        | Moment::Permission
        | Moment::Answered
        | Moment::Stop { .. }
        | Moment::End => {}
    }
    let changed = hook.changed();
    if !changed.is_empty() {
        hook.joined().await?;
    }
    let Some((caller, agent)) = hook.known().await? else { return Ok(Verdict::Allow(String::new())) };
    // The call has run, or the turn continues without it: its person has answered the dialog of the program.
    let which = match (&call.moment, &call.tool) {
        (Moment::After(_) | Moment::Answered, Some(tool)) => Some(Withdrawn::Call(tool.digest.clone())),
        (Moment::Prompt | Moment::Stop { .. }, _) => Some(Withdrawn::Calls),
        _others => None,
    };
    if let Some(which) = which {
        crew.withdraw_asks(&caller.agent, which, "answered in its program").await?;
    }
    let mut lines = match &call.moment {
        Moment::Stop { is_repeated } => return hook.stop(&caller, &agent, *is_repeated).await,
        Moment::End => return hook.end(&caller, &agent).await,
        Moment::Answered => return Ok(Verdict::Allow(String::new())),
        Moment::After(edits) => hook.after(&caller, edits, changed).await?,
        Moment::Start
        | Moment::Prompt
        | Moment::Before(_)
        | Moment::Permission
        | Moment::Moved
        | Moment::StatusLine { .. }
        | Moment::Other => hook.after(&caller, &Edits::default(), changed).await?,
    };
    if agent.context_usage().is_some_and(|used| used >= CONTEXT_FULL) && crew.hears_that_it_is_full(&caller).await? {
        lines.push(format!("crewlog: {WHEN_FULL}."));
    }
    if call.moment == Moment::Prompt {
        lines.extend(hook.ready(&caller).await?);
    }
    Ok(Verdict::Allow(lines.join("\n")))
}

impl Hook<'_> {
    /// Records the state that the hook shows, after a stop that was refused that the agent works on.
    pub async fn observe(&self, is_refused: bool) -> Result<(), Refusal> {
        let Some(sight) = &self.call.sight else { return Ok(()) };
        let Some((caller, agent)) = self.known().await? else { return Ok(()) };
        let mut shown = sight.after(agent.observed(), self.crew.store().now());
        if is_refused && matches!(self.call.moment, Moment::Stop { .. }) {
            shown.activity = Some(Activity::Working);
        }
        self.crew.observe(&caller.agent, &agent, shown).await
    }

    /// The session works in another worktree: so does its agent, whose next leases are there.
    async fn moved(&self) -> Result<Verdict, Refusal> {
        if self.known().await?.is_some_and(|(_, agent)| agent.profile.worktree != self.here.name) {
            self.joined().await?;
        }
        Ok(Verdict::Allow(String::new()))
    }

    /// A short line about the agent.
    async fn status_line(&self, own: bool) -> Result<Verdict, Refusal> {
        let known = if own { self.known().await? } else { None };
        let Some((Caller { agent, .. }, _)) = known else { return Ok(Verdict::Allow(String::new())) };
        let n_leases = self.crew.leases().await?.of_agent(&agent).count();
        let n_unread = self.crew.messages().await?.unread(&agent).count();
        let (leases, unread) = (count(n_leases, "lease"), format!("{n_unread} unread"));
        Ok(Verdict::Allow(format!("{agent} · {leases} · {unread}")))
    }

    /// Before edits: refuses them if others hold leases on the files, else leases the files for the agent. The leases that
    /// were read decide: a refusal stands, even if nothing can be written after it.
    async fn before(&self, edits: &Edits) -> Result<Verdict, Refusal> {
        let all = edits::changes(&self.home, &self.call.cwd, edits).await;
        if all.is_empty() && !edits.is_cut {
            return Ok(Verdict::Allow(String::new()));
        }
        if let Some(own) = all.iter().find_map(|changes| changes.of_crewlog.first()) {
            return Ok(Verdict::Refuse(facts::of_crewlog(own)));
        }
        let name = self.name_to_compare().await?;
        for changes in &all {
            let (_, hits) = changes.compared(self.crew, &name, self.origin.is_strict).await?;
            if !hits.is_empty() {
                return Ok(self.refuse(changes, &hits).await);
            }
        }
        let taken = match &self.origin.unconfigured {
            Some(why) => Ok(Verdict::Allow(format!("crewlog takes no lease on this file, since {why}"))),
            None => self.take(&all).await,
        };
        if matches!(taken, Ok(Verdict::Allow(_))) {
            for changes in &all {
                changes.check().await?;
            }
            edits.check()?;
        }
        taken
    }

    /// Leases the files of all changes. A session that cannot have a name takes none.
    async fn take(&self, all: &[Changes]) -> Result<Verdict, Refusal> {
        let (caller, mut said) = match self.joined().await {
            Ok(caller) => (caller, Vec::new()),
            Err(Refusal::Crew(why @ (CrewError::Invalid(_) | CrewError::Taken(_) | CrewError::Full(_)))) => {
                return Ok(Verdict::Allow(format!("crewlog takes no lease for this session: {why}")));
            }
            Err(failed) => return Err(failed),
        };
        for changes in all {
            match self.lease(&caller, changes).await? {
                Ok(risks) => said.extend((!risks.is_empty()).then(|| facts::merge_risks(&risks))),
                Err(hits) => return Ok(self.refuse(changes, &hits).await),
            }
        }
        self.crew.present(&caller).await?;
        Ok(Verdict::Allow(said.join("\n")))
    }

    /// Leases the files of an edit unless others hold them, so that two agents never unknowingly edit the same file.
    async fn lease(&self, caller: &Caller, changes: &Changes) -> Result<Result<Vec<MergeRisk>, Vec<Hit>>, Refusal> {
        let (targets, hits) = changes.compared(self.crew, &caller.agent, self.origin.is_strict).await?;
        if !hits.is_empty() {
            return Ok(Err(hits));
        }
        if targets.is_empty() || !self.origin.lease_on_edit {
            return Ok(Ok(Vec::new()));
        }
        let request = Request {
            holder: changes.holder(&caller.agent),
            targets,
            is_exclusive: true,
            ttl: leases::TTL,
            reason: facts::EDITING.to_owned(),
            task: None,
            is_strict: self.origin.is_strict,
        };
        match self.crew.reserve(caller, request, Turn::Edit).await {
            Ok(granted) => Ok(Ok(granted.map(|granted| granted.merge_risks).unwrap_or_default())),
            Err(Refusal::Crew(CrewError::Held(blocked))) => {
                let leases = self.crew.leases().await?;
                let hits = blocked.into_iter().map(|blocked| Hit::of(&leases, blocked)).collect::<Vec<_>>();
                drop(leases);
                Ok(Err(hits))
            }
            Err(error) => Err(error),
        }
    }

    async fn refuse(&self, changes: &Changes, hits: &[Hit]) -> Verdict {
        let record = async {
            let caller = self.joined().await?;
            for Hit { blocked, .. } in hits.iter().take(facts::HITS_MAX) {
                if let By::Lease(lease) = blocked.by {
                    let (holder, target) = (changes.holder(&caller.agent), blocked.asked.clone());
                    self.crew.record_edit(|now| LeaseCommand::RefuseEdit { holder, target, lease, now }).await?;
                }
            }
            Ok::<_, Refusal>(())
        };
        if self.origin.unconfigured.is_none() {
            let _ = timeout(RECORD_WAIT, record).await;
        }
        Verdict::Refuse(facts::refusal(hits, changes.is_commit, changes.extent))
    }

    /// After a tool call or a prompt: records changes without a lease, and announces new messages.
    async fn after(&self, caller: &Caller, edits: &Edits, changed: Before) -> Result<Vec<String>, Refusal> {
        self.crew.present(caller).await?;
        let (mut foreign, mut said) = self.judge(caller, changed).await?;
        for changes in edits::changes(&self.home, &self.call.cwd, edits).await {
            let (targets, mut hits) = changes.compared(self.crew, &caller.agent, false).await?;
            hits.retain(|hit| targets.contains(&hit.blocked.asked));
            for path in targets {
                let (worktree, agent) = (changes.worktree.name.clone(), Some(caller.agent.clone()));
                self.crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent, now }).await?;
            }
            hits.retain(|hit| foreign.iter().all(|known| known.blocked.asked != hit.blocked.asked));
            foreign.extend(hits);
        }
        if !foreign.is_empty() {
            said.insert(0, format!("crewlog: this call changed files of others: {}.", facts::listed(&foreign)));
        }
        let (n_new, n_unread) = self.crew.offer(&caller.agent).await?;
        said.extend((n_new > 0).then(|| facts::unread(n_unread)));
        said.extend(facts::notices(&self.crew.notices(&caller.agent).await?));
        Ok(said)
    }

    /// The end of a turn: ends leases for edits. Other leases and tasks keep the agent from stopping, once.
    async fn stop(&self, caller: &Caller, agent: &Agent, is_repeated: bool) -> Result<Verdict, Refusal> {
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let live = leases.of_agent(&caller.agent).filter(|(_, lease)| now <= lease.until);
        let own: Vec<(u64, Lease)> = live.map(|(number, lease)| (number, lease.clone())).collect();
        drop(leases);
        let (editing, held): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, lease)| lease.reason == facts::EDITING);
        if !editing.is_empty() && matches!(self.tie(agent), Tie::Session | Tie::Program) {
            let which = Which::Numbers(editing.into_iter().map(|(number, _)| number).collect());
            self.crew.release(caller, which).await?;
        }
        let tasks = if is_repeated { Vec::new() } else { self.crew.tasks_of(&caller.agent).await? };
        if is_repeated {
            return Ok(Verdict::Allow(String::new()));
        }
        let held = (!held.is_empty() || !tasks.is_empty()).then(|| facts::still_held(&held, &tasks));
        let notices = facts::notices(&self.crew.notices(&caller.agent).await?);
        if held.is_some() || notices.is_some() {
            return Ok(Verdict::Refuse(notices.into_iter().chain(held).collect::<Vec<_>>().join("\n")));
        }
        // Programs that cannot be woken read the messages of people before they are idle.
        if !self.crew.unread_of_people(&caller.agent).await?.is_empty()
            && let (1.., n_unread) = self.crew.offer(&caller.agent).await?
        {
            return Ok(Verdict::Refuse(facts::unread(n_unread)));
        }
        // A session that works on a plan is offered its next step, each once.
        match self.offers(caller, true).await?.first() {
            Some(offer) if self.crew.offer_step(&caller.agent, &offer.target).await? => {
                Ok(Verdict::Refuse(facts::next_step(offer)))
            }
            Some(_) | None => Ok(Verdict::Allow(String::new())),
        }
    }

    /// The steps that a session is offered, unless the plans of the log cannot be read in time.
    async fn offers(&self, caller: &Caller, only_own: bool) -> Result<Vec<Offer>, Refusal> {
        timeout(RECORD_WAIT, self.crew.offers(&caller.agent, only_own)).await.unwrap_or_else(|_| Ok(Vec::new()))
    }

    /// The ready steps for a session, in a line.
    async fn ready(&self, caller: &Caller) -> Result<Option<String>, Refusal> {
        let offers = self.offers(caller, false).await?;
        Ok((!offers.is_empty()).then(|| facts::ready(&offers)))
    }

    /// The end of a session, or of a subagent.
    async fn end(&self, caller: &Caller, agent: &Agent) -> Result<Verdict, Refusal> {
        // Another process that has the same session may still use it.
        if self.tie(agent) == Tie::Session && !self.is_twin(agent) {
            let note = "its session ended".to_owned();
            self.crew.leave(caller, LeaveOutcome::Success, note, String::new()).await?;
        }
        Ok(Verdict::Allow(String::new()))
    }
}
