//! `diff`: how a plan differs from itself at another position, or from another plan. It appends and executes nothing.

use std::io::Write;

use crewlog_mq::{EventStore, Position, Range};
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::json;

use crate::changes::{Change, changes, in_short};
use crate::checkpoints::position_of;
use crate::cli::PlanAt;
use crate::failure::{Code, Failure};
use crate::queries;
use crate::session::Session;
use crate::text::visible;

#[derive(Serialize)]
struct Side {
    plan: String,
    at: Position,
    #[serde(skip)]
    view: PlanView,
}

impl Side {
    async fn load(session: &Session, store: &EventStore, head: Position, typed: &PlanAt) -> Result<Self, Failure> {
        let plan = queries::find_plan(store, &typed.plan).await?;
        let at = store.whole(position_of(session, store, &plan, typed.at.as_ref(), head).await?).await?;
        let view = queries::load_view(store, &plan, Range::up_to(at)).await?;
        Ok(Self { plan, at, view })
    }
}

pub async fn diff(session: &Session, before: &PlanAt, after: &PlanAt) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let head = store.head().await?;
    let before = Side::load(session, &store, head, before).await?;
    let after = Side::load(session, &store, head, after).await?;
    let changes = changes(&before.view, &after.view);
    session.print(&json!({ "from": before, "to": after, "changes": changes }), |to| {
        writeln!(to, "{}@{} -> {}@{}", before.plan, before.at, after.plan, after.at)?;
        print_changes(to, &changes)
    })
}

pub fn print_changes(mut to: impl Write, changes: &[Change]) -> std::io::Result<()> {
    if changes.is_empty() {
        return writeln!(to, "no difference");
    }
    in_short(changes).try_for_each(|change| writeln!(to, "{}", visible(&change.to_string())))
}
