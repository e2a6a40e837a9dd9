//! Making and beginning plans: `run`, `resume`, and `plan propose`, `plan draft` and `plan schema` for agents, whose plans
//! the rules and the registry of tools check.

use std::path::Path;

use crewlog_executors::agents::{Agents, PlanningError, record_failure};
use crewlog_executors::model::text_aggregate;
use crewlog_executors::planning;
use crewlog_executors::roster::Roster;
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::{Cause, Position};
use crewlog_planner::agents::{AgentPlan, schema};
use crewlog_planner::event::{Command, PlannerConfig, Summaries};
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, ParsedPlan};
use crewlog_planner::plan::{Origin, Proposal, Span};
use crewlog_planner::protocol::AgentType;
use serde_json::json;

use crate::cli::settings::{self, Change, apply};
use crate::cli::{Address, Output, Propose, Resume, Run, RunArgs};
use crate::commands::show;
use crate::consent::consent;
use crate::context::Session;
use crate::context::place::slug;
use crate::plan_file::sync;
use crate::run::by_model::{self, Advisor};
use crate::run::runtime::{self, Signals};
use crate::run::session::{RunSession, already_ended};
use crate::target::{self, make_plan, order, short_id};
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;
use crate::ui::terminal::say;
use crate::ui::text::one_line;
use crate::views::queries;

pub async fn run(session: &Session, run: Run) -> Result<Code, Failure> {
    let roster = runtime::roster(session, run.run_args.task_timeout, &[])?;
    let (path, file) = (run.file.as_path(), run.reading.plan_file(&run.file));
    if !session.reads_files() && !run.set.iter().all(Change::is_of_scheduling) {
        return Err(Failure::user("set takes no prompt.*, compensate and standing here: write them in the text"));
    }
    let text = session.read_text(path)?;
    let parsed = parse::read(&text, file.options(run.reading.parallel));
    let in_file = settings::of_file(path, &text)?;
    let model = by_model::wanted(session, run.run_args.by_model())?;
    if run.sync && (path == Path::new("-") || model.is_some()) {
        let message = "--sync needs a plan file, and this plan comes from standard input or a model";
        return Err(Failure::user(message).hint("name a file, and add --no-model"));
    }
    let id = new_plan_id(session, parsed.as_ref().ok(), path);
    let (parsed, origin) = match &model {
        None => (parsed?, Origin::default()),
        Some(model) => Advisor::new(session, model, &id, session.tags_of_new(&id)?).await?.plan(&text, parsed).await?,
    };
    if !session.terminal.is_quiet {
        show::print_warnings(session, &parsed.warnings, path);
    }
    refuse_losses(session, &parsed, &text, run.reading.format.is_some())?;
    let mut config = PlannerConfig { file, ..session.config_of_new(None)? };
    if session.config()?.model.as_ref().is_some_and(|model| model.summaries) {
        config.summaries = Summaries::Model;
    }
    apply(&in_file, &mut config);
    config.parallelism = run.run_args.jobs.unwrap_or(config.parallelism);
    apply(&run.set, &mut config);
    consent(session, &parsed, &roster, &config.system_prompt)?;
    let (parallel, attachments) = (run.reading.parallel, Vec::new());
    let begin = if origin.is_text() {
        Command::Initialize { user_input: text, attachments, config, parallel }
    } else {
        let ParsedPlan { title, tasks, context, .. } = parsed;
        let proposal = Box::new(Proposal { tasks, title, source: text, context, origin });
        Command::Propose { proposal, attachments, config }
    };
    let run_args = (!run.detach).then_some(&run.run_args);
    NewPlan { id, begin, roster, run_args, sync: run.sync }.start(session).await
}

struct NewPlan<'a> {
    id: String,
    begin: Command,
    roster: Roster,
    /// How to run it; unset to leave it to `work`.
    run_args: Option<&'a RunArgs>,
    /// Keep it in step with its file.
    sync: bool,
}

impl NewPlan<'_> {
    /// Makes the plan, prints its id, and runs it.
    async fn start(self, session: &Session) -> Result<Code, Failure> {
        let (store, _) = session.place.open_or_make().await?;
        let signals = Signals::new()?;
        let plan = make_plan(session, &store, self.id, self.begin).await?;
        if session.output == Output::Text || self.run_args.is_none() {
            let resume = session.command_on("resume", &plan);
            let hint = format!("no task has run yet; to run the plan: {resume}");
            session.print_begun(&plan, &json!({ "plan": plan })).map_err(|failure| failure.hint(hint))?;
        }
        let Some(run_args) = self.run_args else { return Ok(Code::Done) };
        // `run` does not consent to repeating interrupted tasks.
        let (interrupted, since) = (InterruptedTask::Report, Position(0));
        let run_session = RunSession::new(session, store, plan, since, run_args, self.roster, interrupted).await?;
        run_session.run(signals, self.sync).await
    }
}

pub async fn resume(session: &Session, resume: Resume) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = match &resume.target {
        Some(Address { plan, part: Some(name) }) => {
            if resume.sync || resume.run_args.jobs.is_some() || resume.run_args.timeout.is_some() {
                return Err(Failure::user("--sync, --jobs and --timeout are for plans: a resumed task may only start"));
            }
            return target::resume_task(session, plan, name).await;
        }
        Some(Address { plan, part: None }) => queries::find_plan(&store, plan).await?,
        None => queries::plan_to_resume(&store).await?,
    };
    let roster = runtime::roster(session, resume.run_args.task_timeout, &[])?;
    let tags = queries::tags_of(&store, &plan).await?;
    session.place.check_key(&plan, &tags)?;
    let signals = Signals::new()?;
    let since = store.head().await?;
    if resume.sync {
        // The current text of the file is applied before a task starts.
        sync::keep_once(session, &store, &plan).await?;
    }
    let mut planner = planning::catch_up(&store, &plan, tags).await?;
    // Fires the timers that came due without a host.
    planning::keep_time(&mut planner, &store).await?;
    if planner.handler().state().phase.is_paused() {
        order(&mut planner, Command::Resume).await?;
        target::propagate(&store, &plan).await?;
    }
    if planner.handler().state().phase.is_ended() {
        return already_ended(session, &store, &plan).await;
    }
    // Dispatches the tasks whose dispatch a crash prevented.
    order(&mut planner, Command::Continue).await?;
    if resume.detach {
        return session.print_done(&format!("{plan} is resumed"), &json!({ "plan": plan }));
    }
    let run_session =
        RunSession::new(session, store, plan, since, &resume.run_args, roster, InterruptedTask::Rerun).await?;
    run_session.run(signals, resume.sync).await
}

/// Plain Markdown whose boxes hide numbered items or fences needs consent, or an explicit format.
fn refuse_losses(session: &Session, parsed: &ParsedPlan, text: &str, is_named: bool) -> Result<(), Failure> {
    const SHOWN_MAX: usize = 10;
    let (Some(_), false) = (parsed.lost.first(), is_named) else { return Ok(()) };
    let places = Lines::new(text);
    let line_of = |span: &Span| places.place(span.start).0.to_string();
    let lines = parsed.lost.iter().take(SHOWN_MAX).map(line_of).collect::<Vec<_>>().join(", ");
    let more = parsed.lost.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let n_lost = parsed.lost.len();
    let (what, line) = if n_lost == 1 { ("item or fence", "line") } else { ("items or fences", "lines") };
    let said = format!(
        "the file has boxes, so only boxes are steps: {n_lost} numbered {what} ({line} {lines}{more}) will not run"
    );
    if session.terminal.is_interactive {
        say(&said);
        return Ok(());
    }
    Err(Failure::user(said).hint("write boxes for them too, or confirm with --format markdown"))
}

/// An id from the title, the file or the first task. Ids are not encrypted: that of a sealed plan uses none of its text.
fn new_plan_id(session: &Session, parsed: Option<&ParsedPlan>, file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let parsed = parsed.filter(|_| !session.place.keys.is_given());
    // Without the configuration nothing can be appended.
    let redacted = |text: &String| session.config().map(|config| config.secrets.redacted(text)).unwrap_or_default();
    let first_task = parsed.and_then(|parsed| parsed.tasks.first()).map(|task| redacted(&task.description));
    let title = parsed.and_then(|parsed| parsed.title.as_ref()).map(redacted);
    let names = [title, stem, first_task.map(|task| one_line(&task, 24))].into_iter().flatten();
    let name = names.map(|name| slug(&name)).find(|name| !name.is_empty());
    format!("{}-{}", name.as_deref().unwrap_or("plan"), short_id())
}

pub async fn propose(session: &Session, propose: Propose) -> Result<Code, Failure> {
    let roster = runtime::roster(session, propose.run_args.task_timeout, &[])?;
    let (agent, registry) = (propose.agent, &session.config()?.registry);
    let text = session.read_text(&propose.file)?;
    let compiled = AgentPlan::read(&text).and_then(|plan| plan.compile(agent, registry));
    let proposal = match compiled {
        // The log keeps the plan as it was given.
        Ok(proposal) => Proposal { source: text, ..proposal },
        Err(error) => {
            // A refusal is a decision too, and is counted.
            let (store, _) = session.place.open_or_make().await?;
            // It may quote the text, so it is sealed as one that was asked about.
            let tags = session.tags_of_new(&text_aggregate(&text))?;
            record_failure(&store, agent, &error, tags, &Cause::request()).await?;
            return Err(Failure::from(error).hint(session.command(&format!("plan schema --agent {agent}"))));
        }
    };
    let (title, tasks, context) = (proposal.title.clone(), proposal.tasks.clone(), proposal.context.clone());
    let shown = ParsedPlan { title, tasks, context, ..ParsedPlan::default() };
    // Also where it is only taken up: `work` would run it without another word.
    let config = session.config_of_new(propose.run_args.jobs)?;
    consent(session, &shown, &roster, &config.system_prompt)?;
    let begin = Command::Propose { proposal: Box::new(proposal), attachments: Vec::new(), config };
    let id = new_plan_id(session, Some(&shown), &propose.file);
    let run_args = propose.run.then_some(&propose.run_args);
    NewPlan { id, begin, roster, run_args, sync: false }.start(session).await
}

pub async fn draft(session: &Session, file: &Path, agent: AgentType, model: bool) -> Result<Code, Failure> {
    let words = session.read_text(file)?;
    let mut agents = Agents::new(session.config()?.registry.clone());
    if let Some(model) = by_model::wanted(session, Some(model))? {
        let (store, _) = session.place.open_or_make().await?;
        let planner = model.planner(&store, &text_aggregate(&words), session.tags_of_project()?);
        agents = agents.with_model(planner.map_err(|error| Failure::user(error.to_string()))?);
    }
    let plan = agents.plan(agent, &words, "").await.map_err(|error| match error {
        PlanningError::Plan(error) => error.into(),
        PlanningError::Sealed | PlanningError::Lost => Failure::user(error.to_string()),
    })?;
    session.print(&plan, |to| print_pretty(to, &plan))
}

pub fn schema_of(session: &Session, agent: AgentType) -> Result<Code, Failure> {
    let schema = schema(agent, &session.config()?.registry);
    session.print(&schema, |to| print_pretty(to, &schema))
}
