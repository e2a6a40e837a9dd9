//! `plan schema`: prints the form of an agent's plans.

use clap::Args;
use crewlog_planner::agents::schema;
use crewlog_planner::protocol::AgentType;

use crate::cli::typed::agent;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;

#[derive(Debug, Args)]
pub struct Schema {
    /// The type of the agent
    #[arg(long, value_name = "TYPE", value_parser = agent())]
    pub agent: AgentType,
}

pub fn print_schema(session: &Session, Schema { agent }: &Schema) -> Result<Code, Failure> {
    let schema = schema(*agent, &session.config()?.registry);
    session.print(&schema, |to| print_pretty(to, &schema))
}
