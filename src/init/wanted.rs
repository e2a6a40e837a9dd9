//! The members that crewlog adds to JSON and TOML files.

use serde_json::Value;

/// The key of the MCP server. An existing server is left unchanged: a person may have set a time-out, or a URL.
pub const SERVER: &str = "crewlog";

/// The required members of a JSON or TOML file. Arrays are extended, and so are objects, except for a server.
#[derive(Debug)]
pub struct Wanted {
    pub ours: Value,
    /// Members that a person may rely on. They are removed only when a whole file is restored.
    pub trust: Value,
}

/// The command of every hook.
pub const COMMAND: &str = "crewlog hook";
