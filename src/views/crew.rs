//! The crew of the project: agents, leases, messages, and everything that waits for a person.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crewlog_executors::crew::{AtRest, Facts, Kind, Mail, Need, OpenPlan, Refusal, needs_you};
use crewlog_mq::{Error, Position, Timestamp};
use crewlog_planner::crew::agents::{Agent, Liveness};
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::crew::leases::{Lease, LeaseHolder, Request, Waiting};
use crewlog_planner::crew::messages::Sender;
use crewlog_planner::crew::target::Target;
use crewlog_planner::listing::ListedPlan;
use serde_json::json;

use super::{AgentView, AsOf, LeaseView, MessageView, NeedView, ViewedPlan};
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

    /// Refuses the name of an agent that has never joined.
    pub async fn check_agent(&self, name: &str) -> Result<(), Failure> {
        let agents = &self.handled(&self.kept.agents).await?.0;
        let unknown = || Failure::new(Code::Nothing, format!("there is no agent {name:?}"));
        let known = || agents.iter().map(|(name, _)| name);
        agents
            .get(name)
            .map(drop)
            .ok_or_else(|| unknown().did_you_mean(name, known()).hint("`crewlog agents` lists them"))
    }

    /// Some of the leases and of the requests that wait for one.
    pub async fn leases(&self, is_meant: impl Fn(&LeaseView) -> bool) -> Result<Vec<LeaseView>, Error> {
        let leases = &self.handled(&self.kept.leases).await?.0;
        let live = leases.iter().filter(|(_, lease)| self.now <= lease.until).map(|(number, lease)| {
            let Lease { holder, target, is_exclusive, until, reason, task, token, .. } = lease;
            let view = LeaseView::of(holder, target, *is_exclusive, *until, reason, task.as_ref());
            LeaseView { lease: Some(number), token: Some(*token), ..view }
        });
        let waiting = leases.waiting().filter(|(_, waiting)| self.now <= waiting.until).flat_map(
            |(number, Waiting { request, until })| {
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
        let (open, roster) = (self.open_plans().await?, self.crew.roster());
        let mut at_rest = None;
        if let Some(holders) = self.holders().await? {
            self.catch_up_decisions().await?;
            at_rest = Some(AtRest::read(&self.store, self.project(), roster, &holders, &open).await?);
        }
        let (asks, conflicts) = (self.handled(&self.kept.asks).await?, self.folded(&self.kept.conflicts).await?);
        let named = named_plans(&asks.0, &conflicts.0);
        let mut changed = Vec::new();
        for ListedPlan { id, .. } in &open {
            if named.contains(id) || !at_rest.as_ref().is_some_and(|known| known.has(id)) {
                changed.push(id.clone());
            }
        }
        let seen = self.readable(changed).await?;
        let needs = self.needs_among(&open, seen, at_rest.as_mut(), command).await?;
        if let Some(at_rest) = at_rest {
            at_rest.keep(self.at).await?;
        }
        Ok(needs)
    }

    /// The same for a plan and its sub-plans, of any project.
    pub async fn needs_of(&self, plan: &str, command: impl Fn(&str) -> String) -> Result<Vec<NeedView>, Error> {
        let (family, open) = (self.family(plan).await?, self.open_plans().await?);
        self.catch_up_decisions().await?;
        let seen = self.readable(family.iter().cloned()).await?;
        let mut needs = self.needs_among(&open, seen, None, command).await?;
        needs.retain(|need| family.contains(&need.from));
        Ok(needs)
    }

    async fn needs_among(
        &self,
        open: &[ListedPlan],
        seen: BTreeMap<String, Arc<ViewedPlan>>,
        at_rest: Option<&mut AtRest>,
        command: impl Fn(&str) -> String,
    ) -> Result<Vec<NeedView>, Error> {
        let mut states = Vec::new();
        for plan in seen.keys() {
            states.push(self.states(plan).await?);
        }
        let plans: Vec<_> = seen
            .iter()
            .zip(&states)
            .map(|((plan, seen), states)| OpenPlan { plan, view: &seen.view, states, since: &seen.since })
            .collect();
        let (agents, asks) = (self.handled(&self.kept.agents).await?, self.handled(&self.kept.asks).await?);
        let messages = self.handled(&self.kept.messages).await?;
        let conflicts = self.folded(&self.kept.conflicts).await?;
        let facts = Facts {
            project: self.project(),
            now: self.now,
            open: &open.iter().map(|plan| (plan.id.as_str(), plan)).collect(),
            plans: &plans,
            agents: &agents.0,
            asks: &asks.0,
            messages: &messages.0,
            conflicts: &conflicts.0,
            // The decisions are known as they are now.
            roster: self.crew.roster().filter(|_| !self.is_past),
        };
        let mut needs = at_rest.map_or_else(|| needs_you(&facts), |at_rest| at_rest.needs_you(&facts));
        // Between two tasks of a run, its plan is ready for a moment.
        needs.retain(|need| !self.is_past || need.kind != Kind::Ready);
        Ok(needs.into_iter().map(|need| NeedView::of(need, self.now, &command)).collect())
    }

    async fn catch_up_decisions(&self) -> Result<(), Error> {
        match self.crew.roster().and_then(|roster| roster.trust.as_ref()).filter(|_| !self.is_past) {
            Some(trust) => trust.catch_up().await,
            None => Ok(()),
        }
    }
}

/// The plans of the tasks in questions and conflicts, whose names only the plans have.
fn named_plans(asks: &Asks, conflicts: &Conflicts) -> BTreeSet<String> {
    let asked = asks.open().filter_map(|(_, open)| open.ask.task.as_deref()?.split_once('/'));
    let mut named: BTreeSet<_> = asked.map(|(plan, _)| plan.to_owned()).collect();
    for (_, open) in conflicts.open() {
        if let ConflictEvent::ConflictDetected { holders, .. } = &open.detected {
            named.extend(holders.iter().map(|holder| holder.plan.clone()));
        }
    }
    named
}

impl AgentView {
    pub(super) fn of(name: &str, agent: &Agent) -> Self {
        let Agent { profile, session, epoch, report, liveness, seen, since, proven: _ } = agent;
        Self {
            agent: name.to_owned(),
            liveness: json!(liveness),
            activity: json!(report.activity),
            program: profile.program.clone(),
            model: profile.model.clone(),
            capabilities: profile.capabilities.clone(),
            focus: profile.focus.iter().map(|target| target.path.clone()).collect(),
            worktree: profile.worktree.clone(),
            session: session.clone(),
            epoch: *epoch,
            since: rfc3339(*since),
            seen: rfc3339(*seen),
            task: report.task.clone(),
            step: report.step.clone(),
            note: report.note.clone(),
            context_usage: report.context_usage,
        }
    }
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
            is_unread: mail.is_unread,
            ack_is_due: mail.ack_is_due,
        }
    }
}
