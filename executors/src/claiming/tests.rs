//! A dispatched task goes to one executor, or to none.

use crewlog_mq::{Append, Cause, Expected, Memory, Metadata, NewEvent, Options, Position, Timestamp};
use crewlog_planner::claim::{Ending, Executor};
use crewlog_planner::event::Usage;
use crewlog_planner::plan::NodeKind;
use tempfile::TempDir;

use super::*;

const TASK: TaskId = TaskId(1);

struct Rig {
    store: EventStore,
    folder: TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Self { store: EventStore::on(Memory::new(Options::default())), folder }
    }

    fn life(&self) -> LivenessLock {
        LivenessLock::begin(self.folder.path()).expect("it is ours")
    }

    /// Appends an event to a plan; returns its position.
    async fn plan_event(&self, plan: &str, event_type: &str, data: &str) -> Position {
        let event = NewEvent::from_json(event_type, "1.0", data.into(), &Metadata::default()).expect("it is JSON");
        let append = Append::to(event::STREAM, plan, Expected::Any, vec![event]);
        self.store.append(append).await.expect("an append of any kind is accepted").last()
    }

    fn claim(&self) -> Runner<TaskLease> {
        claim_of(&self.store, "p", TASK, Vec::new())
    }

    /// The claim of a worker that read the plan up to a position.
    async fn claims(&self, life: &LivenessLock, seen: Position, attempt: u32, starts: bool) -> ClaimOutcome {
        let dispatch = Dispatch {
            plan: "p".into(),
            tags: Vec::new(),
            position: Position(1),
            seen,
            task: TASK,
            name: "1".into(),
            attempt,
            kind: NodeKind::ToolCall,
            parameters: crewlog_planner::event::TaskInput::default(),
            limits: crewlog_planner::event::RetryClass::RateLimited.policy(),
            cause: Cause::request(),
        };
        let (_wants, mut stop) = watch::channel(None);
        let bid = Bid { name: "shell", dispatch: &dispatch, with: None };
        let begin = |lost: Option<&Executor>| (starts && lost.is_none()).then_some(None);
        claim_task(&self.store, life, &mut self.claim(), bid, begin, &mut stop).await
    }

    async fn order(&self, command: TaskCommand) {
        self.claim().execute(command, &Cause::request()).await.expect("it is accepted");
    }

    async fn types(&self) -> Vec<String> {
        let page = self.store.read(&Query::stream(claim::STREAM), Range::default(), 99).await.expect("it can be read");
        page.events.into_iter().map(|event| event.event_type).collect()
    }
}

#[tokio::test]
async fn a_plan_held_back_since_it_was_read_is_read_again_before_a_claim() {
    let (own, another) = (r#"{"task_id":1}"#, r#"{"task_id":2}"#);
    for (plan, event_type, data, is_stale) in [
        ("p", "PlanPaused", "{}", true),
        ("p", "PlanStopped", "{}", true),
        ("p", "SettingsChanged", "{}", true),
        ("p", "TaskPaused", own, true),
        ("p", "TaskPaused", another, false),
        // It was cancelled.
        ("p", "TaskStatusUpdated", own, true),
        ("p", "TaskStatusUpdated", another, false),
        ("p", "TaskCompleted", own, false),
        ("other", "PlanPaused", "{}", false),
    ] {
        let (rig, expected) = (Rig::new(), if is_stale { ClaimOutcome::Stale } else { ClaimOutcome::Won(1) });
        let before = rig.plan_event("p", "PlanPaused", "{}").await;
        let after = rig.plan_event(plan, event_type, data).await;
        let life = rig.life();
        assert_eq!(rig.claims(&life, before, 1, false).await, expected, "{event_type} of {plan}");
        assert_eq!(rig.types().await.len(), usize::from(!is_stale), "{event_type} of {plan}");
        if is_stale {
            assert_eq!(rig.claims(&life, after, 1, false).await, ClaimOutcome::Won(1), "it was read again");
        }
    }
}

#[tokio::test]
async fn a_task_goes_to_the_first_and_from_a_dead_holder_to_the_next() {
    let rig = Rig::new();
    let seen = rig.plan_event("p", "TaskDispatched", "{}").await;
    let (first, second) = (rig.life(), rig.life());
    assert_eq!(rig.claims(&first, seen, 1, true).await, ClaimOutcome::Won(1));
    assert_eq!(rig.claims(&second, seen, 1, true).await, ClaimOutcome::Held, "its holder lives");
    drop(first);
    assert_eq!(rig.claims(&second, seen, 1, false).await, ClaimOutcome::Won(2), "its holder is dead");
    assert_eq!(rig.types().await, ["TaskClaimed", "TaskClaimed"]);
    let far = Executor { name: "shell".into(), host: "far away".into(), worker: "w".into() };
    let (now, ending) = (rig.store.now(), Ending::Released { reason: "no".into(), cut_off: false });
    rig.order(TaskCommand::End { epoch: 2, ending, usage: Usage::default() }).await;
    let claim = TaskCommand::Claim(Claim { attempt: 1, executor: far, now, ..Claim::default() });
    rig.order(claim).await;
    assert_eq!(rig.claims(&second, seen, 1, false).await, ClaimOutcome::Held, "of another host nothing is known");
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_repeated_and_not_taken_for_the_run_of_another() {
    let rig = Rig::new();
    let seen = rig.plan_event("p", "TaskDispatched", "{}").await;
    let life = rig.life();
    for _ in 0..2 {
        assert_eq!(rig.claims(&life, seen, 1, true).await, ClaimOutcome::Won(1));
    }
    assert_eq!(rig.types().await, ["TaskClaimed"]);
}

#[tokio::test]
async fn what_has_ended_can_be_claimed_no_more() {
    let rig = Rig::new();
    let seen = rig.plan_event("p", "TaskDispatched", "{}").await;
    let life = rig.life();
    assert_eq!(rig.claims(&life, seen, 2, false).await, ClaimOutcome::Won(1));
    let ending = Ending::Completed { result: "ok".into(), run: None };
    rig.order(TaskCommand::End { epoch: 1, ending, usage: Usage::default() }).await;
    for attempt in [1, 2] {
        assert_eq!(rig.claims(&life, seen, attempt, false).await, ClaimOutcome::Gone, "attempt {attempt}");
    }
    assert_eq!(rig.claims(&life, seen, 3, false).await, ClaimOutcome::Won(2));
}

#[tokio::test]
async fn a_claim_that_is_no_longer_wanted_ends_with_the_fault_of_the_log() {
    let rig = Rig::new();
    rig.store.close().await;
    assert_eq!(rig.claims(&rig.life(), Position(0), 1, false).await, ClaimOutcome::Gone);
}

#[tokio::test]
async fn a_lock_that_is_held_on_this_host_outlives_its_lease_for_every_claimant() {
    let rig = Rig::new();
    let (holder, other) = (rig.life(), rig.life());
    let executor = holder.executor("shell");
    // Log time is decades later.
    let claim = TaskCommand::Claim(Claim { attempt: 1, executor, now: Timestamp(0), ..Claim::default() });
    rig.order(claim).await;
    let report = async |claim: &mut Runner<TaskLease>| {
        let ending = Ending::Completed { result: "ok".into(), run: None };
        crate::crew::human::report(claim, 1, &rig.store, &other, ending).await
    };
    assert_eq!(rig.claims(&other, Position(0), 1, false).await, ClaimOutcome::Held);
    let refused = report(&mut rig.claim()).await;
    assert!(matches!(refused, Err(ExecuteError::Refused(TaskError::Held { epoch: 1, .. }))), "{refused:?}");
    assert_eq!(rig.types().await, ["TaskClaimed"]);
    drop(holder);
    assert_eq!(rig.claims(&other, Position(0), 1, false).await, ClaimOutcome::Won(2));
}

#[tokio::test]
async fn a_lease_of_another_host_lasts_as_long_as_its_worker_leaves_signs() {
    let rig = Rig::new();
    let (life, far) = (rig.life(), Executor { name: "shell".into(), host: "far away".into(), worker: "w".into() });
    // Log time is decades later.
    let claim = TaskCommand::Claim(Claim { attempt: 1, executor: far, now: Timestamp(0), ..Claim::default() });
    rig.order(claim).await;
    let key = "w@far away";
    let signed = async |seconds_ago: u64| {
        let seen = Timestamp(rig.store.now().0 - i64::try_from(seconds_ago * 1_000_000).expect("it is small"));
        let sign = crewlog_mq::CellChange::set("worker", key, seen.0.to_string());
        rig.store.append(Append::default().cell(sign)).await.expect("a cell can be set");
    };
    // A log that comes from a backup has no signs: they begin with the first look.
    assert_eq!(rig.claims(&life, Position(0), 1, false).await, ClaimOutcome::Held, "no sign");
    assert!(rig.store.cell("worker", key).await.expect("it can be read").is_some(), "it begins");
    for (seconds_ago, expected) in [(0, ClaimOutcome::Held), (179, ClaimOutcome::Held), (181, ClaimOutcome::Won(2))] {
        signed(seconds_ago).await;
        assert_eq!(rig.claims(&life, Position(0), 1, false).await, expected, "{seconds_ago}");
    }
    assert_eq!(rig.types().await, ["TaskClaimed", "TaskClaimed"]);
}
