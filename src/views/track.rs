//! A plan as the views need it: its state, and the history of its tasks.

use std::collections::BTreeMap;

use crewlog_executors::crew::begins;
use crewlog_executors::crew::warm::{Fold, every_other};
use crewlog_executors::plans::tasks_of;
use crewlog_mq::{Error, Position, Recorded, Snapshot, Timestamp};
use crewlog_planner::crew::conflicts::Moment;
use crewlog_planner::lifecycle::{self, Observed, State};
use crewlog_planner::plan::TaskId;
use crewlog_planner::plan_event::plan_of;
use crewlog_planner::view::PlanView;
use serde::{Deserialize, Serialize};

/// The most stored changes of the counts; beyond it every other one is dropped.
const COUNTS_MAX: usize = 4_000;
/// The most stored bars of a task, the newest.
const BARS_MAX: usize = 64;
/// The number of states.
pub const N_STATES: usize = State::ALL.len();

/// How many tasks are in each state, in the order of [`State::ALL`].
pub type Counts = [u32; N_STATES];

/// The time that a task spent in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    pub state: State,
    /// Its holder, as the log names executors.
    pub executor: Option<String>,
    pub from: Moment,
    /// The end of the state, and the next state.
    pub ended: Option<(Moment, State)>,
}

/// A plan as most views need it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ViewedPlan {
    pub view: PlanView,
    /// The start of each wait for a person, by the id of its item.
    pub since: BTreeMap<String, Timestamp>,
}

impl Snapshot for ViewedPlan {
    const FOLD: &'static str = "viewed";
    const VERSION: u32 = 4;
    const EVERY: u64 = 100;
}

impl Fold for ViewedPlan {
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        self.view.apply(recorded)?;
        if let Some(plan) = plan_of(recorded)
            && let Some(item) = begins(plan, recorded)
        {
            self.since.insert(item, recorded.created_at);
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        self.view.state().tasks.len()
    }
}

/// A plan's history for the views, by the log alone: each holder is alive until the event that ends its claim.
#[derive(Clone, Default)]
pub struct Track {
    pub view: PlanView,
    states: BTreeMap<TaskId, State>,
    bars: BTreeMap<TaskId, Vec<Bar>>,
    counts: Counts,
    counted: Vec<(Moment, Counts)>,
    /// The tasks added after the plan was created, with their positions.
    pub added: BTreeMap<TaskId, Position>,
}

impl Fold for Track {
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let n_tasks = self.view.state().tasks.len();
        self.view.apply(recorded)?;
        let moment = Moment { position: recorded.position, at: recorded.created_at };
        let before = self.counts;
        match tasks_of(recorded) {
            Some(tasks) => tasks.into_iter().for_each(|task| self.update(task, moment)),
            None => {
                let tasks: Vec<_> = self.view.state().tasks.iter().map(|task| task.plan.id).collect();
                if recorded.event_type == "TasksAmended" {
                    self.added.extend(tasks.iter().skip(n_tasks).map(|task| (*task, recorded.position)));
                }
                tasks.into_iter().for_each(|task| self.update(task, moment));
            }
        }
        if self.counts != before {
            self.counted.push((moment, self.counts));
            if self.counted.len() > COUNTS_MAX {
                let mut is_second = every_other();
                self.counted.retain(|_| is_second());
            }
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        self.states.len()
    }
}

impl Track {
    fn update(&mut self, id: TaskId, moment: Moment) {
        let Some(task) = self.view.state().task(id) else { return };
        let state = lifecycle::of_task("", &self.view, task, &Observed::default()).state;
        let executor = self.view.holder(id).map(|holder| holder.executor.to_string());
        let before = self.states.insert(id, state);
        if before != Some(state) {
            if let Some(before) = before {
                self.counts[before as usize] -= 1;
            }
            self.counts[state as usize] += 1;
        }
        let bars = self.bars.entry(id).or_default();
        if let Some(open) = bars.last_mut().filter(|bar| bar.ended.is_none()) {
            // The executor that reported the end counts as the holder until the plan handles the report.
            let is_reported = state == State::Running && executor.is_none();
            if open.state == state && (is_reported || open.executor == executor) {
                return;
            }
            open.ended = Some((moment, state));
        }
        if !state.is_end() && state != State::Planned {
            if bars.len() == BARS_MAX {
                bars.remove(0);
            }
            bars.push(Bar { state, executor, from: moment, ended: None });
        }
    }

    /// The bars of a task, the oldest first.
    pub fn bars(&self, task: TaskId) -> &[Bar] {
        self.bars.get(&task).map_or(&[], Vec::as_slice)
    }

    /// The counts at a position.
    pub fn counts_at(&self, position: Position) -> Counts {
        let n = self.counted.partition_point(|(moment, _)| moment.position <= position);
        n.checked_sub(1).map_or([0; N_STATES], |last| self.counted[last].1)
    }

    /// The first change of the counts.
    pub fn begins(&self) -> Option<Moment> {
        self.counted.first().map(|(moment, _)| *moment)
    }
}
