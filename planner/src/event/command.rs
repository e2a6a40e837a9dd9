//! The commands of the planner.

use crewlog_mq::{Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::event::{Amendment, PlannerConfig, QuestionId, Setting, TaskEvent, Timer};
use crate::plan::{Attachment, DefaultAnswer, Proposal, TaskId};

/// A command to the planner.
///
/// Its JSON omits the fields that its events repeat: [`Command::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum Command {
    /// Begin a plan: a text as it was read, or that of a model, an agent or another program.
    Initialize {
        #[serde(skip)]
        proposal: Box<Proposal>,
        /// In addition to those of the proposal.
        attachments: Vec<Attachment>,
        #[serde(skip)]
        config: PlannerConfig,
    },
    /// Turn the folded history of another plan into a new plan that continues it.
    Fork {
        #[serde(skip)]
        parent: String,
        /// The last position of the shared history.
        #[serde(skip)]
        at: Position,
        #[serde(skip)]
        reason: String,
        /// True if it begins paused, so that it can be changed before a task starts.
        #[serde(skip)]
        pauses: bool,
        /// Applied before any task starts.
        amendments: Vec<Amendment>,
    },
    /// Name this position of the plan's history.
    NameCheckpoint { name: String },
    /// React to the report of an executor or a person.
    HandleExecutorEvent { task: TaskId, event: TaskEvent },
    /// Continue from the current state.
    Continue,
    /// Set the timers that have no due time yet. `now` is log time.
    SetTimers { now: Timestamp },
    /// Fire a timer whose due time has passed.
    FireTimer { timer: Timer, due: Timestamp },
    /// Compact the context.
    CompactContext {
        /// Of the summary.
        max_tokens: usize,
    },
    /// Cancel a task, or the whole plan when unset.
    Cancel { task: Option<TaskId>, reason: String },
    /// Start no task until resumed.
    Pause { reason: String },
    /// Continue after a pause.
    Resume,
    /// Start no task while the parent plan is paused.
    PauseFromParent { reason: String },
    /// Continue if the last pause came from the parent plan.
    ResumeFromParent,
    /// Cancel the plan once because its task in the parent plan has ended.
    CancelFromParent { reason: String },
    /// Cancel the whole plan, and run the undo commands of its completed tasks.
    CancelAndUndo { reason: String },
    /// Answer a question.
    Answer {
        question: QuestionId,
        #[serde(skip)]
        answer: String,
    },
    /// Close a question without an answer.
    Withdraw { question: QuestionId, reason: String },
    /// Ask a question about a task that has not been started, or that already waits for an answer.
    Ask {
        task: TaskId,
        #[serde(skip)]
        question: String,
        #[serde(skip)]
        default: Option<DefaultAnswer>,
    },
    /// Answer a question, and ask another one about the same task.
    AnswerAndAsk {
        question: QuestionId,
        #[serde(skip)]
        answer: String,
        /// The new question.
        #[serde(skip)]
        further: String,
    },
    /// Retry now a task that waits for its retry delay.
    RetryNow { task: TaskId },
    /// Reopen an ended task and the tasks skipped because of it; if unset, all failed, timed-out and cancelled tasks.
    Retry { task: Option<TaskId> },
    /// Change the tasks of the plan, all amendments or none.
    Amend {
        /// Each applies to the plan as changed by those before it.
        amendments: Vec<Amendment>,
        reason: String,
    },
    /// Change the settings of the plan in this order, all or none.
    Configure { changes: Vec<Setting>, reason: String },
    /// Do not start or retry a task until it is resumed. A running task continues.
    PauseTask { task: TaskId, reason: String },
    /// Resume a paused task.
    ResumeTask { task: TaskId },
}
