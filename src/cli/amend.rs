//! What can be typed to change a plan under way.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use crewlog_planner::event::Order;
use crewlog_planner::plan::NodeKind;
use crewlog_planner::priority;

use super::run::{Limits, OnFailure};
use super::typed::duration;

/// `amend`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["add", "edit", "skip", "reorder"])))]
pub struct Amend {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Changes to its tasks
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
    /// Edit a task that has not begun
    #[arg(long, value_name = "TASK")]
    pub edit: Option<String>,
    /// Changes to it
    #[command(flatten)]
    pub facts: Facts,
    /// With --edit: stop a run of it after this long (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "edit")]
    pub edit_timeout: Option<Duration>,
    /// With --edit: what its failure means for the rest
    #[arg(long, value_enum, requires = "edit")]
    pub edit_on_failure: Option<OnFailure>,
    /// Leave tasks out; what depends on them may run
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Let a task wait for what --after names, and for nothing else
    #[arg(long, value_name = "TASK")]
    pub reorder: Option<String>,
}

/// Changes to a task. An empty text removes the value.
#[derive(Debug, Clone, Args)]
#[group(requires = "edit", multiple = true)]
pub struct Facts {
    /// With --edit: the new description
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub description: Option<String>,
    /// With --edit: its line for the shell
    #[arg(long, value_name = "LINE")]
    pub command: Option<String>,
    /// With --edit: what sort of work it is
    #[arg(long, value_parser = kind)]
    pub kind: Option<NodeKind>,
    /// With --edit: the id by which it is named
    #[arg(long, value_name = "ID")]
    pub label: Option<String>,
    /// With --edit: its notes, all of them
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Vec<String>,
    /// With --edit: how urgent it is (P0 to P4, urgent, high, medium, low)
    #[arg(long, value_name = "WORD", value_parser = urgency)]
    pub priority: Option<String>,
    /// With --edit: who is to do it
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<String>,
    /// With --edit: how often it is tried again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retry: Option<u32>,
    /// With --edit: how long it is expected to take
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub estimate: Option<Duration>,
    /// With --edit: the paths and globs that it works on, all of them
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub files: Vec<String>,
}

/// `set`.
#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("settings").required(true).multiple(true)
        .args(["parallelism", "limit", "on_failure", "retries", "order", "token_budget", "standing", "deadline", "budget_tokens", "budget_cost", "budget_time", "compensate", "unset"])
))]
pub struct Set {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Tasks that may run at once: of those with a command, and again of those without
    #[arg(long, value_name = "N")]
    pub parallelism: Option<usize>,
    /// Tasks of a kind, or of an assignee, that may run at once; no number takes the limit away
    #[arg(long, value_name = "KIND=N|@NAME=N", value_parser = limit)]
    pub limit: Vec<Limit>,
    /// What a failure means for the rest of the plan
    #[arg(long, value_enum)]
    pub on_failure: Option<OnFailure>,
    /// How often a failure to start, a time-out or a rate limit is tried again
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Which of the tasks that could start does, after their priorities
    #[arg(long, value_enum)]
    pub order: Option<TypedOrder>,
    /// What it may use up
    #[command(flatten)]
    pub limits: Limits,
    /// Remove a limit
    #[arg(long, value_enum, value_name = "LIMIT", value_delimiter = ',')]
    pub unset: Vec<Unset>,
    /// About how many tokens an agent may be told
    #[arg(long, value_name = "N")]
    pub token_budget: Option<usize>,
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
    /// The tokens that it may use up
    BudgetTokens,
    /// What it may cost
    BudgetCost,
    /// How long its tasks may run
    BudgetTime,
    /// When it must have ended
    Deadline,
    /// Undoing what it did
    Compensate,
}

/// A limit as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// On the tasks of a kind.
    Kind(NodeKind, Option<usize>),
    /// On the tasks of an assignee.
    Executor(String, Option<usize>),
}

/// An order as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypedOrder {
    /// The first in the plan
    Place,
    /// The one on the critical path: what waits for it takes longest
    CriticalPath,
}

impl From<TypedOrder> for Order {
    fn from(typed: TypedOrder) -> Self {
        match typed {
            TypedOrder::Place => Self::Place,
            TypedOrder::CriticalPath => Self::CriticalPath,
        }
    }
}

/// Work with single tasks.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Add a task to a plan: without --plan to the standing plan of the project, which is made when it is not there
    Add(AddTask),
}

/// `task add`.
#[derive(Debug, Args)]
pub struct AddTask {
    /// Description of the task
    // A list begins with a dash.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// The plan's id, or the beginning of it
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

fn limit(typed: &str) -> Result<Limit, String> {
    let (name, n) = typed.split_once('=').ok_or("write KIND=N or @NAME=N")?;
    let n = match n {
        "" => None,
        n => Some(n.parse().map_err(|error| format!("{n:?}: {error}"))?),
    };
    match name.strip_prefix('@') {
        Some(name) => Ok(Limit::Executor(name.to_owned(), n)),
        None => Ok(Limit::Kind(kind(name)?, n)),
    }
}

/// A word for how urgent a task is; none takes the priority away.
fn urgency(typed: &str) -> Result<String, String> {
    match typed.is_empty() || priority::known_rank(typed).is_some() {
        true => Ok(typed.to_owned()),
        false => {
            let known = priority::words().collect::<Vec<_>>().join(", ");
            Err(format!("there is no such priority: {known}; an empty one takes it away"))
        }
    }
}

fn kind(typed: &str) -> Result<NodeKind, String> {
    let kinds = [
        NodeKind::Clarification,
        NodeKind::ToolCall,
        NodeKind::Processing,
        NodeKind::UnitTest,
        NodeKind::Retrieval,
        NodeKind::Analysis,
        NodeKind::Refactor,
        NodeKind::CodeImplementation,
    ];
    let known = kinds.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(typed));
    known.ok_or_else(|| format!("there is no such kind: {}", kinds.map(NodeKind::as_str).join(", ")))
}
