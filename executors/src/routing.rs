//! Requests between agents on their way: a task that asks another agent becomes a request on the log, a plan of that
//! agent answers it, and the answer goes back to the task.
//!
//! Whoever asks waits on the request alone: it is answered, runs out of time by log time, or is withdrawn. [`host`] hands
//! in what the answering plans found, also when it comes too late to count. Words go and words come back; no agent is
//! ever given a tool of another.

use std::collections::BTreeSet;

use crewlog_mq::{Cause, Envelope, Error, EventStore, ExecuteError, Handler, Query, Runner, Start};
use crewlog_planner::agents::requests::{
    self, Request, RequestCommand, RequestEvent, RequestRefused, Standing, request_id,
};
use crewlog_planner::claim::Ending;
use crewlog_planner::event::{self, Event, FailureClass, Usage, under_tag};
use crewlog_planner::plan::sub_plan_id;
use crewlog_planner::protocol::{AgentResponse, Asking};
use futures::StreamExt;
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::planning::{is_for_ever, planner_of, wait_out};
use crate::run::{Stop, wanted};
use crate::subplans::{Outer, Wanted, ending};
use crate::worker::Scope;

/// The name under which tasks that ask an agent are claimed.
pub const ROUTER: &str = "router";
/// The tag of plans that answer a request.
const ANSWERS_TAG: &str = "answers-request";

impl Outer<'_> {
    /// Puts the request of a task to the other agent, and waits until it is answered or its time is up, or until `stop`
    /// says otherwise.
    /// What the plan that answers has used up until then is the task's.
    pub(crate) async fn ask(self, asking: &Asking, stop: &mut watch::Receiver<Option<Stop>>) -> (Ending, Usage) {
        let ending = self.put_to(asking, stop).await;
        self.with_usage(ending).await
    }

    async fn put_to(self, asking: &Asking, stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
        let task = self.task();
        let target = asking.step.target_agent;
        let mut request = self.request();
        let answers = self.registry.abilities().get(&target).cloned().unwrap_or_else(BTreeSet::new);
        let ask = RequestCommand::Ask { task: task.clone(), asking: asking.clone(), answers, now: self.store.now() };
        if let Err(refusal) = put(&mut request, ask, self.cause).await {
            return failed(format!("the request was refused: {refusal}"), FailureClass::Task);
        }
        let is_open = request.handler().asked().is_some_and(|asked| asked.standing == Standing::Open);
        if is_open {
            let wanted = Wanted::Answer(&asking.step);
            if let Err(Ending::Failed { error, .. }) = self.make(wanted, &[ANSWERS_TAG]).await {
                let response = AgentResponse::Refusal { reason: error };
                let answer = RequestCommand::Answer { response, now: self.store.now() };
                // What is refused here stands as it stood.
                let _ = put(&mut request, answer, self.cause).await;
            }
        }
        tokio::select! {
            ending = self.answered(&mut request, asking) => ending,
            stop = wanted(stop) => {
                if let Stop::Cancelled { reason } = &stop {
                    let withdraw = RequestCommand::Withdraw { reason: reason.clone() };
                    let _ = put(&mut self.request(), withdraw, self.cause).await;
                    self.cancel(&format!("the answer is no longer wanted: {reason}")).await;
                }
                stop.ending()
            }
        }
    }

    fn request(self) -> Runner<Request> {
        Runner::new(self.store.clone(), requests::STREAM, &request_id(&self.task()), self.tags.to_vec())
    }

    /// Waits until the request no longer stands open.
    async fn answered(self, request: &mut Runner<Request>, asking: &Asking) -> Ending {
        let query = Query::aggregate(requests::STREAM, &request_id(&self.task()));
        let mut events = match self.store.subscribe_from::<RequestEvent>(&query, Start::Beginning) {
            Ok(events) => events,
            Err(error) => return failed(format!("the request cannot be followed: {error}"), FailureClass::Task),
        };
        let mut seen = Request::default();
        loop {
            let Some(asked) = seen.asked().or_else(|| request.handler().asked()) else {
                return failed("the request is not in the log".into(), FailureClass::Task);
            };
            let target = asking.step.target_agent;
            match &asked.standing {
                Standing::Open => {}
                Standing::Answered(AgentResponse::Answer { text }) => {
                    return Ending::Completed { result: text.clone(), run: None };
                }
                Standing::Answered(AgentResponse::Refusal { reason }) => {
                    return failed(format!("the {target} agent has no answer: {reason}"), FailureClass::Task);
                }
                Standing::TimedOut => {
                    let ms = asking.step.timeout_ms;
                    let error = format!("timed out: the {target} agent had no answer within {ms} ms");
                    return failed(error, FailureClass::TimedOut);
                }
                Standing::Withdrawn => return failed("the request was withdrawn".into(), FailureClass::Task),
            }
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(Envelope { event, .. })) => seen.apply(&event),
                    Some(Err(error)) if is_for_ever(&error) => {
                        return failed(format!("the request cannot be read: {error}"), FailureClass::Task);
                    }
                    Some(Err(error)) => tracing::warn!(%error, "a request could not be read and is read again"),
                    None => return failed("the request can no longer be followed".into(), FailureClass::NotStarted),
                },
                () = tokio::time::sleep(asked.until.since(self.store.now())) => {
                    let _ = put(request, RequestCommand::Tick { now: self.store.now() }, self.cause).await;
                    seen = request.handler().clone();
                }
            }
        }
    }
}

fn failed(error: String, class: FailureClass) -> Ending {
    Ending::Failed { error, class, run: None }
}

/// Gives a request a command, however long the log takes.
async fn put(request: &mut Runner<Request>, command: RequestCommand, cause: &Cause) -> Result<(), RequestRefused> {
    let cause = cause.clone().keeping(command.recorded());
    let mut backoff = Backoff::new();
    loop {
        match request.execute(command.clone(), &cause).await {
            Ok(_) => return Ok(()),
            Err(ExecuteError::Refused(refusal)) => return Err(refusal),
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => {
                if !wait_out(&error, &mut backoff).await {
                    return Ok(());
                }
            }
        }
    }
}

/// Hands in what plans that answer requests have found, of one plan's requests or of all, for ever. Drop it to end it.
/// What was handed in before changes nothing.
///
/// # Errors
/// Only when the log refuses to be followed.
pub async fn host(store: EventStore, scope: Scope) -> Result<(), Error> {
    let under = match &scope {
        Scope::Plan(plan) => vec![under_tag(plan)],
        Scope::All => Vec::new(),
    };
    let query = Query {
        stream_id: event::STREAM.into(),
        event_type: Some("PlanningCompleted".into()),
        tags: [vec![ANSWERS_TAG.to_owned()], under].concat(),
        ..Query::default()
    };
    let mut ended = store.subscribe_from::<Event>(&query, Start::Beginning)?;
    while let Some(envelope) = ended.next().await {
        match envelope {
            Ok(envelope) => {
                let mut backoff = Backoff::new();
                while let Err(error) = hand_in(&store, &envelope).await {
                    if !wait_out(&error, &mut backoff).await {
                        break;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "the end of a plan is passed over"),
        }
    }
    Ok(())
}

async fn hand_in(store: &EventStore, envelope: &Envelope<Event>) -> Result<(), Error> {
    let Event::PlanningCompleted { summary, outcome, .. } = &envelope.event else { return Ok(()) };
    let (plan, tags) = (&envelope.recorded.aggregate_id, envelope.recorded.tags.clone());
    let mut planner = planner_of(store, plan, tags).await?;
    planner.catch_up().await?;
    let state = planner.handler().state();
    // A fork of such a plan answers nobody.
    let Some(task) = state.origin().parent.as_ref().filter(|task| sub_plan_id(task) == *plan) else { return Ok(()) };
    let response = match ending(plan, state, summary, *outcome) {
        Ending::Completed { result, .. } => AgentResponse::Answer { text: result },
        Ending::Failed { error, .. } => AgentResponse::Refusal { reason: error },
        Ending::Asked { question: reason, .. } | Ending::Stopped { reason } | Ending::Released { reason } => {
            AgentResponse::Refusal { reason }
        }
    };
    let asked = Query::aggregate(requests::STREAM, &request_id(task));
    let first = store.read(&asked, crewlog_mq::Range::default(), 1).await?;
    let Some(first) = first.events.into_iter().next() else { return Ok(()) };
    let mut request = Runner::<Request>::new(store.clone(), requests::STREAM, &request_id(task), first.tags);
    let answer = RequestCommand::Answer { response, now: store.now() };
    if let Err(refusal) = put(&mut request, answer, &Cause::event(&envelope.recorded)).await {
        tracing::warn!(%refusal, plan, "an answer is refused");
    }
    Ok(())
}
