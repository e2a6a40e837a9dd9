//! The parts of a group: which aggregate belongs to which, and the cell that is lease, checkpoint and fencing epoch of one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::AggregateName;
use super::state::{GroupVersion, PARTITIONS_MAX};
use crate::cell::Cell;
use crate::error::Result;
use crate::ids::fnv1a;
use crate::position::Position;
use crate::store::EventStore;

/// The maximum aggregates of a partition that lag behind its checkpoint during retries.
pub(super) const BEHIND_MAX: usize = 64;

/// The partition of an aggregate: the same on every machine and in every version of this crate.
///
/// FNV-1a (64 bits) over the stream, a zero byte and the aggregate's id, its bits mixed as the last step of MurmurHash3 does,
/// modulo the number of partitions.
#[must_use]
pub fn partition_of(stream_id: &str, aggregate_id: &str, n_partitions: u16) -> u16 {
    let bytes = stream_id.bytes().chain([0]).chain(aggregate_id.bytes());
    let mut hash = fnv1a(bytes);
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    let rest = (hash ^ (hash >> 33)) % u64::from(n_partitions.max(1));
    u16::try_from(rest).expect("it is below a u16")
}

/// How far a partition is, as its cell has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// All of the partition up to here is handled, but for what is behind or parked.
    pub(super) checkpoint: Position,
    /// The resets that it knows of; with fewer than the group has, all else here is out of date.
    pub(super) n_resets: u64,
    /// The sequence of the group's last event that this partition wrote. Who takes over must have read that far.
    pub(super) read_group_to: i64,
    /// Aggregates that are tried again, or replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) behind: Vec<Behind>,
    /// Why it stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// The worker that holds it, or held it last.
    pub(super) owner: String,
}

/// An aggregate whose events are handled later than the checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Behind {
    #[serde(flatten)]
    pub(super) aggregate: AggregateName,
    /// The first event that is not handled stands here or behind.
    pub(super) from: Position,
    /// How often that one was tried.
    pub(super) n_attempts: u32,
}

impl Progress {
    /// Where a partition begins of which nothing is known.
    pub(super) fn start(version: &GroupVersion) -> Self {
        Self { checkpoint: version.start, n_resets: version.n_resets, ..Self::default() }
    }

    /// What a cell says, unless that is out of date or unreadable.
    fn of(cell: &Cell, version: &GroupVersion) -> Option<Self> {
        let found: Self = serde_json::from_str(&cell.value).ok()?;
        (found.n_resets >= version.n_resets).then_some(found)
    }

    /// Where an aggregate stands that is behind.
    pub(super) fn behind(&self, aggregate: &AggregateName) -> Option<usize> {
        self.behind.iter().position(|behind| behind.aggregate == *aggregate)
    }

    /// All up to here is handled, but for what is parked.
    pub(super) fn floor(&self) -> Position {
        let behind = self.behind.iter().map(|behind| Position(behind.from.0 - 1));
        behind.fold(self.checkpoint, Position::min)
    }
}

/// The partitions of a version in order, each with its cell and the progress in it, if there are any.
pub(super) async fn partitions(
    store: &EventStore,
    name: &str,
    number: u32,
    version: &GroupVersion,
) -> Result<Vec<(Option<Cell>, Option<Progress>)>> {
    let cells = store.cells(&space(name, number), "", usize::from(PARTITIONS_MAX)).await?;
    let mut cells: BTreeMap<_, _> = cells.into_iter().map(|cell| (cell.key.clone(), cell)).collect();
    let cells = (0..version.n_partitions).map(|number| cells.remove(&key(number)));
    let with_progress = |cell: Option<Cell>| {
        let progress = cell.as_ref().and_then(|cell| Progress::of(cell, version));
        (cell, progress)
    };
    Ok(cells.map(with_progress).collect())
}

/// The space of a version's partitions.
pub(super) fn space(name: &str, version: u32) -> String {
    format!("group/{name}/{version}")
}

/// The space of a version's workers.
pub(super) fn workers_space(name: &str, version: u32) -> String {
    format!("group/{name}/{version}/workers")
}

pub(super) fn key(number: u16) -> String {
    format!("partition-{number:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_of_an_aggregate_never_changes() {
        let check = |stream_id, aggregate_id, expected: [u16; 3]| {
            let found = [1, 16, 1024].map(|n_partitions| partition_of(stream_id, aggregate_id, n_partitions));
            assert_eq!(found, expected, "{stream_id}/{aggregate_id}");
        };
        check("orders", "order-1", [0, 6, 38]);
        check("orders", "order-2", [0, 14, 1006]);
        check("order", "sorder-1", [0, 7, 279]);
        check("", "", [0, 11, 507]);
        check("aufträge", "nº 7", [0, 8, 8]);
    }

    #[test]
    fn many_aggregates_are_distributed_evenly() {
        let mut counts = [0_u32; 16];
        for n in 0..16_000 {
            counts[usize::from(partition_of("orders", &format!("order-{n}"), 16))] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
