//! The plan as data: tasks, kinds, attachments and dependencies, as a text or a model proposes them.
//!
//! The state of a task is in the planner's state, not here.

use serde::{Deserialize, Serialize};

use crate::protocol::{AgentRequest, AgentType};

/// The number of a task in its plan: 1, 2, 3 ... in the order of planning, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What sort of work a task is; executors subscribe by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum NodeKind {
    /// A question to a person, and its answer.
    Clarification,
    /// An external command or tool.
    ToolCall,
    /// Anything that no other kind fits.
    #[default]
    Processing,
    /// Writing or running tests.
    UnitTest,
    /// Finding or fetching something.
    Retrieval,
    /// Looking into something and judging it.
    Analysis,
    /// Changing the form of code and not what it does.
    Refactor,
    /// Writing code.
    CodeImplementation,
}

impl NodeKind {
    /// The name as written in events and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clarification => "Clarification",
            Self::ToolCall => "ToolCall",
            Self::Processing => "Processing",
            Self::UnitTest => "UnitTest",
            Self::Retrieval => "Retrieval",
            Self::Analysis => "Analysis",
            Self::Refactor => "Refactor",
            Self::CodeImplementation => "CodeImplementation",
        }
    }
}

/// Something that a task refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is, and where.
    #[serde(flatten)]
    pub kind: AttachmentKind,
    /// The text that named it (of a Markdown link), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The five sorts of attachment, each with its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "ref")]
pub enum AttachmentKind {
    /// A URL.
    Link(String),
    /// A path, URL or opaque id of an image.
    ImageRef(String),
    /// A path or opaque id of a file.
    FileRef(String),
    /// A reference into a vector store.
    EmbeddingRef(String),
    /// A picture made while testing an interface.
    ScreenshotRef(String),
}

/// A task's box as the text has it: `[ ]`, `[~]`, `[x]`, `[-]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Mark {
    /// Not begun, or no box at all.
    #[default]
    Open,
    /// Begun by somebody.
    InProgress,
    /// Done before the plan began.
    Done,
    /// Given up before the plan began.
    Cancelled,
    /// Put off: it does not start before a person says so.
    Deferred,
}

impl Mark {
    /// True for [`Mark::Open`], the mark of a task without a box.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// True for the marks of a task that has ended.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

/// Why one task waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strength {
    /// Written out, or given by data, a question or a barrier: it always holds.
    Hard,
    /// Only the order of the text; `--parallel` drops it.
    Soft,
}

/// An edge of the plan's graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dependency {
    /// The task to wait for.
    pub task: TaskId,
    /// How firmly.
    pub strength: Strength,
}

/// "if TEXT, ..." or, negated, the "otherwise" to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What is asked, without the "if".
    pub text: String,
    /// True for the branch taken when it does not hold.
    #[serde(default)]
    pub negated: bool,
    /// The task whose outcome decides it: it holds when that task completes. Without a command there, a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_of: Option<TaskId>,
    /// The first task with this condition. Tasks that share it share one question; the same words elsewhere are a separate
    /// condition. Unset: this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<TaskId>,
}

impl Condition {
    /// A condition that a person decides.
    #[must_use]
    pub fn asked(text: String, negated: bool) -> Self {
        Self { text, negated, outcome_of: None, first: None }
    }
}

/// Identifies a condition: the task that decides it, or else the first task that has it, and its text.
pub type ConditionKey = (TaskId, String);

impl TaskPlan {
    /// The key of its condition, if it has one.
    #[must_use]
    pub fn condition_key(&self) -> Option<ConditionKey> {
        let condition = self.condition.as_ref()?;
        let first = condition.outcome_of.or(condition.first);
        Some((first.unwrap_or(self.id), condition.text.clone()))
    }
}

/// What happens to the rest when a task has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// What depends on it is skipped, the rest goes on.
    #[default]
    SkipDependants,
    /// What depends on it runs all the same.
    Continue,
    /// Nothing more is started.
    Stop,
    /// A person decides.
    Ask,
}

impl FailurePolicy {
    /// The word for it in texts and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SkipDependants => "skip",
            Self::Continue => "continue",
            Self::Stop => "stop",
            Self::Ask => "ask",
        }
    }
}

/// An answer that counts when nobody has given one in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAnswer {
    /// The answer.
    pub answer: String,
    /// Milliseconds after the question was asked.
    pub after_ms: u64,
}

/// Where in the source text something stands: bytes `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The plan that carries a dispatch of a task out, when another plan does.
#[must_use]
pub fn sub_plan_id(parent: &ParentTask) -> String {
    format!("{}.{}-{}", parent.plan, parent.task, parent.attempt)
}

/// True when a plan carries a task out, itself or for a plan that does.
#[must_use]
pub fn is_within(plan: &str, parent_plan: &str, task: TaskId) -> bool {
    let rest = plan.strip_prefix(parent_plan).and_then(|rest| rest.strip_prefix(&format!(".{task}-")));
    rest.is_some_and(|rest| rest.split('.').next().is_some_and(|attempt| attempt.parse::<u32>().is_ok()))
}

/// What another plan is to do for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubPlan {
    /// The text that it is made of.
    pub text: String,
    /// The agent whose plan it is; anybody's when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The request that it answers, when another agent asks one. A late answer is recorded and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<AgentRequest>,
}

/// The task that a plan carries out for another plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentTask {
    /// The other plan.
    pub plan: String,
    /// Its task.
    pub task: TaskId,
    /// The dispatch that is answered.
    pub attempt: u32,
}

/// Where a plan came from that was not made of a text alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Origin {
    /// Who planned it, when no parser did: the request to a model, an agent type, the format of an import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_by: Option<String>,
    /// The task that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentTask>,
    /// The number of its ancestors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The agent whose plan it is, and the version of its form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentOrigin>,
}

/// Of an agent's plan: the agent and the version of its form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOrigin {
    /// The type of agent.
    pub agent: AgentType,
    /// The version of its form.
    pub version: u32,
    /// The tools that it could plan with.
    pub tools: Vec<String>,
}

/// The most times a task may be retried.
pub const RETRIES_MAX: u32 = 100;

/// The most ancestors of a plan.
pub const SUB_PLAN_DEPTH_MAX: u32 = 8;

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

impl Origin {
    /// True of a plan that a text alone was made into.
    #[must_use]
    pub fn is_text(&self) -> bool {
        *self == Self::default()
    }
}

/// A plan that was not made of a text by the parser. It is checked like one that was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// The tasks, numbered 1, 2, 3 ...
    pub tasks: Vec<TaskPlan>,
    /// What it is called.
    pub title: Option<String>,
    /// What it was made from, for people.
    pub source: String,
    /// What of that is no task.
    #[serde(default)]
    pub context: Vec<String>,
    /// Where it came from.
    #[serde(default)]
    pub origin: Origin,
}

/// One task as planned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskPlan {
    /// Its number.
    pub id: TaskId,
    /// The id that the text gives it (`T001`, `A`), by which people name it; unique in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The plain text of the step.
    pub description: String,
    /// What sort of work it is.
    pub kind: NodeKind,
    /// The box before it.
    #[serde(default, skip_serializing_if = "Mark::is_open")]
    pub mark: Mark,
    /// What it waits for; sorted by task, each task once, the graph acyclic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// In the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The shell command, as written, when the task is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When the task runs only if something holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// The item or heading above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// As written: `P1`, `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// As written, without the `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Constraints and remarks that belong to the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How many times it is tried again after a failure of its own, when the text says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// Milliseconds after which a run of it is stopped, when the text says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether neither its group nor a later step waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Its own failure policy, when the text says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,
    /// The paths and globs that it says it works on, as written, when the text says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether it changes none of its files, so that it is in no conflict with others that only read them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// Whether a run that was cut off may simply be run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun_safe: bool,
    /// Milliseconds after its first dispatch by which it must have ended, tries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How long it is expected to take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_ms: Option<u64>,
    /// The shell command that undoes what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensate: Option<String>,
    /// The task that it undoes, when it is there for that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensates: Option<TaskId>,
    /// Of a question: what counts when nobody answers in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_answer: Option<DefaultAnswer>,
    /// The tool of its agent's registry that it uses, when an agent planned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When another plan carries it out: what that one is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_plan: Option<SubPlan>,
    /// The parts of the source it was made from, in order, not overlapping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
}

impl TaskPlan {
    /// A task with nothing but a number, a kind and a text.
    #[must_use]
    #[inline]
    pub fn new(id: TaskId, kind: NodeKind, description: impl Into<String>) -> Self {
        Self { id, kind, description: description.into(), ..Self::default() }
    }

    /// True when a sub-plan carries it out, or answers it.
    #[must_use]
    pub fn is_delegated(&self) -> bool {
        self.sub_plan.is_some()
    }

    /// The request to another agent that a sub-plan answers for it.
    #[must_use]
    pub fn request(&self) -> Option<&AgentRequest> {
        self.sub_plan.as_ref()?.request.as_ref()
    }

    /// What people call it: its label, else its number.
    #[must_use]
    pub fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.id.to_string())
    }
}
