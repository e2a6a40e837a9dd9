//! The `shell` executor: a task's command in `sh`, under a supervisor, with bounded output and a time-out.

use std::time::Duration;

use crewlog_planner::claim::Ending;
use crewlog_planner::crew::consent::is_plain;
use crewlog_planner::event::FailureClass;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::output::Outputs;
use crate::run::{Executor, Job, Report, Sink, Stop, run};
use crate::supervisor::{Spec, Supervisor};
use crate::usage::{Reported, read, usage_so_far};

/// The name of the executor of commands.
pub const SHELL: &str = "shell";

/// The settings for running commands.
#[derive(Debug, Clone)]
pub struct Shell {
    /// Runs them.
    pub supervisor: Supervisor,
    /// Environment variables, besides those that describe the task.
    pub env: Vec<(String, String)>,
    /// The timeout of a run, unless its task sets another.
    pub timeout: Duration,
    /// Between asking a run to end and killing it.
    pub grace: Duration,
}

/// A word for a shell command line, quoted if necessary.
pub fn shell_word(word: &str) -> String {
    if is_plain(word) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A command of several lines in one line, for display.
#[must_use]
pub fn in_one_line(command: &str) -> String {
    command.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The words of a line, as a shell splits it: quotes and backslashes keep spaces. None if a quote is not closed.
#[must_use]
pub fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '\\' if quote != Some('\'') => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

impl Shell {
    async fn run_command(&self, job: Job<'_>, stop: &mut watch::Receiver<Option<Stop>>) -> Report {
        let Some(command) = &job.parameters.command else {
            let error = "the task has no command".to_owned();
            return Report::of(Ending::Failed { error, class: FailureClass::Task, run: None });
        };
        let timeout = job.parameters.timeout_ms.map_or(self.timeout, Duration::from_millis);
        let argv = Spec::shell_script(command);
        let spec = job.spec(argv, None, self.env.clone());
        let finished = match run(&self.supervisor, spec, Outputs::Mixed, (timeout, self.grace), stop).await {
            Ok(finished) => finished,
            Err(cut_short) => {
                return Report { ending: cut_short.0, usage: usage_so_far(&cut_short.1.text()) };
            }
        };
        let Reported { text, usage, failure } = read(&finished.written.text());
        let ending = match finished.failure(failure.as_deref()) {
            None => Ending::Completed { result: text, run: Some(finished.details) },
            Some(how) => finished.failed(&how, &text, FailureClass::Task),
        };
        Report { ending, usage }
    }
}

impl Executor for Shell {
    fn run<'a>(
        &'a self,
        job: Job<'a>,
        _: &'a Sink,
        stop: &'a mut watch::Receiver<Option<Stop>>,
    ) -> BoxFuture<'a, Report> {
        self.run_command(job, stop).boxed()
    }
}
