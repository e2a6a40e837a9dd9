//! Forks on a log: claims, histories and fork points.

use crewlog_executors::claiming::claim_of;
use crewlog_executors::history::History;
use crewlog_executors::planning::catch_up;
use crewlog_executors::plans::{planner_of, planner_of_fork};
use crewlog_mq::{Cause, EventStore, ExecuteError, Position, Query, Range, Timestamp};
use crewlog_planner::claim::{Claim, Ending, Executor, TaskCommand};
use crewlog_planner::event::{Command, FailureClass, PlannerConfig, TaskStatus, Usage, plan_tag};
use crewlog_planner::lifecycle::{State, of_log};
use crewlog_planner::plan::{FailurePolicy, TaskId};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::PlannerState;
use crewlog_planner::view::PlanView;
use crewlog_stage::backends::logs;
use futures::TryStreamExt;

fn initialize(text: &str) -> Command {
    let config = PlannerConfig { on_failure: FailurePolicy::SkipDependants, ..PlannerConfig::default() };
    Command::of_text(text.into(), config, false).unwrap()
}

fn statuses(state: &PlannerState) -> Vec<TaskStatus> {
    state.tasks.iter().map(|task| task.status).collect()
}

fn tags(plan: &str) -> Vec<String> {
    vec![plan_tag(plan)]
}

/// A plan on a log whose first tasks are claimed and reported as requested.
async fn order(store: &EventStore, plan: &str, command: Command) -> Result<usize, ExecuteError<PlannerError>> {
    let mut planner = planner_of(store, plan, tags(plan)).await.unwrap();
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await.map(|executed| executed.events.len())
}

async fn tell(store: &EventStore, plan: &str, task: u64, command: TaskCommand) {
    let mut claim = claim_of(store, plan, TaskId(task), tags(plan));
    let cause = Cause::request().keeping(command.recorded());
    claim.execute(command, &cause).await.unwrap();
    catch_up(store, plan, tags(plan)).await.unwrap();
}

async fn claim(store: &EventStore, plan: &str, task: u64) {
    let executor = Executor { name: "shell".into(), host: "h".into(), worker: "w".into() };
    tell(store, plan, task, TaskCommand::Claim(Claim { attempt: 1, executor, now: Timestamp(1), ..Claim::default() }))
        .await;
}

async fn done(store: &EventStore, plan: &str, task: u64, result: &str) {
    claim(store, plan, task).await;
    let ending = Ending::Completed { result: result.into(), run: None };
    tell(store, plan, task, TaskCommand::End { epoch: 1, ending, usage: Usage::default() }).await;
}

async fn failed(store: &EventStore, plan: &str, task: u64) {
    claim(store, plan, task).await;
    let ending = Ending::Failed { error: "no".into(), class: FailureClass::Task, run: None };
    tell(store, plan, task, TaskCommand::End { epoch: 1, ending, usage: Usage::default() }).await;
}

/// Forks a plan on its log; returns the number of events.
async fn fork_on_log(store: &EventStore, parent: &str, at: Position, plan: &str) -> usize {
    let history = History::of(store, parent).await.unwrap();
    let point = history.fork_point(store, at).await.unwrap().unwrap();
    let mut planner = planner_of_fork(store, &point, plan, tags(plan));
    let (at, reason) = (point.at, "another way".into());
    let command = Command::Fork { parent: point.parent, at, reason, pauses: false, amendments: Vec::new() };
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await.unwrap().events.len()
}

async fn view(store: &EventStore, plan: &str, up_to: Option<Position>) -> PlanView {
    let history = History::of(store, plan).await.unwrap();
    let range = Range { up_to, ..Range::default() };
    let mut view = PlanView::default();
    let mut records = std::pin::pin!(history.records(store, &Query::all(), range));
    while let Some(recorded) = records.try_next().await.unwrap() {
        view.apply(&recorded).unwrap();
    }
    view
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_on_a_log_has_its_own_claims_and_results() {
    for (store, _on) in logs().await {
        order(&store, "p", initialize("1. Run `a`\n2. Run `b`\n3. Run `c`\n")).await.unwrap();
        done(&store, "p", 1, "built").await;
        claim(&store, "p", 2).await;
        let at = store.head().await.unwrap();
        fork_on_log(&store, "p", at, "f").await;
        failed(&store, "f", 2).await;
        let ending = Ending::Completed { result: "tested".into(), run: None };
        tell(&store, "p", 2, TaskCommand::End { epoch: 1, ending, usage: Usage::default() }).await;
        let (parent, fork) = (view(&store, "p", None).await, view(&store, "f", None).await);
        use TaskStatus::{Completed, Failed, Running, Skipped};
        assert_eq!(statuses(parent.state()), [Completed, Completed, Running]);
        assert_eq!(statuses(fork.state()), [Completed, Failed, Skipped]);
        assert_eq!([of_log("p", &parent), of_log("f", &fork)], [State::Ready, State::Failed]);
        assert_eq!(fork.state(), planner_caught_up(&store, "f").await.state(), "a view and the planner agree");
        // As of the fork point they are equal; events between the point and the fork are not part of its history.
        assert_eq!(view(&store, "f", Some(at)).await, view(&store, "p", Some(at)).await);
    }
}

async fn planner_caught_up(store: &EventStore, plan: &str) -> Planner {
    let mut planner = planner_of(store, plan, tags(plan)).await.unwrap();
    planner.catch_up().await.unwrap();
    planner.handler().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_costs_the_same_number_of_events_whatever_its_history() {
    for (store, _on) in logs().await {
        let text = (1..=40).map(|n| format!("{n}. Run `step {n}`\n")).collect::<String>();
        order(&store, "p", initialize(&text)).await.unwrap();
        let mut n_events = Vec::new();
        for n in 1..=30 {
            if n % 10 == 1 {
                n_events.push(fork_on_log(&store, "p", store.head().await.unwrap(), &format!("f{n}")).await);
            }
            done(&store, "p", n, "ok").await;
        }
        assert_eq!(n_events, [2, 2, 2], "that it is one, and what it begins with");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_of_forks_share_the_history_of_all_their_ancestors() {
    for (store, _on) in logs().await {
        order(&store, "a", initialize("1. Run `a`\n2. Run `b`\n3. Run `c`\n4. Run `d`\n")).await.unwrap();
        done(&store, "a", 1, "by a").await;
        let in_a = store.head().await.unwrap();
        fork_on_log(&store, "a", in_a, "b").await;
        done(&store, "a", 2, "by a").await;
        done(&store, "b", 2, "by b").await;
        fork_on_log(&store, "b", store.head().await.unwrap(), "c").await;
        done(&store, "b", 3, "by b").await;
        done(&store, "c", 3, "by c").await;
        let results = |view: &PlanView| {
            view.state().tasks.iter().map(|task| task.result.clone().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(results(&view(&store, "c", None).await), ["by a", "by b", "by c", ""]);
        // A position in the shared history belongs to the parent.
        let history = History::of(&store, "c").await.unwrap();
        let point = history.fork_point(&store, in_a).await.unwrap().unwrap();
        assert_eq!((point.parent.as_str(), point.at), ("a", in_a));
        assert_eq!(history.fork_point(&store, Position(0)).await.unwrap(), None);
        let of_b = History::of(&store, "b").await.unwrap();
        assert_eq!(history.shared_with(&of_b), Some(("b", history.parent().map(|(_, at)| at))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_point_inside_an_append_moves_to_the_end_of_the_previous_one() {
    for (store, _on) in logs().await {
        order(&store, "p", initialize("1. Run `a`\n2. Run `b`\n")).await.unwrap();
        let made = store.head().await.unwrap();
        done(&store, "p", 1, "built").await;
        let head = store.head().await.unwrap();
        let history = History::of(&store, "p").await.unwrap();
        let at = |at| {
            let (history, store) = (&history, &store);
            async move { history.fork_point(store, at).await.unwrap().map(|point| point.at) }
        };
        assert_eq!(at(made).await, Some(made));
        assert_eq!(at(Position(head.0 + 50)).await, Some(head), "beyond the head is the head");
        assert_eq!(
            at(Position(head.0 - 1)).await,
            Some(Position(head.0 - 2)),
            "the dispatch came with the end before it"
        );
        assert_eq!(at(Position(made.0 - 1)).await, None, "there was no plan yet");
    }
}
