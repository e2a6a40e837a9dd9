//! Which executor carries out which task: the shell those with a command, a configured agent the others. The rest is
//! left to people and to other machines.

use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::event::TaskInput;
use crewlog_planner::plan::{NodeKind, SubPlan, TaskPlan};

use crate::agent::Agent;
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
    /// The tools of the agents that plan; without them, this worker takes no tasks with a sub-plan.
    pub registry: Option<ToolRegistry>,
}

/// An executor that takes a task.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// It has a command.
    Shell(&'a Shell),
    /// It has none.
    Agent(&'a Agent, &'a Shell),
    /// A sub-plan carries it out.
    SubPlan(&'a SubPlan),
}

impl Roster {
    /// The executor of a dispatched task: its sub-plan if it has one; the shell if it has a command; the agent it is
    /// assigned to, whatever that agent's kinds; without assignee the first agent whose kinds include `kind`. Questions
    /// are for people.
    pub fn actor<'a>(&'a self, kind: NodeKind, parameters: &'a TaskInput) -> Option<Actor<'a>> {
        let TaskInput { command, assignee, sub_plan, .. } = parameters;
        self.choose(kind, Way { has_command: command.is_some(), assignee, sub_plan })
    }

    /// True when one of these executors takes a task once it is dispatched.
    pub fn takes(&self, task: &TaskPlan) -> bool {
        self.choose(task.kind, Way::of(task)).is_some()
    }

    /// The agent that takes a task once it is dispatched, if one does.
    pub fn agent_for<'a>(&'a self, task: &'a TaskPlan) -> Option<&'a Agent> {
        match self.choose(task.kind, Way::of(task))? {
            Actor::Agent(agent, _) => Some(agent),
            Actor::Shell(_) | Actor::SubPlan(_) => None,
        }
    }

    fn choose<'a>(&'a self, kind: NodeKind, way: Way<'a>) -> Option<Actor<'a>> {
        let Way { has_command, assignee, sub_plan } = way;
        if kind == NodeKind::Clarification {
            return None;
        }
        if let Some(sub_plan) = sub_plan {
            return self.registry.is_some().then_some(Actor::SubPlan(sub_plan));
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

/// The fields of a task, besides its kind, that decide who takes it.
#[derive(Clone, Copy)]
struct Way<'a> {
    has_command: bool,
    assignee: &'a Option<String>,
    sub_plan: &'a Option<SubPlan>,
}

impl<'a> Way<'a> {
    fn of(task: &'a TaskPlan) -> Self {
        let TaskPlan { command, assignee, sub_plan, .. } = task;
        Self { has_command: command.is_some(), assignee, sub_plan }
    }
}

impl Actor<'_> {
    /// The name under which it claims.
    pub fn name(&self) -> &str {
        match self {
            Self::Shell(_) => SHELL,
            Self::Agent(agent, _) => &agent.name,
            Self::SubPlan(_) => SUB_PLANS,
        }
    }

    /// Its own limit of tasks at once in one worker, if it has one.
    pub fn jobs(&self) -> Option<usize> {
        match self {
            Self::Shell(_) | Self::SubPlan(_) => None,
            Self::Agent(agent, _) => Some(agent.jobs),
        }
    }

    /// True of one that only waits for a sub-plan, so that anybody may take the task up at any time.
    pub const fn only_waits(&self) -> bool {
        match self {
            Self::Shell(_) | Self::Agent(..) => false,
            Self::SubPlan(_) => true,
        }
    }
}
