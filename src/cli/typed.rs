//! Parsers of typed values: durations, moments, positions, queries, names from tables.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use crewlog_mq::{AggregateName, Position, Query, Timestamp};
use crewlog_planner::parse::Format;
use crewlog_planner::planner::is_checkpoint_name;
use crewlog_planner::protocol::AgentType;
use crewlog_planner::text::length_ms;
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The reason of a change that names none.
pub const BY_PERSON: &str = "by a person";

pub fn by_person() -> String {
    BY_PERSON.to_owned()
}

/// A value of these names.
pub fn one_of<T: FromStr<Err = strum::ParseError> + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

pub fn agent() -> impl TypedValueParser<Value = AgentType> {
    one_of(AgentType::ALL.map(AgentType::as_str))
}

/// From 1 to 1000 tasks at once.
pub fn jobs() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u16).range(1..=1000).map(usize::from)
}

/// A position of the log, from 1.
pub fn position() -> impl TypedValueParser<Value = Position> {
    clap::value_parser!(i64).range(1..).map(Position)
}

#[derive(Debug, Clone, PartialEq, Eq, strum::Display)]
pub enum At {
    #[strum(transparent)]
    Position(i64),
    /// The name of a checkpoint.
    #[strum(transparent)]
    Checkpoint(String),
}

impl FromStr for At {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed.parse() {
            Ok(at @ 1..) => Ok(At::Position(at)),
            Err(_) if is_checkpoint_name(typed) => Ok(At::Checkpoint(typed.to_owned())),
            Ok(_) | Err(_) => Err("neither a position of the log (1 or more) nor the name of a checkpoint".into()),
        }
    }
}

/// Where a fork begins.
#[derive(Debug, Clone, PartialEq, Eq, strum::Display, DeserializeFromStr, SerializeDisplay)]
pub enum ForkAt {
    #[strum(transparent)]
    At(At),
    /// Right before the first failure.
    #[strum(to_string = "failure")]
    Failure,
    /// Right after the first dispatch of this task.
    #[strum(to_string = "before:{0}")]
    Before(String),
}

impl FromStr for ForkAt {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed.strip_prefix("before:") {
            Some(task) if !task.is_empty() => Ok(ForkAt::Before(task.to_owned())),
            None if typed == "failure" => Ok(ForkAt::Failure),
            None => typed.parse().map(ForkAt::At),
            Some(_) => Err("write before:TASK, with the number or label of a task".into()),
        }
    }
}

/// A plan, or a task or question of it: `PLAN`, `PLAN/TASK`, `PLAN/QUESTION`.
#[derive(Debug, Clone, PartialEq, Eq, DeserializeFromStr, SerializeDisplay)]
pub struct Address {
    pub plan: String,
    pub part: Option<String>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let (plan, part) = typed.split_once('/').map_or((typed, None), |(plan, part)| (plan, Some(part)));
        if plan.is_empty() || part == Some("") {
            let help = "`crewlog ls` lists the plans, `crewlog show PLAN` the rest";
            return Err(format!("write PLAN, PLAN/TASK or PLAN/QUESTION: {help}"));
        }
        Ok(Address { plan: plan.to_owned(), part: part.map(str::to_owned) })
    }
}

/// A task or a question of a plan: `PLAN/TASK`, `PLAN/QUESTION`.
#[derive(Debug, Clone, PartialEq, Eq, DeserializeFromStr, SerializeDisplay)]
pub struct InPlan {
    pub plan: String,
    pub name: String,
}

impl FromStr for InPlan {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        match typed.parse()? {
            Address { plan, part: Some(name) } => Ok(InPlan { plan, name }),
            Address { plan, part: None } => {
                Err(format!("it names no task or question: write {plan}/NAME; `crewlog show {plan}` lists them"))
            }
        }
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
impl FromStr for PlanAt {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let point = |typed: &str| {
            let help = "write PLAN@NUMBER or PLAN@NAME, or PLAN alone for its present state";
            typed.parse().map_err(|_| format!("{typed:?} is neither a position nor the name of a checkpoint: {help}"))
        };
        let (plan, at) = match typed.split_once('@') {
            None => (typed, None),
            Some((plan, "0")) => (plan, Some(At::Position(0))),
            Some((plan, typed)) => (plan, Some(point(typed)?)),
        };
        if plan.is_empty() {
            return Err("it names no plan: write PLAN@NUMBER, or PLAN alone for its present state".into());
        }
        Ok(PlanAt { plan: plan.to_owned(), at })
    }
}

pub fn moment(typed: &str) -> Result<Timestamp, String> {
    let wrong = |_| "not a time: use RFC 3339, such as 2026-11-21T10:00:00Z or 2026-11-21T10:00:00+01:00".to_owned();
    let parsed = typed.parse::<jiff::Timestamp>().map_err(wrong)?;
    Ok(Timestamp(parsed.as_microsecond()))
}

pub fn query(typed: &str) -> Result<Query, String> {
    serde_json::from_str(typed).map_err(|error| format!("invalid query: {error}"))
}

/// An aggregate as STREAM/ID. By convention no stream has a slash in its name; an aggregate may.
pub fn aggregate(typed: &str) -> Result<AggregateName, String> {
    match typed.split_once('/') {
        Some((stream_id, aggregate_id)) if !stream_id.is_empty() && !aggregate_id.is_empty() => {
            Ok(AggregateName { stream_id: stream_id.to_owned(), aggregate_id: aggregate_id.to_owned() })
        }
        Some(_) | None => Err("it names no aggregate: write STREAM/ID".into()),
    }
}

pub fn address_to_listen_on(typed: &str) -> Result<SocketAddr, String> {
    let (_, port) = typed.rsplit_once(':').unwrap_or(("", typed));
    let port = port.parse::<u16>().unwrap_or(7_777);
    typed.parse().map_err(|_| format!("it is not an IP address with a port: write 127.0.0.1:{port}"))
}

/// A duration in milliseconds, as in a plan.
pub fn millis(typed: &str) -> Result<u64, String> {
    let wrong = "invalid duration: use a number above 0 with its unit, such as 500ms, 30s, 10m, 2h or 1d";
    length_ms(typed).ok_or_else(|| wrong.to_owned())
}

pub fn duration(typed: &str) -> Result<Duration, String> {
    millis(typed).map(Duration::from_millis)
}

#[derive(Debug, Args)]
pub struct AtPosition {
    /// As of this position of the log
    #[arg(long, value_name = "POSITION", value_parser = position())]
    pub at: Option<Position>,
}

impl Display for Address {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.plan.fmt(to)?;
        self.part.iter().try_for_each(|part| write!(to, "/{part}"))
    }
}

impl Display for InPlan {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.plan, self.name)
    }
}

/// A value that is read from text, with its text.
#[derive(Debug, Clone, PartialEq, Eq, DeserializeFromStr, SerializeDisplay)]
pub struct Typed<T: Parse> {
    text: String,
    pub value: T,
}

/// A value that [`Typed`] reads.
pub trait Parse: Sized {
    fn parse(typed: &str) -> Result<Self, String>;
}

impl<T: Parse> FromStr for Typed<T> {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        Ok(Self { value: T::parse(typed)?, text: typed.to_owned() })
    }
}

impl<T: Parse> Display for Typed<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.text.fmt(to)
    }
}

impl Parse for Format {
    fn parse(typed: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(<&str>::from).collect::<Vec<_>>().join(", ");
        typed.parse().map_err(|_| format!("{typed:?} is none of: {}", names()))
    }
}

impl Parse for Duration {
    fn parse(typed: &str) -> Result<Self, String> {
        duration(typed)
    }
}
