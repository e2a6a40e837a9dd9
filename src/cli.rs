//! What can be typed: commands, arguments, options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use crewlog_mq::{AggregateName, Query, Timestamp};
use crewlog_planner::context::{TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN};
use crewlog_planner::plan::FailurePolicy;
use uuid::Uuid;

/// Plan, run and replay work on one durable event log.
#[derive(Debug, Parser)]
#[command(name = "crewlog", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Everywhere.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 the plan does not parse, 4 nothing matched, 5 waiting for a person, \
6 paused, 8 time-out, 9 conflict, 100 a task failed or was cancelled, 101 a bug, 130 interrupted";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The log: a path, or a sqlite: or postgres: URL [default: .crewlog/log.db of the repository]
    #[arg(long, global = true, env = "CREWLOG_STORE", value_name = "PATH|URL")]
    pub store: Option<String>,
    /// The configuration [default: the nearest crewlog.toml, upward to the root of the worktree]
    #[arg(long, global = true, env = "CREWLOG_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// The form of what is printed on standard output
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Whether to colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print no progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Ask nothing, even on a terminal
    #[arg(long, global = true)]
    pub no_input: bool,
    /// Run the plan's commands without asking
    #[arg(short, long, global = true)]
    pub yes: bool,
}

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON document a line
    Jsonl,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the log of this repository (other commands do so by themselves when they need one)
    Init,
    /// Make a plan of a text and carry it out
    Run(Run),
    /// Go on with a plan that was interrupted, paused or waiting
    Resume(Resume),
    /// Take the tasks of all plans in the log, together with other workers, until stopped
    Work(Work),
    /// Work with plans without running them
    #[command(subcommand)]
    Plan(Plan),
    /// List the plans
    Ls(Ls),
    /// Show a plan
    Show(Show),
    /// Print events
    Events(Box<Events>),
    /// List the agents that are configured
    Executors,
    /// Step through a plan's events: why each came and what it changed; nothing is executed
    Replay(Replay),
    /// Show how a plan differs from itself at another position, or from another plan
    Diff(Diff),
    /// Show the figures of each project
    Stats(Stats),
    /// List tasks that are held at the same time and touch the same files
    Conflicts(Conflicts),
    /// Answer a question
    Answer(Answer),
    /// Say that you have done a task
    Done(Done),
    /// Say that a task cannot be done
    Fail(Fail),
    /// End a plan or one of its tasks
    Cancel(Cancel),
    /// Start no more tasks of a plan until it is resumed
    Pause(Pause),
    /// Open failed tasks again
    Retry(Retry),
    /// Write the log, or one plan, as JSON lines
    Export(Export),
    /// Take in the export of a whole log
    Import(Import),
    /// Look after groups: durable subscriptions of programs on this log
    #[command(subcommand)]
    Groups(Groups),
    /// Look after the database of the log
    #[command(subcommand)]
    Db(Db),
    /// Internal: stand between a worker and a command
    #[command(name = "supervise", hide = true)]
    Supervise,
}

/// How work is carried out.
#[derive(Debug, Clone, Args)]
pub struct Carry {
    /// The most commands that this process runs at once [default: what the plan allows]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: Option<u16>,
    /// Stop after this long and exit with 8; the plan can be resumed (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a command after this long, unless its task says otherwise
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The text of the plan; - for standard input
    pub file: PathBuf,
    /// How to carry it out
    #[command(flatten)]
    pub carry: Carry,
    /// What a failure means for the rest of the plan
    #[arg(long, value_enum, default_value_t = OnFailure::Skip)]
    pub on_failure: OnFailure,
    /// About how many tokens an agent may be told, its task and what came before it together [default: 8000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(TOKENS))]
    pub token_budget: Option<u32>,
    /// Let the mere order of the text bind nothing
    #[arg(long)]
    pub relax_order: bool,
    /// Only make the plan, and leave it to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout"])]
    pub detach: bool,
}

/// What a plan may be given as its token budget.
const TOKENS: std::ops::RangeInclusive<i64> = TOKEN_BUDGET_MIN as i64..=TOKEN_BUDGET_MAX as i64;

/// A failure policy as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// Skip what depends on the failed task
    Skip,
    /// Go on as if it had completed
    Continue,
    /// Start nothing more
    Stop,
    /// Ask a person
    Ask,
}

impl From<OnFailure> for FailurePolicy {
    fn from(typed: OnFailure) -> Self {
        match typed {
            OnFailure::Skip => Self::SkipDependants,
            OnFailure::Continue => Self::Continue,
            OnFailure::Stop => Self::Stop,
            OnFailure::Ask => Self::Ask,
        }
    }
}

/// `work`.
#[derive(Debug, Args)]
pub struct Work {
    /// The most tasks that this process carries out at once
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// Be only these executors: shell, or names of crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when there is nothing that an executor of this process could do
    #[arg(long)]
    pub until_idle: bool,
    /// Stop after this long and exit with 8 (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a task after this long, unless it or its executor says otherwise
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
}

/// `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// How to carry it out
    #[command(flatten)]
    pub carry: Carry,
}

/// `plan`.
#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Show what a text means as a plan
    Parse(Parse),
}

/// `plan parse`.
#[derive(Debug, Args)]
pub struct Parse {
    /// The text of the plan; - for standard input
    pub file: PathBuf,
    /// Let the mere order of the text bind nothing
    #[arg(long)]
    pub relax_order: bool,
}

/// `ls`.
#[derive(Debug, Args)]
pub struct Ls {
    /// As they were at this position of the log
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(1..))]
    pub at: Option<i64>,
}

/// `stats`.
#[derive(Debug, Args)]
pub struct Stats {
    /// As they were at this position of the log
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(1..))]
    pub at: Option<i64>,
}

/// `conflicts`.
#[derive(Debug, Args)]
pub struct Conflicts {
    /// The plan's id, or the beginning of it; all plans if left out
    pub plan: Option<String>,
    /// Those that are resolved too
    #[arg(long)]
    pub all: bool,
    /// As they were at this position of the log
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(1..))]
    pub at: Option<i64>,
}

/// `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// As it was at this position of the log
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(1..))]
    pub at: Option<i64>,
}

/// `events`. What is given must hold together.
#[derive(Debug, Args)]
pub struct Events {
    /// Of this plan and its tasks only
    pub plan: Option<String>,
    /// After this position
    #[arg(long, value_name = "POSITION", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub after: i64,
    /// Up to and including this position
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub up_to: Option<i64>,
    /// Made at this time or later (2026-11-21T10:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Made at this time or before
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Timestamp>,
    /// The last first
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Do not end, but wait for more
    #[arg(long, conflicts_with_all = ["up_to", "until"])]
    pub follow: bool,
    /// Which events
    #[command(flatten)]
    pub filter: EventFilter,
    /// The event with this id, what caused it and all that followed from it
    #[arg(long, value_name = "ID", conflicts_with_all = ["plan", "follow", "after", "up_to", "since", "until", "filter", "stream", "aggregate", "event_type", "tag", "correlation", "caused_by", "id"])]
    pub causes: Option<Uuid>,
}

/// Which events.
#[derive(Debug, Args)]
pub struct EventFilter {
    /// Of this stream
    #[arg(long, value_name = "STREAM")]
    pub stream: Option<String>,
    /// Of this aggregate
    #[arg(long, value_name = "ID")]
    pub aggregate: Option<String>,
    /// Of this type; of any of them when given several times
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Vec<String>,
    /// With this tag; with all of them when given several times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Of this correlation
    #[arg(long, value_name = "ID")]
    pub correlation: Option<Uuid>,
    /// Caused directly by this event
    #[arg(long, value_name = "ID")]
    pub caused_by: Option<Uuid>,
    /// With this id
    #[arg(long, value_name = "ID")]
    pub id: Option<Uuid>,
    /// A query as JSON, in place of the options above: {"stream_id": ..., "or": [...]}
    #[arg(long, value_name = "JSON", value_parser = query, conflicts_with_all = ["stream", "aggregate", "event_type", "tag", "correlation", "caused_by", "id"])]
    pub filter: Option<Query>,
}

/// `groups`.
#[derive(Debug, Subcommand)]
pub enum Groups {
    /// List the groups
    Ls,
    /// Show a group: its versions, who holds which partition, how far behind each is
    Show(GroupName),
    /// Give a group no events until it is resumed
    Pause(GroupName),
    /// Let a paused group go on
    Resume(GroupName),
    /// Let a group go on behind another position, whatever it has handled
    Reset(ResetGroup),
    /// List what a group has parked, or have it handled again, or give it up
    Parked(ParkedOf),
    /// End a version of a group
    Retire(RetireGroup),
}

/// A group.
#[derive(Debug, Args)]
pub struct GroupName {
    /// Its name
    pub name: String,
}

/// `groups reset`.
#[derive(Debug, Args)]
pub struct ResetGroup {
    /// Its name
    pub name: String,
    /// All up to here counts as handled, and nothing behind it
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub to: i64,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

/// `groups parked`.
#[derive(Debug, Args)]
pub struct ParkedOf {
    /// Its name
    pub name: String,
    /// Have it handled again
    #[arg(long, conflicts_with = "skip")]
    pub replay: bool,
    /// Give up the first event that is parked; those behind it are handled
    #[arg(long, requires = "aggregate")]
    pub skip: bool,
    /// Of this aggregate only
    #[arg(long, value_name = "STREAM/ID", value_parser = aggregate)]
    pub aggregate: Option<AggregateName>,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

/// `groups retire`.
#[derive(Debug, Args)]
pub struct RetireGroup {
    /// Its name
    pub name: String,
    /// The version
    #[arg(long, value_name = "N")]
    pub group_version: u32,
}

/// `replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Read orders from standard input, one a line, also where it is no terminal (h tells which)
    #[arg(long)]
    pub step: bool,
    /// Begin with the first event at or after this position
    #[arg(long, value_name = "POSITION", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    pub from: i64,
    /// End with the last event at or before this position
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(1..))]
    pub to: Option<i64>,
    /// Print only the events with which a task fails, times out or is cancelled
    #[arg(long, conflicts_with = "step")]
    pub failure: bool,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The plan before: its id, or the beginning of it, and a position of the log (now if left out)
    #[arg(value_name = "PLAN@POSITION", value_parser = plan_at)]
    pub before: PlanAt,
    /// The plan after
    #[arg(value_name = "PLAN@POSITION", value_parser = plan_at)]
    pub after: PlanAt,
}

/// A plan at a position, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAt {
    /// Its id, or the beginning of it.
    pub plan: String,
    /// The position; now when unset.
    pub at: Option<i64>,
}

/// `answer`.
#[derive(Debug, Args)]
pub struct Answer {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The question (q1), or the task that asks
    pub question: String,
    /// The answer
    pub text: String,
}

/// `done`.
#[derive(Debug, Args)]
pub struct Done {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label
    pub task: String,
    /// What came of it
    #[arg(default_value = "done")]
    pub result: String,
}

/// `fail`.
#[derive(Debug, Args)]
pub struct Fail {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label
    pub task: String,
    /// Why
    pub error: String,
}

/// `cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label; the whole plan if left out
    pub task: Option<String>,
    /// Why
    #[arg(long, default_value = "cancelled by a person")]
    pub reason: String,
}

/// `pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// Why
    #[arg(long, default_value = "paused by a person")]
    pub reason: String,
}

/// `retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// The task, by number or label; all that failed if left out
    pub task: Option<String>,
}

/// `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Of this plan and its tasks only; the whole log if left out
    pub plan: Option<String>,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The export; - for standard input
    pub file: PathBuf,
}

/// `db`.
#[derive(Debug, Subcommand)]
pub enum Db {
    /// Look whether the log is sound; nothing is changed
    Check,
    /// Bring the schema of the log up to date; opening a log does the same, this does it alone
    Migrate,
    /// Copy the log into a new file, while others go on writing
    Backup(Backup),
    /// Count what the log holds
    Stats,
}

/// `db backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// The file to be made; it is a log, and --store opens it
    pub file: PathBuf,
}

/// No plan's id holds an @.
fn plan_at(typed: &str) -> Result<PlanAt, String> {
    let (plan, at) = match typed.split_once('@') {
        None => (typed, None),
        Some((plan, at)) => match at.parse() {
            Ok(at @ 0..) => (plan, Some(at)),
            Ok(_) | Err(_) => {
                return Err(format!("{at:?} is no position: write PLAN@NUMBER, or PLAN alone for how it stands now"));
            }
        },
    };
    if plan.is_empty() {
        return Err("it names no plan: write PLAN@NUMBER, or PLAN alone for how it stands now".into());
    }
    Ok(PlanAt { plan: plan.to_owned(), at })
}

/// A moment as RFC 3339 has it.
fn moment(typed: &str) -> Result<Timestamp, String> {
    let parsed = typed.parse::<jiff::Timestamp>().map_err(|error| error.to_string())?;
    Ok(Timestamp(parsed.as_microsecond()))
}

/// A query as JSON has it.
fn query(typed: &str) -> Result<Query, String> {
    serde_json::from_str(typed).map_err(|error| format!("it is no query: {error}"))
}

/// The name of a stream holds no slash by custom; that of an aggregate may.
fn aggregate(typed: &str) -> Result<AggregateName, String> {
    match typed.split_once('/') {
        Some((stream_id, aggregate_id)) if !stream_id.is_empty() && !aggregate_id.is_empty() => {
            Ok(AggregateName { stream_id: stream_id.to_owned(), aggregate_id: aggregate_id.to_owned() })
        }
        Some(_) | None => Err("it names no aggregate: write STREAM/ID".into()),
    }
}

/// A duration as people write it: `30s`, `10m`, `2h`.
pub fn duration(typed: &str) -> Result<Duration, String> {
    let parsed = typed.parse::<jiff::SignedDuration>().map_err(|error| error.to_string())?;
    match Duration::try_from(parsed) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => Err("it must be more than nothing".into()),
    }
}
