//! Waiting for the log: events that concern an agent, and answers of the person.

use std::pin::pin;
use std::time::Duration;

use crewlog_mq::{Error, Followed, Position, Query, Recorded, Start};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::asks::{self, Answer, Ask, AskEvent};
use crewlog_planner::crew::leases;
use crewlog_planner::crew::messages::{self, MessageEvent};
use crewlog_planner::event;
use crewlog_planner::lifecycle::State;
use futures::StreamExt;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::Member;
use crate::serve::mcp::reply::{Refused, Reply, beginning};
use crate::serve::mcp::server::Server;

/// The most events in a result.
const EVENTS_MAX: usize = 20;
/// The longest summary of an event, in characters.
const CHARS_MAX: usize = 250;
/// The most events that trigger only one further check.
const TOGETHER_MAX: usize = 100;
/// The shortest interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A waiting agent, with its tasks at the start.
struct Waiter<'a> {
    agent: &'a str,
    tasks: Vec<String>,
}

impl Server {
    pub async fn wait_for_events(&self, member: &Member, args: &Args) -> Reply {
        let place = self.waiting.try_acquire().ok();
        let wait = Duration::from_secs(args.get("timeout_seconds"));
        let deadline = Instant::now() + if place.is_some() { wait } else { Duration::ZERO };
        let (crew, agent, kinds) = (&self.crew, &member.caller.agent, args.get::<Vec<String>>("kinds"));
        let mut position = match args.get("since") {
            Some(since) => since,
            None => crew.store().head().await?,
        };
        let waiter = Waiter { agent, tasks: crew.tasks_of(agent).await? };
        let mut items = pin!(crew.store().follow_marked(&crew.news(), Start::After(position)));
        let wanted = |kind: &str| kinds.is_empty() || kinds.iter().any(|wanted| wanted == kind);
        let event = |position: Position, kind: &str, summary: &str| json!({ "position": position, "kind": kind, "summary": beginning(summary, CHARS_MAX) });
        let known = if wanted("lease") { crew.notices(agent).await? } else { Vec::new() };
        let mut events: Vec<_> = known.iter().map(|notice| event(position, "lease", notice)).collect();
        while events.len() < EVENTS_MAX {
            // After the first event, takes only those already in the log.
            let until = if events.is_empty() { deadline } else { Instant::now() };
            let Ok(Some(item)) = timeout_at(until, items.next()).await else { break };
            // A stream that always has news never times out.
            let is_late = Instant::now() >= deadline;
            match item {
                Ok(Followed::Event(recorded)) => {
                    position = recorded.position;
                    let found = self.concerns(&waiter, &recorded).await?;
                    if let Some((kind, summary)) = found.filter(|(kind, _)| wanted(kind)) {
                        events.push(event(position, kind, &summary));
                    }
                    if recorded.stream_id == leases::STREAM && wanted("lease") {
                        let news = crew.notices(agent).await?;
                        events.extend(news.iter().map(|notice| event(position, "lease", notice)));
                    }
                }
                Ok(Followed::CaughtUp(at)) => position = position.max(at),
                Err(error) if error.is_final() => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "an event is passed over"),
            }
            if is_late {
                break;
            }
        }
        let timed_out = events.is_empty();
        let status = if timed_out { "timed_out" } else { "ok" };
        Ok(json!({ "status": status, "events": events, "position": position, "timed_out": timed_out }))
    }

    /// The kind of an event and its summary for an agent; `None` if it does not concern the agent.
    async fn concerns(
        &self,
        waiter: &Waiter<'_>,
        recorded: &Recorded,
    ) -> Result<Option<(&'static str, String)>, Refused> {
        let agent = waiter.agent;
        Ok(match recorded.stream_id.as_str() {
            messages::STREAM => {
                let MessageEvent::MessageSent { message, .. } = recorded.decode()? else { return Ok(None) };
                let summary = format!("{} wrote: {}. Call read_inbox", message.from.name(), message.subject);
                message.to.contains(agent).then_some(("message", summary))
            }
            asks::STREAM => {
                let AskEvent::PersonAnswered { number, answer, .. } = recorded.decode()? else { return Ok(None) };
                let is_own = self.crew.asks().await?.answer(number).is_some_and(|(ask, _)| ask.agent == *agent);
                is_own.then(|| ("answer", format!("question {number} was answered: {}", answer.text)))
            }
            event::STREAM => {
                let event::Event::TaskDispatched { task_id, .. } = recorded.decode()? else { return Ok(None) };
                let id = claim::aggregate_id(&recorded.aggregate_id, task_id);
                let Some(id) = self.crew.task_name(&id).await? else { return Ok(None) };
                let ready = self.crew.tasks(Some(State::Ready)).await?.into_iter().find(|task| task.id == id);
                ready.map(|task| ("task", format!("{id} is ready: {}", task.title)))
            }
            claim::STREAM => {
                let id = self.crew.task_name(&recorded.aggregate_id).await?;
                let summary = waiter.own_task(id.as_deref().unwrap_or(&recorded.aggregate_id), recorded.decode()?);
                summary.map(|summary| ("task", summary))
            }
            _other => None,
        })
    }

    pub async fn ask_person(&self, member: &Member, args: &Args) -> Reply {
        let agent = &member.caller.agent;
        let ask = Ask {
            agent: agent.clone(),
            wanted: args.get("kind"),
            text: args.get("text"),
            choices: args.get("choices"),
            task: args.get("task"),
            call: None,
        };
        let number = match args.get("question") {
            Some(number) => number,
            None => self.crew.ask(&member.caller, ask).await?,
        };
        let wait = Duration::from_secs(args.get("wait_seconds"));
        let answer = self.look_until(asks::STREAM, wait, || self.answer_to(agent, number)).await?;
        answer.iter().for_each(|_| self.fetched(number));
        Ok(match answer {
            Some(Answer { text, is_granted, .. }) => json!({
                "status": "answered", "number": number, "answer": beginning(&text, 6_000), "is_granted": is_granted,
            }),
            None => json!({
                "status": "open", "number": number,
                "next": format!("go on with other work; call ask_person with question {number} later for the answer"),
            }),
        })
    }

    /// The answer to a question of an agent; `None` while it is open.
    async fn answer_to(&self, agent: &str, number: u64) -> Result<Option<Answer>, Refused> {
        let asks = self.crew.asks().await?;
        let answer = asks.answer(number).filter(|(ask, _)| ask.agent == agent).map(|(_, answer)| answer.clone());
        let is_open = asks.open().any(|(open, found)| open == number && found.ask.agent == agent);
        match answer.is_some() || is_open {
            true => Ok(answer),
            false => Err(Refused::new("not_found", format!("you have no question {number}"), "ask with a text")),
        }
    }

    /// Checks now and after each event of a stream of the project, until there is a result or the time is up.
    pub async fn look_until<T, E: From<Error>, F>(
        &self,
        stream: &str,
        wait: Duration,
        look: impl Fn() -> F,
    ) -> Result<Option<T>, E>
    where
        F: Future<Output = Result<Option<T>, E>>,
    {
        let place = self.waiting.try_acquire().ok().filter(|_| !wait.is_zero());
        if place.is_none() {
            return look().await;
        }
        let (deadline, store) = (Instant::now() + wait, self.crew.store());
        let query = Query::aggregate(stream, self.crew.project());
        let news = store.follow(&query, Start::After(store.head().await?));
        let mut news = pin!(news.ready_chunks(TOGETHER_MAX));
        loop {
            let found = look().await?;
            if found.is_some() {
                return Ok(found);
            }
            // When many agents wait, many events arrive together.
            sleep_until(deadline.min(Instant::now() + LOOK_EVERY)).await;
            // If the log fails, the next check reports it.
            let Ok(Some(_)) = timeout_at(deadline, news.next()).await else { return Ok(None) };
            // A stream that always has news never times out.
            if Instant::now() >= deadline {
                return look().await;
            }
        }
    }
}

impl Waiter<'_> {
    /// A summary if another agent or a person ends the agent's claim.
    fn own_task(&self, id: &str, event: TaskEvent) -> Option<String> {
        let is_lost = match event {
            TaskEvent::TaskStopped { .. } | TaskEvent::TaskWithdrawn { .. } | TaskEvent::TimerFired { .. } => true,
            TaskEvent::TaskClaimed { executor, .. } => executor.name != self.agent,
            _another => false,
        };
        let is_meant = is_lost && self.tasks.iter().any(|task| task == id);
        is_meant.then(|| format!("your claim on {id} ended: stop, or claim it again before you go on"))
    }
}
