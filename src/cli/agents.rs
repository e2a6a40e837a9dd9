//! What can be typed of the plans of agents.

use std::path::PathBuf;

use clap::Args;
use crewlog_planner::protocol::AgentType;

use super::RunArgs;

/// `plan propose`.
#[derive(Debug, Args)]
pub struct Propose {
    /// The plan as JSON; - for standard input
    pub file: PathBuf,
    /// Whose plan it is: strategic, tactical, perception, orchestrator
    #[arg(long, value_name = "TYPE", value_parser = agent_type)]
    pub agent: AgentType,
    /// RunArgs it out at once, as `run` does; else it is left to `work` and `resume`
    #[arg(long)]
    pub run: bool,
    /// How to carry it out
    #[command(flatten)]
    pub run_args: RunArgs,
}

/// `plan draft`.
#[derive(Debug, Args)]
pub struct Draft {
    /// The goal, in words; - for standard input
    pub file: PathBuf,
    /// Who plans: strategic, tactical, perception, orchestrator
    #[arg(long, value_name = "TYPE", value_parser = agent_type)]
    pub agent: AgentType,
    /// Let the configured model plan; when it fails, the agent plans by rule
    #[arg(long)]
    pub model: bool,
}

/// `plan schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Whose plan: strategic, tactical, perception, orchestrator
    #[arg(long, value_name = "TYPE", value_parser = agent_type)]
    pub agent: AgentType,
}

fn agent_type(typed: &str) -> Result<AgentType, String> {
    let names = || AgentType::ALL.map(AgentType::as_str).join(", ");
    AgentType::named(typed).ok_or_else(|| format!("no type of agent; they are {}", names()))
}
