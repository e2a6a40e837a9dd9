//! Determines who runs this process: an agent, below an agent program, or a person.

use crewlog_executors::human;

/// The variable by which a launcher names the agent to its program, tools and hooks.
pub const AGENT_ID: &str = "AGENT_ID";

/// Variables that are set below an agent program. Codex sets none.
const SIGNS: [&str; 4] = [AGENT_ID, "CLAUDECODE", "GEMINI_CLI", "OPENCODE"];

pub fn is_below_agent() -> bool {
    SIGNS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The agent that this process acts for, if it has the identity of one.
pub fn agent_id() -> Option<String> {
    std::env::var(AGENT_ID).ok().filter(|agent| !agent.is_empty())
}

/// The person, as events name them.
pub fn person() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| human::NAME.to_owned())
}
