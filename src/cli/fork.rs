//! What can be typed to travel in the history of a plan.

use clap::Args;
use crewlog_planner::planner::is_checkpoint_name;

use super::amend::Changes;
use super::run::{OnFailure, RunArgs, TOKENS};

/// A point of a plan's history, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// A position of the log.
    Position(i64),
    /// The name of a checkpoint.
    Checkpoint(String),
}

/// A number from 1 on, or a name.
pub(super) fn at(typed: &str) -> Result<At, String> {
    match typed.parse() {
        Ok(at @ 1..) => Ok(At::Position(at)),
        Err(_) if is_checkpoint_name(typed) => Ok(At::Checkpoint(typed.to_owned())),
        Ok(_) | Err(_) => Err("it is neither a position of the log, 1 or more, nor the name of a checkpoint".into()),
    }
}

/// `fork`.
#[derive(Debug, Args)]
pub struct Fork {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Continue from this point of its history [default: its present state]
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at, group = "point")]
    pub at: Option<At>,
    /// Go on from where this task was first about to begin
    #[arg(long, value_name = "TASK", group = "point")]
    pub before: Option<String>,
    /// Go on from right before the first failure, or the first of this task, so that it runs again
    #[arg(long, value_name = "TASK", num_args = 0..=1, require_equals = true, group = "point")]
    pub before_failure: Option<Option<String>>,
    /// Why
    #[arg(long, default_value = "forked by a person")]
    pub reason: String,
    /// The most tasks of the fork at once [default: as in the plan]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub parallelism: Option<u16>,
    /// What a failure means for the rest of the fork [default: as in the plan]
    #[arg(long, value_enum)]
    pub on_failure: Option<OnFailure>,
    /// About how many tokens an agent may be told [default: as in the plan]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(TOKENS))]
    pub token_budget: Option<u32>,
    /// Changes to the tasks, applied before the fork starts
    #[command(flatten)]
    pub changes: Changes,
    /// Carry the fork out
    #[arg(long)]
    pub run: bool,
    /// How to carry it out
    #[command(flatten)]
    pub run_args: RunArgs,
}

/// `checkpoint`.
#[derive(Debug, Args)]
pub struct Checkpoint {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The name: letters, digits, dashes, dots and underscores
    pub name: String,
}

/// `checkpoints`.
#[derive(Debug, Args)]
pub struct Checkpoints {
    /// The plan's id, or the beginning of it
    pub plan: String,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// A plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    pub one: String,
    /// A fork of it, the plan that it was forked from, or another fork
    #[arg(value_name = "PLAN")]
    pub other: String,
}
