//! The crew of the project: agents, leases, messages, and everything that waits for a person.

use std::collections::BTreeMap;

use crewlog_executors::crew::{AtRest, Facts, Kind, Mail, Need, OpenPlan, Refusal, needs_you};
use crewlog_executors::signs::Signs;
use crewlog_mq::{Error, Position, Timestamp};
use crewlog_planner::claim::{Executor, LEASE, claimed_at};
use crewlog_planner::crew::agents::{Agent, Liveness};
use crewlog_planner::crew::leases::{Lease, LeaseHolder, Request, Waiting};
use crewlog_planner::crew::messages::Sender;
use crewlog_planner::crew::target::Target;
use serde_json::json;

use super::{AgentView, AsOf, LeaseView, MessageView, NeedView, WorkerView};
use crate::hook::facts::EDITING;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{millis, rfc3339};

impl AsOf {
    /// The agents, including those that have left if wanted.
    pub async fn agents(&self, with_left: bool) -> Result<Vec<AgentView>, Error> {
        let agents = self.handled(&self.kept.agents).await?;
        let is_shown = |agent: &Agent| with_left || agent.liveness != Liveness::Left;
        let shown = agents.0.iter().filter(|(_, agent)| is_shown(agent));
        Ok(shown.map(|(name, agent)| AgentView::of(name, agent)).collect())
    }

    /// The workers that live or hold tasks, at a past position those of the open plans; by their machines.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, Failure> {
        let mut workers: BTreeMap<(String, String), (Timestamp, Vec<String>)> = BTreeMap::new();
        for (plan, seen) in self.open().await? {
            for task in &seen.view.state().tasks {
                let (id, times) = (task.plan.id, seen.view.times(task.plan.id));
                let held = times.claim.holder.as_ref();
                let Some(holder) = held.or(times.past.as_ref()).filter(|holder| !holder.is_agent()) else { continue };
                let Executor { name, host, worker } = &holder.executor;
                let claimed = holder.lease_until.map(claimed_at);
                let ended = times.ended_at.filter(|_| held.is_none());
                let known = workers.entry((host.clone(), worker.clone())).or_default();
                known.0 = [Some(known.0), claimed, ended].into_iter().flatten().max().unwrap_or_default();
                known.1.extend(held.map(|_| format!("{} by {name}", seen.view.state().target(&plan, id))));
            }
        }
        if !self.is_past {
            for (host, worker, heard) in Signs::of_workers(self.crew.store()).await?.workers() {
                let known = workers.entry((host.to_owned(), worker.to_owned())).or_default();
                known.0 = known.0.max(heard);
            }
            workers.retain(|_, (heard, runs)| !runs.is_empty() || self.now.since(*heard) < LEASE);
        }
        let view = |((host, worker), (heard, runs))| WorkerView { host, worker, heard: rfc3339(heard), runs };
        Ok(workers.into_iter().map(view).collect())
    }

    /// Refuses the name of an agent that has never joined.
    pub async fn check_agent(&self, name: &str) -> Result<(), Failure> {
        let agents = &self.handled(&self.kept.agents).await?.0;
        let unknown = Failure::new(Code::Nothing, format!("there is no agent {name:?}"));
        let unknown = unknown.did_you_mean(name, agents.iter().map(|(name, _)| name));
        agents.get(name).map(drop).ok_or_else(|| unknown.hint("`crewlog agents` lists them"))
    }

    /// Some of the leases and of the requests that wait for one.
    pub async fn leases(&self, is_meant: impl Fn(&LeaseView) -> bool) -> Result<Vec<LeaseView>, Error> {
        let leases = &self.handled(&self.kept.leases).await?.0;
        let agents = &self.handled(&self.kept.agents).await?.0;
        // At a past position a lease is live until the event that ends it.
        let is_live = |lease: &Lease| self.is_past || self.now <= lease.until;
        let live = leases.iter().filter(|(_, lease)| is_live(lease)).map(|(number, lease)| {
            let Lease { holder, target, is_exclusive, until, reason, task, token, since, .. } = lease;
            let view = LeaseView::of(holder, target, *is_exclusive, *until, reason, task.as_ref());
            let (since, doing) = (Some(rfc3339(*since)), agents.get(&holder.agent).and_then(doing));
            LeaseView { lease: Some(number), token: Some(*token), since, doing, ..view }
        });
        let waiting = leases.waiting().filter(|(_, waiting)| self.now <= waiting.until).flat_map(
            |(number, Waiting { request, until, .. })| {
                let Request { holder, targets, is_exclusive, reason, task, .. } = request;
                targets.iter().map(move |target| {
                    let view = LeaseView::of(holder, target, *is_exclusive, *until, reason, task.as_ref());
                    LeaseView { waiting: Some(*number), ..view }
                })
            },
        );
        Ok(live.chain(waiting).filter(is_meant).collect())
    }

    /// At most `limit` messages to an agent after a position, oldest first. The second value is true if there are more.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn messages(
        &self,
        agent: &str,
        unread_only: bool,
        after: Position,
        limit: usize,
    ) -> Result<(Vec<MessageView>, bool), Refusal> {
        let at = self.is_past.then_some(self.at);
        let (mail, more) = self.crew.inbox(agent, unread_only, after, limit, at).await?;
        Ok((mail.iter().map(MessageView::of).collect(), more))
    }

    /// Everything that waits for a person: items that block work first, then by age. `command` makes a command line
    /// from the words of a command.
    pub async fn needs(&self, command: impl Fn(&str) -> String) -> Result<Vec<NeedView>, Error> {
        self.needs_among(None, command).await
    }

    /// The same for a plan and its sub-plans, of any project.
    pub async fn needs_of(&self, plan: &str, command: impl Fn(&str) -> String) -> Result<Vec<NeedView>, Error> {
        let family = self.family(plan).await?;
        let mut needs = self.needs_among(Some(&family), command).await?;
        needs.retain(|need| family.contains(&need.from));
        Ok(needs)
    }

    async fn needs_among(
        &self,
        only: Option<&[String]>,
        command: impl Fn(&str) -> String,
    ) -> Result<Vec<NeedView>, Error> {
        let (agents, asks) = (self.handled(&self.kept.agents).await?, self.handled(&self.kept.asks).await?);
        let (messages, leases) = (self.handled(&self.kept.messages).await?, self.handled(&self.kept.leases).await?);
        let (conflicts, open) = (self.folded(&self.kept.conflicts).await?, self.open_plans().await?);
        let mut at_rest = match only.is_none() && !self.is_past {
            true => Some(AtRest::read(&self.crew, &agents.0, (&asks.0, &conflicts.0), &open).await?),
            false => None,
        };
        let all = || open.iter().map(|plan| plan.id.clone()).collect();
        let changed = at_rest.as_ref().map_or_else(all, |known| known.changed(&open));
        let (seen, mut states) = (self.readable(only.map_or(changed, <[_]>::to_vec)).await?, Vec::new());
        for plan in seen.keys() {
            states.push(self.states(plan).await?);
        }
        let plans: Vec<_> = seen
            .iter()
            .zip(&states)
            .map(|((plan, seen), states)| OpenPlan { plan, view: &seen.view, states, since: &seen.since })
            .collect();
        let facts = Facts {
            project: self.project(),
            now: self.now,
            open: &open.iter().map(|plan| (plan.id.as_str(), plan)).collect(),
            plans: &plans,
            agents: &agents.0,
            asks: &asks.0,
            messages: &messages.0,
            leases: &leases.0,
            conflicts: &conflicts.0,
            roster: self.crew.roster().filter(|_| !self.is_past),
        };
        let mut needs = at_rest.as_mut().map_or_else(|| needs_you(&facts), |known| known.needs_you(&facts));
        if let Some(known) = at_rest {
            known.keep(&self.crew, &agents.0, self.at).await?;
        }
        // The decisions are known as they are now; and between two tasks of a run, its plan is ready for a moment.
        needs.retain(|need| !self.is_past || need.kind != Kind::Ready);
        Ok(needs.into_iter().map(|need| NeedView::of(need, self.now, &command)).collect())
    }
}

impl AgentView {
    pub(super) fn of(name: &str, agent: &Agent) -> Self {
        let Agent { profile, session, epoch, report, liveness, since, limited_until, .. } = agent;
        let (observed, (health, reason)) = (agent.observed(), agent.health());
        let limits = observed.usage.limits.iter().map(|(window, limit)| (window.clone(), limit.used));
        Self {
            agent: name.to_owned(),
            liveness: json!(liveness),
            activity: json!(agent.activity()),
            doing: observed.doing.clone(),
            health: json!(health),
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            limited_until: limited_until.map(rfc3339),
            program: profile.program.clone(),
            model: profile.model.clone(),
            capabilities: profile.capabilities.clone(),
            focus: profile.focus.iter().map(|target| target.path.clone()).collect(),
            worktree: profile.worktree.clone(),
            session: session.clone(),
            epoch: *epoch,
            since: rfc3339(*since),
            seen: rfc3339(agent.seen()),
            task: report.task.clone(),
            step: report.step.clone(),
            note: report.note.clone(),
            context_usage: agent.context_usage(),
            tokens: observed.usage.tokens,
            cost_usd: observed.usage.cost_micros.map(|micros| micros as f64 / 1e6),
            limits: limits.collect(),
        }
    }
}

/// The task and the step that an agent reports.
fn doing(agent: &Agent) -> Option<String> {
    let report = &agent.report;
    let said = [&report.task, &report.step].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(": ");
    (!said.is_empty()).then_some(said)
}

impl LeaseView {
    pub fn overlaps(&self, target: &Target) -> bool {
        target.overlaps(&Target { path: self.path.clone(), is_pattern: self.is_pattern })
    }

    fn of(
        holder: &LeaseHolder,
        target: &Target,
        is_exclusive: bool,
        until: Timestamp,
        reason: &str,
        task: Option<&String>,
    ) -> Self {
        Self {
            lease: None,
            waiting: None,
            agent: holder.agent.clone(),
            worktree: holder.worktree.clone(),
            path: target.path.clone(),
            is_pattern: target.is_pattern,
            is_exclusive,
            reason: reason.to_owned(),
            task: task.cloned(),
            token: None,
            since: None,
            call: match task {
                Some(_) => "task",
                None if reason == EDITING => "edit",
                None => "reserve",
            },
            doing: None,
            until: rfc3339(until),
        }
    }
}

impl NeedView {
    fn of(need: Need, now: Timestamp, command: impl Fn(&str) -> String) -> Self {
        let commands = need.commands().iter().map(|words| command(words)).collect();
        let Need { kind, id, from, text, choices, default, since, holds_up, actions } = need;
        let (default, due) = default.map(|(answer, due)| (answer, rfc3339(due))).unzip();
        let actions = actions.iter().map(|action| json!(action)).collect();
        let age_ms = since.map(|since| millis(now.since(since)));
        let since = since.map(rfc3339);
        Self { kind, id, from, text, choices, default, due, since, age_ms, holds_up, actions, commands }
    }
}

impl MessageView {
    fn of(mail: &Mail) -> Self {
        let message = &mail.message;
        Self {
            message: mail.position,
            from: message.from.name().to_owned(),
            is_from_person: matches!(message.from, Sender::Person(_)),
            to: message.to.clone(),
            subject: message.subject.clone(),
            body: message.body.clone(),
            thread: message.thread,
            importance: json!(message.importance),
            sent_at: rfc3339(mail.at),
            receipt: json!(mail.receipt),
            ack_is_due: mail.ack_is_due,
        }
    }
}
