//! A folder, a home and the real binary in them. Every process started here has a deadline, and none outlives
//! its test.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

/// Far more than any step takes, so only a hang reaches it.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Variables that would leak the outer environment into the scene.
const OWN_VARIABLES: [&str; 16] = [
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "GIT_DIR",
    "CREWLOG_STORE",
    "CREWLOG_CONFIG",
    "CREWLOG_KEY_FILE",
    "CREWLOG_KEYS",
    "CREWLOG_LOG",
    "CREWLOG_KILL",
    "CREWLOG_PLAN",
    "NO_COLOR",
    "CI",
    "AGENT_ID",
    "CLAUDECODE",
];

/// A separate working directory, with a home and a folder for temporary files next to it. Nothing above is looked at.
pub struct Scene {
    root: TempDir,
    folder: PathBuf,
    env: Vec<(String, String)>,
}

impl Scene {
    /// Outside any repository.
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        let folder = root.path().join("tree");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        for beside in ["home", "tmp"] {
            std::fs::create_dir_all(root.path().join(beside)).expect("a folder can be made");
        }
        Self { root, folder, env: Vec::new() }
    }

    /// In a repository with one commit.
    pub fn with_repository() -> Self {
        let scene = Self::new();
        scene.git(&["init", "-q", "-b", "main"]);
        scene.git(&["commit", "-q", "--allow-empty", "-m", "begin"]);
        scene
    }

    /// The same scene with a variable set.
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the variable of [`Scene::with_env`].
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The working directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that contains the working directory and the home.
    pub fn around(&self) -> &Path {
        self.root.path()
    }

    /// A path in the working directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in the working directory.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file can be written");
    }

    /// The text of a file in the working directory.
    #[track_caller]
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file in the working directory, `None` if there is none.
    #[track_caller]
    pub fn read_if_any(&self, name: impl AsRef<Path>) -> Option<String> {
        let path = self.path(name);
        path.try_exists().expect("its folder can be read").then(|| self.read(path))
    }

    /// The program in the working directory, with these arguments.
    pub fn crewlog(&self, words: &[&str]) -> Command {
        self.crewlog_in(&self.folder, words)
    }

    /// The program in another folder.
    pub fn crewlog_in(&self, folder: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crewlog"));
        command.args(words).current_dir(folder);
        self.isolate(&mut command);
        command.envs(self.env.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command
    }

    /// Takes a process out of the surroundings of the tests: its folders are those of the scene.
    fn isolate(&self, command: &mut Command) {
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        let around = self.root.path();
        command.env("HOME", around.join("home")).env("TMPDIR", around.join("tmp")).env("TERM", "xterm");
        // Links in the path are resolved, as the working directory of a process is.
        command.env("GIT_CEILING_DIRECTORIES", around.canonicalize().expect("it is there"));
    }

    /// Runs the program to its end.
    #[must_use = "look at how it ended"]
    pub fn run(&self, words: &[&str]) -> Ran {
        Running::start(&mut self.crewlog(words)).finish()
    }

    /// Starts the program.
    pub fn start(&self, words: &[&str]) -> Running {
        Running::start(&mut self.crewlog(words))
    }

    /// Makes a plan from a text and runs it; returns the plan's id and the outcome of the run.
    #[must_use = "look at how it ended"]
    pub fn plan(&self, text: &str) -> (String, Ran) {
        self.write("plan.md", text);
        let ran = self.run(&["run", "plan.md", "--yes"]);
        (ran.stdout.trim().to_owned(), ran)
    }

    /// A plan as printed by `show -o json`.
    pub fn show(&self, plan: &str) -> Value {
        self.run(&["show", plan, "-o", "json"]).expect(0).json()
    }

    /// The events of the log.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        self.events_if_any().expect("there is a log")
    }

    /// The events of the log, `None` if there is no log yet.
    #[track_caller]
    pub fn events_if_any(&self) -> Option<Vec<Value>> {
        let ran = self.run(&["events", "-o", "jsonl"]);
        if ran.stderr.starts_with("error: there is no log ") {
            return None;
        }
        if ran.stderr == "no event of this log matches\n" {
            return Some(Vec::new());
        }
        let lines = ran.expect(0).stdout;
        Some(lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect())
    }

    /// The data of the events of one type, in order.
    pub fn events_of_type(&self, event_type: &str) -> Vec<Value> {
        let events = self.events().into_iter().filter(|event| event["event_type"] == event_type);
        events.map(|event| event["data"].clone()).collect()
    }

    /// Runs git in the working directory.
    pub fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]);
        git.args(words).current_dir(&self.folder).stdin(Stdio::null());
        self.isolate(&mut git);
        let ran = Running::start(&mut git).finish();
        ran.expect(0).stdout
    }
}

/// The outcome of a process, and its output.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ran {
    /// Returns itself if it ended with this exit code and did not panic.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        let Self { status, stdout, stderr } = &self;
        assert_eq!(status.code(), Some(code), "{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        assert!(!stderr.contains("panicked at"), "{stderr}");
        self
    }

    /// Returns itself if standard error contains all of these.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not said:\n{}", self.stderr);
        }
        self
    }

    /// Its standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", self.stdout))
    }
}

/// A running process.
pub struct Running {
    pid: Pid,
    ended: Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    input: Option<Box<dyn Write + Send>>,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error, or with a terminal everything it shows.
    pub stderr: Output,
}

impl Running {
    /// With pipes.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stdout = Output::of(child.stdout.take().expect("it is piped"));
        let stderr = Output::of(child.stderr.take().expect("it is piped"));
        let input = child.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write + Send>);
        Self::of(child, input, stdout, stderr)
    }

    /// With a standard error whose reader is gone.
    pub fn start_with_closed_stderr(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(closed_pipe()).spawn().expect("the program starts");
        let stdout = Output::of(child.stdout.take().expect("it is piped"));
        Self::of(child, None, stdout, Output::of(std::io::empty()))
    }

    /// With a standard output whose reader is gone.
    pub fn start_with_closed_stdout(command: &mut Command) -> Self {
        let mut child = command.stdout(closed_pipe()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = Output::of(child.stderr.take().expect("it is piped"));
        Self::of(child, None, Output::of(std::io::empty()), stderr)
    }

    /// With a terminal as standard input and error, like an interactive run with redirected output.
    pub fn start_on_terminal(command: &mut Command) -> Self {
        let (person, terminal) = terminal();
        command.stdin(terminal.try_clone().expect("it can be shared")).stderr(terminal);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        // From here on only the program holds the terminal's other side, so its end is detected.
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let stdout = Output::of(child.stdout.take().expect("it is piped"));
        let stderr = Output::of(person.try_clone().expect("it can be shared"));
        Self::of(child, Some(Box::new(person)), stdout, stderr)
    }

    /// Wholly on a terminal of this many columns and lines, which is returned too.
    pub fn start_full_screen(command: &mut Command, (columns, rows): (u16, u16)) -> (Self, File) {
        let (person, terminal) = terminal();
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&person, size).expect("it has a size");
        let shared = || terminal.try_clone().expect("it can be shared");
        let child = command.stdin(shared()).stdout(shared()).stderr(shared()).spawn().expect("the program starts");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let [shown, kept] = [(); 2].map(|()| person.try_clone().expect("it can be shared"));
        (Self::of(child, Some(Box::new(person)), Output::of(std::io::empty()), Output::of(shown)), kept)
    }

    fn of(mut child: Child, input: Option<Box<dyn Write + Send>>, stdout: Output, stderr: Output) -> Self {
        let pid = Pid::from_child(&child);
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.wait().expect("a child can be waited for")));
        Self { pid, ended, status: None, input, stdout, stderr }
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.presses(&format!("{line}\n"));
    }

    /// Presses keys.
    pub fn presses(&mut self, keys: &str) {
        let input = self.input.as_mut().expect("it has an input");
        input.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid, signal).expect("it runs");
    }

    /// Kills it, unless it has ended.
    pub fn kill(&self) {
        let killed = rustix::process::kill_process(self.pid, Signal::KILL);
        assert!(matches!(killed, Ok(()) | Err(rustix::io::Errno::SRCH)), "{killed:?}");
    }

    /// Kills it and waits for its end, which nothing else has brought about.
    #[track_caller]
    pub fn killed(self) {
        self.signal(Signal::KILL);
        let ran = self.finish();
        assert_eq!(ran.status.signal(), Some(Signal::KILL.as_raw()), "{}\n{}", ran.stdout, ran.stderr);
    }

    /// Waits for its end.
    #[must_use = "look at how it ended"]
    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let status = match self.ended.recv_timeout(DEADLINE) {
            Ok(status) => status,
            Err(_) => panic!("it hangs; so far:\n{}\n{}", self.stdout.text(), self.stderr.text()),
        };
        self.status = Some(status);
        Ran { status, stdout: self.stdout.rest(), stderr: self.stderr.rest() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() && self.ended.try_recv().is_err() {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
    }
}

/// The output of a process, as it arrives.
pub struct Output {
    chunks: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Output {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // A terminal whose other side is gone gives an error, which marks its end.
            while let Ok(n_read @ 1..) = from.read(&mut buffer) {
                if sender.send(buffer[..n_read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { chunks, seen: Vec::new() }
    }

    /// The output seen so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits until a text has been written, and drops everything up to its end.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        let started = Instant::now();
        loop {
            if let Some((_, rest)) = self.text().split_once(text) {
                self.seen = rest.into();
                return;
            }
            match self.chunks.recv_timeout(DEADLINE.saturating_sub(started.elapsed())) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(error) => panic!("{text:?} did not come ({error}); what did:\n{}", self.text()),
            }
        }
    }

    /// Waits until all of the output so far is as wanted; nothing is dropped.
    #[track_caller]
    pub fn until_it(&mut self, is_as_wanted: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !is_as_wanted(&self.text()) {
            match self.chunks.recv_timeout(DEADLINE.saturating_sub(started.elapsed())) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(error) => panic!("it did not come ({error}); what did:\n{}", self.text()),
            }
        }
    }

    /// Waits for a whole line, and returns it.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let started = Instant::now();
        loop {
            if let Some((line, rest)) = self.text().split_once('\n') {
                self.seen = rest.into();
                return line.to_owned();
            }
            match self.chunks.recv_timeout(DEADLINE.saturating_sub(started.elapsed())) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(error) => panic!("no line came ({error}); what did:\n{}", self.text()),
            }
        }
    }

    /// All remaining output, to the end.
    #[track_caller]
    fn rest(&mut self) -> String {
        loop {
            match self.chunks.recv_timeout(DEADLINE) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => return self.text(),
                Err(RecvTimeoutError::Timeout) => panic!("its output does not end:\n{}", self.text()),
            }
        }
    }
}

/// A named pipe that a command opens to show that it runs; its end shows that all its processes are gone.
pub struct Gate {
    output: Output,
}

impl Gate {
    /// In the working directory, by this name. A command passes it with [`Gate::PASS`].
    pub fn new(scene: &Scene, name: &str) -> Self {
        let path = named_pipe(scene, name);
        let (sender, chunks) = channel();
        std::thread::spawn(move || {
            let mut pipe = File::open(path).expect("the pipe can be read");
            let mut buffer = [0; 64];
            while let Ok(n_read @ 1..) = pipe.read(&mut buffer) {
                if sender.send(buffer[..n_read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { output: Output { chunks, seen: Vec::new() } }
    }

    /// The start of a shell command that passes the gate of this name and holds it while it lives.
    pub fn pass(name: &str) -> String {
        format!("exec 9>{name}; echo passed >&9")
    }

    /// Waits until a command has passed.
    #[track_caller]
    pub fn wait(&mut self) {
        self.output.until("passed");
    }

    /// Waits until no process holds it.
    #[track_caller]
    pub fn wait_until_free(mut self) {
        self.output.rest();
    }
}

/// Makes a named pipe in the working directory.
pub fn named_pipe(scene: &Scene, name: &str) -> PathBuf {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let path = scene.path(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe can be made");
    path
}

/// The two sides of a terminal: the person's and the program's.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&person).and_then(|()| unlockpt(&person)).expect("the terminal can be used");
    let name = ptsname(&person, Vec::new()).expect("the terminal has a name");
    let name = name.to_str().expect("it is text");
    // Else it becomes the terminal of the tests, and its end theirs, where they lead a session.
    let no_owner = i32::try_from(OpenptFlags::NOCTTY.bits()).expect("a flag is small");
    let terminal =
        File::options().read(true).write(true).custom_flags(no_owner).open(name).expect("the terminal opens");
    (File::from(person), terminal)
}

fn closed_pipe() -> Stdio {
    let (_reader, writer) = std::io::pipe().expect("a pipe can be made");
    writer.into()
}
