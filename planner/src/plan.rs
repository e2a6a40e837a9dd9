//! The plan as data: tasks, kinds, attachments and dependencies, from a text or a model.
//!
//! The state of a task is in the planner's state, not here.

use crewlog_mq::Position;
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::protocol::{AgentRequest, AgentType};
use crate::text::length_ms;

/// The number of a task in its plan: 1, 2, 3 ... in the order of planning, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The plan from which a fork was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Its id.
    pub plan: String,
    /// The last position that both share.
    pub at: Position,
    /// The reason for the fork.
    pub reason: String,
}

/// The kind of work of a task; executors select tasks by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
pub enum NodeKind {
    /// A question to a person, and its answer.
    Clarification,
    /// An external command or tool.
    ToolCall,
    /// Anything else.
    #[default]
    Processing,
    /// Writing or running tests.
    UnitTest,
    /// Finding or fetching something.
    Retrieval,
    /// Examining and judging something.
    Analysis,
    /// Restructuring code without changing its behaviour.
    Refactor,
    /// Writing code.
    CodeImplementation,
}

impl NodeKind {
    /// All kinds.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name as written in events and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A reference in a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its kind and the reference itself.
    #[serde(flatten)]
    pub kind: AttachmentKind,
    /// The text of a Markdown link, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The kinds of attachment, each with its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "ref")]
pub enum AttachmentKind {
    /// A URL.
    Link(String),
    /// A path, URL or opaque id of an image.
    ImageRef(String),
    /// A path or opaque id of a file.
    FileRef(String),
}

impl AttachmentKind {
    /// The kind in a word, and the reference.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Link(reference) => ("link", reference),
            Self::ImageRef(reference) => ("image", reference),
            Self::FileRef(reference) => ("file", reference),
        }
    }

    /// The path of a file or a picture.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::FileRef(path) | Self::ImageRef(path) => Some(path),
            Self::Link(_) => None,
        }
    }
}

/// The box of a task in the text: `[ ]`, `[~]`, `[x]`, `[-]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Mark {
    /// Not begun, or without a box.
    #[default]
    Open,
    /// Already begun.
    InProgress,
    /// Done before the plan began.
    Done,
    /// Given up before the plan began.
    Cancelled,
    /// Postponed: a person has to start it.
    Deferred,
}

impl Mark {
    /// True for [`Mark::Open`], the mark of a task without a box.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// True for the marks of an ended task.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

/// The reason for a dependency.
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
    /// Decides whether it holds under `--parallel`.
    pub strength: Strength,
}

/// "if TEXT, ..." or, negated, its "otherwise".
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Without the "if".
    pub text: String,
    /// True for the branch taken when it does not hold.
    pub negated: bool,
    /// The tasks that decide it: the condition holds if all of them complete, and not if all fail. Otherwise, and if one has no
    /// command, a person is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcome_of: Vec<TaskId>,
    /// True if tasks without a command decide it, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_any_work: bool,
    /// The first task with this condition, whose question all of them share; this task when unset.
    pub first: Option<TaskId>,
}

impl Condition {
    /// A condition that a person decides.
    pub fn asked(text: String, negated: bool) -> Self {
        Self { text, negated, outcome_of: Vec::new(), by_any_work: false, first: None }
    }

    /// The words for the success of steps.
    pub fn outcome_text(names: &[String]) -> String {
        match names {
            [one] => format!("step {one} succeeds"),
            several => format!("all of the steps {} succeed", several.join(", ")),
        }
    }

    /// Makes it refer to other tasks. A text that has their numbers gets their new names.
    pub fn refer(&mut self, to: impl Fn(TaskId) -> Option<TaskId>, name: impl Fn(TaskId) -> String) {
        let numbers = self.outcome_of.iter().map(TaskId::to_string).collect::<Vec<_>>();
        let is_numbered = self.text == Self::outcome_text(&numbers);
        self.first = self.first.and_then(&to);
        self.outcome_of = self.outcome_of.iter().filter_map(|id| to(*id)).collect();
        if is_numbered && !self.outcome_of.is_empty() {
            self.text = Self::outcome_text(&self.outcome_of.iter().map(|id| name(*id)).collect::<Vec<_>>());
        }
    }

    /// The condition in words.
    pub fn words(&self) -> String {
        if self.negated { format!("not: {}", self.text) } else { self.text.clone() }
    }
}

/// Identifies a condition: the task that decides it, or else the first task that has it, and its text.
pub type ConditionKey = (TaskId, String);

impl TaskPlan {
    /// The key of its condition, if it has one.
    pub fn condition_key(&self) -> Option<ConditionKey> {
        let condition = self.condition.as_ref()?;
        let first = condition.outcome_of.first().copied().or(condition.first);
        Some((first.unwrap_or(self.id), condition.text.clone()))
    }
}

/// The consequence of a task's final failure for the rest of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum FailurePolicy {
    /// Its dependents are skipped, and the rest continues.
    #[default]
    #[strum(serialize = "skip")]
    SkipDependants,
    /// Its dependents run.
    Continue,
    /// No more tasks are started.
    Stop,
    /// A person decides.
    Ask,
}

/// An answer that takes effect if there is no other in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAnswer {
    /// The answer.
    pub answer: String,
    /// Milliseconds after the question was asked.
    pub after_ms: u64,
}

impl DefaultAnswer {
    /// Reads `yes after 1h`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (answer, after) = text.rsplit_once(" after ")?;
        let answer = answer.trim().trim_matches('"');
        let after_ms = length_ms(after).filter(|_| !answer.is_empty())?;
        Some(Self { answer: answer.to_owned(), after_ms })
    }
}

/// The bytes `start..end` of the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The byte range of a part of a text.
    pub(crate) fn of(text: &str, part: &str) -> Self {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        Self { start, end: start + part.len() }
    }
}

/// The id of the sub-plan that carries out a dispatch of a task.
pub fn sub_plan_id(parent: &ParentTask) -> String {
    format!("{}.{}-{}", parent.plan, parent.task, parent.attempt)
}

/// True when a plan is a sub-plan of a task, or below such a sub-plan.
pub fn is_within(plan: &str, parent_plan: &str, task: TaskId) -> bool {
    let rest = plan.strip_prefix(parent_plan).and_then(|rest| rest.strip_prefix(&format!(".{task}-")));
    rest.is_some_and(|rest| rest.split('.').next().is_some_and(|attempt| attempt.parse::<u32>().is_ok()))
}

/// The input of a sub-plan.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubPlan {
    /// The text to plan.
    pub text: String,
    /// The agent that plans it; any when unset.
    pub agent: Option<String>,
    /// The request of another agent that it answers. A late answer is recorded and changes nothing.
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

/// The origin of a plan; empty if it was parsed from a text.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The author, if not the parser: the request to a model, an agent type, the format of an import.
    pub planned_by: Option<String>,
    /// The task that it carries out.
    pub parent: Option<ParentTask>,
    /// The number of its ancestors.
    pub depth: u32,
    /// The agent that planned it.
    pub agent: Option<AgentOrigin>,
}

/// The agent that made a plan, and the version of its form.
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

impl Origin {
    /// True for a plan that was parsed from a text.
    pub fn is_text(&self) -> bool {
        *self == Self::default()
    }
}

/// A plan that the parser did not make. It is checked like a parsed one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// The tasks, numbered 1, 2, 3 ...
    pub tasks: Vec<TaskPlan>,
    /// Its title.
    pub title: Option<String>,
    /// The text it was made from, for people.
    pub source: String,
    /// The parts of the source that are not tasks.
    pub context: Vec<String>,
    /// Its origin.
    pub origin: Origin,
}

/// One task as planned.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskPlan {
    /// Its number.
    #[serde_with(skip_apply)]
    pub id: TaskId,
    /// The id that the text gives it (`T001`, `A`), by which people name it; unique in the plan.
    pub label: Option<String>,
    /// The plain text of the step.
    #[serde_with(skip_apply)]
    pub description: String,
    /// Executors select tasks by it.
    #[serde_with(skip_apply)]
    pub kind: NodeKind,
    /// The box before it.
    pub mark: Mark,
    /// Sorted by task, each task once, the graph acyclic.
    pub depends_on: Vec<Dependency>,
    /// In the order of the text.
    pub attachments: Vec<Attachment>,
    /// The shell command, as written.
    pub command: Option<String>,
    /// The task runs only if it holds.
    pub condition: Option<Condition>,
    /// The item or heading above it.
    pub group: Option<String>,
    /// As written: `P1`, `high`.
    pub priority: Option<String>,
    /// As written, without the `@`.
    pub assignee: Option<String>,
    /// Constraints and remarks.
    pub notes: Vec<String>,
    /// The most retries after a failure of its own.
    pub retry: Option<u32>,
    /// The time limit of one attempt, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The most that all its attempts may cost, in millionths of its program's unit.
    pub budget_micros: Option<u64>,
    /// True if neither its group nor a later step waits for it.
    pub optional: bool,
    /// Overrides the plan's policy.
    pub on_failure: Option<FailurePolicy>,
    /// The paths and globs that it works on, as written.
    pub files: Vec<String>,
    /// True if it only reads its files, so that it does not conflict with other readers.
    pub reads_only: bool,
    /// True if an interrupted attempt may be repeated.
    pub rerun_safe: bool,
    /// Milliseconds from its first dispatch to its end, retries included.
    pub deadline_ms: Option<u64>,
    /// The expected duration, in milliseconds.
    pub estimate_ms: Option<u64>,
    /// The shell command that undoes it.
    pub compensate: Option<String>,
    /// The task that it undoes, if that is its only purpose.
    pub compensates: Option<TaskId>,
    /// The default answer of a question.
    pub default_answer: Option<DefaultAnswer>,
    /// The tool of its agent's registry that it uses, when an agent planned it.
    pub tool: Option<String>,
    /// The input of the sub-plan that carries it out.
    pub sub_plan: Option<SubPlan>,
    /// The parts of the source it was made from, in order, not overlapping.
    pub spans: Vec<Span>,
}

impl TaskPlan {
    /// A task with only a number, a kind and a text.
    #[inline]
    pub fn new(id: TaskId, kind: NodeKind, description: impl Into<String>) -> Self {
        Self { id, kind, description: description.into(), ..Self::default() }
    }

    /// True when a sub-plan carries it out.
    pub fn is_delegated(&self) -> bool {
        self.sub_plan.is_some()
    }

    /// The request to another agent that a sub-plan answers for it.
    pub fn request(&self) -> Option<&AgentRequest> {
        self.sub_plan.as_ref()?.request.as_ref()
    }

    /// Its label, else its number.
    pub fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.id.to_string())
    }
}
