//! The configuration in `crewlog.toml`, which the program reads and never writes.

mod inbox;
mod model;
mod tools;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crewlog_executors::agent::{Agent, PLACEHOLDER, Program, PromptBy, SESSION, resume_of};
use crewlog_executors::crew::human;
use crewlog_executors::crew::owner::distrusted;
use crewlog_executors::crew::project;
use crewlog_executors::crew::worktree::{Repository, upwards};
use crewlog_executors::private::{state_folder, user_folder};
use crewlog_executors::programs::ProgramConsent;
use crewlog_executors::secrets::Secrets;
use crewlog_executors::shell;
use crewlog_executors::subplans::SUB_PLANS;
use crewlog_planner::agents::registry::{Tool, ToolRegistry};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::protocol::AgentType;
use crewlog_planner::text::price;
use serde::Deserialize;
use serde::de::Deserializer;
use toml::Spanned;
use values::{Fault, checked};

use crate::cli::settings;
use crate::cli::settings::Change;
use crate::cli::typed::{Typed, duration};
use crate::ui::failure::Failure;

pub use inbox::{InboxConfig, Notify};
pub use model::ModelConfig;
#[cfg(test)]
mod tests;

pub const FILE: &str = "crewlog.toml";
pub const CONFIG_BYTES_MAX: usize = 1 << 20;
/// A worker that cannot reach its log stops its runs 45 s before others may take their tasks.
const GRACE_MAX: Duration = Duration::from_secs(30);
/// Less than the time-out of the hook, after which the program continues alone.
const PERMISSION_WAIT_MAX: Duration = Duration::from_secs(590);
pub const AGENT_JOBS_MAX: usize = 1000;
pub const NAME_CHARS_MAX: usize = 64;
/// Prefix of the environment variables that describe a task to a program.
const OWN_VARIABLES: &str = "CREWLOG_";

/// The forms in which a line of a shell uses its first argument.
const ARGUMENTS: [&str; 6] = ["$1", "${1", "$@", "${@", "$*", "${*"];

#[derive(Debug, Clone, Default)]
pub struct Config {
    pub file: Option<PathBuf>,
    /// The project, where its clones on several machines share one.
    pub project: Option<String>,
    pub agents: Vec<Agent>,
    pub model: Option<ModelConfig>,
    /// The tools by which agents plan.
    pub registry: ToolRegistry,
    /// False if these came with a repository.
    pub knows_tools: bool,
    pub hooks: HooksConfig,
    pub inbox: InboxConfig,
    pub secrets: Secrets,
    /// The bytes of the outputs of all runs that are kept on this machine.
    pub runs_bytes_max: Option<u64>,
    /// How long a run may print nothing before the inbox says so.
    pub quiet: Option<Duration>,
    /// Between asking a run to end and killing it.
    pub grace: Option<Duration>,
    pub serve: ServeConfig,
    /// The settings of new plans.
    pub plan: Vec<Change>,
}

/// How `serve` serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// The certificate chain and its key, PEM files: with them everything is over TLS.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The addresses of proxies that add TLS: with them, connections from elsewhere are dropped.
    pub proxies: Vec<IpAddr>,
    /// The names, with ports where they are not the usual ones, by which it is called from elsewhere.
    pub hosts: Vec<String>,
}

/// The hooks of agent programs and of git, as `[hooks]` sets them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HooksConfig {
    /// The policy for a tool call that a hook cannot decide.
    pub on_error: OnError,
    /// True if overlaps with leases of other worktrees are refused too.
    pub strict: bool,
    /// True if an edit takes a lease on its file.
    pub lease_on_edit: bool,
    /// The news that wake an idle session.
    pub wake: Wake,
    /// The most wakes of a session in an hour.
    pub wakes_per_hour: usize,
    /// How long a program's question for permission waits for an answer by crewlog; zero if it is not asked there.
    #[serde(deserialize_with = "wait")]
    pub permission_wait: Duration,
}

/// The news that wake an idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wake {
    Off,
    /// Messages and answers of people, and steps that a person gave to sessions.
    Person,
    /// Messages of agents too.
    All,
}

impl Default for HooksConfig {
    fn default() -> Self {
        let (wake, permission_wait) = (Wake::Person, PERMISSION_WAIT_MAX);
        let (on_error, strict) = (OnError::Allow, false);
        Self { on_error, strict, lease_on_edit: true, wake, wakes_per_hour: 12, permission_wait }
    }
}

/// The policy if a hook cannot decide: the log cannot be opened, or the input is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The tool call runs, with a warning.
    #[default]
    Allow,
    /// It is refused.
    Deny,
}

impl Config {
    /// Reads the file that is named. If none is, reads the nearest [`FILE`] from the folder up to the root of its worktree
    /// (without a repository, of the file system), else that of the main worktree, and the user's own file below it.
    pub fn find(explicit: Option<&Path>, folder: &Path) -> Result<Self, Failure> {
        if let Some(file) = explicit {
            return Self::read(file.to_owned());
        }
        let of_user = user_folder("XDG_CONFIG_HOME", ".config")
            .map(|folder| folder.join(FILE))
            .filter(|file| file.symlink_metadata().is_ok());
        let of_user = of_user.map_or_else(|| Ok(Self::default()), Self::found)?;
        let Some(file) = nearest(folder) else { return Ok(of_user) };
        Ok(Self::found(file)?.needing_consent(folder).over(of_user))
    }

    fn found(file: PathBuf) -> Result<Self, Failure> {
        if let Some(why) = distrusted(&file) {
            let failure = Failure::user(format!("{why}: the programs in it would run as yours"));
            return Err(failure.hint("if you trust it, name it with --config or CREWLOG_CONFIG"));
        }
        // Do not block on a FIFO.
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            let message = format!("the configuration {} is not a regular file", file.display());
            return Err(Failure::user(message).hint("move it away, or name a file with --config or CREWLOG_CONFIG"));
        }
        Self::read(file)
    }

    /// This configuration, whose programs and model need the agreement of a person of this machine, for all worktrees.
    fn needing_consent(mut self, folder: &Path) -> Self {
        let project = Repository::around(folder).map(|repository| repository.common_dir);
        let project = project.or_else(|| self.file.as_ref()?.parent().map(Path::to_owned)).unwrap_or_default();
        // Without a home nothing can be agreed to.
        let agreed = state_folder().unwrap_or_else(|| "/dev/null".into()).join("programs");
        let needed = |parts: Vec<String>| Some(ProgramConsent::new(&agreed, &project, parts));
        for agent in &mut self.agents {
            let how = match (&agent.program, agent.prompt) {
                (Program::Shell(_), PromptBy::Stdin) => "line",
                (Program::Shell(_), PromptBy::Argument) => "line with prompt",
                (Program::Argv(_), PromptBy::Stdin) => "words",
                (Program::Argv(_), PromptBy::Argument) => "words with prompt",
            };
            let variables = agent.env.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
            let passes = agent.passes.iter().flatten().map(|name| format!("passes {name}"));
            let only = agent.passes.iter().map(|_| "only".to_owned());
            let resume = agent.resume.iter().flatten().map(|word| format!("resume {word}"));
            let parts = ["executor".into(), agent.name.clone(), how.into(), agent.env.len().to_string()];
            let parts = parts.into_iter().chain(only).chain(passes).chain(resume);
            agent.consent = needed(parts.chain(variables).chain(agent.program.argv(None)).collect());
        }
        self.knows_tools = false;
        if let Some(model) = &mut self.model {
            model.consent = needed(vec!["model".into(), model.settings.provider.clone(), model.shown()]);
        }
        if let Some(notify) = &mut self.inbox.notify {
            notify.consent = needed([vec!["notify".to_owned()], notify.argv.clone()].concat());
        }
        self
    }

    /// Two files: the first counts, and of the second what the first does not set.
    fn over(mut self, below: Self) -> Self {
        let is_new = |agent: &Agent| self.agents.iter().all(|own| !own.name.eq_ignore_ascii_case(&agent.name));
        let agents = below.agents.into_iter().filter(is_new).collect::<Vec<_>>();
        self.agents.extend(agents);
        if self.registry == ToolRegistry::default() {
            (self.registry, self.knows_tools) = (below.registry, true);
        }
        // Agents can edit the first: it relaxes no rule of the second.
        if below.hooks.on_error == OnError::Deny {
            self.hooks.on_error = OnError::Deny;
        }
        self.hooks.strict |= below.hooks.strict;
        if self.serve == ServeConfig::default() {
            self.serve = below.serve;
        }
        Self {
            // A person chooses a program for all repositories, and no repository turns it off.
            inbox: InboxConfig { notify: below.inbox.notify.or(self.inbox.notify) },
            model: self.model.or(below.model),
            secrets: self.secrets.and(below.secrets),
            runs_bytes_max: self.runs_bytes_max.or(below.runs_bytes_max),
            quiet: self.quiet.or(below.quiet),
            grace: self.grace.or(below.grace),
            plan: [below.plan, self.plan].concat(),
            ..self
        }
    }

    /// In place of a file that cannot be read: its project, as far as that can be found, and hooks that refuse.
    pub fn of_unreadable(explicit: Option<&Path>, folder: &Path) -> Self {
        let file = explicit.map(Path::to_owned).or_else(|| nearest(folder));
        let text = file.and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let own_lines = text.lines().take_while(|line| !line.trim_start().starts_with('['));
        let project = own_lines.filter_map(|line| toml::from_str::<toml::Table>(line).ok()?.remove("project"));
        let project = project.filter_map(|name| name.as_str().map(str::to_owned)).find(|name| project::is_name(name));
        let hooks = HooksConfig { on_error: OnError::Deny, strict: true, ..HooksConfig::default() };
        Self { project, hooks, ..Self::default() }
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
            let message = format!("{name} exceeds the limit of {CONFIG_BYTES_MAX} bytes for a configuration");
            return Err(Failure::user(message).hint("a long prompt belongs into a program that is started"));
        }
        let failure = |Fault { at, message }| {
            let (line, column) = place_of(&bytes, at);
            Failure::user(format!("{name}:{line}:{column}: {message}"))
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            failure(Fault::new(error.valid_up_to(), "this byte is not UTF-8: save the file as UTF-8"))
        })?;
        let config = parse(text).map_err(failure)?;
        Ok(Self { file: Some(file), ..config })
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::user(format!("the configuration {} cannot be read: {error}", file.display()))
        .hint("name one that is there with --config or CREWLOG_CONFIG, or neither")
}

fn nearest(folder: &Path) -> Option<PathBuf> {
    let repository = Repository::around(folder);
    let is_in_worktree =
        |above: &&Path| repository.as_ref().is_none_or(|repository| above.starts_with(&repository.worktree));
    let main = repository.as_ref().map(|repository| repository.main_worktree.as_path());
    let folders = upwards(folder).take_while(is_in_worktree).chain(main);
    // A file of this name is meant for it, even when it cannot be read.
    folders.map(|folder| folder.join(FILE)).find(|file| file.symlink_metadata().is_ok())
}

/// The line and the column, in characters, of a byte: both from 1.
fn place_of(text: &[u8], at: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(&text[..at.min(text.len())]);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The variables that are passed, if only some are, and those that are set.
type Environment = (Option<Vec<String>>, Vec<(String, String)>);

/// The file as it is written. Each value is checked where it is read, so that an error has its place.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FileToml {
    #[serde(deserialize_with = "project")]
    project: Option<String>,
    runs_bytes_max: Option<u64>,
    quiet: Option<Typed<Duration>>,
    #[serde(deserialize_with = "grace")]
    grace: Option<Duration>,
    executors: BTreeMap<Spanned<String>, AgentToml>,
    model: Option<ModelConfig>,
    agents: BTreeMap<AgentType, tools::TypeToml>,
    tools: Vec<Spanned<Tool>>,
    hooks: HooksConfig,
    inbox: InboxConfig,
    secrets: Secrets,
    serve: ServeConfig,
    plan: BTreeMap<Spanned<String>, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentToml {
    command: Spanned<Program>,
    #[serde(default, deserialize_with = "kinds")]
    kinds: Vec<NodeKind>,
    #[serde(default)]
    prompt: PromptBy,
    resume: Option<Spanned<Continuation>>,
    #[serde(default, deserialize_with = "environment")]
    env: Environment,
    #[serde(default, deserialize_with = "grace")]
    grace: Option<Duration>,
    timeout: Option<Typed<Duration>>,
    #[serde(default, deserialize_with = "jobs")]
    jobs: Option<usize>,
    #[serde(default, deserialize_with = "some_signs")]
    rate_limited: Option<Vec<String>>,
    #[serde(default = "for_person", deserialize_with = "signs")]
    for_person: Vec<String>,
    #[serde(default, deserialize_with = "cost")]
    budget_per_day: Option<u64>,
}

fn project<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |name: String| {
        let help = format!("letters, digits and -_./, at most {} of them", project::NAME_BYTES_MAX);
        let message = format!("invalid project name {name:?}: {help}");
        project::is_name(&name).then_some(Some(name)).ok_or(message)
    })
}

/// The words of known programs at the limit of their account. Another program may print its prompt, which has any words.
fn rate_limited(program: &Program) -> Vec<String> {
    let Program::Argv(words) = program else { return Vec::new() };
    let name = words.first().and_then(|program| Path::new(program).file_name());
    let signs: &[&str] = match name.and_then(OsStr::to_str) {
        Some("claude") => &["request rejected (429)", "you've hit your limit", "usage limit reached"],
        Some("codex") => &["exceeded retry limit, last status: 429", "you've hit your usage limit"],
        _another => &[],
    };
    signs.iter().map(|sign| (*sign).to_owned()).collect()
}

/// The words of known programs when nobody is logged in.
fn for_person() -> Vec<String> {
    vec!["please run /login".to_owned()]
}

/// The kinds that an agent may take. A question is for people.
fn kinds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NodeKind>, D::Error> {
    checked(from, |kinds: Vec<NodeKind>| match kinds.is_empty() || kinds.contains(&NodeKind::Clarification) {
        true => Err("an executor has some kinds, without Clarification, or every kind when kinds is left out".into()),
        false => Ok(kinds),
    })
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "resume is true, or the words that continue a session")]
enum Continuation {
    Known(bool),
    Words(Vec<String>),
}

impl Continuation {
    fn words(self, program: &Program) -> Result<Option<Vec<String>>, String> {
        match self {
            Self::Known(false) => Ok(None),
            Self::Known(true) => resume_of(program).map(Some).ok_or(
                "resume = true is for claude, codex exec, gemini and \
                opencode run: write the words of this program, with {session}"
                    .to_owned(),
            ),
            Self::Words(words) if !words.iter().any(|word| word.contains(SESSION)) => {
                Err("no word has {session} in it, the place of the id".to_owned())
            }
            Self::Words(words) => Ok(Some(words)),
        }
    }
}

/// A table sets variables; a list names those that are passed, `NAME`, and sets others, `NAME=VALUE`.
fn environment<'de, D: Deserializer<'de>>(from: D) -> Result<Environment, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "env is a table of variables, or a list of the names that are passed")]
    enum Written {
        Set(BTreeMap<String, String>),
        Passed(Vec<String>),
    }
    checked(from, |written: Written| {
        let (passed, set) = match written {
            Written::Set(set) => (None, set),
            Written::Passed(names) => {
                let (set, passed): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains('='));
                let set = set.iter().filter_map(|both| both.split_once('='));
                (Some(passed), set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
            }
        };
        let nothing = String::new();
        let all = set.iter().chain(passed.iter().flatten().map(|name| (name, &nothing)));
        variables_fault(all).map_or(Ok((passed, set.into_iter().collect())), Err)
    })
}

fn wait<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    checked(from, |wait: String| match wait.as_str() {
        "off" => Ok(Duration::ZERO),
        wait => match duration(wait)? {
            wait if wait <= PERMISSION_WAIT_MAX => Ok(wait),
            _ => Err(format!("permission_wait is off, or at most {} s", PERMISSION_WAIT_MAX.as_secs())),
        },
    })
}

/// At most as long as a worker that lost its log can wait before others take its tasks.
fn grace<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    checked(from, |grace: Typed<Duration>| match grace.value {
        grace if grace <= GRACE_MAX => Ok(Some(grace)),
        _ => Err(format!("grace is at most {} s", GRACE_MAX.as_secs())),
    })
}

fn variables_fault<'a>(mut variables: impl Iterator<Item = (&'a String, &'a String)>) -> Option<String> {
    variables.find_map(|(name, value)| match name {
        name if name.is_empty() || name.contains(['=', '\0']) => {
            Some(format!("invalid variable name {name:?}: = and NUL are not allowed"))
        }
        name if name.starts_with(OWN_VARIABLES) => {
            Some(format!("{name:?} begins with {OWN_VARIABLES}, which describes the task: choose another name"))
        }
        name => value.contains('\0').then(|| format!("the value of {name:?} may hold no NUL")),
    })
}

fn jobs<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    checked(from, |jobs: i64| {
        let jobs = usize::try_from(jobs).ok().filter(|jobs| (1..=AGENT_JOBS_MAX).contains(jobs));
        jobs.map(Some).ok_or(format!("jobs is 1 to {AGENT_JOBS_MAX}"))
    })
}

fn cost<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    checked(from, |written: toml::Value| match written {
        toml::Value::Integer(whole) if whole > 0 => price(&whole.to_string()).map(Some),
        toml::Value::Float(part) if part > 0.0 => price(&part.to_string()).map(Some),
        _ => Err("a budget is a number above 0, such as 20 or 2.50".into()),
    })
}

fn some_signs<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    signs(from).map(Some)
}

fn signs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, |signs: Vec<String>| match signs.iter().any(|sign| sign.trim().is_empty()) {
        true => Err("an empty text matches every output: write a text that the program prints".into()),
        false => Ok(signs),
    })
}

/// Reads a file; its agents keep their order.
fn parse(text: &str) -> Result<Config, Fault> {
    let file: FileToml = toml::from_str(text).map_err(|error| {
        let message = error.message().trim_end().replace('\n', "; ");
        Fault::new(error.span().map_or(0, |span| span.start), message)
    })?;
    let mut written = file.executors.into_iter().collect::<Vec<_>>();
    written.sort_by_key(|(name, _)| name.span().start);
    let mut agents: Vec<Agent> = Vec::new();
    for (name, written) in written {
        let AgentToml { command, kinds, prompt, resume, env, grace, timeout, jobs, .. } = written;
        let (for_person, budget_per_day) = (written.for_person, written.budget_per_day);
        let rate_limited = written.rate_limited.unwrap_or_else(|| rate_limited(command.get_ref()));
        check_name(name.get_ref(), &agents).map_err(|message| Fault::new(name.span().start, message))?;
        check_program(command.get_ref(), prompt).map_err(|message| Fault::new(command.span().start, message))?;
        let resume_at = resume.as_ref().map_or(0, |written| written.span().start);
        let resume = resume.map(|written| written.into_inner().words(command.get_ref()));
        let resume = resume.transpose().map_err(|message| Fault::new(resume_at, message))?.flatten();
        let (name, program, jobs) = (name.into_inner(), command.into_inner(), jobs.unwrap_or(1));
        let timeout = timeout.map(|timeout| timeout.value);
        let (consent, (passes, env)) = (None, env);
        agents.push(Agent {
            name,
            kinds,
            program,
            prompt,
            resume,
            env,
            passes,
            grace,
            timeout,
            jobs,
            rate_limited,
            for_person,
            budget_per_day,
            consent,
        });
    }
    let registry = tools::registry(&file.tools, file.agents)?;
    let set = |(key, value): (Spanned<String>, toml::Value)| {
        settings::of_toml(key.get_ref(), &value).map_err(|message| Fault::new(key.span().start, message))
    };
    let plan = file.plan.into_iter().map(set).collect::<Result<Vec<_>, _>>()?.concat();
    let FileToml { project, model, hooks, inbox, secrets, runs_bytes_max, quiet, grace, serve, .. } = file;
    let (file, knows_tools, quiet) = (None, true, quiet.map(|quiet| quiet.value));
    Ok(Config {
        file,
        project,
        agents,
        model,
        registry,
        knows_tools,
        hooks,
        inbox,
        secrets,
        runs_bytes_max,
        quiet,
        grace,
        serve,
        plan,
    })
}

fn check_name(name: &str, before: &[Agent]) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        let help = format!("letters, digits, - and _, at most {NAME_CHARS_MAX} of them");
        return Err(format!("invalid executor name {name:?}: {help}"));
    }
    if [shell::SHELL, human::NAME, SUB_PLANS].iter().any(|kept| name.eq_ignore_ascii_case(kept)) {
        return Err(format!("{name:?} is the name of another executor"));
    }
    // Tasks are assigned without regard to case.
    match before.iter().find(|agent| agent.name.eq_ignore_ascii_case(name)) {
        Some(agent) => Err(format!("{name:?} and {:?} are one name", agent.name)),
        None => Ok(()),
    }
}

fn check_program(program: &Program, prompt: PromptBy) -> Result<(), &'static str> {
    match (program, prompt) {
        (Program::Argv(words), _) if words.first().is_none_or(|program| program.trim().is_empty()) => {
            Err("the command is empty: name the program first, as in [\"claude\", \"-p\"]")
        }
        (Program::Argv(words), _) if words.iter().any(|word| word.contains('\0')) => {
            Err("a word of the command holds a NUL")
        }
        (Program::Argv(words), _) if words.first().is_some_and(|program| program == PLACEHOLDER) => {
            Err("the prompt is not a program: name the program first")
        }
        (Program::Argv(words), PromptBy::Stdin) if words.iter().any(|word| word == PLACEHOLDER) => {
            Err("{prompt} is an argument, and the prompt comes on standard input: say prompt = \"argument\" too")
        }
        (Program::Shell(line), _) if line.trim().is_empty() => Err("the command is empty: write a line for sh"),
        (Program::Shell(line), _) if line.contains('\0') => Err("the line holds a NUL"),
        (Program::Shell(line), PromptBy::Argument) if !ARGUMENTS.iter().any(|argument| line.contains(argument)) => {
            Err("the line does not use its prompt: write \"$1\", with the quotes, where the prompt belongs")
        }
        (Program::Argv(_) | Program::Shell(_), _) => Ok(()),
    }
}
