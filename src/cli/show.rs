//! Arguments of commands that show plans and events.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use crewlog_mq::{Query, Timestamp};
use crewlog_planner::event::PlanFile;
use crewlog_planner::parse::Format;
use crewlog_planner::protocol::AgentType;
use uuid::Uuid;

use super::run::RunArgs;
use super::typed::{Address, At, address, agent, at, format, moment, query};
use crate::cli::settings::{Change, KEYS, change, help};

#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Show how a plan file is read, line by line; nothing runs
    Check(Check),
    /// Apply changes of a plan's file to the plan, and write the states of its tasks into the file
    Sync {
        /// The plan
        plan: String,
    },
    /// Change the settings of a plan
    Set {
        /// The plan
        plan: String,
        /// parallelism=2, on-failure=ask, deadline=none, ...
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = change, long_help = help("Settings of the plan", KEYS))]
        settings: Vec<Change>,
        /// Why
        #[arg(long, default_value = "set by a person")]
        reason: String,
    },
    /// Name the present point of a plan, or list its checkpoints
    Checkpoint {
        /// The plan
        plan: String,
        /// The name: letters, digits, dashes, dots and underscores [default: list the checkpoints]
        name: Option<String>,
    },
    /// Accept the plan of an agent, if it keeps the rules of its form and names only the agent's tools
    #[command(hide = true)]
    Propose(Propose),
    /// Print the plan that an agent makes from words, for `propose`
    #[command(hide = true)]
    Draft {
        /// The goal, in words; - for standard input
        file: PathBuf,
        /// The type of the agent
        #[arg(long, value_name = "TYPE", value_parser = agent())]
        agent: AgentType,
        /// Let the configured model plan; when it fails, the agent plans by rule
        #[arg(long)]
        model: bool,
    },
    /// Print the form of an agent's plans as a JSON schema, with its tools
    #[command(hide = true)]
    Schema {
        /// The type of the agent
        #[arg(long, value_name = "TYPE", value_parser = agent())]
        agent: AgentType,
    },
}

#[derive(Debug, Args)]
pub struct Check {
    /// The plan file; - for standard input
    #[arg(required_unless_present = "verbs")]
    pub file: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub struct Propose {
    /// The plan as JSON; - for standard input
    pub file: PathBuf,
    /// The type of the agent
    #[arg(long, value_name = "TYPE", value_parser = agent())]
    pub agent: AgentType,
    /// Run it at once, as `run` does; else it is left to `work` and `resume`
    #[arg(long)]
    pub run: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

/// How to read a plan file.
#[derive(Debug, Clone, Args)]
pub struct Reading {
    /// The format [default: by the path]
    #[arg(long, value_parser = format())]
    pub format: Option<Format>,
    /// The tag of a Task Master file [default: master, else the first]
    #[arg(long)]
    pub tag: Option<String>,
    /// Ignore the order of the file: run steps in parallel unless a dependency is written out
    #[arg(long)]
    pub parallel: bool,
}

impl Reading {
    /// A file, with the format of its path where none is given.
    pub fn plan_file(&self, file: &Path) -> PlanFile {
        let named = Some(file).filter(|file| file.as_os_str() != "-");
        let path = named.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let by_path = || path.as_deref().map_or(Format::Markdown, Format::of_path);
        PlanFile { format: self.format.unwrap_or_else(by_path), tag: self.tag.clone(), path }
    }
}

#[derive(Debug, Args)]
pub struct Show {
    /// The plan, or one of its tasks or questions [default: the only open plan, else the newest]
    #[arg(value_name = "PLAN[/TASK]", value_parser = address)]
    pub target: Option<Address>,
    /// As of this position of the log, or a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT", value_parser = at, conflicts_with = "prompt")]
    pub at: Option<At>,
    /// Print the plan as a Markdown file, with every fact of each task
    #[arg(long, conflicts_with = "prompt")]
    pub markdown: bool,
    /// Print the prompt of the task, and say when its agent got another one
    #[arg(long)]
    pub prompt: bool,
    /// The attempt, with --prompt [default: the last]
    #[arg(long, requires = "prompt", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Events {
    /// Only this plan and its tasks
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
    /// Newest first
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Wait for more events
    #[arg(long, conflicts_with_all = ["up_to", "until"])]
    pub follow: bool,
    #[command(flatten)]
    pub filter: EventFilter,
    /// The event with this id, its causes and all events that followed from it
    #[arg(long, value_name = "ID", conflicts_with_all = ["plan", "follow", "after", "up_to", "since", "until", "EventFilter"])]
    pub causes: Option<Uuid>,
}

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

#[derive(Debug, Args)]
pub struct Replay {
    /// The plan; with --verify all plans if left out
    #[arg(required_unless_present = "verify")]
    pub plan: Option<String>,
    /// Decide every command again with this version, and name the first decision that differs from the log
    #[arg(long, conflicts_with_all = ["step", "from", "to", "failure"])]
    pub verify: bool,
    /// Read orders from standard input, one a line, also where it is no terminal (h lists them)
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
