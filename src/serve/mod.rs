//! Servers: the HTTP API, the dashboard, MCP.

pub mod http;
pub mod mcp;
pub mod page;
pub mod tokens;
