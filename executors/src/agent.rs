//! The `command` executor: a coding agent, or any configured program, carries out a task without a command.
//!
//! It gets the task as a prompt and answers with an exit code and its output. Its work is not inspected, and no text of
//! a task ever becomes part of a shell command.

use std::path::Path;
use std::time::Duration;

use crewlog_planner::claim::{Ending, RunDetails};
use crewlog_planner::event::{FailureClass, Usage};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::prompt::{FAILED, QUESTION, split_default};
use crewlog_planner::text::millis;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::limits::resets_in;
use crate::metering::{Meter, greater, metered};
use crate::output::{Outputs, Written, shortened};
use crate::programs::ProgramConsent;
use crate::run::{Executor, Finished, Job, Report, Sink, Stop, run};
use crate::shell::{Shell, shell_word};
use crate::supervisor::Spec;
use crate::usage::{Reported, read, usage_so_far, with_estimate, with_unknown};

/// The argument that is replaced by the prompt.
pub const PLACEHOLDER: &str = "{prompt}";
/// The part of an argument that is replaced by the id of a session.
pub const SESSION: &str = "{session}";
/// The longest argument, in bytes: the limit of Linux (128 KiB including the final NUL).
pub const ARGUMENT_BYTES_MAX: usize = (128 << 10) - 1;
/// The characters from the end of each output that an error quotes.
pub const SAID_CHARS_MAX: usize = 4_000;
/// The longest last line that asks or reports a failure.
const ANSWER_BYTES_MAX: usize = 32 << 10;
/// The exit code of a program that is rate limited: `EX_TEMPFAIL` of `sysexits.h`.
pub const TEMPORARY_FAILURE: i32 = 75;

/// A configured program that carries out tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The name that it acts under, and that tasks are assigned to.
    pub name: String,
    /// The kinds of tasks it takes; all, if empty.
    pub kinds: Vec<NodeKind>,
    /// The program to start.
    pub program: Program,
    /// How it gets its prompt.
    pub prompt: PromptBy,
    /// The program and its arguments that continue a session, [`SESSION`] in place of its id.
    pub resume: Option<Vec<String>>,
    /// Environment variables, besides those that describe the task.
    pub env: Vec<(String, String)>,
    /// The variables of the worker that it gets; all of them, if unset.
    pub passes: Option<Vec<String>>,
    /// The timeout of a run unless its task sets another; unset for that of commands.
    pub timeout: Option<Duration>,
    /// Between asking a run to end and killing it; unset for that of commands.
    pub grace: Option<Duration>,
    /// Tasks at once in one worker.
    pub jobs: usize,
    /// Output of a failed run that means a rate limit, in any case.
    pub rate_limited: Vec<String>,
    /// Output of a failed run that means that a person must act first, in any case.
    pub for_person: Vec<String>,
    /// The most that its runs under one account of one host may cost in a day, in millionths of its unit.
    pub budget_per_day: Option<u64>,
    /// The agreement that it needs.
    pub consent: Option<ProgramConsent>,
}

/// The program to start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a command is a list of a program and its arguments, or a line for sh")]
pub enum Program {
    /// A program and its arguments, as they are.
    Argv(Vec<String>),
    /// A line for `sh`; a prompt that is an argument is its `"$1"`.
    Shell(String),
}

/// How a program gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    /// Through its standard input.
    #[default]
    Stdin,
    /// In place of each argument that is [`PLACEHOLDER`], else as the last argument; its standard input is empty.
    Argument,
}

impl Agent {
    /// True unless it lacks the agreement of a person.
    #[must_use]
    pub fn may_start(&self) -> bool {
        self.consent.as_ref().is_none_or(ProgramConsent::is_given)
    }

    /// The program as it starts, for people: its variables, with their values or without, and a line for a shell.
    #[must_use]
    pub fn shown(&self, has_values: bool) -> String {
        let value = |value: &str| if has_values { shell_word(value) } else { "...".to_owned() };
        let variables = self.env.iter().map(|(name, written)| format!("{name}={}", value(written)));
        let only = self.passes.iter().map(|names| format!("env={names:?}"));
        let resume = self.resume.iter().map(|words| {
            let words = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
            format!("(to continue: {words})")
        });
        only.chain(variables).chain([self.program.line()]).chain(resume).collect::<Vec<_>>().join(" ")
    }

    /// As its program is run by a worker.
    #[must_use]
    pub fn on<'a>(&'a self, shell: &'a Shell) -> Launcher<'a> {
        Launcher { agent: self, shell }
    }

    /// A retry cannot help, so it counts as a failure of the task.
    fn too_long(&self, n_bytes: usize) -> Ending {
        let error = format!(
            "the prompt has {n_bytes} bytes and an argument at most {ARGUMENT_BYTES_MAX}\nsay prompt = \"stdin\" under \
             [executors.{}] in crewlog.toml",
            self.name
        );
        Ending::Failed { error, class: FailureClass::Task, run: None }
    }

    fn failed(&self, finished: Finished, how: &str, said: &str) -> Ending {
        let (out, err) = (said.to_owned(), finished.written.err.text.clone());
        // A program says so at its end; before that it may write about limits.
        let ends = [how, end_of(&out), end_of(&err)];
        let says = |signs: &[String]| {
            let ends = ends.map(str::to_lowercase);
            signs.iter().any(|sign| ends.iter().any(|text| text.contains(&sign.to_lowercase())))
        };
        let class = if finished.code == TEMPORARY_FAILURE || says(&self.rate_limited) {
            let now = jiff::Zoned::now();
            let until = ends.into_iter().filter_map(|text| resets_in(text, &now)).min();
            FailureClass::RateLimited { retry_after_ms: until.map(millis) }
        } else if says(&self.for_person) {
            FailureClass::ForPerson
        } else {
            FailureClass::Task
        };
        let said = [end_of(&out), end_of(&err)].into_iter().filter(|text| !text.is_empty());
        finished.failed(how, &said.collect::<Vec<_>>().join("\n"), class)
    }
}

/// An agent with the supervisor, the environment and the timeout of a shell.
#[derive(Debug, Clone, Copy)]
pub struct Launcher<'a> {
    agent: &'a Agent,
    shell: &'a Shell,
}

impl Executor for Launcher<'_> {
    fn run<'a>(
        &'a self,
        job: Job<'a>,
        sink: &'a Sink,
        stop: &'a mut watch::Receiver<Option<Stop>>,
    ) -> BoxFuture<'a, Report> {
        self.run_program(job, sink, stop).boxed()
    }
}

impl Launcher<'_> {
    async fn run_program(&self, job: Job<'_>, sink: &Sink, stop: &mut watch::Receiver<Option<Stop>>) -> Report {
        let Self { agent, shell } = self;
        let (counts_tokens, prompt) = (job.parameters.counts_tokens, job.prompt.clone());
        let resumed = agent.resume.as_ref().zip(job.session.as_ref());
        let resumed = resumed.map(|(words, id)| words.iter().map(|word| word.replace(SESSION, id)).collect());
        let program = resumed.map_or_else(|| agent.program.clone(), Program::Argv);
        let (argv, input) = match agent.prompt {
            PromptBy::Stdin => (program.argv(None), Some(prompt.clone())),
            PromptBy::Argument if prompt.len() > ARGUMENT_BYTES_MAX => {
                return Report::of(agent.too_long(prompt.len()));
            }
            PromptBy::Argument => (program.argv(Some(&prompt)), None),
        };
        let timeout = job.parameters.timeout_ms.map(Duration::from_millis);
        let timeout = timeout.or(agent.timeout).unwrap_or(shell.timeout);
        let mut meter = job.output.clone().map(Meter::new);
        let spec = job.spec(argv, input, shell.env.iter().chain(&agent.env).cloned().collect());
        let spec = Spec { ends_all: true, passes: agent.passes.clone(), ..spec };
        let limits = (timeout, agent.grace.unwrap_or(shell.grace));
        let ran = tokio::select! {
            ran = run(&shell.supervisor, spec, Outputs::Apart, limits, stop) => ran,
            never = metered(&mut meter, sink) => match never {},
        };
        // The rest of it.
        let used = meter.as_mut().map(|meter| meter.read(sink)).unwrap_or_default();
        let all =
            |usage: Usage, said: &str| with_unknown(with_estimate(greater(usage, &used), counts_tokens, &prompt, said));
        match ran {
            Ok(finished) => {
                let Reported { text, usage, failure } = read(&finished.written.out.text);
                // A text within JSON was hidden by its escapes.
                let text = shell.supervisor.redacted(&text);
                let failure = failure.map(|said| shell.supervisor.redacted(&said));
                let usage = all(usage, &text);
                let ending = match finished.failure(failure.as_deref()) {
                    None => answered(finished, &text),
                    Some(how) => agent.failed(finished, &how, &text),
                };
                Report { ending, usage }
            }
            Err(cut_short) => match *cut_short {
                (Ending::Failed { error, class: class @ FailureClass::NotStarted, run }, _) => {
                    let error = format!("{error}\nit is the command of [executors.{}] in crewlog.toml", agent.name);
                    Report::of(Ending::Failed { error, class, run })
                }
                (ending, Written { out, .. }) => Report { ending, usage: all(usage_so_far(&out.text), &out.text) },
            },
        }
    }
}

/// The words that continue a session of a known program.
#[must_use]
pub fn resume_of(program: &Program) -> Option<Vec<String>> {
    let Program::Argv(words) = program else { return None };
    let after = |word: &str| words.iter().position(|known| known == word).map(|at| at + 1);
    let (at, new) = match Path::new(words.first()?).file_name()?.to_str()? {
        "claude" | "gemini" => (1, ["--resume", SESSION]),
        "opencode" => (after("run")?, ["-s", SESSION]),
        // Its subcommand comes after the options of `exec`.
        "codex" => {
            after("exec")?;
            (words.iter().position(|word| word == PLACEHOLDER).unwrap_or(words.len()), ["resume", SESSION])
        }
        _another => return None,
    };
    let (before, rest) = words.split_at(at);
    Some(before.iter().cloned().chain(new.map(str::to_owned)).chain(rest.iter().cloned()).collect())
}

impl Program {
    /// As a line for a shell.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Argv(words) => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
            Self::Shell(line) => line.clone(),
        }
    }

    /// The command line, with the prompt if it is an argument.
    pub fn argv(&self, prompt: Option<&str>) -> Vec<String> {
        // No argument can hold a NUL.
        let prompt = prompt.map(|prompt| prompt.replace('\0', ""));
        match (self, prompt) {
            (Self::Argv(words), None) => words.clone(),
            (Self::Argv(words), Some(prompt)) => {
                let is_named = words.iter().any(|word| word == PLACEHOLDER);
                let last = (!is_named).then(|| prompt.clone());
                let placed = words.iter().map(|word| if word == PLACEHOLDER { &prompt } else { word });
                placed.cloned().chain(last).collect()
            }
            (Self::Shell(line), prompt) => Spec::shell_line(line, prompt),
        }
    }
}

/// The ending of an agent that exited with 0: its last line may ask a question or report failure.
fn answered(finished: Finished, text: &str) -> Ending {
    let text = text.trim();
    let is_answer = |line: &str| [QUESTION, FAILED].iter().any(|word| said(line, word).is_some());
    let mut lines = text.lines().rev().filter(|line| !bare(line).is_empty());
    let last = lines.next().unwrap_or(&text[..0]);
    let is_long = last.len() > ANSWER_BYTES_MAX && is_answer(last);
    if is_long || finished.written.out.lacks_last_line {
        let how = format!("its last line is too long: a question or a failure has at most {ANSWER_BYTES_MAX} bytes");
        return finished.failed(&how, end_of(last), FailureClass::Task);
    }
    let before = &text[..last.as_ptr() as usize - text.as_ptr() as usize];
    if let Some(question) = said(last, QUESTION) {
        if question.is_empty() {
            let how = format!("it ended with {QUESTION} without a question");
            return finished.failed(&how, end_of(before), FailureClass::Task);
        }
        let (question, default) = split_default(question);
        return Ending::Asked { question, default };
    }
    if let Some(reason) = said(last, FAILED) {
        let how = if reason.is_empty() { "the agent gave no reason" } else { reason };
        return finished.failed(how, end_of(before), FailureClass::Task);
    }
    if let Some(line) = lines.take(4).find(|line| is_answer(line)) {
        tracing::warn!("the agent went on after its line {line:?}, so its task counts as done");
    }
    let result = shortened(text);
    let output_is_cut = finished.details.output_is_cut || result.len() < text.len();
    Ending::Completed { result, run: Some(RunDetails { output_is_cut, ..finished.details }) }
}

/// The text after a word and its colon, at the beginning of a line.
fn said<'t>(line: &'t str, word: &str) -> Option<&'t str> {
    let rest = bare(line).strip_prefix(word.trim_end_matches(':'))?;
    rest.trim_start_matches(['*', '_', '`']).strip_prefix(':').map(bare)
}

/// A line without the signs of Markdown around it: an item, a quotation, a heading, emphasis, code, a fence.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(['>', '#', '*', '_', '`', '~', '-', '+', ' ', '\t']);
    let begin = &line[..line.len() - rest.len()];
    rest.trim_end_matches(|sign| "*_`~".contains(sign) && begin.contains(sign))
}

/// The last characters of a text, at most as many as an error may quote.
fn end_of(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.char_indices().rev().nth(SAID_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    text[start..].trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_known_programs_are_continued_by_their_own_words() {
        for (command, expected) in [
            ("claude -p", Some("claude --resume {session} -p")),
            ("/opt/claude -p --verbose", Some("/opt/claude --resume {session} -p --verbose")),
            ("codex exec --json", Some("codex exec --json resume {session}")),
            ("codex exec --json {prompt}", Some("codex exec --json resume {session} {prompt}")),
            ("codex", None),
            ("gemini -p {prompt}", Some("gemini --resume {session} -p {prompt}")),
            ("opencode run --format json", Some("opencode run -s {session} --format json")),
            ("opencode serve", None),
            ("sh claude", None),
        ] {
            let words = Program::Argv(command.split(' ').map(str::to_owned).collect());
            assert_eq!(resume_of(&words).map(|words| words.join(" ")).as_deref(), expected, "{command}");
        }
        assert_eq!(resume_of(&Program::Shell("claude -p".to_owned())), None);
    }
}
