//! Changing a plan under way: `plan set`, and `task add`, `edit`, `skip` and `move`.
//!
//! New commands need consent. Each order is one command to the planner, all or nothing.

use std::path::Path;
use std::time::Duration;

use crewlog_executors::crew::standing_plan;
use crewlog_mq::{EventStore, ExecuteError, Handler, Range};
use crewlog_planner::event::{Amendment, Command, Edit, Event, PlannerConfig};
use crewlog_planner::parse::{self, ParsedPlan, ReadOptions};
use crewlog_planner::plan::{NodeKind, TaskPlan};
use crewlog_planner::planner::{CHECKPOINT_CHARS_MAX, PARALLELISM_MAX, Planner, PlannerError, is_checkpoint_name};
use crewlog_planner::state::{PlannerState, Task};
use serde_json::json;

use crate::cli::settings::{self, Change};
use crate::cli::{AddTask, BACKLOG, InPlan, Output};
use crate::commands::show;
use crate::consent::consent;
use crate::context::Session;
use crate::run::runtime;
use crate::target::{self, Target, order};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::{one_line, shell_word, visible};
use crate::views::queries;

pub async fn edit(session: &Session, task: InPlan, changes: Vec<Edit>, reason: String) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    let found = target.task(session, &task.name)?;
    check_person(session, found)?;
    let edits = settings::edits(changes);
    let is_reworded = edits.iter().any(|edit| matches!(edit, Edit::Description(_)))
        && !edits.iter().any(|edit| matches!(edit, Edit::Command(_)));
    let kept = found.plan.command.clone().filter(|_| is_reworded && session.output == Output::Text);
    let (id, name, plan) = (found.plan.id, found.plan.name(), target.plan.clone());
    let command = Command::Amend { amendments: vec![Amendment::Edit { task: id, edits }], reason };
    consent_to_edits(session, target.planner.handler(), command.clone())?;
    let given = give(session, target, command).await?;
    if let Some(command) = kept {
        let other = session.command_in("task edit", &plan, &name);
        say(&visible(&format!(
            "task {name} still runs its command: {command}\nto have it run another: {other} command=..."
        )));
    }
    Ok(given)
}

pub async fn skip(session: &Session, tasks: &[InPlan], reason: String) -> Result<Code, Failure> {
    let plan = tasks.first().map(|task| task.plan.as_str()).unwrap_or_default();
    let target = Target::find_to_tell(session, plan).await?;
    let mut amendments = Vec::new();
    for InPlan { plan, name } in tasks {
        if *plan != tasks[0].plan && queries::find_plan(&target.store, plan).await? != target.plan {
            return Err(Failure::user("these are tasks of several plans").hint("skip the tasks of one plan at a time"));
        }
        let task = target.task(session, name)?;
        check_person(session, task)?;
        amendments.push(Amendment::Skip { task: task.plan.id, keeps_order: true });
    }
    give(session, target, Command::Amend { amendments, reason }).await
}

/// `task move`.
pub async fn reorder(session: &Session, task: &InPlan, after: &[String], reason: String) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    let task = target.task(session, &task.name)?;
    check_person(session, task)?;
    // Without its order it would not wait for the answer any more.
    if target.state().waits_for_question(task.plan.id) {
        session.person_only("skip or change a question")?;
    }
    let amendments = vec![Amendment::Reorder { task: task.plan.id, after: target.ids(session, after)? }];
    give(session, target, Command::Amend { amendments, reason }).await
}

/// Lets only a person change a question.
fn check_person(session: &Session, task: &Task) -> Result<(), Failure> {
    let is_question = task.plan.kind == NodeKind::Clarification;
    if is_question { session.person_only("skip or change a question") } else { Ok(()) }
}

pub async fn set(session: &Session, plan: &str, changes: Vec<Change>, reason: String) -> Result<Code, Failure> {
    let target = Target::find(session, plan).await?;
    let changes = settings::of_open(changes, target.state().config.budget).map_err(Failure::user)?;
    give(session, target, Command::Configure { changes, reason }).await
}

pub async fn add(session: &Session, add: AddTask) -> Result<Code, Failure> {
    if add.new {
        check_name(&add.plan)?;
    }
    let reads_input = add.text == "-" && session.reads_files();
    if !reads_input && is_like_a_path(&add.text) {
        let hint = format!("to add the tasks of a file: {} < FILE", session.command("task add -"));
        return Err(Failure::user(format!("{:?} looks like a path, and a task is described in words", add.text))
            .hint(hint)
            .hint(format!("to run the tasks of a file: {}", session.command("run FILE"))));
    }
    let text = match reads_input {
        true => session.read_text(Path::new("-"))?,
        false => parse::as_step(&add.text).into_owned(),
    };
    let (store, _) = session.place.open_or_make().await?;
    let plan = plan_to_add_to(session, &store, &add).await?;
    let tags = queries::tags_of(&store, &plan).await?;
    let known = queries::load_view(&store, &plan, Range::default()).await?;
    if let Some(name) = add.after.iter().chain(&add.before).next().filter(|_| tags.is_empty()) {
        return Err(Failure::new(Code::Nothing, format!("{plan} has no tasks yet, and so no task {name:?}"))
            .hint("to add to another plan, name it: --plan PLAN"));
    }
    consent_to(session, &text, known.state())?;
    if tags.is_empty() {
        // Only the number of agents and workers limits what runs at once.
        let of_new = session.config_of_new(Some(PARALLELISM_MAX))?;
        let config = PlannerConfig { standing: true, ..of_new };
        let (user_input, attachments) = (text.clone(), Vec::new());
        let initialize = Command::Initialize { user_input, attachments, config, parallel: false };
        let mut target = Target::of(store.clone(), plan.clone(), session.tags_of_new(&plan)?).await?;
        match order(&mut target.planner, initialize).await {
            Ok(executed) => return tell(session, &target, &executed.events, 0, ""),
            // Another has just made it.
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let target = Target::find_to_tell(session, &plan).await?;
    let (after, before) = (target.ids(session, &add.after)?, target.ids(session, &add.before)?);
    let amendments = vec![Amendment::Add { text, after, before }];
    give(session, target, Command::Amend { amendments, reason: add.reason }).await
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
    if !add.new && name != BACKLOG {
        let new = || format!("task add \"...\" --plan {} --new", shell_word(name));
        return queries::find_plan(store, name).await.map_err(|failure| match check_name(name) {
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

/// Accepts names that can be typed in a command and are no paths.
fn check_name(name: &str) -> Result<(), Failure> {
    if is_checkpoint_name(name) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    let form = "letters, digits, dashes, dots and underscores, begins with none of -., is no number";
    let form = format!("{form} and has at most {CHECKPOINT_CHARS_MAX} of them");
    Err(Failure::user(format!("{name:?} is no name for a plan: it consists of {form}")))
}

/// Prose must not become shell unasked.
fn consent_to(session: &Session, text: &str, state: &PlannerState) -> Result<(), Failure> {
    let options = ReadOptions::default();
    let parsed = match &state.tasks[..] {
        // It becomes a plan of its own.
        [] => parse::read(text, options)?,
        _added_to => parse::read_beside(text, options, &|name| state.id_named(name))?.0,
    };
    if !session.terminal.is_quiet {
        show::print_warnings(session, &parsed.warnings, Path::new("-"));
    }
    // Nothing is carried out here, so nothing is stopped for running long.
    let roster = runtime::roster(session, Duration::MAX, &[])?;
    consent(session, &parsed, &roster, &state.config.system_prompt)
}

/// Asks before an edit changes what a task executes. It is decided on a copy first, so that no refused edit is asked about.
fn consent_to_edits(session: &Session, planner: &Planner, command: Command) -> Result<(), Failure> {
    let roster = runtime::roster(session, Duration::MAX, &[])?;
    let events = planner.clone().process(command);
    let events = events.map_err(|refusal| target::refused(planner.state(), ExecuteError::Refused(refusal)))?;
    let amended = events.into_iter().filter_map(|event| match event {
        Event::TasksAmended { tasks, .. } => Some(tasks),
        _another_event => None,
    });
    let is_told_otherwise = |task: &TaskPlan| {
        let Some(Task { plan: known, .. }) = planner.state().task(task.id) else { return false };
        let by_agent = roster.agent_for(task).is_some()
            && (&task.description, &task.notes, &task.kind) != (&known.description, &known.notes, &known.kind);
        by_agent
            || (&task.command, &task.assignee, &task.sub_plan) != (&known.command, &known.assignee, &known.sub_plan)
    };
    let tasks = amended.flatten().filter(is_told_otherwise).collect();
    let shown = ParsedPlan { tasks, ..ParsedPlan::default() };
    consent(session, &shown, &roster, &planner.state().config.system_prompt)
}

async fn give(session: &Session, mut target: Target, command: Command) -> Result<Code, Failure> {
    let (had_ended, n_known) = (target.state().phase.is_ended(), target.state().tasks.len());
    let moves = |amendment: &Amendment| matches!(amendment, Amendment::Reorder { .. });
    let moved = matches!(&command, Command::Amend { amendments, .. } if amendments.iter().any(moves));
    let executed = order(&mut target.planner, command).await.map_err(|error| target::refused(target.state(), error))?;
    target::propagate(&target.store, &target.plan).await?;
    if had_ended && !executed.events.is_empty() && !target.state().phase.is_ended() {
        say(&visible(&format!("{} had ended, and is open again with this", &target.plan)));
    }
    tell(session, &target, &executed.events, n_known, if moved { "moved" } else { "changed" })
}

/// Prints the new and changed tasks and the state of the plan. New are those after the known ones.
fn tell(session: &Session, target: &Target, events: &[Event], n_known: usize, verb: &str) -> Result<Code, Failure> {
    let mut names = Vec::new();
    let mut said = Vec::new();
    for event in events {
        match event {
            Event::TasksPlanned { tasks: planned, .. } | Event::TasksAmended { tasks: planned, .. } => {
                for task in planned {
                    let (name, is_known) =
                        (task.name(), target.state().tasks.iter().take(n_known).any(|it| it.plan.id == task.id));
                    let after = task.depends_on.iter().map(|on| target.name(on.task)).collect::<Vec<_>>();
                    let after = if after.is_empty() { String::new() } else { format!(" (after {})", after.join(", ")) };
                    said.push(match is_known {
                        true => format!("{verb} {name}{}", if verb == "moved" { &after } else { "" }),
                        false => format!("added {}/{name}: {}{after}", target.plan, one_line(&task.description, 100)),
                    });
                    names.push(name);
                }
            }
            Event::TaskStatusUpdated { task_id, error: Some(reason), .. } => {
                said.push(format!("skipped {}: {reason}", target.name(*task_id)));
            }
            Event::SettingsChanged { config, .. } => {
                let words = config.words().join(", ");
                said.push(format!("settings: {}", if words.is_empty() { "as they are by default" } else { &words }));
            }
            _another_event => {}
        }
    }
    let text = if said.is_empty() { "nothing to change".to_owned() } else { said.join("\n") };
    let settings = target.state().config.words();
    session.print_done(&text, &json!({ "plan": &target.plan, "tasks": names, "settings": settings }))?;
    target.suggest_resume(session);
    Ok(Code::Done)
}
