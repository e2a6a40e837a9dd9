//! Verifies plans of the log: repeats their recorded decisions, and reports where this version decides other events.

use std::collections::BTreeSet;
use std::future::ready;
use std::pin::pin;

use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::verify::{Decided, Difference, How, Verifier, VerifyError};
use crewlog_planner::{event, model};
use futures::{Stream, TryStreamExt};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::history::History;

/// The counts of a verification, and its result. As JSON an object of these fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The plans read.
    pub plans: usize,
    /// The events compared, including those of the append that differs.
    pub events: usize,
    /// The recorded commands that gave the same events again.
    pub commands: usize,
    /// The reactions of planners to reports of tasks, likewise.
    pub reactions: usize,
    /// The appends without a recorded cause: not verified.
    pub given: usize,
    /// The appends whose texts are sealed with a missing key: not verified.
    pub sealed: usize,
    /// The appends whose key was destroyed: not verified.
    pub shredded: usize,
    /// The difference with the lowest position. As JSON `position`, `stream_id`, `aggregate_id` and `command`, its message
    /// as `what`, and the differing events as `log` and `decided`, null where there is none.
    #[serde(serialize_with = "difference_json")]
    pub difference: Option<Difference>,
}

/// Verifies the history of a plan, or else all plans and requests to models, up to the present end of the log. It appends
/// nothing. A history is read up to its first difference.
///
/// # Errors
/// A fault of the log, or [`Error::Decode`] for an event that cannot be read. A difference is no error.
pub async fn verify(store: &EventStore, plan: Option<&str>) -> Result<Verification, Error> {
    let (mut verification, up_to_head) = (Verification::default(), Range::up_to(store.head().await?));
    if let Some(plan) = plan {
        let history = History::of(store, plan).await?;
        verification.plans = 1;
        verification.appends(history.records(store, &Query::all(), up_to_head), Position(0)).await?;
        return Ok(verification);
    }
    let begun = Query::stream(event::STREAM).of_types(["TasksPlanned", "PlanForked"]);
    let begun = store.records(&begun, up_to_head).map_ok(|first| first.aggregate_id).try_collect::<Vec<_>>().await?;
    let mut plans = BTreeSet::new();
    for plan in begun {
        if !plans.insert(plan.clone()) {
            continue;
        }
        let history = History::of(store, &plan).await?;
        // The events that a fork shares are verified with its parent.
        let trusted = history.parent().map_or(Position(0), |(_, at)| at);
        verification.appends(history.records(store, &Query::all(), up_to_head), trusted).await?;
    }
    verification.plans = plans.len();
    // Requests to models about texts that did not become plans.
    let asked = store.records(&Query::stream(model::STREAM), up_to_head);
    let asked = asked.try_filter(|asked| ready(!plans.contains(&asked.aggregate_id)));
    verification.appends(asked, Position(0)).await?;
    Ok(verification)
}

impl Verification {
    /// Verifies a part of the log and trusts everything up to a position.
    async fn appends(
        &mut self,
        records: impl Stream<Item = Result<Recorded, Error>>,
        trusted: Position,
    ) -> Result<(), Error> {
        let mut verifier = Verifier::default();
        let mut records = pin!(records);
        let (mut append, mut next): (Vec<Recorded>, _) = (Vec::new(), records.try_next().await?);
        while let Some(recorded) = next {
            next = records.try_next().await?;
            let append_start = recorded.append_start;
            append.push(recorded);
            if next.as_ref().is_some_and(|next| next.append_start == append_start) {
                continue;
            }
            let events = std::mem::take(&mut append);
            if events[0].position <= trusted {
                verifier.trust(&events)?;
                continue;
            }
            self.events += events.len();
            match verifier.verify(&events) {
                Ok(decided) => decided.iter().for_each(|decided| self.count(decided)),
                Err(VerifyError::Log(error)) => return Err(error),
                Err(VerifyError::Differs(difference)) => {
                    let known = self.difference.as_ref().map(|known| known.position);
                    if known.is_none_or(|known| difference.position < known) {
                        self.difference = Some(*difference);
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, decided: &Decided) {
        match decided {
            Decided::Command(_) => self.commands += 1,
            Decided::Reaction => self.reactions += 1,
            Decided::Given => self.given += 1,
            Decided::Sealed => self.sealed += 1,
            Decided::Shredded => self.shredded += 1,
        }
    }
}

fn difference_json<S: Serializer>(difference: &Option<Difference>, to: S) -> Result<S::Ok, S::Error> {
    let json = difference.as_ref().map(|difference| {
        let Difference { position, stream_id, aggregate_id, command, how } = difference;
        let (log, decided) = match how {
            How::Other { log, decided } => (log.as_ref(), decided.as_ref()),
            How::Unreadable(_) | How::Refused(_) => (None, None),
        };
        json!({
            "position": position, "stream_id": stream_id, "aggregate_id": aggregate_id, "command": command,
            "what": difference.to_string(), "log": log, "decided": decided,
        })
    });
    json.serialize(to)
}
