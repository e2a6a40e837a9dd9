//! The steps that open sessions are offered: those for agents that no configured executor takes, and all steps for agents of
//! a plan that a person gives to sessions.

use std::collections::BTreeSet;

use crewlog_mq::Error;
use crewlog_planner::claim::{Executor, Holder};
use crewlog_planner::crew::agents::{Agent, Liveness, Wish};
use crewlog_planner::crew::target::Target;
use crewlog_planner::event::TaskInput;
use crewlog_planner::state::Task;
use crewlog_planner::view::PlanView;

use super::Refusal;
use super::board::{OpenSession, names_of};
use super::state::{Caller, Crew};

/// The most steps that are offered at once.
const OFFERS_MAX: usize = 3;
/// The most steps with leased files that are skipped.
const LEASED_MAX: usize = 20;
/// The space of cells with the steps that each session was offered at the end of a turn.
const OFFERED: &str = "offered-step";
/// That of the sessions that were advised because their context is nearly full.
const FULL: &str = "context-full";

/// A step that a session is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The plan and the task.
    pub target: String,
    /// Its text.
    pub title: String,
    /// True if a person gave the plan to sessions.
    pub is_given: bool,
}

impl Crew {
    /// The sessions that people have opened.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn sessions(&self) -> Result<Vec<OpenSession>, Error> {
        let agents = self.agents().await?;
        let open = agents.iter().filter(|(name, agent)| is_open_session(name, agent));
        Ok(open
            .map(|(name, Agent { profile, .. })| OpenSession {
                name: name.to_owned(),
                program: profile.program.clone(),
                names: names_of(name, profile),
            })
            .collect())
    }

    /// The number of open sessions without a task whose names come before this one's.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn n_idle_before(&self, agent: &str) -> Result<usize, Refusal> {
        let (sessions, claims) = (self.sessions().await?, self.claims(None).await?);
        let is_busy = |name: &str| claims.iter().any(|(_, held)| held.executor.name == name);
        Ok(sessions.iter().filter(|one| one.name.as_str() < agent && !is_busy(&one.name)).count())
    }

    /// The next ready steps for a session, of all plans or of those whose steps it has done; none while it has a task, and none
    /// for a run that crewlog started.
    pub async fn offers(&self, agent: &str, only_own: bool) -> Result<Vec<Offer>, Refusal> {
        let is_session = self.agents().await?.get(agent).is_some_and(|found| is_open_session(agent, found));
        if !is_session || !self.tasks_of(agent).await?.is_empty() {
            return Ok(Vec::new());
        }
        let caller = self.caller(agent).await?;
        let executor = caller.executor();
        let own: Option<BTreeSet<String>> = if only_own {
            let board = self.board().await?;
            let own = board.views(&self.project).filter(|(_, view)| has_done_a_step(view, &executor));
            Some(own.map(|(plan, _)| plan.to_owned()).collect())
        } else {
            None
        };
        let is_of = |target: &str| {
            target.split_once('/').is_some_and(|(plan, _)| own.as_ref().is_none_or(|own| own.contains(plan)))
        };
        self.free_of(&caller, OFFERS_MAX, is_of).await
    }

    /// The next ready steps for an agent whose files nobody else leases.
    ///
    /// # Errors
    /// An agent that has left.
    pub async fn free_steps(&self, caller: &Caller, max: usize) -> Result<Vec<Offer>, Refusal> {
        self.free_of(caller, max, |_| true).await
    }

    async fn free_of(
        &self,
        caller: &Caller,
        max: usize,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<Offer>, Refusal> {
        let (names, holder, now) = (self.names_of(&caller.agent).await?, caller.holder(), self.store.now());
        let (mut offers, mut seen) = (Vec::<Offer>::new(), BTreeSet::new());
        // One lock after the other: neither waits for the other.
        while offers.len() < max && seen.len() < max + LEASED_MAX {
            let mut next = Vec::new();
            {
                let board = self.board().await?;
                while next.len() < max - offers.len() {
                    let is_passed = |target: &str| seen.contains(target) || !is_meant(target);
                    let Some(found) = board.next(&self.project, &names, self.roster(), is_passed) else { break };
                    let is_given = board.view(&found.plan).is_some_and(|view| view.state().config.sessions);
                    seen.insert(found.target());
                    next.push((found.target(), found.parameters.clone(), is_given));
                }
            }
            if next.is_empty() {
                break;
            }
            let leases = self.leases().await?;
            for (target, TaskInput { files, reads_only, description: title, .. }, is_given) in next {
                let files = files.iter().filter_map(|file| Target::written(file).ok()).collect::<Vec<_>>();
                if leases.in_the_way(&holder, &files, !reads_only, false, now).is_empty() {
                    offers.push(Offer { target, title, is_given });
                }
            }
        }
        Ok(offers)
    }

    /// True once in a session: for the advice to an agent whose context is nearly full.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn hears_that_it_is_full(&self, caller: &Caller) -> Result<bool, Refusal> {
        self.hears(FULL, &caller.agent, &caller.epoch.to_string()).await
    }

    /// Records that a session was offered a step at the end of a turn. False if it was so before.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn offer_step(&self, agent: &str, target: &str) -> Result<bool, Refusal> {
        self.hears(OFFERED, agent, target).await
    }
}

/// False for a subagent, and for a run that crewlog started.
fn is_open_session(name: &str, agent: &Agent) -> bool {
    let is_present = matches!(agent.liveness, Liveness::Alive | Liveness::Stuck);
    let is_run = agent.session.starts_with(Wish::OF_RUN);
    is_present && !is_run && !name.contains('/')
}

/// True if a session has completed a step.
fn has_done_a_step(view: &PlanView, Executor { name, worker, .. }: &Executor) -> bool {
    let is_own = |holder: &Holder| holder.executor.name == *name && holder.executor.worker == *worker;
    let is_done = |task: &Task| task.is_completed() && view.past_holder(task.plan.id).is_some_and(is_own);
    view.state().tasks.iter().any(is_done)
}
