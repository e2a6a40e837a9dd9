//! The JSON of the views of the crew and of lists, as `docs/json.md` describes it.

use std::collections::BTreeMap;

use crewlog_mq::Position;
use crewlog_planner::crew::statistics::Figures;
use crewlog_planner::lifecycle::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::ui::text::visible;

/// The JSON name of a value as a word.
pub fn name_of_value(value: &Value) -> String {
    visible(value.as_str().unwrap_or_default())
}

/// A list as of a position.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Listed<T> {
    #[schema(value_type = i64)]
    pub at: Position,
    pub items: Vec<T>,
}

/// A plan of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ListedPlan {
    pub plan: String,
    /// The text's first heading, or its first task.
    pub title: String,
    #[schema(value_type = String)]
    pub status: State,
    pub created_at: String,
    /// For a fork: its parent, the position and the reason.
    #[schema(value_type = Option<Object>)]
    pub parent: Option<crewlog_planner::plan::Parent>,
    /// True if its budget keeps tasks from starting.
    pub is_held_by_budget: bool,
    /// True for a standing plan with nothing left to do.
    pub waits_for_work: bool,
}

/// An agent of the project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentView {
    pub agent: String,
    /// `alive`, `stuck`, `lost` or `left`.
    #[schema(value_type = String)]
    pub liveness: Value,
    /// Its activity, as it reported in its turn, or else as its program shows it.
    #[schema(value_type = String)]
    pub activity: Value,
    /// The last tool of its turn, with its file or the first words of its command.
    pub doing: Option<String>,
    /// `healthy`, `slow`, `context`, `stalled`, `limited` or `error`.
    #[schema(value_type = String)]
    pub health: Value,
    /// The reason of its health.
    pub reason: Option<String>,
    /// The end of a rate limit.
    pub limited_until: Option<String>,
    pub program: String,
    pub model: Option<String>,
    pub capabilities: Vec<String>,
    /// The paths and patterns that it intends to change.
    pub focus: Vec<String>,
    pub worktree: String,
    pub session: String,
    pub epoch: u64,
    /// The time when this session joined.
    pub since: String,
    /// The time when it was last seen, to the minute.
    pub seen: String,
    pub task: Option<String>,
    pub step: Option<String>,
    pub note: Option<String>,
    /// The used part of its context, in percent.
    pub context_usage: Option<u8>,
    /// The tokens in its context.
    pub tokens: Option<u64>,
    /// The cost of its session, in US dollars.
    pub cost_usd: Option<f64>,
    /// The used part of the rate limits of its account, in percent, by their windows.
    pub limits: BTreeMap<String, u8>,
}

/// A worker that lives or holds tasks; at a past position one that had run tasks of open plans.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct WorkerView {
    /// Its machine.
    pub host: String,
    /// The name of its process.
    pub worker: String,
    /// The time of its last sign: that of each minute, a claim or an end.
    pub heard: String,
    /// The tasks that it holds, each with its executor.
    pub runs: Vec<String>,
}

/// A lease on a file or a pattern, or a request that waits for one.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LeaseView {
    /// Its number; null for a waiting request.
    pub lease: Option<u64>,
    /// The number of the waiting request.
    pub waiting: Option<u64>,
    pub agent: String,
    pub worktree: String,
    pub path: String,
    pub is_pattern: bool,
    pub is_exclusive: bool,
    pub reason: String,
    pub task: Option<String>,
    /// The position that fences its holder's writes.
    #[schema(value_type = Option<i64>)]
    pub token: Option<Position>,
    /// The time of the grant; null while it waits.
    pub since: Option<String>,
    /// The call that asked for it: `edit`, `task` or `reserve`.
    pub call: &'static str,
    /// The task and the step that its agent reports now.
    pub doing: Option<String>,
    pub until: String,
}

/// An item that waits for a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NeedView {
    /// `permission`, `question`, `failure`, `step`, `parked`, `stopped`, `interrupted`, `ready`, `paused`, `conflict`,
    /// `health` or `overdue`.
    #[schema(value_type = String)]
    pub kind: crewlog_executors::crew::Kind,
    pub id: String,
    /// The agent or the plan that waits.
    pub from: String,
    pub text: String,
    /// Suggested answers.
    pub choices: Vec<String>,
    /// The answer that counts if nobody answers.
    pub default: Option<String>,
    /// The time when it does.
    pub due: Option<String>,
    pub since: Option<String>,
    pub age_ms: Option<u64>,
    /// The tasks that it blocks, at most 20.
    pub holds_up: Vec<String>,
    /// The orders that settle it, the first of them alone, as for `POST /api/commands/ACTION`. `...` stands for the
    /// person's own words.
    #[schema(value_type = Vec<Object>)]
    pub actions: Vec<Value>,
    /// The actions as command lines.
    pub commands: Vec<String>,
}

/// A message to an agent.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessageView {
    #[schema(value_type = i64)]
    pub message: Position,
    pub from: String,
    pub is_from_person: bool,
    #[schema(value_type = Vec<String>)]
    pub to: std::collections::BTreeSet<String>,
    pub subject: String,
    pub body: String,
    #[schema(value_type = Option<i64>)]
    pub thread: Option<Position>,
    #[schema(value_type = String)]
    pub importance: Value,
    pub sent_at: String,
    /// How far it has come to the agent: sent, offered by a hook, woken for it, or read.
    #[schema(value_type = String)]
    pub receipt: Value,
    pub ack_is_due: bool,
}

/// Tasks held at the same time that touch the same files.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConflictView {
    pub project: String,
    pub conflict: u64,
    /// The position of its detection.
    #[schema(value_type = i64)]
    pub position: Position,
    pub since: String,
    pub pattern: String,
    pub holders: Vec<ConflictHolder>,
    pub n_holders: u64,
    /// Null while it is open.
    pub resolved: Option<Resolved>,
}

/// A task that takes part in a conflict; the newcomer comes first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConflictHolder {
    pub plan: String,
    pub task: String,
    pub executor: String,
    pub patterns: Vec<String>,
}

/// The end of a conflict.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Resolved {
    #[schema(value_type = i64)]
    pub position: Position,
    pub since: String,
    pub plan: String,
    pub task: String,
    #[schema(value_type = String)]
    pub resolution: Value,
}

/// The statistics of a project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ProjectFigures {
    pub project: String,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub figures: Figures,
}

/// An edit that was refused, or a file that was changed without a lease.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EditView {
    /// `EditRefused` or `UnleasedEdit`.
    pub event: String,
    pub path: String,
    pub agent: Option<String>,
    /// The violated lease.
    pub lease: Option<u64>,
    #[schema(value_type = i64)]
    pub position: Position,
    pub at: String,
}

/// A lease on a file or a commit of it, in the past.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PastView {
    /// `LeasesGranted` or `FilesCommitted`.
    pub event: &'static str,
    pub agent: Option<String>,
    pub task: Option<String>,
    pub lease: Option<u64>,
    pub commit: Option<String>,
    pub reason: String,
    #[schema(value_type = i64)]
    pub position: Position,
    pub at: String,
    /// When the lease ended; null while it is live, and for a commit.
    pub until: Option<String>,
}

/// Agents by directory.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FilesView {
    #[schema(value_type = i64)]
    pub at: Position,
    /// The columns.
    pub agents: Vec<String>,
    pub rows: Vec<FilesRow>,
    /// The last refused edits and changes without a lease, newest first.
    pub edits: Vec<EditView>,
    /// The number of omitted directories and agents.
    pub n_more: usize,
}

/// A directory, with a cell for each agent, in the order of the columns.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FilesRow {
    pub directory: String,
    pub cells: Vec<FilesCell>,
}

/// An agent's work in a directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct FilesCell {
    /// The paths that it leases.
    pub holds: Vec<String>,
    /// The paths that it means to touch: those of its tasks and of its waiting requests.
    pub means: Vec<String>,
    /// The paths that it touched without a lease.
    pub touched: Vec<String>,
}

/// A marked moment on the time line.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Mark {
    #[schema(value_type = i64)]
    pub position: Position,
    /// `failure`, `conflict`, `question` or `checkpoint`.
    pub kind: &'static str,
    pub text: String,
    pub at: String,
}

/// The number of tasks in each state as of a position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CountsAt {
    #[schema(value_type = i64)]
    pub position: Position,
    /// In the order of `stages`.
    #[schema(value_type = Vec<u32>)]
    pub counts: [u32; super::N_STATES],
}

/// The counts of a plan over the log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CountsView {
    #[schema(value_type = i64)]
    pub at: Position,
    #[schema(value_type = Vec<String>)]
    pub stages: Vec<State>,
    /// Evenly spaced over the log.
    pub counts: Vec<CountsAt>,
}

/// Facts about an agent, a task or a file; or the reason why a plan is not running.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WhyView {
    #[schema(value_type = i64)]
    pub at: Position,
    /// One sentence.
    pub why: String,
}
