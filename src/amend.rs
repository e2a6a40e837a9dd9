//! Changing a plan under way: `amend`, `set`, `task add`.
//!
//! New commands need consent. Each order is one command to the planner, all or nothing.

use std::path::Path;
use std::time::Duration;

use crewlog_executors::crew::standing_plan;
use crewlog_mq::{EventStore, ExecuteError, Handler, Range};
use crewlog_planner::event::{Amendment, Command, Edit, Event, PlannerConfig, Setting};
use crewlog_planner::parse::{self, ParsedPlan, ReadOptions};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::PARALLELISM_MAX;
use crewlog_planner::planner::{CHECKPOINT_CHARS_MAX, Planner, PlannerError, is_checkpoint_name};
use crewlog_planner::state::{PlannerState, Task};
use serde_json::json;

use crate::cli::{AddTask, Amend, BACKLOG, Changes, Edits, Output, Set, Unset};
use crate::commands::{self, Target};
use crate::consent::consent;
use crate::failure::{Code, Failure};
use crate::order::order;
use crate::queries;
use crate::runtime;
use crate::session::Session;
use crate::show;
use crate::terminal::say;
use crate::text::{shell_word, visible};

pub async fn amend(session: &Session, amend: Amend) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &amend.plan).await?;
    let Amend { changes, reason, .. } = amend;
    let is_edit = changes.edit.is_some();
    let is_reworded = changes.edits.description.is_some() && changes.edits.command.is_none();
    let reworded = changes.edit.clone().filter(|_| is_reworded);
    let state = target.state();
    let command = Command::Amend { amendments: changes.amendments(session, &target.plan, state)?, reason };
    let keeping = reworded.and_then(|name| state.task_named(&name));
    let kept = keeping.and_then(|task| Some((task.plan.name(), task.plan.command.clone()?)));
    if is_edit {
        consent_to_edits(session, target.planner.handler(), command.clone())?;
    }
    let plan = target.plan.clone();
    let given = give(session, target, command).await?;
    if let (Some((task, command)), Output::Text) = (kept, session.output) {
        let other = session.command(&format!("amend {} --edit {} --command ...", shell_word(&plan), shell_word(&task)));
        say(&visible(&format!("task {task} still runs its command: {command}\nto have it run another: {other}")));
    }
    Ok(given)
}

impl Changes {
    /// The amendments, by the names that tasks have in a plan. What is added is asked about.
    pub fn amendments(self, session: &Session, plan: &str, state: &PlannerState) -> Result<Vec<Amendment>, Failure> {
        let id = |name: &String| {
            state.task_named(name).map(|task| task.plan.id).ok_or_else(|| queries::no_task(session, plan, state, name))
        };
        let ids = |names: &[String]| names.iter().map(id).collect::<Result<Vec<_>, _>>();
        let Self { add, after, add_before, edit, edits, skip, reorder } = self;
        let is_question = |task: &Task| task.plan.kind == NodeKind::Clarification;
        let named = |name: &String| state.task_named(name);
        // Without its order it would not wait for the answer any more.
        let passes_by = reorder.as_ref().and_then(named).is_some_and(|task| state.waits_for_question(task.plan.id));
        if passes_by || skip.iter().chain(&edit).chain(&reorder).filter_map(named).any(is_question) {
            session.person_only("skip or change a question")?;
        }
        let mut amendments = Vec::new();
        if let Some(name) = &edit {
            amendments.push(Amendment::Edit { task: id(name)?, edits: edits.into_list()? });
        }
        if let Some(name) = &reorder {
            amendments.push(Amendment::Reorder { task: id(name)?, after: ids(&after)? });
        }
        amendments.extend(ids(&skip)?.into_iter().map(|task| Amendment::Skip { task, keeps_order: true }));
        if let Some(added) = &add {
            let is_file = session.reads_files() && (added == "-" || Path::new(added).is_file());
            if !is_file && session.reads_files() && is_like_a_path(added) {
                let add = session.command(&format!("amend {} --add -", shell_word(plan)));
                return Err(Failure::user(format!("there is no file {added:?}"))
                    .hint(format!("to add a task of these words: echo {} | {add}", shell_word(added))));
            }
            let text = if is_file { session.read_text(Path::new(added))? } else { parse::as_step(added).into_owned() };
            consent_to(session, &text, state)?;
            amendments.push(Amendment::Add { text, after: ids(&after)?, before: ids(&add_before)? });
        }
        Ok(amendments)
    }
}

/// True of words that look like a path, so that a mistyped path becomes no task.
fn is_like_a_path(words: &str) -> bool {
    let is_ending = |ending: &str| (1..=5).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    let ending = Path::new(words).extension().and_then(|ending| ending.to_str());
    let is_one_word = !words.trim().contains(char::is_whitespace);
    is_one_word && !words.contains("://") && (words.contains('/') || ending.is_some_and(is_ending))
}

pub async fn set(session: &Session, set: Set) -> Result<Code, Failure> {
    let target = Target::find(session, &set.plan).await?;
    let before = &target.state().config;
    let (mut budget, mut changes) = (before.budget, Vec::new());
    for limit in &set.unset {
        match limit {
            Unset::BudgetTokens => budget.tokens = None,
            Unset::BudgetCost => budget.cost_micros = None,
            Unset::BudgetTime => budget.duration_ms = None,
            Unset::Deadline => changes.push(Setting::DeadlineMs(None)),
            Unset::Compensate => changes.push(Setting::Compensate(false)),
        }
    }
    changes.extend((budget != before.budget).then_some(Setting::Budget(budget)));
    changes.extend(set.settings.changes(budget));
    let others = [
        set.parallelism.map(Setting::Parallelism),
        set.retries.map(Setting::RetriesMax),
        set.standing.map(Setting::Standing),
    ];
    changes.extend(others.into_iter().flatten().chain(set.limit));
    give(session, target, Command::Configure { changes, reason: set.reason }).await
}

pub async fn add_task(session: &Session, add: AddTask) -> Result<Code, Failure> {
    if add.new {
        check_name(&add.plan)?;
    }
    if is_like_a_path(&add.text) {
        return Err(Failure::user(format!("{:?} looks like a path, and a task is described in words", add.text))
            .hint(format!("to run the tasks of a file: {}", session.command("run FILE"))));
    }
    let (store, _) = session.place.open_or_make().await?;
    let plan = plan_to_add_to(session, &store, &add).await?;
    let tags = queries::tags_of(&store, &plan).await?;
    let known = queries::load_view(&store, &plan, Range::default()).await?;
    let add = AddTask { text: parse::as_step(&add.text).into_owned(), ..add };
    consent_to(session, &add.text, known.state())?;
    if tags.is_empty() && add.after.is_empty() {
        // Only the number of agents and workers limits what runs at once.
        let config = PlannerConfig { standing: true, parallelism: PARALLELISM_MAX, ..session.config_of_new(None) };
        let (user_input, attachments) = (add.text.clone(), Vec::new());
        let initialize = Command::Initialize { user_input, attachments, config, parallel: false };
        let mut target = Target::of(store.clone(), plan.clone(), session.tags_of_new(&plan)?).await?;
        match order(&mut target.planner, initialize).await {
            Ok(executed) => return tell(session, &target, &executed.events),
            // Another has just made it.
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let target = Target::find_to_tell(session, &plan).await?;
    let after = target.ids(session, &add.after)?;
    let amendments = vec![Amendment::Add { text: add.text, after, before: Vec::new() }];
    give(session, target, Command::Amend { amendments, reason: add.reason }).await
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

/// What can be typed in a command, and is no path.
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
    consent(session, &parsed, &roster)
}

/// Asks before an edit changes what a task executes. It is decided on a copy first, so that no refused edit is asked about.
pub fn consent_to_edits(session: &Session, planner: &Planner, command: Command) -> Result<(), Failure> {
    let roster = runtime::roster(session, Duration::MAX, &[])?;
    let events = planner.clone().process(command);
    let events = events.map_err(|refusal| commands::refused(planner.state(), ExecuteError::Refused(refusal)))?;
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
    consent(session, &shown, &roster)
}

impl Edits {
    /// The edits of a task; at least one is required.
    fn into_list(self) -> Result<Vec<Edit>, Failure> {
        let unless_empty = |text: String| (!text.is_empty()).then_some(text);
        let all = |texts: Vec<String>| texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        let edits = [
            self.description.map(Edit::Description),
            self.command.map(|command| Edit::Command(unless_empty(command))),
            self.kind.map(Edit::Kind),
            self.label.map(|label| Edit::Label(unless_empty(label))),
            (!self.note.is_empty()).then(|| Edit::Notes(all(self.note))),
            self.priority.map(|priority| Edit::Priority(unless_empty(priority))),
            self.assignee.map(|assignee| Edit::Assignee(unless_empty(assignee.trim_start_matches('@').to_owned()))),
            self.retry.map(|retry| Edit::Retry(Some(retry))),
            self.edit_timeout.map(|timeout_ms| Edit::TimeoutMs(Some(timeout_ms))),
            self.estimate.map(|estimate_ms| Edit::EstimateMs(Some(estimate_ms))),
            self.edit_on_failure.map(|policy| Edit::OnFailure(Some(policy))),
            (!self.files.is_empty()).then(|| Edit::Files(all(self.files))),
        ];
        let edits = edits.into_iter().flatten().collect::<Vec<_>>();
        if edits.is_empty() {
            return Err(Failure::user("no change of the task is given")
                .hint("name one, with --description, --command, --priority and the like"));
        }
        Ok(edits)
    }
}

async fn give(session: &Session, mut target: Target, command: Command) -> Result<Code, Failure> {
    let had_ended = target.state().phase.is_ended();
    let executed =
        order(&mut target.planner, command).await.map_err(|error| commands::refused(target.state(), error))?;
    commands::propagate(&target.store, &target.plan).await?;
    if had_ended && !executed.events.is_empty() && !target.state().phase.is_ended() {
        say(&visible(&format!("{} had ended, and is open again with this", &target.plan)));
    }
    tell(session, &target, &executed.events)
}

/// Prints the new and changed tasks and the state of the plan.
fn tell(session: &Session, target: &Target, events: &[Event]) -> Result<Code, Failure> {
    let mut tasks = Vec::<TaskId>::new();
    let mut said = Vec::new();
    for event in events {
        match event {
            Event::TasksPlanned { tasks: planned, .. } | Event::TasksAmended { tasks: planned, .. } => {
                tasks.extend(planned.iter().map(|task| task.id));
            }
            Event::TaskStatusUpdated { task_id, error: Some(reason), .. } => {
                said.push(format!("task {} is skipped: {reason}", target.name(*task_id)));
            }
            Event::SettingsChanged { config, .. } => said.push(format!("settings: {}", settings(config))),
            _another_event => {}
        }
    }
    let names = tasks.iter().map(|task| target.name(*task)).collect::<Vec<_>>();
    if !names.is_empty() {
        said.insert(0, format!("{}: task {}", &target.plan, names.join(", ")));
    }
    let text = if said.is_empty() { "nothing to change".to_owned() } else { said.join("\n") };
    let settings = target.state().config.words();
    session.print_done(&text, &json!({ "plan": &target.plan, "tasks": names, "settings": settings }))?;
    target.suggest_resume(session);
    Ok(Code::Done)
}

fn settings(config: &PlannerConfig) -> String {
    let words = config.words();
    if words.is_empty() { "as they are by default".to_owned() } else { words.join(", ") }
}
