//! Recorded commands: with them every append of a log can be replayed and gives the same events.

use std::collections::{BTreeMap, HashMap};

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::human;
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::plans::planner_of;
use crewlog_mq::{
    Append, Cause, EventStore, ExecuteError, Expected, Handler, METADATA_BYTES_MAX, NewEvent, Query, Range, Recorded,
    Runner, Timestamp,
};
use crewlog_planner::claim::{
    self, Claim, Ending, Executor, LateOutcome, LateReport, RunDetails, TaskCommand, TaskEvent, TaskLease,
};
use crewlog_planner::event::{
    self, Amendment, Command, Edit, Event, FailureClass, Order, PlannerConfig, QuestionId, Setting, TaskStatus, Usage,
    plan_tag,
};
use crewlog_planner::plan::{Attachment, AttachmentKind, FailurePolicy, NodeKind, Origin, Proposal, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::recorded::RECORDED_AMENDMENTS_BYTES_MAX;
use crewlog_planner::verify::Verifier;
use proptest::prelude::*;
use serde_json::json;

use super::claims::{at, claim_acts};
use super::random::{acts, drafts};
use crewlog_stage::backends::logs;

const PLAN: &str = "p";

/// A plan and its tasks on a log that records every command.
struct Recording {
    store: EventStore,
    plan: &'static str,
    planner: Runner<Planner>,
}

impl Recording {
    async fn of(store: &EventStore, plan: &'static str) -> Self {
        let planner = planner_of(store, plan, vec![plan_tag(plan)]).await.unwrap();
        Self { store: store.clone(), plan, planner }
    }

    /// Sends a command to the planner, as a request.
    async fn order(&mut self, command: Command) -> Vec<Event> {
        let cause = Cause::request().keeping(command.recorded());
        match self.planner.execute(command, &cause).await {
            Ok(executed) => executed.events,
            Err(ExecuteError::Refused(_)) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a command to a task, as a request, and lets the planner react to the result.
    async fn tell(&mut self, task: u64, command: TaskCommand) -> Vec<TaskEvent> {
        let mut claim = claim_of(&self.store, self.plan, TaskId(task), vec![plan_tag(self.plan)]);
        let cause = Cause::request().keeping(command.recorded());
        let executed = match claim.execute(command, &cause).await {
            Ok(executed) => executed,
            Err(ExecuteError::Refused(_)) => return Vec::new(),
            Err(error) => panic!("{error}"),
        };
        let report = executed.events.last().filter(|event| event.is_report());
        let Some(event) = report.cloned() else {
            return executed.events;
        };
        let last = Range::between(crewlog_mq::Position(executed.position.0 - 1), executed.position);
        let recorded = self.store.read(&Query::all(), last, 1).await.unwrap().events.remove(0);
        let reaction = Cause::reaction("planner", &recorded);
        match self.planner.execute(Command::HandleExecutorEvent { task: TaskId(task), event }, &reaction).await {
            Ok(_) | Err(ExecuteError::Refused(_)) => executed.events,
            Err(error) => panic!("{error}"),
        }
    }

    async fn claim(&self, task: u64) -> TaskLease {
        let mut claim = claim_of(&self.store, self.plan, TaskId(task), Vec::new());
        claim.catch_up().await.unwrap();
        claim.handler().clone()
    }
}

/// Replays every append of a log and compares. Returns the number of appends per command; `given` counts those without
/// a command or cause.
async fn decide_again(store: &EventStore) -> BTreeMap<String, usize> {
    let page = store.read(&Query::all(), Range::default(), 10_000).await.unwrap();
    assert!(!page.more);
    let plan_of = |recorded: &Recorded| match claim::split_aggregate_id(&recorded.aggregate_id) {
        Some((plan, _)) => plan.to_owned(),
        None => recorded.aggregate_id.clone(),
    };
    let mut verifiers: HashMap<String, Verifier> = HashMap::new();
    let mut counted = BTreeMap::new();
    for append in page.events.chunk_by(|one, other| one.append_start == other.append_start) {
        let verifier = verifiers.entry(plan_of(&append[0])).or_default();
        for decided in verifier.verify(append).unwrap_or_else(|error| panic!("{error}")) {
            *counted.entry(decided.name().to_owned()).or_default() += 1;
        }
    }
    counted
}

fn executor(worker: &str) -> Executor {
    Executor { name: "shell".into(), host: "h".into(), worker: worker.into() }
}

fn done(result: &str) -> Ending {
    let (duration_ms, output_bytes) = (7, 3);
    let run =
        RunDetails { exit_code: Some(0), signal: None, duration_ms, output_bytes, output_is_cut: false, output: None };
    Ending::Completed { result: result.into(), run: Some(run) }
}

fn failed(error: &str, class: FailureClass) -> Ending {
    Ending::Failed { error: error.into(), class, run: None }
}

/// Every command to a task, and each of its endings.
async fn send_all_task_commands(log: &mut Recording) {
    let now = |seconds: i64| Timestamp(seconds * 1_000_000);
    let claim = |attempt, worker, at, dead_epoch| {
        TaskCommand::Claim(Claim { attempt, executor: executor(worker), now: now(at), dead_epoch, ..Claim::default() })
    };
    let report = |attempt, ending| TaskCommand::Report {
        claim: Claim { attempt, executor: executor("w"), now: now(5_000), ..Claim::default() },
        ending,
    };
    let end = |epoch, ending| TaskCommand::End { epoch, usage: Usage::default(), ending };
    log.tell(1, claim(1, "a", 1, None)).await;
    log.tell(1, end(1, Ending::Released { reason: "interrupted".into(), cut_off: false })).await;
    log.tell(1, claim(1, "a", 70, None)).await;
    log.tell(1, claim(1, "b", 71, Some(2))).await;
    log.tell(1, end(3, done("built"))).await;
    log.tell(2, report(1, failed(&"x".repeat(10_000), FailureClass::Task))).await;
    log.order(Command::RetryNow { task: TaskId(2) }).await;
    log.tell(2, report(2, Ending::Asked { question: "Which?".into(), default: None })).await;
    log.order(Command::Answer { question: QuestionId(1), answer: "that".into() }).await;
    log.tell(2, claim(3, "a", 9_000, None)).await;
    log.tell(2, end(3, Ending::Stopped { reason: "not wanted".into() })).await;
    log.tell(2, TaskCommand::Withdraw { attempt: 4 }).await;
    let late =
        LateReport { attempt: 1, epoch: 1, executor: executor("a"), outcome: LateOutcome::Failed, text: "no".into() };
    log.tell(2, TaskCommand::ReportLate { late }).await;
    log.tell(9, TaskCommand::Interrupt { attempt: 1, epoch: 3, executor: executor("a") }).await;
}

/// Every command that changes a running plan; of long amendments only the results are recorded.
async fn amend_all(log: &mut Recording) {
    let amend = |amendments, reason: &str| Command::Amend { amendments, reason: reason.to_owned() };
    let (task, later) = (TaskId(5), TaskId(6));
    let add = |text: &str| Amendment::Add { text: text.to_owned(), after: vec![TaskId(3)], before: Vec::new() };
    log.order(amend(vec![add("- [ ] Run `echo e`\n- [x] Run `echo f`\n- [ ] Run `echo g`\n")], "more")).await;
    let edits = vec![Edit::Priority(None), Edit::Priority(Some("high".into())), Edit::Label(Some("E".into()))];
    let reorder = Amendment::Reorder { task: TaskId(7), after: vec![TaskId(3), task] };
    log.order(amend(vec![Amendment::Edit { task, edits }, reorder], &"x".repeat(METADATA_BYTES_MAX / 2))).await;
    let long = "with care ".repeat(RECORDED_AMENDMENTS_BYTES_MAX / 8);
    let edit = Amendment::Edit { task, edits: vec![Edit::Notes(vec![long])] };
    let refused = vec![edit.clone(), Amendment::Skip { task: later, keeps_order: true }];
    assert_eq!(log.order(amend(refused, "it is done")).await, []);
    let skip = Amendment::Skip { task: TaskId(7), keeps_order: true };
    assert_eq!(log.order(amend(vec![edit, add("- [x] Run `echo h`"), skip], "long")).await.len(), 3);
    let changes = vec![Setting::ParallelismOfExecutor("ann".into(), Some(1)), Setting::Order(Order::CriticalPath)];
    log.order(Command::Configure { changes, reason: "x".repeat(METADATA_BYTES_MAX / 2) }).await;
    log.order(Command::PauseTask { task, reason: "x".repeat(METADATA_BYTES_MAX / 2) }).await;
    log.order(Command::ResumeTask { task }).await;
}

/// Every command to the planner.
async fn order_all(log: &mut Recording) {
    let reason = |n: usize| "no \u{1}".repeat(n);
    log.order(Command::Pause { reason: reason(1) }).await;
    log.order(Command::Resume).await;
    log.order(Command::Pause { reason: reason(METADATA_BYTES_MAX / 16) }).await;
    log.order(Command::Resume).await;
    log.order(Command::Cancel { task: Some(TaskId(2)), reason: reason(4_000) }).await;
    log.order(Command::CompactContext { max_tokens: 40 }).await;
    log.order(Command::Retry { task: Some(TaskId(2)) }).await;
    let (node_id, attempt) = (TaskId(2), 4);
    let error = "y".repeat(10_000);
    log.order(Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::TaskFailed { attempt, error, class: FailureClass::TimedOut, epoch: 1, run: None },
    })
    .await;
    log.order(Command::RetryNow { task: TaskId(2) }).await;
    let question = "Why?".to_owned();
    log.order(Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::NeedsClarification { attempt: 5, question, default: None, epoch: 1 },
    })
    .await;
    log.order(Command::Answer { question: QuestionId(2), answer: "so".to_owned() }).await;
    log.order(Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::TaskCompleted { attempt: 6, result: "ok".into(), epoch: 1, run: None },
    })
    .await;
    log.order(Command::Cancel { task: None, reason: reason(METADATA_BYTES_MAX / 16) }).await;
    log.order(Command::Retry { task: None }).await;
    log.order(Command::Cancel { task: None, reason: String::new() }).await;
}

#[tokio::test]
async fn every_command_replays_from_its_record_and_events() {
    let store = EventStore::in_memory().await.unwrap();
    let mut log = Recording::of(&store, PLAN).await;
    let named = AttachmentKind::FileRef("page.md".into());
    let unnamed = AttachmentKind::Link("https://example.org".into());
    let given = [named, unnamed].map(|kind| Attachment { kind, label: Some("l".into()) }).to_vec();
    let config = PlannerConfig { on_failure: FailurePolicy::Continue, parallelism: 2, ..PlannerConfig::default() };
    let user_input = "# T\n1. Run `echo a`\n2. Change page.md (retry 5)\n3. Run `echo c`\n4. Paint it\n".to_owned();
    let mut initialize = Command::of_text(user_input, config, true).unwrap();
    if let Command::Initialize { attachments, .. } = &mut initialize {
        *attachments = given;
    }
    log.order(initialize).await;
    send_all_task_commands(&mut log).await;
    amend_all(&mut log).await;
    order_all(&mut log).await;
    // Dispatches prevented by a crash.
    let tasks = vec![TaskPlan::new(TaskId(1), NodeKind::ToolCall, "step")];
    let planned = Event::planned(tasks, PlannerConfig::default());
    let planned = NewEvent::of(&planned, Cause::request().metadata()).unwrap();
    store.append(Append::to(event::STREAM, "q", Expected::NoStream, vec![planned])).await.unwrap();
    Recording::of(&store, "q").await.order(Command::Continue).await;
    let file = |label: &str| Attachment { kind: AttachmentKind::FileRef("page.md".into()), label: Some(label.into()) };
    let proposal = Proposal {
        tasks: vec![TaskPlan {
            attachments: vec![file("own")],
            ..TaskPlan::new(TaskId(1), NodeKind::Refactor, "Sort page.md")
        }],
        title: Some("Sorted".into()),
        source: "sort it".into(),
        context: vec!["why".into()],
        origin: Origin { planned_by: Some("a model".into()), ..Origin::default() },
    };
    let (proposal, attachments) = (Box::new(proposal), vec![file("given")]);
    let propose = Command::Initialize { proposal, attachments, config: PlannerConfig::default() };
    Recording::of(&store, "r").await.order(propose).await;
    let counted = decide_again(&store).await;
    let expected = [
        ("Amend", 3),
        ("Answer", 2),
        ("Cancel", 3),
        ("Claim", 4),
        ("CompactContext", 1),
        ("Configure", 1),
        ("Continue", 1),
        ("End", 3),
        ("HandleExecutorEvent", 3),
        ("Initialize", 2),
        ("Interrupt", 1),
        ("Pause", 2),
        ("PauseTask", 1),
        ("Report", 2),
        ("ReportLate", 1),
        ("Resume", 2),
        ("ResumeTask", 1),
        ("Retry", 2),
        ("RetryNow", 2),
        ("Withdraw", 1),
        ("given", 1),
        ("reaction", 3),
    ];
    assert_eq!(counted.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Vec<_>>(), expected);
    assert_eq!(log.planner.handler().state().tasks[0].status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_takeover_from_a_dead_worker_by_a_person_replays() {
    let store = EventStore::in_memory().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (worker, person) = (LivenessLock::begin(folder.path()).unwrap(), LivenessLock::begin(folder.path()).unwrap());
    let (attempt, now, dead_epoch) = (1, Timestamp(1), None);
    let claimed =
        TaskCommand::Claim(Claim { attempt, executor: worker.executor("shell"), now, dead_epoch, ..Claim::default() });
    Recording::of(&store, PLAN).await.tell(1, claimed).await;
    drop(worker);
    let mut claim = claim_of(&store, PLAN, TaskId(1), Vec::new());
    human::report(&mut claim, attempt, &store, &person, done("by hand")).await.unwrap();
    let counted = decide_again(&store).await;
    let counted = counted.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Vec<_>>();
    assert_eq!(counted, [("Claim", 1), ("Report", 1)]);
}

/// Amendments as a changed file gives them: completed tasks, changed tasks, and the text.
fn of_file(task: u64, notes: &str, text: &str) -> Vec<Amendment> {
    let edits = vec![Edit::Notes(vec![notes.to_owned()])];
    let add = Amendment::Add { text: "- [x] Run `x`\n- [~] Run `y`\n".into(), after: Vec::new(), before: Vec::new() };
    vec![
        Amendment::Done { task: TaskId(task) },
        Amendment::Edit { task: TaskId(4), edits },
        add,
        Amendment::Source { text: text.to_owned() },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_amendment_from_a_changed_file_replays_on_every_backend() {
    let long = "with care ".repeat(RECORDED_AMENDMENTS_BYTES_MAX / 8);
    for (store, _on) in logs().await {
        let mut log = Recording::of(&store, PLAN).await;
        let config = PlannerConfig { parallelism: 1, ..PlannerConfig::default() };
        let user_input = "1. Run `a`\n2. Run `b`\n3. Run `c`\n4. Run `d`\n".to_owned();
        log.order(Command::of_text(user_input, config, false).unwrap()).await;
        let reason = |n: usize| "ticked ".repeat(n);
        let orders = [
            (of_file(2, "a note", "the new text"), reason(1)),
            (of_file(3, &long, "another text"), reason(4_000)),
            (of_file(5, "another note", &long), reason(1)),
            (vec![Amendment::Source { text: long.clone() + "." }], reason(4_000)),
        ];
        for (nth, (amendments, reason)) in orders.into_iter().enumerate() {
            let ends = log.order(Command::Amend { amendments, reason }).await;
            assert_eq!(ends.is_empty(), nth == 2, "task 5 has ended by its box: {ends:?}");
        }
        let state = log.planner.handler().state();
        assert_eq!((&*state.source, state.tasks.len()), (&*(long.clone() + "."), 8));
        let counted = decide_again(&store).await;
        let counted = counted.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Vec<_>>();
        assert_eq!(counted, [("Amend", 3), ("Initialize", 1)]);
    }
}

#[test]
fn restored_amendments_give_the_same_decision() {
    let long = "with care ".repeat(RECORDED_AMENDMENTS_BYTES_MAX / 8);
    let mut planner = Planner::default();
    let config = PlannerConfig { parallelism: 1, ..PlannerConfig::default() };
    let user_input = "1. Run `a`\n2. Run `b`\n3. Run `c`\n4. Run `d`\n".to_owned();
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    let check = |command: &Command, is_whole: bool| {
        let events = planner.clone().process(command.clone()).unwrap();
        let restored = Command::restore(&command.recorded(), &events).unwrap();
        assert_eq!(restored == *command, is_whole, "{restored:?}");
        assert_eq!(planner.clone().process(restored).unwrap(), events);
    };
    for (notes, text, is_whole) in [("short", "short", true), (&*long, "short", false), ("short", &*long, false)] {
        let (amendments, reason) = (of_file(3, notes, text), "ticked".to_owned());
        check(&Command::Amend { amendments: amendments.clone(), reason: reason.clone() }, is_whole);
        let (parent, at, pauses) = ("q".to_owned(), crewlog_mq::Position(9), is_whole);
        check(&Command::Fork { parent, at, reason, pauses, amendments }, is_whole);
    }
    let alone = vec![Amendment::Done { task: TaskId(2) }];
    check(&Command::Amend { amendments: alone, reason: "ticked".into() }, true);
}

#[test]
fn a_recorded_command_has_its_documented_form_without_fields_of_its_events() {
    let check = |kept: serde_json::Value, expected: serde_json::Value| assert_eq!(kept, expected);
    let (attempt, now, ending) = (1, Timestamp(5), || done("long"));
    let (user_input, config) = ("1. a".to_owned(), PlannerConfig::default());
    let initialize = Command::of_text(user_input, config, false).unwrap();
    check(initialize.recorded(), json!({"Initialize": {"attachments": []}}));
    let cancel = |task, reason: String| Command::Cancel { task, reason }.recorded();
    check(cancel(Some(TaskId(3)), "no".into()), json!({"Cancel": {"task": 3, "reason": "no"}}));
    check(cancel(None, "no".into()), json!({"Cancel": {"task": null, "reason": "no"}}));
    check(Command::Continue.recorded(), json!({"Continue": null}));
    let edits = vec![Edit::Command(None), Edit::Retry(Some(2))];
    let amendments =
        vec![Amendment::Edit { task: TaskId(2), edits }, Amendment::Skip { task: TaskId(3), keeps_order: true }];
    let skip = json!({"Skip": {"task": 3, "keeps_order": true}});
    let kept = json!([{"Edit": {"task": 2, "edits": [{"Command": null}, {"Retry": 2}]}}, skip]);
    let amend = Command::Amend { amendments, reason: "so".into() }.recorded();
    check(amend, json!({"Amend": {"amendments": kept, "reason": "so"}}));
    let amendments = vec![Amendment::Done { task: TaskId(2) }, Amendment::Source { text: "new".into() }];
    let amend = Command::Amend { amendments, reason: "so".into() }.recorded();
    let kept = json!([{"Done": {"task": 2}}, {"Source": {"text": "new"}}]);
    check(amend, json!({"Amend": {"amendments": kept, "reason": "so"}}));
    let text = "x".repeat(RECORDED_AMENDMENTS_BYTES_MAX);
    let amendments = vec![Amendment::Done { task: TaskId(2) }, Amendment::Source { text }];
    let amend = Command::Amend { amendments, reason: "so".into() }.recorded();
    let abridged = json!([{"Define": {"tasks": []}}, {"Done": {"task": 2}}, {"Source": {"text": ""}}]);
    check(amend, json!({"Amend": {"amendments": abridged, "reason": "so"}}));
    let changes = vec![Setting::Parallelism(2), Setting::ParallelismOfKind(NodeKind::Analysis, None)];
    let configure = Command::Configure { changes, reason: "so".into() }.recorded();
    let kept = json!([{"Parallelism": 2}, {"ParallelismOfKind": ["Analysis", null]}]);
    check(configure, json!({"Configure": {"changes": kept, "reason": "so"}}));
    check(Command::ResumeTask { task: TaskId(1) }.recorded(), json!({"ResumeTask": {"task": 1}}));
    check(Command::Retry { task: None }.recorded(), json!({"Retry": {"task": null}}));
    let report = TaskCommand::Report {
        claim: Claim { attempt, executor: executor("w"), now, ..Claim::default() },
        ending: ending(),
    };
    check(report.recorded(), json!({"Report": {"claim": {}}}));
    let claim =
        TaskCommand::Claim(Claim { attempt, executor: executor("w"), now, dead_epoch: Some(2), ..Claim::default() });
    check(claim.recorded(), json!({"Claim": {"dead_epoch": 2}}));
    check(TaskCommand::End { epoch: 2, usage: Usage::default(), ending: ending() }.recorded(), json!({"End": {}}));
    check(TaskCommand::Withdraw { attempt }.recorded(), json!({"Withdraw": {"attempt": 1}}));
    check(
        TaskCommand::FireTimer { epoch: 2, now, is_dead: true }.recorded(),
        json!({"FireTimer": {"epoch": 2, "now": 5, "is_dead": true}}),
    );
    let answer = Command::Answer { question: QuestionId(1), answer: "a".into() };
    check(answer.recorded(), json!({"Answer": {"question": 1}}));
}

#[test]
fn an_invalid_recorded_command_is_refused_with_the_reason() {
    let check = |kept: serde_json::Value, says: &str| {
        let error = Command::restore(&kept, &[Event::PlanResumed {}]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(TaskCommand::restore(&kept, &[TaskEvent::TaskUnparked { by: "ada".into() }]).is_err());
    };
    check(json!(null), "unknown form");
    check(json!("Dance"), "unknown variant `Dance`");
    check(json!({"Cancel": {"task": 1, "reason": "no", "force": true}}), "unknown field `force`");
    check(json!({"Initialize": {"attachments": []}}), "cannot be completed from its events");
    check(json!({"Pause": {"reason": null}}), "invalid type: null");
    let lacking =
        |kept| TaskCommand::restore(&kept, &[TaskEvent::TaskUnparked { by: "ada".into() }]).unwrap_err().to_string();
    assert!(lacking(json!({"End": {}})).contains("recorded command End"));
    check(json!({"Answer": {"question": 1}}), "recorded command Answer");
}

/// A task's part of a person's report; nothing for what only a holder reports.
fn as_told(event: TaskEvent, now: Timestamp) -> Option<TaskCommand> {
    let (attempt, ending) = match event {
        TaskEvent::TaskCompleted { attempt, result, .. } => (attempt, done(&result)),
        TaskEvent::TaskFailed { attempt, error, class, .. } => (attempt, failed(&error, class)),
        TaskEvent::NeedsClarification { attempt, question, default, .. } => {
            (attempt, Ending::Asked { question, default })
        }
        TaskEvent::TaskWithdrawn { attempt } => return Some(TaskCommand::Withdraw { attempt }),
        _of_a_holder => return None,
    };
    let claim = Claim { attempt, executor: executor("w"), now, ..Claim::default() };
    Some(TaskCommand::Report { claim, ending })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(ProptestConfig::default().cases / 4) })]

    #[test]
    fn every_append_of_a_random_log_replays(
        draft in drafts(),
        acts in prop::collection::vec((acts(), any::<bool>(), claim_acts(), 1..4_u64), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = EventStore::in_memory().await.unwrap();
            let mut log = Recording::of(&store, PLAN).await;
            log.order(draft.initialize()).await;
            let mut now = Timestamp(0);
            for (act, is_direct, (of_claim, pause), task) in acts {
                now = now.plus(std::time::Duration::from_secs(pause));
                let of_claim = at(of_claim, &log.claim(task).await, now);
                log.tell(task, of_claim).await;
                let command = act.command(&draft, log.planner.handler().state());
                let told = match &command {
                    Command::HandleExecutorEvent { task, event } if !is_direct => {
                        as_told(event.clone(), now).map(|told| (task.0, told))
                    }
                    _other => None,
                };
                match told {
                    Some((task, told)) => _ = log.tell(task, told).await,
                    None => _ = log.order(command).await,
                }
            }
            let counted = decide_again(&store).await;
            assert_eq!(counted.get("given"), None, "everything says why it came: {counted:?}");
        });
    }
}
