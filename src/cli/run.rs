//! What can be typed to have work carried out.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use crewlog_planner::event::Profile;
use crewlog_planner::plan::FailurePolicy;
use crewlog_planner::prompt::{TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN};

use super::amend::TypedOrder;
use super::model::ByModel;
use super::show::Reading;
use super::typed::{duration, micros};

/// How work is carried out.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The most commands that this process runs at once [default: what the plan allows]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: Option<u16>,
    /// Stop after this long and exit with 8; the plan can be resumed (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a command after this long, unless its task says otherwise
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
    /// Who plans, the text and what agents plan of tasks
    #[command(flatten)]
    pub by_model: ByModel,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The plan file; - for standard input
    pub file: PathBuf,
    /// How to read it
    #[command(flatten)]
    pub reading: Reading,
    /// How to carry it out
    #[command(flatten)]
    pub run_args: RunArgs,
    /// What a failure means for the rest of the plan
    #[arg(long, value_enum, default_value_t = OnFailure::Skip)]
    pub on_failure: OnFailure,
    /// About how many tokens an agent may be told, its task and what came before it together [default: 8000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(TOKENS))]
    pub token_budget: Option<u32>,
    /// How prompts shorten long results and the history of the plan
    #[arg(long, value_enum, default_value_t = TypedProfile::Coding)]
    pub profile: TypedProfile,
    /// Instruction at the start of every prompt of the plan
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub system_prompt: String,
    /// Which of the tasks that could start does, after the priorities that the text gives
    #[arg(long, value_enum, default_value_t = TypedOrder::Place)]
    pub order: TypedOrder,
    /// What the plan may use up
    #[command(flatten)]
    pub limits: Limits,
    /// Write the states of tasks into the file, and take over what is changed there meanwhile
    #[arg(long)]
    pub sync: bool,
    /// Only make the plan, and leave it to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
}

/// What a plan may use up.
#[derive(Debug, Clone, Args)]
pub struct Limits {
    /// End the plan as failed when it has not ended so long after its start (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub deadline: Option<Duration>,
    /// Pause before the plan has used up more tokens than this
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<u64>,
    /// Pause before the plan has cost more than this, in the unit in which agents tell it (2.50)
    #[arg(long, value_name = "COST", value_parser = micros)]
    pub budget_cost: Option<u64>,
    /// Pause before the tasks of the plan have run longer than this, each counted alone (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub budget_time: Option<Duration>,
    /// When the plan fails or is cancelled, undo what it did, as far as its tasks say how
    #[arg(long)]
    pub compensate: bool,
}

/// What a plan may be given as its token budget.
pub(super) const TOKENS: std::ops::RangeInclusive<i64> = TOKEN_BUDGET_MIN as i64..=TOKEN_BUDGET_MAX as i64;

/// A profile as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypedProfile {
    /// Paths, signatures, errors
    Coding,
    /// Findings, figures, sources
    Analysis,
}

impl From<TypedProfile> for Profile {
    fn from(typed: TypedProfile) -> Self {
        match typed {
            TypedProfile::Coding => Self::Coding,
            TypedProfile::Analysis => Self::Analysis,
        }
    }
}

/// A failure policy as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// Skip what depends on the failed task
    Skip,
    /// Go on as if it had completed
    Continue,
    /// Start nothing more
    Stop,
    /// Ask a person
    Ask,
}

impl From<OnFailure> for FailurePolicy {
    fn from(typed: OnFailure) -> Self {
        match typed {
            OnFailure::Skip => Self::SkipDependants,
            OnFailure::Continue => Self::Continue,
            OnFailure::Stop => Self::Stop,
            OnFailure::Ask => Self::Ask,
        }
    }
}

/// `work`.
#[derive(Debug, Args)]
pub struct Work {
    /// The most tasks that this process carries out at once
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// Run only these executors: shell, or names from crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when there is nothing that an executor of this process could do
    #[arg(long)]
    pub until_idle: bool,
    /// Stop after this long and exit with 8 (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a task after this long, unless it or its executor says otherwise
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
}

/// `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// A paused task, by number or label: only let it be started again, and carry nothing out
    #[arg(conflicts_with_all = ["jobs", "timeout", "task_timeout", "sync"])]
    pub task: Option<String>,
    /// Write the states of tasks into the plan's file, and take over what is changed there
    #[arg(long)]
    pub sync: bool,
    /// How to carry it out
    #[command(flatten)]
    pub run_args: RunArgs,
}
