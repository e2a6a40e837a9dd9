//! The recorded day that `crewlog demo` plays, and the command. [`log_in`] gives the day to other tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::pin;

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::human;
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::plans::planner_of;
use crewlog_mq::{Cause, EventStore, PAGE_EVENTS_MAX, Query, Range, Recorded, Start};
use crewlog_planner::claim::{self, Ending, TaskEvent};
use crewlog_planner::crew::agents::{self, AgentEvent};
use crewlog_planner::crew::asks::{self, AskEvent};
use crewlog_planner::crew::conflicts::{self, ConflictEvent};
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::messages::{self, MessageEvent};
use crewlog_planner::crew::statistics::{self, StatisticsEvent};
use crewlog_planner::event::{self, Command, Event, plan_tag};
use flate2::read::GzDecoder;
use futures::StreamExt;
use rustix::process::Signal;
use serde_json::Value;

use super::scene::{DEADLINE, Running, Scene};

const DAY: &[u8] = include_bytes!("../../src/demo/day.jsonl.gz");
/// The project of the day, as `crewlog.toml` names it.
pub const PROJECT: &str = "almanac";
const BYTES_MAX: usize = 500_000;

/// The recorded day as an export.
pub fn export() -> String {
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
    for words in
        [&["ls"] as &[&str], &["agents"], &["leases"], &["inbox"], &["stats"], &["leases", "--conflicts", "--all"]]
    {
        let ran = scene.run(words).expect(0);
        let is_told = ran.stderr.is_empty() || ran.stderr == "no agent has a lease\n";
        assert!(is_told, "{words:?}: no event is passed over: {}", ran.stderr);
    }
    assert_eq!(scene.run(&["export"]).expect(0).stdout, export(), "it is an export as the program writes it");
}

/// An import stores the snapshots. The views from them are those from the events alone.
#[test]
fn views_from_snapshots_are_those_from_the_events() {
    let scene = scene();
    let log = rusqlite::Connection::open(scene.env("CREWLOG_STORE").expect("it is set")).expect("the log opens");
    let n_snapshots = || {
        let count = "SELECT count(*) FROM cells WHERE space LIKE '%snapshot:%'";
        log.query_row(count, [], |row| row.get::<_, i64>(0)).expect("it has cells")
    };
    let plans = scene.run(&["ls", "-o", "json"]).expect(0).json();
    let plans = plans["plans"].as_array().expect("a list").iter().map(|plan| plan["plan"].as_str().expect("an id"));
    let mut views: Vec<Vec<String>> = plans.map(|plan| vec!["show".to_owned(), plan.to_owned()]).collect();
    views.extend(["ls", "stats", "leases", "agents"].map(|view| vec![view.to_owned()]));
    for view in views {
        let words: Vec<_> = view.iter().map(String::as_str).chain(["-o", "json"]).collect();
        assert!(n_snapshots() > 1, "{words:?}");
        // An agent of an imported log counts as seen now.
        let shown = || {
            let mut shown = scene.run(&words).expect(0).json();
            let lists = shown.as_object_mut().expect("an object").values_mut().filter_map(Value::as_array_mut);
            for row in lists.flatten().filter_map(Value::as_object_mut) {
                ["until", "seen"].iter().for_each(|key| _ = row.remove(*key));
            }
            shown
        };
        let with = shown();
        log.execute("DELETE FROM cells WHERE space LIKE '%snapshot:%'", []).expect("they can be deleted");
        assert_eq!(shown(), with, "{words:?}");
        // As a migration to a version with other snapshots does.
        scene.run(&["db", "migrate"]).expect(0);
    }
}

/// The types of events that the day must have.
const SHOWN: [&str; 35] = [
    "AgentJoined",
    "AgentLeft",
    "AgentLost",
    "AgentRecovered",
    "AgentReported",
    "AgentStuck",
    "CheckpointNamed",
    "ClarificationReceived",
    "ClarificationRequested",
    "ConflictDetected",
    "ConflictResolved",
    "EditRefused",
    "LeasesForced",
    "LeasesGranted",
    "LeasesQueued",
    "LeasesReleased",
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
    let (_, events) = recorded(&scene).await;
    assert!((800..=2_000).contains(&events.len()), "{} events", events.len());
    let mut n_of = BTreeMap::<&str, usize>::new();
    events.iter().for_each(|recorded| *n_of.entry(&recorded.event_type).or_default() += 1);
    let missing: Vec<_> = SHOWN.iter().filter(|event_type| !n_of.contains_key(*event_type)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in {n_of:?}");
    assert!(n_of["ConflictDetected"] > n_of["ConflictResolved"], "one conflict is open");
    assert!(n_of["PersonAsked"] > n_of["PersonAnswered"], "one question is open");

    let agents = events.iter().filter(|recorded| recorded.event_type == "AgentJoined");
    let agents: BTreeSet<_> = agents
        .map(|joined| serde_json::from_str::<Value>(&joined.data).expect("JSON"))
        .map(|data| data["agent"].as_str().expect("a name").to_owned())
        .collect();
    let expected = ["ci-1", "claude-1", "claude-1/scout", "codex-1", "gemini-1", "opencode-1"];
    assert_eq!(agents, expected.map(str::to_owned).into());
    let takes_over =
        |recorded: &Recorded| matches!(recorded.decode(), Ok(TaskEvent::TaskClaimed { cut_off: true, .. }));
    let of_tasks = || events.iter().filter(|recorded| recorded.stream_id == claim::STREAM);
    assert!(of_tasks().any(takes_over), "an agent goes on where a lost one stopped");
    let has_prompt =
        |recorded: &Recorded| matches!(recorded.decode(), Ok(TaskEvent::TaskClaimed { prompt: Some(_), .. }));
    assert!(of_tasks().any(has_prompt));
    let is_reply = |recorded: &Recorded| matches!(recorded.decode(), Ok(MessageEvent::MessageSent { message, .. }) if message.thread.is_some());
    assert!(events.iter().any(|recorded| recorded.stream_id == messages::STREAM && is_reply(recorded)));

    let end = events.last().expect("there are events").position.to_string();
    let inbox = scene.run(&["inbox", "--at", &end, "-o", "json"]).expect(0).json();
    let needs = inbox["items"].as_array().expect("a list");
    let kinds: BTreeSet<_> = needs.iter().map(|need| need["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["conflict", "overdue", "permission", "question"].into(), "{needs:?}");
    let questions =
        needs.iter().filter(|need| need["kind"] == "question").map(|need| need["id"].as_str().expect("an id"));
    let (of_plans, of_agents): (Vec<_>, Vec<_>) = questions.partition(|id| id.starts_with("iso-week-dates"));
    assert!(!of_plans.is_empty() && !of_agents.is_empty(), "a plan asks, and an agent: {needs:?}");
}

/// `crewlog demo` with a folder of its own for temporary files.
struct Demo {
    running: Running,
    /// Its output.
    printed: Value,
    temporary: PathBuf,
    scene: Scene,
}

impl Demo {
    fn start() -> Self {
        let scene = Scene::new();
        let temporary = scene.around().join("temporary");
        fs::create_dir(&temporary).expect("a folder can be made");
        let scene = scene.with_env("TMPDIR", temporary.to_string_lossy());
        let mut running = scene.start(&["demo", "--no-open", "-o", "jsonl"]);
        let printed = serde_json::from_str(&running.stdout.line()).expect("the line is JSON");
        Self { running, printed, temporary, scene }
    }

    fn entries(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).expect("it is a folder").flatten().map(|entry| entry.path()).collect()
    }

    /// The URL of its log.
    fn log(&self) -> String {
        let [folder] = &Self::entries(&self.temporary)[..] else { panic!("there is one folder") };
        folder.join("log.db").to_string_lossy().into_owned()
    }

    /// The home page.
    async fn page(&self) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        let (client, person) = (client.expect("a client"), self.printed["person"].as_str().expect("an address"));
        let entered = client.get(person).send().await.expect("it answers");
        let cookie = entered.headers()["set-cookie"].to_str().expect("text").split(';').next().unwrap_or_default();
        let home = person.split("?token=").next().unwrap_or_default();
        let page = client.get(home).header("cookie", cookie).send().await.expect("it answers");
        page.text().await.expect("text")
    }

    fn end(self) {
        self.running.signal(Signal::TERM);
        self.running.finish().expect(0);
        assert_eq!(Self::entries(&self.temporary), Vec::<PathBuf>::new(), "nothing is left");
        assert_eq!(Self::entries(self.scene.folder()), Vec::<PathBuf>::new(), "nothing was made where it was started");
    }
}

#[tokio::test]
async fn demo_serves_the_day_and_leaves_nothing_behind() {
    let demo = Demo::start();
    assert!(demo.page().await.contains("<h1 id=\"needs-title\">4 things wait for you</h1>"));
    demo.end();
    Scene::new().run(&["demo", "--no-open", "--listen", "0.0.0.0:0"]).expect(1).says(&["loopback interface"]);
}

#[tokio::test]
async fn the_day_of_the_demo_has_just_ended_on_every_face() {
    let demo = Demo::start();
    let (log, named) = (demo.log(), demo.log().replace("log.db", "crewlog.toml"));
    let run = |words: &[&str]| demo.scene.run(&[&["--store", &log, "--config", &named], words].concat()).expect(0);
    let page = demo.page().await;
    let printed = format!("crewlog --store {log} --config {named} answer a6 allow");
    assert!(page.contains(&printed), "the page prints the command for any folder: {page}");
    let (_, day) = recorded(&scene()).await;
    let length = day[day.len() - 1].created_at.since(day[0].created_at);
    let store = EventStore::open(&log).await.expect("the log opens");
    let page = store.read(&Query::all(), Range::default(), PAGE_EVENTS_MAX).await.expect("the log can be read");
    let (first, last) = (page.events[0].created_at, page.events[day.len() - 1].created_at);
    assert_eq!(last.since(first), length, "all times are moved alike");
    assert!(store.now().since(last) <= DEADLINE, "{last:?} is now");
    run(&["replay", "--verify"]);
    run(&["db", "check"]);
    // Times within events are moved too: the permission was asked 16 minutes before the end of the day.
    let inbox = run(&["inbox", "-o", "json"]).json();
    let age = inbox["items"][0]["age_ms"].as_u64().expect("an age") / 60_000;
    assert!((15..=17).contains(&age), "{inbox:#}");
    let agents = run(&["agents", "-o", "json"]).json();
    assert!(agents["agents"].as_array().expect("a list").iter().all(|agent| agent["liveness"] != "lost"), "{agents:#}");
    store.close().await;
    demo.end();
}

/// The person answers on the log of the demo, like another process, and the demo's own planner continues.
#[tokio::test]
async fn plans_of_the_demo_go_on_as_in_any_log() {
    let demo = Demo::start();
    let (_, day) = recorded(&scene()).await;
    let store = EventStore::open(&demo.log()).await.expect("the log opens");
    assert_eq!(
        store.head().await.expect("the log can be read").0,
        day.len() as i64 + 1,
        "an agreement; nobody is found lost"
    );
    let end = store.now();

    let plan = "iso-week-dates-7k2m";
    let tags = vec![plan_tag(plan), format!("project:{PROJECT}")];
    let mut planner = planner_of(&store, plan, tags.clone()).await.expect("the plan is there");
    planner.catch_up().await.expect("the plan can be read");
    let question = planner.handler().state().open_questions().next().expect("the plan asks").id;
    let answer = Command::Answer { question, answer: "1.4.0".into() };
    planner.execute(answer, &Cause::request()).await.expect("the question is open");
    let task = |name| planner.handler().state().task_named(name).expect("the plan has the task");
    let (next, after) = (task("T16"), task("T17").plan.id);
    let life = LivenessLock::begin(&demo.scene.around().join("workers")).expect("the folder can be written");
    let mut claim = claim_of(&store, plan, next.plan.id, tags);
    let done = Ending::Completed { result: "done".into(), run: None };
    human::report(&mut claim, next.attempts, &store, &life, done).await.expect("nobody holds it");

    let dispatches = Query::aggregate(event::STREAM, plan).of_type("TaskDispatched");
    let mut news = pin!(store.follow(&dispatches, Start::After(planner.position())));
    let dispatched = tokio::time::timeout(DEADLINE, async {
        while let Some(recorded) = news.next().await {
            let recorded = recorded.expect("the log can be read");
            if matches!(recorded.decode(), Ok(Event::TaskDispatched { task_id, .. }) if task_id == after) {
                return recorded;
            }
        }
        panic!("the log ended");
    });
    let at = dispatched.await.expect("the demo's planner dispatches the next task").created_at;
    assert!(at.since(end) <= DEADLINE, "{at:?} is long after {end:?}");
    // Another process that has the log open makes files in the folder while it is removed.
    store.close().await;
    demo.end();
}
