//! Readers of the whole log read only the events after their last snapshot, with the same result as without one.

use crewlog_executors::projecting::Projected;
use crewlog_mq::{Append, Cause, EventStore, Expected, NewEvent, Position, Query};
use crewlog_planner::claim::{self, TaskEvent, TaskProgress};
use crewlog_planner::crew::Projection;
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::event::plan_tag;
use crewlog_planner::listing::{PlanList, PlanSummary};
use crewlog_planner::state::Phase;
use crewlog_planner::view::PlanView;

use super::hosts::{catch_up, log_of};
use super::recorded::{Scripted, append_again, appends, everything, rich_log};
use super::snapshots::drop_snapshots;
use crewlog_stage::backends::logs;
use crewlog_stage::counting::counted;

/// A log with many events that these readers ignore: an ended plan, and an open one.
async fn lengthen(store: &EventStore, n_events: usize) {
    append_again(store, &Scripted::default(), &appends(&rich_log().await)).await;
    let progressed = TaskEvent::TaskProgressed { epoch: 1, progress: TaskProgress::default() };
    let progressed = || NewEvent::of(&progressed, Cause::request().metadata()).unwrap();
    let events = (0..n_events).map(|_| progressed().with_tags([plan_tag("one")])).collect::<Vec<_>>();
    let append = Append::to(claim::STREAM, "one/2", Expected::Any, events);
    store.append(append).await.unwrap();
}

/// The state of a reader without a snapshot.
async fn afresh<P: Projection>(store: &EventStore, at: Option<Position>) -> serde_json::Value {
    drop_snapshots::<P>(store).await;
    state_of(&Projected::<P>::read(store, at).await.unwrap())
}

fn state_of<P: Projection>(projected: &Projected<P>) -> serde_json::Value {
    serde_json::to_value(&projected.state).unwrap()
}

async fn reads_only_new_events<P: Projection>(store: &EventStore, n_kept: usize) {
    let (store, counts) = counted(store);
    let mut first = Projected::<P>::read(&store, None).await.unwrap();
    first.fold(n_kept);
    first.keep().await;
    let head = first.at;
    counts.take_events();
    let again = Projected::<P>::read(&store, None).await.unwrap();
    assert!(counts.take_events() < 5, "{} reads the log again", P::FOLD);
    assert_eq!((again.at, state_of(&again)), (head, state_of(&first)), "{}", P::FOLD);
    // A position before the snapshot is folded from the log, and leaves the snapshot.
    let mut before = Projected::<P>::read(&store, Some(Position(40))).await.unwrap();
    before.fold(n_kept);
    before.keep().await;
    counts.take_events();
    let again = Projected::<P>::read(&store, None).await.unwrap();
    assert!(counts.take_events() < 5, "the newer snapshot of {} is there", P::FOLD);
    let (before, again) = (state_of(&before), state_of(&again));
    assert_eq!(afresh::<P>(&store, None).await, again, "a snapshot changes no answer");
    assert_eq!(afresh::<P>(&store, Some(Position(40))).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_only_events_after_its_snapshot() {
    for (store, _on) in logs().await {
        lengthen(&store, 2_000).await;
        reads_only_new_events::<Statistics>(&store, 0).await;
        reads_only_new_events::<Conflicts>(&store, 0).await;
        reads_only_new_events::<PlanList>(&store, 2_000).await;
    }
}

#[tokio::test]
async fn the_first_reader_starts_from_a_hosts_snapshot() {
    let (store, counts) = counted(&EventStore::in_memory().await.unwrap());
    lengthen(&store, 2_000).await;
    catch_up(&store, None).await.unwrap();
    counts.take_events();
    let statistics = Projected::<Statistics>::read(&store, None).await.unwrap();
    let conflicts = Projected::<Conflicts>::read(&store, None).await.unwrap();
    assert!(counts.take_events() < 200, "the log is read again");
    assert_eq!(state_of(&statistics)["projects"].as_object().map(serde_json::Map::len), Some(2));
    assert_eq!(state_of(&conflicts), afresh::<Conflicts>(&store, None).await);
}

/// The result of the plan's own fold as of a position: whether it is open, and its summary.
async fn folded(store: &EventStore, plan: &str, at: Position) -> (bool, Option<PlanSummary>) {
    let mut view = PlanView::default();
    for recorded in everything(store, &Query::tag(plan_tag(plan))).await {
        if recorded.position <= at {
            view.apply(&recorded).unwrap();
        }
    }
    (!matches!(view.state().phase, Phase::Ended(_)), PlanSummary::of(plan, &view))
}

#[tokio::test]
async fn the_plan_list_matches_the_fold_of_each_plan() {
    let log = rich_log().await;
    let (store, _clock) = log_of(&appends(&log)).await;
    let (mut followed, mut n_ended) = (PlanList::default(), 0);
    for append in appends(&log) {
        append.iter().for_each(|recorded| followed.handle(recorded).unwrap());
        let at = append[append.len() - 1].position;
        let listed = Projected::<PlanList>::read(&store, Some(at)).await.unwrap().state;
        assert_eq!(listed.plans().len(), followed.plans().len(), "at {at}");
        for plan in listed.plans().chain(followed.clone().plans()) {
            let (is_open, summary) = folded(&store, &plan.id, at).await;
            assert_eq!(plan.is_open, is_open, "{} at {at}", plan.id);
            assert_eq!(plan.tags.is_empty(), !is_open);
            if plan.has_changed {
                followed.summarize(&plan.id, summary.unwrap());
            } else {
                n_ended += usize::from(!is_open);
                assert_eq!(plan.summary, summary, "{} at {at}", plan.id);
            }
        }
    }
    assert!(n_ended > 10);
}
