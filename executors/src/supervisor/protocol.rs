//! The orders and reports between a worker and its supervisor, and the programs and ends that they name.

use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::output::{Outputs, Written};
use crate::runs::OutputTo;
use crate::secrets::SecretTexts;

/// The name in the process list, free of the program's own.
pub(super) const PROCESS_NAME: &str = "task-supervisor";
/// The variable that marks the processes of a run.
pub const RUN: &str = "CREWLOG_RUN";

/// The beginning of the marks of a supervisor's runs that end with all of their processes.
pub(super) fn mark_of_all(supervisor: i32) -> String {
    format!("all-{supervisor}-")
}

/// A program to run. Sent as one JSON line, so paths and variables are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments, unchanged: no shell is involved unless the program is one. A name without a slash is
    /// searched in the `PATH`; a relative path counts from `cwd`.
    pub argv: Vec<String>,
    /// Its standard input, empty if absent. A program need not read it.
    pub input: Option<String>,
    /// Its working directory; the worker's if absent.
    pub cwd: Option<PathBuf>,
    /// Variables added to the worker's environment.
    pub env: Vec<(String, String)>,
    /// The variables of that environment that it gets; all of them, if unset.
    pub passes: Option<Vec<String>>,
    /// True if every process that it starts ends with it, in any session; else a daemon continues.
    pub ends_all: bool,
    /// The file that keeps its output while it runs and after, if one does.
    pub output: Option<OutputTo>,
}

impl Spec {
    /// The words that run a line by `sh`, in which `args` are `"$1"`, `"$2"` ...
    pub fn shell_line(line: &str, args: impl IntoIterator<Item = String>) -> Vec<String> {
        let words = ["/bin/sh", "-c", line].map(str::to_owned).into_iter();
        let mut args = args.into_iter().peekable();
        // The word before them is `$0`, the line's own name.
        let name = args.peek().map(|_| "sh".to_owned());
        words.chain(name).chain(args).collect()
    }

    /// The words that run a task's command by `sh`. It stops at the first line that fails or uses an unset variable,
    /// since steps after a failed build are useless.
    pub fn shell_script(command: &str) -> Vec<String> {
        let mut words = Self::shell_line(command, []);
        words.insert(1, "-eu".to_owned());
        words
    }
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// The signal of this number ended it.
    Signal(i32),
    /// It ran, and its end is unknown.
    Lost {
        /// The fault of the system.
        reason: String,
    },
    /// It never ran.
    NotStarted {
        /// The reason, such as a missing working directory.
        reason: String,
    },
}

/// A command's end and its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// Its output, bounded.
    pub written: Written,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Begin {
        lock: Option<PathBuf>,
        /// Replaced in outputs, before anything is kept of them.
        secrets: SecretTexts,
    },
    Start {
        run: u64,
        spec: Spec,
        outputs: Outputs,
    },
    /// A second one can only shorten the grace.
    Stop {
        run: u64,
        grace_ms: u64,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum News {
    Ready,
    Refused { reason: String },
    Ended { run: u64, ended: Ended },
}

/// The reading half of a lifeline.
#[derive(Debug)]
pub(super) struct Inbox(Lines<BufReader<OwnedReadHalf>>);

impl Inbox {
    pub(super) fn new(half: OwnedReadHalf) -> Inbox {
        Inbox(BufReader::new(half).lines())
    }

    /// The next message, `None` when the other end is gone. Dropping the future loses nothing.
    pub(super) async fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        match self.0.next_line().await {
            Ok(Some(line)) => Ok(Some(serde_json::from_str(&line)?)),
            Ok(None) => Ok(None),
            Err(error) if is_hang_up(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(super) async fn send(half: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    half.write_all(&line).await
}

pub(super) fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
