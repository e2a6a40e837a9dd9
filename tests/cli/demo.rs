//! The recorded day that `crewlog demo` plays, and the command. [`log_in`] gives the day to other tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crewlog_executors::crew::{Crew, Kind, needs_you};
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::{EventStore, PAGE_EVENTS_MAX, Query, Range, Recorded};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::agents::{self, AgentEvent};
use crewlog_planner::crew::asks::{self, AskEvent};
use crewlog_planner::crew::conflicts::{self, ConflictEvent};
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::messages::{self, MessageEvent};
use crewlog_planner::crew::statistics::{self, StatisticsEvent};
use crewlog_planner::event::{self, Event};
use flate2::read::GzDecoder;

use super::scene::{Running, Scene};

const DAY: &[u8] = include_bytes!("../../src/demo/day.jsonl.gz");
/// The project of the day, as `crewlog.toml` names it.
pub const PROJECT: &str = "almanac";
const BYTES_MAX: usize = 500_000;

/// The recorded day as an export.
fn export() -> String {
    let mut export = String::new();
    GzDecoder::new(DAY).read_to_string(&mut export).expect("the day is compressed text");
    export
}

/// Imports the recorded day into a new log in a folder, and gives the path of the log.
pub fn log_in(folder: &Path) -> PathBuf {
    let (file, log) = (folder.join("day.jsonl"), folder.join("day.db"));
    fs::write(&file, export()).expect("the folder can be written");
    let mut import = Scene::new().crewlog(&[]);
    import.current_dir(folder).arg("--store").arg(&log).arg("import").arg(&file);
    Running::start(&mut import).finish().expect(0);
    log
}

/// A scene whose log is the recorded day, and whose project is that of the day.
pub fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("crewlog.toml", format!("project = \"{PROJECT}\"\n"));
    let log = log_in(scene.folder()).to_string_lossy().into_owned();
    scene.with_env("CREWLOG_STORE", log)
}

async fn recorded(scene: &Scene) -> (EventStore, Vec<Recorded>) {
    let store = EventStore::open(scene.env("CREWLOG_STORE").expect("it is set")).await.expect("the log opens");
    let page = store.read(&Query::all(), Range::default(), PAGE_EVENTS_MAX).await.expect("the log can be read");
    assert!(!page.more);
    (store, page.events)
}

#[tokio::test]
async fn each_event_of_the_day_decodes_and_the_log_verifies() {
    let scene = scene();
    let (_, events) = recorded(&scene).await;
    for recorded in &events {
        let decoded = match recorded.stream_id.as_str() {
            event::STREAM => recorded.decode::<Event>().map(drop),
            claim::STREAM => recorded.decode::<TaskEvent>().map(drop),
            agents::STREAM => recorded.decode::<AgentEvent>().map(drop),
            leases::STREAM => recorded.decode::<LeaseEvent>().map(drop),
            messages::STREAM => recorded.decode::<MessageEvent>().map(drop),
            asks::STREAM => recorded.decode::<AskEvent>().map(drop),
            conflicts::STREAM => recorded.decode::<ConflictEvent>().map(drop),
            statistics::STREAM => recorded.decode::<StatisticsEvent>().map(drop),
            other => panic!("an event of the stream {other}"),
        };
        decoded.unwrap_or_else(|error| panic!("record the day again: {error}"));
    }
    scene.run(&["db", "check"]).expect(0);
    scene.run(&["replay", "--verify"]).expect(0);
    for words in [&["ls"] as &[&str], &["agents"], &["leases"], &["inbox"], &["stats"], &["conflicts", "--all"]] {
        let ran = scene.run(words).expect(0);
        assert_eq!(ran.stderr, "", "{words:?}: no event is passed over");
    }
    assert_eq!(scene.run(&["export"]).expect(0).stdout, export(), "it is an export as the program writes it");
}

/// The types of events that the day must have.
const SHOWN: [&str; 38] = [
    "AgentJoined",
    "AgentLeft",
    "AgentLost",
    "AgentRecovered",
    "AgentReported",
    "AgentSeen",
    "AgentStuck",
    "CheckpointNamed",
    "ClarificationReceived",
    "ClarificationRequested",
    "ConflictDetected",
    "ConflictResolved",
    "EditRefused",
    "LeaseRenewed",
    "LeasesForced",
    "LeasesGranted",
    "LeasesQueued",
    "LeasesReleased",
    "LeasesRenewed",
    "MessageAcked",
    "MessageSent",
    "MessagesRead",
    "PersonAnswered",
    "PersonAsked",
    "PlanForked",
    "PlanPaused",
    "PlanResumed",
    "PlanningCompleted",
    "RetryScheduled",
    "StatisticsProjected",
    "TaskClaimed",
    "TaskCompleted",
    "TaskFailed",
    "TaskProgressed",
    "TasksAmended",
    "TimerFired",
    "UnleasedEdit",
    "UsageReported",
];

#[tokio::test]
async fn the_day_shows_what_a_crew_does() {
    assert!(DAY.len() <= BYTES_MAX, "{} bytes", DAY.len());
    let scene = scene();
    let (store, events) = recorded(&scene).await;
    assert!((1_500..=4_000).contains(&events.len()), "{} events", events.len());
    let mut n_of = BTreeMap::<&str, usize>::new();
    events.iter().for_each(|recorded| *n_of.entry(&recorded.event_type).or_default() += 1);
    let missing: Vec<_> = SHOWN.iter().filter(|event_type| !n_of.contains_key(*event_type)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in {n_of:?}");
    assert!(n_of["ConflictDetected"] > n_of["ConflictResolved"], "one conflict is open");
    assert!(n_of["PersonAsked"] > n_of["PersonAnswered"], "one question is open");

    let agents = events.iter().filter(|recorded| recorded.event_type == "AgentJoined");
    let agents: BTreeSet<_> = agents
        .map(|joined| serde_json::from_str::<serde_json::Value>(&joined.data).expect("JSON"))
        .map(|data| data["agent"].as_str().expect("a name").to_owned())
        .collect();
    let expected = ["ci-1", "claude-1", "claude-1/scout", "codex-1", "gemini-1", "opencode-1"];
    assert_eq!(agents, expected.map(str::to_owned).into());
    let takes_over =
        |recorded: &Recorded| matches!(recorded.decode(), Ok(TaskEvent::TaskClaimed { cut_off: true, .. }));
    let of_tasks = || events.iter().filter(|recorded| recorded.stream_id == claim::STREAM);
    assert!(of_tasks().any(takes_over), "an agent goes on where a lost one stopped");
    let has_prompt =
        |recorded: &Recorded| matches!(recorded.decode(), Ok(TaskEvent::TaskStarted { prompt: Some(_), .. }));
    assert!(of_tasks().any(has_prompt));
    let is_reply = |recorded: &Recorded| matches!(recorded.decode(), Ok(MessageEvent::MessageSent { message, .. }) if message.thread.is_some());
    assert!(events.iter().any(|recorded| recorded.stream_id == messages::STREAM && is_reply(recorded)));

    let life = LivenessLock::begin(&scene.path("workers")).expect("the folder can be written");
    let end = events.last().map(|recorded| recorded.position);
    let needs = needs_you(&Crew::new(&store, PROJECT, life.into()), end).await.expect("the log can be folded");
    let kinds: BTreeSet<_> = needs.items.iter().map(|need| need.kind).collect();
    assert_eq!(kinds, [Kind::Permission, Kind::Question, Kind::Conflict, Kind::Overdue].into(), "{needs:?}");
    let of_plan = |id: &str| id.starts_with("iso-week-dates");
    let of_question = |is_of_plan: bool| {
        needs.items.iter().any(|need| need.kind == Kind::Question && of_plan(&need.id) == is_of_plan)
    };
    assert!(of_question(true) && of_question(false), "a plan asks, and an agent: {needs:?}");
}
