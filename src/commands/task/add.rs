//! `task add`: adds a task to a plan, by default to the standing plan of the project.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use crewlog_executors::consent::Consent;
use crewlog_executors::crew::standing_plan;
use crewlog_mq::{EventStore, ExecuteError};
use crewlog_planner::event::{Amendment, Command, PlannerConfig};
use crewlog_planner::parse::{self, ReadOptions};
use crewlog_planner::planner::{CHECKPOINT_CHARS_MAX, PARALLELISM_MAX, PlannerError, is_checkpoint_name};
use crewlog_planner::state::PlannerState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing::{give, tell};
use crate::cli::typed::{BY_PERSON, by_person};
use crate::consent::{consent, keep};
use crate::context::{Session, roster};
use crate::plan_file::print_warnings;
use crate::target::{Target, order};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::shell_word;
use crate::views::names::{Choice, find_plan};
use crate::views::queries;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    /// Description of the task; - reads one or more tasks from standard input
    // A list begins with a dash.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// The plan
    #[arg(long, default_value_t = backlog())]
    #[serde(default = "backlog")]
    pub plan: String,
    /// Make a standing plan of this name first
    #[arg(long)]
    #[serde(default)]
    pub new: bool,
    /// The tasks to wait for, by number or label
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    #[serde(default)]
    pub after: Vec<String>,
    /// The tasks that wait for it
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    #[serde(default)]
    pub before: Vec<String>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

/// The standing plan of a project.
fn backlog() -> String {
    "backlog".to_owned()
}

pub async fn add(session: &Session, add: AddTask) -> Result<Code, Failure> {
    if add.new {
        check_name(&add.plan)?;
    }
    let reads_input = add.text == "-" && session.is_local();
    if !reads_input && is_like_a_path(&add.text) {
        return Err(Failure::user(format!("{:?} looks like a path, and a task is described in words", add.text))
            .hint(format!("to add the tasks of a file: {} < FILE", session.command("task add -")))
            .hint(format!("to run the tasks of a file: {}", session.command("run FILE"))));
    }
    let text = if reads_input { session.read_text(Path::new("-"))? } else { parse::as_step(&add.text).into_owned() };
    let (store, _) = session.place.open_or_make().await?;
    let plan = plan_to_add_to(session, &store, &add).await?;
    let tags = queries::tags_of(&store, &plan).await?;
    let is_new = tags.is_empty();
    if let Some(name) = add.after.iter().chain(&add.before).next().filter(|_| is_new) {
        return Err(Failure::new(Code::Nothing, format!("{plan} has no tasks yet, and so no task {name:?}"))
            .hint("to add to another plan, name it: --plan PLAN"));
    }
    session.place.check_key(&plan, &tags)?;
    let mut target = Target::of(store, plan, tags).await?;
    let agreed = consent_to(session, &text, target.state()).await?;
    if is_new {
        let Target { store, plan, .. } = target;
        // Only the number of agents and workers limits what runs at once.
        let of_new = session.config_of_new(Some(PARALLELISM_MAX))?;
        let config = PlannerConfig { standing: true, ..of_new };
        let initialize = Command::of_text(text.clone(), config, false)?;
        let tags = session.tags_of_new(&plan)?;
        target = Target::of(store, plan, tags).await?;
        match order(&mut target.planner, initialize).await {
            Ok(executed) => {
                let of = (&*target.plan, &*target.tags);
                keep(session, &target.store, of, (target.state(), 0), agreed).await?;
                return tell(session, &target, &executed.events, 0, "");
            }
            // Another has just made it.
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {
                target = Target::find_to_tell(session, &target.plan).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (after, before) = (target.ids(session, &add.after)?, target.ids(session, &add.before)?);
    let amendments = vec![Amendment::Add { text, after, before }];
    give(session, target, Command::Amend { amendments, reason: add.reason }, "changed", agreed).await
}

/// True of words that look like a path, so that a mistyped path becomes no task.
fn is_like_a_path(words: &str) -> bool {
    let is_ending = |ending: &str| (1..=5).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    let ending = Path::new(words).extension().and_then(|ending| ending.to_str());
    let is_one_word = !words.trim().contains(char::is_whitespace);
    is_one_word && !words.contains("://") && (words.contains('/') || ending.is_some_and(is_ending))
}

/// The named plan. Only the backlog, or a plan with --new, is made: a mistyped name must make none.
async fn plan_to_add_to(session: &Session, store: &EventStore, add: &AddTask) -> Result<String, Failure> {
    let name = &add.plan;
    if !add.new && *name != backlog() {
        let new = || format!("task add \"...\" --plan {} --new", shell_word(name));
        return find_plan(session, store, name, Choice::Changed).await.map_err(|failure| match check_name(name) {
            Ok(()) => failure.hint(format!("to make a standing plan of this name: {}", session.command(&new()))),
            Err(_) => failure,
        });
    }
    let plan = standing_plan(store, &session.project()?, name).await?;
    if add.new && !queries::tags_of(store, &plan).await?.is_empty() {
        return Err(Failure::new(Code::Conflict, format!("there is a plan {plan} already"))
            .hint("to add to it, leave --new out"));
    }
    Ok(plan)
}

/// Accepts names that can be typed in a command and are not paths.
fn check_name(name: &str) -> Result<(), Failure> {
    if is_checkpoint_name(name) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(Failure::user(format!(
        "invalid plan name {name:?}: use at most {CHECKPOINT_CHARS_MAX} letters, digits, dashes, dots and underscores; \
         it cannot be a number or begin with a dash or a dot"
    )))
}

/// Prose must not become shell unasked.
async fn consent_to(session: &Session, text: &str, state: &PlannerState) -> Result<Consent, Failure> {
    let options = ReadOptions::default();
    let parsed = match &state.tasks[..] {
        // It becomes a plan of its own.
        [] => parse::read(text, options)?,
        _added_to => parse::read_beside(text, options, &|name| state.id_named(name))?.0,
    };
    print_warnings(session, &parsed.warnings, Path::new("-"));
    // Nothing is carried out here, so nothing is stopped for running long.
    let roster = roster::roster(session, Duration::MAX, &[])?;
    let of_new = session.config_of_new(None)?.folder;
    let folder = if state.tasks.is_empty() { of_new } else { state.config.folder.clone() };
    let agreed = consent(session, &parsed.tasks, &roster, (&state.config.system_prompt, folder.as_deref())).await?;
    // Their numbers are not known yet.
    Ok(Consent { shown: BTreeSet::new(), ..agreed })
}
