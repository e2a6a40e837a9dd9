//! What can be typed to look at plans and at the log.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use crewlog_mq::{Query, Timestamp};
use crewlog_planner::event::PlanFile;
use crewlog_planner::parse::Format;
use uuid::Uuid;

use super::agents::{Draft, Propose, Schema};
use super::fork::{At, at};
use super::typed::{moment, plan_at, query};

/// `plan`.
#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Show how a plan file is read, line by line; nothing runs
    Check(Check),
    /// Take over what was changed in the file of a plan, and write the states of its tasks into the file
    Sync(SyncPlan),
    /// Print a plan as a Markdown file, with every fact of each task
    Export(ExportPlan),
    /// Take up the plan of an agent, if it keeps the rules of its form and names only the agent's tools
    Propose(Propose),
    /// Print the plan that an agent makes of words, for `propose`
    Draft(Draft),
    /// Print the form of an agent's plans as a JSON schema, with the tools that it has
    Schema(Schema),
}

/// `plan check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The plan file; - for standard input
    #[arg(required_unless_present = "verbs")]
    pub file: Option<PathBuf>,
    /// How to read it
    #[command(flatten)]
    pub reading: Reading,
    /// Let the configured model plan; `run` then gets the same plan from the log
    #[arg(long)]
    pub model: bool,
    /// Ask the configured model which dependencies, kinds and questions it would add
    #[arg(long)]
    pub advice: bool,
    /// Print the verbs that begin a step in a file without lists, with the kind that each gives
    #[arg(long)]
    pub verbs: bool,
}

/// How to read a plan file.
#[derive(Debug, Clone, Args)]
pub struct Reading {
    /// The format [default: by the path]
    #[arg(long, value_enum)]
    pub format: Option<TypedFormat>,
    /// The tag of a Task Master file [default: master, else the first]
    #[arg(long)]
    pub tag: Option<String>,
    /// Ignore the order of the file: run steps in parallel unless a dependency is written out
    #[arg(long)]
    pub parallel: bool,
}

/// A format as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypedFormat {
    /// Plain Markdown
    Markdown,
    /// spec-kit's tasks.md
    Speckit,
    /// OpenSpec's tasks.md
    Openspec,
    /// Kiro's and cc-sdd's tasks.md
    Kiro,
    /// Task Master's tasks.json
    Taskmaster,
    /// beads' issues.jsonl
    Beads,
}

impl From<TypedFormat> for Format {
    fn from(typed: TypedFormat) -> Self {
        match typed {
            TypedFormat::Markdown => Self::Markdown,
            TypedFormat::Speckit => Self::SpecKit,
            TypedFormat::Openspec => Self::OpenSpec,
            TypedFormat::Kiro => Self::Kiro,
            TypedFormat::Taskmaster => Self::TaskMaster,
            TypedFormat::Beads => Self::Beads,
        }
    }
}

impl Reading {
    /// A file, with the format of its path where none is given.
    pub fn plan_file(&self, file: &Path) -> PlanFile {
        let named = Some(file).filter(|file| file.as_os_str() != "-");
        let path = named.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let by_path = || path.as_deref().map_or(Format::Markdown, Format::of_path);
        PlanFile { format: self.format.map_or_else(by_path, Into::into), tag: self.tag.clone(), path }
    }
}

/// `plan sync`.
#[derive(Debug, Args)]
pub struct SyncPlan {
    /// The plan's id, or the beginning of it
    pub plan: String,
}

/// `plan export`.
#[derive(Debug, Args)]
pub struct ExportPlan {
    /// The plan's id, or the beginning of it
    pub plan: String,
    /// As it was at this position of the log, or at a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at)]
    pub at: Option<At>,
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
    /// Only this project; zeros when it has no plans
    pub project: Option<String>,
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
    /// The task, with --prompt
    #[arg(requires = "prompt")]
    pub task: Option<String>,
    /// As it was at this position of the log, or at a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at, conflicts_with = "prompt")]
    pub at: Option<At>,
    /// Print the prompt that the agent of TASK gets, and say when it got another
    #[arg(long, requires = "task")]
    pub prompt: bool,
    /// Of this attempt [default: the last]
    #[arg(long, requires = "prompt", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
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

/// `replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The plan's id, or the beginning of it; with --verify all plans if left out
    #[arg(required_unless_present = "verify")]
    pub plan: Option<String>,
    /// Decide every command again with this version, and name the first decision that is not what the log has
    #[arg(long, conflicts_with_all = ["step", "from", "to", "failure"])]
    pub verify: bool,
    /// Read orders from standard input, one a line, also where it is no terminal (h tells which)
    #[arg(long)]
    pub step: bool,
    /// Begin with the first event at or after this position, or with a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at)]
    pub from: Option<At>,
    /// End with the last event at or before this position, or with a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at)]
    pub to: Option<At>,
    /// Print only the events with which a task fails, times out or is cancelled
    #[arg(long, conflicts_with = "step")]
    pub failure: bool,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The plan before: its id, or the beginning of it, and a position of the log or a checkpoint (now if left out)
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
    /// The point of its history; now when unset.
    pub at: Option<At>,
}
