//! Beginning: `init`, `run`, `resume`.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crewlog_executors::planning;
use crewlog_executors::worker::InterruptedTask;
use crewlog_planner::event::{self, Budget, PlannerConfig};
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, ParsedPlan};
use crewlog_planner::plan::{Proposal, Span};
use crewlog_planner::state::Phase;

use crate::by_model::{self, Advisor, Planned};
use crate::cli::{Output, Resume, Run};
use crate::commands;
use crate::consent::consent;
use crate::failure::{Code, Failure};
use crate::order::{make_plan, order, short_id};
use crate::place::slug;
use crate::queries;
use crate::run_session::{self, RunSession};
use crate::runtime::{self, Signals};
use crate::session::{Session, read_text};
use crate::show;
use crate::sync;
use crate::terminal::{say, unless_closed};
use crate::text::{count, one_line};

pub async fn init(session: &Session) -> Result<Code, Failure> {
    let (store, is_new) = session.place.open_or_make().await?;
    let log = store.log().await?;
    let did = if is_new { "made" } else { "is there already:" };
    match session.output {
        Output::Text => writeln!(std::io::stdout(), "{did} {} (log {})", session.place.shown(), log.id)?,
        Output::Json | Output::Jsonl => {
            let made = serde_json::json!({ "store": session.place.shown(), "log": log.id, "is_new": is_new });
            writeln!(std::io::stdout(), "{made}")?;
        }
    }
    Ok(Code::Done)
}

pub async fn run(session: &Session, run: Run) -> Result<Code, Failure> {
    let roster = runtime::roster(session, run.run_args.task_timeout, &[])?;
    let (path, file) = (run.file.as_path(), run.reading.plan_file(&run.file));
    let text = read_text(path)?;
    let parsed = parse::read(&text, file.options(run.reading.parallel));
    let model = by_model::wanted(session, run.run_args.by_model.typed())?;
    if run.sync && (path == Path::new("-") || model.is_some()) {
        let message = "--sync keeps a plan and its file in step, and this plan has no file that it is read from";
        return Err(Failure::user(message).hint("give the path of a file, and let no model plan"));
    }
    let is_sealed = session.place.keys.is_given();
    let id = format!("{}-{}", plan_name(parsed.as_ref().ok(), path, is_sealed), short_id());
    let (planned, asked_in) = match &model {
        None => (Planned::by_parser(parsed?), None),
        Some(model) => {
            let (store, _) = session.place.open_or_make().await?;
            let since = store.head().await?;
            let advisor = Advisor::new(session, model, &store, &id, session.tags_of_new(&id)?);
            (advisor.plan(&text, parsed).await?, Some((store, since)))
        }
    };
    if !session.terminal.is_quiet {
        show::print_warnings(&planned.parsed.warnings, path);
    }
    refuse_losses(session, &planned.parsed, &text, run.reading.format.is_some())?;
    consent(session, &planned.parsed, &roster)?;
    let (store, since) = match asked_in {
        Some(asked_in) => asked_in,
        None => {
            let (store, _) = session.place.open_or_make().await?;
            let since = store.head().await?;
            (store, since)
        }
    };
    let jobs = run.run_args.jobs.map(usize::from);
    let default = PlannerConfig::default();
    let config = PlannerConfig {
        parallelism: jobs.unwrap_or(default.parallelism),
        token_budget: run.token_budget.map_or(default.token_budget, |n_tokens| n_tokens as usize),
        on_failure: run.on_failure.into(),
        deadline_ms: run.limits.deadline.map(millis),
        profile: run.profile.into(),
        system_prompt: run.system_prompt,
        order: run.order.into(),
        summaries: by_model::summaries(session)?,
        budget: Budget {
            tokens: run.limits.budget_tokens,
            cost_micros: run.limits.budget_cost,
            duration_ms: run.limits.budget_time.map(millis),
        },
        compensate: run.limits.compensate,
        folder: Some(session.folder.to_string_lossy().into_owned()),
        file,
        ..default
    };
    let begin = begin(text, planned, config, run.reading.parallel);
    let signals = Signals::new()?;
    let plan = make_plan(session, &store, id, begin).await?;
    if let Output::Text = session.output {
        let mut stdout = std::io::stdout();
        let told = unless_closed(writeln!(stdout, "{plan}").and_then(|()| stdout.flush()));
        let resume = session.command_on("resume", &plan);
        told.map_err(|error| Failure::from(error).hint(format!("nothing was run yet; to run the plan: {resume}")))?;
    }
    if run.detach {
        if let Output::Json | Output::Jsonl = session.output {
            unless_closed(writeln!(std::io::stdout(), "{}", serde_json::json!({ "plan": plan })))?;
        }
        return Ok(Code::Done);
    }
    // Nobody who typed `run` has said that what another worker lost may be run again.
    let run_session =
        RunSession::new(session, store, plan, since, &run.run_args, roster, InterruptedTask::Report).await?;
    let run_session = if run.sync { run_session.in_step_with_file().await? } else { run_session };
    run_session.run(signals).await
}

/// The command that begins a plan: the text for the parser, or what somebody else made of it.
fn begin(text: String, planned: Planned, config: PlannerConfig, parallel: bool) -> event::Command {
    let Planned { parsed, origin } = planned;
    if origin.is_text() {
        return event::Command::Initialize { user_input: text, attachments: Vec::new(), config, parallel };
    }
    let ParsedPlan { title, tasks, context, .. } = parsed;
    let proposal = Box::new(Proposal { tasks, title, source: text, context, origin });
    event::Command::Propose { proposal, attachments: Vec::new(), config }
}

pub async fn resume(session: &Session, resume: Resume) -> Result<Code, Failure> {
    let roster = runtime::roster(session, resume.run_args.task_timeout, &[])?;
    let (store, plan) = queries::open_plan(session, &resume.plan).await?;
    let tags = queries::tags_of(&store, &plan).await?;
    session.place.check_key(&plan, &tags)?;
    let signals = Signals::new()?;
    let since = store.head().await?;
    if resume.sync {
        // What the file says by now counts before anything runs.
        sync::keep_once(session, &store, &plan).await?;
    }
    let mut planner = planning::catch_up(&store, &plan, tags).await?;
    // What was due while nobody looked.
    planning::keep_time(&mut planner, &store).await?;
    if planner.handler().state().phase() == Phase::Paused {
        order(&mut planner, event::Command::Resume).await?;
        commands::propagate(&store, &plan).await?;
    }
    if let Phase::Ended(_) = planner.handler().state().phase() {
        let again = session.command_on("retry", &plan);
        return run_session::already_ended(session, &store, &plan, &again).await;
    }
    // What a crash kept from being dispatched is dispatched now.
    order(&mut planner, event::Command::Continue).await?;
    let run_session =
        RunSession::new(session, store, plan, since, &resume.run_args, roster, InterruptedTask::Rerun).await?;
    let run_session = if resume.sync { run_session.in_step_with_file().await? } else { run_session };
    run_session.run(signals).await
}

/// Plain Markdown that loses numbered items or shell fences to boxes is read so only when a person agrees, or names the
/// format.
fn refuse_losses(session: &Session, parsed: &ParsedPlan, text: &str, is_named: bool) -> Result<(), Failure> {
    const SHOWN_MAX: usize = 10;
    let (Some(_), false) = (parsed.lost.first(), is_named) else { return Ok(()) };
    let places = Lines::new(text);
    let line_of = |span: &Span| places.place(span.start).0.to_string();
    let lines = parsed.lost.iter().take(SHOWN_MAX).map(line_of).collect::<Vec<_>>().join(", ");
    let more = parsed.lost.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let n_lost = count(parsed.lost.len(), "numbered item or fence");
    let said = format!("the file has boxes, so only boxes are steps: {n_lost} (line {lines}{more}) will not run");
    if session.terminal.is_interactive {
        say(&said);
        return Ok(());
    }
    Err(Failure::user(said).hint("write boxes for them too, or confirm with --format markdown"))
}

/// The readable part of a plan's id. Since ids stay clear, that of a sealed plan tells nothing of its text.
pub fn plan_name(parsed: Option<&ParsedPlan>, file: &Path, is_sealed: bool) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let parsed = parsed.filter(|_| !is_sealed);
    let first_task = parsed.and_then(|parsed| parsed.tasks.first()).map(|task| one_line(&task.description, 24));
    let names = [parsed.and_then(|parsed| parsed.title.clone()), stem, first_task].into_iter().flatten();
    names.map(|name| slug(&name)).find(|name| !name.is_empty()).unwrap_or_else(|| "plan".into())
}

/// A length of time as settings have it.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
