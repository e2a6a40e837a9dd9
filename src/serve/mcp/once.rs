//! Idempotency keys: repeating a call with its key returns its first result.
//!
//! The result is stored in a cell before the call is answered. Cells are not encrypted, so texts of a sealed task are
//! omitted. An agent has 4096 cells; a later key in the same cell replaces an earlier one. If the server dies within a
//! call, its events are found by their correlation: a call that has had its effect is not carried out again.

use std::time::Duration;

use crewlog_executors::caller::correlated;
use crewlog_executors::crew::Crew;
use crewlog_mq::{Append, CellChange, CellExpected, Error, EventStore, Query, Range, Recorded};
use crewlog_planner::claim::Executor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::ui::text::sha256;

/// After this time a call without a result is considered lost. Every call ends within 45 s.
const PENDING_MAX: Duration = Duration::from_secs(60);
/// How long a repeated call waits for the result of one that is still running, perhaps in another process.
const WAIT_MAX: Duration = Duration::from_secs(45);
/// Events of a call that are read at a time.
const PAGE: usize = 100;
/// The polling interval: a change of a cell wakes no reader.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The content of a cell.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// A digest of the agent and the key.
    call: String,
    payload: String,
    /// Unset while the call is running.
    result: Option<Value>,
    /// The process that runs it.
    holder: Executor,
}

/// The reason why a call with a key is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Repeated {
    #[error("the idempotency key was used for a call with other arguments")]
    KeyReused,
    #[error("a call with this key is being carried out")]
    InProgress,
    #[error("the call was carried out by a process that has ended before its result was kept")]
    ResultLost,
}

/// Runs a call with a key, unless it has already run. A refused call is not recorded. `caller` is an agent, or begins
/// with a character that no agent's name contains. `is_effect` is true for an event that the call appends last.
pub async fn once<E: From<Error> + From<Repeated>>(
    crew: &Crew,
    caller: &str,
    key: &str,
    payload: String,
    is_effect: impl Fn(&Recorded) -> bool,
    call: impl Future<Output = Result<Value, E>>,
) -> Result<Value, E> {
    let (store, id) = (crew.store(), sha256(&format!("{caller}\0{key}")));
    let (space, slot) = (format!("idempotency:{}", crew.project()), format!("{caller}/{}", &id[..3]));
    let set = |kept: &Kept| CellChange::set(&space, &slot, json!(kept).to_string());
    let correlation = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{space}\0{id}\0{payload}").as_bytes());
    let mut kept = Kept { call: id, payload, result: None, holder: crew.process("call") };
    let mut may_have_run = false;
    let deadline = Instant::now() + WAIT_MAX;
    let version = loop {
        let cell = store.cell(&space, &slot).await?;
        let found = cell.as_ref().and_then(|cell| serde_json::from_str::<Kept>(&cell.value).ok());
        let is_held = cell.as_ref().is_some_and(|cell| cell.held_until.is_some_and(|until| store.now() < until));
        let is_pending = is_held && !found.as_ref().is_some_and(|found| crew.has_died(&found.holder));
        if let Some(found) = found.filter(|found| found.call == kept.call) {
            if found.payload != kept.payload {
                return Err(Repeated::KeyReused.into());
            }
            if let Some(result) = found.result {
                return Ok(result);
            }
            may_have_run = true;
        }
        if !is_pending {
            let expected = cell.map_or(CellExpected::Absent, |cell| CellExpected::Version(cell.version));
            let pending = set(&kept).expecting(expected).held_for(PENDING_MAX);
            match store.append(Append::default().cell(pending)).await {
                Ok(appended) => break appended.cells.first().copied().unwrap_or_default(),
                Err(Error::CellMismatch { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if Instant::now() >= deadline {
            return Err(Repeated::InProgress.into());
        }
        sleep(LOOK_EVERY).await;
    };
    if may_have_run && has_effect(store, correlation, is_effect).await? {
        return Err(Repeated::ResultLost.into());
    }
    let result = correlated(correlation, call).await;
    let change = match &result {
        Ok(result) => {
            kept.result = Some(without_sealed(crew, result.clone()).await);
            set(&kept)
        }
        Err(_) => CellChange::delete(&space, &slot),
    };
    let change = change.expecting(CellExpected::Version(version));
    if let Err(error) = store.append(Append::default().cell(change)).await {
        tracing::warn!(%error, "the result of a call was not kept for its idempotency key");
    }
    result
}

/// True if the events of a call are in the log.
async fn has_effect(store: &EventStore, call: Uuid, is_effect: impl Fn(&Recorded) -> bool) -> Result<bool, Error> {
    let mut rest = Some(Range::default());
    while let Some(range) = rest {
        let page = store.read(&Query::correlation(call), range, PAGE).await?;
        if page.events.iter().any(&is_effect) {
            return Ok(true);
        }
        rest = range.rest(&page);
    }
    Ok(false)
}

/// The result without texts of a sealed task. If this cannot be determined, the task counts as sealed.
async fn without_sealed(crew: &Crew, mut result: Value) -> Value {
    if let Some(id) = result["task"]["id"].as_str().map(str::to_owned)
        && crew.is_sealed(&id).await.unwrap_or(true)
    {
        result["task"] = json!({ "id": id });
        result["note"] = json!("the task is sealed, so its text was not kept: call next_task with its id");
    }
    result
}
