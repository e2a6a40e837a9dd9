//! Arguments of commands that run plans: `run`, `resume`, `work`, `fork`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use crewlog_planner::event::{Budget, Order, Profile, Setting};
use crewlog_planner::plan::FailurePolicy;

use super::change::Changes;
use super::show::Reading;
use super::typed::{At, ORDERS, PROFILES, at, duration, jobs, micros, millis, one_of, policy};

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
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
    /// Let the configured model plan; when it fails, the text is parsed
    #[arg(long, conflicts_with = "no_model")]
    model: bool,
    /// Ask no model, whatever is configured
    #[arg(long)]
    no_model: bool,
}

impl RunArgs {
    /// Whether a model plans; the configuration decides when unset.
    pub fn by_model(&self) -> Option<bool> {
        (self.model || self.no_model).then_some(self.model)
    }
}

/// Settings of a new plan, or of one under way.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// When a task fails: skip its dependants, continue as if it had completed, start nothing more, or ask
    #[arg(long, value_parser = policy())]
    on_failure: Option<FailurePolicy>,
    /// About how many tokens a prompt may have
    #[arg(long, value_name = "N")]
    token_budget: Option<usize>,
    /// Which ready task starts first among equal priorities: by place in the plan, or by longest chain of dependants
    #[arg(long, value_parser = one_of(ORDERS))]
    order: Option<Order>,
    /// End the plan as failed when it has not ended this long after its start (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    deadline: Option<u64>,
    /// Pause before the plan has used more tokens than this
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u64>,
    /// Pause before the plan has cost more than this, in the unit in which agents report it (2.50)
    #[arg(long, value_name = "COST", value_parser = micros)]
    budget_cost: Option<u64>,
    /// Pause before the tasks of the plan have run longer than this in total (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    budget_time: Option<u64>,
    /// When the plan fails or is cancelled, run the undo commands of its completed tasks
    #[arg(long)]
    compensate: bool,
}

impl Settings {
    /// The typed settings, as changes to a plan with this budget.
    pub fn changes(&self, before: Budget) -> impl Iterator<Item = Setting> + use<> {
        let budget = Budget {
            tokens: self.budget_tokens.or(before.tokens),
            cost_micros: self.budget_cost.or(before.cost_micros),
            duration_ms: self.budget_time.or(before.duration_ms),
        };
        let changes = [
            self.on_failure.map(Setting::OnFailure),
            self.token_budget.map(Setting::TokenBudget),
            self.order.map(Setting::Order),
            self.deadline.map(|deadline_ms| Setting::DeadlineMs(Some(deadline_ms))),
            (budget != before).then_some(Setting::Budget(budget)),
            self.compensate.then_some(Setting::Compensate(true)),
        ];
        changes.into_iter().flatten()
    }
}

#[derive(Debug, Args)]
pub struct Run {
    /// The plan file; - for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
    #[command(flatten)]
    pub run_args: RunArgs,
    #[command(flatten)]
    pub settings: Settings,
    /// How prompts shorten long results: keep paths, signatures and errors, or findings, figures and sources
    #[arg(long, value_parser = one_of(PROFILES), default_value = "coding")]
    pub profile: Profile,
    /// Instruction at the start of every prompt of the plan
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub system_prompt: String,
    /// Write the states of tasks into the file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Only make the plan, and leave it to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct Resume {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// A paused task, by number or label: only allow it to start
    #[arg(conflicts_with_all = ["jobs", "timeout", "task_timeout", "sync"])]
    pub task: Option<String>,
    /// Write the states of tasks into the plan's file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Only resume the plan, and leave its tasks to `crewlog work`
    #[arg(long, conflicts_with_all = ["task", "timeout", "task_timeout", "sync"])]
    pub detach: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

#[derive(Debug, Args)]
pub struct Work {
    /// Run only these executors: shell, or names from crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when no executor of this process has anything left to do
    #[arg(long)]
    pub until_idle: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

#[derive(Debug, Args)]
pub struct Fork {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// Continue from this point of its history [default: its present state]
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at, group = "point")]
    pub at: Option<At>,
    /// Continue from where this task was first about to start
    #[arg(long, value_name = "TASK", group = "point")]
    pub before: Option<String>,
    /// Continue from right before the first failure, or the first of this task, so that it runs again
    #[arg(long, value_name = "TASK", num_args = 0..=1, require_equals = true, group = "point")]
    pub before_failure: Option<Option<String>>,
    /// Why
    #[arg(long, default_value = "forked by a person")]
    pub reason: String,
    /// The most tasks of the fork at once [default: as in the plan]
    #[arg(long, value_name = "N")]
    pub parallelism: Option<usize>,
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub changes: Changes,
    /// Run the fork
    #[arg(long)]
    pub run: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}
