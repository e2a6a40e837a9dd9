//! The environment of a command: the log's place, the person, the options.

pub mod config;
pub mod crew;
pub mod place;
pub mod roster;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use crewlog_executors::caller::{By, account};
use crewlog_executors::crew::folders::Folders;
use crewlog_executors::crew::{Crew, project};
use crewlog_executors::exports::EventJson;
use crewlog_executors::private::state_folder;
use crewlog_executors::runs::{OutputFiles, QUIET, RUNS_BYTES_MAX};
use crewlog_mq::{Error, Recorded, Rewrite};
use crewlog_planner::event::{PlannerConfig, plan_tag};
use crewlog_planner::parse::TEXT_BYTES_MAX;
use serde::Serialize;

use crate::cli::Global;
use crate::cli::settings::apply;
use crate::context::config::Config;
use crate::context::place::Place;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::{print_line, print_pretty};
use crate::ui::terminal::{Output, Results, Terminal, say};
use crate::ui::text::{shell_word, visible};

/// Messages for empty lists, by their keys.
const EMPTY: [(&str, &str); 13] = [
    ("items", "nothing waits for you"),
    ("messages", "there are no new messages; --all lists all"),
    ("agents", "no agents are here; --all lists those that left"),
    ("leases", "no agent has a lease"),
    ("conflicts", "there are no conflicts"),
    ("plans", "there is no plan yet: `crewlog run FILE` makes one"),
    ("projects", "there is no project with plans yet"),
    ("checkpoints", "the plan has no checkpoints"),
    ("groups", "there are no groups"),
    ("parked", "no events are parked"),
    ("tokens", "there are no tokens: `crewlog serve tokens add NAME` makes one"),
    ("keys", "there are no keys of plans"),
    ("grants", "there are no grants: each new task asks"),
];

pub use crewlog_executors::crew::runs::AGENT_ID;

/// Variables that are set below an agent program, and below a task that crewlog runs.
const SIGNS: [&str; 13] = [
    AGENT_ID,
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_CI",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "OPENCODE_PID",
    "CREWLOG_PLAN",
];

#[derive(Clone)]
pub struct Session {
    pub place: Arc<Place>,
    pub terminal: Terminal,
    pub output: Output,
    /// The plan's commands run without asking.
    pub yes: bool,
    pub folder: PathBuf,
    /// The configuration that the user named.
    config_file: Option<PathBuf>,
    config: Arc<OnceLock<Config>>,
    /// True once a line for hints was made that lacks the password of the log.
    lacks_password: Arc<AtomicBool>,
    remote: Option<Arc<Remote>>,
}

/// The caller of a command that came over the network.
struct Remote {
    pub crew: Arc<Crew>,
    pub by: By,
    /// True if it may do everything that a person may.
    pub is_person: bool,
    pub reply: Mutex<Reply>,
}

/// The output of a command.
#[derive(Debug, Default)]
pub struct Reply {
    /// The result.
    pub result: serde_json::Value,
    /// Its other messages: warnings, and requests for consent.
    pub notes: Vec<String>,
}

impl Remote {
    fn reply(&self) -> MutexGuard<'_, Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    pub fn new(global: &Global) -> Result<Self, Failure> {
        let folder = std::env::current_dir()
            .map_err(|error| Failure::user(format!("the working directory cannot be found: {error}")))?;
        Self::in_folder(global, folder)
    }

    /// The same for a folder in place of the working directory.
    pub fn in_folder(global: &Global, folder: PathBuf) -> Result<Self, Failure> {
        // A missing named configuration is an error even for commands that need none.
        global.config.as_deref().map_or(Ok(()), Config::check)?;
        let (named, start) = (global.config.clone(), folder.clone());
        // Read at the first append: commands that only read need no configuration.
        let config = LazyLock::new(move || Config::find(named.as_deref(), &start));
        let redact: Rewrite = Arc::new(move |event| match &*config {
            Ok(config) => config.secrets.redacted_event(event),
            Err(failure) => Err(Error::Veil(Arc::new(io::Error::other(failure.to_string())))),
        });
        Ok(Self {
            place: Arc::new(Place::find(global.store.as_deref(), &folder, global.keys.clone(), redact)),
            terminal: Terminal::new(&global.terminal),
            output: global.terminal.output,
            yes: global.yes,
            folder,
            config_file: global.config.clone(),
            config: Arc::default(),
            lacks_password: Arc::default(),
            remote: None,
        })
    }

    /// The session of a command that came over the network: it prints JSON into its reply, asks nothing and reads no files.
    pub fn of_remote(&self, crew: Arc<Crew>, by: By, is_person: bool) -> Self {
        let terminal = Terminal {
            is_interactive: false,
            is_live: false,
            is_quiet: false,
            shows_results: false,
            has_colour: false,
        };
        let remote = Remote { crew, by, is_person, reply: Mutex::default() };
        Self { terminal, output: Output::Json, yes: false, remote: Some(Arc::new(remote)), ..self.clone() }
    }

    /// The output so far.
    pub fn reply(&self) -> Reply {
        let take = |remote: &Arc<Remote>| std::mem::take(&mut *remote.reply());
        self.remote.as_ref().map(take).unwrap_or_default()
    }

    /// Says something on standard error.
    pub fn say(&self, text: &str) {
        match &self.remote {
            Some(remote) => remote.reply().notes.push(text.to_owned()),
            None => say(text),
        }
    }

    /// Writes a result on standard output, or gives its JSON to the remote caller.
    fn write(
        &self,
        json: &impl Serialize,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Code, Failure> {
        if let Some(remote) = &self.remote {
            remote.reply().result = serde_json::to_value(json)?;
            return Ok(Code::Done);
        }
        let mut stdout = BufWriter::new(Results::new(self.output));
        write(&mut stdout).and_then(|()| stdout.flush()).map_err(Failure::output)?;
        Ok(Code::Done)
    }

    /// True unless the command came over the network. Only a local one reads the files that its words name.
    pub fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    /// The person, as events name them.
    pub fn person(&self) -> String {
        let of_token = self.remote.as_ref().and_then(|remote| remote.by.token.clone());
        of_token.unwrap_or_else(account)
    }

    /// The author of what this session orders, by one of its faces.
    pub fn by(&self, face: &'static str, token: Option<String>) -> By {
        By::here(face, token, agent_id())
    }

    /// The configuration, read at its first use: a wrong file fails only commands that need it.
    pub fn config(&self) -> Result<&Config, Failure> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = Config::find(self.config_file.as_deref(), &self.folder)?;
        Ok(self.config.get_or_init(|| config))
    }

    /// The same session, and the fault of a configuration that cannot be read, whose decisions about hooks then count as
    /// refusals.
    pub fn with_some_configuration(self) -> (Self, Option<String>) {
        let Err(failure) = self.config() else { return (self, None) };
        let strict = Config::of_unreadable(self.config_file.as_deref(), &self.folder);
        (Self { config: Arc::new(OnceLock::from(strict)), ..self }, Some(failure.message))
    }

    /// Prints a result on standard output: as JSON, or as `text` writes it.
    pub fn print(
        &self,
        json: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Code, Failure> {
        self.write(json, |to| match self.output {
            Output::Json => print_pretty(to, json),
            Output::Jsonl => print_line(to, json),
            Output::Text => text(to),
        })
    }

    /// Prints a list: as JSON one document with the list under `key` and the other `facts`; otherwise each item as text.
    pub fn print_list<'a, T, J: Serialize>(
        &self,
        key: &str,
        mut facts: serde_json::Value,
        items: &'a [T],
        json: impl Fn(&'a T) -> J,
        mut text: impl FnMut(&mut dyn Write, &T) -> io::Result<()>,
    ) -> Result<Code, Failure> {
        if self.output == Output::Json {
            facts[key] = serde_json::to_value(items.iter().map(json).collect::<Vec<_>>())?;
            return self.print(&facts, |_| Ok(()));
        }
        self.write(&facts, |to| {
            items.iter().try_for_each(|item| match self.output {
                Output::Json | Output::Jsonl => print_line(&mut *to, &json(item)),
                Output::Text => text(&mut *to, item),
            })
        })?;
        if let Some((_, said)) = EMPTY.iter().find(|(list, _)| *list == key && items.is_empty()) {
            self.suggest(said);
        }
        Ok(Code::Done)
    }

    /// Prints an event where the output is JSON lines. Keeps the first fault, after which nothing is printed.
    pub fn print_event(&self, recorded: &Recorded, fault: &mut Option<io::Error>) -> Result<(), Failure> {
        if self.output == Output::Jsonl && fault.is_none() {
            *fault = print_line(Results::exact(), &EventJson::of(recorded)?).err();
        }
        Ok(())
    }

    /// Prints a result as one line of text or JSON.
    pub fn print_done(&self, text: &str, json: &serde_json::Value) -> Result<Code, Failure> {
        self.write(json, |to| match self.output {
            Output::Text => writeln!(to, "{}", visible(text)),
            Output::Json | Output::Jsonl => print_line(to, json),
        })
    }

    /// Prints a result as one line; the work continues without a reader.
    pub fn print_begun(&self, text: &str, json: &serde_json::Value) -> Result<(), Failure> {
        self.print_done(text, json).map(drop).or_else(Failure::unless_closed)
    }

    /// Says something on standard error, unless --quiet was given.
    pub fn remark(&self, text: &str) {
        if !self.terminal.is_quiet {
            self.say(&visible(text));
        }
    }

    /// The same after a result for people only.
    pub fn suggest(&self, text: &str) {
        if self.output == Output::Text {
            self.remark(text);
        }
    }

    /// A command line of this program for hints, on the same log and with the same configuration. It leaves out what a
    /// shell of the same environment knows, and a password.
    pub fn command(&self, words: &str) -> String {
        let is_of_environment = |option: &str, value: &OsStr| {
            let variable = option.trim_start_matches('-').replace('-', "_").to_uppercase();
            std::env::var_os(format!("CREWLOG_{variable}")).is_some_and(|known| known == value)
        };
        let mut program = "crewlog".to_owned();
        if self.place.is_named && !is_of_environment("--store", OsStr::new(&self.place.url)) {
            let (url, had_password) = self.place.pastable_url();
            program.push_str(&format!(" --store {}", shell_word(&url)));
            self.lacks_password.fetch_or(had_password, Ordering::Relaxed);
        }
        let config = self.config_file.as_ref().map(|path| ("--config", path));
        for (option, path) in config.into_iter().chain(self.place.keys.options()) {
            if !is_of_environment(option, path.as_os_str()) {
                program.push_str(&format!(" {option} {}", shell_word(&path.to_string_lossy())));
            }
        }
        format!("{program} {words}")
    }

    /// Says how the lines that were made get the password that they lack.
    pub fn say_where_passwords_go(&self) {
        if self.lacks_password.load(Ordering::Relaxed) {
            self.remark(
                "printed commands leave out the password of --store: set CREWLOG_STORE or PGPASSWORD to run them",
            );
        }
    }

    /// The typed command line with another name in place of a plan's, or added to it if none was typed.
    pub fn retyped(&self, typed: Option<&str>, plan: &str) -> Option<String> {
        const GLOBAL: [&str; 4] = ["--store", "--config", "--key-file", "--keys"];
        let (mut words, mut is_retyped) = (Vec::new(), false);
        let mut args = std::env::args_os().skip(1).filter(|_| self.remote.is_none());
        while let Some(word) = args.next() {
            let word = word.to_string_lossy();
            if GLOBAL.contains(&word.split('=').next().unwrap_or_default()) {
                // Its value is the next word.
                if !word.contains('=') {
                    args.next();
                }
                continue;
            }
            let (option, value) = word.strip_prefix("--plan=").map_or(("", &*word), |value| ("--plan=", value));
            let rest = typed.and_then(|typed| value.strip_prefix(typed)).filter(|_| !words.is_empty());
            let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', '@']));
            is_retyped |= rest.is_some();
            let word = rest.map_or_else(|| word.to_string(), |rest| format!("{option}{plan}{rest}"));
            words.push(visible(&shell_word(&word)));
        }
        if typed.is_none() && !words.is_empty() {
            words.push(visible(&shell_word(plan)));
            is_retyped = true;
        }
        is_retyped.then(|| self.command(&words.join(" ")))
    }

    /// Such a line on a plan. The id of an imported one may hold anything.
    pub fn command_on(&self, word: &str, plan: &str) -> String {
        self.command(&format!("{word} {}", visible(&shell_word(plan))))
    }

    /// Such a line on a task or a question of a plan.
    pub fn command_in(&self, word: &str, plan: &str, name: &str) -> String {
        self.command_on(word, &format!("{plan}/{name}"))
    }

    /// The outputs of runs on this machine.
    pub fn outputs(&self) -> Result<OutputFiles, Failure> {
        let Config { runs_bytes_max, quiet, .. } = self.config()?;
        let (bytes_max, quiet) = (runs_bytes_max.unwrap_or(RUNS_BYTES_MAX), quiet.unwrap_or(QUIET));
        Ok(OutputFiles::new(self.place.runs_folder(), bytes_max, quiet).with_keys(self.place.output_keys()?))
    }

    /// Says that a copy of the log has no outputs of runs, if there are any.
    pub fn say_outputs_stay(&self) {
        let folder = self.place.runs_folder();
        if folder.exists() {
            self.suggest(&format!("it has no outputs of runs: they stay in {}", folder.display()));
        }
    }

    /// The settings of a plan that is made here, as the configuration sets them.
    pub fn config_of_new(&self, jobs: Option<usize>) -> Result<PlannerConfig, Failure> {
        let folder = Some(self.folders(true)?.keep(&self.folder));
        let mut config = PlannerConfig { folder, ..PlannerConfig::default() };
        apply(&self.config()?.plan, &mut config);
        config.parallelism = jobs.unwrap_or(config.parallelism);
        Ok(config)
    }

    /// The paths of plans on this machine. For work the project of a repository gets its id, and is noted.
    pub fn folders(&self, works: bool) -> Result<Folders, Failure> {
        let repository = self.place.repository.clone();
        let has_id = repository.is_some() && (works || self.has_project()?);
        let project = if has_id { Some(self.project()?) } else { None };
        let notes = state_folder().map(|folder| folder.join("projects"));
        let folders = Folders { project, repository, notes };
        // Without the note only commands from other folders do not find it.
        let _ = works.then(|| folders.note());
        Ok(folders)
    }

    /// The tags of the events of a plan that is made here.
    pub fn tags_of_new(&self, plan: &str) -> Result<Vec<String>, Failure> {
        Ok([vec![plan_tag(plan)], self.tags_of_project()?].concat())
    }

    /// The tags of events that are made here, and are of no plan.
    pub fn tags_of_project(&self) -> Result<Vec<String>, Failure> {
        Ok(vec![format!("project:{}", self.project()?)])
    }

    /// The project of the working directory; its id is made at first use.
    pub fn project(&self) -> Result<String, Failure> {
        match &self.config()?.project {
            Some(project) => Ok(project.clone()),
            None => project::id(self.place.repository.as_ref(), &self.folder)
                .map_err(|why| Failure::user(why).hint("name the project in crewlog.toml: project = \"NAME\"")),
        }
    }

    /// True unless the project of the working directory has no id yet.
    pub fn has_project(&self) -> Result<bool, Failure> {
        let is_made = || project::file(self.place.repository.as_ref(), &self.folder).exists();
        Ok(self.config()?.project.is_some() || is_made())
    }

    /// A text, from a file or standard input.
    pub fn read_text(&self, file: &Path) -> Result<String, Failure> {
        if !self.is_local() {
            return Err(Failure::user("no file of the server is read"));
        }
        let name = file.display();
        let cannot = |error: io::Error| Failure::user(format!("{name} cannot be read: {error}"));
        let hint = "give the path of a text that says what to do, or - for standard input";
        let source: Box<dyn Read> = match file == Path::new("-") {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(file).map_err(|error| cannot(error).hint(hint))?),
        };
        let mut bytes = Vec::new();
        source.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() > TEXT_BYTES_MAX {
            let message = format!("{name} exceeds the limit of {TEXT_BYTES_MAX} bytes for a plan");
            return Err(Failure::new(Code::Parse, message).hint("split it into several plans"));
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            Failure::new(Code::Parse, format!("{name} is not text: byte {at}, in line {line}, is not UTF-8"))
                .hint("save it as UTF-8")
        })
    }
}

/// Prints a list that is too long to be held in memory, item by item: lines of text or JSON, or one JSON document that ends with the list.
pub struct ListPrinter<'a> {
    session: &'a Session,
    keys: String,
    stdout: BufWriter<Results>,
    n_printed: usize,
}

impl<'a> ListPrinter<'a> {
    /// A document with these keys; the list is the value of the last. Nothing is written before the first item or the end, so
    /// that an error comes alone.
    pub fn new(session: &'a Session, keys: impl Into<String>) -> Self {
        Self { session, keys: keys.into(), stdout: BufWriter::new(Results::new(session.output)), n_printed: 0 }
    }

    pub fn print(
        &mut self,
        json: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let begin = if self.n_printed == 0 { format!("{{{}: [\n  ", self.keys) } else { ",\n  ".to_owned() };
        self.n_printed += 1;
        let printed = match self.session.output {
            Output::Jsonl => print_line(&mut self.stdout, json),
            Output::Json => {
                write!(self.stdout, "{begin}").and_then(|()| Ok(serde_json::to_writer(&mut self.stdout, json)?))
            }
            Output::Text => text(&mut self.stdout),
        };
        printed.map_err(Failure::output)
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(Failure::output)
    }

    /// Ends the document; an empty list gets a message and an exit code of its own.
    pub fn end(mut self, if_empty: &str) -> Result<Code, Failure> {
        let end = match (self.session.output, self.n_printed) {
            (Output::Json, 0) => format!("{{{}: [\n]}}\n", self.keys),
            (Output::Json, _) => "\n]}\n".to_owned(),
            (Output::Jsonl | Output::Text, _) => String::new(),
        };
        self.stdout.write_all(end.as_bytes()).map_err(Failure::output)?;
        self.flush()?;
        if self.n_printed > 0 {
            return Ok(Code::Done);
        }
        self.session.remark(if_empty);
        Ok(Code::Nothing)
    }
}

pub fn is_below_agent() -> bool {
    SIGNS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The agent that this process acts for, if it has the identity of one.
pub fn agent_id() -> Option<String> {
    std::env::var(AGENT_ID).ok().filter(|agent| !agent.is_empty())
}
