//! The events of a task's own aggregate: its claims, and the reports of executors and people.

use crewlog_mq::{Event as MqEvent, Timestamp};
use serde::{Deserialize, Serialize};

use crate::event::{FailureClass, Usage};
use crate::is_default;
use crate::plan::DefaultAnswer;

/// The executor that holds a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Executor {
    /// Its kind: `shell`, `human`.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Its worker process, which is proven dead by its lock file.
    pub worker: String,
}

impl std::fmt::Display for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.host)
    }
}

/// Details of a finished command.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDetails {
    /// Unset when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if any.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The bytes of its output, including those that were dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_bytes: u64,
    /// True if the middle of its output was dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_is_cut: bool,
    /// The file that keeps more of it, unless it printed nothing.
    pub output: Option<Box<OutputFile>>,
}

/// The file with the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// The machine that has it.
    pub host: String,
    /// The bytes that it keeps.
    pub n_bytes: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Identifies the prompt that an agent got, for comparison with one that is rendered again.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDigest {
    /// The SHA-256 of its UTF-8 bytes, in hexadecimal.
    pub sha256: String,
    /// Its length in characters.
    pub n_chars: u64,
    /// The events of the plan's history that it was rendered from.
    pub n_events: u64,
    /// Its last section, if an earlier run was cut short.
    pub cut_short: Option<String>,
}

/// A progress report of an agent. A successor continues at its `next_step`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskProgress {
    /// The current step.
    pub step: Option<String>,
    /// The next step, for a successor.
    pub next_step: Option<String>,
    /// Anything else.
    pub note: Option<String>,
    /// The id of the program's session, by which a later run continues it.
    pub session: Option<String>,
}

/// A report of an executor that had lost its task by then.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LateReport {
    /// The dispatch.
    pub attempt: u32,
    /// Its claim.
    pub epoch: u64,
    /// The executor.
    pub executor: Executor,
    /// How it ended.
    pub outcome: LateOutcome,
    /// The result, the error or the question.
    pub text: String,
}

/// How a run ended whose report came too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "they are the words")]
pub enum LateOutcome {
    Completed,
    #[default]
    Failed,
    Asked,
}

/// An event of a task. `epoch` is that of the holder, and `attempt` the dispatch that it carries out.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum TaskEvent {
    /// An executor holds it, and starts: from here on it may have had effects.
    TaskClaimed {
        attempt: u32,
        executor: Executor,
        /// In log time; unset for a coding agent, whose claim lasts as long as the agent is present.
        lease_until: Option<Timestamp>,
        /// Rises with every claim.
        epoch: u64,
        /// True if an earlier holder of this attempt started and reported no end: it may have had effects.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
        /// True if nothing starts: it only reports an end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_reports: bool,
        /// The prompt of an agent.
        prompt: Option<PromptDigest>,
    },
    /// The holder reported its progress.
    TaskProgressed { epoch: u64, progress: TaskProgress },
    /// A person let a parked task be claimed again.
    TaskUnparked { by: String },
    /// The holder gave it back unfinished.
    TaskReleased {
        epoch: u64,
        reason: String,
        /// True if it was running, and may have had effects.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    /// The holder stopped at the plan's request.
    TaskStopped { epoch: u64, reason: String },
    /// The task is done.
    TaskCompleted { attempt: u32, epoch: u64, result: String, run: Option<RunDetails> },
    /// The task could not be done.
    TaskFailed { attempt: u32, epoch: u64, error: String, class: FailureClass, run: Option<RunDetails> },
    /// The holder's usage; it comes right before the end.
    UsageReported { attempt: u32, epoch: u64, usage: Usage },
    /// The holder needs an answer.
    NeedsClarification { attempt: u32, epoch: u64, question: String, default: Option<DefaultAnswer> },
    /// The plan stopped before this dispatch started, and withdrew it.
    TaskWithdrawn { attempt: u32 },
    /// A worker saw it dispatched to an executor, or claimed by one, in a part of the log that is lost: it may have had effects.
    TaskInterrupted { attempt: u32, epoch: u64, executor: Executor },
    /// An executor that had lost the task reported its end.
    TaskReportedLate(LateReport),
    /// The lease ended when it was due, or earlier because its holder is dead.
    TimerFired { epoch: u64, due: Timestamp },
}

impl TaskEvent {
    /// True if the event leaves the task without a holder.
    pub fn ends_hold(&self) -> bool {
        matches!(
            self,
            Self::TaskReleased { .. }
                | Self::TaskStopped { .. }
                | Self::TaskCompleted { .. }
                | Self::TaskFailed { .. }
                | Self::NeedsClarification { .. }
                | Self::TaskWithdrawn { .. }
                | Self::TaskInterrupted { .. }
                | Self::TimerFired { .. }
        )
    }

    /// True for a report that concerns the planner.
    pub fn is_report(&self) -> bool {
        matches!(
            self,
            Self::TaskCompleted { .. }
                | Self::TaskFailed { .. }
                | Self::UsageReported { .. }
                | Self::NeedsClarification { .. }
                | Self::TaskWithdrawn { .. }
        )
    }
}

impl MqEvent for TaskEvent {}
