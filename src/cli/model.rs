//! What can be typed about models.

use clap::Args;

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
