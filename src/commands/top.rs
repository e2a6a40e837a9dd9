//! `top`: watches the crew on the terminal.

use clap::Args;

use crate::cli::typed::AtPosition;

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub at: AtPosition,
}
