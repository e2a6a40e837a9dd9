//! `crewlog hook status-line`: records the context, the cost and the limits that Claude Code gives its status line, and prints
//! the person's own status line, or else one of crewlog.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::{env, fs, io, thread};

use serde::Deserialize;
use serde_json::Value;

use super::dialect::{Call, Moment};
use super::sight::{Sight, of_status_line};
use crate::cli::programs::{Host, STATUS_LINE};
use crate::ui::terminal::say;
use crate::ui::text::visible;

/// The fields that name the session.
#[derive(Deserialize)]
struct LineInput {
    session_id: String,
    cwd: PathBuf,
}

/// A status line of the person that was started.
pub struct Own(io::Result<Child>);

impl Own {
    /// Starts the given one, or else that in the person's settings, with the same input and output.
    pub fn start(given: Option<String>, input: Vec<u8>) -> Option<Self> {
        let command = given.or_else(of_person)?;
        let started = Command::new("sh").args(["-c", &command]).stdin(Stdio::piped()).spawn();
        Some(Self(started.map(|mut child| {
            // It may read nothing, and fill the pipe.
            child.stdin.take().map(|mut stdin| thread::spawn(move || drop(stdin.write_all(&input))));
            child
        })))
    }

    /// Waits for its end, and returns its exit code.
    pub fn end(self) -> ExitCode {
        match self.0.and_then(|mut child| child.wait()) {
            Ok(status) => {
                status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
            }
            Err(error) => {
                say(&format!("the status line could not be run: {}", visible(&error.to_string())));
                ExitCode::FAILURE
            }
        }
    }
}

/// The call that the input of a status line makes. `own` asks for a line of crewlog.
pub fn call(input: &[u8], own: bool) -> Option<Call> {
    let LineInput { session_id: session, cwd } = serde_json::from_slice(input).ok()?;
    let usage = of_status_line(&serde_json::from_slice(input).ok()?);
    let (event, sight) = ("StatusLine".to_owned(), Some(Sight { usage, ..Sight::default() }));
    let (agent, tool, moment) = (None, None, Moment::StatusLine { own });
    cwd.is_absolute().then_some(Call { host: Host::Claude, event, moment, session, agent, cwd, tool, sight })
}

/// The status line in the person's settings, which that of the project hides.
fn of_person() -> Option<String> {
    let folder = env::var_os("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| Some(env::home_dir()?.join(".claude")))?;
    let settings: Value = serde_json::from_slice(&fs::read(folder.join("settings.json")).ok()?).ok()?;
    let command = settings["statusLine"]["command"].as_str()?;
    // It would start itself.
    (!command.contains(STATUS_LINE)).then(|| command.to_owned())
}
