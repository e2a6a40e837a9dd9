//! Planning inside agents: each type makes plans of its own form, with its own tools, of what it is told.
//!
//! No one plans for all. What an agent plans is judged by the planner when it is proposed, by the same rules whoever made
//! it. Nothing here runs anything.

use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{AgentProposal, PlanError, plan_words};
use crewlog_planner::event::{Command, PlannerConfig};
use crewlog_planner::parse::{self, ParseOptions};
use crewlog_planner::plan::{Origin, Proposal, SubPlan};
use crewlog_planner::protocol::AgentType;

/// The command that proposes a plan for the words of a task: by the type of agent that is named, else by the parser alone.
/// Where another name is given, what has no command and is nobody's is that executor's.
///
/// # Errors
/// [`PlanError`] when no plan can be made of them.
pub fn proposal(
    words: &SubPlan,
    registry: &ToolRegistry,
    origin: Origin,
    config: PlannerConfig,
) -> Result<Command, PlanError> {
    let attachments = Vec::new();
    let name = words.agent.as_deref();
    if let Some(agent) = name.and_then(AgentType::named) {
        let plan = plan_words(agent, &words.text, registry)?.json();
        let proposal = Box::new(AgentProposal { agent, plan, registry: registry.clone(), origin });
        return Ok(Command::ProposeAgentPlan { proposal, attachments, config });
    }
    let parsed = parse::parse(&words.text, ParseOptions::default()).map_err(|error| PlanError::Words { error })?;
    let mut tasks = parsed.tasks;
    for task in tasks.iter_mut().filter(|task| task.command.is_none() && task.assignee.is_none()) {
        task.assignee = name.map(str::to_owned);
    }
    let proposal = Proposal { tasks, title: parsed.title, source: words.text.clone(), context: parsed.context, origin };
    Ok(Command::Propose { proposal: Box::new(proposal), attachments, config })
}
