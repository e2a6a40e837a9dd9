//! A rich log made by real handlers, and the means to recreate it event by event. It checks nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::retries::retries;
use crewlog_executors::planning;
use crewlog_executors::plans;
use crewlog_mq::{
    Append, Cause, Clock, EventStore, Expected, NewEvent, Options, PAGE_EVENTS_MAX, Query, Range, Recorded, Runner,
    Sqlite, Timestamp,
};
use crewlog_planner::claim::{self, Claim, Ending, Executor, TaskCommand, TaskLease};
use crewlog_planner::event::{Command, FailureClass, PlannerConfig, QuestionId, Usage, plan_tag};
use crewlog_planner::plan::{FailurePolicy, TaskId};

/// A clock that moves only on request.
#[derive(Clone, Default)]
pub struct Scripted(Arc<AtomicI64>);

impl Scripted {
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    pub fn pass(&self, ms: i64) {
        self.0.fetch_add(ms * 1_000, Ordering::SeqCst);
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

/// A log with events some time apart.
struct World {
    store: EventStore,
    clock: Scripted,
    projects: BTreeMap<String, String>,
}

impl World {
    async fn new() -> Self {
        let clock = Scripted::default();
        clock.set(Timestamp(1_763_712_000_000_000));
        let store = EventStore::on(Sqlite::in_memory(clock.options()).await.unwrap());
        Self { store, clock, projects: BTreeMap::new() }
    }

    fn tags(&self, plan: &str) -> Vec<String> {
        vec![plan_tag(plan), format!("project:{}", self.projects[plan])]
    }

    async fn plan(&mut self, plan: &str, project: &str, on_failure: FailurePolicy, text: &str) {
        self.projects.insert(plan.to_owned(), project.to_owned());
        let folder = Some(format!("/trees/{project}"));
        let config = PlannerConfig { folder, on_failure, retry: retries(1), ..PlannerConfig::default() };
        let user_input = text.to_owned();
        self.order(plan, Command::of_text(user_input, config, true).unwrap()).await;
    }

    async fn order(&self, plan: &str, command: Command) {
        self.clock.pass(7);
        let mut planner = plans::planner_of(&self.store, plan, self.tags(plan)).await.unwrap();
        planner.execute(command, &Cause::request()).await.unwrap();
    }

    async fn cancel(&self, plan: &str, task: Option<u64>) {
        self.order(plan, Command::Cancel { task: task.map(TaskId), reason: "not wanted".into() }).await;
    }

    async fn retry(&self, plan: &str) {
        self.order(plan, Command::Retry { task: None }).await;
    }

    async fn task(&self, plan: &str, task: u64, command: TaskCommand) {
        self.clock.pass(13);
        let aggregate = claim::aggregate_id(plan, TaskId(task));
        let mut claim = Runner::<TaskLease>::new(self.store.clone(), claim::STREAM, &aggregate, self.tags(plan));
        claim.execute(command, &Cause::request()).await.unwrap();
    }

    async fn attempt(&self, plan: &str, task: u64) -> u32 {
        let mut planner = plans::planner_of(&self.store, plan, self.tags(plan)).await.unwrap();
        planner.catch_up().await.unwrap();
        planner.handler().state().task(TaskId(task)).unwrap().attempts
    }

    async fn claim(&self, plan: &str, task: u64, name: &str) {
        let executor = Executor { name: name.into(), host: "laptop".into(), worker: name.into() };
        let (attempt, now) = (self.attempt(plan, task).await, self.store.now());
        self.task(plan, task, TaskCommand::Claim(Claim { attempt, executor, now, ..Claim::default() })).await;
    }

    async fn end(&self, plan: &str, task: u64, ending: Ending) {
        let aggregate = claim::aggregate_id(plan, TaskId(task));
        let mut claim = Runner::<TaskLease>::new(self.store.clone(), claim::STREAM, &aggregate, Vec::new());
        claim.catch_up().await.unwrap();
        let epoch = claim.handler().epoch;
        self.task(plan, task, TaskCommand::End { epoch, usage: Usage::default(), ending }).await;
        self.take_in(plan).await;
    }

    async fn done(&self, plan: &str, task: u64) {
        self.end(plan, task, Ending::Completed { result: "ok".into(), run: None }).await;
    }

    async fn fail(&self, plan: &str, task: u64, class: FailureClass) {
        self.end(plan, task, Ending::Failed { error: "it broke".into(), class, run: None }).await;
        let mut planner = plans::planner_of(&self.store, plan, self.tags(plan)).await.unwrap();
        planner.catch_up().await.unwrap();
        if planner.handler().state().task(TaskId(task)).is_some_and(|task| task.retry_ms.is_some()) {
            self.order(plan, Command::RetryNow { task: TaskId(task) }).await;
        }
    }

    async fn report(&self, plan: &str, task: u64, name: &str) {
        let executor = Executor { name: name.into(), host: "laptop".into(), worker: name.into() };
        let (attempt, now) = (self.attempt(plan, task).await, self.store.now());
        let ending = Ending::Completed { result: "done by hand".into(), run: None };
        self.task(
            plan,
            task,
            TaskCommand::Report { claim: Claim { attempt, executor, now, ..Claim::default() }, ending },
        )
        .await;
        self.take_in(plan).await;
    }

    async fn answer(&mut self, plan: &str, question: u64, answer: &str) {
        self.order(plan, Command::Answer { question: QuestionId(question), answer: answer.to_owned() }).await;
        self.take_in(plan).await;
    }

    async fn take_in(&self, plan: &str) {
        self.clock.pass(3);
        planning::catch_up(&self.store, plan, self.tags(plan)).await.unwrap();
    }
}

/// Several plans in two projects: overlapping files, failures, a cancel, questions, an expired lease, a retry.
pub async fn rich_log() -> Vec<Recorded> {
    let mut world = World::new().await;
    let text = "# One\n\n- [x] Prepare the ground\n- [ ] Implement it in `src/a.rs`\n- [ ] Refactor src/*.rs\n- [ ] Run `touch src/b.rs`\n- [ ] Describe it in docs/a.md\n";
    world.plan("one", "tree", FailurePolicy::SkipDependants, text).await;
    world.claim("one", 2, "ana").await;
    world.claim("one", 3, "ben").await;
    world.claim("one", 4, "shell").await;
    world
        .plan("two", "tree", FailurePolicy::Ask, "- Which one is it?\n- Implement src/a.rs anew\n- Test docs/*.md\n")
        .await;
    world.claim("two", 2, "eve").await;
    world.answer("two", 1, "the first").await;
    world.fail("one", 4, FailureClass::TimedOut).await;
    world.claim("one", 4, "shell").await;
    world.end("one", 3, Ending::Asked { question: "All of them?".into(), default: None }).await;
    world.done("one", 2).await;
    world.plan("three", "other", FailurePolicy::Stop, "- Implement src/a.rs\n- Fix src/a.rs\n- Write src/c.rs\n").await;
    world.claim("three", 1, "ana").await;
    world.claim("three", 2, "ben").await;
    world.answer("one", 1, "yes").await;
    world.claim("one", 3, "ben").await;
    world.fail("one", 4, FailureClass::TimedOut).await;
    world.cancel("one", Some(3)).await;
    world.end("one", 3, Ending::Stopped { reason: "cancelled".into() }).await;
    world.report("one", 5, "human").await;
    world.end("two", 2, Ending::Released { reason: "interrupted".into(), cut_off: false }).await;
    world.claim("two", 2, "eve").await;
    world.claim("two", 3, "ben").await;
    world.fail("two", 2, FailureClass::Task).await;
    world.clock.pass(200_000);
    // The lease of the first has expired.
    world.claim("three", 1, "eve").await;
    world.fail("three", 2, FailureClass::Task).await;
    world.retry("one").await;
    world.claim("one", 3, "ana").await;
    world.claim("one", 4, "shell").await;
    world.end("one", 4, Ending::Released { reason: "interrupted".into(), cut_off: false }).await;
    world.claim("one", 4, "shell").await;
    world.done("one", 4).await;
    world.done("one", 3).await;
    world.answer("two", 2, "retry").await;
    world.claim("two", 2, "ana").await;
    world.cancel("three", None).await;
    world.done("two", 3).await;
    world.done("two", 2).await;
    everything(&world.store, &Query::all()).await
}

/// The appends of a log, each with its events.
pub fn appends(log: &[Recorded]) -> Vec<&[Recorded]> {
    log.chunk_by(|a, b| a.append_start == b.append_start).collect()
}

/// Repeats appends: the same ids, contents and times.
pub async fn append_again(store: &EventStore, clock: &Scripted, appends: &[&[Recorded]]) {
    for events in appends {
        clock.set(events[0].created_at);
        let mut append = Append::default();
        for of_one in events.chunk_by(|a, b| (&a.stream_id, &a.aggregate_id) == (&b.stream_id, &b.aggregate_id)) {
            let (stream, aggregate) = (&of_one[0].stream_id, &of_one[0].aggregate_id);
            append = append.and(stream, aggregate, Expected::Any, of_one.iter().map(again).collect());
        }
        store.append(append).await.unwrap();
    }
}

fn again(recorded: &Recorded) -> NewEvent {
    let Recorded { event_type, event_version, data, .. } = recorded;
    let event = NewEvent::from_json(event_type, event_version, data.clone(), &recorded.metadata().unwrap()).unwrap();
    event.with_id(recorded.event_id).with_tags(recorded.tags.iter().cloned())
}

pub async fn everything(store: &EventStore, query: &Query) -> Vec<Recorded> {
    let page = store.read(query, Range::default(), PAGE_EVENTS_MAX).await.unwrap();
    assert!(!page.more);
    page.events
}
