//! Wakes the idle session of this process: a line with counts, without any text of others, to the socket on which Claude Code
//! takes messages. It gives no permission and answers nothing. One wake is outstanding until the session has read further.

use std::collections::VecDeque;
use std::env::{var, var_os};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use crewlog_executors::crew::Refusal;
use crewlog_mq::{Position, Recorded, Start};
use crewlog_planner::crew::asks::{self, AskEvent};
use crewlog_planner::crew::messages::Sender;
use futures::StreamExt;
use rustix::process::getppid;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::server::Server;
use crate::context::config::{HooksConfig, Wake};
use crate::ui::text::count;

/// The variable with the path of the socket.
const SOCKET: &str = "CLAUDE_CODE_MESSAGING_SOCKET";
/// The variable with what a sender must show on some systems.
const TOKEN: &str = "CLAUDE_CODE_MESSAGING_TOKEN";
/// After this time a wake is repeated if the session has read nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3_600);
/// The time limit for a write to the socket.
const SEND_MAX: Duration = Duration::from_secs(1);
/// The most unread messages that are looked at, and events at once.
const LOOKED_AT_MAX: usize = 100;

/// The wakes of a session.
#[derive(Default)]
struct Waker {
    /// The wakes of the last hour.
    sent: VecDeque<Instant>,
    outstanding: Option<Instant>,
    /// Answers of the person since the last wake that was not outstanding.
    n_answers: usize,
}

impl Server {
    /// Wakes the session of this process until it ends.
    pub async fn wake(&self, HooksConfig { wake, wakes_per_hour, .. }: HooksConfig) {
        let socket = var_os(SOCKET).map(PathBuf::from).filter(|socket| wake != Wake::Off && is_of_parent(socket));
        let Some(socket) = socket else { return std::future::pending().await };
        let news = self.crew.store().follow(&self.crew.news(), Start::Now);
        let (mut news, mut waker) = (pin!(news.ready_chunks(LOOKED_AT_MAX)), Waker::default());
        loop {
            let events = match timeout(AGAIN_AFTER, news.next()).await {
                Ok(Some(events)) => events.into_iter().filter_map(Result::ok).collect(),
                Ok(None) => return std::future::pending().await,
                Err(_) => Vec::new(),
            };
            match self.due(&mut waker, &events, wake).await {
                Ok(Some(text)) if waker.may_send(Instant::now(), wakes_per_hour) => {
                    if let Err(error) = send(&socket, &text).await {
                        tracing::debug!(%error, "the session could not be woken");
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "what waits for the session is not known"),
            }
        }
    }

    /// The news that wait for the session, in counts.
    async fn due(&self, waker: &mut Waker, events: &[Recorded], wake: Wake) -> Result<Option<String>, Refusal> {
        let Some(agent) = self.members.own_agent(&self.crew).await? else { return Ok(None) };
        for recorded in events.iter().filter(|recorded| recorded.stream_id == asks::STREAM) {
            if let Ok(AskEvent::PersonAnswered { number, .. }) = recorded.decode()
                && self.crew.asks().await?.answer(number).is_some_and(|(ask, _)| ask.agent == agent)
            {
                waker.n_answers += 1;
            }
        }
        let mut n_messages = self.crew.messages().await?.unread(&agent).count();
        if n_messages > 0 && wake != Wake::All {
            let (mail, _) = self.crew.inbox(&agent, true, Position(0), LOOKED_AT_MAX, None).await?;
            n_messages = mail.iter().filter(|mail| matches!(mail.message.from, Sender::Person(_))).count();
        }
        let n_steps = self.crew.offers(&agent).await?.iter().filter(|offer| offer.is_given).count();
        let parts = [(n_messages, "unread message"), (waker.n_answers, "answer"), (n_steps, "ready step")];
        let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect::<Vec<_>>();
        if parts.is_empty() {
            waker.outstanding = None;
        }
        let calls = "read_inbox, ask_person and next_task show them";
        Ok((!parts.is_empty()).then(|| format!("crewlog: for you: {}; {calls}.", parts.join(", "))))
    }
}

impl Waker {
    /// False while a wake is outstanding, or after too many.
    fn may_send(&mut self, now: Instant, per_hour: usize) -> bool {
        self.sent.retain(|sent| now - *sent < HOUR);
        let waits = self.outstanding.is_some_and(|sent| now - sent < AGAIN_AFTER);
        if waits || self.sent.len() >= per_hour {
            return false;
        }
        self.sent.push_back(now);
        (self.outstanding, self.n_answers) = (Some(now), 0);
        true
    }
}

/// True for the socket of the program that started this process: one below it inherits its variables.
fn is_of_parent(socket: &Path) -> bool {
    let parent = getppid().map(|parent| parent.as_raw_nonzero().to_string());
    parent.is_some_and(|parent| socket.file_stem().is_some_and(|stem| *stem == *parent))
}

async fn send(socket: &Path, text: &str) -> io::Result<()> {
    let message = json!({
        "type": "user", "msgV": 1, "msg_id": Uuid::new_v4(), "priority": "next",
        "message": { "role": "user", "content": text },
    });
    let auth = var(TOKEN).ok().map(|token| format!("{}\n", json!({ "type": "auth", "token": token })));
    let lines = format!("{}{message}\n", auth.unwrap_or_default());
    let write = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(lines.as_bytes()).await?;
        stream.shutdown().await
    };
    timeout(SEND_MAX, write).await?
}
