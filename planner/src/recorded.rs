//! Recorded commands: JSON in `extra.command` of the first event of an append, without texts that the events repeat.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::claim::{Claim, Ending, TaskCommand, claimed_at};
use crate::event::{Amendment, Command, Event, TaskEvent};
use crate::plan::Proposal;

/// The most bytes of amendments that are recorded as given; longer ones are restored from the events.
pub const RECORDED_AMENDMENTS_BYTES_MAX: usize = 64 << 10;

/// The reason why a recorded command cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is not a command of this version.
    #[error("the recorded command has an unknown form: {0}")]
    Form(#[from] serde_json::Error),
    /// The command did not lead to these events.
    #[error("the recorded command {command} cannot be completed from its events")]
    NotInEvents {
        /// Its name.
        command: String,
    },
}

/// The JSON of a command, an object with its name as the only key, even if it has no fields.
pub(crate) fn record(command: &impl Serialize) -> Value {
    match serde_json::to_value(command).expect("names, numbers and texts can always be written as JSON") {
        Value::String(name) => json!({ name: null }),
        whole => whole,
    }
}

/// Reads a command and lets `fill` add the fields that the events of its append repeat.
pub(crate) fn restore<C: DeserializeOwned>(
    recorded: &Value,
    fill: impl FnOnce(&mut C) -> Option<()>,
) -> Result<C, RestoreError> {
    let mut command = C::deserialize(recorded)?;
    let name = || recorded.as_object().and_then(|command| command.keys().next()).cloned().unwrap_or_default();
    fill(&mut command).ok_or_else(|| RestoreError::NotInEvents { command: name() })?;
    Ok(command)
}

impl Command {
    /// Its recorded form, for [`crewlog_mq::Cause::keeping`].
    pub fn recorded(&self) -> Value {
        if let Self::Amend { amendments, .. } | Self::Fork { amendments, .. } = self
            && record(amendments).to_string().len() > RECORDED_AMENDMENTS_BYTES_MAX
        {
            let mut command = self.clone();
            if let Self::Amend { amendments, .. } | Self::Fork { amendments, .. } = &mut command {
                *amendments = abridged(amendments);
            }
            return record(&command);
        }
        record(self)
    }

    /// The command from its recorded form and the events of its append.
    ///
    /// # Errors
    /// [`RestoreError`] when either does not come from [`Command::recorded`] and the planner.
    pub fn restore(recorded: &Value, events: &[Event]) -> Result<Self, RestoreError> {
        restore(recorded, |command: &mut Self| command.fill(events))
    }

    fn fill(&mut self, events: &[Event]) -> Option<()> {
        let first = events.first();
        match self {
            Self::Initialize { proposal, config: settings, .. } => {
                let Event::TasksPlanned { tasks, title, source, config, context, origin, .. } = first? else {
                    return None;
                };
                // The tasks already have their attachments.
                let (tasks, title, source) = (tasks.clone(), title.clone(), source.clone());
                **proposal = Proposal { tasks, title, source, context: context.clone(), origin: origin.clone() };
                settings.clone_from(config);
            }
            Self::Fork { parent, at, reason, pauses, amendments } => {
                let Event::PlanForked { parent: of, at: position, reason: why, is_draft } = first? else { return None };
                (*parent, *at, *reason, *pauses) = (of.clone(), *position, why.clone(), *is_draft);
                let is_amended = |event: &&Event| matches!(event, Event::TasksAmended { .. });
                complete(amendments, events.iter().find(is_amended));
            }
            Self::Amend { amendments, .. } => complete(amendments, first),
            Self::Ask { question, default, .. } => {
                let Event::ClarificationRequested { question: text, default: answer, .. } = first? else { return None };
                question.clone_from(text);
                default.clone_from(answer);
            }
            Self::Answer { answer, .. } => {
                let Event::ClarificationReceived { answer: text, .. } = first? else { return None };
                answer.clone_from(text);
            }
            Self::AnswerAndAsk { answer, further, .. } => {
                let [
                    Event::ClarificationRequested { question, .. },
                    Event::ClarificationReceived { answer: text, .. },
                    ..,
                ] = events
                else {
                    return None;
                };
                answer.clone_from(text);
                further.clone_from(question);
            }
            Self::HandleExecutorEvent { .. }
            | Self::NameCheckpoint { .. }
            | Self::Continue
            | Self::SetTimers { .. }
            | Self::FireTimer { .. }
            | Self::CompactContext { .. }
            | Self::Cancel { .. }
            | Self::Pause { .. }
            | Self::Resume
            | Self::PauseFromParent { .. }
            | Self::ResumeFromParent
            | Self::CancelFromParent { .. }
            | Self::CancelAndUndo { .. }
            | Self::Withdraw { .. }
            | Self::RetryNow { .. }
            | Self::Retry { .. }
            | Self::Configure { .. }
            | Self::PauseTask { .. }
            | Self::ResumeTask { .. } => {}
        }
        Some(())
    }
}

/// Amendments without their long texts: empty definitions and an empty source are filled in from the event.
fn abridged(amendments: &[Amendment]) -> Vec<Amendment> {
    let short = amendments.iter().filter_map(|amendment| match amendment {
        // The definitions already include the dependencies that dependents inherited from a skipped task.
        Amendment::Skip { task, .. } => Some(Amendment::Skip { task: *task, keeps_order: false }),
        Amendment::Done { .. } => Some(amendment.clone()),
        Amendment::Source { .. } => Some(Amendment::Source { text: String::new() }),
        Amendment::Add { .. } | Amendment::Edit { .. } | Amendment::Reorder { .. } | Amendment::Define { .. } => None,
    });
    let mut short = short.collect::<Vec<_>>();
    short.sort_by_key(|amendment| !matches!(amendment, Amendment::Done { .. }));
    short.insert(0, Amendment::Define { tasks: Vec::new() });
    short
}

fn complete(amendments: &mut Vec<Amendment>, amended: Option<&Event>) {
    let (defined, new_source) = match amended {
        Some(Event::TasksAmended { tasks, source, .. }) => (Some(tasks), source.as_ref()),
        Some(_) | None => (None, None),
    };
    amendments.retain_mut(|amendment| match amendment {
        Amendment::Define { tasks } if tasks.is_empty() => defined.map(|defined| tasks.clone_from(defined)).is_some(),
        Amendment::Source { text } if text.is_empty() => new_source.map(|source| text.clone_from(source)).is_some(),
        Amendment::Add { .. }
        | Amendment::Edit { .. }
        | Amendment::Skip { .. }
        | Amendment::Reorder { .. }
        | Amendment::Done { .. }
        | Amendment::Source { .. }
        | Amendment::Define { .. } => true,
    });
}

impl TaskCommand {
    /// Its recorded form, for [`crewlog_mq::Cause::keeping`].
    pub fn recorded(&self) -> Value {
        record(self)
    }

    /// The command from its recorded form and the events of its append.
    ///
    /// # Errors
    /// [`RestoreError`] when either does not come from [`TaskCommand::recorded`] and the task.
    pub fn restore(recorded: &Value, events: &[TaskEvent]) -> Result<Self, RestoreError> {
        restore(recorded, |command: &mut Self| {
            match command {
                Self::End { usage, ending, epoch } => {
                    (*epoch, *ending) = events.last().and_then(ending_of)?;
                    if let Some(TaskEvent::UsageReported { usage: used, .. }) = events.first() {
                        *usage = *used;
                    }
                }
                Self::Claim(claim) => claim.fill(events.first()?)?,
                Self::ClaimForAgent { attempt, executor, .. } => {
                    let mut claim = Claim::default();
                    claim.fill(events.first()?)?;
                    (*attempt, *executor) = (claim.attempt, claim.executor);
                }
                Self::Report { claim, ending } => {
                    claim.fill(events.first()?)?;
                    ((_, *ending), claim.only_reports) = (events.last().and_then(ending_of)?, false);
                }
                Self::HandOver { executor, progress, .. } => {
                    let mut claim = Claim::default();
                    claim.fill(events.get(1)?)?;
                    let TaskEvent::TaskProgressed { progress: reported, .. } = events.last()? else { return None };
                    *executor = claim.executor;
                    progress.clone_from(reported);
                }
                Self::Progress { progress, .. } => {
                    let TaskEvent::TaskProgressed { progress: reported, .. } = events.last()? else { return None };
                    progress.clone_from(reported);
                }
                Self::ReportLate { late } => {
                    let TaskEvent::TaskReportedLate(reported) = events.last()? else { return None };
                    late.clone_from(reported);
                }
                Self::Unpark { .. } | Self::Interrupt { .. } | Self::Withdraw { .. } | Self::FireTimer { .. } => {}
            }
            Some(())
        })
    }
}

impl Claim {
    fn fill(&mut self, claimed: &TaskEvent) -> Option<()> {
        let TaskEvent::TaskClaimed { attempt, executor, lease_until, only_reports, prompt, .. } = claimed else {
            return None;
        };
        (self.attempt, self.executor, self.only_reports) = (*attempt, executor.clone(), *only_reports);
        self.now = lease_until.map(claimed_at).unwrap_or_default();
        self.prompt.clone_from(prompt);
        Some(())
    }
}

/// The ending that an event records, and the epoch of its holder.
fn ending_of(event: &TaskEvent) -> Option<(u64, Ending)> {
    match event.clone() {
        TaskEvent::TaskCompleted { epoch, result, run, .. } => Some((epoch, Ending::Completed { result, run })),
        TaskEvent::TaskFailed { epoch, error, class, run, .. } => Some((epoch, Ending::Failed { error, class, run })),
        TaskEvent::NeedsClarification { epoch, question, default, .. } => {
            Some((epoch, Ending::Asked { question, default }))
        }
        TaskEvent::TaskStopped { epoch, reason } => Some((epoch, Ending::Stopped { reason })),
        TaskEvent::TaskReleased { epoch, reason, cut_off } => Some((epoch, Ending::Released { reason, cut_off })),
        TaskEvent::TaskClaimed { .. }
        | TaskEvent::TaskProgressed { .. }
        | TaskEvent::TaskUnparked { .. }
        | TaskEvent::UsageReported { .. }
        | TaskEvent::TaskWithdrawn { .. }
        | TaskEvent::TaskInterrupted { .. }
        | TaskEvent::TaskReportedLate(_)
        | TaskEvent::TimerFired { .. } => None,
    }
}
