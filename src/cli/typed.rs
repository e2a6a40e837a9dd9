//! Parsers of typed values: durations, moments, positions, queries, names from tables.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use crewlog_mq::{AggregateName, Position, Query, Timestamp};
use crewlog_planner::event::{Order, Profile, Setting};
use crewlog_planner::parse::Format;
use crewlog_planner::plan::{FailurePolicy, NodeKind};
use crewlog_planner::planner::is_checkpoint_name;
use crewlog_planner::priority;
use crewlog_planner::protocol::AgentType;
use crewlog_planner::text::length_ms;

const POLICIES: [FailurePolicy; 4] =
    [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask];
pub(super) const ORDERS: [(&str, Order); 2] = [("place", Order::Place), ("critical-path", Order::CriticalPath)];
pub(super) const PROFILES: [(&str, Profile); 2] = [("coding", Profile::Coding), ("analysis", Profile::Analysis)];

pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let values = values.into_iter().collect::<Vec<_>>();
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).map(move |typed| {
        let found = values.iter().find(|(name, _)| *name == typed);
        found.expect("clap accepts only names of values").1
    })
}

pub(super) fn policy() -> impl TypedValueParser<Value = FailurePolicy> {
    one_of(POLICIES.map(|policy| (policy.into(), policy)))
}

pub(super) fn format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL.iter().map(|format| (format.into(), *format)))
}

pub(super) fn agent() -> impl TypedValueParser<Value = AgentType> {
    one_of(AgentType::ALL.map(|agent| (agent.as_str(), agent)))
}

/// A kind of task, by its name in any case.
pub(super) fn kind(typed: &str) -> Result<NodeKind, String> {
    let known = NodeKind::ALL.iter().copied();
    known
        .clone()
        .find(|kind| kind.as_str().eq_ignore_ascii_case(typed))
        .ok_or_else(|| format!("there is no such kind: {}", known.map(NodeKind::as_str).collect::<Vec<_>>().join(", ")))
}

/// A limit on the parallelism of a kind, or of an assignee; an empty number removes it.
pub(super) fn limit(typed: &str) -> Result<Setting, String> {
    let (name, n) = typed.split_once('=').ok_or("write KIND=N or @NAME=N; `KIND=` or `@NAME=` removes the limit")?;
    let n = match n {
        "" => None,
        n => Some(n.parse().map_err(|error| format!("{n:?}: {error}"))?),
    };
    match name.strip_prefix('@') {
        Some(name) => Ok(Setting::ParallelismOfExecutor(name.to_owned(), n)),
        None => Ok(Setting::ParallelismOfKind(kind(name)?, n)),
    }
}

/// A word for a priority; an empty one removes the priority.
pub(super) fn urgency(typed: &str) -> Result<String, String> {
    if typed.is_empty() || priority::known_rank(typed).is_some() {
        return Ok(typed.to_owned());
    }
    let known = priority::words().collect::<Vec<_>>().join(", ");
    Err(format!("there is no such priority: {known}; an empty one removes it"))
}

/// From 1 to 1000 tasks at once.
pub(super) fn jobs() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u16).range(1..=1000).map(usize::from)
}

/// A position of the log, from 1.
pub(super) fn position() -> impl TypedValueParser<Value = Position> {
    clap::value_parser!(i64).range(1..).map(Position)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    Position(i64),
    /// The name of a checkpoint.
    Checkpoint(String),
}

pub(super) fn at(typed: &str) -> Result<At, String> {
    match typed.parse() {
        Ok(at @ 1..) => Ok(At::Position(at)),
        Err(_) if is_checkpoint_name(typed) => Ok(At::Checkpoint(typed.to_owned())),
        Ok(_) | Err(_) => Err("it is neither a position of the log, 1 or more, nor the name of a checkpoint".into()),
    }
}

/// A plan at a point of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAt {
    pub plan: String,
    /// Now when unset.
    pub at: Option<At>,
}

/// No plan's id holds an @.
pub(super) fn plan_at(typed: &str) -> Result<PlanAt, String> {
    let (plan, at) = match typed.split_once('@') {
        None => (typed, None),
        Some((plan, "0")) => (plan, Some(At::Position(0))),
        Some((plan, typed)) => match at(typed) {
            Ok(at) => (plan, Some(at)),
            Err(_) => {
                return Err(format!(
                    "{typed:?} is no position and no name of a checkpoint: write PLAN@NUMBER or PLAN@NAME, or PLAN alone \
                     for its present state"
                ));
            }
        },
    };
    if plan.is_empty() {
        return Err("it names no plan: write PLAN@NUMBER, or PLAN alone for its present state".into());
    }
    Ok(PlanAt { plan: plan.to_owned(), at })
}

pub(super) fn moment(typed: &str) -> Result<Timestamp, String> {
    let wrong = |_| "it is no moment: write it like 2026-11-21T10:00:00Z or 2026-11-21T10:00:00+01:00".to_owned();
    let parsed = typed.parse::<jiff::Timestamp>().map_err(wrong)?;
    Ok(Timestamp(parsed.as_microsecond()))
}

pub(super) fn query(typed: &str) -> Result<Query, String> {
    serde_json::from_str(typed).map_err(|error| format!("it is no query: {error}"))
}

/// An aggregate as STREAM/ID. By convention no stream has a slash in its name; an aggregate may.
pub(super) fn aggregate(typed: &str) -> Result<AggregateName, String> {
    match typed.split_once('/') {
        Some((stream_id, aggregate_id)) if !stream_id.is_empty() && !aggregate_id.is_empty() => {
            Ok(AggregateName { stream_id: stream_id.to_owned(), aggregate_id: aggregate_id.to_owned() })
        }
        Some(_) | None => Err("it names no aggregate: write STREAM/ID".into()),
    }
}

/// A cost in millionths: `2`, `2.50`.
pub(super) fn micros(typed: &str) -> Result<u64, String> {
    let wrong = || "it is no cost: write it like 2 or 2.50".to_owned();
    let (whole, part) = typed.split_once('.').unwrap_or((typed, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    format!("{whole}{part:0<6}").parse().map_err(|_| wrong())
}

/// A duration, as in a plan.
pub fn duration(typed: &str) -> Result<Duration, String> {
    millis(typed).map(Duration::from_millis)
}

pub(super) fn millis(typed: &str) -> Result<u64, String> {
    let wrong = "it is no duration: write a number above 0 with its unit: 500ms, 30s, 10m, 2h or 1d";
    length_ms(typed).ok_or_else(|| wrong.to_owned())
}
