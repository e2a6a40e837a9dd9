//! Durable subscriptions: named groups whose workers share the events of a query by partitions.
//!
//! State is kept in two forms. Durable facts (a version was declared, reset, promoted, retired; an event was parked,
//! replayed, skipped) are events on stream `groups`, folded by a pure handler. Leases and checkpoints are cells, one
//! for each partition; deleting one only causes work to be repeated.

mod attempt;
mod control;
mod deliver;
mod delivery;
mod event;
mod held;
mod pages;
mod partition;
mod report;
mod state;
mod worker;

pub use delivery::{Delivery, GroupHandler, HandlerError, group_handler};
pub use event::{AggregateName, GROUPS_STREAM, GroupEvent};
pub use partition::partition_of;
pub use report::{GroupReport, Groups, Lag, ParkedReport, PartitionReport, VersionReport, VersionStatus};
pub use state::{
    GROUP_NAME_BYTES_MAX, GROUP_VERSIONS_MAX, GroupCommand, GroupError, GroupState, GroupVersion, PARKED_MAX,
    PARTITIONS_MAX, Parked,
};
pub use worker::{Ended, Group};
