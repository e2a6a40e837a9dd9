//! A task's own aggregate: its claim and its reports. One of any number of racing executors wins.
//!
//! Signs of life of the holder, which are no events, renew its lease. A task whose lease has expired, or whose holder is
//! proven dead, may be claimed again with a higher epoch; reports with an older epoch are refused.

use crewlog_mq::{Handler, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub use crate::event::{
    Executor, LateOutcome, LateReport, OutputFile, PromptDigest, RunDetails, TaskEvent, TaskProgress,
};
use crate::event::{FailureClass, Usage};
use crate::is_default;
use crate::plan::{DefaultAnswer, TaskId};

/// The stream of all tasks; a task's aggregate is `<plan>/<number>`.
pub const STREAM: &str = "task";

/// How long a claim holds without a sign of life of its worker.
pub const LEASE: Duration = Duration::from_secs(180);

/// The time of a claim whose lease expires at a time.
#[must_use]
pub fn claimed_at(lease_until: Timestamp) -> Timestamp {
    Timestamp(0).plus(lease_until.since(Timestamp(0).plus(LEASE)))
}

/// After this many agents in a row were lost with a task, it waits for a person.
pub const LOST_MAX: u32 = 3;
/// The aggregate of a task.
pub fn aggregate_id(plan: &str, task: TaskId) -> String {
    format!("{plan}/{task}")
}

/// The plan and task that an aggregate is of.
pub fn split_aggregate_id(aggregate_id: &str) -> Option<(&str, TaskId)> {
    let (plan, task) = aggregate_id.rsplit_once('/')?;
    Some((plan, TaskId(task.parse().ok()?)))
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the events")]
pub enum Ending {
    /// With a result.
    Completed { result: String, run: Option<RunDetails> },
    /// With an error.
    Failed { error: String, class: FailureClass, run: Option<RunDetails> },
    /// With a question.
    Asked { question: String, default: Option<DefaultAnswer> },
    /// At the plan's request.
    Stopped { reason: String },
    /// Unfinished; another executor may claim the task.
    Released { reason: String, cut_off: bool },
}

impl Ending {
    /// The end of a run that was cut short with its worker: its outcome is unknown. Another worker reports it.
    pub fn cut_short(executor: &Executor) -> Self {
        let error = match *executor == Executor::default() {
            true => "it was dispatched in a part of the log that is lost, and may have run".to_owned(),
            false => format!("its run by {executor} was cut short"),
        };
        Self::Failed { error, class: FailureClass::OutcomeUnknown, run: None }
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self::Released { reason: String::new(), cut_off: false }
    }
}

/// The claim of a worker or a person.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The dispatch.
    #[serde(skip)]
    pub attempt: u32,
    /// The worker or person.
    #[serde(skip)]
    pub executor: Executor,
    /// Log time.
    #[serde(skip)]
    pub now: Timestamp,
    /// The epoch of a holder that is proven dead.
    pub dead_epoch: Option<u64>,
    /// True to report an end without a start.
    #[serde(skip)]
    pub only_reports: bool,
    /// The prompt of an agent.
    #[serde(skip)]
    pub prompt: Option<PromptDigest>,
}

/// A command to a task. `now` is log time, and `epoch` that of the holder.
///
/// Its JSON omits the fields that its events repeat: [`TaskCommand::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum TaskCommand {
    /// Claim it to carry out a dispatch.
    Claim(Claim),
    /// A coding agent claims it.
    ClaimForAgent {
        #[serde(skip)]
        attempt: u32,
        #[serde(skip)]
        executor: Executor,
        now: Timestamp,
    },
    /// The holder reports its progress.
    Progress {
        epoch: u64,
        #[serde(skip)]
        progress: TaskProgress,
    },
    /// A coding agent that holds it hands it over to another one.
    HandOver {
        epoch: u64,
        #[serde(skip)]
        executor: Executor,
        #[serde(skip)]
        progress: TaskProgress,
    },
    /// A person lets a parked task be claimed again.
    Unpark { by: String },
    /// The holder has ended.
    End {
        #[serde(skip)]
        epoch: u64,
        #[serde(skip)]
        usage: Usage,
        #[serde(skip)]
        ending: Ending,
    },
    /// A person claims it and reports its end at once.
    Report {
        claim: Claim,
        #[serde(skip)]
        ending: Ending,
    },
    /// A worker saw a dispatch or a claim of it that the log has lost.
    Interrupt { attempt: u32, epoch: u64, executor: Executor },
    /// An executor that has lost it reports its end.
    ReportLate {
        #[serde(skip)]
        late: LateReport,
    },
    /// Withdraw a dispatch of a stopped plan that has not started.
    Withdraw { attempt: u32 },
    /// End the lease of a holder that is dead, or whose lease has expired.
    FireTimer { epoch: u64, now: Timestamp, is_dead: bool },
}

/// The reason why a task refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TaskError {
    #[error("the task is claimed by {executor}")]
    Held { executor: Executor, epoch: u64 },
    #[error("attempt {0} of the task has ended")]
    AttemptEnded(u32),
    #[error("the claim with epoch {0} has lost the task")]
    StaleEpoch(u64),
    #[error("its files are leased: {0}")]
    Blocked(String),
    #[error("{LOST_MAX} agents were lost with the task: it waits for a person")]
    Parked,
}

/// The holder of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The executor that claimed it.
    pub executor: Executor,
    /// The epoch of the claim.
    pub epoch: u64,
    /// When its lease expires without a sign of life, in log time; unset for a coding agent.
    pub lease_until: Option<Timestamp>,
    /// True if it may have had effects.
    pub has_started: bool,
}

impl Holder {
    /// When it claimed the task, in log time; unset for a coding agent.
    #[must_use]
    pub fn claimed_at(&self) -> Option<Timestamp> {
        self.lease_until.map(claimed_at)
    }

    /// True for a coding agent: it has no lease, and holds the task until its plan dispatches it again.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.lease_until.is_none()
    }

    /// True if its lease ended, unless its worker has left a sign of life since the claim.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|until| until <= now)
    }
}

/// The state of a task's aggregate.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskLease {
    attempt: u32,
    attempt_is_ended: bool,
    /// The epoch of the last claim.
    pub epoch: u64,
    /// The holder of the task, if any.
    pub holder: Option<Holder>,
    /// The run that was cut short before the last claim: of this attempt, or at the end of the one before.
    pub interrupted: Option<Holder>,
    /// The last progress report of this attempt.
    pub progress: Option<TaskProgress>,
    /// The last known session of a program, in any attempt, and its executor.
    pub session: Option<(Executor, String)>,
    /// The last report that came too late.
    pub late: Option<LateReport>,
    /// The number of agents in a row that were lost with this attempt.
    n_lost: u32,
}

impl TaskLease {
    /// The dispatch of the last claim.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// True if a person must release it before it can be claimed again.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.n_lost >= LOST_MAX
    }

    /// None while it is held: the timer of its lease comes first. A run that a lost holder had started ends as lost.
    fn withdraw(&self, attempt: u32) -> Option<TaskEvent> {
        let is_held = self.holder.as_ref().is_some_and(|holder| !self.is_superseded(holder, attempt));
        if self.has_ended(attempt) || is_held {
            return None;
        }
        Some(match self.cut_short(attempt) {
            Some(executor) => ended(attempt, self.epoch, Ending::cut_short(executor)),
            None => TaskEvent::TaskWithdrawn { attempt },
        })
    }

    fn claim(&self, claim: Claim, lease_until: Option<Timestamp>) -> Result<TaskEvent, TaskError> {
        let Claim { attempt, executor, now, dead_epoch, only_reports, prompt } = claim;
        if self.has_ended(attempt) {
            return Err(TaskError::AttemptEnded(attempt));
        }
        let is_live = |held: &Holder| {
            dead_epoch != Some(self.epoch) && !held.has_expired(now) && !self.is_superseded(held, attempt)
        };
        self.check_unheld(is_live)?;
        let (epoch, cut_off) = (self.epoch.saturating_add(1), self.cut_short(attempt).is_some());
        Ok(TaskEvent::TaskClaimed { attempt, executor, lease_until, epoch, cut_off, only_reports, prompt })
    }

    /// The executor whose run of a dispatch has reported no end, if there is one: another claim finds it cut short.
    #[must_use]
    pub fn cut_short(&self, attempt: u32) -> Option<&Executor> {
        self.left().filter(|_| attempt == self.attempt).map(|run| &run.executor)
    }

    /// The earlier run, or that of the holder, which may have had effects and came to no end of its own.
    #[must_use]
    pub fn left(&self) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| holder.has_started).or(self.interrupted.as_ref())
    }

    /// Checks that no live executor holds it.
    ///
    /// # Errors
    /// [`TaskError::Held`].
    pub fn check_unheld(&self, is_live: impl Fn(&Holder) -> bool) -> Result<(), TaskError> {
        match &self.holder {
            Some(held) if is_live(held) => Err(TaskError::Held { executor: held.executor.clone(), epoch: self.epoch }),
            _ => Ok(()),
        }
    }

    /// True if the plan has dispatched the task again since an agent claimed it.
    fn is_superseded(&self, holder: &Holder, attempt: u32) -> bool {
        holder.is_agent() && attempt > self.attempt
    }

    /// True while the executor of a claim holds its attempt by just such a claim.
    fn is_held_by(&self, Claim { attempt, executor, now, only_reports, .. }: &Claim) -> bool {
        let is_of = |holder: &Holder| {
            holder.executor == *executor && holder.has_started != *only_reports && !holder.has_expired(*now)
        };
        *attempt == self.attempt && self.holder.as_ref().is_some_and(is_of)
    }

    fn has_ended(&self, attempt: u32) -> bool {
        attempt < self.attempt || (attempt == self.attempt && self.attempt_is_ended)
    }

    fn begin(&mut self, attempt: u32) {
        if attempt != self.attempt {
            (self.progress, self.n_lost) = (None, 0);
        }
        (self.attempt, self.attempt_is_ended) = (attempt, false);
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
        Ending::Released { reason, cut_off } => TaskEvent::TaskReleased { epoch, reason, cut_off },
    }
}

impl Handler for TaskLease {
    type Command = TaskCommand;
    type Event = TaskEvent;
    type Error = TaskError;

    fn decide(&self, command: TaskCommand) -> Result<Vec<TaskEvent>, TaskError> {
        match command {
            // A claim whose acknowledgement was lost is repeated.
            TaskCommand::Claim(claim) if self.is_held_by(&claim) => Ok(Vec::new()),
            TaskCommand::Claim(claim) => {
                let until = claim.now.plus(LEASE);
                Ok(vec![self.claim(claim, Some(until))?])
            }
            TaskCommand::ClaimForAgent { attempt, executor, now } => {
                if self.is_parked() && attempt == self.attempt {
                    return Err(TaskError::Parked);
                }
                Ok(vec![self.claim(Claim { attempt, executor, now, ..Claim::default() }, None)?])
            }
            TaskCommand::Progress { epoch, progress } => {
                self.check_holder(epoch)?;
                let is_news = self.progress.as_ref() != Some(&progress);
                Ok(is_news.then_some(TaskEvent::TaskProgressed { epoch, progress }).into_iter().collect())
            }
            TaskCommand::HandOver { epoch, executor, progress } => {
                self.check_holder(epoch)?;
                self.holder.as_ref().filter(|holder| holder.is_agent()).ok_or(TaskError::StaleEpoch(epoch))?;
                let (attempt, next) = (self.attempt, epoch.saturating_add(1));
                let reason = format!("handed over to {}", executor.name);
                let (lease_until, prompt, cut_off, only_reports) = (None, None, false, false);
                Ok(vec![
                    TaskEvent::TaskReleased { epoch, reason, cut_off },
                    TaskEvent::TaskClaimed {
                        attempt,
                        executor,
                        lease_until,
                        epoch: next,
                        cut_off,
                        only_reports,
                        prompt,
                    },
                    TaskEvent::TaskProgressed { epoch: next, progress },
                ])
            }
            TaskCommand::Unpark { by } => {
                Ok(self.is_parked().then_some(TaskEvent::TaskUnparked { by }).into_iter().collect())
            }
            TaskCommand::End { epoch, usage, ending } => {
                self.check_holder(epoch)?;
                let attempt = self.attempt;
                let used = (!usage.is_nothing()).then_some(TaskEvent::UsageReported { attempt, epoch, usage });
                Ok(used.into_iter().chain([ended(attempt, epoch, ending)]).collect())
            }
            TaskCommand::Report { claim, ending } => {
                let (attempt, until) = (claim.attempt, claim.now.plus(LEASE));
                let claimed = self.claim(Claim { only_reports: true, ..claim }, Some(until))?;
                Ok(vec![claimed, ended(attempt, self.epoch.saturating_add(1), ending)])
            }
            // Unless the log has that claim, or a later one.
            TaskCommand::Interrupt { attempt, epoch, executor } => {
                let is_of_another = |run: &Holder| epoch == self.epoch && run.executor != executor;
                let is_other = executor != Executor::default() && self.left().is_some_and(is_of_another);
                let is_news = !self.has_ended(attempt) && (attempt > self.attempt || epoch > self.epoch || is_other);
                let epoch = epoch.max(self.epoch.saturating_add(1));
                Ok(is_news.then_some(TaskEvent::TaskInterrupted { attempt, epoch, executor }).into_iter().collect())
            }
            TaskCommand::ReportLate { late } => {
                let is_news = self.late.as_ref().is_none_or(|known| known.epoch != late.epoch);
                Ok(is_news.then_some(TaskEvent::TaskReportedLate(late)).into_iter().collect())
            }
            TaskCommand::Withdraw { attempt } => Ok(self.withdraw(attempt).into_iter().collect()),
            TaskCommand::FireTimer { epoch, now, is_dead } => {
                let has_ended = |holder: &&Holder| epoch == self.epoch && (is_dead || holder.has_expired(now));
                let due = self.holder.as_ref().filter(has_ended);
                let due = due.map(|holder| holder.lease_until.map_or(now, |until| until.min(now)));
                Ok(due.map(|due| TaskEvent::TimerFired { epoch, due }).into_iter().collect())
            }
        }
    }

    fn apply(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::TaskClaimed { attempt, executor, lease_until, epoch, cut_off, only_reports, prompt: _ } => {
                self.begin(*attempt);
                // A coding agent that gives a task back has gone on with it.
                self.interrupted = self.left().filter(|_| *cut_off && lease_until.is_some()).cloned();
                self.epoch = *epoch;
                let (executor, epoch, lease_until) = (executor.clone(), *epoch, *lease_until);
                self.holder = Some(Holder { executor, epoch, lease_until, has_started: !only_reports });
            }
            TaskEvent::TaskProgressed { progress, .. } => {
                let executor = self.holder.as_ref().map(|holder| holder.executor.clone());
                self.session = executor.zip(progress.session.clone()).or(self.session.take());
                self.progress = Some(progress.clone());
            }
            TaskEvent::TaskUnparked { .. } => self.n_lost = 0,
            TaskEvent::TaskReleased { cut_off, .. } => {
                if *cut_off {
                    self.interrupted = self.left().cloned();
                }
                (self.holder, self.n_lost) = (None, 0);
            }
            TaskEvent::UsageReported { .. } => {}
            TaskEvent::TaskInterrupted { attempt, epoch, executor } => {
                self.begin(*attempt);
                self.epoch = *epoch;
                let (executor, lease_until) = (executor.clone(), None);
                self.interrupted = Some(Holder { executor, epoch: *epoch, lease_until, has_started: true });
                self.holder = None;
            }
            TaskEvent::TaskReportedLate(late) => self.late = Some(late.clone()),
            TaskEvent::TimerFired { .. } => {
                self.n_lost += u32::from(self.holder.as_ref().is_some_and(Holder::is_agent));
                self.interrupted = self.left().cloned();
                self.holder = None;
            }
            TaskEvent::TaskWithdrawn { attempt } => {
                (self.attempt, self.holder, self.attempt_is_ended) = (*attempt, None, true);
            }
            TaskEvent::TaskStopped { .. }
            | TaskEvent::TaskFailed { class: FailureClass::OutcomeUnknown | FailureClass::TimedOut, .. }
            | TaskEvent::TaskFailed { run: Some(RunDetails { signal: Some(_), .. }), .. } => {
                self.interrupted = self.left().cloned();
                (self.holder, self.attempt_is_ended) = (None, true);
            }
            TaskEvent::TaskCompleted { .. } | TaskEvent::TaskFailed { .. } | TaskEvent::NeedsClarification { .. } => {
                (self.holder, self.interrupted, self.attempt_is_ended) = (None, None, true);
            }
        }
    }
}
