//! Who carries out which task: the shell what has a command, a configured agent what has none. What is for nobody here
//! is left to people and to other machines.

use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::event::TaskInput;
use crewlog_planner::plan::{NodeKind, SubPlan, TaskPlan};
use crewlog_planner::protocol::Asking;

use crate::agent::Agent;
use crate::routing::ROUTER;
use crate::shell::{SHELL, Shell};
use crate::subplans::SUB_PLANS;

/// The executors of a worker.
#[derive(Debug, Clone)]
pub struct Roster {
    /// For tasks with a command; agents share its surroundings.
    pub shell: Shell,
    /// Whether tasks with a command are taken at all.
    pub takes_commands: bool,
    /// For the others; of several that could take a task, the first does.
    pub agents: Vec<Agent>,
    /// The tools by which agents plan; without them, nobody here takes what a plan of its own carries out, or what
    /// another type of agent is asked.
    pub registry: Option<ToolRegistry>,
}

/// An executor that takes a task.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// It has a command.
    Shell(&'a Shell),
    /// It has none.
    Agent(&'a Agent, &'a Shell),
    /// A plan of its own carries it out.
    SubPlans(&'a ToolRegistry, &'a SubPlan),
    /// Another type of agent is asked.
    Router(&'a ToolRegistry, &'a Asking),
    /// A plan that carried out a task is undone.
    Undoer(&'a ToolRegistry),
}

impl Roster {
    /// Who takes a dispatched task: a plan of its own, or the router, if it is for one of these; the shell if it has a
    /// command; the agent that it is assigned to, whatever its kinds, and nobody else; or the first whose kinds include
    /// `kind`. A question is for people.
    #[must_use]
    pub fn actor<'a>(&'a self, kind: NodeKind, parameters: &'a TaskInput) -> Option<Actor<'a>> {
        let TaskInput { command, assignee, sub_plan, request, undoes, .. } = parameters;
        let way = Way { has_command: command.is_some(), undoes_plan: undoes.is_some(), assignee, sub_plan, request };
        self.choose(kind, way)
    }

    /// True when one of these executors takes a task once it is dispatched.
    #[must_use]
    pub fn takes(&self, task: &TaskPlan) -> bool {
        self.choose(task.kind, Way::of(task)).is_some()
    }

    /// The agent that takes a task once it is dispatched, if one does.
    #[must_use]
    pub fn agent_for<'a>(&'a self, task: &'a TaskPlan) -> Option<&'a Agent> {
        match self.choose(task.kind, Way::of(task))? {
            Actor::Agent(agent, _) => Some(agent),
            Actor::Shell(_) | Actor::SubPlans(..) | Actor::Router(..) | Actor::Undoer(_) => None,
        }
    }

    fn choose<'a>(&'a self, kind: NodeKind, way: Way<'a>) -> Option<Actor<'a>> {
        let Way { has_command, undoes_plan, assignee, sub_plan, request } = way;
        if kind == NodeKind::Clarification {
            return None;
        }
        if let Some(sub_plan) = sub_plan {
            return self.registry.as_ref().map(|registry| Actor::SubPlans(registry, sub_plan));
        }
        if let Some(asking) = request {
            return self.registry.as_ref().map(|registry| Actor::Router(registry, asking));
        }
        if undoes_plan {
            return self.registry.as_ref().map(Actor::Undoer);
        }
        if has_command {
            return self.takes_commands.then_some(Actor::Shell(&self.shell));
        }
        let takes = |agent: &&Agent| match assignee {
            Some(assignee) => agent.name.to_lowercase() == assignee.to_lowercase(),
            None => agent.kinds.is_empty() || agent.kinds.contains(&kind),
        };
        self.agents.iter().find(takes).map(|agent| Actor::Agent(agent, &self.shell))
    }
}

/// What of a task says who takes it, beside its kind.
#[derive(Clone, Copy)]
struct Way<'a> {
    has_command: bool,
    /// What undoes a task, and has no command for that, undoes the plan that carried it out.
    undoes_plan: bool,
    assignee: &'a Option<String>,
    sub_plan: &'a Option<SubPlan>,
    request: &'a Option<Asking>,
}

impl<'a> Way<'a> {
    fn of(task: &'a TaskPlan) -> Self {
        let TaskPlan { command, assignee, sub_plan, request, compensates, .. } = task;
        let undoes_plan = compensates.is_some() && command.is_none();
        Self { has_command: command.is_some(), undoes_plan, assignee, sub_plan, request }
    }
}

impl Actor<'_> {
    /// The name under which it claims.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Shell(_) => SHELL,
            Self::Agent(agent, _) => &agent.name,
            Self::SubPlans(..) | Self::Undoer(_) => SUB_PLANS,
            Self::Router(..) => ROUTER,
        }
    }

    /// How many tasks it carries out at once in one worker, if it has a limit of its own.
    #[must_use]
    pub fn jobs(&self) -> Option<usize> {
        match self {
            Self::Shell(_) | Self::SubPlans(..) | Self::Router(..) | Self::Undoer(_) => None,
            Self::Agent(agent, _) => Some(agent.jobs),
        }
    }

    /// True of one that does nothing itself, but waits for a plan or an answer: it may be taken up by anybody at any time.
    #[must_use]
    pub const fn only_waits(&self) -> bool {
        match self {
            Self::Shell(_) | Self::Agent(..) => false,
            Self::SubPlans(..) | Self::Router(..) | Self::Undoer(_) => true,
        }
    }
}
