//! One Chromium per test process, with its own profile. It is driven over the DevTools protocol on two pipes, so it
//! ends with the process in any case.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

/// The time limit for a command, and for the start on a busy machine.
pub const COMMAND_DEADLINE: Duration = Duration::from_secs(60);

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser reads messages on descriptor 3 and writes them on 4. The shell outlives it and removes its files, also when
/// the terminal interrupts the test.
const START: &str = r#"
    trap '' INT
    home=$(mktemp -d) || exit
    HOME=$home TMPDIR=$home "$@" --user-data-dir="$home/profile" 3<&0 4>&1 </dev/null >&2
    code=$?
    rm -rf "$home"
    exit $code"#;

/// Only loopback can be reached, and no page in the background is slowed down.
const OPTIONS: [&str; 22] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
    // Only pages of the tests are opened, and inside of a user namespace everybody is root.
    "--no-sandbox",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--password-store=basic",
];

/// The reason why a command failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Broken {
    #[error("no browser is installed: run `apt-get install chromium`, or name one in CREWLOG_TEST_CHROMIUM")]
    Missing,
    #[error("the browser ended ({status}); it last said:\n{said}")]
    Ended { status: String, said: String },
    #[error("the browser did not answer {method} within {seconds} s")]
    Silent { method: String, seconds: u64 },
    #[error("the browser refused {method}: {says}")]
    Refused { method: String, says: String },
}

/// A connection to the running browser.
pub struct Devtools {
    input: Mutex<Sender<Vec<u8>>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State(Mutex<Routes>);

#[derive(Default)]
struct Routes {
    n_calls: u64,
    answers: HashMap<u64, Sender<Value>>,
    events: HashMap<String, Sender<Value>>,
    end: Option<Broken>,
}

impl Devtools {
    /// The browser of this process, started by the first caller.
    pub fn start() -> Result<&'static Self, Broken> {
        static BROWSER: OnceLock<Result<Devtools, Broken>> = OnceLock::new();
        let launch = || Self::launch(&program().ok_or(Broken::Missing)?);
        BROWSER.get_or_init(launch).as_ref().map_err(Clone::clone)
    }

    /// Another browser, which ends when this is dropped.
    pub fn launch(program: &Path) -> Result<Self, Broken> {
        let mut shell = Command::new("sh");
        shell.args(["-c", START, "sh"]).arg(program).args(OPTIONS).env_remove("DBUS_SESSION_BUS_ADDRESS");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().expect("there is a shell");
        let mut stdin = child.stdin.take().expect("it is piped");
        let (stdout, stderr) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
        // A browser that hangs must not block the caller, which waits for the answer with a deadline.
        let (input, messages) = channel::<Vec<u8>>();
        std::thread::spawn(move || while messages.recv().is_ok_and(|message| stdin.write_all(&message).is_ok()) {});
        let state = Arc::new(State::default());
        let reader = Arc::clone(&state);
        std::thread::spawn(move || reader.read(child, stdout, stderr));
        let devtools = Self { input: Mutex::new(input), state };
        devtools.call(None, "Browser.getVersion", &json!({}), COMMAND_DEADLINE)?;
        Ok(devtools)
    }

    /// Sends a command to the browser, or to the page of a session, and waits for its result.
    pub fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        deadline: Duration,
    ) -> Result<Value, Broken> {
        let (id, answer) = self.state.expect_answer()?;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let message = format!("{message}\0").into_bytes();
        // A failure to send means that the browser has ended, and then no answer comes.
        let _ = self.input.lock().unwrap().send(message);
        match answer.recv_timeout(deadline) {
            Ok(answer) => match answer["error"]["message"].as_str() {
                Some(says) => Err(Broken::Refused { method: method.to_owned(), says: says.to_owned() }),
                None => Ok(answer["result"].clone()),
            },
            Err(RecvTimeoutError::Timeout) => {
                Err(Broken::Silent { method: method.to_owned(), seconds: deadline.as_secs() })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.end()),
        }
    }

    /// The events of a session, from now on.
    pub fn events(&self, session: &str) -> Receiver<Value> {
        let (sender, events) = channel();
        self.state.0.lock().unwrap().events.insert(session.to_owned(), sender);
        events
    }

    /// Drops the events of a session.
    pub fn forget(&self, session: &str) {
        self.state.0.lock().unwrap().events.remove(session);
    }

    /// The reason why the browser ended, for a caller that has noticed its end.
    pub fn end(&self) -> Broken {
        self.state.0.lock().unwrap().end.clone().expect("routes are closed after the end is recorded")
    }
}

impl State {
    fn expect_answer(&self) -> Result<(u64, Receiver<Value>), Broken> {
        let mut routes = self.0.lock().unwrap();
        if let Some(end) = &routes.end {
            return Err(end.clone());
        }
        routes.n_calls += 1;
        let (id, (sender, answer)) = (routes.n_calls, channel());
        routes.answers.insert(id, sender);
        Ok((id, answer))
    }

    /// Passes each message to its caller or session, until the browser ends.
    fn read(&self, mut child: Child, stdout: ChildStdout, stderr: ChildStderr) {
        let said = std::thread::spawn(move || last_lines(stderr));
        let mut stdout = BufReader::new(stdout);
        let mut message = Vec::new();
        while stdout.read_until(0, &mut message).is_ok_and(|n_read| n_read > 0) {
            message.pop_if(|last| *last == 0);
            let value: Value = serde_json::from_slice(&message).unwrap_or_default();
            message.clear();
            let mut routes = self.0.lock().unwrap();
            if let Some(answer) = value["id"].as_u64().and_then(|id| routes.answers.remove(&id)) {
                let _ = answer.send(value);
            } else if let Some(events) = value["sessionId"].as_str().and_then(|session| routes.events.get(session)) {
                let _ = events.send(value);
            }
        }
        let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let end = Broken::Ended { status, said: said.join().unwrap_or_default() };
        *self.0.lock().unwrap() = Routes { end: Some(end), ..Routes::default() };
    }
}

pub fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CREWLOG_TEST_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

fn last_lines(stderr: ChildStderr) -> String {
    let mut lines = Vec::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if lines.len() == 20 {
            lines.remove(0);
        }
        lines.push(line);
    }
    lines.join("\n")
}
