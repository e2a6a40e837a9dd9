//! Beginning: `init`, `run`, `resume`.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crewlog_executors::planning;
use crewlog_executors::plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::{Cause, EventStore, ExecuteError, Executed, Runner, new_event_id};
use crewlog_planner::event::{self, Budget, PlannerConfig};
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, ParsedPlan};
use crewlog_planner::plan::{Mark, Proposal, Span, SubPlan, TaskPlan};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::Phase;

use crate::act;
use crate::by_model::{self, Advisor, Planned};
use crate::cli::{Output, Resume, Run};
use crate::drive::{self, Drive};
use crate::executors;
use crate::failure::{Code, Failure};
use crate::look;
use crate::place::slug;
use crate::session::{Session, read_text};
use crate::sync;
use crate::terminal::{self, say, unless_closed};
use crate::text::{count, one_line, visible};
use crate::workforce::{self, Signals};

/// How often another plan id is tried when one is taken.
pub const ID_ATTEMPTS_MAX: usize = 8;

/// For how long an order is given again while others write the same plan.
const CONTENDED_MAX: Duration = Duration::from_secs(10);
/// The least time between two such tries. What chance adds keeps those apart who have failed together.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// `init`.
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

/// `run`.
pub async fn run(session: &Session, run: Run) -> Result<Code, Failure> {
    let roster = workforce::roster(session, run.carry.task_timeout, &[])?;
    let (path, file) = (run.file.as_path(), run.reading.plan_file(&run.file));
    let text = read_text(path)?;
    let parsed = parse::read(&text, file.options(run.reading.parallel));
    let model = by_model::wanted(session, run.carry.by_model.typed())?;
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
        look::print_warnings(&planned.parsed.warnings, path);
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
    let jobs = run.carry.jobs.map(usize::from);
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
    let drive = Drive::new(session, store, plan, since, &run.carry, roster, InterruptedTask::Report).await?;
    let drive = if run.sync { drive.in_step_with_file().await? } else { drive };
    drive.run(signals).await
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

/// `resume`.
pub async fn resume(session: &Session, resume: Resume) -> Result<Code, Failure> {
    let roster = workforce::roster(session, resume.carry.task_timeout, &[])?;
    let store = session.place.open().await?;
    let plan = look::find_plan(&store, &resume.plan).await?;
    let tags = look::tags_of(&store, &plan).await?;
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
        act::propagate(&store, &plan).await?;
    }
    if let Phase::Ended(_) = planner.handler().state().phase() {
        let again = session.command_on("retry", &plan);
        return drive::already_ended(session, &store, &plan, &again).await;
    }
    // What a crash kept from being dispatched is dispatched now.
    order(&mut planner, event::Command::Continue).await?;
    let drive = Drive::new(session, store, plan, since, &resume.carry, roster, InterruptedTask::Rerun).await?;
    let drive = if resume.sync { drive.in_step_with_file().await? } else { drive };
    drive.run(signals).await
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

/// Prose must not become shell unasked: shows what would run, the commands and the agents, and asks once.
pub fn consent(session: &Session, parsed: &ParsedPlan, roster: &Roster) -> Result<(), Failure> {
    // What was given up may be opened again by a retry, so it is shown too.
    let runs = parsed.tasks.iter().filter(|task| task.mark != Mark::Done).filter_map(|task| {
        let given_up = if task.mark == Mark::Cancelled { "  (given up)" } else { "" };
        let run = match (&task.command, roster.agent_for(task)) {
            (Some(command), _) => command.clone(),
            (None, Some(agent)) => format!("{} ({})", one_line(&task.description, 60), executors::command_line(agent)),
            (None, None) => {
                let SubPlan { text, agent, request } = task.sub_plan.as_ref()?;
                let agent = agent.as_deref();
                match request {
                    Some(_) => format!("asks a {} agent: {}", agent.unwrap_or_default(), one_line(text, 100)),
                    None => {
                        let agent = agent.map(|agent| format!(" ({agent})")).unwrap_or_default();
                        format!("a plan of its own{agent} of:\n{text}")
                    }
                }
            }
        };
        Some((task.name(), format!("{run}{given_up}")))
    });
    let mut runs = runs.collect::<Vec<_>>();
    let n_runs = runs.len();
    let undo = |task: &TaskPlan| Some((task.name(), format!("{}  (if it is to be undone)", task.compensate.as_ref()?)));
    runs.extend(parsed.tasks.iter().filter_map(undo));
    if runs.is_empty() {
        return Ok(());
    }
    if !(session.terminal.is_quiet && session.yes) {
        let n_commands = parsed.tasks.iter().filter(|task| task.mark != Mark::Done && task.command.is_some()).count();
        let for_agents = match n_runs - n_commands {
            0 => String::new(),
            n => format!(", {n} for agents"),
        };
        let folder = visible(&session.folder.to_string_lossy());
        let n_tasks = count(parsed.tasks.len(), "task");
        say(&format!("{n_tasks}, {n_commands} with a command{for_agents}, in {folder}:"));
        let width = runs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, run) in &runs {
            let run = visible(run).replace('\n', &format!("\n  {:width$}  ", ""));
            say(&format!("  {name:>width$}  {run}"));
        }
    }
    if session.yes {
        return Ok(());
    }
    if !session.terminal.is_interactive {
        return Err(Failure::user("nothing was done: there is no terminal on which to ask whether to run these")
            .hint("read them, then say --yes"));
    }
    match terminal::ask("Run them? [y/N] ")?.as_deref() {
        Some("y" | "Y" | "yes" | "Yes") => Ok(()),
        Some(_) | None => Err(Failure::user("nothing was done")),
    }
}

/// The readable part of a plan's id. Since ids stay clear, that of a sealed plan tells nothing of its text.
pub fn plan_name(parsed: Option<&ParsedPlan>, file: &Path, is_sealed: bool) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let parsed = parsed.filter(|_| !is_sealed);
    let first_task = parsed.and_then(|parsed| parsed.tasks.first()).map(|task| one_line(&task.description, 24));
    let names = [parsed.and_then(|parsed| parsed.title.clone()), stem, first_task].into_iter().flatten();
    names.map(|name| slug(&name)).find(|name| !name.is_empty()).unwrap_or_else(|| "plan".into())
}

pub async fn make_plan(
    session: &Session,
    store: &EventStore,
    mut plan: String,
    begin: event::Command,
) -> Result<String, Failure> {
    for _ in 0..ID_ATTEMPTS_MAX {
        let mut planner = plans::planner_of(store, &plan, session.tags_of_new(&plan)?).await?;
        match order(&mut planner, begin.clone()).await {
            Ok(_) => return Ok(plan),
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {}
            Err(error) => return Err(error.into()),
        }
        let name = plan.rsplit_once('-').map_or(plan.as_str(), |(name, _)| name);
        plan = format!("{name}-{}", short_id());
    }
    Err(Failure::new(Code::Conflict, "no free id for the plan was found: try again"))
}

/// Puts a command to the planner, which is kept with what it leads to.
pub async fn order(
    planner: &mut Runner<Planner>,
    command: event::Command,
) -> Result<Executed<event::Event>, ExecuteError<PlannerError>> {
    let cause = Cause::request().keeping(command.recorded());
    let begun = Instant::now();
    loop {
        match planner.execute(command.clone(), &cause).await {
            // Of many who write one plan at once each comes to its turn when they do not all go on at the same moment.
            Err(ExecuteError::Contended { .. }) if begun.elapsed() < CONTENDED_MAX => {
                tokio::time::sleep(PAUSE_MIN + Duration::from_millis(u64::from(random()[0]))).await;
            }
            done => return done,
        }
    }
}

/// A length of time as settings have it.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Four letters and digits that are hard to mistake for each other.
pub fn short_id() -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    random().iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// Of the part of a new id that is random.
fn random() -> [u8; 4] {
    let id = new_event_id();
    let bytes = id.as_bytes();
    [bytes[12], bytes[13], bytes[14], bytes[15]]
}
