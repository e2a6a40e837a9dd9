//! Completion in a shell: plans, tasks and questions of the log. It only reads, makes no log, and is silent about errors.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use crewlog_executors::projecting::list_plans;
use crewlog_mq::{EventStore, Range};

use crate::cli::{self, Shell};
use crate::failure::{Code, Failure};
use crate::place::Place;
use crate::queries::{find_plan, load_view};
use crate::sealing::KeyPlace;
use crate::session::Session;
use crate::settings;

/// The variable by which the script of a shell asks for candidates.
const ASKS: &str = "COMPLETE";
/// How long the log may take to answer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What completes a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Plan,
    Task,
    Question,
}

/// Answers a shell that asks for candidates; false when none does.
pub fn has_completed() -> bool {
    // What a shell shows on its line must not hold an error.
    CompleteEnv::with_factory(|| with_candidates(cli::command()))
        .var(ASKS)
        .try_complete(std::env::args_os(), None)
        .unwrap_or(true)
}

/// `completions`: the script that lets a shell ask.
pub fn script(session: &Session, shell: Shell) -> Result<Code, Failure> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell.write_registration(ASKS, "crewlog", "crewlog", "crewlog", &mut script)?;
    session.print(&String::from_utf8_lossy(&script), |to| to.write_all(&script))
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(completed).mut_subcommands(with_candidates)
}

/// An argument with the candidates for what it names.
fn completed(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str().to_owned());
    let name = name.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let of_log = |word| ArgValueCompleter::new(move |typed: &OsStr| of_log(word, typed).unwrap_or_default());
    let of_keys = |keys: &'static [(&'static str, &'static str)]| {
        ArgValueCompleter::new(move |typed: &OsStr| of_keys(keys, typed))
    };
    match name.as_str() {
        "PLAN" | "PLAN@POSITION" => arg.add(of_log(Word::Plan)),
        "PLAN/TASK" | "PLAN[/TASK]" => arg.add(of_log(Word::Task)),
        "PLAN/QUESTION" => arg.add(of_log(Word::Question)),
        "KEY=VALUE" if arg.get_id() == "changes" => arg.add(of_keys(&settings::FIELDS)),
        "KEY=VALUE" => arg.add(of_keys(&settings::KEYS)),
        "FILE" | "PATH" => arg.value_hint(clap::ValueHint::AnyPath),
        _other => arg,
    }
}

fn of_keys(keys: &[(&str, &'static str)], typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let matching = keys.iter().filter(|(key, _)| key.starts_with(&*typed));
    matching.map(|(key, help)| CompletionCandidate::new(format!("{key}=")).help(Some((*help).into()))).collect()
}

fn of_log(word: Word, typed: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let typed = typed.to_str()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let reading = async {
        let folder = std::env::current_dir().ok()?;
        // Nothing is appended that could need a secret redacted.
        let place = Place::find(named().as_deref(), &folder, KeyPlace::default(), Arc::new(|_| Ok(None)));
        let store = place.open().await.ok()?;
        let found = match typed.split_once('/').filter(|_| word != Word::Plan) {
            Some((plan, part)) => parts(&store, word, plan, part).await,
            None => plans(&store, typed).await,
        };
        place.close().await;
        found
    };
    let found = runtime.block_on(async { tokio::time::timeout(WAIT_MAX, reading).await });
    runtime.shutdown_timeout(Duration::ZERO);
    Some(found.ok()??.into_iter().map(CompletionCandidate::new).collect())
}

/// The log that the typed line, or else the environment, names.
fn named() -> Option<String> {
    let words = std::env::args().collect::<Vec<_>>();
    let typed =
        words.iter().zip(words.iter().skip(1)).rfind(|(word, _)| *word == "--store").map(|(_, log)| log.clone());
    let joined = words.iter().find_map(|word| word.strip_prefix("--store=").map(str::to_owned));
    typed.or(joined).or_else(|| std::env::var("CREWLOG_STORE").ok()).filter(|log| !log.is_empty())
}

/// The plans whose ids begin so, the newest first; without any, those that have it as a part.
async fn plans(store: &EventStore, typed: &str) -> Option<Vec<String>> {
    let list = list_plans(store, None).await.ok()?;
    let of = |is_it: fn(&str, &str) -> bool| {
        list.plans().rev().filter(|plan| is_it(&plan.id, typed)).map(|plan| plan.id.clone()).collect::<Vec<_>>()
    };
    let beginning = of(|plan, typed| plan.starts_with(typed));
    Some(if beginning.is_empty() { of(|plan, typed| plan.contains(typed)) } else { beginning })
}

/// The tasks or the open questions of a plan.
async fn parts(store: &EventStore, word: Word, typed_plan: &str, typed: &str) -> Option<Vec<String>> {
    let plan = find_plan(store, typed_plan).await.ok()?;
    let view = load_view(store, &plan, Range::default()).await.ok()?;
    let names: Vec<String> = match word {
        Word::Question => view.state().open_questions().map(|question| question.id.to_string()).collect(),
        Word::Plan | Word::Task => view.state().tasks.iter().map(|task| task.plan.name()).collect(),
    };
    Some(names.into_iter().filter(|name| name.starts_with(typed)).map(|name| format!("{typed_plan}/{name}")).collect())
}
