//! The steps that open sessions are offered: those for agents that no configured executor takes, and all steps for agents of
//! a plan that a person gives to sessions.

use crewlog_mq::{Append, CellChange, Error};
use crewlog_planner::crew::agents::{Agent, Liveness, Wish};
use crewlog_planner::view::PlanView;

use super::Refusal;
use super::state::Crew;

/// The most steps that are offered at once.
const OFFERS_MAX: usize = 3;
/// The space of cells with the step that each session was offered at the end of a turn.
const OFFERED: &str = "offered-step";

/// A step that a session is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The plan and the task.
    pub target: String,
    /// Its text.
    pub title: String,
    /// True if the session has taken a step of that plan.
    pub is_of_own_plan: bool,
    /// True if a person gave the plan to sessions.
    pub is_given: bool,
}

impl Crew {
    /// The sessions that people have opened: names, each with its program.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn sessions(&self) -> Result<Vec<(String, String)>, Error> {
        let agents = self.agents().await?;
        let open = agents.iter().filter(|(name, agent)| is_open_session(name, agent));
        Ok(open.map(|(name, agent)| (name.to_owned(), agent.profile.program.clone())).collect())
    }

    /// The next ready steps for a session; none while it has a task, and none for a run that crewlog started.
    pub async fn offers(&self, agent: &str) -> Result<Vec<Offer>, Refusal> {
        let is_session = self.agents().await?.get(agent).is_some_and(|found| is_open_session(agent, found));
        if !is_session || !self.tasks_of(agent).await?.is_empty() {
            return Ok(Vec::new());
        }
        let names = self.names_of(agent).await?;
        let (board, mut offers) = (self.board().await?, Vec::<Offer>::new());
        while offers.len() < OFFERS_MAX {
            let is_known = |target: &str| offers.iter().any(|known| known.target == target);
            let Some(next) = board.next(&self.project, &names, self.roster(), is_known) else { break };
            let view = board.view(&next.plan);
            let is_of_own_plan = view.is_some_and(|view| has_taken_a_step(view, agent));
            let is_given = view.is_some_and(|view| view.state().config.sessions);
            let (target, title) = (next.target(), next.parameters.description.clone());
            offers.push(Offer { target, title, is_of_own_plan, is_given });
        }
        Ok(offers)
    }

    /// Records that a session was offered a step at the end of its turn. False if that is the last that it was offered.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn offer_step(&self, agent: &str, target: &str) -> Result<bool, Error> {
        let key = format!("{}:{agent}", self.project);
        let is_new = self.store.cell(OFFERED, &key).await?.is_none_or(|cell| cell.value != target);
        if is_new {
            self.store.append(Append::default().cell(CellChange::set(OFFERED, &key, target.to_owned()))).await?;
        }
        Ok(is_new)
    }
}

/// False for a subagent, and for a run that crewlog started.
fn is_open_session(name: &str, agent: &Agent) -> bool {
    let is_present = matches!(agent.liveness, Liveness::Alive | Liveness::Stuck);
    let is_run = agent.session.starts_with(Wish::OF_RUN);
    is_present && !is_run && !name.contains('/')
}

fn has_taken_a_step(view: &PlanView, agent: &str) -> bool {
    view.state().tasks.iter().any(|task| {
        let holders = [view.holder(task.plan.id), view.past_holder(task.plan.id)];
        holders.into_iter().flatten().any(|holder| holder.is_agent() && holder.executor.name == agent)
    })
}
