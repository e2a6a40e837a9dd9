//! Waiting for the log: events that concern an agent, and answers of the person.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use crewlog_executors::crew::{TaskState, TaskSummary};
use crewlog_mq::{Followed, Position, Query, Recorded, Start};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::asks::{self, Answer, Ask, AskEvent, Wanted};
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::messages::{self, MessageEvent};
use crewlog_planner::event;
use futures::{Stream, StreamExt};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::object;
use crate::mcp::args::Args;
use crate::mcp::identity::Member;
use crate::mcp::reply::{Refused, beginning};
use crate::mcp::server::Server;

/// The most events in a result.
const EVENTS_MAX: usize = 20;
/// How long events that come together are collected.
const TOGETHER: Duration = Duration::from_millis(30);
const CHARS_MAX: usize = 250;

/// What an agent waits for.
struct Interest<'a> {
    member: &'a Member,
    project: &'a str,
    kinds: BTreeSet<String>,
    /// Its leases and tasks when it began to wait.
    leases: BTreeSet<u64>,
    tasks: BTreeSet<String>,
}

impl Server {
    pub async fn wait_for_events(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let kinds: BTreeSet<_> = args.strings("kinds").into_iter().collect();
        if let Some(unknown) =
            kinds.iter().find(|kind| !["message", "lease", "task", "answer"].contains(&kind.as_str()))
        {
            let message = format!("kinds are message, lease, task and answer, not {unknown:?}");
            return Err(Refused::invalid("invalid_argument", message));
        }
        let deadline = Instant::now() + args.seconds("timeout_seconds");
        let crew = self.crew();
        let since = match args.position("since") {
            Some(since) => since,
            None => crew.store().head().await?,
        };
        let agent = &member.caller.agent;
        let interest = Interest {
            member,
            project: crew.project(),
            kinds,
            leases: crew.leases().await?.of_agent(agent).map(|(number, _)| number).collect(),
            tasks: crew.tasks_of(agent).await?.into_iter().collect(),
        };
        let items = crew.store().follow_marked(&crew.news(), Start::After(since));
        let (events, position) = self.collect(&interest, items, since, deadline).await?;
        let timed_out = events.is_empty();
        let status = if timed_out { "timed_out" } else { "ok" };
        Ok(object(json!({ "status": status, "events": events, "position": position, "timed_out": timed_out })))
    }

    /// Collects events until one was found and no more are ready, or the time is up.
    async fn collect(
        &self,
        interest: &Interest<'_>,
        items: impl Stream<Item = crewlog_mq::Result<Followed>>,
        since: Position,
        deadline: Instant,
    ) -> Result<(Vec<Value>, Position), Refused> {
        let (mut items, mut events, mut position) = (pin!(items), Vec::new(), since);
        let mut until = deadline;
        while events.len() < EVENTS_MAX {
            let Ok(item) = timeout_at(until, items.next()).await else { break };
            match item {
                Some(Ok(Followed::Event(recorded))) => {
                    position = recorded.position;
                    let Some((kind, summary)) = self.concerns(interest, &recorded).await? else { continue };
                    events
                        .push(json!({ "position": position, "kind": kind, "summary": beginning(&summary, CHARS_MAX) }));
                    until = deadline.min(Instant::now() + TOGETHER);
                }
                Some(Ok(Followed::CaughtUp(at))) => {
                    position = position.max(at);
                    if !events.is_empty() {
                        break;
                    }
                }
                Some(Err(error)) if error.is_final() => return Err(error.into()),
                Some(Err(error)) => tracing::warn!(%error, "an event is passed over"),
                None => break,
            }
        }
        Ok((events, position))
    }

    /// What an event means to an agent; nothing if it does not concern it.
    async fn concerns(
        &self,
        interest: &Interest<'_>,
        recorded: &Recorded,
    ) -> Result<Option<(&'static str, String)>, Refused> {
        let stream = recorded.stream_id.as_str();
        if interest.wants("message") && stream == messages::STREAM {
            return Ok(interest.message(recorded.decode()?).map(|summary| ("message", summary)));
        }
        if interest.wants("lease") && stream == leases::STREAM {
            return Ok(interest.lease(&recorded.decode()?).map(|summary| ("lease", summary)));
        }
        if interest.wants("answer") && stream == asks::STREAM {
            return Ok(self.answer_in(interest, recorded.decode()?).await?.map(|summary| ("answer", summary)));
        }
        if interest.wants("task") && [event::STREAM, claim::STREAM].contains(&stream) {
            return Ok(self.task_in(interest, recorded).await?.map(|summary| ("task", summary)));
        }
        Ok(None)
    }

    async fn answer_in(&self, interest: &Interest<'_>, event: AskEvent) -> Result<Option<String>, Refused> {
        let AskEvent::PersonAnswered { number, answer, .. } = event else { return Ok(None) };
        let asks = self.crew().asks().await?;
        let is_own = asks.answer(number).is_some_and(|(ask, _)| ask.agent == interest.member.caller.agent);
        Ok(is_own.then(|| format!("question {number} was answered: {}", answer.text)))
    }

    /// A task became ready, or a task of the agent changed by another hand.
    async fn task_in(&self, interest: &Interest<'_>, recorded: &Recorded) -> Result<Option<String>, Refused> {
        let project = format!("project:{}", interest.project);
        if !recorded.tags.contains(&project) {
            return Ok(None);
        }
        if recorded.stream_id == claim::STREAM {
            return Ok(interest.own_task(&recorded.aggregate_id, &recorded.decode()?));
        }
        let event::Event::TaskDispatched { task_id, .. } = recorded.decode()? else { return Ok(None) };
        let id = claim::aggregate_id(&recorded.aggregate_id, task_id);
        let ready = self.crew().tasks(Some(TaskState::Ready)).await?;
        let ready = ready.into_iter().find(|task| task.id == id);
        Ok(ready.map(|TaskSummary { id, title, .. }| format!("{id} is ready: {title}")))
    }

    pub async fn ask_person(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let deadline = Instant::now() + args.seconds("wait_seconds");
        let since = self.crew().store().head().await?;
        let number = match args.number("question") {
            Some(number) => number,
            None => self.ask(member, args).await?,
        };
        let query = Query::aggregate(asks::STREAM, self.crew().project());
        let mut news = pin!(self.crew().store().follow(&query, Start::After(since)));
        let mut found = self.answer_to(member, number).await?;
        while found.is_none() && comes(&mut news, deadline).await? {
            found = self.answer_to(member, number).await?;
        }
        let Some(Answer { text, is_granted, .. }) = found else {
            let next = format!("go on with other work; call ask_person with question {number} later for the answer");
            return Ok(object(json!({ "status": "open", "number": number, "next": next })));
        };
        member.answered.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(number);
        Ok(object(json!({
            "status": "answered", "number": number, "answer": beginning(&text, 6_000), "is_granted": is_granted,
        })))
    }

    /// The answer to a question of an agent; nothing while it is open.
    async fn answer_to(&self, member: &Member, number: u64) -> Result<Option<Answer>, Refused> {
        let agent = &member.caller.agent;
        let asks = self.crew().asks().await?;
        if let Some((_, answer)) = asks.answer(number).filter(|(ask, _)| ask.agent == *agent) {
            return Ok(Some(answer.clone()));
        }
        let is_open = asks.open().any(|(open, found)| open == number && found.ask.agent == *agent);
        let missing = || Refused::new("not_found", format!("you have no question {number}"), "ask with a text");
        if is_open { Ok(None) } else { Err(missing()) }
    }

    /// The number of a question: of an earlier one with the same words whose answer is not known to the agent, else a new one.
    async fn ask(&self, member: &Member, args: &Args) -> Result<u64, Refused> {
        let ask = Ask {
            agent: member.caller.agent.clone(),
            wanted: args.choice::<Wanted>("kind").unwrap_or_default(),
            text: args.string("text"),
            choices: args.strings("choices"),
            task: args.owned("task"),
        };
        let answered = self.crew().asks().await?.answered_with(&ask);
        let is_known =
            |number: &u64| member.answered.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(number);
        match answered.filter(|number| !is_known(number)) {
            Some(number) => Ok(number),
            None => Ok(self.crew().ask(&member.caller, ask).await?),
        }
    }
}

/// Waits for the next events; false when the time is up.
pub async fn comes(
    news: &mut (impl Stream<Item = crewlog_mq::Result<Recorded>> + Unpin),
    deadline: Instant,
) -> Result<bool, Refused> {
    match timeout_at(deadline, news.next()).await {
        Ok(Some(Ok(_))) => {}
        Ok(Some(Err(error))) if error.is_final() => return Err(error.into()),
        Ok(Some(Err(error))) => tracing::warn!(%error, "an event is passed over"),
        Ok(None) | Err(_) => return Ok(false),
    }
    // What comes together is looked at once.
    while let Ok(Some(Ok(_))) = timeout(Duration::ZERO, news.next()).await {}
    Ok(true)
}

impl Interest<'_> {
    fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }

    fn message(&self, event: MessageEvent) -> Option<String> {
        let MessageEvent::MessageSent { message, .. } = event else { return None };
        let is_for_it = message.to.contains(&self.member.caller.agent);
        is_for_it.then(|| format!("{} wrote: {}. Call read_inbox", message.from.name(), message.subject))
    }

    fn lease(&self, event: &LeaseEvent) -> Option<String> {
        let blocked_by = self.member.blocked_by.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ended = |leases: &[u64]| {
            let free = leases.iter().find_map(|lease| blocked_by.get(lease));
            free.map(|path| format!("the lease on {path} ended: call reserve_paths again"))
        };
        let own_ended = |leases: &[u64], why: &str| {
            let own: Vec<_> = leases.iter().filter(|lease| self.leases.contains(lease)).map(u64::to_string).collect();
            (!own.is_empty()).then(|| format!("your leases {} {why}: stop editing those files", own.join(", ")))
        };
        match event {
            LeaseEvent::LeasesGranted { request, waited: Some(_), .. } => {
                let paths: Vec<_> = request.targets.iter().map(|target| target.path.as_str()).collect();
                let is_own = request.holder == self.member.holder();
                is_own.then(|| format!("your waiting request was granted: {}", paths.join(", ")))
            }
            LeaseEvent::LeasesReleased { leases, .. } => ended(leases),
            LeaseEvent::LeasesExpired { leases, .. } => own_ended(leases, "expired").or_else(|| ended(leases)),
            LeaseEvent::LeasesAbandoned { leases, .. } => ended(leases),
            LeaseEvent::LeasesForced { leases, .. } => {
                own_ended(leases, "were ended by the person").or_else(|| ended(leases))
            }
            LeaseEvent::LeasesGranted { waited: None, .. }
            | LeaseEvent::LeasesQueued { .. }
            | LeaseEvent::WaitingEnded { .. }
            | LeaseEvent::LeasesRenewed { .. }
            | LeaseEvent::LeasesExtended { .. }
            | LeaseEvent::EditRefused { .. }
            | LeaseEvent::UnleasedEdit { .. } => None,
        }
    }

    fn own_task(&self, id: &str, event: &TaskEvent) -> Option<String> {
        if !self.tasks.contains(id) {
            return None;
        }
        match event {
            TaskEvent::TaskStopped { reason, .. } => Some(format!("your task {id} was stopped: {reason}")),
            TaskEvent::TaskWithdrawn { .. } => Some(format!("your task {id} was withdrawn")),
            TaskEvent::TimerFired { .. } => Some(format!("your claim on {id} ended: claim it again before you go on")),
            TaskEvent::TaskClaimed { executor, .. } => {
                let is_other = executor.name != self.member.caller.agent;
                is_other.then(|| format!("{id} is claimed by {} now: stop working on it", executor.name))
            }
            TaskEvent::TaskStarted { .. }
            | TaskEvent::LeaseRenewed { .. }
            | TaskEvent::TaskProgressed { .. }
            | TaskEvent::TaskUnparked { .. }
            | TaskEvent::TaskReleased { .. }
            | TaskEvent::TaskCompleted { .. }
            | TaskEvent::TaskFailed { .. }
            | TaskEvent::UsageReported { .. }
            | TaskEvent::NeedsClarification { .. } => None,
        }
    }
}
