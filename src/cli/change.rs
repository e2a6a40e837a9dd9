//! Arguments of commands that change a running plan.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use crewlog_planner::event::Setting;
use crewlog_planner::plan::{FailurePolicy, NodeKind};

use super::run::Settings;
use super::typed::{kind, limit, millis, policy, urgency};

#[derive(Debug, Args)]
pub struct Answer {
    /// The plan's id, or a prefix of it; or the question of an agent (a12), which its answer follows
    pub plan: String,
    /// The question (q1), or the task that asks
    #[arg(required_unless_present_any = ["yes", "no"])]
    pub question: Option<String>,
    /// The answer
    #[arg(allow_hyphen_values = true)]
    pub text: Option<String>,
    /// Answer no to an agent; --yes answers yes
    #[arg(long, conflicts_with_all = ["yes", "ask", "text"])]
    pub no: bool,
    /// Ask this of the same task too, which then waits for both answers
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
}

#[derive(Debug, Args)]
pub struct Ask {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// The task, by number or label: one that has not started, or that waits for an answer
    pub task: String,
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub question: String,
    /// The default answer, with --after
    #[arg(long, value_name = "ANSWER", requires = "after")]
    pub default: Option<String>,
    /// When the default answer counts (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = millis, requires = "default")]
    pub after: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Cancel {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// The task, by number or label; the whole plan if left out
    pub task: Option<String>,
    /// Why
    #[arg(long, default_value = "cancelled by a person")]
    pub reason: String,
    /// Run the undo commands of completed tasks
    #[arg(long, conflicts_with = "task")]
    pub compensate: bool,
}

#[derive(Debug, Args)]
pub struct Pause {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// The task, by number or label; the whole plan if left out
    pub task: Option<String>,
    /// Why
    #[arg(long, default_value = "paused by a person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// The task, by number or label; all that failed if left out
    pub task: Option<String>,
    /// Retry at once a task that waits for its next attempt
    #[arg(long, requires = "task")]
    pub now: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["add", "edit", "skip", "reorder"])))]
pub struct Amend {
    /// The plan's id, or a prefix of it
    pub plan: String,
    #[command(flatten)]
    pub changes: Changes,
    /// Why
    #[arg(long, default_value = "amended by a person")]
    pub reason: String,
}

/// Changes to the tasks of a plan or of a fork.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("placed").multiple(true).args(["add", "reorder"])))]
pub struct Changes {
    /// Add tasks: a text, the path of one, or - for standard input
    // A list begins with a dash.
    #[arg(long, value_name = "TEXT|FILE", conflicts_with = "reorder", allow_hyphen_values = true)]
    pub add: Option<String>,
    /// With --add or --reorder: the tasks to wait for, by number or label
    #[arg(long, value_name = "TASK", value_delimiter = ',', requires = "placed")]
    pub after: Vec<String>,
    /// With --add: the tasks that wait for it
    #[arg(long, value_name = "TASK", value_delimiter = ',', requires = "add")]
    pub add_before: Vec<String>,
    /// Edit a task that has not started
    #[arg(long, value_name = "TASK")]
    pub edit: Option<String>,
    #[command(flatten)]
    pub edits: Edits,
    /// Skip tasks; their dependants may run
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Make a task wait for the tasks of --after alone
    #[arg(long, value_name = "TASK")]
    pub reorder: Option<String>,
}

/// Changes to a task. An empty text removes the value.
#[derive(Debug, Clone, Args)]
#[group(requires = "edit", multiple = true)]
pub struct Edits {
    /// With --edit: the new description
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub description: Option<String>,
    /// With --edit: its shell command
    #[arg(long, value_name = "LINE")]
    pub command: Option<String>,
    /// With --edit: its kind, such as Analysis
    #[arg(long, value_parser = kind)]
    pub kind: Option<NodeKind>,
    /// With --edit: its label
    #[arg(long, value_name = "ID")]
    pub label: Option<String>,
    /// With --edit: its notes, all of them
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Vec<String>,
    /// With --edit: its priority (P0 to P4, urgent, high, medium, low)
    #[arg(long, value_name = "WORD", value_parser = urgency)]
    pub priority: Option<String>,
    /// With --edit: its assignee
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<String>,
    /// With --edit: its retries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retry: Option<u32>,
    /// With --edit: its expected duration
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    pub estimate: Option<u64>,
    /// With --edit: the paths and globs that it works on, all of them
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub files: Vec<String>,
    /// With --edit: stop each attempt after this long (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = millis)]
    pub edit_timeout: Option<u64>,
    /// With --edit: its failure policy
    #[arg(long, value_parser = policy())]
    pub edit_on_failure: Option<FailurePolicy>,
}

#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("any").required(true).multiple(true)
        .args(["parallelism", "limit", "on_failure", "retries", "order", "token_budget", "standing", "deadline", "budget_tokens", "budget_cost", "budget_time", "compensate", "unset"])
))]
pub struct Set {
    /// The plan's id, or a prefix of it
    pub plan: String,
    /// Tasks that may run at once: of those with a command, and again of those without
    #[arg(long, value_name = "N")]
    pub parallelism: Option<usize>,
    /// Tasks of a kind, or of an assignee, that may run at once; `KIND=` or `@NAME=` removes the limit
    #[arg(long, value_name = "KIND=N|@NAME=N", value_parser = limit)]
    pub limit: Vec<Setting>,
    #[command(flatten)]
    pub settings: Settings,
    /// Retries after a failure to start, a time-out or a rate limit
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Remove a limit
    #[arg(long, value_enum, value_name = "LIMIT", value_delimiter = ',')]
    pub unset: Vec<Unset>,
    /// Whether the plan stays open when all its tasks have ended
    #[arg(long, value_name = "true|false")]
    pub standing: Option<bool>,
    /// Why
    #[arg(long, default_value = "set by a person")]
    pub reason: String,
}

/// A limit that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unset {
    BudgetTokens,
    BudgetCost,
    BudgetTime,
    Deadline,
    Compensate,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Add a task to a plan, by default to the project's standing plan, which is made if it is missing
    Add(AddTask),
}

#[derive(Debug, Args)]
pub struct AddTask {
    /// Description of the task
    // A list begins with a dash.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// The plan's id, or a prefix of it
    #[arg(long, default_value = BACKLOG)]
    pub plan: String,
    /// Make a standing plan of this name first
    #[arg(long)]
    pub new: bool,
    /// The tasks to wait for, by number or label
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub after: Vec<String>,
    /// Why
    #[arg(long, default_value = "added by a person")]
    pub reason: String,
}

/// The standing plan of a project.
pub const BACKLOG: &str = "backlog";
