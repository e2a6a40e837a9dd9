//! Idempotency keys: a call that is repeated with its key gives its first result again.
//!
//! The result is a cell beside the log, written before the call is answered. An agent has 256 cells; a later key in
//! the same cell replaces an earlier one. If the server dies within a call, the call is carried out again when it is repeated.

use std::time::Duration;

use crewlog_mq::{Append, Cell, CellChange, CellExpected, Error, EventStore};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::args::hex;
use super::reply::{Refused, fit};

/// After this time a call without a result is taken to be lost.
const PENDING_MAX: Duration = Duration::from_secs(120);

/// A call with a key.
pub struct Keyed<'a> {
    pub store: &'a EventStore,
    pub project: &'a str,
    pub agent: &'a str,
    pub tool: &'static str,
    pub key: &'a str,
    /// A digest of its other arguments.
    pub payload: String,
}

/// What a cell holds.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// A digest of the agent, the tool and the key.
    call: String,
    payload: String,
    /// Unset while the call is carried out.
    result: Option<JsonObject>,
}

impl Keyed<'_> {
    /// Carries out the call, unless it was carried out already. A refused call leaves nothing behind.
    pub async fn once(self, call: impl Future<Output = Result<JsonObject, Refused>>) -> Result<JsonObject, Refused> {
        let id = hex(&Sha256::digest(format!("{}\0{}\0{}", self.agent, self.tool, self.key)));
        let (space, slot) = (format!("idempotency:{}", self.project), format!("{}/{}", self.agent, &id[..2]));
        let found = self.store.cell(&space, &slot).await?;
        let expected = match &found {
            Some(cell) => match self.judge(cell, &id)? {
                Some(result) => return Ok(result),
                None => CellExpected::Version(cell.version),
            },
            None => CellExpected::Absent,
        };
        let mut kept = Kept { call: id, payload: self.payload, result: None };
        let pending = CellChange::set(&space, &slot, json_of(&kept)).expecting(expected).held_for(PENDING_MAX);
        let version = match self.store.append(Append::default().cell(pending)).await {
            Ok(appended) => appended.cells.first().copied().unwrap_or_default(),
            Err(Error::CellMismatch { .. }) => return Err(in_progress()),
            Err(error) => return Err(error.into()),
        };
        let mut result = call.await;
        let change = match &mut result {
            Ok(result) => {
                fit(result);
                kept.result = Some(result.clone());
                CellChange::set(&space, &slot, json_of(&kept))
            }
            Err(_) => CellChange::delete(&space, &slot),
        };
        let change = change.expecting(CellExpected::Version(version));
        if let Err(error) = self.store.append(Append::default().cell(change)).await {
            tracing::warn!(%error, "the result of a call was not kept for its idempotency key");
        }
        result
    }

    /// The result that is kept for this call; nothing if the call has to be carried out.
    fn judge(&self, cell: &Cell, id: &str) -> Result<Option<JsonObject>, Refused> {
        let Ok(kept) = serde_json::from_str::<Kept>(&cell.value) else { return Ok(None) };
        let is_held = cell.held_until.is_some_and(|until| self.store.now() < until);
        if kept.result.is_none() && is_held {
            return Err(in_progress());
        }
        if kept.call != id {
            return Ok(None);
        }
        if kept.payload != self.payload {
            let message = "the idempotency key was used for a call with other arguments";
            return Err(Refused::new("key_reused", message, "choose another key for another call"));
        }
        Ok(kept.result)
    }
}

fn json_of(kept: &Kept) -> String {
    serde_json::to_string(kept).expect("texts are JSON")
}

fn in_progress() -> Refused {
    Refused::new("in_progress", "a call with this key is being carried out", "call again in a moment").retryable()
}
