//! What can be typed about models.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// `mock-llm`.
#[derive(Debug, Args)]
pub struct MockLlm {
    /// Where to listen; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The script: which reply or fault comes for which request
    #[arg(long, value_name = "FILE")]
    pub fixtures: PathBuf,
    /// Append each request to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub requests_to: Option<PathBuf>,
}

/// Whether a model plans.
#[derive(Debug, Clone, Copy, Args)]
pub struct ByModel {
    /// Let the configured model plan; when it fails, the text is parsed
    #[arg(long, conflicts_with = "no_model")]
    pub model: bool,
    /// Ask no model, whatever is configured
    #[arg(long)]
    pub no_model: bool,
}

impl ByModel {
    /// What was typed; nothing when the configuration decides.
    pub fn typed(self) -> Option<bool> {
        match (self.model, self.no_model) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}
