//! What can be typed to look after keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `keys`.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make an operator's key in a new file; with it new plans are sealed
    New(KeyFile),
    /// List the keys of sealed plans, and what can be done with them
    Ls,
    /// Destroy the key of a plan, and with it the texts of the plan and its forks, for good
    Destroy(DestroyKey),
    /// Wrap the keys of all plans under another operator's key
    Rotate(RotateKeys),
}

/// `keys new`.
#[derive(Debug, Args)]
pub struct KeyFile {
    /// The file to be made
    pub file: PathBuf,
}

/// `keys destroy`.
#[derive(Debug, Args)]
pub struct DestroyKey {
    /// The plan; or a text that was asked about, or a key, as `keys ls` names it
    pub plan: String,
}

/// `keys rotate`.
#[derive(Debug, Args)]
pub struct RotateKeys {
    /// The file with the other operator's key
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}
