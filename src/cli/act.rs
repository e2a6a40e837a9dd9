//! What can be typed to act on a plan.

use clap::Args;

/// `answer`.
#[derive(Debug, Args)]
pub struct Answer {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The question (q1), or the task that asks
    pub question: String,
    /// The answer
    pub text: String,
}

/// `done`.
#[derive(Debug, Args)]
pub struct Done {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label
    pub task: String,
    /// What came of it
    #[arg(default_value = "done")]
    pub result: String,
}

/// `fail`.
#[derive(Debug, Args)]
pub struct Fail {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label
    pub task: String,
    /// Why
    pub error: String,
}

/// `cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label; the whole plan if left out
    pub task: Option<String>,
    /// Why
    #[arg(long, default_value = "cancelled by a person")]
    pub reason: String,
}

/// `pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Why
    #[arg(long, default_value = "paused by a person")]
    pub reason: String,
}

/// `retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label; all that failed if left out
    pub task: Option<String>,
}
