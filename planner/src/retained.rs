//! Commands as they are kept with the events that they led to, so that a log can be decided again.
//!
//! A kept command lies in `extra.command` of the first event of its append. What stands in those events anyway is not
//! kept twice, so it takes both to restore a command. Nothing here decides or reads anything.

use crewlog_mq::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::AgentProposal;
use crate::agents::registry::ToolRegistry;
use crate::claim::{Ending, Executor, TaskCommand, TaskEvent};
use crate::event::{Amendment, Command, Event, ExecutorEvent, FailureClass, QuestionId, Setting, Usage};
use crate::plan::{Attachment, Origin, Proposal, TaskId};
use crate::protocol::AgentType;

/// The longest reason that is kept, in bytes; a longer one stands in the event alone.
pub const KEPT_REASON_BYTES_MAX: usize = 16 << 10;
/// The longest amendments that are kept as they were said, in bytes; of longer ones stands in the events what they made
/// of the tasks.
pub const KEPT_AMENDMENTS_BYTES_MAX: usize = 64 << 10;

/// Why a kept command cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// What is kept is no command, or one of another version.
    #[error("the kept command has a form that is not known: {0}")]
    Form(#[from] serde_json::Error),
    /// The events are not those that the command led to.
    #[error("the events beside the kept command {command} do not say the rest of it")]
    NotInEvents {
        /// Its name.
        command: &'static str,
    },
}

/// A command to the planner, without what its events say.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum Kept {
    Initialize {
        attachments: Vec<Attachment>,
        parallel: bool,
    },
    Propose {
        attachments: Vec<Attachment>,
    },
    Fork {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amended: Option<KeptAmendments>,
    },
    NameCheckpoint {},
    ProposeAgentPlan {
        agent: AgentType,
        registry: ToolRegistry,
        attachments: Vec<Attachment>,
    },
    HandleExecutorEvent(KeptReport),
    Continue {},
    Tick {
        now: Timestamp,
    },
    CompactContext {
        max_tokens: usize,
    },
    Summarise {
        task_ids: Vec<TaskId>,
    },
    Cancel {
        task: Option<TaskId>,
        reason: Option<String>,
    },
    Pause {
        reason: Option<String>,
    },
    Resume {},
    PauseFromAbove {
        reason: Option<String>,
    },
    ResumeFromAbove {},
    Undo {
        reason: Option<String>,
    },
    Retry {
        task: Option<TaskId>,
    },
    RetryNow {
        task: TaskId,
    },
    CancelAndUndo {
        reason: Option<String>,
    },
    Withdraw {
        question: QuestionId,
        reason: Option<String>,
    },
    Ask {
        task: TaskId,
    },
    AnswerAndAsk {
        question: QuestionId,
    },
    Amend {
        amended: KeptAmendments,
        reason: Option<String>,
    },
    Configure {
        changes: Vec<Setting>,
        reason: Option<String>,
    },
    PauseTask {
        task: TaskId,
        reason: Option<String>,
    },
    ResumeTask {
        task: TaskId,
    },
}

/// What a fork is to have otherwise.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptAmendments {
    amendments: Option<Vec<Amendment>>,
    skipped: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    done: Vec<TaskId>,
}

impl KeptAmendments {
    fn of(amendments: &[Amendment]) -> Self {
        let (mut skipped, mut done) = (Vec::new(), Vec::new());
        for amendment in amendments {
            match amendment {
                Amendment::Skip { task, .. } => skipped.push(*task),
                Amendment::Done { task } => done.push(*task),
                Amendment::Add { .. }
                | Amendment::Edit { .. }
                | Amendment::Reorder { .. }
                | Amendment::Source { .. }
                | Amendment::Define { .. } => {}
            }
        }
        Self { amendments: keep_amendments(amendments), skipped, done }
    }

    /// Long amendments come back as what they made of the tasks; it decides the same.
    fn restored(self, amended: Option<&Event>) -> Vec<Amendment> {
        let Self { amendments, skipped, done } = self;
        amendments.unwrap_or_else(|| {
            let (defined, source) = match amended {
                Some(Event::TasksAmended { tasks, source, .. }) => {
                    (Some(Amendment::Define { tasks: tasks.clone() }), source.clone())
                }
                Some(_) | None => (None, None),
            };
            // What was handed on by them is in the definitions.
            let skipped = skipped.into_iter().map(|task| Amendment::Skip { task, keeps_order: false });
            let done = done.into_iter().map(|task| Amendment::Done { task });
            let source = source.map(|text| Amendment::Source { text });
            defined.into_iter().chain(done).chain(skipped).chain(source).collect()
        })
    }
}

/// A report, without what the planner's events say of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum KeptReport {
    TaskCompleted {
        node_id: TaskId,
        attempt: u32,
    },
    TaskFailed {
        node_id: TaskId,
        attempt: u32,
        class: FailureClass,
    },
    UsageReported {
        node_id: TaskId,
        attempt: u32,
        /// Tokens told and written as they were estimated, before they were corrected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        estimated: Option<(u64, u64)>,
    },
    NeedsClarification {
        node_id: TaskId,
        attempt: u32,
    },
    ClarificationProvided {
        node_id: TaskId,
        question_id: QuestionId,
    },
}

/// A command to a task, without what its events say.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum KeptOfTask {
    Claim {
        attempt: u32,
        executor: Executor,
        now: Timestamp,
        dead_epoch: Option<u64>,
    },
    Start {
        epoch: u64,
    },
    Renew {
        epoch: u64,
        now: Timestamp,
    },
    End {
        epoch: u64,
    },
    Report {
        attempt: u32,
        executor: Executor,
        now: Timestamp,
        #[serde(default)]
        dead_epoch: Option<u64>,
    },
    Answer {
        question_id: QuestionId,
    },
}

impl Command {
    /// What has to be kept of it, for [`crewlog_mq::Cause::keeping`].
    #[must_use]
    pub fn retained(&self) -> Value {
        encode(&match self {
            Self::Initialize { attachments, parallel, .. } => {
                Kept::Initialize { attachments: attachments.clone(), parallel: *parallel }
            }
            Self::Propose { attachments, .. } => Kept::Propose { attachments: attachments.clone() },
            Self::Fork { amendments, .. } => {
                Kept::Fork { amended: (!amendments.is_empty()).then(|| KeptAmendments::of(amendments)) }
            }
            Self::NameCheckpoint { .. } => Kept::NameCheckpoint {},
            Self::ProposeAgentPlan { proposal, attachments, .. } => Kept::ProposeAgentPlan {
                agent: proposal.agent,
                registry: proposal.registry.clone(),
                attachments: attachments.clone(),
            },
            Self::HandleExecutorEvent(report) => Kept::HandleExecutorEvent(KeptReport::of(report)),
            Self::Continue => Kept::Continue {},
            Self::Tick { now } => Kept::Tick { now: *now },
            Self::CompactContext { max_tokens } => Kept::CompactContext { max_tokens: *max_tokens },
            Self::Summarise { task_ids, .. } => Kept::Summarise { task_ids: task_ids.clone() },
            Self::Cancel { task, reason } => Kept::Cancel { task: *task, reason: keep_reason(reason) },
            Self::Pause { reason } => Kept::Pause { reason: keep_reason(reason) },
            Self::Resume => Kept::Resume {},
            Self::PauseFromAbove { reason } => Kept::PauseFromAbove { reason: keep_reason(reason) },
            Self::ResumeFromAbove => Kept::ResumeFromAbove {},
            Self::Undo { reason } => Kept::Undo { reason: keep_reason(reason) },
            Self::Retry { task } => Kept::Retry { task: *task },
            Self::RetryNow { task } => Kept::RetryNow { task: *task },
            Self::CancelAndUndo { reason } => Kept::CancelAndUndo { reason: keep_reason(reason) },
            Self::Withdraw { question, reason } => Kept::Withdraw { question: *question, reason: keep_reason(reason) },
            Self::Ask { task, .. } => Kept::Ask { task: *task },
            Self::AnswerAndAsk { question, .. } => Kept::AnswerAndAsk { question: *question },
            Self::Amend { amendments, reason } => {
                Kept::Amend { amended: KeptAmendments::of(amendments), reason: keep_reason(reason) }
            }
            Self::Configure { changes, reason } => {
                Kept::Configure { changes: changes.clone(), reason: keep_reason(reason) }
            }
            Self::PauseTask { task, reason } => Kept::PauseTask { task: *task, reason: keep_reason(reason) },
            Self::ResumeTask { task } => Kept::ResumeTask { task: *task },
        })
    }

    /// The command of which this was kept, and which led to these events, all of one append.
    ///
    /// A long error of a report comes back as the plan has it, shortened; it decides the same.
    ///
    /// # Errors
    /// [`RestoreError`] when either is not what [`Command::retained`] and the planner give.
    pub fn restore(kept: &Value, events: &[Event]) -> Result<Self, RestoreError> {
        let first = events.first();
        let lacking = |command| RestoreError::NotInEvents { command };
        let why = |kept: Option<String>, command| kept.or_else(|| reason_of(first)).ok_or_else(|| lacking(command));
        Ok(match Kept::deserialize(kept)? {
            Kept::Initialize { attachments, parallel } => {
                let Some(Event::TasksPlanned { source, config, .. }) = first else { return Err(lacking("Initialize")) };
                Self::Initialize { user_input: source.clone(), attachments, config: *config.clone(), parallel }
            }
            Kept::Propose { attachments } => {
                Self::propose_again(first, attachments).ok_or_else(|| lacking("Propose"))?
            }
            Kept::Fork { amended } => Self::fork_again(events, amended).ok_or_else(|| lacking("Fork"))?,
            Kept::NameCheckpoint {} => {
                let Some(Event::CheckpointNamed { name }) = first else { return Err(lacking("NameCheckpoint")) };
                Self::NameCheckpoint { name: name.clone() }
            }
            Kept::ProposeAgentPlan { agent, registry, attachments } => {
                let Some(Event::TasksPlanned { source, config, origin, .. }) = first else {
                    return Err(lacking("ProposeAgentPlan"));
                };
                let origin = Origin { agent: None, ..origin.clone() };
                let proposal = Box::new(AgentProposal { agent, plan: source.clone(), registry, origin });
                Self::ProposeAgentPlan { proposal, attachments, config: *config.clone() }
            }
            Kept::HandleExecutorEvent(report) => {
                Self::HandleExecutorEvent(report.restore(first).ok_or_else(|| lacking("HandleExecutorEvent"))?)
            }
            Kept::Continue {} => Self::Continue,
            Kept::Tick { now } => Self::Tick { now },
            Kept::CompactContext { max_tokens } => Self::CompactContext { max_tokens },
            // What it became decides the same again.
            Kept::Summarise { task_ids } => match first {
                Some(Event::ContextCompacted { summary, .. }) => Self::Summarise { summary: summary.clone(), task_ids },
                Some(_) | None => return Err(lacking("Summarise")),
            },
            Kept::Cancel { task, reason } => Self::Cancel { task, reason: why(reason, "Cancel")? },
            Kept::Pause { reason } => Self::Pause { reason: why(reason, "Pause")? },
            Kept::Resume {} => Self::Resume,
            Kept::PauseFromAbove { reason } => Self::PauseFromAbove { reason: why(reason, "PauseFromAbove")? },
            Kept::ResumeFromAbove {} => Self::ResumeFromAbove,
            Kept::Undo { reason } => Self::Undo { reason: why(reason, "Undo")? },
            Kept::Retry { task } => Self::Retry { task },
            Kept::RetryNow { task } => Self::RetryNow { task },
            Kept::CancelAndUndo { reason } => Self::CancelAndUndo { reason: why(reason, "CancelAndUndo")? },
            Kept::Withdraw { question, reason } => Self::Withdraw { question, reason: why(reason, "Withdraw")? },
            Kept::Ask { task } => {
                let Some(Event::ClarificationRequested { question, default, .. }) = first else {
                    return Err(lacking("Ask"));
                };
                Self::Ask { task, question: question.clone(), default: default.clone() }
            }
            Kept::AnswerAndAsk { question } => {
                let [
                    Event::ClarificationRequested { question: further, .. },
                    Event::ClarificationReceived { answer, .. },
                    ..,
                ] = events
                else {
                    return Err(lacking("AnswerAndAsk"));
                };
                Self::AnswerAndAsk { question, answer: answer.clone(), further: further.clone() }
            }
            Kept::Amend { amended, reason } => {
                let amendments = amended.restored(first);
                Self::Amend { amendments, reason: why(reason, "Amend")? }
            }
            Kept::Configure { changes, reason } => Self::Configure { changes, reason: why(reason, "Configure")? },
            Kept::PauseTask { task, reason } => Self::PauseTask { task, reason: why(reason, "PauseTask")? },
            Kept::ResumeTask { task } => Self::ResumeTask { task },
        })
    }

    /// Settings that were given and changed nothing are none.
    fn fork_again(events: &[Event], amended: Option<KeptAmendments>) -> Option<Self> {
        let Event::PlanForked { parent, at, reason } = events.first()? else { return None };
        let config = match events.get(1) {
            Some(Event::SettingsChanged { config, .. }) => Some(config.clone()),
            Some(_) | None => None,
        };
        let first = events.iter().find(|event| matches!(event, Event::TasksAmended { .. }));
        let amendments = amended.map_or_else(Vec::new, |kept| kept.restored(first));
        Some(Self::Fork { parent: parent.clone(), at: *at, reason: reason.clone(), config, amendments })
    }

    /// Tasks that an attachment was given to have it already, and are given it no second time.
    fn propose_again(first: Option<&Event>, attachments: Vec<Attachment>) -> Option<Self> {
        let Event::TasksPlanned { tasks, title, source, config, context, origin, .. } = first? else { return None };
        let (tasks, title, source) = (tasks.clone(), title.clone(), source.clone());
        let proposal = Proposal { tasks, title, source, context: context.clone(), origin: origin.clone() };
        Some(Self::Propose { proposal: Box::new(proposal), attachments, config: *config.clone() })
    }
}

impl KeptReport {
    fn of(report: &ExecutorEvent) -> Self {
        match report {
            ExecutorEvent::TaskCompleted { node_id, attempt, .. } => {
                Self::TaskCompleted { node_id: *node_id, attempt: *attempt }
            }
            ExecutorEvent::TaskFailed { node_id, attempt, class, .. } => {
                Self::TaskFailed { node_id: *node_id, attempt: *attempt, class: *class }
            }
            ExecutorEvent::UsageReported { node_id, attempt, usage } => {
                let estimated = usage.is_guessed().then_some((usage.input_tokens, usage.output_tokens));
                Self::UsageReported { node_id: *node_id, attempt: *attempt, estimated }
            }
            ExecutorEvent::NeedsClarification { node_id, attempt, .. } => {
                Self::NeedsClarification { node_id: *node_id, attempt: *attempt }
            }
            ExecutorEvent::ClarificationProvided { node_id, question_id, .. } => {
                Self::ClarificationProvided { node_id: *node_id, question_id: *question_id }
            }
        }
    }

    /// With what the first event says of it.
    fn restore(self, first: Option<&Event>) -> Option<ExecutorEvent> {
        Some(match (self, first?) {
            (Self::TaskCompleted { node_id, attempt }, Event::TaskStatusUpdated { result: Some(result), .. }) => {
                ExecutorEvent::TaskCompleted { node_id, attempt, result: result.clone() }
            }
            (Self::TaskFailed { node_id, attempt, class }, Event::TaskStatusUpdated { error: Some(error), .. }) => {
                ExecutorEvent::TaskFailed { node_id, attempt, error: error.clone(), class }
            }
            (Self::UsageReported { node_id, attempt, estimated }, Event::UsageRecorded { usage, .. }) => {
                let usage = estimated.map_or(*usage, |(input_tokens, output_tokens)| {
                    let estimated_tokens = input_tokens.saturating_add(output_tokens);
                    Usage { input_tokens, output_tokens, estimated_tokens, ..*usage }
                });
                ExecutorEvent::UsageReported { node_id, attempt, usage }
            }
            (
                Self::NeedsClarification { node_id, attempt },
                Event::ClarificationRequested { question, default, .. },
            ) => {
                let (question, default) = (question.clone(), default.clone());
                ExecutorEvent::NeedsClarification { node_id, attempt, question, default }
            }
            (Self::ClarificationProvided { node_id, question_id }, Event::ClarificationReceived { answer, .. }) => {
                ExecutorEvent::ClarificationProvided { node_id, question_id, answer: answer.clone() }
            }
            (
                Self::TaskCompleted { .. }
                | Self::TaskFailed { .. }
                | Self::UsageReported { .. }
                | Self::NeedsClarification { .. }
                | Self::ClarificationProvided { .. },
                _another_event,
            ) => return None,
        })
    }
}

impl TaskCommand {
    /// What has to be kept of it, for [`crewlog_mq::Cause::keeping`].
    #[must_use]
    pub fn retained(&self) -> Value {
        encode(&match self {
            Self::Claim { attempt, executor, now, dead_epoch } => {
                KeptOfTask::Claim { attempt: *attempt, executor: executor.clone(), now: *now, dead_epoch: *dead_epoch }
            }
            Self::Start { epoch } => KeptOfTask::Start { epoch: *epoch },
            Self::Renew { epoch, now } => KeptOfTask::Renew { epoch: *epoch, now: *now },
            Self::End { epoch, .. } => KeptOfTask::End { epoch: *epoch },
            Self::Report { attempt, executor, now, dead_epoch, .. } => {
                let (attempt, executor, now, dead_epoch) = (*attempt, executor.clone(), *now, *dead_epoch);
                KeptOfTask::Report { attempt, executor, now, dead_epoch }
            }
            Self::Answer { question_id, .. } => KeptOfTask::Answer { question_id: *question_id },
        })
    }

    /// The command of which this was kept, and which led to these events, all of one append.
    ///
    /// # Errors
    /// [`RestoreError`] when either is not what [`TaskCommand::retained`] and the task give.
    pub fn restore(kept: &Value, events: &[TaskEvent]) -> Result<Self, RestoreError> {
        let last = events.last();
        let lacking = |command| RestoreError::NotInEvents { command };
        Ok(match KeptOfTask::deserialize(kept)? {
            KeptOfTask::Claim { attempt, executor, now, dead_epoch } => {
                Self::Claim { attempt, executor, now, dead_epoch }
            }
            KeptOfTask::Start { epoch } => Self::Start { epoch },
            KeptOfTask::Renew { epoch, now } => Self::Renew { epoch, now },
            KeptOfTask::End { epoch } => {
                let usage = match events.first() {
                    Some(TaskEvent::UsageReported { usage, .. }) => *usage,
                    Some(_) | None => Usage::default(),
                };
                Self::End { epoch, usage, ending: last.and_then(ending_of).ok_or_else(|| lacking("End"))? }
            }
            KeptOfTask::Report { attempt, executor, now, dead_epoch } => {
                let ending = last.and_then(ending_of).ok_or_else(|| lacking("Report"))?;
                Self::Report { attempt, executor, now, dead_epoch, ending }
            }
            KeptOfTask::Answer { question_id } => {
                let Some(TaskEvent::ClarificationProvided { answer, .. }) = last else { return Err(lacking("Answer")) };
                Self::Answer { question_id, answer: answer.clone() }
            }
        })
    }
}

fn encode(kept: &impl Serialize) -> Value {
    serde_json::to_value(kept).expect("names, numbers and texts can always be written as JSON")
}

fn keep_reason(reason: &str) -> Option<String> {
    (reason.len() <= KEPT_REASON_BYTES_MAX).then(|| reason.to_owned())
}

fn keep_amendments(amendments: &[Amendment]) -> Option<Vec<Amendment>> {
    let n_bytes = encode(&amendments).to_string().len();
    (n_bytes <= KEPT_AMENDMENTS_BYTES_MAX).then(|| amendments.to_vec())
}

/// The reason that an event gives for what somebody ordered.
fn reason_of(event: Option<&Event>) -> Option<String> {
    match event? {
        Event::PlanCancelled { reason }
        | Event::PlanPaused { reason, .. }
        | Event::TasksAmended { reason, .. }
        | Event::SettingsChanged { reason, .. }
        | Event::TaskPaused { reason, .. }
        | Event::ClarificationWithdrawn { reason, .. } => Some(reason.clone()),
        Event::TaskStatusUpdated { error, .. } => error.clone(),
        Event::PlanForked { .. }
        | Event::TaskResumed { .. }
        | Event::DeadlineSet { .. }
        | Event::UsageRecorded { .. }
        | Event::CheckpointNamed { .. }
        | Event::CompactionRequested { .. }
        | Event::TasksPlanned { .. }
        | Event::TaskDispatched { .. }
        | Event::ClarificationRequested { .. }
        | Event::ClarificationReceived { .. }
        | Event::ContextCompacted { .. }
        | Event::PlanResumed {}
        | Event::TasksReopened { .. }
        | Event::PlanningCompleted { .. } => None,
    }
}

/// The ending that an event records.
fn ending_of(event: &TaskEvent) -> Option<Ending> {
    match event.clone() {
        TaskEvent::TaskCompleted { result, run, .. } => Some(Ending::Completed { result, run }),
        TaskEvent::TaskFailed { error, class, run, .. } => Some(Ending::Failed { error, class, run }),
        TaskEvent::NeedsClarification { question, default, .. } => Some(Ending::Asked { question, default }),
        TaskEvent::TaskStopped { reason, .. } => Some(Ending::Stopped { reason }),
        TaskEvent::TaskReleased { reason, .. } => Some(Ending::Released { reason }),
        TaskEvent::TaskClaimed { .. }
        | TaskEvent::TaskStarted { .. }
        | TaskEvent::LeaseRenewed { .. }
        | TaskEvent::UsageReported { .. }
        | TaskEvent::ClarificationProvided { .. } => None,
    }
}
