//! A log with a plan, and the processes that work on it. It decides nothing and checks nothing.

use std::fs::File;
use std::future::Future;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::planning;
use crewlog_executors::plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::run::GRACE;
use crewlog_executors::shell::Shell;
use crewlog_executors::supervisor::{Supervisor, SupervisorProgram};
use crewlog_executors::worker::{InterruptedTask, Scope, Worker};
use crewlog_mq::{
    Append, Cause, Clock, Error, EventStore, Expected, NewEvent, Options, Query, Range, Recorded, Timestamp,
};
use crewlog_planner::claim::{Executor, TaskEvent};
use crewlog_planner::event::{Command, Event, PlannerConfig, plan_tag};
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crewlog_stage::cluster::Database;

pub const PLAN: &str = "p";

/// Far longer than any step takes; only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The output of `future`; a panic if it hangs.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

/// The result of `work`, which may block; if it hangs, it blocks only its own thread.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = oneshot::channel();
    std::thread::spawn(move || sender.send(work()));
    soon(result).await.unwrap()
}

/// The first line that arrives through a pipe, and the rest of it.
pub async fn first_line(pipe: PathBuf) -> (String, BufReader<File>) {
    blocking(move || {
        let mut reader = BufReader::new(File::open(pipe).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line, reader)
    })
    .await
}

/// Reads a pipe to its end, which comes when the last process closes it.
pub async fn rest(mut reader: BufReader<File>) -> String {
    blocking(move || {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        rest
    })
    .await
}

/// A command, and its dependencies.
pub fn step(id: u64, command: &str, waits_for: &[u64]) -> TaskPlan {
    let depends_on =
        waits_for.iter().map(|before| Dependency { task: TaskId(*before), strength: Strength::Hard }).collect();
    TaskPlan {
        command: Some(command.to_owned()),
        depends_on,
        ..TaskPlan::new(TaskId(id), NodeKind::ToolCall, format!("step {id}"))
    }
}

pub struct Rig {
    pub store: EventStore,
    pub folder: TempDir,
}

/// The URL of a new log: a file in the folder, or with `CREWLOG_TEST_RIG=postgres` a schema on the test server.
pub fn new_log(folder: &TempDir) -> String {
    match std::env::var("CREWLOG_TEST_RIG").as_deref() {
        Ok("postgres") => Database::new().url(),
        _sqlite => folder.path().join("log").to_str().unwrap().to_owned(),
    }
}

impl Rig {
    /// An empty log on disk.
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    async fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: EventStore::open_with(&new_log(&folder), options).await.unwrap(), folder }
    }

    /// A log on disk with the test's clock and a started plan.
    pub async fn timed(clock: &Scripted, tasks: Vec<TaskPlan>, config: PlannerConfig) -> Self {
        Self::with(clock.options()).await.planned(tasks, config).await
    }

    /// A log on disk with a started plan. Its commands run in the folder.
    pub async fn with_plan(tasks: Vec<TaskPlan>, config: PlannerConfig) -> Self {
        Self::new().await.planned(tasks, config).await
    }

    /// An existing log with a started plan. Its commands run in a folder of the rig.
    pub async fn on(store: EventStore, tasks: Vec<TaskPlan>, config: PlannerConfig) -> Self {
        Self { store, folder: tempfile::tempdir().unwrap() }.planned(tasks, config).await
    }

    async fn planned(self, tasks: Vec<TaskPlan>, config: PlannerConfig) -> Self {
        let rig = self;
        let config = PlannerConfig { folder: Some(rig.folder.path().to_str().unwrap().to_owned()), ..config };
        rig.plan(tasks, config).await;
        rig
    }

    async fn plan(&self, tasks: Vec<TaskPlan>, config: PlannerConfig) {
        let planned =
            NewEvent::of(&Event::planned(tasks, config), Cause::request().metadata()).unwrap().with_tags(tags());
        let stream = crewlog_planner::event::STREAM;
        self.store.append(Append::to(stream, PLAN, Expected::NoStream, vec![planned])).await.unwrap();
        let recorded = self.recorded(&Query::aggregate(stream, PLAN)).await.remove(0);
        let mut planner = plans::planner_of(&self.store, PLAN, tags()).await.unwrap();
        planner.execute(Command::Continue, &Cause::event(&recorded)).await.unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A named pipe, which a command opens and a test reads to its end.
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    pub fn life(&self) -> LivenessLock {
        LivenessLock::begin(&self.path("workers")).unwrap()
    }

    pub async fn order(&self, command: Command) {
        let mut planner = plans::planner_of(&self.store, PLAN, tags()).await.unwrap();
        planner.execute(command, &Cause::request()).await.unwrap();
    }

    pub fn host(&self) -> JoinHandle<Result<(), Error>> {
        let taken_in = watch::channel(crewlog_mq::Position(0)).0;
        tokio::spawn(planning::host(self.store.clone(), PLAN.to_owned(), taken_in))
    }

    /// A host of all plans.
    pub fn host_all(&self) -> JoinHandle<Result<(), Error>> {
        tokio::spawn(planning::host_all(self.store.clone(), watch::channel(crewlog_mq::Position(0)).0))
    }

    pub fn worker(&self, jobs: usize) -> RunningWorker {
        self.worker_with(jobs, Vec::new())
    }

    pub fn worker_with(&self, jobs: usize, env: Vec<(String, String)>) -> RunningWorker {
        self.worker_of(Scope::Plan(PLAN.to_owned()), self.life(), (jobs, InterruptedTask::Rerun), env)
    }

    /// A worker that finds tasks whose holder was lost.
    pub fn worker_after(&self, interrupted: InterruptedTask) -> RunningWorker {
        self.worker_of(Scope::Plan(PLAN.to_owned()), self.life(), (1, interrupted), Vec::new())
    }

    /// A worker with this liveness lock.
    pub fn worker_as(&self, life: LivenessLock) -> RunningWorker {
        self.worker_of(Scope::Plan(PLAN.to_owned()), life, (1, InterruptedTask::Rerun), Vec::new())
    }

    /// A worker of all plans. It sees whether workers with locks in the same folder are alive.
    pub fn worker_of_all(&self, workers: &Path) -> RunningWorker {
        let life = LivenessLock::begin(workers).unwrap();
        self.worker_of(Scope::All, life, (1, InterruptedTask::Rerun), Vec::new())
    }

    fn worker_of(
        &self,
        scope: Scope,
        life: LivenessLock,
        (jobs, interrupted): (usize, InterruptedTask),
        env: Vec<(String, String)>,
    ) -> RunningWorker {
        let shell = Shell { supervisor: supervisor(), env, timeout: PATIENCE, grace: GRACE };
        let roster = Roster {
            shell,
            takes_commands: true,
            agents: Vec::new(),
            registry: None,
            knows_tools: true,
            trust: None,
            places: None,
            limits: None,
            leaves_limits: false,
            outputs: None,
        };
        let worker = Worker::new(self.store.clone(), roster, life, jobs, interrupted);
        let (stop, is_stopped) = watch::channel(false);
        RunningWorker { task: tokio::spawn(worker.run(scope, is_stopped)), stop }
    }

    /// Waits until the plan has ended, and returns its events.
    pub async fn end(&self) -> Vec<Event> {
        let query = Query::aggregate(crewlog_planner::event::STREAM, PLAN);
        self.follow(&query, |event| matches!(event, Event::PlanningCompleted { .. })).await
    }

    /// Waits for an event of the plan, and returns its events up to it.
    pub async fn until_plan(&self, is_it: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.follow(&Query::aggregate(crewlog_planner::event::STREAM, PLAN), is_it).await
    }

    /// Waits for an event of a task, and returns the task's events up to it.
    pub async fn until(&self, task: u64, is_it: impl Fn(&TaskEvent) -> bool) -> Vec<TaskEvent> {
        self.follow(&task_query(task), is_it).await
    }

    /// Waits for an event that matches a query, and returns the matching events up to it.
    pub async fn follow<E: crewlog_mq::Event>(&self, query: &Query, is_last: impl Fn(&E) -> bool) -> Vec<E> {
        let mut events = self.store.subscribe::<E>(query).unwrap();
        let mut seen = Vec::new();
        let all = async {
            while !seen.last().is_some_and(&is_last) {
                seen.push(events.next().await.unwrap().unwrap().event);
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            let types =
                self.recorded(&Query::all()).await.into_iter().map(|event| (event.aggregate_id, event.event_type));
            panic!(
                "the event does not come; {} were read, and the log has {:?}",
                seen.len(),
                types.collect::<Vec<_>>()
            );
        }
        seen
    }

    pub async fn task_events(&self, task: u64) -> Vec<TaskEvent> {
        self.store.load_events(&task_query(task), None).await.unwrap()
    }

    pub async fn recorded(&self, query: &Query) -> Vec<Recorded> {
        let page = self.store.read(query, Range::default(), 1_000).await.unwrap();
        assert!(!page.more);
        page.events
    }
}

pub fn task_query(task: u64) -> Query {
    Query::aggregate(crewlog_planner::claim::STREAM, &crewlog_planner::claim::aggregate_id(PLAN, TaskId(task)))
}

pub fn tags() -> Vec<String> {
    vec![plan_tag(PLAN)]
}

/// The real program, as every worker starts it.
pub fn supervisor() -> Supervisor {
    Supervisor::new(SupervisorProgram { path: program().to_owned(), args: vec!["supervise".into()] }, None)
}

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crewlog"))
}

pub fn executor(worker: &str) -> Executor {
    Executor { name: "shell".into(), host: "elsewhere".into(), worker: worker.into() }
}

pub struct RunningWorker {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), Error>>,
}

impl RunningWorker {
    /// Asks it to end, and waits until it has ended.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        soon(self.task).await.unwrap().unwrap();
    }
}

/// A clock that moves only on request.
#[derive(Clone, Default)]
pub struct Scripted(Arc<AtomicI64>);

impl Scripted {
    pub fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }

    pub fn options(&self) -> Options {
        Options { clock: Arc::new(self.clone()), ..Options::default() }
    }
}

impl Clock for Scripted {
    fn wall(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst).unsigned_abs())
    }
}
