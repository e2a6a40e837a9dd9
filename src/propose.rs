//! `plan propose`, `plan draft`, `plan schema`: plans of agents, checked by rules and the tool registry.

use std::path::Path;

use crewlog_executors::agents::{Agents, PlanningError, record_failure};
use crewlog_executors::model::text_aggregate;
use crewlog_mq::Cause;
use crewlog_planner::agents::{AgentPlan, schema};
use crewlog_planner::event::Command;
use crewlog_planner::parse::ParsedPlan;
use crewlog_planner::plan::Proposal;
use crewlog_planner::protocol::AgentType;

use crate::by_model;
use crate::cli::Propose;
use crate::consent::consent;
use crate::failure::{Code, Failure};
use crate::json::print_pretty;
use crate::runtime;
use crate::session::Session;
use crate::start::{NewPlan, new_plan_id};

pub async fn propose(session: &Session, propose: Propose) -> Result<Code, Failure> {
    let roster = runtime::roster(session, propose.run_args.task_timeout, &[])?;
    let (agent, registry) = (propose.agent, &session.config()?.registry);
    let text = session.read_text(&propose.file)?;
    let compiled = AgentPlan::read(&text).and_then(|plan| plan.compile(agent, registry));
    let proposal = match compiled {
        // The log keeps the plan as it was given.
        Ok(proposal) => Proposal { source: text, ..proposal },
        Err(error) => {
            // A refusal is a decision too, and is counted.
            let (store, _) = session.place.open_or_make().await?;
            // It may quote the text, so it is sealed as one that was asked about.
            let tags = session.tags_of_new(&text_aggregate(&text))?;
            record_failure(&store, agent, &error, tags, &Cause::request()).await?;
            return Err(Failure::from(error).hint(session.command(&format!("plan schema --agent {agent}"))));
        }
    };
    let (title, tasks, context) = (proposal.title.clone(), proposal.tasks.clone(), proposal.context.clone());
    let shown = ParsedPlan { title, tasks, context, ..ParsedPlan::default() };
    // Also where it is only taken up: `work` would run it without another word.
    let config = session.config_of_new(propose.run_args.jobs)?;
    consent(session, &shown, &roster, &config.system_prompt)?;
    let begin = Command::Propose { proposal: Box::new(proposal), attachments: Vec::new(), config };
    let id = new_plan_id(session, Some(&shown), &propose.file);
    let run_args = propose.run.then_some(&propose.run_args);
    NewPlan { id, begin, roster, run_args, sync: false }.start(session).await
}

pub async fn draft(session: &Session, file: &Path, agent: AgentType, model: bool) -> Result<Code, Failure> {
    let words = session.read_text(file)?;
    let mut agents = Agents::new(session.config()?.registry.clone());
    if let Some(model) = by_model::wanted(session, Some(model))? {
        let (store, _) = session.place.open_or_make().await?;
        let planner = model.planner(&store, &text_aggregate(&words), session.tags_of_project()?);
        agents = agents.with_model(planner.map_err(|error| Failure::user(error.to_string()))?);
    }
    let plan = agents.plan(agent, &words, "").await.map_err(|error| match error {
        PlanningError::Plan(error) => error.into(),
        PlanningError::Sealed | PlanningError::Lost => Failure::user(error.to_string()),
    })?;
    session.print(&plan, |to| print_pretty(to, &plan))
}

pub fn schema_of(session: &Session, agent: AgentType) -> Result<Code, Failure> {
    let schema = schema(agent, &session.config()?.registry);
    session.print(&schema, |to| print_pretty(to, &schema))
}
