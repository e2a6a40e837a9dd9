//! `agents`: lists the agents of the crew, or the configured ones.

use clap::Args;
use serde_json::json;

use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{in_one_line, one_line};
use crate::views::facts::{self, configured};
use crate::views::views;

#[derive(Debug, Args)]
pub struct Agents {
    /// Include those that have left
    #[arg(long)]
    pub all: bool,
    /// List the agents of crewlog.toml instead, which run tasks
    #[arg(long, conflicts_with_all = ["all", "at"])]
    pub configured: bool,
    /// List the workers instead, with their machines, tasks and last sign of life
    #[arg(long, conflicts_with_all = ["all", "configured"])]
    pub workers: bool,
    #[command(flatten)]
    pub at: AtPosition,
}

const WORKER: [&[&str]; 2] = [&["host", "worker"], &["heard", "runs"]];
/// The fields of an agent in the text of a list: its heading, and the lines below.
const AGENT: [&[&str]; 2] = [
    &["agent", "liveness", "activity", "context_usage", "program", "model"],
    &["doing", "reason", "limited_until", "limits", "cost_usd", "task", "step", "note", "worktree", "seen"],
];

pub async fn agents(session: &Session, Agents { all, configured, workers, at }: Agents) -> Result<Code, Failure> {
    if configured {
        return list_executors(session);
    }
    let as_of = views(session).await?.as_of(at.at).await?;
    if workers {
        let shown = as_of.workers().await?;
        return facts::print_list(session, "workers", json!({ "at": as_of.at }), &shown, WORKER, as_of.now);
    }
    let shown = as_of.agents(all).await?;
    facts::print_list(session, "agents", json!({ "at": as_of.at }), &shown, AGENT, as_of.now)
}

/// `agents --configured`: lists the configured agents.
pub fn list_executors(session: &Session) -> Result<Code, Failure> {
    let config = session.config()?;
    let file = config.file.as_ref().map(|file| file.to_string_lossy());
    let width = config.agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    session.print_list("executors", json!({ "config": file }), &config.agents, configured, |to, agent| {
        let command = one_line(&in_one_line(&agent.program.line()), 100);
        let kinds = agent.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
        let kinds = if kinds.is_empty() { "every kind" } else { &kinds };
        writeln!(to, "{:<width$}  {kinds:<30}  {command}", agent.name)
    })?;
    if config.agents.is_empty() {
        let file = file.unwrap_or("there is no crewlog.toml".into());
        session.remark(&format!("no agents are configured ({file}): tasks without a command are for people"));
    }
    Ok(Code::Done)
}
