//! Completion in a shell: plans, tasks and questions of the log. It only reads, makes no log, and is silent about errors.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, Args, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate as Candidate};
use clap_complete::env::Shells;
use crewlog_executors::projecting::list_plans;
use crewlog_mq::{EventStore, Range};
use crewlog_planner::state::PlannerState;

use crate::cli::sealing::KeyPlace;
use crate::cli::settings::{FIELDS, KEYS, names};
use crate::context::Session;
use crate::context::place::Place;
use crate::ui::failure::{Code, Failure};
use crate::views::names::{Choice, plan_named};
use crate::views::queries::load_view;

/// The shells that complete.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_parser = SHELLS)]
    pub shell: String,
}

/// The variable by which the script of a shell asks for candidates.
const ASKS: &str = "CREWLOG_COMPLETE";

/// How long the log may take to answer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Lists the names of a plan's tasks or questions.
type Names = fn(&PlannerState) -> Vec<String>;

/// Answers a shell that asks for candidates; false when none does.
pub fn has_completed(command: fn() -> Command) -> bool {
    // The scripts separate the typed line, so that a set variable alone never replaces a command.
    let is_asked = std::env::args_os().nth(1).is_some_and(|word| word == "--");
    if !is_asked || !SHELLS.contains(&&*std::env::var(ASKS).unwrap_or_default()) {
        return false;
    }
    let complete = CompleteEnv::with_factory(|| with_candidates(command())).var(ASKS);
    // An error would end up on the line that is typed.
    complete.try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// `completions`: the script that lets a shell ask.
pub fn script(session: &Session, shell: &str) -> Result<Code, Failure> {
    let (mut script, shells) = (Vec::new(), Shells::builtins());
    let shell = shells.completer(shell).expect("clap_complete knows the shells of the command line");
    shell.write_registration(ASKS, "crewlog", "crewlog", "crewlog", &mut script).map_err(Failure::output)?;
    session.print(&String::from_utf8_lossy(&script), |to| to.write_all(&script))
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(completed).mut_subcommands(with_candidates)
}

/// The argument with the completer for its type of value. Options are candidates after a dash only.
fn completed(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let hides = !arg.is_positional() && !std::env::args().next_back().is_some_and(|typed| typed.starts_with('-'));
    let arg = arg.hide(hides);
    let of_log = |names| ArgValueCompleter::new(move |typed: &OsStr| of_log(names, typed).unwrap_or_default());
    let of_keys = |keys| ArgValueCompleter::new(move |typed: &OsStr| of_keys(keys, typed));
    match name.unwrap_or_else(|| arg.get_id().as_str().to_uppercase()).as_str() {
        "PLAN" | "BEFORE" | "AFTER" => arg.add(of_log(None)),
        "PLAN/TASK" | "PLAN[/TASK]" => arg.add(of_log(Some(tasks))),
        "PLAN/QUESTION" => arg.add(of_log(Some(questions))),
        "KEY=VALUE" if arg.get_id() == "changes" => arg.add(of_keys(FIELDS)),
        "KEY=VALUE" => arg.add(of_keys(KEYS)),
        "FILE" | "PATH" => arg.value_hint(clap::ValueHint::AnyPath),
        _other => arg,
    }
}

fn tasks(state: &PlannerState) -> Vec<String> {
    state.tasks.iter().map(|task| task.plan.name()).collect()
}

fn questions(state: &PlannerState) -> Vec<String> {
    state.open_questions().map(|question| question.id.to_string()).collect()
}

fn of_keys(keys: &'static str, typed: &OsStr) -> Vec<Candidate> {
    let matching = names(keys).filter(|key| key.starts_with(&*typed.to_string_lossy()));
    matching.map(|key| Candidate::new(format!("{key}="))).collect()
}

fn of_log(names: Option<Names>, typed: &OsStr) -> Option<Vec<Candidate>> {
    let (typed, folder) = (typed.to_str()?, std::env::current_dir().ok()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    // Nothing is appended that could hold a secret.
    let place = Place::find(named().as_deref(), &folder, KeyPlace::default(), Arc::new(|_| Ok(None)));
    let reading = async {
        let store = place.open().await.ok()?;
        let found = match names.zip(typed.split_once('/')) {
            Some((names, (plan, part))) => parts(&store, names, plan, part).await,
            None => plans(&store, typed).await,
        };
        place.close().await;
        found
    };
    let found = runtime.block_on(async { tokio::time::timeout(WAIT_MAX, reading).await });
    runtime.shutdown_timeout(Duration::ZERO);
    Some(found.ok()??.into_iter().map(Candidate::new).collect())
}

/// The log that the typed line, or else the environment, names.
fn named() -> Option<String> {
    // As --store LOG or --store=LOG.
    let line = std::env::args().collect::<Vec<_>>().join("\0");
    let typed = line.split("\0--store").nth(1).and_then(|rest| rest.get(1..)?.split('\0').next()).map(str::to_owned);
    typed.or_else(|| std::env::var("CREWLOG_STORE").ok()).filter(|log| !log.is_empty())
}

/// The plans whose ids begin so, the newest first; without any, those that have it as a part.
async fn plans(store: &EventStore, typed: &str) -> Option<Vec<String>> {
    let list = list_plans(store, None).await.ok()?;
    let containing = list.plans().rev().map(|plan| plan.id.clone()).filter(|plan| plan.contains(typed));
    let (beginning, within) = containing.partition::<Vec<_>, _>(|plan| plan.starts_with(typed));
    Some(if beginning.is_empty() { within } else { beginning })
}

async fn parts(store: &EventStore, names: Names, typed_plan: &str, typed: &str) -> Option<Vec<String>> {
    let plan = plan_named(store, typed_plan, Choice::Viewed).await.ok()?.ok()?;
    let names = names(load_view(store, &plan, Range::default()).await.ok()?.state());
    Some(names.into_iter().filter(|name| name.starts_with(typed)).map(|name| format!("{typed_plan}/{name}")).collect())
}
