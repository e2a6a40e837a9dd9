//! Carries one task out: as a member of the crew, from the claim to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crewlog_mq::Runner;
use crewlog_planner::claim::{Ending, Executor, TaskCommand, TaskLease};
use crewlog_planner::event::FailureClass;
use crewlog_planner::sealed::key_of;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{InterruptedTask, Ran, Worker};
use crate::agent::Agent;
use crate::attachments;
use crate::breakers::Clearance;
use crate::budgets::Budgets;
use crate::caller::host;
use crate::changes::Interruption;
use crate::claiming::{Bid, ClaimOutcome, append, claim_of, claim_task, keep_session, report_late};
use crate::consent::Input;
use crate::crew::runs::{Member, Membership};
use crate::prompts::Rendered;
use crate::queue::Dispatch;
use crate::roster::Actor;
use crate::run::{self, Job, Report, SoFar, Stop, wanted};
use crate::subplans::SubPlans;

/// How often the budgets of a run are looked at.
const BUDGET_INTERVAL: Duration = Duration::from_secs(1);

impl Worker {
    /// Carries a task out from the claim to its end.
    pub(super) async fn carry_out(
        self: Arc<Self>,
        mut dispatch: Dispatch,
        prompt: Option<Rendered>,
        held: Arc<AtomicU64>,
        mut stop: watch::Receiver<Option<Stop>>,
    ) -> Ran {
        let (key, seen) = (dispatch.key(), dispatch.seen);
        let not_run = |key| Ran { key, position: seen, is_blocked: false };
        let Some(actor) = self.roster.actor(dispatch.kind, &dispatch.parameters) else { return not_run(key) };
        if let Some(trust) = &self.roster.trust {
            let input = Input::of_dispatch(&dispatch.plan, dispatch.task, &dispatch.parameters);
            if !trust.agrees(&input, actor.name(), &dispatch.cause).await {
                return not_run(key);
            }
        }
        if let Some(kept) = &dispatch.parameters.folder {
            let Ok(folder) = self.roster.find(kept) else { return not_run(key) };
            dispatch.parameters.folder = Some(folder.to_string_lossy().into_owned());
        }
        let Some(actor) = self.roster.actor(dispatch.kind, &dispatch.parameters) else { return not_run(key) };
        let limits = self.roster.limits.as_ref().filter(|_| matches!(actor, Actor::Agent(..)));
        let start = match limits {
            Some(limits) => limits.start(actor.name(), &dispatch.target(), &dispatch.cause).await,
            None => Clearance::Free,
        };
        if start == Clearance::Refused {
            return not_run(key);
        }
        let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
        let checked = attachments::checked(&dispatch.parameters).await;
        let checked = checked.map_err(|question| Ending::Asked { question, default: None });
        let reports = self.interrupted == InterruptedTask::Report && !actor.only_waits();
        let has_files = !(dispatch.parameters.files.is_empty() || actor.only_waits());
        let may_join = (matches!(actor, Actor::Agent(..)) || has_files) && checked.is_ok();
        // One that only reports an end needs no files.
        let has_read = may_join && claim.catch_up().await.is_ok();
        let is_cut_short = has_read && claim.handler().cut_short(dispatch.attempt).is_some();
        let is_member = may_join && !(reports && is_cut_short);
        let joined = if is_member { self.crews.join(&dispatch, actor.name()).await } else { Membership::Alone };
        let (member, mut is_blocked, checked) = joined.or(checked);
        let is_told = prompt.is_some() && !is_blocked;
        let left = if is_told { self.left_by(claim.handler(), &dispatch).await } else { None };
        // An agent's prompt depends on the claim: an earlier run may have been cut short.
        let after = |lost: Option<&Executor>| {
            let left = left.clone().or_else(|| lost.map(|lost| Interruption::by(lost).head()));
            prompt.as_ref().map(|prompt| prompt.after(left))
        };
        let begin = |lost: Option<&Executor>| {
            let is_ready = checked.is_ok() && (lost.is_none() || !reports);
            is_ready.then(|| after(lost).map(|prompt| prompt.digest()))
        };
        let (mut ended, mut has_passed) = (None, false);
        let bid = Bid { name: actor.name(), dispatch: &dispatch, with: member.as_deref().and_then(Member::leases) };
        let claimed = match is_blocked {
            true => ClaimOutcome::Blocked,
            false => claim_task(&self.store, &self.life, &mut claim, bid, begin, &mut stop).await,
        };
        is_blocked = claimed == ClaimOutcome::Blocked;
        if let ClaimOutcome::Won(epoch) = claimed {
            held.store(epoch, Ordering::Relaxed);
            let ready = match (checked.clone(), claim.handler().interrupted.as_ref()) {
                (Err(ending), _) => Err(ending),
                (Ok(()), Some(lost)) if reports => Err(Ending::cut_short(&lost.executor)),
                (Ok(()), lost) => Ok(after(lost.map(|lost| &lost.executor)).map(|prompt| prompt.text)),
            };
            let run = Held { dispatch: &dispatch, member: member.as_deref(), epoch };
            (ended, has_passed) = self.carry_out_held(actor, run, &mut claim, ready, stop).await;
        }
        if let Some(member) = member {
            // A text of an encrypted plan is in no event of the crew.
            member.leave(ended.as_ref(), key_of(&dispatch.tags).is_some()).await;
        }
        if let Some(limits) = limits.filter(|_| start == Clearance::Probe) {
            limits.end_probe(actor.name(), &dispatch.target(), has_passed, &dispatch.cause).await;
        }
        Ran { key, position: claim.position(), is_blocked }
    }

    /// The traces of a run that was cut short, for the prompt of its successor.
    async fn left_by(&self, claim: &TaskLease, dispatch: &Dispatch) -> Option<String> {
        let run = claim.left()?;
        let (progress, began_at) = (claim.progress.as_ref(), run.claimed_at());
        let cut_short = Interruption { executor: &run.executor, progress, began_at };
        let left = cut_short.section(dispatch.parameters.folder.as_deref()).await;
        Some(self.roster.shell.supervisor.redacted(&left))
    }

    /// Returns the end that was reported, and true if a program ran and met no rate limit.
    async fn carry_out_held(
        &self,
        actor: Actor<'_>,
        run: Held<'_>,
        claim: &mut Runner<TaskLease>,
        ready: Result<Option<String>, Ending>,
        stop: watch::Receiver<Option<Stop>>,
    ) -> (Option<Ending>, bool) {
        let Held { dispatch, epoch, .. } = run;
        let unwanted = stop.borrow().clone();
        let ready = unwanted.map_or(ready, |stop| Err(stop.ending(false)));
        let has_run = ready.is_ok();
        let Report { ending, usage } = match ready {
            Err(ending) => Report::of(ending),
            Ok(prompt) => {
                let began = Instant::now();
                let Report { ending, mut usage } = self.act(actor, run, prompt.unwrap_or_default(), claim, stop).await;
                // Running time is reported where it counts, or together with other usage. The tasks of a sub-plan report
                // their own.
                let is_reported = dispatch.parameters.is_timed || !usage.is_nothing();
                if is_reported && !actor.only_waits() {
                    usage.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                }
                Report { ending, usage }
            }
        };
        let limits = self.roster.limits.as_ref().filter(|_| matches!(actor, Actor::Agent(..)));
        if let (Some(limits), Actor::Agent(agent, _)) = (limits, actor) {
            limits.spend(agent, &dispatch.target(), usage.cost_micros, &dispatch.cause).await;
        }
        if let (Some(limits), Ending::Failed { class: FailureClass::RateLimited { retry_after_ms }, .. }) =
            (limits, &ending)
        {
            // Before the report, so that nothing else starts meanwhile.
            let after = retry_after_ms.map(Duration::from_millis);
            limits.met_limit(actor.name(), &dispatch.target(), (after, dispatch.limits), &dispatch.cause).await;
        }
        let has_passed = match &ending {
            Ending::Completed { .. } | Ending::Asked { .. } => has_run,
            Ending::Failed { class: FailureClass::Task | FailureClass::TimedOut, run, .. } => run.is_some(),
            _says_nothing_of_limits => false,
        };
        let end = TaskCommand::End { epoch, usage, ending: ending.clone() };
        let is_told = append(claim, end, &dispatch.cause).await;
        if !is_told {
            report_late(&self.store, dispatch, (epoch, self.life.executor(actor.name())), ending.clone()).await;
        }
        (is_told.then_some(ending), has_passed)
    }

    /// Lets the actor act.
    async fn act(
        &self,
        actor: Actor<'_>,
        Held { dispatch, member, epoch }: Held<'_>,
        prompt: String,
        claim: &mut Runner<TaskLease>,
        mut plan_stop: watch::Receiver<Option<Stop>>,
    ) -> Report {
        let (stop, mut run_stop) = watch::channel(None);
        let Dispatch { plan, task, attempt, parameters, tags, cause, .. } = dispatch;
        let files = self.roster.outputs.as_ref();
        let output = files.and_then(|files| files.to(plan, *task, *attempt, (epoch, key_of(tags))));
        let is_of_it = |(executor, _): &&(Executor, String)| executor.name == actor.name() && executor.host == host();
        let session = claim.handler().session.as_ref().filter(is_of_it).map(|(_, id)| id.clone());
        let session = session.filter(|id| !id.is_empty());
        let (task, attempt, is_resumed) = (*task, *attempt, session.is_some());
        let variables = member.map(Member::variables).into_iter().flatten().collect();
        let job = Job { plan, task, attempt, epoch, parameters, prompt, output, session, variables };
        let (launcher, sub_plans);
        let executor: &dyn run::Executor = match actor {
            Actor::Shell(shell) => shell,
            Actor::Agent(agent, shell) => {
                launcher = agent.on(shell);
                &launcher
            }
            Actor::SubPlan(sub_plan) => {
                let Self { store, agents, roster, .. } = self;
                let (trust, knows_tools) = (roster.trust.as_ref(), roster.knows_tools);
                sub_plans = SubPlans { store, agents, sub_plan, tags, cause, trust, knows_tools };
                &sub_plans
            }
        };
        let (sink, known) = watch::channel(SoFar::default());
        let mut run = executor.run(job, &sink, &mut run_stop);
        let acting = async {
            loop {
                tokio::select! {
                    report = &mut run => return report,
                    wanted = wanted(&mut plan_stop), if stop.borrow().is_none() => {
                        stop.send_replace(Some(wanted));
                    }
                }
            }
        };
        let mut is_lost = self.lost.subscribe();
        let losing = async {
            // The sender is this worker's.
            if is_lost.changed().await.is_ok() {
                stop.send_replace(Some(Stop::Lost));
            }
            std::future::pending().await
        };
        let watching = async {
            if let Actor::Agent(agent, _) = actor {
                stop.send_replace(Some(self.watch(agent, dispatch, known, epoch).await));
            }
            std::future::pending().await
        };
        let staying = async {
            match member {
                Some(member) => member.stay().await,
                None => std::future::pending().await,
            }
        };
        let report = tokio::select! {
            report = acting => report,
            report = losing => report,
            never = staying => match never {},
            report = watching => report,
        };
        drop(run);
        // After the last facts. A session that could not be continued is not tried again.
        let is_dead = is_resumed && matches!(report.ending, Ending::Failed { .. });
        let session = sink.borrow().session.clone().or(is_dead.then(String::new));
        if let Some(id) = session {
            keep_session(claim, epoch, &id, cause).await;
        }
        report
    }

    /// Records the session of a run. Returns when the run has used up a budget.
    async fn watch(&self, agent: &Agent, dispatch: &Dispatch, mut known: watch::Receiver<SoFar>, epoch: u64) -> Stop {
        let Dispatch { plan, task, tags, cause, .. } = dispatch;
        let (mut budgets, mut kept) =
            (Budgets::new(&self.roster, agent, &dispatch.parameters.budget, dispatch.target()), None);
        loop {
            // Runs of others may use up the budget of the day.
            if let Ok(Err(_the_run_has_ended)) = tokio::time::timeout(BUDGET_INTERVAL, known.changed()).await {
                return std::future::pending().await;
            }
            let SoFar { session, used, has_ended } = known.borrow_and_update().clone();
            if let Some(id) = session.filter(|id| kept.as_ref() != Some(id)) {
                keep_session(&mut claim_of(&self.store, plan, *task, tags.clone()), epoch, &id, cause).await;
                kept = Some(id);
            }
            if let Some(stop) = budgets.used_up(&used).filter(|_| !has_ended) {
                return stop;
            }
        }
    }
}

/// A claimed task.
#[derive(Clone, Copy)]
struct Held<'a> {
    dispatch: &'a Dispatch,
    member: Option<&'a Member>,
    epoch: u64,
}
