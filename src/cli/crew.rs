//! Arguments of commands to the crew.

use clap::{Args, Subcommand};
use crewlog_mq::Position;
use crewlog_planner::crew::messages::Importance;

use super::typed::{one_of, position};

const IMPORTANCES: [Importance; 4] = [Importance::Low, Importance::Normal, Importance::High, Importance::Urgent];

#[derive(Debug, Subcommand)]
pub enum Crew {
    /// List the agents
    Agents {
        /// Include those that have left
        #[arg(long)]
        all: bool,
        /// List the agents of crewlog.toml instead, which run tasks
        #[arg(long, conflicts_with_all = ["all", "at"])]
        configured: bool,
        #[command(flatten)]
        at: AsOf,
    },
    /// List the leases on files, and conflicts
    Leases(Leases),
    /// Send a message to agents
    Send(Send),
    /// List what waits for you
    Inbox(Inbox),
    /// Explain an agent, a plan, a task or a file
    Why {
        /// The name of an agent, PLAN/TASK, or a path
        what: String,
        #[command(flatten)]
        at: AsOf,
    },
}

#[derive(Debug, Args)]
pub struct AsOf {
    /// As of this position of the log
    #[arg(long, value_name = "POSITION", value_parser = position())]
    pub at: Option<Position>,
}

#[derive(Debug, Args)]
pub struct Leases {
    /// Only those that overlap this file, folder or pattern
    pub path: Option<String>,
    #[command(flatten)]
    pub at: AsOf,
    /// End these leases of others; only a person may
    #[arg(long, value_name = "NUMBER", requires = "reason", conflicts_with_all = ["path", "at"])]
    pub force: Vec<u64>,
    /// Why, with --force
    #[arg(long, value_name = "TEXT", requires = "force")]
    pub reason: Option<String>,
    /// List instead the tasks that are held at the same time and touch the same files
    #[arg(long, conflicts_with_all = ["path", "force"])]
    pub conflicts: bool,
    /// With --conflicts: only those of this plan
    #[arg(long, value_name = "PLAN", requires = "conflicts")]
    pub plan: Option<String>,
    /// With --conflicts: include resolved ones
    #[arg(long, requires = "conflicts")]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Send {
    /// Names of agents, capabilities of agents, or everyone
    #[arg(required = true)]
    pub to: Vec<String>,
    /// The subject, in one line
    #[arg(long, value_name = "TEXT")]
    pub subject: String,
    /// The text; - for standard input
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub body: String,
    /// How urgent it is
    #[arg(long, default_value = "normal", value_parser = one_of::<Importance>(IMPORTANCES.map(<&str>::from)))]
    pub importance: Importance,
    /// Ask each recipient to acknowledge it
    #[arg(long)]
    pub ack: bool,
    /// A message of the thread that it belongs to
    #[arg(long, value_name = "NUMBER", value_parser = position())]
    pub thread: Option<Position>,
}

#[derive(Debug, Args)]
pub struct Inbox {
    /// The messages to this agent [default: AGENT_ID]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Include messages that are read
    #[arg(long)]
    pub all: bool,
    /// Mark the listed messages as read
    #[arg(long, conflicts_with = "at")]
    pub read: bool,
    #[command(flatten)]
    pub at: AsOf,
}
