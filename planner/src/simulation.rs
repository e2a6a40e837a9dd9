//! What the planner would make of a plan if every task took as long as is said of it: no task is executed, no time passes.
//!
//! It drives the same handler as a real plan does, so what it finds out is true of that one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crewlog_mq::Handler;

use crate::event::{Command, Event, ExecutorEvent, Order, Outcome, PlannerConfig};
use crate::plan::{Origin, Proposal, TaskId, TaskPlan};
use crate::planner::{PARALLELISM_MAX, Planner, PlannerError};
use crate::state::Phase;

/// How a simulated plan went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulated {
    /// When it ended, in the unit of the durations.
    pub makespan: u64,
    /// When each task began.
    pub begins: Vec<u64>,
    /// How it ended; unset when it waits for something that no executor can do.
    pub outcome: Option<Outcome>,
}

/// Carries a plan out with so many executors (at most [`PARALLELISM_MAX`]), who take what the planner dispatches at once
/// and need for each task what `durations` says of it, by place.
///
/// # Errors
/// [`PlannerError`] when the tasks are no plan.
pub fn simulate(
    tasks: Vec<TaskPlan>,
    durations: &[u64],
    n_executors: usize,
    order: Order,
) -> Result<Simulated, PlannerError> {
    let places = tasks.iter().map(|task| task.id).collect::<Vec<_>>();
    let place = |id: TaskId| places.binary_search(&id).unwrap_or(0);
    let parallelism = n_executors.clamp(1, PARALLELISM_MAX);
    let config = PlannerConfig { parallelism, order, ..PlannerConfig::default() };
    let (source, origin) = (String::new(), Origin::default());
    let proposal = Box::new(Proposal { tasks, title: None, source, context: Vec::new(), origin });
    let mut planner = Planner::new();
    let mut events = planner.process(Command::Propose { proposal, attachments: Vec::new(), config })?;
    let mut begins = vec![0; places.len()];
    let mut running = BinaryHeap::new();
    let mut now = 0_u64;
    loop {
        for event in &events {
            let Event::TaskDispatched { task_id, attempt, .. } = event else { continue };
            begins[place(*task_id)] = now;
            let takes = durations.get(place(*task_id)).copied().unwrap_or(0);
            running.push(Reverse((now.saturating_add(takes), *task_id, *attempt)));
        }
        let Some(Reverse((ended_at, node_id, attempt))) = running.pop() else { break };
        now = ended_at;
        let completed = ExecutorEvent::TaskCompleted { node_id, attempt, result: String::new() };
        events = planner.process(Command::HandleExecutorEvent(completed))?;
    }
    let outcome = match planner.state().phase() {
        Phase::Ended(outcome) => Some(outcome),
        Phase::Empty | Phase::Active | Phase::Paused => None,
    };
    Ok(Simulated { makespan: now, begins, outcome })
}
