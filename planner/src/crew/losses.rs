//! Losses of the log that workers noticed. An aggregate of the stream is a machine.

use crewlog_mq::{Event as MqEvent, Position, Timestamp};
use serde::{Deserialize, Serialize};

/// The stream of losses.
pub const STREAM: &str = "losses";

/// A loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum LossEvent {
    /// A worker knew the log up to one position, and it now ends at another: `n_tasks` may have run, and are interrupted.
    LogWentBack { known: Position, head: Position, n_tasks: u64, at: Timestamp },
}

impl MqEvent for LossEvent {}
