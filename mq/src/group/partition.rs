//! The partitions of a group: assigns aggregates to them, and stores lease, checkpoint and fencing epoch in a cell
//! each.

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

/// The progress of a partition, as stored in its cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// All events of the partition up to here are handled, except those of lagging and parked aggregates.
    pub(super) checkpoint: Position,
    /// The number of resets processed. If the group has more, the rest of this progress is out of date.
    pub(super) n_resets: u64,
    /// The sequence of the last group event that this partition wrote. A new holder must have read that far.
    pub(super) read_group_to: i64,
    /// Aggregates being retried or replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) behind: Vec<Behind>,
    /// The reason why it has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<String>,
    /// The current or last holder.
    pub(super) owner: String,
}

/// An aggregate that lags behind the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Behind {
    #[serde(flatten)]
    pub(super) aggregate: AggregateName,
    /// The first unhandled event is at this position or later.
    pub(super) from: Position,
    /// The number of attempts at that event.
    pub(super) n_attempts: u32,
}

impl Progress {
    /// The start of a partition without stored progress.
    pub(super) fn start(version: &GroupVersion) -> Self {
        Self { checkpoint: version.start, n_resets: version.n_resets, ..Self::default() }
    }

    /// The progress in a cell; `None` if it is out of date or unreadable.
    fn of(cell: &Cell, version: &GroupVersion) -> Option<Self> {
        let found: Self = serde_json::from_str(&cell.value).ok()?;
        (found.n_resets >= version.n_resets).then_some(found)
    }

    /// The index of a lagging aggregate.
    pub(super) fn behind(&self, aggregate: &AggregateName) -> Option<usize> {
        self.behind.iter().position(|behind| behind.aggregate == *aggregate)
    }

    /// All events up to here are handled, except parked ones.
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
