//! `plan propose`: an agent's plan is held to the rules and to the registry of tools, and taken up. `plan schema`: the form
//! of such plans, with the tools that the agent has.

use std::io::Write;
use std::sync::Arc;

use crewlog_executors::agents::{Agents, PlanningError, PlansByModel, record_failure};
use crewlog_executors::model::{Asker, Client, text_aggregate};
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::Cause;
use crewlog_planner::agents::{AgentPlan, schema};
use crewlog_planner::event::{Command, PlannerConfig};
use crewlog_planner::parse::ParsedPlan;
use crewlog_planner::plan::Proposal;

use crate::by_model;
use crate::cli::{Draft, Output, Propose, Schema};
use crate::consent::consent;
use crate::failure::{Code, Failure};
use crate::json::print_pretty;
use crate::order::{make_plan, short_id};
use crate::run_session::RunSession;
use crate::runtime::{self, Signals};
use crate::session::{Session, read_text};
use crate::start::plan_name;
use crate::terminal::unless_closed;

pub async fn propose(session: &Session, propose: Propose) -> Result<Code, Failure> {
    let roster = runtime::roster(session, propose.run_args.task_timeout, &[])?;
    let (agent, registry) = (propose.agent, session.config()?.registry);
    let text = read_text(&propose.file)?;
    let compiled = AgentPlan::read(&text).and_then(|plan| plan.compile(agent, &registry));
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
    consent(session, &shown, &roster)?;
    let default = PlannerConfig::default();
    let config = PlannerConfig {
        parallelism: propose.run_args.jobs.map_or(default.parallelism, usize::from),
        folder: Some(session.folder.to_string_lossy().into_owned()),
        ..default
    };
    let command = Command::Propose { proposal: Box::new(proposal), attachments: Vec::new(), config };
    let signals = Signals::new()?;
    let (store, _) = session.place.open_or_make().await?;
    let since = store.head().await?;
    let id = format!("{}-{}", plan_name(Some(&shown), &propose.file, session.place.keys.is_given()), short_id());
    let plan = make_plan(session, &store, id, command).await?;
    let mut stdout = std::io::stdout();
    match session.output {
        Output::Text => unless_closed(writeln!(stdout, "{plan}").and_then(|()| stdout.flush()))?,
        Output::Json | Output::Jsonl if propose.run => {}
        Output::Json | Output::Jsonl => {
            unless_closed(writeln!(stdout, "{}", serde_json::json!({ "plan": plan })))?;
        }
    }
    if !propose.run {
        return Ok(Code::Done);
    }
    RunSession::new(session, store, plan, since, &propose.run_args, roster, InterruptedTask::Report)
        .await?
        .run(signals)
        .await
}

pub async fn draft(session: &Session, draft: &Draft) -> Result<Code, Failure> {
    let words = read_text(&draft.file)?;
    let mut agents = Agents::new(session.config()?.registry);
    if let Some(model) = by_model::wanted(session, Some(draft.model))? {
        let (store, _) = session.place.open_or_make().await?;
        let client = Client::new(model.settings).map_err(|error| Failure::user(error.to_string()))?;
        let tags = session.tags_of_project()?;
        let asker = Asker::new(Arc::new(client), model.retry_policy, store, text_aggregate(&words), tags);
        agents = agents.with_model(PlansByModel { terms: model.terms, asker });
    }
    let plan = agents.plan(draft.agent, &words, "").await.map_err(|error| match error {
        PlanningError::Plan(error) => error.into(),
        PlanningError::Sealed | PlanningError::Lost => Failure::user(error.to_string()),
    })?;
    let mut stdout = std::io::stdout();
    unless_closed(match session.output {
        Output::Jsonl => writeln!(stdout, "{}", plan.json()),
        Output::Text | Output::Json => print_pretty(&mut stdout, &plan),
    })?;
    Ok(Code::Done)
}

pub fn schema_of(session: &Session, wanted: &Schema) -> Result<Code, Failure> {
    let schema = schema(wanted.agent, &session.config()?.registry);
    let text = match session.output {
        Output::Jsonl => serde_json::to_string(&schema),
        Output::Text | Output::Json => serde_json::to_string_pretty(&schema),
    };
    let text = text.map_err(|error| Failure::user(format!("the form cannot be written: {error}")))?;
    unless_closed(writeln!(std::io::stdout(), "{text}"))?;
    Ok(Code::Done)
}
