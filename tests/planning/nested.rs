//! What a plan and the plans within it have in common: one budget, one time, one end; and that each is its own.

use std::sync::Arc;

use crewlog_executors::agents::{PlansByModel, SharedContext, TOLD_CHARS_MAX};
use crewlog_executors::history::History;
use crewlog_executors::in_step::keep_in_step;
use crewlog_executors::model::{Asker, Model, ModelError, Patience, Reply};
use crewlog_executors::planning::{planner_of, planner_of_fork};
use crewlog_mq::{Append, Cause, EventStore, Expected, Metadata, NewEvent};
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::event::{
    self, Budget, Command, Event, Outcome, PlannerConfig, Setting, TaskStatus, Usage, plan_tag, sub_plan_tags,
};
use crewlog_planner::model::{Request, Terms};
use crewlog_planner::plan::{NodeKind, Origin, ParentTask, TaskId, TaskPlan};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::state::{Phase, PlannerState};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::flows::{Crew, child_end, ended, left_to, plan_of, until};
use crate::executors::rig::{PLAN, Rig, blocking, first_line, soon, step};
use crate::log::backends::logs;

/// An agent that says each time that it has used 400 tokens.
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
async fn what_a_plan_within_a_plan_within_a_plan_uses_up_is_counted_once_in_each() {
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
async fn a_plan_within_a_plan_may_use_what_the_one_above_has_left_and_no_more() {
    for (store, _on) in logs().await {
        let think = "- Think about one\n- Think about two\n- Think about three\n";
        let tasks = vec![left_to(1, "- Think first\n", None), left_to(2, think, None)];
        let rig = Rig::on(store, tasks, of_tokens(1_300)).await;
        let crew = Crew::of(&rig, Some(USES_400));
        // The second waits for the first to end: what is left is given to one at a time.
        let reason = paused(&rig, "p.2-1").await;
        assert!(reason.contains("the budget of 900 tokens does not suffice: 800 tokens spent"), "{reason}");
        let state = state_of(&rig, PLAN).await;
        assert_eq!((tokens(&state.spent()), state.phase()), (400, Phase::Active));
        rig.order(Command::Cancel { task: None, reason: "it is too dear".into() }).await;
        assert_eq!(child_end(&rig, "p.2-1").await, Outcome::Cancelled);
        // Whether its worker hears of the end of the task first, or of that of its plan, which the host ends too.
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

async fn configure(rig: &Rig, plan: &str, budget: Budget) {
    let mut planner = planner_of(&rig.store, plan, vec![plan_tag(plan)]).await.unwrap();
    let command = Command::Configure { changes: vec![Setting::Budget(budget)], reason: "it is too dear".into() };
    planner.execute(command, &Cause::request()).await.unwrap();
}

/// Two plans within a plan, of which each has a step that somebody else has to do.
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
async fn a_budget_that_is_set_later_holds_the_plans_within_too_and_is_shared_among_them() {
    for (store, _on) in logs().await {
        let (rig, crew) = two_within(store).await;
        let is_held = |event: &Event| matches!(event, Event::SettingsChanged { .. });
        configure(&rig, PLAN, of_tokens(1_000).budget).await;
        for plan in ["p.1-1", "p.2-1"] {
            until(&rig.store, event::STREAM, plan, is_held).await;
            assert_eq!(state_of(&rig, plan).await.config().budget.tokens, Some(500), "{plan}");
        }
        // What is lowered once more is so below, and a raise is nobody's below.
        configure(&rig, PLAN, of_tokens(700).budget).await;
        let is_350 =
            |event: &Event| matches!(event, Event::SettingsChanged { config, .. } if config.budget.tokens == Some(350));
        for plan in ["p.1-1", "p.2-1"] {
            until(&rig.store, event::STREAM, plan, is_350).await;
        }
        configure(&rig, PLAN, of_tokens(9_000).budget).await;
        assert!(keep_in_step(&rig.store, PLAN).await.unwrap().is_empty());
        crew.stop().await;
        for plan in ["p.1-1", "p.2-1"] {
            assert_eq!(state_of(&rig, plan).await.config().budget.tokens, Some(350), "{plan}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_within_that_cannot_be_read_is_told_and_the_others_are_paused() {
    for (store, _on) in logs().await {
        let (rig, crew) = two_within(store).await;
        crew.stop().await;
        let unreadable = NewEvent::from_json("TaskMoved", "9.0", "{}".into(), &Metadata::default()).unwrap();
        let tags = sub_plan_tags("p.1-1", PLAN, &[plan_tag(PLAN)]);
        let append = Append::to(event::STREAM, "p.1-1", Expected::Any, vec![unreadable.with_tags(tags)]);
        rig.store.append(append).await.unwrap();
        rig.order(Command::Pause { reason: "wait".into() }).await;
        let left = keep_in_step(&rig.store, PLAN).await.unwrap();
        let left = left.iter().map(|left| left.plan.as_str()).collect::<Vec<_>>();
        assert_eq!(left, ["p.1-1"]);
        assert_eq!(state_of(&rig, "p.2-1").await.phase(), Phase::Paused);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_somebody_else_made_is_not_taken_for_that_of_a_task() {
    let rig = plan_of(vec![left_to(1, "Run `echo mine`", None)]).await;
    let mut squatter = planner_of(&rig.store, "p.1-1", vec![plan_tag("p.1-1")]).await.unwrap();
    let (user_input, attachments, config) = ("- Think about it".into(), Vec::new(), PlannerConfig::default());
    let begin = Command::Initialize { user_input, attachments, config, parallel: false };
    squatter.execute(begin, &Cause::request()).await.unwrap();
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    let (status, error) = ended(&end, 1);
    assert_eq!(status, TaskStatus::Failed);
    assert!(error.starts_with("there is a plan p.1-1 already, and it is not of this task"), "{error}");
    assert_eq!(state_of(&rig, "p.1-1").await.phase(), Phase::Active, "it is left alone");
    rig.order(Command::Retry { task: Some(TaskId(1)) }).await;
    let last =
        until(&rig.store, event::STREAM, "p.1-2", |event: &Event| matches!(event, Event::PlanningCompleted { .. }));
    last.await;
    crew.stop().await;
}

async fn initialize(store: &EventStore, plan: &str, user_input: String) {
    let mut planner = planner_of(store, plan, vec![plan_tag(plan)]).await.unwrap();
    let (attachments, config) = (Vec::new(), PlannerConfig::default());
    let begin = Command::Initialize { user_input, attachments, config, parallel: false };
    planner.execute(begin, &Cause::request()).await.unwrap();
}

#[tokio::test]
async fn what_agents_are_told_of_a_fork_begins_with_the_history_that_it_goes_on_from() {
    let store = EventStore::in_memory().await.unwrap();
    initialize(&store, "p", "# Ship\n\n- [x] Look around\n- [ ] Think about it\n".into()).await;
    let head = store.head().await.unwrap();
    let point = History::of(&store, "p").await.unwrap().fork_point(&store, head).await.unwrap().unwrap();
    let mut fork = planner_of_fork(&store, &point, "f", vec![plan_tag("f")]);
    let (parent, at, reason) = (point.parent, point.at, "another way".to_owned());
    let command = Command::Fork { parent, at, reason, config: None, amendments: Vec::new() };
    fork.execute(command, &Cause::request()).await.unwrap();
    let told = SharedContext::read(&store, &plan_tag("f")).await.unwrap().told();
    assert_eq!(told, "f (Waiting): Ship\n- open: Think about it\n- done: Look around: done before the plan began");
}

#[tokio::test]
async fn what_agents_are_told_of_long_plans_has_an_end_and_the_newest_is_told_whole() {
    let store = EventStore::in_memory().await.unwrap();
    let tag = "project:a".to_owned();
    for n in 0..4 {
        let mut planner = planner_of(&store, &format!("p{n}"), vec![tag.clone()]).await.unwrap();
        let user_input = format!("- Think about {}\n", "much ".repeat(100)).repeat(if n == 3 { 2 } else { 200 });
        let (attachments, config) = (Vec::new(), PlannerConfig::default());
        let begin = Command::Initialize { user_input, attachments, config, parallel: false };
        planner.execute(begin, &Cause::request()).await.unwrap();
    }
    let context = SharedContext::read(&store, &tag).await.unwrap();
    let told = context.told();
    assert!(told.chars().count() <= TOLD_CHARS_MAX, "{}", told.chars().count());
    assert!(!told.contains("p0 (") && told.contains("p2 ("), "the oldest is what does not fit");
    assert_eq!(told.split("p3 (").nth(1).unwrap().matches("- open: Think").count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_plan_pauses_and_goes_on_what_is_below_it_but_not_what_somebody_paused_himself() {
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
        assert_eq!((held.phase(), held.tasks()[1].attempts), (Phase::Paused, 0));
        rig.order(Command::Resume).await;
        assert_eq!(child_end(&rig, "p.1-1").await, Outcome::Completed);
        assert_eq!(state_of(&rig, "p.2-1").await.phase(), Phase::Paused, "somebody wanted it so");
        rig.order(Command::Cancel { task: None, reason: "enough".into() }).await;
        assert_eq!(child_end(&rig, "p.2-1").await, Outcome::Cancelled);
        crew.stop().await;
        assert_eq!(rig.text("side"), "on\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_is_undone_has_undone_what_the_plans_within_it_did_the_last_first() {
    for (store, _on) in logs().await {
        let undone = |name: &str| format!("Run `echo {name} >> side` (undo: `echo undo {name} >> side`)\n");
        let text = format!("1. {}2. {}", undone("one"), undone("two"));
        let last =
            TaskPlan { compensate: Some("echo undo three >> side".into()), ..step(2, "echo three >> side", &[1]) };
        let tasks = vec![left_to(1, &text, None), last, step(3, "exit 1", &[2])];
        let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
        let rig = Rig::on(store, tasks, config).await;
        let crew = Crew::of(&rig, None);
        let end = rig.end().await;
        crew.stop().await;
        assert_eq!(rig.text("side"), "one\ntwo\nthree\nundo three\nundo two\nundo one\n");
        let Some(Event::PlanningCompleted { summary, .. }) = end.last() else { panic!("{end:?}") };
        assert_eq!(summary, "3 tasks: 2 completed, 1 failed; 2 undone");
        assert_eq!(ended(&end, 5), (TaskStatus::Completed, "p.1-1: 2 undone".into()));
        let below = state_of(&rig, "p.1-1").await;
        assert_eq!(below.phase(), Phase::Ended(Outcome::Cancelled));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_within_a_plan_that_does_not_say_how_it_is_undone_is_said_not_to_be() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![left_to(1, "Run `true`", None), step(2, "exit 1", &[1])], config).await;
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    crew.stop().await;
    let Some(Event::PlanningCompleted { summary, .. }) = end.last() else { panic!("{end:?}") };
    assert_eq!(summary, "2 tasks: 1 completed, 1 failed; 1 could not be undone");
    let (status, error) = ended(&end, 3);
    assert_eq!(status, TaskStatus::Failed);
    assert!(error.starts_with("no task of plan p.1-1 says how it is undone"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_plans_within_did_before_they_failed_is_undone_of_each_attempt() {
    for (store, _on) in logs().await {
        let text = "1. Run `echo $CREWLOG_PLAN >> side` (undo: `echo undo $CREWLOG_PLAN >> side`)\n2. Run `exit 1`\n";
        let rig = Rig::on(store, vec![left_to(1, text, None)], PlannerConfig::default()).await;
        let crew = Crew::of(&rig, None);
        rig.end().await;
        rig.order(Command::Retry { task: Some(TaskId(1)) }).await;
        child_end(&rig, "p.1-2").await;
        let is_failed = |event: &TaskEvent| matches!(event, TaskEvent::TaskFailed { attempt: 2, .. });
        rig.until(1, is_failed).await;
        until_ended(&rig, 2).await;
        rig.order(Command::CancelAndUndo { reason: "enough".into() }).await;
        let is_undone = |event: &Event| matches!(event, Event::TaskStatusUpdated { task_id: TaskId(2), status, .. } if status.is_end());
        let end = rig.until_plan(is_undone).await;
        crew.stop().await;
        assert_eq!(ended(&end, 2), (TaskStatus::Completed, "p.1-2: 1 undone; p.1-1: 1 undone".into()));
        assert_eq!(rig.text("side"), "p.1-1\np.1-2\nundo p.1-2\nundo p.1-1\n");
    }
}

/// Waits until the plan has ended so many times.
async fn until_ended(rig: &Rig, n: usize) {
    let n_ended = std::cell::Cell::new(0);
    rig.until_plan(|event| {
        n_ended.set(n_ended.get() + usize::from(matches!(event, Event::PlanningCompleted { .. })));
        n_ended.get() == n
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_within_that_did_nothing_needs_no_undoing() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![left_to(1, "Run `exit 1`", None)], config).await;
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    crew.stop().await;
    assert_eq!(ended(&end, 2), (TaskStatus::Completed, "p.1-1: nothing was done".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_is_paused_from_above_too_late_goes_on_again() {
    let rig = plan_of(vec![left_to(1, "- Think about it\n", None)]).await;
    let crew = Crew::of(&rig, None);
    until(&rig.store, event::STREAM, "p.1-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
    // As of a host that read the plan above before it was resumed.
    let mut late = planner_of(&rig.store, "p.1-1", sub_plan_tags("p.1-1", PLAN, &[])).await.unwrap();
    late.execute(Command::PauseFromAbove { reason: "plan p is paused".into() }, &Cause::request()).await.unwrap();
    until(&rig.store, event::STREAM, "p.1-1", |event: &Event| matches!(event, Event::PlanResumed {})).await;
    crew.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_makes_plans_of_its_own_and_leaves_those_of_the_other_plan_alone() {
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
        let command = Command::Fork { parent, at, reason, config: None, amendments: Vec::new() };
        fork.execute(command, &Cause::request()).await.unwrap();
        let forked = Crew::scoped(&rig, None, "f");
        // The one below the fork is another, and the one below the other plan still runs.
        until(&rig.store, event::STREAM, "f.2-1", |event: &Event| matches!(event, Event::TaskDispatched { .. })).await;
        fork.execute(Command::Cancel { task: None, reason: "enough".into() }, &Cause::request()).await.unwrap();
        assert_eq!(child_end(&rig, "f.2-1").await, Outcome::Cancelled);
        forked.stop().await;
        assert_eq!(state_of(&rig, "p.2-1").await.phase(), Phase::Active);
        blocking(move || std::fs::write(go, "go\n").unwrap()).await;
        let end = rig.end().await;
        crew.stop().await;
        assert_eq!(ended(&end, 2).0, TaskStatus::Completed);
        assert_eq!(rig.text("side"), "once\np.2-1\n", "what had ended is not done again");
        assert_eq!(state_of(&rig, "f.1-1").await.phase(), Phase::Empty);
    }
}

fn waits_for(task: TaskPlan, before: u64) -> TaskPlan {
    TaskPlan { depends_on: step(0, "", &[before]).depends_on, ..task }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_within_a_plan_has_no_more_time_than_its_task() {
    let task = TaskPlan { deadline_ms: Some(600), retry: Some(0), ..left_to(1, "Think about it", None) };
    let config = PlannerConfig { deadline_ms: Some(3_600_000), ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![task], config).await;
    let crew = Crew::of(&rig, None);
    let end = rig.end().await;
    let (status, error) = ended(&end, 1);
    assert!(matches!(status, TaskStatus::TimedOut | TaskStatus::Failed) && error.contains("deadline"), "{error}");
    assert_ne!(child_end(&rig, "p.1-1").await, Outcome::Completed);
    crew.stop().await;
    let given = state_of(&rig, "p.1-1").await.config().deadline_ms;
    assert!(given.is_some_and(|ms| ms <= 600), "{given:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_that_stand_above_one_another_in_a_circle_get_no_plan_below_them() {
    let rig = plan_of(vec![TaskPlan::new(TaskId(1), NodeKind::Processing, "another plan")]).await;
    for (plan, above) in [("q", "r"), ("r", "q")] {
        let planned = Event::TasksPlanned {
            tasks: vec![left_to(1, &format!("Think about {plan}"), None)],
            title: None,
            source: format!("the words of {plan}"),
            config: Box::default(),
            context: Vec::new(),
            attachments: Vec::new(),
            origin: Origin {
                parent: Some(ParentTask { plan: above.into(), task: TaskId(2), attempt: 1 }),
                depth: 1,
                ..Origin::default()
            },
        };
        let planned = NewEvent::of(&planned, Cause::request().metadata()).unwrap().with_tags([plan_tag(plan)]);
        rig.store.append(Append::to(event::STREAM, plan, Expected::NoStream, vec![planned])).await.unwrap();
    }
    let mut planner = planner_of(&rig.store, "q", vec![plan_tag("q")]).await.unwrap();
    planner.execute(Command::Continue, &Cause::request()).await.unwrap();
    let crew = Crew::scoped(&rig, None, "q");
    let is_end = |event: &TaskEvent| matches!(event, TaskEvent::TaskFailed { .. });
    let said = until(&rig.store, crewlog_planner::claim::STREAM, "q/1", is_end).await;
    crew.stop().await;
    let Some(TaskEvent::TaskFailed { error, .. }) = said.last() else { unreachable!("it is the last") };
    assert!(error.contains("or they go in a circle"), "{error}");
}

/// A model that never answers, and says when it is asked.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn ask<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_cancelled_while_a_model_is_asked_for_its_plan() {
    let rig = plan_of(vec![left_to(1, "Implement the parser\n", Some(AgentType::Strategic))]).await;
    let asked = Arc::new(Notify::new());
    let patience = Patience::default();
    let asker = Asker::new(Arc::new(Silent(Arc::clone(&asked))), patience, rig.store.clone(), "text", Vec::new());
    let terms = Terms { model: "m".into(), max_tokens: None, temperature: None };
    let crew = Crew::planning_by(&rig, PlansByModel { terms, asker });
    soon(asked.notified()).await;
    rig.order(Command::Cancel { task: None, reason: "it takes too long".into() }).await;
    rig.until(1, |event| matches!(event, TaskEvent::TaskStopped { .. })).await;
    crew.stop().await;
    assert_eq!(state_of(&rig, "p.1-1").await.phase(), Phase::Empty, "no plan was made");
}
