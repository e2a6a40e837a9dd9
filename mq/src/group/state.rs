//! The pure handler of a group: its versions, paused state and parked aggregates. Leases, checkpoints and time are
//! handled elsewhere.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::event::{AggregateName, GroupEvent};
use crate::handler::Handler;
use crate::position::Position;
use crate::query::Query;

/// The most partitions of a group.
pub const PARTITIONS_MAX: u16 = 1024;
/// The most aggregates parked in one version of a group at once.
pub const PARKED_MAX: usize = 1000;
/// The most versions of a group, retired ones included.
pub const GROUP_VERSIONS_MAX: usize = 1024;
/// The longest name of a group, in bytes.
pub const GROUP_NAME_BYTES_MAX: usize = 128;

/// The state of a group, folded from its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupState {
    versions: BTreeMap<u32, GroupVersion>,
    active: Option<u32>,
    is_paused: bool,
}

/// One version of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupVersion {
    /// Selects its events.
    pub query: Query,
    /// The number of partitions that its aggregates are divided into.
    pub n_partitions: u16,
    /// The start of a partition without a checkpoint: the start of the version, or the target of the last reset.
    pub start: Position,
    /// The number of resets.
    pub n_resets: u64,
    /// True if the version has ended.
    pub is_retired: bool,
    /// The aggregates that wait for a person.
    pub parked: BTreeMap<AggregateName, Parked>,
}

/// An aggregate with unhandled events: the first one that waits, and all later ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The first unhandled event is at this position or later.
    pub from: Position,
    /// The number of attempts at the failed event.
    pub n_attempts: u32,
    /// The last error.
    pub error: String,
    /// True if a replay is requested.
    pub is_replayed: bool,
}

/// A command to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum GroupCommand {
    /// Declare a version.
    Declare {
        version: u32,
        query: Query,
        n_partitions: u16,
        /// Delivery begins after this position.
        start: Position,
    },
    /// Stop delivery until resumed.
    Pause,
    /// Continue delivery.
    Resume,
    /// Continue after this position.
    Reset { version: u32, to: Position },
    /// Park an aggregate.
    Park {
        version: u32,
        aggregate: AggregateName,
        /// The first event to park.
        position: Position,
        event_id: Uuid,
        n_attempts: u32,
        error: String,
        /// The most aggregates that may be parked.
        parked_max: usize,
    },
    /// Handle parked events again, of one aggregate or of all.
    Replay {
        version: u32,
        /// The aggregate; all when unset.
        aggregate: Option<AggregateName>,
    },
    /// Skip the first parked event of an aggregate.
    Skip { version: u32, aggregate: AggregateName },
    /// Report that all parked events of an aggregate have been handled.
    EndReplay { version: u32, aggregate: AggregateName },
    /// Take over from the active version.
    Promote { version: u32 },
    /// End a version.
    Retire { version: u32 },
}

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GroupError {
    #[error("the group has no version {version}, it has {}", list(known))]
    UnknownVersion { version: u32, known: Vec<u32> },
    #[error("there is no group {name:?}, and its first worker would declare it")]
    UnknownGroup { name: String },
    #[error("version {version} of the group has another {differs}: give a changed group a new version")]
    DeclaredOtherwise { version: u32, differs: &'static str },
    #[error("version {version} cannot be new: take one above {newest}, with at most {GROUP_VERSIONS_MAX} in all")]
    VersionNotNew { version: u32, newest: u32 },
    #[error("version {version} of the group is retired")]
    Retired { version: u32 },
    #[error("nothing of {aggregate} is parked in version {version} of the group")]
    NotParked { version: u32, aggregate: AggregateName },
    #[error(
        "{aggregate} is being handled again in version {version} of the group: skip an event once one is parked again"
    )]
    InReplay { version: u32, aggregate: AggregateName },
    #[error("{max} aggregates are parked, and no more may be: replay or skip them")]
    TooManyParked { max: usize },
    #[error("{reason}")]
    Invalid { reason: String },
}

fn list(versions: &[u32]) -> String {
    if versions.is_empty() {
        return "none".to_owned();
    }
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl GroupState {
    /// Its versions, including retired ones.
    #[must_use]
    pub fn versions(&self) -> &BTreeMap<u32, GroupVersion> {
        &self.versions
    }

    /// The active version.
    #[must_use]
    pub fn active(&self) -> Option<u32> {
        self.active
    }

    /// True if delivery is paused for all versions.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// A version that is not retired.
    ///
    /// # Errors
    /// [`GroupError::UnknownVersion`] or [`GroupError::Retired`].
    pub fn version(&self, version: u32) -> Result<&GroupVersion, GroupError> {
        match self.versions.get(&version) {
            None => Err(GroupError::UnknownVersion { version, known: self.versions.keys().copied().collect() }),
            Some(found) if found.is_retired => Err(GroupError::Retired { version }),
            Some(found) => Ok(found),
        }
    }

    fn declare(
        &self,
        version: u32,
        query: Query,
        n_partitions: u16,
        start: Position,
    ) -> Result<Vec<GroupEvent>, GroupError> {
        if !(1..=PARTITIONS_MAX).contains(&n_partitions) {
            let reason = format!("a group has 1 to {PARTITIONS_MAX} partitions, and {n_partitions} were asked for");
            return Err(GroupError::Invalid { reason });
        }
        match self.versions.get(&version) {
            None => {
                let newest = self.versions.keys().next_back().copied().unwrap_or(0);
                if version <= newest || self.versions.len() >= GROUP_VERSIONS_MAX {
                    return Err(GroupError::VersionNotNew { version, newest });
                }
                Ok(vec![GroupEvent::Declared { version, query, n_partitions, start }])
            }
            Some(found) if found.is_retired => Err(GroupError::Retired { version }),
            Some(found) if found.query != query => Err(GroupError::DeclaredOtherwise { version, differs: "query" }),
            Some(found) if found.n_partitions != n_partitions => {
                Err(GroupError::DeclaredOtherwise { version, differs: "number of partitions" })
            }
            Some(_) => Ok(vec![]),
        }
    }

    fn replay(&self, version: u32, aggregate: Option<&AggregateName>) -> Result<Vec<GroupEvent>, GroupError> {
        let parked = match aggregate {
            Some(aggregate) => vec![(aggregate, self.parked(version, aggregate)?)],
            None => self.version(version)?.parked.iter().collect(),
        };
        let asked = parked.into_iter().filter(|(_, parked)| !parked.is_replayed);
        Ok(asked.map(|(aggregate, _)| GroupEvent::ReplayAsked { version, aggregate: aggregate.clone() }).collect())
    }

    fn parked(&self, version: u32, aggregate: &AggregateName) -> Result<&Parked, GroupError> {
        let not_parked = || GroupError::NotParked { version, aggregate: aggregate.clone() };
        self.version(version)?.parked.get(aggregate).ok_or_else(not_parked)
    }

    fn change(&mut self, version: u32, change: impl FnOnce(&mut GroupVersion)) {
        if let Some(found) = self.versions.get_mut(&version) {
            change(found);
        }
    }

    fn promote(&mut self, version: u32) {
        let before = self.active.replace(version).filter(|before| *before != version);
        let inherited = before.and_then(|before| self.versions.get_mut(&before));
        let inherited = inherited.map(|before| std::mem::take(&mut before.parked)).unwrap_or_default();
        let Some(promoted) = self.versions.get_mut(&version) else { return };
        for (aggregate, parked) in inherited {
            let own = promoted.parked.entry(aggregate).or_insert_with(|| parked.clone());
            if parked.from < own.from {
                *own = parked;
            }
            own.is_replayed = false;
        }
    }
}

impl Handler for GroupState {
    type Command = GroupCommand;
    type Event = GroupEvent;
    type Error = GroupError;

    fn decide(&self, command: GroupCommand) -> Result<Vec<GroupEvent>, GroupError> {
        match command {
            GroupCommand::Declare { version, query, n_partitions, start } => {
                self.declare(version, query, n_partitions, start)
            }
            GroupCommand::Pause => Ok(if self.is_paused { vec![] } else { vec![GroupEvent::Paused] }),
            GroupCommand::Resume => Ok(if self.is_paused { vec![GroupEvent::Resumed] } else { vec![] }),
            GroupCommand::Reset { version, to } => {
                self.version(version)?;
                if to.0 < 0 {
                    return Err(GroupError::Invalid { reason: format!("{to} is no position") });
                }
                Ok(vec![GroupEvent::Reset { version, to }])
            }
            GroupCommand::Park { version, aggregate, position, event_id, n_attempts, error, parked_max } => {
                let (found, max) = (self.version(version)?, parked_max.min(PARKED_MAX));
                let parked = found.parked.get(&aggregate);
                if parked.is_none() && found.parked.len() >= max {
                    return Err(GroupError::TooManyParked { max });
                }
                if parked.is_some_and(|parked| !parked.is_replayed && parked.from == position) {
                    return Ok(vec![]);
                }
                Ok(vec![GroupEvent::Parked { version, aggregate, position, event_id, n_attempts, error }])
            }
            GroupCommand::Replay { version, aggregate } => self.replay(version, aggregate.as_ref()),
            GroupCommand::Skip { version, aggregate } => {
                let parked = self.parked(version, &aggregate)?;
                if parked.is_replayed {
                    // The replay may still fail at an event that is not known yet.
                    return Err(GroupError::InReplay { version, aggregate });
                }
                Ok(vec![GroupEvent::Skipped { version, position: parked.from, aggregate }])
            }
            GroupCommand::EndReplay { version, aggregate } => {
                // Events parked again in the meantime, or inherited, have not been handled.
                let parked = self.version(version)?.parked.get(&aggregate);
                let is_replayed = parked.is_some_and(|parked| parked.is_replayed);
                Ok(if is_replayed { vec![GroupEvent::Replayed { version, aggregate }] } else { vec![] })
            }
            GroupCommand::Promote { version } => {
                self.version(version)?;
                let promoted = GroupEvent::Promoted { version };
                Ok(match self.active {
                    Some(active) if active == version => vec![],
                    Some(before) => vec![promoted, GroupEvent::Retired { version: before }],
                    None => vec![promoted],
                })
            }
            GroupCommand::Retire { version } => match self.version(version) {
                Ok(_) => Ok(vec![GroupEvent::Retired { version }]),
                Err(GroupError::Retired { .. }) => Ok(vec![]),
                Err(error) => Err(error),
            },
        }
    }

    fn apply(&mut self, event: &GroupEvent) {
        match event {
            GroupEvent::Paused => self.is_paused = true,
            GroupEvent::Resumed => self.is_paused = false,
            GroupEvent::Promoted { version } => self.promote(*version),
            GroupEvent::Declared { version, query, n_partitions, start } => {
                let (query, n_partitions, start) = (query.clone(), *n_partitions, *start);
                let declared = GroupVersion { query, n_partitions, start, ..GroupVersion::default() };
                self.versions.insert(*version, declared);
                self.active.get_or_insert(*version);
            }
            GroupEvent::Reset { version, to } => self.change(*version, |found| {
                found.start = *to;
                found.n_resets += 1;
                // Events that will be delivered again are no longer parked.
                found.parked.retain(|_, parked| parked.from <= *to);
            }),
            GroupEvent::Parked { version, aggregate, position, n_attempts, error, event_id: _ } => {
                let (from, n_attempts, error) = (*position, *n_attempts, error.clone());
                let parked = Parked { from, n_attempts, error, is_replayed: false };
                self.change(*version, |found| drop(found.parked.insert(aggregate.clone(), parked)));
            }
            GroupEvent::ReplayAsked { version, aggregate } => self.change(*version, |found| {
                found.parked.entry(aggregate.clone()).and_modify(|parked| parked.is_replayed = true);
            }),
            GroupEvent::Skipped { version, aggregate, position } => self.change(*version, |found| {
                let from = Position(position.0 + 1);
                let skip = |parked: &mut Parked| (parked.from, parked.is_replayed) = (from, true);
                found.parked.entry(aggregate.clone()).and_modify(skip);
            }),
            GroupEvent::Replayed { version, aggregate } => {
                self.change(*version, |found| drop(found.parked.remove(aggregate)));
            }
            GroupEvent::Retired { version } => {
                self.change(*version, |found| {
                    found.is_retired = true;
                    found.parked.clear();
                });
                // If none is active, the next version to be declared becomes active.
                self.active = self.active.filter(|active| active != version);
            }
        }
    }
}

#[cfg(test)]
mod tests;
