//! Other processes: the test binary runs itself, with its role in the environment.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// The role of a child process, and its log.
const ROLE: &str = "CREWLOG_TEST_CHILD";
const STORE: &str = "CREWLOG_TEST_CHILD_STORE";

/// The role of this process, and its log.
pub(super) fn role() -> (String, String) {
    let given = |name| std::env::var(name).expect("a test has started this process");
    (given(ROLE), given(STORE))
}

/// Prints a line that the parent can distinguish from those of the test harness, which leaves a line open before.
pub(super) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").expect("the parent listens");
    out.flush().expect("the parent listens");
}

const MARK: &str = "said: ";

/// A child process that is killed when dropped.
pub(super) struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    complaints: Option<JoinHandle<String>>,
}

impl Other {
    /// Starts the test `body`, which looks at its [`role`].
    pub(super) fn start(body: &str, role: &str, url: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_by(&[], body, role, url, environment)
    }

    /// Starts it through another program, which gets the command line as its last arguments.
    pub(super) fn start_by(by: &[&str], body: &str, role: &str, url: &str, environment: &[(&str, &str)]) -> Self {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let mut words: Vec<_> = by.iter().map(std::ffi::OsString::from).collect();
        words.push(binary.into());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args([body, "--exact", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(STORE, url)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the test binary runs");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut errors = child.stderr.take().expect("it is piped");
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            // A line truncated by a kill does not matter.
            let _ = errors.read_to_string(&mut text);
            text
        });
        Self { child, lines, complaints: Some(complaints) }
    }

    /// Its next line; none once it has ended.
    pub(super) fn next(&mut self) -> Option<String> {
        for line in self.lines.by_ref() {
            if let Some(said) = line.expect("the pipe can be read").strip_prefix(MARK) {
                return Some(said.to_owned());
            }
        }
        None
    }

    pub(super) fn all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
    }

    /// Waits for its end, which must be a failure.
    #[track_caller]
    pub(super) fn fails(mut self) {
        assert!(!self.child.wait().expect("it can be waited for").success());
    }

    /// Waits for its end, which must be a success; returns its remaining output.
    #[track_caller]
    pub(super) fn succeeds(mut self) -> Vec<String> {
        let said = self.all();
        let ended = self.child.wait().expect("it can be waited for");
        let complaints = self.complaints.take().map(|complaints| complaints.join().expect("it can be read"));
        assert!(ended.success(), "{ended}: {said:#?} {}", complaints.unwrap_or_default());
        said
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of the test `body` in the module of the caller.
macro_rules! body {
    ($name:ident) => {
        &format!("{}::{}", module_path!().split_once("::").expect("a test is in a module").1, stringify!($name))
    };
}
pub(super) use body;

/// The number of rounds: few by default, more with `./test crash`.
pub(super) fn n_rounds(in_the_checks: u64) -> u64 {
    let asked = std::env::var("CREWLOG_CRASH_ROUNDS").ok();
    asked.map_or(in_the_checks, |asked| asked.parse().expect("CREWLOG_CRASH_ROUNDS is a number"))
}

/// Random numbers from a seed, which a failing test prints and `CREWLOG_CRASH_SEED` can set.
pub(super) struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    pub(super) fn new() -> Self {
        let given = std::env::var("CREWLOG_CRASH_SEED").ok();
        let seed = given.map_or_else(
            || uuid::Uuid::now_v7().as_u64_pair().1,
            |given| given.parse().expect("CREWLOG_CRASH_SEED is a number"),
        );
        Self { seed, state: seed }
    }

    /// A number below `n`, which is not 0 (splitmix64).
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }

    /// Lets some time pass, busily: up to this many microseconds, so that a kill hits the other process anywhere.
    pub(super) fn linger(&mut self, micros_max: u64) {
        let micros = self.below(micros_max);
        let began = std::time::Instant::now();
        while began.elapsed().as_micros() < u128::from(micros) {
            std::thread::yield_now();
        }
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was CREWLOG_CRASH_SEED={}", self.seed);
        }
    }
}
