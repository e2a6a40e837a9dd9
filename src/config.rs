//! The configuration: which agents carry out tasks, and which model plans, as `crewlog.toml` says. It is read, and never
//! written.

mod model;
mod tools;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crewlog_executors::agent::{Agent, PLACEHOLDER, Program, PromptBy};
use crewlog_executors::subplans::SUB_PLANS;
use crewlog_executors::{human, shell};
use crewlog_planner::agents::registry::{Tool, ToolRegistry};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::protocol::AgentType;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use crate::cli;
use crate::failure::Failure;
use crate::place::Repository;
use crate::project::{PROJECT_BYTES_MAX, is_project_name};
pub use model::ModelConfig;

/// The name of the file where none is named.
pub const FILE: &str = "crewlog.toml";
/// The most bytes of a configuration.
pub const CONFIG_BYTES_MAX: usize = 1 << 20;
/// The most tasks that an agent may carry out at once in one worker.
pub const AGENT_JOBS_MAX: usize = 1000;
/// The most characters of an agent's name.
pub const NAME_CHARS_MAX: usize = 64;

/// Prefix of the environment variables that describe a task to a program.
const OWN_VARIABLES: &str = "CREWLOG_";
/// What an agent may take. A question is for people.
const KINDS: [NodeKind; 7] = [
    NodeKind::ToolCall,
    NodeKind::Processing,
    NodeKind::UnitTest,
    NodeKind::Retrieval,
    NodeKind::Analysis,
    NodeKind::Refactor,
    NodeKind::CodeImplementation,
];

/// What is configured for a working directory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The file that says so.
    pub file: Option<PathBuf>,
    /// The project, where its clones on several machines share one.
    pub project: Option<String>,
    /// In the order of the file.
    pub agents: Vec<Agent>,
    /// The model, if there is one.
    pub model: Option<ModelConfig>,
    /// The tools by which agents plan.
    pub registry: ToolRegistry,
    /// Links that a task reads must answer before it begins.
    pub check_links: bool,
}

impl Config {
    /// Reads the file that is named; else the nearest [`FILE`] from the folder upward to the root of its worktree, or of
    /// all where there is no repository; else that of the main worktree. Without any, nothing is configured.
    pub fn find(explicit: Option<&Path>, folder: &Path) -> Result<Self, Failure> {
        if let Some(file) = explicit {
            return Self::read(file.to_owned());
        }
        let Some(file) = nearest(folder) else { return Ok(Self::default()) };
        // To wait for somebody who writes into a pipe is nobody's wish here.
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            let message = format!("the configuration {} is a folder or the like, and no file", file.display());
            return Err(Failure::user(message).hint("move it away, or name a file with --config or CREWLOG_CONFIG"));
        }
        Self::read(file)
    }

    /// Refuses a file that was named and is not there.
    pub fn check(file: &Path) -> Result<(), Failure> {
        file.metadata().map(drop).map_err(|error| unreadable(file, &error))
    }

    fn read(file: PathBuf) -> Result<Self, Failure> {
        let name = file.display();
        let cannot = |error| unreadable(&file, &error);
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(&file).map_err(cannot)?;
        opened.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() > CONFIG_BYTES_MAX {
            let message = format!("{name} is longer than {CONFIG_BYTES_MAX} bytes, the most for a configuration");
            return Err(Failure::user(message).hint("a long prompt belongs into a program that is started"));
        }
        let failure = |text: &[u8], Fault { at, message, help }: Fault| {
            let (line, column) = place_of(text, at);
            let failure = Failure::user(format!("{name}:{line}:{column}: {message}"));
            help.into_iter().fold(failure, Failure::hint)
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let fault = Fault::at(error.valid_up_to(), "this byte is not UTF-8").help("save the file as UTF-8");
            failure(&bytes, fault)
        })?;
        let config = parse(text).map_err(|fault| failure(&bytes, fault))?;
        Ok(Self { file: Some(file), ..config })
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::user(format!("the configuration {} cannot be read: {error}", file.display()))
        .hint("name one that is there with --config or CREWLOG_CONFIG, or neither")
}

/// The file for a folder, if there is one.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let repository = Repository::around(folder);
    let is_in_worktree =
        |above: &&Path| repository.as_ref().is_none_or(|repository| above.starts_with(&repository.worktree));
    let main = repository.as_ref().map(|repository| repository.main_worktree.as_path());
    let folders = folder.ancestors().take_while(is_in_worktree).chain(main);
    // A file of this name is meant for it, even when it cannot be read.
    folders.map(|folder| folder.join(FILE)).find(|file| file.symlink_metadata().is_ok())
}

/// The line and the column, in characters, of a byte: both from 1.
fn place_of(text: &[u8], at: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(&text[..at.min(text.len())]);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// What is wrong, and at which byte.
#[derive(Debug)]
struct Fault {
    at: usize,
    message: String,
    help: Option<String>,
}

impl Fault {
    fn at(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    fn of<T>(wrong: &Spanned<T>, message: impl Into<String>) -> Self {
        Self::at(wrong.span().start, message)
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileToml {
    project: Option<Spanned<String>>,
    #[serde(default)]
    executors: BTreeMap<Spanned<String>, AgentToml>,
    model: Option<model::ModelToml>,
    #[serde(default)]
    agents: BTreeMap<AgentType, tools::TypeToml>,
    #[serde(default)]
    tools: Vec<Spanned<Tool>>,
    #[serde(default)]
    attachments: AttachmentsToml,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachmentsToml {
    #[serde(default)]
    check_links: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentToml {
    command: Spanned<CommandToml>,
    kinds: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    prompt: PromptToml,
    #[serde(default)]
    env: BTreeMap<Spanned<String>, Spanned<String>>,
    timeout: Option<Spanned<String>>,
    jobs: Option<Spanned<i64>>,
    #[serde(default)]
    rate_limited: Vec<Spanned<String>>,
}

/// A list is a program and its arguments, a text a line for `sh`.
struct CommandToml(Program);

impl<'de> Deserialize<'de> for CommandToml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = Program;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of a program and its arguments, or a line for sh")
            }

            fn visit_str<E>(self, line: &str) -> Result<Program, E> {
                Ok(Program::Shell(line.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Program, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(words)).map(Program::Argv)
            }
        }

        deserializer.deserialize_any(Written).map(Self)
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PromptToml {
    #[default]
    Stdin,
    Argument,
}

/// What a text configures, its agents in its order.
fn parse(text: &str) -> Result<Config, Fault> {
    let file: FileToml = toml::from_str(text).map_err(|error| {
        let message = error.message().trim_end().replace('\n', "; ");
        Fault::at(error.span().map_or(0, |span| span.start), message)
    })?;
    let mut written = file.executors.into_iter().collect::<Vec<_>>();
    written.sort_by_key(|(name, _)| name.span().start);
    let mut agents: Vec<Agent> = Vec::new();
    for (name, executor) in written {
        check_name(&name, &agents)?;
        agents.push(agent(name.into_inner(), executor)?);
    }
    let model = file.model.map(model::model).transpose()?;
    let registry = tools::registry(&file.tools, file.agents)?;
    let project = file.project.map(checked_project).transpose()?;
    Ok(Config { file: None, project, agents, model, registry, check_links: file.attachments.check_links })
}

fn checked_project(name: Spanned<String>) -> Result<String, Fault> {
    if is_project_name(name.get_ref()) {
        return Ok(name.into_inner());
    }
    let help = format!("letters, digits and -_./, at most {PROJECT_BYTES_MAX} of them");
    Err(Fault::of(&name, format!("{:?} is no name of a project", name.get_ref())).help(help))
}

fn check_name(name: &Spanned<String>, before: &[Agent]) -> Result<(), Fault> {
    let typed = name.get_ref();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if typed.is_empty() || typed.len() > NAME_CHARS_MAX || !typed.chars().all(is_plain) {
        let message = format!("{typed:?} is no name of an executor");
        return Err(
            Fault::of(name, message).help(format!("letters, digits, - and _, at most {NAME_CHARS_MAX} of them"))
        );
    }
    if [shell::SHELL, human::NAME, SUB_PLANS].iter().any(|kept| typed.eq_ignore_ascii_case(kept)) {
        return Err(Fault::of(name, format!("{typed:?} is the name of another executor")).help("give it its own"));
    }
    match before.iter().find(|agent| agent.name.eq_ignore_ascii_case(typed)) {
        Some(agent) => Err(Fault::of(name, format!("{typed:?} and {:?} are one name", agent.name))
            .help("tasks are assigned without regard to capitals; give it its own")),
        None => Ok(()),
    }
}

fn agent(name: String, written: AgentToml) -> Result<Agent, Fault> {
    let AgentToml { command, kinds, prompt, env, timeout, jobs, rate_limited } = written;
    let prompt = match prompt {
        PromptToml::Stdin => PromptBy::Stdin,
        PromptToml::Argument => PromptBy::Argument,
    };
    let timeout = timeout.map(|typed| {
        let help = "a number with its unit: 30s, 10m, 2h";
        cli::duration(typed.get_ref()).map_err(|why| Fault::of(&typed, format!("no duration: {why}")).help(help))
    });
    let jobs = jobs.map(|typed| {
        let n_jobs = usize::try_from(*typed.get_ref()).ok().filter(|jobs| (1..=AGENT_JOBS_MAX).contains(jobs));
        n_jobs.ok_or_else(|| Fault::of(&typed, format!("jobs is 1 to {AGENT_JOBS_MAX}")))
    });
    Ok(Agent {
        name,
        kinds: kinds.map_or_else(|| Ok(Vec::new()), |kinds| checked_kinds(&kinds))?,
        program: checked_program(command, prompt)?,
        prompt,
        env: env.into_iter().map(checked_variable).collect::<Result<_, _>>()?,
        timeout: timeout.transpose()?,
        jobs: jobs.transpose()?.unwrap_or(1),
        rate_limited: rate_limited.into_iter().map(checked_sign).collect::<Result<_, _>>()?,
    })
}

fn checked_kinds(typed: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<NodeKind>, Fault> {
    let allowed = || KINDS.map(NodeKind::as_str).join(", ");
    if typed.get_ref().is_empty() {
        let help = format!("leave it out for every kind, or name some of: {}", allowed());
        return Err(Fault::of(typed, "an executor of no kind would do nothing").help(help));
    }
    let kind = |typed: &Spanned<String>| {
        let found = KINDS.into_iter().find(|kind| kind.as_str() == typed.get_ref());
        found.ok_or_else(|| Fault::of(typed, format!("{:?} is no kind of task for an executor", typed.get_ref())))
    };
    let kinds = typed.get_ref().iter().map(kind).collect::<Result<_, _>>();
    kinds.map_err(|fault| fault.help(format!("the kinds are {}", allowed())))
}

fn checked_program(typed: Spanned<CommandToml>, prompt: PromptBy) -> Result<Program, Fault> {
    let fault = |message: &str, help: &str| Err(Fault::of(&typed, message).help(help));
    match (&typed.get_ref().0, prompt) {
        (Program::Argv(words), _) if words.first().is_none_or(|program| program.trim().is_empty()) => {
            fault("the command is empty", "name the program first: [\"claude\", \"-p\"]")
        }
        (Program::Shell(line), _) if line.trim().is_empty() => fault("the command is empty", "write a line for sh"),
        (Program::Argv(words), _) if words.iter().any(|word| word.contains('\0')) => {
            fault("a word of the command holds a NUL", "no program can be given one")
        }
        (Program::Shell(line), _) if line.contains('\0') => fault("the line holds a NUL", "sh cannot read one"),
        (Program::Argv(words), _) if words.first().is_some_and(|program| program == PLACEHOLDER) => {
            fault("the prompt is no program", "name the program first")
        }
        (Program::Argv(words), PromptBy::Stdin) if words.iter().any(|word| word == PLACEHOLDER) => {
            fault("{prompt} is an argument, and the prompt comes on standard input", "say prompt = \"argument\" too")
        }
        (Program::Shell(line), PromptBy::Argument) if !uses_argument(line) => {
            fault("the line does not use its prompt", "write \"$1\", with the quotes, where the prompt belongs")
        }
        (Program::Argv(_) | Program::Shell(_), PromptBy::Stdin | PromptBy::Argument) => Ok(typed.into_inner().0),
    }
}

fn uses_argument(line: &str) -> bool {
    ["$1", "${1", "$@", "${@", "$*", "${*"].iter().any(|use_of| line.contains(use_of))
}

fn checked_variable((name, value): (Spanned<String>, Spanned<String>)) -> Result<(String, String), Fault> {
    let typed = name.get_ref();
    if typed.is_empty() || typed.contains(['=', '\0']) {
        return Err(Fault::of(&name, format!("{typed:?} is no name of a variable")).help("it may hold no = and no NUL"));
    }
    if typed.starts_with(OWN_VARIABLES) {
        let help = "these tell of the task; choose another name";
        return Err(Fault::of(&name, format!("{typed:?} begins with {OWN_VARIABLES}")).help(help));
    }
    if value.get_ref().contains('\0') {
        return Err(Fault::of(&value, "the value of a variable may hold no NUL"));
    }
    Ok((name.into_inner(), value.into_inner()))
}

fn checked_sign(typed: Spanned<String>) -> Result<String, Fault> {
    if typed.get_ref().trim().is_empty() {
        return Err(Fault::of(&typed, "an empty text is in every output").help("write what the program prints"));
    }
    Ok(typed.into_inner())
}

#[cfg(test)]
mod tests;
