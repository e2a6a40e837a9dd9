//! `agents --configured`: lists the configured agents.

use crewlog_executors::agent::{Agent, Program};
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
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

/// Of the environment only the names: the values may be secret.
fn executor_json(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "kinds": agent.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
        "command": agent.program.argv(None),
        "prompt": agent.prompt,
        "env": agent.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "timeout_ms": agent.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        "jobs": agent.jobs,
        "rate_limited": agent.rate_limited,
    })
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
