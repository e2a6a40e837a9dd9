//! Wakes the idle session of this process by a line with counts, without any text of others: over the socket on which Claude
//! Code or the plugin of opencode takes messages, or by the queue of Codex, whose daemon never steers a turn with it. It gives no
//! permission and answers nothing. One wake is outstanding until the session calls, and news wake once; unread messages once more after a while.

use std::collections::{BTreeSet, VecDeque};
use std::env::{current_dir, var, var_os};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use crewlog_executors::crew::Refusal;
use crewlog_executors::crew::process::parent_session;
use crewlog_mq::{Position, Recorded, Start};
use crewlog_planner::crew::asks::{self, AskEvent};
use futures::StreamExt;
use rustix::process::{getppid, getuid};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use uuid::Uuid;

use super::identity::CLAUDE_SESSION;
use super::server::Server;
use crate::context::agent_id;
use crate::context::config::{HooksConfig, Wake};
use crate::ui::failure::Failure;
use crate::ui::text::count;

/// The variable with the path of the socket.
const SOCKET: &str = "CLAUDE_CODE_MESSAGING_SOCKET";
/// The variable with what a sender must show on some systems.
const TOKEN: &str = "CLAUDE_CODE_MESSAGING_TOKEN";
/// After this time the next wake comes even if the session has made no call.
const AGAIN_AFTER: Duration = Duration::from_secs(300);
/// The wait for further news.
const TOGETHER: Duration = Duration::from_millis(100);
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
    /// The socket of the plugin of opencode, and the process that listens on it.
    Plugin(PathBuf, i32),
}

/// The news of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Message(Position),
    Answer(u64),
    Step(String),
    /// About its leases.
    Notice(String),
}

impl News {
    const fn is_message(&self) -> bool {
        matches!(self, Self::Message(_))
    }
}

/// The wakes of a session.
#[derive(Default)]
struct Waker {
    /// The wakes of the last hour.
    sent: VecDeque<Instant>,
    /// Those that a wake has counted. They do not wake again, but messages once after a while.
    announced: BTreeSet<News>,
    /// The last wake, and the number of calls of the session then.
    outstanding: Option<(Instant, u64)>,
    has_repeated: bool,
    answers: BTreeSet<u64>,
}

impl Server {
    /// Wakes the session of this process until it ends.
    pub async fn wake(&self, HooksConfig { wake, wakes_per_hour, .. }: HooksConfig) {
        if wake == Wake::Off {
            return std::future::pending().await;
        }
        let news = self.crew.store().follow(&self.crew.news(), Start::Now);
        let (mut news, mut waker) = (pin!(news.ready_chunks(TOGETHER_MAX)), Waker::default());
        loop {
            let outstanding = waker.outstanding.map(|(at, _)| at + AGAIN_AFTER);
            let again = outstanding.filter(|at| *at > Instant::now()).unwrap_or_else(|| Instant::now() + AGAIN_AFTER);
            let events: Vec<_> = match timeout_at(again, news.next()).await {
                Ok(Some(events)) => events.into_iter().filter_map(Result::ok).collect(),
                Ok(None) => return std::future::pending().await,
                Err(_) => Vec::new(),
            };
            // News that belong together come together, and a caller that waits for an answer gets it first.
            sleep(TOGETHER).await;
            let woken = async {
                // That of opencode may open later than this process starts.
                let Some(door) = Door::of_parent() else { return Ok(()) };
                let Some(agent) = self.members.own_agent(&self.crew, door.session()).await? else { return Ok(()) };
                let found = self.found(&agent, &mut waker, &events, wake).await?;
                waker.announced.retain(|known| found.contains(known));
                let n_calls = self.n_calls();
                let is_repeat = found.is_subset(&waker.announced);
                let is_due = !is_repeat || waker.may_repeat(n_calls) && found.iter().any(News::is_message);
                if !is_due || !waker.may_send(n_calls, wakes_per_hour) {
                    return Ok(());
                }
                self.open(&door, &agent, &said(&found)).await?;
                let message = |news: &News| if let News::Message(position) = news { Some(*position) } else { None };
                if let Some(last) = found.iter().filter_map(message).max() {
                    self.crew.woke(&agent, last).await?;
                }
                let now = Instant::now();
                waker.sent.push_back(now);
                (waker.outstanding, waker.has_repeated) = (Some((now, n_calls)), is_repeat);
                waker.announced = found;
                Ok::<_, Failure>(())
            };
            woken.await.unwrap_or_else(|error| tracing::debug!(%error, "the session could not be woken"));
        }
    }

    async fn open(&self, door: &Door, agent: &str, text: &str) -> Result<(), Failure> {
        let session = self.crew.agents().await?.get(agent).map(|agent| agent.session.clone()).unwrap_or_default();
        let opened = async {
            match door {
                Door::Socket(socket) => write(socket, text).await,
                Door::Plugin(socket, program) => write_to_plugin(socket, *program, text).await,
                Door::Queue(program) => queue(program, &session, text).await,
            }
        };
        timeout(SEND_MAX, opened).await.unwrap_or_else(|late| Err(late.into())).map_err(Failure::output)
    }

    /// The news that wait for the session.
    async fn found(
        &self,
        agent: &str,
        waker: &mut Waker,
        events: &[Recorded],
        wake: Wake,
    ) -> Result<BTreeSet<News>, Refusal> {
        for recorded in events.iter().filter(|recorded| recorded.stream_id == asks::STREAM) {
            if let Ok(AskEvent::PersonAnswered { number, .. }) = recorded.decode()
                && self
                    .crew
                    .asks()
                    .await?
                    .answer(number)
                    .is_some_and(|(ask, _)| ask.agent == agent && ask.call.is_none())
            {
                waker.answers.insert(number);
            }
        }
        waker.answers.retain(|number| !self.has_fetched(*number));
        let messages = match wake {
            Wake::All => self.crew.messages().await?.unread(agent).collect(),
            Wake::Person | Wake::Off => self.crew.unread_of_people(agent).await?,
        };
        let given: Vec<_> = self.crew.offers(agent, false).await?.into_iter().filter(|offer| offer.is_given).collect();
        // One session for each step: the others would find it taken.
        let n_before = if given.is_empty() { 0 } else { self.crew.n_idle_before(agent).await? };
        let steps = given.into_iter().skip(n_before).take(1).map(|offer| News::Step(offer.target));
        let answers = waker.answers.iter().map(|number| News::Answer(*number));
        let notices = if wake == Wake::All { self.crew.unheard_keys(agent).await? } else { Vec::new() };
        let notices = notices.into_iter().map(News::Notice);
        Ok(messages.into_iter().map(News::Message).chain(answers).chain(steps).chain(notices).collect())
    }
}

/// The news in counts.
fn said(found: &BTreeSet<News>) -> String {
    let n = |is_it: fn(&News) -> bool| found.iter().filter(|news| is_it(news)).count();
    let parts = [
        (n(News::is_message), "unread message"),
        (n(|news| matches!(news, News::Answer(_))), "answer"),
        (n(|news| matches!(news, News::Step(_))), "ready step"),
        (n(|news| matches!(news, News::Notice(_))), "lease notice"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect::<Vec<_>>();
    format!("crewlog: for you: {}; read_inbox, ask_person and next_task show them.", parts.join(", "))
}

impl Waker {
    /// True if the session has made no call since a wake that was no repetition.
    fn may_repeat(&self, n_calls: u64) -> bool {
        !self.has_repeated && self.outstanding.is_some_and(|(_, n_then)| n_then == n_calls)
    }

    /// False while a wake is outstanding: the session has made no call since. False after too many.
    fn may_send(&mut self, n_calls: u64, per_hour: usize) -> bool {
        let now = Instant::now();
        self.sent.retain(|sent| now - *sent < HOUR);
        let waits = self.outstanding.is_some_and(|(sent, n_then)| n_then == n_calls && now - sent < AGAIN_AFTER);
        !waits && self.sent.len() < per_hour
    }
}

impl Door {
    /// That of the program that started this process: a program below it inherits its variables.
    fn of_parent() -> Option<Self> {
        let program = getppid()?.as_raw_nonzero().get();
        let parent = program.to_string();
        let is_own = |socket: &PathBuf| socket.file_stem().is_some_and(|stem| *stem == *parent);
        if let Some(socket) = var_os(SOCKET).map(PathBuf::from).filter(is_own) {
            return Some(Self::Socket(socket));
        }
        // As the plugin derives it.
        let folders = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(var_os).map(PathBuf::from);
        let base = folders.into_iter().find(|folder| folder.is_absolute()).unwrap_or_else(|| "/tmp".into());
        let folder = base.join(format!("crewlog-{}", getuid().as_raw()));
        let socket = folder.join(format!("opencode-{parent}.sock"));
        if socket.exists() {
            return Some(Self::Plugin(socket, program));
        }
        let process = Path::new("/proc").join(parent);
        let (program, words) = (fs::read_link(process.join("exe")).ok()?, fs::read(process.join("cmdline")).ok()?);
        // A session outside of the daemon cannot be reached: its thread would run a second time.
        let is_daemon = words.split(|byte| *byte == 0).any(|word| word == b"app-server");
        (is_daemon && program.file_name()? == "codex").then_some(Self::Queue(program))
    }

    /// The session of its agent, which may have joined by a hook alone.
    fn session(&self) -> Option<String> {
        match self {
            Self::Socket(_) => var(CLAUDE_SESSION).ok(),
            Self::Plugin(..) => parent_session(agent_id().as_deref()),
            Self::Queue(_) => None,
        }
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

async fn write_to_plugin(socket: &Path, program: i32, text: &str) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket).await?;
    // An earlier process with its number may have left the path to another user.
    if stream.peer_cred()?.pid() != Some(program) {
        return Err(io::Error::other("another process listens there"));
    }
    let line = json!({ "directory": current_dir()?, "text": text });
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    stream.shutdown().await
}

async fn queue(program: &Path, thread: &str, text: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["queue", "--thread", thread, "--message", text, "--resume"]).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await.map(drop)
}
