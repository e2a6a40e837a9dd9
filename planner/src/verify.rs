//! Verifies a history: repeats recorded commands and reactions, and compares their events with the log.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use crewlog_mq::{Error, Event as MqEvent, Handler, Position, Recorded};
use serde_json::Value;

use crate::claim::{self, TaskCommand, TaskEvent, TaskLease};
use crate::event::{self, Command, Event};
use crate::model::{self, CallEvent, ModelCalls};
use crate::planner::Planner;
use crate::recorded::RestoreError;
use crate::sealed::{self, SEALED, SHREDDED};

/// The origin of the events of one aggregate in one append.
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Decided {
    /// A recorded command, by name; it gives the same events again.
    Command(String),
    /// A task's report, derived from the event; the planner reacts with the same events.
    Reaction,
    /// The log has no cause for them: not verified.
    Given,
    /// Their texts are sealed, and the key is missing: not verified.
    Sealed,
    /// The key of their texts was destroyed: not verified.
    Shredded,
}

impl Decided {
    /// The name of the command or of the variant.
    pub fn name(&self) -> &str {
        if let Self::Command(name) = self { name } else { self.into() }
    }
}

/// A place where the events that this version decides differ from the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at position {position}, {stream_id} {aggregate_id}, of {command}: {how}")]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub struct Difference {
    /// The first event that differs; the last of its append where this version decides more.
    pub position: Position,
    pub stream_id: String,
    pub aggregate_id: String,
    /// As recorded.
    pub command: String,
    pub how: How,
}

/// The difference between this version's decision and the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum How {
    #[error("{0}")]
    Unreadable(String),
    #[error("the log has its events, but this version refuses it: {0}")]
    Refused(String),
    /// Each event with its type, unset where there is none.
    #[error("the log has {}, and this version decides {}", shown(.log), shown(.decided))]
    Other { log: Option<String>, decided: Option<String> },
}

fn shown(event: &Option<String>) -> &str {
    event.as_deref().unwrap_or("nothing more")
}

/// The reason why a history cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// An event cannot be read.
    #[error(transparent)]
    Log(#[from] Error),
    /// This version decides different events.
    #[error(transparent)]
    Differs(Box<Difference>),
}

/// Verifies the history of one plan and its tasks. For a fork, that starts with the shared events.
#[derive(Debug, Default)]
pub struct Verifier {
    planner: Planner,
    /// Claims, by aggregate.
    claims: BTreeMap<String, TaskLease>,
    /// Calls of models, by aggregate.
    calls: BTreeMap<String, ModelCalls>,
    /// Reports that the planner has not reacted to, by the id of the event.
    reports: HashMap<u128, Command>,
}

impl Verifier {
    /// Applies the plan's events of one append, in order, without verifying them: they are verified elsewhere.
    ///
    /// # Errors
    /// [`Error::Decode`] with the position of an event that cannot be read.
    pub fn trust(&mut self, append: &[Recorded]) -> Result<(), Error> {
        for recorded in append {
            match recorded.stream_id.as_str() {
                event::STREAM => self.planner.apply(&recorded.decode()?),
                claim::STREAM => {
                    self.claims.entry(recorded.aggregate_id.clone()).or_default().apply(&recorded.decode()?);
                    self.remember(recorded)?;
                }
                model::STREAM => {
                    self.calls.entry(recorded.aggregate_id.clone()).or_default().apply(&recorded.decode()?);
                }
                _another_stream => {}
            }
        }
        Ok(())
    }

    /// Verifies the plan's events of one append, in order. Returns their origin, one for each aggregate.
    ///
    /// # Errors
    /// [`VerifyError`]; the verifier cannot be used after that.
    pub fn verify(&mut self, append: &[Recorded]) -> Result<Vec<Decided>, VerifyError> {
        // One append may hold the reactions to several reports.
        let cause = |of: &Recorded| of.metadata().ok().and_then(|metadata| metadata.causation_id);
        let is_of_one = |one: &Recorded, other: &Recorded| {
            (&one.stream_id, &one.aggregate_id) == (&other.stream_id, &other.aggregate_id) && cause(one) == cause(other)
        };
        let mut decided = Vec::new();
        for written in append.chunk_by(is_of_one) {
            match written[0].stream_id.as_str() {
                event::STREAM => {
                    let cause = written[0].metadata()?.causation_id;
                    let reaction = cause.and_then(|cause| self.reports.remove(&cause.as_u128()));
                    let how = again(&mut self.planner, written, Command::restore, reaction)?;
                    if how == Decided::Given {
                        check_given(&written[0])?;
                    }
                    decided.push(how);
                }
                claim::STREAM => {
                    let claim = self.claims.entry(written[0].aggregate_id.clone()).or_default();
                    decided.push(again(claim, written, TaskCommand::restore, None)?);
                    written.iter().try_for_each(|recorded| self.remember(recorded))?;
                }
                // Models are not called: their answers are in the events.
                model::STREAM => {
                    let calls = self.calls.entry(written[0].aggregate_id.clone()).or_default();
                    decided.push(again(calls, written, CallEvent::restore, None)?);
                }
                _another_stream => {}
            }
        }
        Ok(decided)
    }

    /// Keeps a report for the planner's reaction.
    fn remember(&mut self, recorded: &Recorded) -> Result<(), Error> {
        if let Some((_, task)) = claim::split_aggregate_id(&recorded.aggregate_id)
            && let event = recorded.decode::<TaskEvent>()?
            && event.is_report()
        {
            self.reports.insert(recorded.event_id.as_u128(), Command::HandleExecutorEvent { task, event });
        }
        Ok(())
    }
}

/// A plan that the parser did not make can only be verified with its command.
fn check_given(first: &Recorded) -> Result<(), VerifyError> {
    let Event::TasksPlanned { origin, .. } = first.decode()? else { return Ok(()) };
    if origin.planned_by.is_none() && origin.agent.is_none() {
        return Ok(());
    }
    let how = "this plan was proposed and its command was not recorded, so it cannot be replayed";
    Err(differs(first, "a proposal", How::Unreadable(how.into())))
}

fn differs(recorded: &Recorded, command: &str, how: How) -> VerifyError {
    let Recorded { position, stream_id, aggregate_id, .. } = recorded.clone();
    VerifyError::Differs(Box::new(Difference { position, stream_id, aggregate_id, command: command.to_owned(), how }))
}

/// Repeats the decision on the events of one aggregate in one append, and compares.
fn again<H: Handler>(
    handler: &mut H,
    written: &[Recorded],
    restore: impl Fn(&Value, &[H::Event]) -> Result<H::Command, RestoreError>,
    reaction: Option<H::Command>,
) -> Result<Decided, VerifyError>
where
    H::Event: MqEvent + PartialEq,
    H::Error: Display,
{
    let events = written.iter().map(|recorded| recorded.decode()).collect::<Result<Vec<_>, _>>()?;
    if let Some(decided) = undecryptable(written) {
        events.iter().for_each(|event| handler.apply(event));
        return Ok(decided);
    }
    let extra = written[0].metadata()?.extra.unwrap_or_default();
    let kept = extra.get("command").filter(|kept| !kept.is_null());
    let asked = kept.map_or_else(|| "what a task reported".to_owned(), Value::to_string);
    let differs = |place: usize, how| differs(&written[place.min(written.len() - 1)], &asked, how);
    let (decided, command) = match (kept, reaction) {
        (Some(kept), _) => {
            let command = restore(kept, &events).map_err(|error| differs(0, How::Unreadable(error.to_string())))?;
            let name = kept.as_object().and_then(|kept| kept.keys().next()).cloned().unwrap_or_default();
            (Decided::Command(name), command)
        }
        (None, Some(command)) => (Decided::Reaction, command),
        (None, None) => {
            events.iter().for_each(|event| handler.apply(event));
            return Ok(Decided::Given);
        }
    };
    let new = handler.process(command).map_err(|refusal| differs(0, How::Refused(refusal.to_string())))?;
    let n_events = events.len().max(new.len());
    match (0..n_events).find(|place| events.get(*place) != new.get(*place)) {
        None => Ok(decided),
        Some(place) => {
            let said = |event: Option<&H::Event>| event.map(said).transpose();
            let (log, decided) = (said(events.get(place))?, said(new.get(place))?);
            Err(differs(place, How::Other { log, decided }))
        }
    }
}

/// The reason why texts of the events or of their command cannot be read, if so. A broken seal is a difference instead.
fn undecryptable(written: &[Recorded]) -> Option<Decided> {
    let (mut is_sealed, mut is_shredded) = (false, false);
    // In a plan that is not sealed these texts are ordinary words.
    for recorded in written.iter().filter(|recorded| sealed::key_of(&recorded.tags).is_some()) {
        for json in [&recorded.data, &recorded.metadata] {
            is_sealed |= json.contains(&format!("\"{SEALED}\""));
            is_shredded |= json.contains(&format!("\"{SHREDDED}\""));
        }
    }
    match (is_sealed, is_shredded) {
        (true, _) => Some(Decided::Sealed),
        (false, true) => Some(Decided::Shredded),
        (false, false) => None,
    }
}

/// An event with its type, in the form of the log.
fn said<E: MqEvent>(event: &E) -> Result<String, Error> {
    Ok(format!("{} {}", event.event_type(), event.encode()?))
}
