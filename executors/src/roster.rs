//! Who carries out which task: the shell what has a command, a configured agent what has none. What is for nobody here
//! is left to people and to other machines.

use crewlog_planner::claim::Ending;
use crewlog_planner::event::Parameters;
use crewlog_planner::event::Usage;
use crewlog_planner::plan::{NodeKind, TaskPlan};
use tokio::sync::watch;

use crate::agent::Agent;
use crate::run::{Job, Stop};
use crate::shell::{SHELL, Shell};

/// The executors of a worker.
#[derive(Debug, Clone)]
pub struct Roster {
    /// For tasks with a command; agents share its surroundings.
    pub shell: Shell,
    /// Whether tasks with a command are taken at all.
    pub takes_commands: bool,
    /// For the others; of several that could take a task, the first does.
    pub agents: Vec<Agent>,
}

/// An executor that takes a task.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// It has a command.
    Shell(&'a Shell),
    /// It has none.
    Agent(&'a Agent, &'a Shell),
}

impl Roster {
    /// Who takes a dispatched task: the shell if it has a command; the agent that it is assigned to, whatever its kinds,
    /// and nobody else; or the first whose kinds include `kind`. A question is for people.
    #[must_use]
    pub fn actor(&self, kind: NodeKind, parameters: &Parameters) -> Option<Actor<'_>> {
        self.choose(kind, parameters.command.is_some(), parameters.assignee.as_deref())
    }

    /// True when one of these executors takes a task once it is dispatched.
    #[must_use]
    pub fn takes(&self, task: &TaskPlan) -> bool {
        self.choose(task.kind, task.command.is_some(), task.assignee.as_deref()).is_some()
    }

    /// The agent that takes a task once it is dispatched, if one does.
    #[must_use]
    pub fn agent_for(&self, task: &TaskPlan) -> Option<&Agent> {
        match self.choose(task.kind, task.command.is_some(), task.assignee.as_deref())? {
            Actor::Shell(_) => None,
            Actor::Agent(agent, _) => Some(agent),
        }
    }

    fn choose(&self, kind: NodeKind, has_command: bool, assignee: Option<&str>) -> Option<Actor<'_>> {
        if kind == NodeKind::Clarification {
            return None;
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

impl Actor<'_> {
    /// The name under which it claims.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Shell(_) => SHELL,
            Self::Agent(agent, _) => &agent.name,
        }
    }

    /// How many tasks it carries out at once in one worker, if it has a limit of its own.
    #[must_use]
    pub fn jobs(&self) -> Option<usize> {
        match self {
            Self::Shell(_) => None,
            Self::Agent(agent, _) => Some(agent.jobs),
        }
    }

    /// Carries out a task, or until `stop` says otherwise. No child of it is left when this returns.
    pub async fn run(&self, job: Job<'_>, stop: &mut watch::Receiver<Option<Stop>>) -> (Ending, Usage) {
        match self {
            Self::Shell(shell) => shell.run(job, stop).await,
            Self::Agent(agent, shell) => agent.run(shell, job, stop).await,
        }
    }
}
