//! The pure handler of a group: which versions it has, whether it is paused, what is parked. It knows no leases and no
//! checkpoints, and reads no clock.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::event::{AggregateName, GroupEvent};
use crate::handler::Handler;
use crate::position::Position;
use crate::query::Query;

/// The most partitions of a group.
pub const PARTITIONS_MAX: u16 = 1024;
/// The most aggregates that are parked in one version of a group at once.
pub const PARKED_MAX: usize = 1000;
/// The most versions of a group that ever were.
pub const GROUP_VERSIONS_MAX: usize = 1024;
/// The longest name of a group, in bytes.
pub const GROUP_NAME_BYTES_MAX: usize = 128;

/// A group as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupState {
    versions: BTreeMap<u32, GroupVersion>,
    active: Option<u32>,
    is_paused: bool,
}

/// One version of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupVersion {
    /// Which events it is of.
    pub query: Query,
    /// Among how many partitions their aggregates are divided.
    pub n_partitions: u16,
    /// Where a partition begins of which no checkpoint is known: where the version began, or was reset to.
    pub start: Position,
    /// How often it was reset.
    pub n_resets: u64,
    /// Whether it is over.
    pub is_retired: bool,
    /// What waits for a person, by aggregate.
    pub parked: BTreeMap<AggregateName, Parked>,
}

/// An aggregate with unhandled events: the first one that waits, and all later ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The first event that is not handled stands here or behind.
    pub from: Position,
    /// The event that failed.
    pub event_id: Uuid,
    /// How often it was tried.
    pub n_attempts: u32,
    /// Why it failed the last time.
    pub error: String,
    /// Whether a replay is requested.
    pub is_replayed: bool,
}

/// What is asked of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupCommand {
    /// There shall be such a version.
    Declare {
        /// The version.
        version: u32,
        /// Which events it is of.
        query: Query,
        /// Its partitions.
        n_partitions: u16,
        /// It begins after this position.
        start: Position,
    },
    /// Give no events until resumed.
    Pause,
    /// Go on.
    Resume,
    /// Go on after this position.
    Reset {
        /// The version.
        version: u32,
        /// The position.
        to: Position,
    },
    /// Set an aggregate aside.
    Park {
        /// The version.
        version: u32,
        /// Which aggregate.
        aggregate: AggregateName,
        /// From which event on.
        position: Position,
        /// Its id.
        event_id: Uuid,
        /// How often it was tried.
        n_attempts: u32,
        /// Why it failed.
        error: String,
        /// How many aggregates may be parked.
        parked_max: usize,
    },
    /// Handle again what is parked: of one aggregate, or of all.
    Replay {
        /// The version.
        version: u32,
        /// Which aggregate; all when unset.
        aggregate: Option<AggregateName>,
    },
    /// Give up the first event that is parked of an aggregate.
    Skip {
        /// The version.
        version: u32,
        /// Which aggregate.
        aggregate: AggregateName,
    },
    /// Say that all that was parked of an aggregate has been handled.
    EndReplay {
        /// The version.
        version: u32,
        /// Which aggregate.
        aggregate: AggregateName,
        /// Up to here.
        up_to: Position,
    },
    /// Take over from the active version.
    Promote {
        /// The version.
        version: u32,
    },
    /// End a version.
    Retire {
        /// The version.
        version: u32,
    },
}

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No such version was declared.
    #[error("the group has no version {version}, it has {}", list(known))]
    UnknownVersion {
        /// What was asked for.
        version: u32,
        /// What there is.
        known: Vec<u32>,
    },
    /// Nobody ever declared a group of this name.
    #[error("there is no group {name:?}, and its first worker would declare it")]
    UnknownGroup {
        /// What was asked for.
        name: String,
    },
    /// The version is there, and is of other events or partitions.
    #[error("version {version} of the group has another {differs}: give a changed group a new version")]
    DeclaredOtherwise {
        /// The version.
        version: u32,
        /// What differs.
        differs: &'static str,
    },
    /// A version below the newest, or more than there may be.
    #[error("version {version} cannot be new: take one above {newest}, with at most {GROUP_VERSIONS_MAX} in all")]
    VersionNotNew {
        /// What was asked for.
        version: u32,
        /// The newest there is.
        newest: u32,
    },
    /// The version is over.
    #[error("version {version} of the group is retired")]
    Retired {
        /// The version.
        version: u32,
    },
    /// Nothing is parked of this aggregate.
    #[error("nothing of {aggregate} is parked in version {version} of the group")]
    NotParked {
        /// The version.
        version: u32,
        /// The aggregate.
        aggregate: AggregateName,
    },
    /// The events of this aggregate are being handled again.
    #[error(
        "{aggregate} is being handled again in version {version} of the group: skip an event once one is parked again"
    )]
    InReplay {
        /// The version.
        version: u32,
        /// The aggregate.
        aggregate: AggregateName,
    },
    /// Too much is parked.
    #[error("{max} aggregates are parked, and no more may be: replay or skip them")]
    TooManyParked {
        /// How many may be.
        max: usize,
    },
    /// A name, a number of partitions or a position that cannot be.
    #[error("{reason}")]
    Invalid {
        /// Why.
        reason: String,
    },
}

fn list(versions: &[u32]) -> String {
    if versions.is_empty() {
        return "none".to_owned();
    }
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl GroupState {
    /// Its versions, the retired ones too.
    #[must_use]
    pub fn versions(&self) -> &BTreeMap<u32, GroupVersion> {
        &self.versions
    }

    /// The version that has effects.
    #[must_use]
    pub fn active(&self) -> Option<u32> {
        self.active
    }

    /// Whether no version is given events.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// A version that is not retired.
    ///
    /// # Errors
    /// [`GroupError::UnknownVersion`] or [`GroupError::Retired`].
    pub fn version(&self, version: u32) -> Result<&GroupVersion, GroupError> {
        let found = self.versions.get(&version);
        let found = found.ok_or_else(|| GroupError::UnknownVersion { version, known: self.known() })?;
        if found.is_retired { Err(GroupError::Retired { version }) } else { Ok(found) }
    }

    fn known(&self) -> Vec<u32> {
        self.versions.keys().copied().collect()
    }

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
                let found = self.version(version)?;
                let parked = found.parked.get(&aggregate);
                if parked.is_none() && found.parked.len() >= parked_max.min(PARKED_MAX) {
                    return Err(GroupError::TooManyParked { max: parked_max.min(PARKED_MAX) });
                }
                if parked.is_some_and(|parked| !parked.is_replayed && parked.from == position) {
                    return Ok(vec![]);
                }
                Ok(vec![GroupEvent::Parked { version, aggregate, position, event_id, n_attempts, error }])
            }
            GroupCommand::Replay { version, aggregate } => self.replay(version, aggregate),
            GroupCommand::Skip { version, aggregate } => {
                let parked = self.parked(version, &aggregate)?;
                if parked.is_replayed {
                    // It is not known which event fails next, if any.
                    return Err(GroupError::InReplay { version, aggregate });
                }
                Ok(vec![GroupEvent::Skipped { version, position: parked.from, aggregate }])
            }
            GroupCommand::EndReplay { version, aggregate, up_to } => {
                // Events parked again in the meantime, or inherited, have not been handled.
                let is_replayed =
                    self.version(version)?.parked.get(&aggregate).is_some_and(|parked| parked.is_replayed);
                Ok(if is_replayed { vec![GroupEvent::Replayed { version, aggregate, up_to }] } else { vec![] })
            }
            GroupCommand::Promote { version } => {
                self.version(version)?;
                let before = self.active.filter(|active| *active != version);
                let retired = before.map(|version| GroupEvent::Retired { version });
                Ok(match self.active == Some(version) {
                    true => vec![],
                    false => std::iter::once(GroupEvent::Promoted { version }).chain(retired).collect(),
                })
            }
            GroupCommand::Retire { version } => match self.version(version) {
                Ok(_) => Ok(vec![GroupEvent::Retired { version }]),
                Err(GroupError::Retired { .. }) => Ok(vec![]),
                Err(error) => Err(error),
            },
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
        let Some(found) = self.versions.get(&version) else {
            let newest = self.versions.keys().next_back().copied().unwrap_or(0);
            if version <= newest || self.versions.len() >= GROUP_VERSIONS_MAX {
                return Err(GroupError::VersionNotNew { version, newest });
            }
            return Ok(vec![GroupEvent::Declared { version, query, n_partitions, start }]);
        };
        match (found.is_retired, found.query == query, found.n_partitions == n_partitions) {
            (true, _, _) => Err(GroupError::Retired { version }),
            (false, false, _) => Err(GroupError::DeclaredOtherwise { version, differs: "query" }),
            (false, true, false) => Err(GroupError::DeclaredOtherwise { version, differs: "number of partitions" }),
            (false, true, true) => Ok(vec![]),
        }
    }

    fn replay(&self, version: u32, aggregate: Option<AggregateName>) -> Result<Vec<GroupEvent>, GroupError> {
        let parked = &self.version(version)?.parked;
        let asked = |aggregate: &AggregateName| GroupEvent::ReplayAsked { version, aggregate: aggregate.clone() };
        match aggregate {
            Some(aggregate) => {
                let is_replayed = self.parked(version, &aggregate)?.is_replayed;
                Ok(if is_replayed { vec![] } else { vec![asked(&aggregate)] })
            }
            None => Ok(parked.iter().filter(|(_, parked)| !parked.is_replayed).map(|(name, _)| asked(name)).collect()),
        }
    }

    fn parked(&self, version: u32, aggregate: &AggregateName) -> Result<&Parked, GroupError> {
        let not_parked = || GroupError::NotParked { version, aggregate: aggregate.clone() };
        self.version(version)?.parked.get(aggregate).ok_or_else(not_parked)
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

    fn process(&mut self, command: GroupCommand) -> Result<Vec<GroupEvent>, GroupError> {
        let events = self.decide(command)?;
        events.iter().for_each(|event| self.apply(event));
        Ok(events)
    }

    fn apply(&mut self, event: &GroupEvent) {
        let (is_declared, version) = match event {
            GroupEvent::Paused => return self.is_paused = true,
            GroupEvent::Resumed => return self.is_paused = false,
            GroupEvent::Promoted { version } => return self.promote(*version),
            GroupEvent::Declared { version, query, n_partitions, start } => {
                let parked = BTreeMap::new();
                let (query, n_partitions, start) = (query.clone(), *n_partitions, *start);
                let declared = GroupVersion { query, n_partitions, start, n_resets: 0, is_retired: false, parked };
                self.versions.insert(*version, declared);
                self.active.get_or_insert(*version);
                (true, *version)
            }
            GroupEvent::Reset { version, .. }
            | GroupEvent::Parked { version, .. }
            | GroupEvent::ReplayAsked { version, .. }
            | GroupEvent::Replayed { version, .. }
            | GroupEvent::Skipped { version, .. }
            | GroupEvent::Retired { version } => (false, *version),
        };
        if let (false, Some(found)) = (is_declared, self.versions.get_mut(&version)) {
            found.apply(event);
        }
        // With none active, the next one that is declared is.
        if matches!(event, GroupEvent::Retired { .. }) && self.active == Some(version) {
            self.active = None;
        }
    }
}

impl GroupVersion {
    fn apply(&mut self, event: &GroupEvent) {
        match event {
            GroupEvent::Reset { to, .. } => {
                self.start = *to;
                self.n_resets += 1;
                // What it will read again is not waiting.
                self.parked.retain(|_, parked| parked.from <= *to);
            }
            GroupEvent::Parked { aggregate, position, event_id, n_attempts, error, .. } => {
                let (from, event_id, n_attempts, error) = (*position, *event_id, *n_attempts, error.clone());
                let parked = Parked { from, event_id, n_attempts, error, is_replayed: false };
                self.parked.insert(aggregate.clone(), parked);
            }
            GroupEvent::ReplayAsked { aggregate, .. } => {
                if let Some(parked) = self.parked.get_mut(aggregate) {
                    parked.is_replayed = true;
                }
            }
            GroupEvent::Skipped { aggregate, position, .. } => {
                if let Some(parked) = self.parked.get_mut(aggregate) {
                    parked.from = Position(position.0 + 1);
                    parked.is_replayed = true;
                }
            }
            GroupEvent::Replayed { aggregate, .. } => {
                self.parked.remove(aggregate);
            }
            GroupEvent::Retired { .. } => {
                self.is_retired = true;
                self.parked.clear();
            }
            GroupEvent::Declared { .. } | GroupEvent::Paused | GroupEvent::Resumed | GroupEvent::Promoted { .. } => {}
        }
    }
}
