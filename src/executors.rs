//! `agents --configured`: lists the configured agents.

use crewlog_executors::agent::{Agent, Program};

use serde_json::json;

use crate::failure::{Code, Failure};
use crate::json::executor_json;
use crate::session::Session;
use crate::text::{in_one_line, one_line, shell_word};

pub fn list(session: &Session) -> Result<Code, Failure> {
    let config = session.config()?;
    let file = config.file.as_ref().map(|file| file.to_string_lossy());
    let width = config.agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    session.print_list("executors", json!({ "config": file }), &config.agents, executor_json, |to, agent| {
        let command = one_line(&command_line(agent), 100);
        writeln!(to, "{:<width$}  {:<30}  {command}", agent.name, kinds(agent))
    })?;
    if config.agents.is_empty() {
        let file = file.unwrap_or("there is no crewlog.toml".into());
        session.remark(&format!("no agents are configured ({file}): tasks without a command are for people"));
    }
    Ok(Code::Done)
}

fn kinds(agent: &Agent) -> String {
    if agent.kinds.is_empty() {
        return "every kind".into();
    }
    agent.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
}

/// The started program as a line for a shell.
pub fn command_line(agent: &Agent) -> String {
    match &agent.program {
        Program::Argv(words) => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        Program::Shell(line) => in_one_line(line),
    }
}
