//! The names of tasks, for places that know their numbers: `PLAN/NAME` for the id `PLAN/NUMBER`.

use std::collections::HashMap;

use crewlog_executors::history::History;
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::claim;
use crewlog_planner::event::{self, Event};
use crewlog_planner::plan::TaskId;
use futures::TryStreamExt;
use serde::Deserialize;

/// Reads the names of a plan's tasks at first use.
pub struct TaskNames {
    store: EventStore,
    range: Range,
    plans: HashMap<String, HashMap<TaskId, String>>,
}

/// The part of a plan's event that names a task.
#[derive(Deserialize)]
struct OfTask {
    task_id: Option<TaskId>,
}

impl TaskNames {
    /// The present names.
    pub fn on(store: &EventStore) -> Self {
        Self { store: store.clone(), range: Range::default(), plans: HashMap::new() }
    }

    /// The names as of a position.
    pub fn up_to(at: Position, store: &EventStore) -> Self {
        Self { range: Range::up_to(at), ..Self::on(store) }
    }

    /// The name of a task; its number if the plan is unreadable or lacks the task.
    pub async fn of(&mut self, plan: &str, task: TaskId) -> Result<String, Error> {
        if let Some(name) = self.plans.get(plan).and_then(|names| names.get(&task)) {
            return Ok(name.clone());
        }
        // Also if others of its tasks are known: it may be newer.
        let mut names = self.read(plan).await?;
        let name = names.entry(task).or_insert_with(|| task.to_string()).clone();
        self.plans.insert(plan.to_owned(), names);
        Ok(name)
    }

    /// The subject of an event: `PLAN/NAME` for one of a task, else the id of its aggregate.
    pub async fn subject(&mut self, recorded: &Recorded) -> Result<String, Error> {
        let id = &recorded.aggregate_id;
        let task = match recorded.stream_id.as_str() {
            claim::STREAM => claim::split_aggregate_id(id),
            event::STREAM => {
                serde_json::from_str(&recorded.data).ok().and_then(|OfTask { task_id }| Some((id.as_str(), task_id?)))
            }
            _another => None,
        };
        Ok(match task {
            Some((plan, task)) => format!("{plan}/{}", self.of(plan, task).await?),
            None => id.clone(),
        })
    }

    async fn read(&self, plan: &str) -> Result<HashMap<TaskId, String>, Error> {
        let query = Query::stream(event::STREAM).of_types(["TasksPlanned", "TasksAmended"]);
        let history = match History::of(&self.store, plan).await {
            Err(Error::Decode { .. }) => return Ok(HashMap::new()),
            history => history?,
        };
        let mut records = std::pin::pin!(history.records(&self.store, &query, self.range));
        let mut names = HashMap::new();
        while let Some(recorded) = records.try_next().await? {
            if let Ok(Event::TasksPlanned { tasks, .. } | Event::TasksAmended { tasks, .. }) = recorded.decode() {
                names.extend(tasks.into_iter().map(|task| (task.id, task.name())));
            }
        }
        Ok(names)
    }
}
