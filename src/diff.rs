//! `diff`: how a plan differs from itself at another position, or from another plan. It appends and executes nothing.

use std::io::{BufWriter, Write};

use crewlog_mq::{EventStore, Position, Range};
use crewlog_planner::change::{self, Change, Field, Subject};
use crewlog_planner::view::PlanView;
use serde::Serialize;

use crate::cli::{Diff, Output, PlanAt};
use crate::failure::{Code, Failure};
use crate::json::{print_line, print_pretty};
use crate::look;
use crate::points::{check_reached, position_of};
use crate::session::Session;
use crate::step::ChangeJson;
use crate::text::visible;

/// `diff` as JSON.
#[derive(Serialize)]
struct DiffJson<'a> {
    from: &'a Side,
    to: &'a Side,
    changes: Vec<ChangeJson<'a>>,
}

/// A plan at a position.
#[derive(Serialize)]
struct Side {
    plan: String,
    at: Position,
    #[serde(skip)]
    view: PlanView,
}

impl Side {
    async fn load(session: &Session, store: &EventStore, head: Position, typed: &PlanAt) -> Result<Self, Failure> {
        let plan = look::find_plan(store, &typed.plan).await?;
        let at = match &typed.at {
            Some(at) => {
                let at = position_of(session, store, &plan, at).await?;
                check_reached(session, &plan, at, head)?;
                store.whole(at).await?
            }
            None => head,
        };
        let view = look::load_view(store, &plan, Range::up_to(at)).await?;
        Ok(Self { plan, at, view })
    }
}

/// `diff`.
pub async fn diff(session: &Session, diff: &Diff) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let head = store.head().await?;
    let before = Side::load(session, &store, head, &diff.before).await?;
    let after = Side::load(session, &store, head, &diff.after).await?;
    let changes = change::changes(&before.view, &after.view);
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    let json = || DiffJson { from: &before, to: &after, changes: changes.iter().map(ChangeJson::of).collect() };
    match session.output {
        Output::Json => print_pretty(&mut stdout, &json())?,
        Output::Jsonl => print_line(&mut stdout, &json())?,
        Output::Text => {
            writeln!(stdout, "{}@{} -> {}@{}", before.plan, before.at, after.plan, after.at)?;
            print_grouped(&mut stdout, &changes)?;
        }
    }
    stdout.flush()?;
    Ok(Code::Done)
}

fn print_grouped(mut to: impl Write, changes: &[Change]) -> std::io::Result<()> {
    if changes.is_empty() {
        return writeln!(to, "no difference");
    }
    for group in ["status", "tasks", "questions", "context"] {
        let mut is_begun = false;
        for change in change::telling(changes).filter(|change| group_of(change) == group) {
            if !is_begun {
                writeln!(to, "{group}:")?;
                is_begun = true;
            }
            writeln!(to, "  {}", visible(&change.to_string()))?;
        }
    }
    Ok(())
}

fn group_of(change: &Change) -> &'static str {
    match (&change.subject, change.field) {
        (Subject::Plan, Field::ContextSummary) => "context",
        (Subject::Plan, _) => "status",
        (Subject::Task(_), _) => "tasks",
        (Subject::Question(_), _) => "questions",
    }
}
