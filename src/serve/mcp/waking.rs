//! Wakes the idle session of this process by a line with counts, without any text of others: over the socket on which Claude
//! Code takes messages, or by the queue of Codex, whose daemon never steers a turn with it. It gives no permission and answers
//! nothing. One wake is outstanding until the session has read further.

use std::collections::VecDeque;
use std::env::{var, var_os};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use crewlog_executors::crew::Refusal;
use crewlog_mq::{Recorded, Start};
use crewlog_planner::crew::asks::{self, AskEvent};
use futures::StreamExt;
use rustix::process::getppid;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::server::Server;
use crate::context::config::{HooksConfig, Wake};
use crate::ui::failure::Failure;
use crate::ui::text::count;

/// The variable with the path of the socket.
const SOCKET: &str = "CLAUDE_CODE_MESSAGING_SOCKET";
/// The variable with what a sender must show on some systems.
const TOKEN: &str = "CLAUDE_CODE_MESSAGING_TOKEN";
/// After this time a wake is repeated if the session has read nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3_600);
/// The time limit for one.
const SEND_MAX: Duration = Duration::from_secs(5);
/// The most events that are looked at together.
const TOGETHER_MAX: usize = 100;

/// A way to start a turn of an idle session.
enum Door {
    /// The socket of Claude Code.
    Socket(PathBuf),
    /// The queue of Codex, with its program.
    Queue(PathBuf),
}

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
        let Some(door) = Door::of_parent().filter(|_| wake != Wake::Off) else { return std::future::pending().await };
        let news = self.crew.store().follow(&self.crew.news(), Start::Now);
        let (mut news, mut waker) = (pin!(news.ready_chunks(TOGETHER_MAX)), Waker::default());
        loop {
            let events = match timeout(AGAIN_AFTER, news.next()).await {
                Ok(Some(events)) => events.into_iter().filter_map(Result::ok).collect(),
                Ok(None) => return std::future::pending().await,
                Err(_) => Vec::new(),
            };
            match self.due(&mut waker, &events, wake).await {
                Ok(Some(text)) if waker.may_send(Instant::now(), wakes_per_hour) => {
                    if let Err(error) = self.open(&door, &text).await {
                        tracing::debug!(%error, "the session could not be woken");
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the news for the session are not known"),
            }
        }
    }

    async fn open(&self, door: &Door, text: &str) -> Result<(), Failure> {
        let agent = self.members.own_agent(&self.crew).await?.unwrap_or_default();
        let session = self.crew.agents().await?.get(&agent).map(|agent| agent.session.clone()).unwrap_or_default();
        let opened = async {
            match door {
                Door::Socket(socket) => write(socket, text).await,
                Door::Queue(program) => queue(program, &session, text).await,
            }
        };
        timeout(SEND_MAX, opened).await.unwrap_or_else(|late| Err(late.into())).map_err(Failure::output)
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
        let n_messages = match wake {
            Wake::All => self.crew.messages().await?.unread(&agent).count(),
            Wake::Person | Wake::Off => self.crew.unread_of_people(&agent).await?,
        };
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

impl Door {
    /// That of the program that started this process: a program below it inherits its variables.
    fn of_parent() -> Option<Self> {
        let parent = getppid()?.as_raw_nonzero().to_string();
        let is_own = |socket: &PathBuf| socket.file_stem().is_some_and(|stem| *stem == *parent);
        if let Some(socket) = var_os(SOCKET).map(PathBuf::from).filter(is_own) {
            return Some(Self::Socket(socket));
        }
        let process = Path::new("/proc").join(parent);
        let (program, words) = (fs::read_link(process.join("exe")).ok()?, fs::read(process.join("cmdline")).ok()?);
        // A session outside of the daemon cannot be reached: its thread would run a second time.
        let is_daemon = words.split(|byte| *byte == 0).any(|word| word == b"app-server");
        (is_daemon && program.file_name()? == "codex").then_some(Self::Queue(program))
    }
}

async fn write(socket: &Path, text: &str) -> io::Result<()> {
    let message = json!({
        "type": "user", "msgV": 1, "msg_id": Uuid::new_v4(), "priority": "next",
        "message": { "role": "user", "content": text },
    });
    let auth = var(TOKEN).ok().map(|token| format!("{}\n", json!({ "type": "auth", "token": token })));
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(format!("{}{message}\n", auth.unwrap_or_default()).as_bytes()).await?;
    stream.shutdown().await
}

async fn queue(program: &Path, thread: &str, text: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["queue", "--thread", thread, "--message", text, "--resume"]).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await.map(drop)
}
