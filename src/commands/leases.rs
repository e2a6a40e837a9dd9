//! `leases`: lists the leases on files and conflicts, and ends leases.

use clap::Args;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_planner::crew::target::Target;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::context::crew::open;
use crate::ui::failure::{Code, Failure};
use crate::views::facts;
use crate::views::names::{Choice, find_plan};
use crate::views::views;

#[derive(Debug, Args)]
pub struct Leases {
    /// Only those that overlap this file, folder or pattern
    pub path: Option<String>,
    #[command(flatten)]
    pub at: AtPosition,
    /// End these leases of other agents; only a person may do this
    #[arg(long, value_name = "NUMBER", requires = "reason", conflicts_with_all = ["path", "at"])]
    pub force: Vec<u64>,
    /// Why, with --force
    #[arg(long, value_name = "TEXT", requires = "force")]
    pub reason: Option<String>,
    /// List conflicts instead: tasks held at the same time that touch the same files
    #[arg(long, conflicts_with_all = ["path", "force"])]
    pub conflicts: bool,
    /// With --conflicts: only those of this plan
    #[arg(long, value_name = "PLAN", requires = "conflicts")]
    pub plan: Option<String>,
    /// With --conflicts: include resolved ones
    #[arg(long, requires = "conflicts")]
    pub all: bool,
}

/// The fields of a lease in the text of a list: its heading, and the lines below.
const LEASE: [&[&str]; 2] = [
    &["path", "agent"],
    &["lease", "waiting", "is_exclusive", "reason", "task", "doing", "worktree", "call", "since", "until"],
];
/// The fields of a conflict, likewise.
const CONFLICT: [&[&str]; 2] = [&["conflict", "pattern"], &["since", "holders", "resolved"]];

pub async fn leases(session: &Session, args: Leases) -> Result<Code, Failure> {
    if args.conflicts {
        return conflicts(session, args).await;
    }
    if !args.force.is_empty() {
        let reason = args.reason.unwrap_or_default();
        return end(session, EndLeases { leases: args.force, reason }).await;
    }
    let as_of = views(session).await?.as_of(args.at.at).await?;
    let wanted = args.path.map(|path| target(session, &path)).transpose()?;
    let shown = as_of.leases(|lease| wanted.as_ref().is_none_or(|wanted| lease.overlaps(wanted))).await?;
    facts::print_list(session, "leases", json!({ "at": as_of.at }), &shown, LEASE, as_of.now)
}

async fn conflicts(session: &Session, args: Leases) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(args.at.at).await?;
    let plan = match &args.plan {
        Some(plan) => Some(find_plan(session, as_of.store(), plan, Choice::Viewed).await?),
        None => None,
    };
    let found = as_of.conflicts(plan.as_deref(), args.all).await?;
    facts::print_list(session, "conflicts", json!({ "at": as_of.at }), &found, CONFLICT, as_of.now)
}

/// A path of the working directory as leases name it.
pub fn target(session: &Session, path: &str) -> Result<Target, Failure> {
    let target = Worktree::around(&session.folder).target(&session.folder, path);
    target.map_err(|error| Failure::user(error.to_string()))
}

/// Ends leases of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndLeases {
    /// The numbers of the leases
    pub leases: Vec<u64>,
    /// Why
    pub reason: String,
}

pub async fn end(session: &Session, EndLeases { leases, reason }: EndLeases) -> Result<Code, Failure> {
    session.person_only("end the leases of others").await?;
    let crew = open(session).await?;
    let ended = crew.force(leases, session.person(), reason).await?;
    let numbers = ended.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    session.print_done(&format!("ended: {numbers}"), &json!({ "ended": ended }))
}
