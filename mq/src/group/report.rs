//! Reports on groups (versions, partitions, lag, parked events), and commands to them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::control::{self, Known};
use super::event::{AggregateName, GROUPS_STREAM, GroupEvent};
use super::pages::is_given;
use super::partition::{Progress, partition_of, partitions};
use super::state::{GroupCommand, GroupError, GroupVersion};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::executed::ExecuteError;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::store::EventStore;

/// The most events counted for a lag or a parked aggregate; beyond it the report says that there are more.
const COUNTED_MAX: usize = 10_000;
/// The page size.
const PAGE: usize = 1000;

/// The groups of a log.
#[derive(Debug, Clone)]
pub struct Groups {
    store: EventStore,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    /// Its name.
    #[serde(rename = "group")]
    pub name: String,
    /// True if it is paused.
    pub is_paused: bool,
    /// Its versions, the oldest first.
    pub versions: Vec<VersionReport>,
}

/// The status of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum VersionStatus {
    /// Delivers with effects.
    Active,
    /// Rebuilds without effects, and takes over once it has caught up.
    Rebuilding,
    /// Has ended.
    Retired,
}

/// A version of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionReport {
    /// The version.
    pub version: u32,
    /// Its status.
    pub status: VersionStatus,
    /// Selects its events.
    pub query: Query,
    /// All events up to here are handled, except parked ones.
    pub floor: Position,
    /// The unhandled events, except parked ones.
    pub lag: Lag,
    /// Its partitions; none if the version is retired.
    pub partitions: Vec<PartitionReport>,
    /// The aggregates that wait for a person, sorted.
    pub parked: Vec<ParkedReport>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionReport {
    /// Its number, from 0.
    pub partition: u16,
    /// The worker that holds it.
    pub owner: Option<String>,
    /// The end of its lease, unless renewed.
    pub held_until: Option<Timestamp>,
    /// Its fencing epoch: writes under another one are refused. 0 if it was never held.
    pub epoch: i64,
    /// All its events up to here are handled, except those of lagging and parked aggregates.
    pub checkpoint: Position,
    /// The number of aggregates being retried or replayed.
    pub n_behind: usize,
    /// The reason why it has stopped.
    pub stopped: Option<String>,
    /// The unhandled events.
    pub lag: Lag,
}

/// The lag of a version or a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Lag {
    /// The number of unhandled events.
    pub n_events: usize,
    /// True if there are more than counted.
    pub more: bool,
    /// The age of the first unhandled event, in seconds as JSON.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

/// An aggregate that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParkedReport {
    /// The aggregate.
    #[serde(flatten)]
    pub aggregate: AggregateName,
    /// The first waiting event is at this position or later.
    pub from: Position,
    /// The number of waiting events.
    pub n_events: usize,
    /// True if there are more than counted.
    pub more: bool,
    /// The number of attempts at the failed event.
    pub n_attempts: u32,
    /// The last error.
    pub error: String,
    /// True if the events are being handled again.
    pub is_replayed: bool,
}

impl EventStore {
    /// The groups of this log, for reports and commands.
    #[must_use]
    pub fn groups(&self) -> Groups {
        Groups { store: self.clone() }
    }
}

impl Groups {
    /// The names of all groups, sorted. Fails only on a fault of the database.
    pub async fn names(&self) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        let mut rest = Some(Range::default());
        while let Some(range) = rest {
            let page = self.store.read(&Query::stream(GROUPS_STREAM).of_type("Declared"), range, PAGE).await?;
            rest = range.rest(&page);
            names.extend(page.events.into_iter().map(|event| event.aggregate_id));
        }
        Ok(names.into_iter().collect())
    }

    /// All groups, sorted by name.
    ///
    /// # Errors
    /// As for [`Groups::show`].
    pub async fn list(&self) -> Result<Vec<GroupReport>, ExecuteError<GroupError>> {
        let mut reports = Vec::new();
        for name in self.names().await? {
            reports.push(self.show(&name).await?);
        }
        Ok(reports)
    }

    /// One group.
    ///
    /// # Errors
    /// [`GroupError::UnknownGroup`], an unreadable event of the group, or a fault of the database.
    pub async fn show(&self, name: &str) -> Result<GroupReport, ExecuteError<GroupError>> {
        let known = self.known(name).await?;
        let mut versions = Vec::new();
        for (number, version) in known.group.versions() {
            let status = match (version.is_retired, known.group.active() == Some(*number)) {
                (true, _) => VersionStatus::Retired,
                (false, true) => VersionStatus::Active,
                (false, false) => VersionStatus::Rebuilding,
            };
            versions.push(self.version(name, *number, version, status).await?);
        }
        Ok(GroupReport { name: name.to_owned(), is_paused: known.group.is_paused(), versions })
    }

    /// The active version, or else the newest.
    ///
    /// # Errors
    /// As for [`Groups::show`].
    pub async fn active(&self, name: &str) -> Result<u32, ExecuteError<GroupError>> {
        let group = self.known(name).await?.group;
        Ok(group.active().or_else(|| group.versions().keys().next_back().copied()).unwrap_or(0))
    }

    /// Sends a command to an existing group and returns the resulting events; none if nothing changes.
    ///
    /// # Errors
    /// [`GroupError::UnknownGroup`] or another refusal, or a fault of the database.
    pub async fn execute(
        &self,
        name: &str,
        command: GroupCommand,
    ) -> Result<Vec<GroupEvent>, ExecuteError<GroupError>> {
        self.known(name).await?;
        if let GroupCommand::Reset { to, .. } = &command {
            let head = self.store.head().await?;
            if *to > head {
                let reason = format!("the log ends at {head}, and {to} is behind that");
                return Err(ExecuteError::Refused(GroupError::Invalid { reason }));
            }
        }
        control::execute(&self.store, name, command).await
    }

    async fn known(&self, name: &str) -> Result<Known, ExecuteError<GroupError>> {
        let unknown = || ExecuteError::Refused(GroupError::UnknownGroup { name: name.to_owned() });
        control::check_name(name).map_err(|_| unknown())?;
        let known = Known::read(&self.store, name).await?;
        if known.group.versions().is_empty() { Err(unknown()) } else { Ok(known) }
    }

    async fn version(
        &self,
        name: &str,
        number: u32,
        version: &GroupVersion,
        status: VersionStatus,
    ) -> Result<VersionReport> {
        let (query, floor) = (version.query.clone(), version.start);
        let mut report = VersionReport {
            version: number,
            status,
            query,
            floor,
            lag: Lag::default(),
            partitions: vec![],
            parked: vec![],
        };
        if status == VersionStatus::Retired {
            return Ok(report);
        }
        let now = self.store.now();
        let mut progresses = Vec::new();
        for (partition, (cell, progress)) in (0..).zip(partitions(&self.store, name, number, version).await?) {
            let progress = progress.unwrap_or_else(|| Progress::start(version));
            let held_until = cell.as_ref().and_then(|cell| cell.held_until).filter(|until| now < *until);
            report.partitions.push(PartitionReport {
                partition,
                owner: held_until.map(|_| progress.owner.clone()),
                held_until,
                epoch: cell.map_or(0, |cell| cell.version),
                checkpoint: progress.checkpoint,
                n_behind: progress.behind.len(),
                stopped: progress.stopped.clone(),
                lag: Lag::default(),
            });
            progresses.push(progress);
        }
        report.floor = progresses.iter().map(Progress::floor).min().unwrap_or(version.start);
        self.count(&mut report, version, &progresses, now).await?;
        for (aggregate, parked) in &version.parked {
            let number = partition_of(&aggregate.stream_id, &aggregate.aggregate_id, version.n_partitions);
            let range = Range::between(Position(parked.from.0 - 1), progresses[usize::from(number)].checkpoint);
            let query = Query::aggregate(&aggregate.stream_id, &aggregate.aggregate_id);
            let (mut n_events, mut rest) = (0, Some(range));
            while let (Some(range), true) = (rest, n_events < COUNTED_MAX) {
                let page = self.store.read(&query, range, PAGE).await?;
                n_events += page.events.iter().filter(|event| version.query.matches(event)).count();
                rest = range.rest(&page);
            }
            report.parked.push(ParkedReport {
                aggregate: aggregate.clone(),
                from: parked.from,
                n_events,
                more: rest.is_some(),
                n_attempts: parked.n_attempts,
                error: parked.error.clone(),
                is_replayed: parked.is_replayed,
            });
        }
        Ok(report)
    }

    /// Counts the unhandled events.
    async fn count(
        &self,
        report: &mut VersionReport,
        version: &GroupVersion,
        progresses: &[Progress],
        now: Timestamp,
    ) -> Result<()> {
        let (mut rest, mut n_read) = (Some(Range::after(report.floor)), 0);
        while let (Some(range), true) = (rest, n_read < COUNTED_MAX) {
            let page = self.store.read(&version.query, range, PAGE).await?;
            rest = range.rest(&page);
            n_read += page.events.len();
            for event in page.events.iter().filter(|event| is_given(event)) {
                let number = partition_of(&event.stream_id, &event.aggregate_id, version.n_partitions);
                let number = usize::from(number);
                if is_waiting(event, version, &progresses[number]) {
                    let age = now.since(event.created_at);
                    for lag in [&mut report.lag, &mut report.partitions[number].lag] {
                        lag.n_events += 1;
                        lag.time = lag.time.max(age);
                    }
                }
            }
        }
        if rest.is_some() {
            report.lag.more = true;
            report.partitions.iter_mut().for_each(|partition| partition.lag.more = true);
        }
        Ok(())
    }
}

/// True if an event is unhandled and needs only the group's workers, not a person.
fn is_waiting(event: &Recorded, version: &GroupVersion, progress: &Progress) -> bool {
    let aggregate = AggregateName::of(event);
    if version.parked.get(&aggregate).is_some_and(|parked| event.position >= parked.from) {
        return false;
    }
    let behind = progress.behind(&aggregate).map(|index| progress.behind[index].from);
    event.position > progress.checkpoint || behind.is_some_and(|from| event.position >= from)
}
