//! What the planner is asked.

use crewlog_mq::{Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::event::{Amendment, ExecutorEvent, PlannerConfig, QuestionId, Setting, Timer};
use crate::plan::{Attachment, DefaultAnswer, Proposal, TaskId};

/// What the planner is asked.
///
/// Its JSON lacks what its events repeat: [`Command::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Command {
    /// Plan a text.
    Initialize {
        /// The text.
        #[serde(skip)]
        user_input: String,
        /// What comes with it.
        attachments: Vec<Attachment>,
        /// The settings.
        #[serde(skip)]
        config: PlannerConfig,
        /// Whether the mere order of the text binds.
        parallel: bool,
    },
    /// Take up a plan that no parser made: that of a model, of an agent, of another program.
    Propose {
        /// The plan.
        #[serde(skip)]
        proposal: Box<Proposal>,
        /// What comes with it.
        attachments: Vec<Attachment>,
        /// The settings.
        #[serde(skip)]
        config: PlannerConfig,
    },
    /// Go on, as a plan of its own, from a point of another plan's history, which has been folded before.
    Fork {
        /// The other plan.
        #[serde(skip)]
        parent: String,
        /// The last position of the history that they share.
        #[serde(skip)]
        at: Position,
        /// Why.
        #[serde(skip)]
        reason: String,
        /// All of its settings; those of the other plan when unset.
        #[serde(skip)]
        config: Option<Box<PlannerConfig>>,
        /// Changes to its tasks, applied before any of them starts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        amendments: Vec<Amendment>,
    },
    /// Give this point of the plan's history a name.
    NameCheckpoint {
        /// The name.
        name: String,
    },
    /// Take in what an executor or a person reported.
    HandleExecutorEvent(ExecutorEvent),
    /// Go on from the present state.
    Continue,
    /// Set the timers that have no due time yet.
    SetTimers {
        /// Log time.
        now: Timestamp,
    },
    /// Fire a timer whose due time has passed.
    FireTimer {
        /// The timer.
        timer: Timer,
        /// Its due time, in log time.
        due: Timestamp,
    },
    /// Compact the context to at most so many tokens.
    CompactContext {
        /// The most tokens of the summary.
        max_tokens: usize,
    },
    /// Take up a summary that was wanted by `CompactionRequested`; one that is no longer wanted changes nothing.
    Summarise {
        /// What is to stand for what has happened.
        #[serde(skip)]
        summary: String,
        /// The tasks for which it was made.
        task_ids: Vec<TaskId>,
    },
    /// End a task, or the whole plan.
    Cancel {
        /// The task; the plan when unset.
        task: Option<TaskId>,
        /// Why.
        reason: String,
    },
    /// Start nothing more until resumed.
    Pause {
        /// Why.
        reason: String,
    },
    /// Go on after a pause.
    Resume,
    /// Start nothing more while the plan is paused whose task this one carries out.
    PauseFromParent {
        /// Why.
        reason: String,
    },
    /// Go on if the last pause came from the parent plan.
    ResumeFromParent,
    /// End the whole plan because the task that it carries out has ended; once.
    CancelFromParent {
        /// Why.
        reason: String,
    },
    /// End the whole plan, and undo what it did as far as its tasks say how.
    CancelAndUndo {
        /// Why.
        reason: String,
    },
    /// Answer a question.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        #[serde(skip)]
        answer: String,
    },
    /// Ask a question no longer.
    Withdraw {
        /// The question.
        question: QuestionId,
        /// Why.
        reason: String,
    },
    /// Ask something of a task that has not been started, or that waits for an answer already.
    Ask {
        /// The task.
        task: TaskId,
        /// What.
        #[serde(skip)]
        question: String,
        /// What counts when nobody answers in time.
        #[serde(skip)]
        default: Option<DefaultAnswer>,
    },
    /// Answer a question, and ask another one of the same task.
    AnswerAndAsk {
        /// The question.
        question: QuestionId,
        /// The answer.
        #[serde(skip)]
        answer: String,
        /// The other question.
        #[serde(skip)]
        further: String,
    },
    /// Try a task again at once that waits for the delay of its retry.
    RetryNow {
        /// The task.
        task: TaskId,
    },
    /// Open an ended task again, with what was skipped because of it.
    Retry {
        /// The task; all that failed, timed out or were cancelled when unset.
        task: Option<TaskId>,
    },
    /// Change the tasks of the plan, all as said or nothing.
    Amend {
        /// In order; each is said of the plan as those before it leave it.
        amendments: Vec<Amendment>,
        /// Why.
        reason: String,
    },
    /// Change the settings of the plan, all as said or nothing.
    Configure {
        /// In order.
        changes: Vec<Setting>,
        /// Why.
        reason: String,
    },
    /// Do not start a task, nor try it again, until it is resumed. If it runs, it goes on.
    PauseTask {
        /// The task.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// Let a paused task be started again.
    ResumeTask {
        /// The task.
        task: TaskId,
    },
}
