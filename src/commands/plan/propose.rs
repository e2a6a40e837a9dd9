//! `plan propose`: accepts the plan of an agent if it keeps the rules of its form.

use std::path::PathBuf;

use clap::Args;
use crewlog_executors::agents::record_failure;
use crewlog_executors::caller::request;
use crewlog_executors::model::text_aggregate;
use crewlog_planner::agents::AgentPlan;
use crewlog_planner::event::Command;
use crewlog_planner::plan::Proposal;
use crewlog_planner::protocol::AgentType;

use crate::cli::typed::agent;
use crate::commands::run::{new_plan_id, start};
use crate::consent::consent;
use crate::context::{Session, roster};
use crate::run::runtime::RunArgs;
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Args)]
pub struct Propose {
    /// The plan as JSON; - for standard input
    pub file: PathBuf,
    /// The type of the agent
    #[arg(long, value_name = "TYPE", value_parser = agent())]
    pub agent: AgentType,
    /// Run it at once, as `run` does; else it is left to `work` and `resume`
    #[arg(long)]
    pub run: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

pub async fn propose(session: &Session, propose: Propose) -> Result<Code, Failure> {
    let roster = roster::roster(session, propose.run_args.task_timeout, &[])?;
    let (agent, registry) = (propose.agent, &session.config()?.registry);
    let text = session.read_text(&propose.file)?;
    let proposal = match AgentPlan::read(&text).and_then(|plan| plan.compile(agent, registry)) {
        // The log keeps the plan as it was given.
        Ok(proposal) => Proposal { source: text, ..proposal },
        Err(error) => {
            // A refusal is a decision too, and is counted.
            let (store, _) = session.place.open_or_make().await?;
            // It may quote the text, so it is sealed as one that was asked about.
            let tags = session.tags_of_new(&text_aggregate(&text))?;
            record_failure(&store, agent, &error, tags, &request()).await?;
            let schema = session.command(&format!("plan schema --agent {agent}"));
            return Err(Failure::new(Code::Parse, error.to_string()).hint(schema));
        }
    };
    // Also where it is only taken up: `work` would run it without another word.
    let config = session.config_of_new(propose.run_args.jobs)?;
    let agreed = consent(session, &proposal.tasks, &roster, (&config.system_prompt, config.folder.as_deref())).await?;
    let agreed = (agreed, proposal.tasks.clone());
    let id = new_plan_id(session, proposal.title.as_ref(), &proposal.tasks, &propose.file);
    let begin = Command::Initialize { proposal: Box::new(proposal), attachments: Vec::new(), config };
    let run_args = propose.run.then_some(&propose.run_args);
    start(session, id, begin, agreed, roster, run_args, false).await
}
