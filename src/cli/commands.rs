//! What can be typed to act on a plan.

use std::time::Duration;

use clap::Args;

use super::typed::duration;

/// `answer`.
#[derive(Debug, Args)]
pub struct Answer {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The question (q1), or the task that asks
    pub question: String,
    /// The answer
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// Ask this of the same task too, which then waits for both answers
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
}

/// `ask`.
#[derive(Debug, Args)]
pub struct Ask {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label: one that has not been started, or that waits for an answer
    pub task: String,
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub question: String,
    /// The answer that counts when nobody gives one in time
    #[arg(long, value_name = "ANSWER", requires = "after")]
    pub default: Option<String>,
    /// How long that takes (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "default")]
    pub after: Option<Duration>,
}

/// `withdraw`.
#[derive(Debug, Args)]
pub struct Withdraw {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The question (q1), or the task that asks
    pub question: String,
    /// Why
    #[arg(long, default_value = "withdrawn by a person")]
    pub reason: String,
}

/// `done`.
#[derive(Debug, Args)]
pub struct Done {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label
    pub task: String,
    /// Its result
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
    /// Undo what the plan did, as far as its tasks say how
    #[arg(long, conflicts_with = "task")]
    pub compensate: bool,
}

/// `pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label; the whole plan if left out
    pub task: Option<String>,
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
    /// Try a task at once that waits before its next try
    #[arg(long, requires = "task")]
    pub now: bool,
}
