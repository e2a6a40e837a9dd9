//! Properties that a plan shares with its sub-plans (budget, time, pauses, end), and separate ones.

use std::sync::Arc;

use crewlog_executors::agents::PlansByModel;
use crewlog_executors::history::History;
use crewlog_executors::model::{Asker, Model, ModelError, Reply};
use crewlog_executors::plans::{planner_of, planner_of_fork};
use crewlog_executors::propagation::propagate;
use crewlog_mq::{Append, Cause, EventStore, Expected, Metadata, NewEvent};
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::event::{
    self, Budget, Command, Event, Outcome, PlannerConfig, RetryClass, TaskStatus, Usage, plan_tag, sub_plan_tags,
};
use crewlog_planner::model::{ModelParameters, ModelRequest};
use crewlog_planner::plan::{TaskId, TaskPlan};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::state::{Phase, PlannerState};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::flows::{Crew, child_end, ended, left_to, plan_of, until};
use crate::executors::rig::{PLAN, Rig, blocking, first_line, soon, step};
use crewlog_stage::backends::logs;

/// An agent that always reports a usage of 400 tokens.
const USES_400: &str = "echo well; echo 'USAGE: {\"input_tokens\": 300, \"output_tokens\": 100, \"cost\": 0.01}'";

fn of_tokens(tokens: u64) -> PlannerConfig {
    let budget = Budget { tokens: Some(tokens), ..Budget::default() };
    PlannerConfig { budget, ..PlannerConfig::default() }
}

async fn state_of(rig: &Rig, plan: &str) -> PlannerState {
    let mut planner = planner_of(&rig.store, plan, Vec::new()).await.unwrap();
    planner.catch_up().await.unwrap();
    planner.handler().state().clone()
}

fn tokens(usage: &Usage) -> u64 {
    usage.input_tokens + usage.output_tokens
}

async fn paused(rig: &Rig, plan: &str) -> String {
    let events =
        until(&rig.store, event::STREAM, plan, |event: &Event| matches!(event, Event::PlanPaused { .. })).await;
    let Some(Event::PlanPaused { reason, .. }) = events.last() else { unreachable!("it is the last") };
    reason.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_usage_of_a_nested_sub_plan_counts_once_in_each_ancestor() {
    for (store, _on) in logs().await {
        let tasks = vec![left_to(1, "Implement the parser\n", Some(AgentType::Strategic))];
        let rig = Rig::on(store, tasks, PlannerConfig::default()).await;
        let crew = Crew::of(&rig, Some(USES_400));
        let end = rig.end().await;
        crew.stop().await;
        assert_eq!(ended(&end, 1).0, TaskStatus::Completed, "{end:?}");
        for plan in ["p.1-1.1-1", "p.1-1", PLAN] {
            let spent = state_of(&rig, plan).await.spent();
            assert_eq!((tokens(&spent), spent.cost_micros), (400, 10_000), "{plan}");
        }
        let reported =
            rig.task_events(1).await.into_iter().filter(|event| matches!(event, TaskEvent::UsageReported { .. }));
        assert_eq!(reported.count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_plan_may_use_only_the_remaining_budget_of_its_parent() {
    for (store, _on) in logs().await {
        let think = "- Think about one\n- Think about two\n- Think about three\n";
        let tasks = vec![left_to(1, "- Think first\n", None), left_to(2, think, None)];
        let rig = Rig::on(store, tasks, of_tokens(1_200)).await;
        let crew = Crew::of(&rig, Some(USES_400));
        // The second waits for the first to end: the remaining budget goes to one at a time.
        let reason = paused(&rig, "p.2-1").await;
        assert!(reason.contains("the budget of 800 tokens is used up: 800 tokens spent"), "{reason}");
        let state = state_of(&rig, PLAN).await;
        assert_eq!((tokens(&state.spent()), state.phase), (400, Phase::Active));
        rig.order(Command::Cancel { task: None, reason: "it is too dear".into() }).await;
        assert_eq!(child_end(&rig, "p.2-1").await, Outcome::Cancelled);
        // The worker may first learn of the end of the task, or of its sub-plan, which the host ends too.
        let is_told = |event: &TaskEvent| matches!(event, TaskEvent::TaskStopped { .. } | TaskEvent::TaskFailed { .. });
        let told = rig.until(2, is_told).await;
        crew.stop().await;
        let [.., TaskEvent::UsageReported { usage, .. }, TaskEvent::TaskStopped { reason, .. }] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(reason, "it is too dear");
        assert_eq!(tokens(usage), 800, "what a plan has used that is ended counts too");
    }
}

/// Two sub-plans, each with a step for a person.
async fn two_within(store: EventStore) -> (Rig, Crew) {
    let ask = "- Prepare it (assignee: ann)\n";
    let rig = Rig::on(store, vec![left_to(1, ask, None), left_to(2, ask, None)], PlannerConfig::default()).await;
    let crew = Crew::of(&rig, Some(USES_400));
    for plan in ["p.1-1", "p.2-1"] {
        until(&rig.store, event::STREAM, plan, |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
    }
    (rig, crew)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_sub_plan_is_reported_and_the_others_are_paused() {
    for (store, _on) in logs().await {
        let (rig, crew) = two_within(store).await;
        crew.stop().await;
        let unreadable = NewEvent::from_json("TaskMoved", "9.0", "{}".into(), &Metadata::default()).unwrap();
        let tags = sub_plan_tags("p.1-1", PLAN, &[plan_tag(PLAN)]);
        let append = Append::to(event::STREAM, "p.1-1", Expected::Any, vec![unreadable.with_tags(tags)]);
        rig.store.append(append).await.unwrap();
        rig.order(Command::Pause { reason: "wait".into() }).await;
        let left = propagate(&rig.store, PLAN).await.unwrap();
        let left = left.iter().map(|left| left.plan.as_str()).collect::<Vec<_>>();
        assert_eq!(left, ["p.1-1"]);
        assert_eq!(state_of(&rig, "p.2-1").await.phase, Phase::Paused);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_plan_with_the_id_of_a_sub_plan_fails_the_task() {
    let rig = plan_of(vec![left_to(1, "Run `echo mine`", None)]).await;
    let mut squatter = planner_of(&rig.store, "p.1-1", vec![plan_tag("p.1-1")]).await.unwrap();
    let (user_input, config) = ("- Think about it".into(), PlannerConfig::default());
    let begin = Command::of_text(user_input, config, false).unwrap();
    squatter.execute(begin, &Cause::request()).await.unwrap();
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    let (status, error) = ended(&end, 1);
    assert_eq!(status, TaskStatus::Failed);
    assert!(error.starts_with("plan id p.1-1 is taken by an unrelated plan"), "{error}");
    assert_eq!(state_of(&rig, "p.1-1").await.phase, Phase::Active, "it is left alone");
    rig.order(Command::Retry { task: Some(TaskId(1)) }).await;
    let last =
        until(&rig.store, event::STREAM, "p.1-2", |event: &Event| matches!(event, Event::PlanningCompleted { .. }));
    last.await;
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_and_resume_propagate_except_to_separately_paused_sub_plans() {
    for (store, _on) in logs().await {
        let text = "1. Run `exec 9> pipe; echo up >&9; read line < go`\n2. Run `echo on >> side`\n";
        let tasks = vec![left_to(1, text, None), left_to(2, "- Think about it\n", None)];
        let rig = Rig::on(store, tasks, PlannerConfig::default()).await;
        let (pipe, go) = (rig.pipe("pipe"), rig.pipe("go"));
        let crew = Crew::of(&rig, None);
        first_line(pipe).await;
        until(&rig.store, event::STREAM, "p.2-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
        let mut by_hand = planner_of(&rig.store, "p.2-1", vec![plan_tag("p.2-1")]).await.unwrap();
        by_hand.execute(Command::Pause { reason: "lunch".into() }, &Cause::request()).await.unwrap();
        rig.order(Command::Pause { reason: "wait".into() }).await;
        assert_eq!(paused(&rig, "p.1-1").await, "plan p is paused");
        blocking(move || std::fs::write(go, "go\n").unwrap()).await;
        let is_done = |event: &Event| matches!(event, Event::TaskStatusUpdated { status: TaskStatus::Completed, .. });
        until(&rig.store, event::STREAM, "p.1-1", is_done).await;
        let held = state_of(&rig, "p.1-1").await;
        assert_eq!((held.phase, held.tasks[1].attempts), (Phase::Paused, 0));
        rig.order(Command::Resume).await;
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Completed);
        assert_eq!(state_of(&rig, "p.2-1").await.phase, Phase::Paused, "somebody wanted it so");
        rig.order(Command::Cancel { task: None, reason: "enough".into() }).await;
        assert_eq!(child_end(&rig, "p.2-1").await, Outcome::Cancelled);
        crew.stop().await;
        assert_eq!(rig.text("side"), "on\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_plan_paused_after_its_parent_resumed_is_resumed() {
    let rig = plan_of(vec![left_to(1, "- Think about it\n", None)]).await;
    let crew = Crew::of(&rig, None);
    until(&rig.store, event::STREAM, "p.1-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
    // From a host that read the parent plan before it was resumed.
    let mut late = planner_of(&rig.store, "p.1-1", sub_plan_tags("p.1-1", PLAN, &[])).await.unwrap();
    late.execute(Command::PauseFromParent { reason: "plan p is paused".into() }, &Cause::request()).await.unwrap();
    until(&rig.store, event::STREAM, "p.1-1", |event: &Event| matches!(event, Event::PlanResumed {})).await;
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_creates_its_own_sub_plans_and_leaves_the_parents_unchanged() {
    for (store, _on) in logs().await {
        let text = "Run `exec 9> pipe; echo up >&9; read line < go; echo $CREWLOG_PLAN >> side`";
        let tasks = vec![left_to(1, "Run `echo once >> side`", None), waits_for(left_to(2, text, None), 1)];
        let rig = Rig::on(store, tasks, PlannerConfig::default()).await;
        let (pipe, go) = (rig.pipe("pipe"), rig.pipe("go"));
        let crew = Crew::of(&rig, None);
        first_line(pipe.clone()).await;
        let head = rig.store.head().await.unwrap();
        let point = History::of(&rig.store, PLAN).await.unwrap().fork_point(&rig.store, head).await.unwrap().unwrap();
        let mut fork = planner_of_fork(&rig.store, &point, "f", vec![plan_tag("f")]);
        let (parent, at, reason) = (point.parent, point.at, "another way".to_owned());
        let command = Command::Fork { parent, at, reason, pauses: false, amendments: Vec::new() };
        fork.execute(command, &Cause::request()).await.unwrap();
        let forked = Crew::scoped(&rig, None, "f");
        // The sub-plan of the fork is a new one, and that of the parent still runs.
        until(&rig.store, event::STREAM, "f.2-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
        fork.execute(Command::Cancel { task: None, reason: "enough".into() }, &Cause::request()).await.unwrap();
        assert_eq!(child_end(&rig, "f.2-1").await, Outcome::Cancelled);
        forked.stop().await;
        assert_eq!(state_of(&rig, "p.2-1").await.phase, Phase::Active);
        blocking(move || std::fs::write(go, "go\n").unwrap()).await;
        let end = rig.end().await;
        crew.stop().await;
        assert_eq!(ended(&end, 2).0, TaskStatus::Completed);
        assert_eq!(rig.text("side"), "once\np.2-1\n", "what had ended is not done again");
        assert_eq!(state_of(&rig, "f.1-1").await.phase, Phase::Empty);
    }
}

fn waits_for(task: TaskPlan, before: u64) -> TaskPlan {
    TaskPlan { depends_on: step(0, "", &[before]).depends_on, ..task }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_plan_has_no_more_time_than_its_task() {
    let task = TaskPlan { deadline_ms: Some(600), retry: Some(0), ..left_to(1, "Think about it", None) };
    let config = PlannerConfig { deadline_ms: Some(3_600_000), ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![task], config).await;
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    let (status, error) = ended(&end, 1);
    assert!(matches!(status, TaskStatus::TimedOut | TaskStatus::Failed) && error.contains("deadline"), "{error}");
    assert_ne!(child_end(&rig, "p.1-1").await, Outcome::Completed);
    crew.stop().await;
    let given = state_of(&rig, "p.1-1").await.config.deadline_ms;
    assert!(given.is_some_and(|ms| ms <= 600), "{given:?}");
}

/// A model that never answers, and signals each request.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn ask<'a>(&'a self, _request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_can_be_cancelled_while_its_plan_is_being_requested() {
    let rig = plan_of(vec![left_to(1, "Implement the parser\n", Some(AgentType::Strategic))]).await;
    let asked = Arc::new(Notify::new());
    let retry_policy = RetryClass::Transient.policy();
    let asker = Asker::new(Arc::new(Silent(Arc::clone(&asked))), retry_policy, rig.store.clone(), "text", Vec::new());
    let parameters = ModelParameters { model: "m".into(), max_tokens: None, temperature: None };
    let crew = Crew::planning_by(&rig, PlansByModel { parameters, asker });
    soon(asked.notified()).await;
    rig.order(Command::Cancel { task: None, reason: "it takes too long".into() }).await;
    rig.until(1, |event| matches!(event, TaskEvent::TaskStopped { .. })).await;
    crew.stop().await;
    assert_eq!(state_of(&rig, "p.1-1").await.phase, Phase::Empty, "no plan was made");
}
