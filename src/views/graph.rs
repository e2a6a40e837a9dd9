//! The graph of a plan: its dependencies, and the steps in which tasks can run.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Error, Position};
use crewlog_planner::analysis::Analysis;
use crewlog_planner::lifecycle::{State, States};
use crewlog_planner::plan::{TaskId, TaskPlan};
use serde::Serialize;
use utoipa::ToSchema;

use super::track::Track;
use super::{AsOf, Counts, N_STATES};
use crate::ui::text::one_line;

/// With more tasks, those of one step form one node, unless that step is opened.
pub const NODES_MAX: usize = 200;
/// The longest title of a node, in characters.
const TITLE_CHARS_MAX: usize = 80;

/// The graph of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanGraph {
    pub plan: String,
    #[schema(value_type = i64)]
    pub at: Position,
    pub n_steps: usize,
    /// The steps on the critical path that have not ended.
    pub n_steps_left: usize,
    pub nodes: Vec<GraphNode>,
    /// Pairs of indexes in `nodes`: the second node waits for the first.
    pub edges: Vec<(usize, usize)>,
}

/// A task, or all tasks of a step of a large plan.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GraphNode {
    /// The task's label or number; for a group `step N`.
    pub name: String,
    pub title: String,
    /// The earliest step in which it can run, from 0.
    pub step: usize,
    /// For a group, the most relevant stage among its tasks.
    #[schema(value_type = String)]
    pub stage: State,
    pub is_critical: bool,
    /// True if it can start now.
    pub is_startable: bool,
    /// True if it was added while the plan ran.
    pub is_added: bool,
    /// The number of its tasks.
    pub n_tasks: usize,
    /// The number of a group's tasks in each stage, in the order of the stages.
    #[schema(value_type = Vec<u32>)]
    pub counts: Counts,
}

impl AsOf {
    /// The graph of a plan. For a large one, `open` is the step whose tasks are shown separately.
    pub async fn graph(&self, plan: &str, open: Option<usize>) -> Result<PlanGraph, Error> {
        let (track, states) = (self.track(plan).await?, self.states(plan).await?);
        Ok(graph(plan, self.at, &track, &states, open))
    }
}

fn graph(plan: &str, at: Position, track: &Track, states: &States, open: Option<usize>) -> PlanGraph {
    let state = track.view.state();
    let tasks: Vec<TaskPlan> = state.tasks.iter().map(|task| task.plan.clone()).collect();
    let empty =
        PlanGraph { plan: plan.to_owned(), at, n_steps: 0, n_steps_left: 0, nodes: Vec::new(), edges: Vec::new() };
    // Every plan in the log has passed the check of its tasks.
    let Ok(analysis) = Analysis::of(&tasks) else { return empty };
    let critical: BTreeSet<TaskId> = analysis.critical_path.iter().copied().collect();
    let startable: BTreeSet<TaskId> = track.view.free().into_iter().collect();
    let is_large = tasks.len() > NODES_MAX;
    let mut place: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut nodes: Vec<GraphNode> = Vec::new();
    for (step, group) in analysis.groups.iter().enumerate() {
        let is_collapsed = is_large && (open != Some(step) || group.len() > NODES_MAX);
        for (n, id) in group.iter().enumerate() {
            let Some(task) = state.task(*id) else { continue };
            let (name, title) = match is_collapsed {
                true => (format!("step {}", step + 1), String::new()),
                false => (task.plan.name(), one_line(&task.plan.description, TITLE_CHARS_MAX)),
            };
            let mut node = GraphNode {
                name,
                title,
                step,
                stage: states.task(*id).state,
                is_critical: critical.contains(id),
                is_startable: startable.contains(id),
                is_added: track.added.contains_key(id),
                n_tasks: 1,
                counts: [0; N_STATES],
            };
            node.counts[node.stage as usize] = 1;
            match nodes.last_mut().filter(|_| is_collapsed && n > 0) {
                Some(group) => group.join(&node),
                None => nodes.push(node),
            }
            place.insert(*id, nodes.len() - 1);
        }
    }
    let waits = tasks.iter().flat_map(|task| task.depends_on.iter().map(move |on| (on.task, task.id)));
    let edges = waits.filter_map(|(before, after)| Some((*place.get(&before)?, *place.get(&after)?)));
    let edges: BTreeSet<_> = edges.filter(|(before, after)| before != after).collect();
    let is_ended = |task: &&TaskId| state.task(**task).is_some_and(|task| task.status.is_end());
    let n_ended = analysis.critical_path.iter().filter(is_ended).count();
    let n_steps = analysis.n_steps();
    PlanGraph { n_steps, n_steps_left: n_steps - n_ended, nodes, edges: edges.into_iter().collect(), ..empty }
}

impl GraphNode {
    /// Adds another task to a group.
    fn join(&mut self, task: &Self) {
        self.n_tasks += 1;
        self.counts[task.stage as usize] += 1;
        self.is_critical |= task.is_critical;
        self.is_startable |= task.is_startable;
        self.is_added |= task.is_added;
        // The most interesting stage: failures, then running or waiting tasks, then planned ones.
        let rank = |stage| match stage {
            State::Failed => 0,
            State::Interrupted => 1,
            State::WaitingForYou => 2,
            State::Running => 3,
            State::Waiting => 4,
            State::Ready => 5,
            State::Paused => 6,
            State::Planned => 7,
            State::Done => 8,
            State::Skipped | State::Cancelled => 9,
        };
        if rank(task.stage) < rank(self.stage) {
            self.stage = task.stage;
        }
    }
}
