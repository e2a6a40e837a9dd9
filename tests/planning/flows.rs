//! Sub-plans and requests between agents, on a real log with real workers: results propagate up, cancellations down, time runs
//! out, and a worker that takes over from another repeats nothing.

use std::time::Duration;

use crewlog_executors::agent::{Agent, Program, PromptBy};
use crewlog_executors::agents::PlansByModel;
use crewlog_executors::planning;
use crewlog_executors::roster::Roster;
use crewlog_executors::run::GRACE;
use crewlog_executors::shell::Shell;
use crewlog_executors::worker::{InterruptedTask, Scope, Worker};
use crewlog_mq::{Error, Event as _, EventStore, Position, Query, Range};
use crewlog_planner::agents::AgentPlan;
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::event::{Command, Event, Outcome, PlannerConfig, STREAM, TaskStatus};
use crewlog_planner::plan::{FailurePolicy, NodeKind, SubPlan, TaskId, TaskPlan};
use crewlog_planner::protocol::AgentType;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::executors::rig::{PLAN, Rig, blocking, first_line, rest, soon, step, supervisor};
use crewlog_stage::backends::logs;

/// A task with a sub-plan.
pub(super) fn left_to(id: u64, text: &str, agent: Option<AgentType>) -> TaskPlan {
    let agent = agent.map(|agent| agent.as_str().to_owned());
    let sub_plan = Some(SubPlan { text: text.to_owned(), agent, request: None });
    TaskPlan { sub_plan, ..TaskPlan::new(TaskId(id), NodeKind::Processing, format!("step {id}")) }
}

/// A tactical agent's task that asks the perception agent for a location.
fn asks(timeout_ms: u64) -> TaskPlan {
    let plan = format!(
        r#"{{"steps": [{{"id": "ask", "description": "ask", "request": {{"target_agent": "perception",
            "request": {{"locate": {{"entity": "struct User"}}}}, "timeout_ms": {timeout_ms}}}}}],
            "resources": {{"agent_types": ["perception"]}}}}"#
    );
    let plan = AgentPlan::read(&plan).unwrap();
    plan.compile(AgentType::Tactical, &ToolRegistry::coding()).unwrap().tasks.remove(0)
}

/// All processes that work on a plan, until dropped.
pub(super) struct Crew {
    host: JoinHandle<Result<(), Error>>,
    worker: JoinHandle<Result<(), Error>>,
    stop: watch::Sender<bool>,
}

impl Crew {
    /// With an agent that runs this line in `sh`, if given.
    pub(super) fn of(rig: &Rig, agent: Option<&str>) -> Self {
        Self::scoped(rig, agent, PLAN)
    }

    /// All processes for another plan of the rig's log.
    pub(super) fn scoped(rig: &Rig, agent: Option<&str>, plan: &str) -> Self {
        Self::by(rig, agent, plan, |worker| worker)
    }

    /// All processes for the rig's plan, with agents that plan by a model.
    pub(super) fn planning_by(rig: &Rig, model: PlansByModel) -> Self {
        Self::by(rig, None, PLAN, |worker| worker.planning_by(model))
    }

    fn by(rig: &Rig, agent: Option<&str>, plan: &str, equip: impl FnOnce(Worker) -> Worker) -> Self {
        let agent = agent.map(|line| Agent {
            name: "finder".into(),
            kinds: Vec::new(),
            program: Program::Shell(line.to_owned()),
            prompt: PromptBy::Stdin,
            env: Vec::new(),
            timeout: None,
            jobs: 8,
            rate_limited: Vec::new(),
            for_person: Vec::new(),
            budget_per_day: None,
            passes: None,
            grace: None,
            resume: None,
            consent: None,
        });
        let shell = Shell { supervisor: supervisor(), env: Vec::new(), timeout: Duration::from_secs(60), grace: GRACE };
        let agents = agent.into_iter().collect();
        let roster = Roster {
            shell,
            takes_commands: true,
            agents,
            registry: Some(ToolRegistry::coding()),
            knows_tools: true,
            trust: None,
            places: None,
            limits: None,
            leaves_limits: false,
            outputs: None,
        };
        // One slot: a waiting task must not occupy it.
        let worker = equip(Worker::new(rig.store.clone(), roster, rig.life(), 1, InterruptedTask::Report));
        let (stop, is_stopped) = watch::channel(false);
        let scope = Scope::Plan(plan.to_owned());
        let host = planning::host(rig.store.clone(), plan.to_owned(), watch::channel(Position(0)).0);
        Self { host: tokio::spawn(host), worker: tokio::spawn(worker.run(scope, is_stopped)), stop }
    }

    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        soon(self.worker).await.unwrap().unwrap();
        self.host.abort();
    }
}

pub(super) async fn events<E: crewlog_mq::Event>(store: &EventStore, stream: &str, aggregate: &str) -> Vec<E> {
    store.load_events(&Query::aggregate(stream, aggregate), None).await.unwrap()
}

/// Waits for an event of an aggregate, and returns the events up to it.
pub(super) async fn until<E: crewlog_mq::Event>(
    store: &EventStore,
    stream: &str,
    aggregate: &str,
    is_last: impl Fn(&E) -> bool,
) -> Vec<E> {
    let mut events = store.subscribe::<E>(&Query::aggregate(stream, aggregate)).unwrap();
    let mut seen = Vec::new();
    soon(async {
        while !seen.last().is_some_and(&is_last) {
            seen.push(events.next().await.unwrap().unwrap().event);
        }
    })
    .await;
    seen
}

pub(super) async fn child_end(rig: &Rig, child: &str) -> Outcome {
    let is_end = |event: &Event| matches!(event, Event::PlanningCompleted { .. });
    let events = until(&rig.store, STREAM, child, is_end).await;
    let Some(Event::PlanningCompleted { outcome, .. }) = events.last() else { unreachable!("it is the last") };
    *outcome
}

/// The end of a task of the plan: its status, and its result or error.
pub(super) fn ended(events: &[Event], id: u64) -> (TaskStatus, String) {
    let mut ends = events.iter().filter_map(|event| match event {
        Event::TaskStatusUpdated { task_id, status, result, error, .. } if *task_id == TaskId(id) => {
            Some((*status, result.clone().or(error.clone()).unwrap_or_default()))
        }
        _other => None,
    });
    ends.next_back().expect("it has ended")
}

pub(super) async fn plan_of(tasks: Vec<TaskPlan>) -> Rig {
    Rig::with_plan(tasks, PlannerConfig::default()).await
}

async fn plan_on(store: EventStore, tasks: Vec<TaskPlan>) -> Rig {
    Rig::on(store, tasks, PlannerConfig::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_propagate_up_through_two_levels_of_sub_plans() {
    for (store, _on) in logs().await {
        let rig = plan_on(
            store,
            vec![
                left_to(1, "1. Run `echo deep >> side; echo deep`\n2. Run `echo last`\n", Some(AgentType::Tactical)),
                left_to(2, "Run `echo by nobody`", None),
            ],
        )
        .await;
        let crew = Crew::of(&rig, None);
        let end = rig.end().await;
        crew.stop().await;
        let (status, result) = ended(&end, 1);
        assert_eq!(status, TaskStatus::Completed);
        assert_eq!(result, "p.1-1: 2 tasks: 2 completed\n\n2 (Run `echo last`):\nlast");
        assert!(ended(&end, 2).1.contains("by nobody"), "{:?}", ended(&end, 2));
        assert_eq!(rig.text("side"), "deep\n");
        let child: Vec<Event> = events(&rig.store, STREAM, "p.1-1").await;
        let Event::TasksPlanned { origin, tasks, .. } = &child[0] else { panic!("{child:?}") };
        assert_eq!(origin.agent.as_ref().unwrap().agent, AgentType::Tactical);
        assert_eq!((origin.depth, origin.parent.as_ref().unwrap().plan.as_str()), (1, PLAN));
        assert_eq!(tasks[0].tool.as_deref(), Some("run_command"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sub_plan_fails_its_task_with_the_error() {
    for (store, _on) in logs().await {
        let rig = plan_on(store, vec![left_to(1, "Run `echo oh no; exit 3`", None)]).await;
        let crew = Crew::of(&rig, None);
        let end = rig.end().await;
        crew.stop().await;
        let (status, error) = ended(&end, 1);
        assert_eq!(status, TaskStatus::Failed);
        assert!(error.contains("p.1-1: 1 task: 1 failed; it failed") && error.contains("oh no"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_a_task_cancels_its_sub_plan_and_the_tasks_running_in_it() {
    for (store, _on) in logs().await {
        let rig = plan_on(store, vec![left_to(1, "Run `exec 9> pipe; echo up >&9; sleep 1000 & wait`", None)]).await;
        let pipe = rig.pipe("pipe");
        let crew = Crew::of(&rig, None);
        let (up, reader) = first_line(pipe).await;
        assert_eq!(up, "up\n");
        rig.order(Command::Cancel { task: Some(TaskId(1)), reason: "no longer wanted".into() }).await;
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Cancelled);
        assert_eq!(rest(reader).await, "", "nothing of it is left");
        crew.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_plan_of_a_task_cancelled_while_no_worker_runs_ends_with_the_next_worker() {
    for (store, _on) in logs().await {
        let rig = plan_on(store, vec![left_to(1, "Think about it", None), step(2, "true", &[])]).await;
        let crew = Crew::of(&rig, None);
        until(&rig.store, STREAM, "p.1-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
        crew.stop().await;
        rig.order(Command::Cancel { task: Some(TaskId(1)), reason: "no longer wanted".into() }).await;
        let crew = Crew::of(&rig, None);
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Cancelled);
        crew.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_plan_that_exceeds_its_tasks_time_limit_is_cancelled() {
    for (store, _on) in logs().await {
        let task = TaskPlan { timeout_ms: Some(300), retry: Some(0), ..left_to(1, "Think about it", None) };
        let rig = plan_on(store, vec![task]).await;
        let crew = Crew::of(&rig, None);
        let end = rig.end().await;
        let (status, error) = ended(&end, 1);
        assert_eq!(status, TaskStatus::TimedOut);
        assert!(error.contains("timed out: plan p.1-1 had not ended after 300 ms"), "{error}");
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Cancelled);
        crew.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_continues_the_sub_plan_of_another_without_repeating_work() {
    for (store, _on) in logs().await {
        let text = "1. Run `echo one >> side`\n2. Run `exec 9> pipe; echo up >&9; read line < go; echo two >> side` (rerun: safe)\n";
        let rig = plan_on(store, vec![left_to(1, text, None)]).await;
        let (pipe, go) = (rig.pipe("pipe"), rig.pipe("go"));
        let first = Crew::of(&rig, None);
        first_line(pipe.clone()).await;
        first.stop().await;
        let second = Crew::of(&rig, None);
        first_line(pipe).await;
        std::fs::write(go, "go\n").unwrap();
        let end = rig.end().await;
        second.stop().await;
        assert_eq!(ended(&end, 1).0, TaskStatus::Completed);
        assert_eq!(rig.text("side"), "one\ntwo\n");
        let child: Vec<Event> = events(&rig.store, STREAM, "p.1-1").await;
        let n_planned = child.iter().filter(|event| event.event_type() == "TasksPlanned").count();
        assert_eq!(n_planned, 1, "the plan is made once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_fails_if_its_agent_cannot_plan_it() {
    for (store, _on) in logs().await {
        let rig = plan_on(store, vec![left_to(1, "Use edit_code", Some(AgentType::Perception))]).await;
        let crew = Crew::of(&rig, None);
        let end = rig.end().await;
        crew.stop().await;
        let (status, error) = ended(&end, 1);
        assert_eq!(status, TaskStatus::Failed);
        assert!(
            error.contains("the tool edit_code belongs to tactical agents: a perception plan cannot use it"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_by_a_sub_plan_of_the_other_agent() {
    for (store, _on) in logs().await {
        let rig = plan_on(store, vec![asks(60_000)]).await;
        let crew = Crew::of(&rig, Some("echo src/user.rs:3"));
        let end = rig.end().await;
        crew.stop().await;
        let (status, result) = ended(&end, 1);
        assert_eq!(status, TaskStatus::Completed);
        assert!(result.contains("src/user.rs:3"), "{result}");
        let answering: Vec<Event> = events(&rig.store, STREAM, "p.1-1").await;
        let Event::TasksPlanned { origin, tasks, .. } = &answering[0] else { panic!("{answering:?}") };
        assert_eq!(origin.planned_by.as_deref(), Some("request p/ask"));
        let agent = origin.agent.as_ref().unwrap();
        assert_eq!(agent.agent, AgentType::Perception);
        assert!(
            tasks.iter().all(|task| agent.tools.contains(task.tool.as_ref().unwrap())),
            "by its own tools: {tasks:?}"
        );
        // Request and answer have one correlation id.
        let of_type = |aggregate: &str, event_type: &str| Query {
            event_type: Some(event_type.to_owned()),
            ..Query::aggregate(STREAM, aggregate)
        };
        let mut ids = Vec::new();
        for query in [of_type(PLAN, "TaskDispatched"), of_type("p.1-1", "TasksPlanned")] {
            let found = rig.store.read(&query, Range::default(), 1).await.unwrap().events.remove(0);
            ids.push(found.metadata().unwrap().correlation_id);
        }
        assert_eq!(ids[0], ids[1]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unanswered_request_times_out_and_a_late_answer_is_ignored() {
    for (store, _on) in logs().await {
        // The last task belongs to a person, so the plan has not ended when the answer arrives.
        let asking = TaskPlan { on_failure: Some(FailurePolicy::Continue), ..asks(2_000) };
        let for_ann =
            TaskPlan { assignee: Some("ann".into()), ..TaskPlan::new(TaskId(3), NodeKind::Processing, "look at it") };
        let rig = plan_on(store, vec![asking, step(2, "echo on", &[1]), for_ann]).await;
        rig.pipe("go");
        let crew = Crew::of(&rig, Some("read line < go; echo too late"));
        let is_timed_out = |event: &Event| {
            matches!(event, Event::TaskStatusUpdated { task_id: TaskId(1), status: TaskStatus::TimedOut, .. })
        };
        until(&rig.store, STREAM, PLAN, is_timed_out).await;
        let go = rig.path("go");
        blocking(move || std::fs::write(&go, "go\n").unwrap()).await;
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Completed, "the late answer is recorded");
        let has_gone_on = |event: &Event| {
            matches!(event, Event::TaskStatusUpdated { task_id: TaskId(2), status: TaskStatus::Completed, .. })
        };
        until(&rig.store, STREAM, PLAN, has_gone_on).await;
        rig.order(Command::Cancel { task: Some(TaskId(3)), reason: "enough".into() }).await;
        let end = rig.end().await;
        crew.stop().await;
        let expected = "timed out: plan p.1-1 had not ended after 2 s, the task's time-out";
        assert_eq!(ended(&end, 1), (TaskStatus::TimedOut, expected.into()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_cancelled_when_the_requesting_plan_ends() {
    let rig = plan_of(vec![asks(300)]).await;
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    assert_eq!(ended(&end, 1).0, TaskStatus::TimedOut);
    assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Cancelled);
    crew.stop().await;
}
