//! `groups`: durable subscriptions of programs on this log, as they stand, and what people may ask of them.

use std::io::{BufWriter, Write};

use crewlog_mq::{
    ExecuteError, GroupCommand, GroupError, GroupReport, Lag, ParkedReport, PartitionReport, Position, Query,
    VersionReport, VersionStatus,
};
use serde::Serialize;

use crate::cli::{Groups, Output, ParkedOf};
use crate::failure::{Code, Failure};
use crate::json::{print_line, print_pretty};
use crate::session::Session;
use crate::text::{count, one_line, rfc3339, visible};

/// `groups`.
pub async fn groups(session: &Session, groups: Groups) -> Result<Code, Failure> {
    let (name, command, said) = match groups {
        Groups::Ls => return ls(session).await,
        Groups::Show(show) => return self::show(session, &show.name).await,
        Groups::Parked(ParkedOf { name, replay: false, skip: false, aggregate, group_version }) => {
            return parked(session, &name, aggregate.map(|aggregate| aggregate.to_string()), group_version).await;
        }
        Groups::Parked(asked) => {
            let version = version(session, &asked.name, asked.group_version).await?;
            match (asked.skip, asked.aggregate) {
                (true, Some(aggregate)) => (asked.name, GroupCommand::Skip { version, aggregate }, "skips an event"),
                (_, aggregate) => {
                    (asked.name, GroupCommand::Replay { version, aggregate }, "handles again what is parked")
                }
            }
        }
        Groups::Pause(of) => (of.name, GroupCommand::Pause, "is paused"),
        Groups::Resume(of) => (of.name, GroupCommand::Resume, "goes on"),
        Groups::Reset(reset) => {
            let version = version(session, &reset.name, reset.group_version).await?;
            let to = Position(reset.to);
            (reset.name, GroupCommand::Reset { version, to }, "is reset")
        }
        Groups::Retire(of) => (of.name, GroupCommand::Retire { version: of.group_version }, "has a version less"),
    };
    let store = session.place.open().await?;
    let happened = store.groups().execute(&name, command).await?;
    let mut stdout = std::io::stdout().lock();
    match session.output {
        Output::Text if happened.is_empty() => writeln!(stdout, "nothing changes for {name}")?,
        Output::Text => writeln!(stdout, "{name} {said}")?,
        Output::Json | Output::Jsonl => print_line(&mut stdout, &SaidJson { group: name, n_events: happened.len() })?,
    }
    Ok(Code::Done)
}

/// The version that was asked for, or the one that has effects.
async fn version(session: &Session, name: &str, asked: Option<u32>) -> Result<u32, Failure> {
    match asked {
        Some(version) => Ok(version),
        None => Ok(session.place.open().await?.groups().active(name).await?),
    }
}

async fn ls(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let listed = store.groups().list().await?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => {
            print_pretty(&mut stdout, &GroupsJson { groups: listed.iter().map(GroupJson::of).collect() })?;
        }
        Output::Jsonl => listed.iter().try_for_each(|group| print_line(&mut stdout, &GroupJson::of(group)))?,
        Output::Text => {
            let width = listed.iter().map(|group| group.name.len()).max().unwrap_or(0);
            for GroupReport { name, is_paused, versions } in &listed {
                for version in versions {
                    let status = if *is_paused { "paused" } else { status(version.status) };
                    let (number, parked) = (version.version, version.parked.len());
                    let name = visible(name);
                    writeln!(stdout, "{name:<width$}  v{number}  {status:<10}  {}  {parked} parked", lag(version.lag))?;
                }
            }
        }
    }
    stdout.flush()?;
    Ok(Code::Done)
}

async fn show(session: &Session, name: &str) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let group = store.groups().show(name).await?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &GroupJson::of(&group))?,
        Output::Jsonl => print_line(&mut stdout, &GroupJson::of(&group))?,
        Output::Text => {
            writeln!(stdout, "{}{}", visible(name), if group.is_paused { "  paused" } else { "" })?;
            group.versions.iter().try_for_each(|version| print_version(&mut stdout, version))?;
        }
    }
    stdout.flush()?;
    Ok(Code::Done)
}

fn print_version(mut to: impl Write, version: &VersionReport) -> std::io::Result<()> {
    let VersionReport { version: number, status: is, query, floor, lag: behind, partitions, parked } = version;
    let query = serde_json::to_string(query)?;
    writeln!(
        to,
        "version {number}  {}  up to position {floor}, {}  {}",
        status(*is),
        lag(*behind),
        one_line(&query, 100)
    )?;
    for PartitionReport { partition, owner, epoch, checkpoint, n_behind, stopped, lag: behind, .. } in partitions {
        let owner = owner.as_deref().unwrap_or("-");
        write!(to, "{partition:>6}  at {checkpoint:<8}  {:<24}  epoch {epoch:<17}  {}", lag(*behind), visible(owner))?;
        if *n_behind > 0 {
            write!(to, "  {} tried again", count(*n_behind, "aggregate"))?;
        }
        writeln!(to, "{}", stopped.as_ref().map_or_else(String::new, |stopped| format!("  stands still: {stopped}")))?;
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

async fn parked(
    session: &Session,
    name: &str,
    aggregate: Option<String>,
    version: Option<u32>,
) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let group = store.groups().show(name).await?;
    let number = match version {
        Some(version) => version,
        None => store.groups().active(name).await?,
    };
    let Some(version) = group.versions.iter().find(|version| version.version == number) else {
        return Err(Failure::new(Code::Nothing, format!("{name} has no version {number}")));
    };
    let is_asked =
        |parked: &&ParkedReport| aggregate.as_ref().is_none_or(|aggregate| *aggregate == parked.aggregate.to_string());
    let parked = version.parked.iter().filter(is_asked);
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &ParkedsJson { parked: parked.map(ParkedJson::of).collect() })?,
        Output::Jsonl => parked.map(ParkedJson::of).try_for_each(|parked| print_line(&mut stdout, &parked))?,
        Output::Text => parked.into_iter().try_for_each(|parked| print_parked(&mut stdout, parked))?,
    }
    stdout.flush()?;
    Ok(Code::Done)
}

fn status(status: VersionStatus) -> &'static str {
    match status {
        VersionStatus::Active => "Active",
        VersionStatus::Rebuilding => "Rebuilding",
        VersionStatus::Retired => "Retired",
    }
}

fn lag(lag: Lag) -> String {
    if lag.n_events == 0 && !lag.more {
        return "caught up".to_owned();
    }
    let more = if lag.more { " or more" } else { "" };
    format!("{}{more}, {} s behind", count(lag.n_events, "event"), lag.time.as_secs())
}

#[derive(Serialize)]
struct SaidJson {
    group: String,
    n_events: usize,
}

#[derive(Serialize)]
struct GroupsJson<'a> {
    groups: Vec<GroupJson<'a>>,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    group: &'a str,
    is_paused: bool,
    versions: Vec<VersionJson<'a>>,
}

#[derive(Serialize)]
struct VersionJson<'a> {
    version: u32,
    status: &'static str,
    query: &'a Query,
    floor: Position,
    lag: LagJson,
    partitions: Vec<PartitionJson<'a>>,
    parked: Vec<ParkedJson<'a>>,
}

#[derive(Serialize)]
struct LagJson {
    n_events: usize,
    more: bool,
    seconds: f64,
}

#[derive(Serialize)]
struct PartitionJson<'a> {
    partition: u16,
    owner: Option<&'a str>,
    held_until: Option<String>,
    epoch: i64,
    checkpoint: Position,
    n_behind: usize,
    stopped: Option<&'a str>,
    lag: LagJson,
}

#[derive(Serialize)]
struct ParkedsJson<'a> {
    parked: Vec<ParkedJson<'a>>,
}

#[derive(Serialize)]
struct ParkedJson<'a> {
    stream_id: &'a str,
    aggregate_id: &'a str,
    from: Position,
    n_events: usize,
    more: bool,
    n_attempts: u32,
    error: &'a str,
    is_replayed: bool,
}

impl<'a> GroupJson<'a> {
    fn of(group: &'a GroupReport) -> Self {
        let versions = group.versions.iter().map(VersionJson::of).collect();
        Self { group: &group.name, is_paused: group.is_paused, versions }
    }
}

impl<'a> VersionJson<'a> {
    fn of(version: &'a VersionReport) -> Self {
        Self {
            version: version.version,
            status: status(version.status),
            query: &version.query,
            floor: version.floor,
            lag: LagJson::of(version.lag),
            partitions: version.partitions.iter().map(PartitionJson::of).collect(),
            parked: version.parked.iter().map(ParkedJson::of).collect(),
        }
    }
}

impl LagJson {
    fn of(Lag { n_events, more, time }: Lag) -> Self {
        Self { n_events, more, seconds: time.as_secs_f64() }
    }
}

impl<'a> PartitionJson<'a> {
    fn of(partition: &'a PartitionReport) -> Self {
        Self {
            partition: partition.partition,
            owner: partition.owner.as_deref(),
            held_until: partition.held_until.map(rfc3339),
            epoch: partition.epoch,
            checkpoint: partition.checkpoint,
            n_behind: partition.n_behind,
            stopped: partition.stopped.as_deref(),
            lag: LagJson::of(partition.lag),
        }
    }
}

impl<'a> ParkedJson<'a> {
    fn of(parked: &'a ParkedReport) -> Self {
        Self {
            stream_id: &parked.aggregate.stream_id,
            aggregate_id: &parked.aggregate.aggregate_id,
            from: parked.from,
            n_events: parked.n_events,
            more: parked.more,
            n_attempts: parked.n_attempts,
            error: &parked.error,
            is_replayed: parked.is_replayed,
        }
    }
}

impl From<ExecuteError<GroupError>> for Failure {
    fn from(error: ExecuteError<GroupError>) -> Self {
        let refusal = match error {
            ExecuteError::Refused(refusal) => refusal,
            ExecuteError::Contended { .. } => return Self::new(Code::Conflict, error.to_string()),
            ExecuteError::Store(error) => return error.into(),
        };
        let (code, hint) = match &refusal {
            GroupError::UnknownGroup { .. } => (Code::Nothing, "`crewlog groups ls` lists those that there are"),
            GroupError::UnknownVersion { .. } | GroupError::NotParked { .. } => {
                (Code::Nothing, "`crewlog groups show NAME` tells what there is")
            }
            GroupError::DeclaredOtherwise { .. }
            | GroupError::VersionNotNew { .. }
            | GroupError::Retired { .. }
            | GroupError::TooManyParked { .. }
            | GroupError::Invalid { .. } => (Code::User, "`crewlog groups show NAME` tells what there is"),
        };
        Self::new(code, refusal.to_string()).hint(hint)
    }
}
