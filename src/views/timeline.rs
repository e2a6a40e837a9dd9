//! The states of a plan's tasks over time, in lanes by executor or by task.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crewlog_mq::{Error, Position};
use crewlog_planner::lifecycle::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AsOf;
use super::track::Bar;
use crate::ui::text::{one_line, rfc3339};

/// The most lanes; those with the newest bars stay.
const LANES_MAX: usize = 60;
/// The lane of tasks without a holder.
const NOBODY: &str = "nobody yet";

/// The time line of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Timeline {
    pub plan: String,
    #[schema(value_type = i64)]
    pub at: Position,
    /// The log time of that position, or of the present.
    pub now: String,
    /// In microseconds since 1970.
    pub now_us: i64,
    pub lanes: Vec<Lane>,
    /// The number of omitted lanes.
    pub n_more: usize,
}

/// The bars of one executor or one task.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Lane {
    pub name: String,
    pub bars: Vec<LaneBar>,
}

/// A time in one state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LaneBar {
    pub task: String,
    pub title: String,
    #[schema(value_type = String)]
    pub stage: State,
    pub executor: Option<String>,
    #[schema(value_type = i64)]
    pub from: Position,
    /// In microseconds since 1970.
    pub from_us: i64,
    /// Null while it lasts.
    pub to_us: Option<i64>,
    /// The next state.
    #[schema(value_type = Option<String>)]
    pub then: Option<State>,
}

impl AsOf {
    /// The time line of a plan, in lanes by task or else by executor.
    pub async fn timeline(&self, plan: &str, is_by_task: bool) -> Result<Timeline, Error> {
        let (track, states) = (self.track(plan).await?, self.states(plan).await?);
        let mut lanes: BTreeMap<(bool, String), Vec<LaneBar>> = BTreeMap::new();
        for task in &track.view.state().tasks {
            let (name, title) = (task.plan.name(), one_line(&task.plan.description, 120));
            for Bar { state, executor, from, ended } in track.bars(task.plan.id) {
                let lane = match (is_by_task, executor) {
                    (true, _) => format!("{:0>12}", task.plan.id.0),
                    (false, Some(executor)) => of_executor(executor).to_owned(),
                    (false, None) => NOBODY.to_owned(),
                };
                lanes.entry((lane == NOBODY, lane)).or_default().push(LaneBar {
                    task: name.clone(),
                    title: title.clone(),
                    stage: if ended.is_some() { *state } else { states.task(task.plan.id).state },
                    executor: executor.clone(),
                    from: from.position,
                    from_us: from.at.0,
                    to_us: ended.map(|(point, _)| point.at.0),
                    then: ended.map(|(_, then)| then),
                });
            }
        }
        let n_more = lanes.len().saturating_sub(LANES_MAX);
        let mut lanes: Vec<_> = lanes.into_iter().collect();
        let newest = |bars: &[LaneBar]| bars.last().map(|bar| bar.to_us.unwrap_or(i64::MAX));
        lanes.sort_by_key(|(_, bars)| Reverse(newest(bars)));
        lanes.truncate(LANES_MAX);
        lanes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let lanes = lanes.into_iter().map(|((_, name), mut bars)| {
            bars.sort_by_key(|bar| bar.from);
            let name = if is_by_task { bars.first().map(|bar| bar.task.clone()).unwrap_or(name) } else { name };
            Lane { name, bars }
        });
        let (now, now_us) = (rfc3339(self.now), self.now.0);
        Ok(Timeline { plan: plan.to_owned(), at: self.at, now, now_us, lanes: lanes.collect(), n_more })
    }
}

/// The time of day of an RFC 3339 time in UTC.
pub fn time_of_day(rfc3339: &str) -> &str {
    rfc3339.get(11..19).unwrap_or(rfc3339)
}

/// The name of an executor without its process.
pub fn of_executor(executor: &str) -> &str {
    executor.rsplit_once('@').map_or(executor, |(name, _)| name)
}
