//! `replay --verify`: decides the commands of a plan, or of all plans, again. It appends and executes nothing.

use std::collections::BTreeSet;
use std::io::Write;

use crewlog_executors::history::History;
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::verify::{Decided, Difference, How, Verifier, VerifyError};
use crewlog_planner::{event, model};
use futures::{Stream, TryStreamExt};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::queries;
use crate::sealing::KeyPlace;
use crate::session::Session;
use crate::text::{count, one_line};

/// Characters of a difference in the text; JSON has all of it.
const DIFFERENCE_CHARS_MAX: usize = 2_000;

/// The counts of a verification, and the first difference.
#[derive(Debug, Default, Serialize)]
struct VerifiedJson {
    plans: usize,
    events: usize,
    commands: usize,
    reactions: usize,
    given: usize,
    sealed: usize,
    shredded: usize,
    #[serde(serialize_with = "difference_json")]
    difference: Option<Difference>,
}

pub async fn verify(session: &Session, plan: Option<&str>) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let head = store.head().await?;
    let mut verified = VerifiedJson::default();
    match plan {
        Some(typed) => {
            let plan = queries::find_plan(&store, typed).await?;
            verified.plan(&store, &plan, head, false).await?;
        }
        None => {
            let plans = plans(&store, head).await?;
            for plan in &plans {
                // The events that a fork shares are verified with its parent.
                verified.plan(&store, plan, head, true).await?;
            }
            // Requests to models about texts that did not become plans.
            let plans = plans.into_iter().collect::<BTreeSet<_>>();
            let asked = store.records(&Query::stream(model::STREAM), Range::up_to(head));
            let asked = asked.try_filter(|asked| std::future::ready(!plans.contains(&asked.aggregate_id)));
            verified.appends(asked, Position(0)).await?;
        }
    }
    session.print(&verified, |to| verified.print(to, &session.place.keys))?;
    Ok(if verified.difference.is_some() { Code::Differs } else { Code::Done })
}

impl VerifiedJson {
    fn print(&self, mut to: impl Write, keys: &KeyPlace) -> std::io::Result<()> {
        let Self { plans, events, commands, reactions, given, sealed, shredded, difference } = self;
        let (plans, events, commands) = (count(*plans, "plan"), count(*events, "event"), count(*commands, "command"));
        let reactions = count(*reactions, "reaction");
        match difference {
            Some(difference) => writeln!(to, "{}", one_line(&difference.to_string(), DIFFERENCE_CHARS_MAX))?,
            None => writeln!(to, "the same is decided today: {plans}, {events}, {commands}, {reactions}")?,
        }
        if *given > 0 {
            writeln!(to, "{} without a recorded reason: trusted", count(*given, "append"))?;
        }
        if *sealed > 0 {
            let key = match keys.is_given() {
                false => "their key is given with --key-file FILE",
                true => "this --key-file, with the keys in --keys FOLDER, does not open them",
            };
            writeln!(to, "{} sealed, and not decided again: {key}", count(*sealed, "append"))?;
        }
        if *shredded > 0 {
            writeln!(to, "{} shredded, and never to be decided again", count(*shredded, "append"))?;
        }
        Ok(())
    }

    /// Verifies a plan up to its first difference; of several plans the first difference in the log is kept. The events
    /// that a fork shares with its parent may be trusted.
    async fn plan(
        &mut self,
        store: &EventStore,
        plan: &str,
        head: Position,
        is_shared_trusted: bool,
    ) -> Result<(), Failure> {
        self.plans += 1;
        let history = History::of(store, plan).await?;
        let trusted = history.parent().filter(|_| is_shared_trusted).map_or(Position(0), |(_, at)| at);
        self.appends(history.records(store, &Query::all(), Range::up_to(head)), trusted).await
    }

    /// Verifies a part of the log and trusts everything up to a position.
    async fn appends(
        &mut self,
        records: impl Stream<Item = Result<Recorded, Error>>,
        trusted: Position,
    ) -> Result<(), Failure> {
        let mut verifier = Verifier::default();
        let mut records = std::pin::pin!(records);
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
                Err(VerifyError::Log(error)) => return Err(error.into()),
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

/// All plans, the oldest first.
async fn plans(store: &EventStore, head: Position) -> Result<Vec<String>, Failure> {
    let (mut plans, mut known) = (Vec::new(), BTreeSet::new());
    let query = Query::stream(event::STREAM).of_types(["TasksPlanned", "PlanForked"]);
    queries::for_each(store, None, &query, Range::up_to(head), |recorded| {
        plans.extend(known.insert(recorded.aggregate_id.clone()).then(|| recorded.aggregate_id.clone()));
        Ok(())
    })
    .await?;
    Ok(plans)
}
