//! How values are read that people type: durations, moments, positions, queries.

use std::time::Duration;

use crewlog_mq::{AggregateName, Query, Timestamp};

use super::fork::{At, at};
use super::show::PlanAt;

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
                     for how it stands now"
                ));
            }
        },
    };
    if plan.is_empty() {
        return Err("it names no plan: write PLAN@NUMBER, or PLAN alone for how it stands now".into());
    }
    Ok(PlanAt { plan: plan.to_owned(), at })
}

/// A moment as RFC 3339 has it.
pub(super) fn moment(typed: &str) -> Result<Timestamp, String> {
    let wrong = |_| "it is no moment: write it like 2026-11-21T10:00:00Z or 2026-11-21T10:00:00+01:00".to_owned();
    let parsed = typed.parse::<jiff::Timestamp>().map_err(wrong)?;
    Ok(Timestamp(parsed.as_microsecond()))
}

/// A query as JSON has it.
pub(super) fn query(typed: &str) -> Result<Query, String> {
    serde_json::from_str(typed).map_err(|error| format!("it is no query: {error}"))
}

/// The name of a stream holds no slash by custom; that of an aggregate may.
pub(super) fn aggregate(typed: &str) -> Result<AggregateName, String> {
    match typed.split_once('/') {
        Some((stream_id, aggregate_id)) if !stream_id.is_empty() && !aggregate_id.is_empty() => {
            Ok(AggregateName { stream_id: stream_id.to_owned(), aggregate_id: aggregate_id.to_owned() })
        }
        Some(_) | None => Err("it names no aggregate: write STREAM/ID".into()),
    }
}

/// A cost as people write it, in millionths: `2`, `2.50`.
pub(super) fn micros(typed: &str) -> Result<u64, String> {
    let wrong = || "it is no cost: write it like 2 or 2.50".to_owned();
    let (whole, part) = typed.split_once('.').unwrap_or((typed, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    let part = format!("{part:0<6}").parse::<u64>().map_err(|_| wrong())?;
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000));
    whole.and_then(|whole| whole.checked_add(part)).ok_or_else(wrong)
}

/// A duration as people write it: `30s`, `10m`, `2h`.
pub fn duration(typed: &str) -> Result<Duration, String> {
    let parsed = typed.parse::<jiff::SignedDuration>().map_err(|error| error.to_string())?;
    match Duration::try_from(parsed) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => Err("it must be more than nothing".into()),
    }
}
