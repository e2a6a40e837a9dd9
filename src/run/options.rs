//! The options of commands that run tasks in this process.

use std::time::Duration;

use clap::Args;

use crate::cli::typed::{duration, jobs};

const TASK_TIMEOUT: &str = "1h";

/// How a process runs tasks.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The most tasks that this process runs at once [default: what the plan allows; for `work` 4]
    #[arg(short, long, value_name = "N", value_parser = jobs())]
    pub jobs: Option<usize>,
    /// Stop after this long and exit with 8; the plan can be resumed (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a task after this long, unless it or its executor sets a timeout
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = TASK_TIMEOUT)]
    pub task_timeout: Duration,
    /// Let the configured model plan; when it fails, the text is parsed
    #[arg(long, conflicts_with = "no_model")]
    model: bool,
    /// Ask no model, whatever is configured
    #[arg(long)]
    no_model: bool,
}

impl Default for RunArgs {
    fn default() -> Self {
        let task_timeout = duration(TASK_TIMEOUT).expect("it is a duration");
        Self { jobs: None, timeout: None, task_timeout, model: false, no_model: false }
    }
}

impl RunArgs {
    /// The defaults, without asking a model.
    pub fn without_model() -> Self {
        Self { no_model: true, ..Self::default() }
    }

    /// True if a model plans; the configuration decides when unset.
    pub fn by_model(&self) -> Option<bool> {
        (self.model || self.no_model).then_some(self.model)
    }
}
