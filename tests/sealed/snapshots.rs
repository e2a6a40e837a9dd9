//! Snapshots are in clear text, so none is made of sealed texts; and conflicts and statistics are the same
//! with and without the key.

use crewlog_executors::crew::reacting::Reacting;
use crewlog_mq::{Append, Cause, Event as MqEvent, EventStore, Expected, Handler, NewEvent, Query, Runner, Snapshot};
use crewlog_planner::claim::{Executor, TaskEvent, TaskProgress};
use crewlog_planner::crew::Reactor;
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::event::{Event, Outcome, Parameters, PlannerCmd, plan_tag};
use crewlog_planner::plan::{NodeKind, TaskId};
use serde::{Deserialize, Serialize};

use super::{Ring, everything, holds_mark, marked, marked_files, new_event, of_plan, planned};

/// All noted facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Notes(Vec<String>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Note {
    Noted { text: String },
}

impl MqEvent for Note {}

impl Handler for Notes {
    type Command = String;
    type Event = Note;
    type Error = String;

    fn decide(&self, text: String) -> Result<Vec<Note>, String> {
        let noted = Note::Noted { text };
        Ok(vec![noted])
    }

    fn apply(&mut self, Note::Noted { text }: &Note) {
        self.0.push(text.clone());
    }
}

impl Snapshot for Notes {
    const FOLD: &'static str = "notes";
    const VERSION: u32 = 1;
    const EVERY: u64 = 2;
}

const SPACE: &str = "snapshot:notes:1";

async fn note_five(store: &EventStore) {
    for n in 0..5 {
        // A cold reader every second time.
        let mut notes = Runner::<Notes>::new(store.clone(), "planner", "p", vec![plan_tag("p")]).with_snapshots();
        notes.execute(marked(&n.to_string()), &Cause::request()).await.unwrap();
        notes.execute(marked("warm"), &Cause::request()).await.unwrap();
        assert_eq!(notes.handler().0.len(), 2 * (n + 1));
    }
}

#[tokio::test]
async fn a_fold_over_sealed_events_is_not_snapshotted_but_a_plain_one_is() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    note_five(&ring.veil(&store, Some("a"))).await;
    assert!(everything(&store).await.iter().all(|recorded| !holds_mark(recorded)));
    assert_eq!(store.cells(SPACE, "", 10).await.unwrap(), []);

    let store = EventStore::in_memory().await.unwrap();
    note_five(&ring.veil(&store, None)).await;
    assert_eq!(store.cells(SPACE, "", 10).await.unwrap().len(), 1, "what nobody seals is kept as ever");

    // Keys that are added later change nothing: the plan stays unsealed.
    let mut notes = Runner::<Notes>::new(ring.veil(&store, Some("a")), "planner", "p", Vec::new()).with_snapshots();
    notes.catch_up().await.unwrap();
    assert_eq!(notes.handler().0.len(), 10);
}

/// Two sealed plans whose claimed tasks declare that they change the same file.
async fn conflict(store: &EventStore) {
    for plan in ["p", "q"] {
        let parameters = Parameters {
            description: marked("change src/secret.rs"),
            command: None,
            assignee: None,
            folder: None,
            files: vec!["src/a.rs".into()],
            mentions: Vec::new(),
            reads_only: false,
            is_delegated: false,
            compensates: None,
        };
        let command =
            PlannerCmd::ExecuteTask { node_id: TaskId(1), kind: NodeKind::Refactor, parameters: Box::new(parameters) };
        let dispatched = Event::TaskDispatched { task_id: TaskId(1), attempt: 1, command };
        let executor = Executor { name: plan.into(), host: "h".into(), worker: "w".into() };
        let lease_until = Some(store.now());
        let claimed = TaskEvent::TaskClaimed {
            attempt: 1,
            executor,
            lease_until,
            epoch: 1,
            cut_off: false,
            only_reports: false,
            prompt: None,
        };
        let events = [planned(), dispatched].map(|event| new_event(&event, plan)).into();
        let append = Append::to("planner", plan, Expected::NoStream, events);
        store.append(append).await.unwrap();
        let claimed = vec![new_event(&claimed, plan)];
        store.append(Append::to("task", &format!("{plan}/1"), Expected::NoStream, claimed)).await.unwrap();
    }
    let ended = Event::PlanningCompleted { summary: String::new(), outcome: Outcome::Cancelled, n_tasks: 1 };
    store.append(Append::to("planner", "q", Expected::Any, vec![new_event(&ended, "q")])).await.unwrap();
    // Enough for a snapshot.
    let progressed = || new_event(&TaskEvent::TaskProgressed { epoch: 1, progress: TaskProgress::default() }, "p");
    let progressed = (0..1_200).map(|_| progressed()).collect::<Vec<NewEvent>>();
    store.append(Append::to("task", "p/1", Expected::Any, progressed)).await.unwrap();
}

async fn watch<R: Reactor>(store: &EventStore) {
    Reacting::<R>::new(store.clone()).catch_up(None).await.unwrap();
}

#[tokio::test]
async fn conflicts_and_statistics_contain_no_text_and_do_not_depend_on_the_key() {
    let ring = Ring::new();
    let path = ring.operator("log.db");
    let store = EventStore::open(path.to_str().unwrap()).await.unwrap();
    conflict(&ring.veil(&store, Some("a"))).await;
    let head = store.head().await.unwrap();

    for veiled in [ring.veil(&store, None), ring.veil(&store, Some("a"))] {
        watch::<Conflicts>(&veiled).await;
        watch::<Statistics>(&veiled).await;
        // A resumed host appends nothing more.
        let said = everything(&store).await.split_off(head.0 as usize);
        let types = said.iter().map(|recorded| &*recorded.event_type).collect::<Vec<_>>();
        assert_eq!(types, ["ConflictDetected", "StatisticsProjected"]);
        let ConflictEvent::ConflictDetected { pattern, n_holders, .. } = said[0].decode().unwrap() else { panic!() };
        assert_eq!((&*pattern, n_holders), ("src/a.rs", 2));
    }
    let of_statistics = format!("snapshot:{}:{}", Statistics::FOLD, Statistics::VERSION);
    for space in [format!("snapshot:{}:{}", Conflicts::FOLD, Conflicts::VERSION), of_statistics] {
        assert_eq!(store.cells(&space, "", 10).await.unwrap().len(), 1, "{space} was taken");
    }
    assert_eq!(of_plan(&store, "p").await.len(), 2);
    assert_eq!(marked_files(path.parent().unwrap()), Vec::<std::path::PathBuf>::new());
    store.close().await;
    assert_eq!(marked_files(path.parent().unwrap()), Vec::<std::path::PathBuf>::new());
    let again = EventStore::open(path.to_str().unwrap()).await.unwrap();
    assert_eq!(again.load_events::<ConflictEvent>(&Query::stream("conflicts"), None).await.unwrap().len(), 1);
}
