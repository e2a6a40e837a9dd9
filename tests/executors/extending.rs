//! Third-party extensions of a log: an executor, an event type and a projection. Existing code does not need to
//! know them.

use std::collections::BTreeMap;

use crewlog_executors::claiming::claim_of;
use crewlog_mq::{Append, Cause, EventStore, Expected, NewEvent, Position, Query, Range, Timestamp};
use crewlog_planner::claim::{Claim, Ending, TaskCommand};
use crewlog_planner::event::{self, Event, Outcome, PlannerCmd, PlannerConfig};
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::rig::{PLAN, Rig, executor, soon, step, tags};

/// An event that no part of the project knows.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Review {
    Noted { task: u64, stars: u8 },
}

impl crewlog_mq::Event for Review {}

/// Runs the first dispatched task without a command, and records a review of it, on the same log and
/// under the plan's tag.
async fn reviewer(store: EventStore) {
    let mut events = store.subscribe::<Event>(&Query::aggregate(event::STREAM, PLAN)).unwrap();
    loop {
        let Event::TaskDispatched { task_id, attempt, command, .. } = events.next().await.unwrap().unwrap().event
        else {
            continue;
        };
        let PlannerCmd::ExecuteTask { parameters, .. } = command else { continue };
        if parameters.command.is_some() {
            continue;
        }
        let noted = NewEvent::of(&Review::Noted { task: task_id.0, stars: 4 }, Cause::request().metadata()).unwrap();
        let append = Append::to("review", PLAN, Expected::NoStream, vec![noted.with_tags(tags())]);
        store.append(append).await.unwrap();
        let mut claim = claim_of(&store, PLAN, task_id, tags());
        let report = TaskCommand::Report {
            claim: Claim { attempt, executor: executor("reviewer"), now: Timestamp(1), ..Claim::default() },
            ending: Ending::Completed { result: "four stars".into(), run: None },
        };
        let cause = Cause::request().keeping(report.recorded());
        claim.execute(report, &cause).await.unwrap();
        return;
    }
}

/// The number of events of each type, of any stream: a fold without dependencies.
async fn census(store: &EventStore) -> BTreeMap<String, usize> {
    let page = store.read(&Query::all(), Range::default(), 1_000).await.unwrap();
    let mut n_of = BTreeMap::new();
    for event in page.events {
        *n_of.entry(event.event_type.to_string()).or_default() += 1;
    }
    n_of
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn third_party_executors_events_and_projections_work_without_changes_to_the_runtime() {
    let look = TaskPlan {
        depends_on: vec![Dependency { task: TaskId(1), strength: Strength::Hard }],
        ..TaskPlan::new(TaskId(2), NodeKind::Analysis, "Look at it")
    };
    let tasks = vec![step(1, "echo one", &[]), look, step(3, "echo three", &[2])];
    let rig = Rig::with_plan(tasks, PlannerConfig::default()).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    soon(reviewer(rig.store.clone())).await;
    let ended = rig.end().await.pop();
    assert!(matches!(ended, Some(Event::PlanningCompleted { outcome: Outcome::Completed, .. })), "{ended:?}");
    worker.stop().await;
    host.abort();
    let mut noted = rig.store.subscribe::<Review>(&Query::stream("review")).unwrap();
    let noted = soon(noted.next()).await.unwrap().unwrap();
    assert_eq!(noted.event, Review::Noted { task: 2, stars: 4 });
    assert!(noted.recorded.position > Position(1), "among the others");
    let n_of = census(&rig.store).await;
    let n = |event_type: &str| n_of.get(event_type).copied().unwrap_or_default();
    assert_eq!((n("TaskDispatched"), n("TaskCompleted"), n("Noted"), n("PlanningCompleted")), (3, 3, 1, 1), "{n_of:?}");
}
