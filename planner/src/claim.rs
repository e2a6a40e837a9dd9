//! A task's own aggregate: who holds it, and what they report. Of any number of racing executors one wins.
//!
//! A holder has a lease and an epoch. Any event of the holder renews the lease; one that has expired, or whose
//! holder is proven dead, may be claimed again with a higher epoch, and what the old holder still reports is
//! refused. Nothing here decides what comes next in the plan.

use crewlog_mq::{Event as MqEvent, Handler, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::event::{ExecutorEvent, FailureClass, Usage};
use crate::plan::{DefaultAnswer, TaskId};

/// The stream of all tasks; a task's aggregate is `<plan>/<number>`.
pub const STREAM: &str = "task";

/// How long a claim holds without a renewal.
pub const LEASE: Duration = Duration::from_secs(180);

/// The aggregate of a task.
#[must_use]
pub fn aggregate_id(plan: &str, task: TaskId) -> String {
    format!("{plan}/{task}")
}

/// The plan and task that an aggregate is of.
#[must_use]
pub fn split_aggregate_id(aggregate_id: &str) -> Option<(&str, TaskId)> {
    let (plan, task) = aggregate_id.rsplit_once('/')?;
    Some((plan, TaskId(task.parse().ok()?)))
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    /// What sort: `shell`, `human`.
    pub name: String,
    /// The machine.
    pub host: String,
    /// The worker process on it; by its lock file its death can be proven.
    pub worker: String,
}

impl std::fmt::Display for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.host)
    }
}

/// Details of a finished run of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDetails {
    /// Unset when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What it wrote, in bytes, kept or not.
    pub output_bytes: u64,
    /// Whether the middle of its output was dropped.
    #[serde(default)]
    pub output_is_cut: bool,
}

/// By which a prompt that is rendered again is compared with the one that an agent got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptDigest {
    /// The SHA-256 of its UTF-8 bytes, in hexadecimal.
    pub sha256: String,
    /// Its length in characters.
    pub n_chars: u64,
}

/// What happened to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskEvent {
    /// An executor holds it.
    TaskClaimed {
        /// The dispatch that is carried out.
        attempt: u32,
        /// Who.
        executor: Executor,
        /// Until when, in log time.
        lease_until: Timestamp,
        /// Rises with every claim.
        epoch: u64,
        /// True when an earlier holder of this attempt had begun and never said how it ended: it may have had effects.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    /// The holder is about to act: from here on it may have had effects.
    TaskStarted {
        /// The holder's.
        epoch: u64,
        /// Of an agent: the prompt that it gets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptDigest>,
    },
    /// The holder is alive.
    LeaseRenewed {
        /// The holder's.
        epoch: u64,
        /// Until when now.
        lease_until: Timestamp,
    },
    /// The holder gave it back unfinished.
    TaskReleased {
        /// The holder's.
        epoch: u64,
        /// Why.
        reason: String,
    },
    /// The holder stopped because the plan wanted it.
    TaskStopped {
        /// The holder's.
        epoch: u64,
        /// Why.
        reason: String,
    },
    /// Done.
    TaskCompleted {
        /// The dispatch.
        attempt: u32,
        /// The holder's.
        epoch: u64,
        /// Its outcome.
        result: String,
        /// Of a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunDetails>,
    },
    /// Not done.
    TaskFailed {
        /// The dispatch.
        attempt: u32,
        /// The holder's.
        epoch: u64,
        /// Why.
        error: String,
        /// What sort of failure.
        class: FailureClass,
        /// Of a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunDetails>,
    },
    /// The holder's usage; it comes right before the end.
    UsageReported {
        /// The dispatch.
        attempt: u32,
        /// The holder's.
        epoch: u64,
        /// How much.
        usage: Usage,
    },
    /// The executor asks.
    NeedsClarification {
        /// The dispatch.
        attempt: u32,
        /// The holder's.
        epoch: u64,
        /// What.
        question: String,
        /// What counts when nobody answers in time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<DefaultAnswer>,
    },
    /// The plan stopped before this dispatch started, and withdrew it.
    TaskWithdrawn {
        /// The dispatch.
        attempt: u32,
    },
    /// The lease of the holder has run out: it holds the task no more.
    TimerFired {
        /// The holder's.
        epoch: u64,
        /// When the lease ran out, in log time.
        due: Timestamp,
    },
}

impl TaskEvent {
    /// The report to the planner, if it concerns the planner.
    #[must_use]
    pub fn report(self, node_id: TaskId) -> Option<ExecutorEvent> {
        match self {
            Self::TaskCompleted { attempt, result, .. } => {
                Some(ExecutorEvent::TaskCompleted { node_id, attempt, result })
            }
            Self::TaskFailed { attempt, error, class, .. } => {
                Some(ExecutorEvent::TaskFailed { node_id, attempt, error, class })
            }
            Self::UsageReported { attempt, usage, .. } => {
                Some(ExecutorEvent::UsageReported { node_id, attempt, usage })
            }
            Self::NeedsClarification { attempt, question, default, .. } => {
                Some(ExecutorEvent::NeedsClarification { node_id, attempt, question, default })
            }
            Self::TaskWithdrawn { attempt } => Some(ExecutorEvent::TaskWithdrawn { node_id, attempt }),
            Self::TaskClaimed { .. }
            | Self::TaskStarted { .. }
            | Self::LeaseRenewed { .. }
            | Self::TimerFired { .. }
            | Self::TaskReleased { .. }
            | Self::TaskStopped { .. } => None,
        }
    }
}

impl MqEvent for TaskEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::TaskClaimed { .. } => "TaskClaimed",
            Self::TaskStarted { .. } => "TaskStarted",
            Self::LeaseRenewed { .. } => "LeaseRenewed",
            Self::TaskReleased { .. } => "TaskReleased",
            Self::TaskStopped { .. } => "TaskStopped",
            Self::TaskCompleted { .. } => "TaskCompleted",
            Self::TaskFailed { .. } => "TaskFailed",
            Self::UsageReported { .. } => "UsageReported",
            Self::NeedsClarification { .. } => "NeedsClarification",
            Self::TaskWithdrawn { .. } => "TaskWithdrawn",
            Self::TimerFired { .. } => "TimerFired",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With a result.
    Completed {
        /// Its outcome.
        result: String,
        /// Of a command.
        run: Option<RunDetails>,
    },
    /// With an error.
    Failed {
        /// Why.
        error: String,
        /// What sort of failure.
        class: FailureClass,
        /// Of a command.
        run: Option<RunDetails>,
    },
    /// With a question.
    Asked {
        /// What.
        question: String,
        /// What counts when nobody answers in time.
        default: Option<DefaultAnswer>,
    },
    /// Because the plan wanted it.
    Stopped {
        /// Why.
        reason: String,
    },
    /// Unfinished; another may take it.
    Released {
        /// Why.
        reason: String,
    },
}

impl Ending {
    /// The end of a run whose worker was lost: its outcome is unknown.
    #[must_use]
    pub fn worker_lost() -> Self {
        Self::Failed {
            error: "its worker was lost while it ran".into(),
            class: FailureClass::OutcomeUnknown,
            run: None,
        }
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::Released { reason: String::new() }
    }
}

/// What a task is asked.
///
/// Its JSON lacks what its events repeat: [`TaskCommand::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum TaskCommand {
    /// Hold it, to carry out a dispatch.
    Claim {
        /// The dispatch.
        attempt: u32,
        /// Who wants it.
        executor: Executor,
        /// Log time.
        now: Timestamp,
        /// The epoch of a holder that is proven dead.
        dead_epoch: Option<u64>,
    },
    /// The holder is about to act.
    Start {
        /// The holder's.
        epoch: u64,
        /// Of an agent: the prompt that it gets.
        #[serde(skip)]
        prompt: Option<PromptDigest>,
    },
    /// The holder is alive.
    Renew {
        /// The holder's.
        epoch: u64,
        /// Log time.
        now: Timestamp,
    },
    /// The holder has ended.
    End {
        /// The holder's.
        epoch: u64,
        /// What it used up, as far as it is known.
        #[serde(skip)]
        usage: Usage,
        /// How.
        #[serde(skip)]
        ending: Ending,
    },
    /// A person claims it and says how it ended, in one.
    Report {
        /// The dispatch.
        attempt: u32,
        /// Who.
        executor: Executor,
        /// Log time.
        now: Timestamp,
        /// The epoch of a holder that is proven dead.
        dead_epoch: Option<u64>,
        /// How.
        #[serde(skip)]
        ending: Ending,
    },
    /// Withdraw a dispatch of a stopped plan that nobody has started.
    Withdraw {
        /// The dispatch.
        attempt: u32,
        /// Log time.
        now: Timestamp,
    },
    /// The lease of the holder may have run out.
    FireTimer {
        /// The holder's.
        epoch: u64,
        /// Log time.
        now: Timestamp,
    },
}

/// Why a task refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Somebody else holds it.
    #[error("the task is held by {executor}")]
    Held {
        /// Who.
        executor: Executor,
        /// Until when, in log time.
        lease_until: Timestamp,
        /// The holder's.
        epoch: u64,
    },
    /// This dispatch has its end already.
    #[error("attempt {0} of the task has ended")]
    AttemptEnded(u32),
    /// A newer claim has taken its place.
    #[error("the claim with epoch {0} no longer holds the task")]
    StaleEpoch(u64),
}

/// The holder of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub executor: Executor,
    /// Until when, in log time.
    pub lease_until: Timestamp,
    /// Whether it may have had effects.
    pub has_started: bool,
}

/// The state of a task's aggregate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskLease {
    attempt: u32,
    attempt_is_ended: bool,
    epoch: u64,
    holder: Option<Holder>,
    is_cut_off: bool,
}

impl TaskLease {
    /// Who holds the task, if anybody.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// The epoch of the last claim.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// True while an earlier run of this attempt was interrupted and no new one has started.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    fn decide(&self, command: TaskCommand) -> Result<Vec<TaskEvent>, TaskError> {
        match command {
            TaskCommand::Claim { attempt, executor, now, dead_epoch } => {
                Ok(vec![self.claim(attempt, executor, now, dead_epoch)?])
            }
            TaskCommand::Start { epoch, prompt } => {
                self.check_holder(epoch)?;
                Ok(vec![TaskEvent::TaskStarted { epoch, prompt }])
            }
            TaskCommand::Renew { epoch, now } => {
                self.check_holder(epoch)?;
                Ok(vec![TaskEvent::LeaseRenewed { epoch, lease_until: now.plus(LEASE) }])
            }
            TaskCommand::End { epoch, usage, ending } => {
                self.check_holder(epoch)?;
                let attempt = self.attempt;
                let used = (!usage.is_nothing()).then_some(TaskEvent::UsageReported { attempt, epoch, usage });
                Ok(used.into_iter().chain([ended(attempt, epoch, ending)]).collect())
            }
            TaskCommand::Report { attempt, executor, now, dead_epoch, ending } => {
                let claimed = self.claim(attempt, executor, now, dead_epoch)?;
                Ok(vec![claimed, ended(attempt, self.epoch.saturating_add(1), ending)])
            }
            TaskCommand::Withdraw { attempt, now } => Ok(self.withdraw(attempt, now).into_iter().collect()),
            TaskCommand::FireTimer { epoch, now } => {
                let holder = self.holder.as_ref().filter(|holder| epoch == self.epoch && holder.lease_until <= now);
                Ok(holder.map(|holder| TaskEvent::TimerFired { epoch, due: holder.lease_until }).into_iter().collect())
            }
        }
    }

    /// None while somebody holds the task. A run that a lost holder had started ends as lost.
    fn withdraw(&self, attempt: u32, now: Timestamp) -> Option<TaskEvent> {
        if self.has_ended(attempt) || self.holder.as_ref().is_some_and(|holder| now < holder.lease_until) {
            return None;
        }
        Some(match self.was_begun() && attempt == self.attempt {
            true => ended(attempt, self.epoch, Ending::worker_lost()),
            false => TaskEvent::TaskWithdrawn { attempt },
        })
    }

    fn claim(
        &self,
        attempt: u32,
        executor: Executor,
        now: Timestamp,
        dead_epoch: Option<u64>,
    ) -> Result<TaskEvent, TaskError> {
        if self.has_ended(attempt) {
            return Err(TaskError::AttemptEnded(attempt));
        }
        if let Some(holder) = &self.holder {
            let is_free = holder.lease_until <= now || dead_epoch == Some(self.epoch);
            if !is_free {
                let (executor, lease_until) = (holder.executor.clone(), holder.lease_until);
                return Err(TaskError::Held { executor, lease_until, epoch: self.epoch });
            }
        }
        Ok(TaskEvent::TaskClaimed {
            attempt,
            executor,
            lease_until: now.plus(LEASE),
            epoch: self.epoch.saturating_add(1),
            cut_off: attempt == self.attempt && self.was_begun(),
        })
    }

    fn has_ended(&self, attempt: u32) -> bool {
        attempt < self.attempt || (attempt == self.attempt && self.attempt_is_ended)
    }

    /// True when an earlier holder, or one whose lease has expired, may have had effects.
    fn was_begun(&self) -> bool {
        self.is_cut_off || self.holder.as_ref().is_some_and(|holder| holder.has_started)
    }

    fn check_holder(&self, epoch: u64) -> Result<(), TaskError> {
        if self.holder.is_some() && epoch == self.epoch { Ok(()) } else { Err(TaskError::StaleEpoch(epoch)) }
    }
}

fn ended(attempt: u32, epoch: u64, ending: Ending) -> TaskEvent {
    match ending {
        Ending::Completed { result, run } => TaskEvent::TaskCompleted { attempt, epoch, result, run },
        Ending::Failed { error, class, run } => TaskEvent::TaskFailed { attempt, epoch, error, class, run },
        Ending::Asked { question, default } => TaskEvent::NeedsClarification { attempt, epoch, question, default },
        Ending::Stopped { reason } => TaskEvent::TaskStopped { epoch, reason },
        Ending::Released { reason } => TaskEvent::TaskReleased { epoch, reason },
    }
}

impl Handler for TaskLease {
    type Command = TaskCommand;
    type Event = TaskEvent;
    type Error = TaskError;

    fn process(&mut self, command: TaskCommand) -> Result<Vec<TaskEvent>, TaskError> {
        let events = self.decide(command)?;
        for event in &events {
            self.apply(event);
        }
        Ok(events)
    }

    fn apply(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::TaskClaimed { attempt, executor, lease_until, epoch, cut_off } => {
                self.attempt_is_ended = false;
                self.is_cut_off = *cut_off;
                self.attempt = *attempt;
                self.epoch = *epoch;
                let (executor, lease_until) = (executor.clone(), *lease_until);
                self.holder = Some(Holder { executor, lease_until, has_started: false });
            }
            TaskEvent::TaskStarted { .. } => {
                self.is_cut_off = false;
                if let Some(holder) = &mut self.holder {
                    holder.has_started = true;
                }
            }
            TaskEvent::LeaseRenewed { lease_until, .. } => {
                if let Some(holder) = &mut self.holder {
                    holder.lease_until = *lease_until;
                }
            }
            TaskEvent::TaskReleased { .. } => self.holder = None,
            TaskEvent::UsageReported { .. } => {}
            TaskEvent::TimerFired { .. } => {
                self.is_cut_off |= self.holder.take().is_some_and(|holder| holder.has_started);
            }
            TaskEvent::TaskWithdrawn { attempt } => {
                (self.attempt, self.holder, self.attempt_is_ended) = (*attempt, None, true);
            }
            TaskEvent::TaskStopped { .. }
            | TaskEvent::TaskCompleted { .. }
            | TaskEvent::TaskFailed { .. }
            | TaskEvent::NeedsClarification { .. } => {
                self.holder = None;
                self.is_cut_off = false;
                self.attempt_is_ended = true;
            }
        }
    }
}
