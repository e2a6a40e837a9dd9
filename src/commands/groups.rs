//! `groups`: shows the durable subscriptions of programs on this log, and passes people's commands to them.

use std::io::Write;

use clap::{Args, Subcommand};
use crewlog_mq::{
    AggregateName, EventStore, GroupCommand, GroupError, GroupReport, Lag, ParkedReport, PartitionReport, Position,
    VersionReport,
};
use serde_json::{Value, json};

use crate::cli::typed::aggregate;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{age, count, millis, one_line, rfc3339, visible};

#[derive(Debug, Subcommand)]
pub enum Groups {
    /// List the groups
    Ls,
    /// Show a group: its versions, and the owner and lag of each partition
    Show { name: String },
    /// Deliver no events to a group until it is resumed
    Pause { name: String },
    /// Resume a paused group
    Resume { name: String },
    /// Move a group to another position, whatever it has handled
    Reset {
        name: String,
        /// Move the group's position here
        #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
        to: i64,
        /// The version [default: the active one]
        #[arg(long, value_name = "N")]
        group_version: Option<u32>,
    },
    /// List the parked events of a group, or replay or skip them
    Parked(ParkedOf),
    /// End a version of a group
    Retire {
        name: String,
        /// The version
        #[arg(long, value_name = "N")]
        group_version: u32,
    },
}

#[derive(Debug, Args)]
pub struct ParkedOf {
    pub name: String,
    /// Handle parked events again
    #[arg(long, conflicts_with = "skip")]
    pub replay: bool,
    /// Skip the first parked event and handle those after it
    #[arg(long, requires = "aggregate")]
    pub skip: bool,
    /// Only this aggregate
    #[arg(long, value_name = "STREAM/ID", value_parser = aggregate)]
    pub aggregate: Option<AggregateName>,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

pub async fn groups(session: &Session, groups: Groups) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (name, command, said) = match groups {
        Groups::Ls => return ls(session, &store).await,
        Groups::Show { name } => return show(session, &store, &name).await,
        Groups::Parked(asked) if !asked.replay && !asked.skip => return parked(session, &store, asked).await,
        Groups::Parked(ParkedOf { name, skip, aggregate, group_version, .. }) => {
            let version = version(&store, &name, group_version).await?;
            match aggregate {
                Some(aggregate) if skip => (name, GroupCommand::Skip { version, aggregate }, "skips an event"),
                aggregate => (name, GroupCommand::Replay { version, aggregate }, "handles the parked events again"),
            }
        }
        Groups::Pause { name } => (name, GroupCommand::Pause, "is paused"),
        Groups::Resume { name } => (name, GroupCommand::Resume, "continues"),
        Groups::Reset { name, to, group_version } => {
            let version = version(&store, &name, group_version).await?;
            (name, GroupCommand::Reset { version, to: Position(to) }, "is reset")
        }
        Groups::Retire { name, group_version } => {
            (name, GroupCommand::Retire { version: group_version }, "has retired a version")
        }
    };
    let happened = store.groups().execute(&name, command).await?;
    let text = if happened.is_empty() { format!("nothing changes for {name}") } else { format!("{name} {said}") };
    session.print_done(&text, &json!({ "group": name, "n_events": happened.len() }))
}

/// The version that was asked for, or the one that has effects.
async fn version(store: &EventStore, name: &str, asked: Option<u32>) -> Result<u32, Failure> {
    match asked {
        Some(version) => Ok(version),
        None => Ok(store.groups().active(name).await?),
    }
}

async fn ls(session: &Session, store: &EventStore) -> Result<Code, Failure> {
    let listed = store.groups().list().await?;
    let width = listed.iter().map(|group| group.name.len()).max().unwrap_or(0);
    session.print_list("groups", json!({}), &listed, group_json, |to, GroupReport { name, is_paused, versions }| {
        versions.iter().try_for_each(|version| {
            let status = if *is_paused { "paused".to_owned() } else { format!("{:?}", version.status) };
            let (number, parked) = (version.version, version.parked.len());
            let name = visible(name);
            writeln!(to, "{name:<width$}  v{number}  {status:<10}  {}  {parked} parked", lag(version.lag))
        })
    })
}

async fn show(session: &Session, store: &EventStore, name: &str) -> Result<Code, Failure> {
    let group = store.groups().show(name).await?;
    session.print(&group_json(&group), |to| {
        writeln!(to, "{}{}", visible(name), if group.is_paused { "  paused" } else { "" })?;
        group.versions.iter().try_for_each(|version| print_version(&mut *to, version))
    })
}

fn print_version(mut to: impl Write, version: &VersionReport) -> std::io::Result<()> {
    let VersionReport { version: number, status, query, floor, lag: behind, partitions, parked } = version;
    let (behind, query) = (lag(*behind), one_line(&serde_json::to_string(query)?, 100));
    writeln!(to, "version {number}  {status:?}  up to position {floor}, {behind}  {query}")?;
    for PartitionReport { partition, owner, epoch, checkpoint, n_behind, stopped, lag: behind, .. } in partitions {
        let owner = owner.as_deref().unwrap_or("-");
        write!(to, "{partition:>6}  at {checkpoint:<8}  {:<24}  epoch {epoch:<17}  {}", lag(*behind), visible(owner))?;
        if *n_behind > 0 {
            write!(to, "  {} tried again", count(*n_behind, "aggregate"))?;
        }
        writeln!(to, "{}", stopped.as_ref().map_or_else(String::new, |stopped| format!("  stopped: {stopped}")))?;
    }
    parked.iter().try_for_each(|parked| print_parked(&mut to, parked))
}

fn print_parked(mut to: impl Write, parked: &ParkedReport) -> std::io::Result<()> {
    let ParkedReport { aggregate, from, n_events, more, n_attempts, error, is_replayed } = parked;
    let (aggregate, error) = (visible(&aggregate.to_string()), one_line(error, 100));
    let (events, more) = (count(*n_events, "event"), if *more { " or more" } else { "" });
    let replayed = if *is_replayed { ", being handled again" } else { "" };
    let attempts = count(usize::try_from(*n_attempts).unwrap_or(usize::MAX), "attempt");
    writeln!(to, "parked {aggregate}  {events}{more} from position {from}, after {attempts}{replayed}: {error}")
}

async fn parked(session: &Session, store: &EventStore, asked: ParkedOf) -> Result<Code, Failure> {
    let ParkedOf { name, aggregate, group_version, .. } = asked;
    let group = store.groups().show(&name).await?;
    let number = version(store, &name, group_version).await?;
    let Some(version) = group.versions.iter().find(|version| version.version == number) else {
        return Err(Failure::new(Code::Nothing, format!("{name} has no version {number}")));
    };
    let is_asked = |parked: &&ParkedReport| aggregate.as_ref().is_none_or(|aggregate| *aggregate == parked.aggregate);
    let parked = version.parked.iter().filter(is_asked).collect::<Vec<_>>();
    session.print_list("parked", json!({}), &parked, |one| one, |to, one| print_parked(to, one))
}

fn lag(lag: Lag) -> String {
    if lag.n_events == 0 && !lag.more {
        return "caught up".to_owned();
    }
    let more = if lag.more { " or more" } else { "" };
    format!("{}{more}, {} behind", count(lag.n_events, "event"), age(millis(lag.time)))
}

/// The report with readable times.
fn group_json(group: &GroupReport) -> Value {
    let mut json = json!(group);
    for (v, version) in group.versions.iter().enumerate() {
        for (p, partition) in version.partitions.iter().enumerate() {
            json["versions"][v]["partitions"][p]["held_until"] = json!(partition.held_until.map(rfc3339));
        }
    }
    json
}

impl From<GroupError> for Failure {
    fn from(refusal: GroupError) -> Self {
        let show = "`crewlog groups show NAME` lists its versions and parked events";
        let (code, hint) = match &refusal {
            GroupError::UnknownGroup { .. } => (Code::Nothing, "`crewlog groups ls` lists the groups"),
            GroupError::UnknownVersion { .. } | GroupError::NotParked { .. } => (Code::Nothing, show),
            GroupError::DeclaredOtherwise { .. }
            | GroupError::VersionNotNew { .. }
            | GroupError::Retired { .. }
            | GroupError::InReplay { .. }
            | GroupError::TooManyParked { .. }
            | GroupError::Invalid { .. } => (Code::User, show),
        };
        Self::new(code, refusal.to_string()).hint(hint)
    }
}
