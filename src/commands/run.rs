//! `run`: makes a plan from a file and runs it.

use std::path::{Path, PathBuf};

use clap::Args;
use crewlog_executors::caller::request;
use crewlog_executors::consent::Consent;
use crewlog_executors::roster::Roster;
use crewlog_planner::event::{Command, PlannerConfig};
use crewlog_planner::lines::Lines;
use crewlog_planner::parse::{self, Format, ParsedPlan};
use crewlog_planner::plan::{Origin, Proposal, Span, TaskPlan};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::settings::{self, Change, KEYS, apply, help};
use crate::cli::typed::{Parse, Typed};
use crate::consent::consent;
use crate::context::{Session, roster};
use crate::plan_file::{ReadArgs, print_warnings};
use crate::run::by_model::{Advisor, allowed};
use crate::run::offering;
use crate::run::runtime::RunArgs;
use crate::run::session::RunSession;
use crate::target::make_plan;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use crate::ui::terminal::{Output, say};
use crate::ui::text::one_line;
use crewlog_executors::plan_ids::{new_id, slug};

const SET: &str = "\
A setting of the plan, such as budget.tokens=9000; may be repeated

It wins over the line `crewlog: KEY=VALUE ...` in the front matter of the file, which wins over the table [plan] of
crewlog.toml.";

#[derive(Debug, Args)]
pub struct Run {
    /// The plan file; - for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub run_args: RunArgs,
    /// A setting of the plan, such as budget.tokens=9000; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = Change::parse, long_help = help(SET, KEYS))]
    pub set: Vec<Change>,
    /// Write the states of tasks into the file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Only make the plan, and leave it to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
}

/// A plan as a text, whose tasks are left to workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunText {
    /// The text of the plan
    pub text: String,
    /// The format; markdown if left out
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub format: Option<Typed<Format>>,
    /// Ignore the order of the text: run steps in parallel unless a dependency is written out
    #[serde(default)]
    pub parallel: bool,
    /// Settings of the plan: KEY=VALUE
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub set: Vec<Typed<Change>>,
}

pub async fn run_text(session: &Session, RunText { text, format, parallel, set }: RunText) -> Result<Code, Failure> {
    let set = set.into_iter().map(|setting| setting.value).collect::<Vec<_>>();
    if !set.iter().all(Change::is_of_scheduling) {
        return Err(Failure::user("set takes no prompt.*, compensate and standing here: write them in the text"));
    }
    let reading = ReadArgs { format: format.map(|format| format.value), tag: None, parallel };
    let (file, run_args) = (PathBuf::from("-"), RunArgs::without_model());
    begin(session, text, Run { file, reading, run_args, set, sync: false, detach: true }).await
}

pub async fn run(session: &Session, run: Run) -> Result<Code, Failure> {
    let text = session.read_text(&run.file)?;
    begin(session, text, run).await
}

/// Makes the plan of a text, and runs it unless it is left to workers.
async fn begin(session: &Session, text: String, run: Run) -> Result<Code, Failure> {
    let roster = roster::roster(session, run.run_args.task_timeout, &[])?;
    let (path, file) = (run.file.as_path(), run.reading.plan_file(&run.file));
    let parsed = parse::read(&text, file.options(run.reading.parallel));
    let in_file = settings::of_file(path, &text)?;
    let model = allowed(session, run.run_args.by_model()).await?;
    if run.sync && (path == Path::new("-") || model.is_some()) {
        let message = "--sync needs a plan file, and this plan comes from standard input or a model";
        return Err(Failure::user(message).hint("name a file, and add --no-model"));
    }
    let (title, tasks) = parsed.as_ref().map_or((None, &[][..]), |parsed| (parsed.title.as_ref(), &parsed.tasks));
    let id = new_plan_id(session, title, tasks, path);
    let (parsed, origin) = match &model {
        None => (parsed?, Origin::default()),
        Some(model) => Advisor::new(session, model, &id, session.tags_of_new(&id)?).await?.plan(&text, parsed).await?,
    };
    print_warnings(session, &parsed.warnings, path);
    refuse_losses(session, &parsed, &text, run.reading.format.is_some())?;
    let mut config = PlannerConfig { file, ..session.config_of_new(None)? };
    let folders = session.folders(true)?;
    config.file.path = config.file.path.map(|path| folders.keep(Path::new(&path)));
    apply(&in_file, &mut config);
    config.parallelism = run.run_args.jobs.unwrap_or(config.parallelism);
    offering::check(session, &run.set).await?;
    apply(&run.set, &mut config);
    let agreed = consent(session, &parsed.tasks, &roster, (&config.system_prompt, config.folder.as_deref())).await?;
    config.sessions = offering::asked(session, &roster, &parsed.tasks, &config).await?;
    let agreed = (agreed, parsed.tasks.clone());
    let ParsedPlan { title, tasks, context, .. } = parsed;
    let proposal = Box::new(Proposal { tasks, title, source: text, context, origin });
    let begin = Command::Initialize { proposal, attachments: Vec::new(), config };
    let run_args = (!run.detach).then_some(&run.run_args);
    start(session, id, begin, agreed, roster, run_args, run.sync).await
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

/// Makes a plan, prints its id, and runs it, in step with its file if `is_synced`. Without `run_args` it is left to `work`.
pub async fn start(
    session: &Session,
    id: String,
    begin: Command,
    (agreed, tasks): (Consent, Vec<TaskPlan>),
    roster: Roster,
    run_args: Option<&RunArgs>,
    is_synced: bool,
) -> Result<Code, Failure> {
    let folder = session.config_of_new(None)?.folder;
    let (store, _) = session.place.open_or_make().await?;
    let signals = Signals::new()?;
    let of_plan = (&tasks, folder.as_deref());
    let tasks = agreed.record(&store, &session.tags_of_project()?, &id, of_plan, 0, &request()).await?;
    let plan = make_plan(session, &store, id, begin).await?;
    let roster = roster::to_work(session, roster, &[]).await?;
    roster.trust.iter().for_each(|trust| trust.agree_here(tasks.iter().cloned()));
    if session.output == Output::Text || run_args.is_none() {
        let resume = session.command_on("resume", &plan);
        let hint = format!("no task has run yet; to run the plan: {resume}");
        session.print_begun(&plan, &json!({ "plan": plan })).map_err(|failure| failure.hint(hint))?;
    }
    let Some(run_args) = run_args else { return Ok(Code::Done) };
    RunSession::new(session, store, plan, None, run_args, roster, signals).await?.run(is_synced).await
}

/// An id from the title, the file or the first task. Ids are not encrypted: that of a sealed plan uses none of its text.
pub fn new_plan_id(session: &Session, title: Option<&String>, tasks: &[TaskPlan], file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let (title, first_task) = if session.place.keys.is_given() { (None, None) } else { (title, tasks.first()) };
    // Without the configuration nothing can be appended.
    let redacted = |text: &String| session.config().map(|config| config.secrets.redacted(text)).unwrap_or_default();
    let first_task = first_task.map(|task| one_line(&redacted(&task.description), 24));
    let names = [title.map(redacted), stem, first_task].into_iter().flatten();
    let name = names.map(|name| slug(&name)).find(|name| !name.is_empty());
    new_id(name.as_deref().unwrap_or("plan"))
}
