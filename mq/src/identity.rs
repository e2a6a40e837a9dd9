//! The identity of a log.

use crate::clock::Timestamp;

/// A log's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    /// Created once with the log.
    pub id: uuid::Uuid,
    /// The version of the log's format.
    pub format: i64,
    /// The time of its creation.
    pub created_at: Timestamp,
}
