//! The steps that open sessions are offered: those for agents that no configured executor takes, and all steps for agents of
//! a plan that a person gives to sessions.

use crewlog_mq::{Append, CellChange, Error};
use crewlog_planner::claim::{Executor, Holder};
use crewlog_planner::crew::agents::{Agent, Liveness, Wish};
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::target::Target;
use crewlog_planner::state::Task;
use crewlog_planner::view::PlanView;

use super::Refusal;
use super::board::{OpenSession, names_of};
use super::state::Crew;

/// The most steps that are offered at once.
const OFFERS_MAX: usize = 3;
/// The most steps with leased files that are skipped.
const LEASED_MAX: usize = 20;
/// The most steps that are remembered as offered to a session.
const KEPT_MAX: usize = 64;
/// The space of cells with the steps that each session was offered at the end of a turn.
const OFFERED: &str = "offered-step";

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
        let (names, caller, now) = (self.names_of(agent).await?, self.caller(agent).await?, self.store.now());
        let (holder, executor) = (caller.holder(), caller.executor());
        // Do not wait for one lock while holding another.
        let leases = Leases::clone(&*self.leases().await?);
        let (board, mut offers, mut leased) = (self.board().await?, Vec::<Offer>::new(), Vec::new());
        let is_own = |view: &PlanView| only_own && has_done_a_step(view, &executor);
        let own = board.views(&self.project).filter(|(_, view)| is_own(view)).map(|(plan, _)| plan).collect::<Vec<_>>();
        while offers.len() < OFFERS_MAX && leased.len() < LEASED_MAX {
            let is_of_own = |target: &str| target.split_once('/').is_some_and(|(plan, _)| own.contains(&plan));
            let is_known = |target: &str| {
                let mut known = offers.iter().map(|offer| &offer.target).chain(&leased);
                known.any(|known| known == target) || only_own && !is_of_own(target)
            };
            let Some(next) = board.next(&self.project, &names, self.roster(), is_known) else { break };
            let files = next.parameters.files.iter().filter_map(|file| Target::written(file).ok()).collect::<Vec<_>>();
            if !leases.in_the_way(&holder, &files, !next.parameters.reads_only, false, now).is_empty() {
                leased.push(next.target());
                continue;
            }
            let view = board.view(&next.plan);
            let is_given = view.is_some_and(|view| view.state().config.sessions);
            let (target, title) = (next.target(), next.parameters.description.clone());
            offers.push(Offer { target, title, is_given });
        }
        Ok(offers)
    }

    /// Records that a session was offered a step at the end of a turn. False if it was so before.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn offer_step(&self, agent: &str, target: &str) -> Result<bool, Error> {
        let key = format!("{}:{agent}", self.project);
        let kept = self.store.cell(OFFERED, &key).await?.map(|cell| cell.value).unwrap_or_default();
        let mut offered: Vec<&str> = kept.lines().collect();
        if offered.contains(&target) {
            return Ok(false);
        }
        offered.push(target);
        let last = offered.split_off(offered.len().saturating_sub(KEPT_MAX)).join("\n");
        self.store.append(Append::default().cell(CellChange::set(OFFERED, &key, last))).await?;
        Ok(true)
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
