//! `diff`: how a plan differs from itself at another position, or from another plan, and with `--outcomes` where two plans
//! with a common history diverge. It appends and executes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::mem::take;

use clap::Args;
use crewlog_executors::divergence::{Divergence, Parted};
use crewlog_executors::plans::tasks_of;
use crewlog_mq::{Error, EventStore, Position, Range, Recorded};
use crewlog_planner::event::Usage;
use crewlog_planner::lifecycle::{Observed, States};
use crewlog_planner::plan::TaskId;
use crewlog_planner::state::Measure;
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::typed::PlanAt;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{count, duration, visible};
use crate::views::PlanShown;
use crate::views::at::{Point, position_of};
use crate::views::changes::{Change, in_short, is_nothing};
use crate::views::names::{Choice, find_plan};
use crate::views::queries::load_view;
use crate::views::text;

#[derive(Debug, Args)]
pub struct Diff {
    /// The plan before: PLAN, or PLAN@POSITION, or PLAN@CHECKPOINT
    #[arg(value_name = "BEFORE")]
    pub before: PlanAt,
    /// The plan after, in the same form
    #[arg(value_name = "AFTER")]
    pub after: PlanAt,
    /// Show where two plans with a common history diverge, and the outcome of each
    #[arg(long)]
    pub outcomes: bool,
}

/// Keys that identify a plan, or that no two runs of a plan share.
const NOT_COMPARED: [&str; 10] =
    ["plan", "at", "parent", "forks", "budget", "id", "started_at", "ended_at", "deadline", "retry_at"];

#[derive(Serialize)]
struct Side {
    plan: String,
    at: Position,
    #[serde(skip)]
    asked: Position,
    #[serde(skip)]
    view: PlanView,
}

impl Side {
    async fn load(session: &Session, store: &EventStore, head: Position, typed: &PlanAt) -> Result<Self, Failure> {
        let plan = find_plan(session, store, &typed.plan, Choice::Viewed).await?;
        let asked = position_of(session, store, &plan, typed.at.as_ref(), head).await?;
        let at = store.whole(asked).await?;
        let view = load_view(store, &plan, Range::up_to(at)).await?;
        Ok(Self { plan, at, asked, view })
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
        for Side { at, asked, .. } in [&before, &after].into_iter().filter(|side| side.at != side.asked) {
            writeln!(to, "as of {}", Point { asked: *asked, at: *at })?;
        }
        print_changes(to, &changes)
    })
}

fn print_changes(mut to: impl Write, changes: &[Change]) -> std::io::Result<()> {
    if changes.is_empty() {
        return writeln!(to, "no difference");
    }
    in_short(changes).try_for_each(|change| writeln!(to, "{}", visible(&change.to_string())))
}

pub async fn outcomes(session: &Session, one: &PlanAt, other: &PlanAt) -> Result<Code, Failure> {
    if one.at.is_some() || other.at.is_some() {
        return Err(Failure::user("--outcomes compares whole plans: write them without @"));
    }
    let store = session.place.open().await?;
    let one = find_plan(session, &store, &one.plan, Choice::Viewed).await?;
    let other = find_plan(session, &store, &other.plan, Choice::Viewed).await?;
    if one == other {
        return Err(Failure::user("this is one plan: name two that share a history"));
    }
    let Some(divergence) = Divergence::of(&store, &one, &other).await? else {
        let diff = session.command(&format!("diff {} {}", visible(&one), visible(&other)));
        let message =
            format!("{one} and {other} share no history: neither was forked from the other, or from one plan");
        return Err(Failure::new(Code::Nothing, message).hint(format!("to compare any two plans: {diff}")));
    };
    let Divergence { parted: Parted { plan, at, event_type }, one, other } = &divergence;
    let changes = changes(&other.view, &one.view);
    let mut json = json!(divergence);
    json["changes"] = json!(changes);
    session.print(&json, |to| {
        writeln!(to, "diverged after position {at} of {}, {}", visible(plan), visible(event_type))?;
        for side in [one, other] {
            let took = side.duration_ms.map_or_else(String::new, |took| format!("  in {}", duration(took)));
            let (worked, failures) = (duration(side.work_ms), count(side.failures as usize, "failure"));
            let rest = format!("{took}, worked on for {worked}, {failures}{}", used(&side.usage));
            writeln!(to, "{}  {}{rest}", visible(&side.plan), side.status.as_str())?;
        }
        writeln!(to, "differences of {} from {}:", visible(&one.plan), visible(&other.plan))?;
        print_changes(to, &changes)
    })
}

fn used(usage: &Usage) -> String {
    let of = [Measure::Tokens, Measure::Cost].into_iter().filter_map(|measure| text::used(measure, usage));
    of.map(|used| format!(", {used}")).collect()
}

/// The facts of a plan, its tasks and its questions, by `of`, `name` and `field` of a change.
type Facts = Vec<((&'static str, Option<String>, String), Value)>;

/// Compares two views. Tasks are matched by name, questions by id.
pub fn changes(before: &PlanView, after: &PlanView) -> Vec<Change> {
    compare(facts(before, None), facts(after, None))
}

/// Applies an event to a view and returns what it changed. It compares only the tasks that the event is about.
pub fn step(view: &mut PlanView, recorded: &Recorded) -> Result<Vec<Change>, Error> {
    let tasks = tasks_of(recorded);
    let before = facts(view, tasks.as_ref());
    view.apply(recorded)?;
    Ok(compare(before, facts(view, tasks.as_ref())))
}

/// The facts of a plan, its tasks and its questions, in this order; a plan without events has none.
fn facts(view: &PlanView, tasks: Option<&BTreeSet<TaskId>>) -> Facts {
    let mut facts = Vec::new();
    if view.created_at.is_none() {
        return facts;
    }
    let states = States::of("", view, &Observed::default());
    let is_shown = |task| tasks.is_none_or(|tasks| tasks.contains(&task));
    let mut shown = PlanShown::of_tasks("", Position(0), view, &states, is_shown);
    let (tasks, questions) = (take(&mut shown.tasks), take(&mut shown.questions));
    let tasks = tasks.iter().map(|task| ("task", json!(task)));
    let questions = questions.iter().map(|question| ("question", json!(question)));
    for (of, item) in [("plan", json!(shown))].into_iter().chain(tasks).chain(questions) {
        let Value::Object(fields) = item else { continue };
        let name = fields.get("id").and_then(Value::as_str).map(str::to_owned);
        let fields =
            fields.into_iter().filter(|(key, value)| !NOT_COMPARED.contains(&key.as_str()) && !is_nothing(value));
        facts.extend(fields.map(|(field, value)| ((of, name.clone(), field), value)));
    }
    facts
}

fn compare(before: Facts, after: Facts) -> Vec<Change> {
    let mut before = before.into_iter().collect::<BTreeMap<_, _>>();
    let mut changes = Vec::new();
    let mut push = |(of, name, field), from, to| {
        if from != to {
            changes.push(Change { of, name, field, from, to });
        }
    };
    for (fact, to) in after {
        push(fact.clone(), before.remove(&fact).unwrap_or_default(), to);
    }
    before.into_iter().for_each(|(fact, from)| push(fact, from, Value::Null));
    changes
}
