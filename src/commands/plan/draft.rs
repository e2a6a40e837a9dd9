//! `plan draft`: prints the plan that an agent makes from words.

use std::path::PathBuf;

use clap::Args;
use crewlog_executors::agents::{Agents, PlanningError};
use crewlog_executors::model::text_aggregate;
use crewlog_planner::protocol::AgentType;

use crate::cli::typed::agent;
use crate::context::Session;
use crate::run::by_model;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;

#[derive(Debug, Args)]
pub struct Draft {
    /// The goal, in words; - for standard input
    pub file: PathBuf,
    /// The type of the agent
    #[arg(long, value_name = "TYPE", value_parser = agent())]
    pub agent: AgentType,
    /// Let the configured model plan; when it fails, the agent plans by rule
    #[arg(long)]
    pub model: bool,
}

pub async fn draft(session: &Session, Draft { file, agent, model }: Draft) -> Result<Code, Failure> {
    let words = session.read_text(&file)?;
    let mut agents = Agents::new(session.config()?.registry.clone());
    if let Some(model) = by_model::allowed(session, Some(model)).await? {
        let (store, _) = session.place.open_or_make().await?;
        let planner = model.planner(&store, &text_aggregate(&words), session.tags_of_project()?);
        agents = agents.with_model(planner.map_err(|error| Failure::user(error.to_string()))?);
    }
    let plan = agents.plan(agent, &words, "").await.map_err(|error| match error {
        PlanningError::Plan(error) => Failure::new(Code::Parse, error.to_string()),
        PlanningError::Sealed | PlanningError::Lost => Failure::user(error.to_string()),
    })?;
    session.print(&plan, |to| print_pretty(to, &plan))
}
