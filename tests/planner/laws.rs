//! Laws of every handler and every event, over random commands.

use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Position, Timestamp};
use crewlog_planner::claim::{
    Executor, LateOutcome, LateReport, OutputFile, PromptDigest, RunDetails, TaskEvent, TaskLease,
};
use crewlog_planner::event::{
    Budget, Covered, Event, FailureClass, Order, Outcome, Parameters, PlannerCmd, PlannerConfig, Purpose, QuestionId,
    RetryClass, TaskStatus, Timer,
};
use crewlog_planner::plan::{
    AgentOrigin, Attachment, AttachmentKind, DefaultAnswer, NodeKind, Origin, ParentTask, SubPlan, TaskId, TaskPlan,
};
use crewlog_planner::planner::Planner;
use crewlog_planner::protocol::{AgentRequest, AgentType};
use proptest::prelude::*;

use super::claims::{at, claim_acts, progress, used};
use super::random::{Act, Draft, acts_and_forks, drafts};

/// Gives a handler one command and checks the laws. Returns the events, unless it was refused.
fn give<H>(handler: &mut H, history: &mut Vec<H::Event>, command: H::Command) -> Option<Vec<H::Event>>
where
    H: Handler + Clone + PartialEq + std::fmt::Debug,
    H::Command: Clone,
    H::Event: MqEvent + Clone + PartialEq + std::fmt::Debug,
    H::Error: PartialEq + std::fmt::Debug,
{
    let before = handler.clone();
    let decided = handler.process(command.clone());
    assert_eq!(before.clone().process(command), decided, "the same order on the same state decides the same");
    match decided {
        Ok(events) => {
            for event in &events {
                assert_encodes(event);
            }
            history.extend(events.iter().cloned());
            assert_eq!(*handler, H::fold(history), "the live state is the fold of the log");
            Some(events)
        }
        Err(_) => {
            assert_eq!(*handler, before, "a refusal changes nothing");
            None
        }
    }
}

fn assert_encodes<E: MqEvent + PartialEq + std::fmt::Debug>(event: &E) {
    let data = event.encode().unwrap();
    assert_eq!(E::decode(event.event_type(), E::EVENT_VERSION, &data).unwrap(), *event);
}

fn live(draft: &Draft, acts: &[Act]) -> Vec<Event> {
    let (mut planner, mut history) = (Planner::default(), Vec::new());
    give(&mut planner, &mut history, draft.initialize());
    for act in acts {
        let command = act.command(draft, planner.state());
        give(&mut planner, &mut history, command);
        give(&mut planner, &mut history, crewlog_planner::event::Command::Continue);
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_planner_keeps_both_laws(draft in drafts(), acts in prop::collection::vec(acts_and_forks(), 0..40)) {
        let history = live(&draft, &acts);
        prop_assert_eq!(live(&draft, &acts), history, "the same orders give the same events");
    }

    #[test]
    fn a_snapshot_of_a_planner_restores_all_of_it(draft in drafts(), acts in prop::collection::vec(acts_and_forks(), 0..40)) {
        let planner = Planner::fold(&live(&draft, &acts));
        let stored = serde_json::to_string(&planner).unwrap();
        prop_assert_eq!(serde_json::from_str::<Planner>(&stored).unwrap(), planner);
    }

    #[test]
    fn continue_finds_nothing_left_to_schedule(draft in drafts(), acts in prop::collection::vec(acts_and_forks(), 0..40)) {
        let mut planner = Planner::default();
        planner.process(draft.initialize()).unwrap();
        for act in acts {
            let command = act.command(&draft, planner.state());
            let _ = planner.process(command);
            let left = planner.process(crewlog_planner::event::Command::Continue).unwrap();
            prop_assert_eq!(left, Vec::new(), "a decision schedules all that it makes possible");
        }
    }

    #[test]
    fn a_claim_keeps_both_laws(acts in prop::collection::vec(claim_acts(), 0..40)) {
        let (mut claim, mut history, mut now) = (TaskLease::default(), Vec::new(), Timestamp(0));
        for act in acts {
            let (command, pause) = act;
            now = now.plus(Duration::from_secs(pause));
            let mut before = claim.clone();
            let command = at(command, &claim, now);
            let claimed = history.iter().rev().find_map(|event| match event {
                TaskEvent::TaskClaimed { attempt, .. } => Some(*attempt),
                _another => None,
            });
            let Some(events) = give(&mut claim, &mut history, command) else { continue };
            let mut claimed = claimed;
            for event in &events {
                check_claim_event(event, before.holder.as_ref().zip(claimed), before.epoch, now);
                before.apply(event);
                if let TaskEvent::TaskClaimed { attempt, .. } = event {
                    claimed = Some(*attempt);
                }
            }
        }
    }

    #[test]
    fn every_event_of_a_plan_survives_a_round_trip_through_the_log(text in any::<String>(), n in any::<u64>(), lets_go in any::<bool>()) {
        for event in events_with(&text, n, lets_go) {
            assert_encodes(&event);
        }
    }

    #[test]
    fn every_event_of_a_task_survives_a_round_trip_through_the_log(text in any::<String>(), epoch in any::<u64>(), code in any::<i32>()) {
        let executor = Executor { name: text.clone(), host: text.clone(), worker: text.clone() };
        let run = RunDetails {
            exit_code: Some(code),
            signal: None,
            duration_ms: epoch,
            output_bytes: epoch,
            output_is_cut: true,
            output: Some(Box::new(OutputFile { host: text.clone(), n_bytes: epoch, sha256: text.clone() })),
        };
        let (attempt, class) = (u32::MAX, FailureClass::RateLimited { retry_after_ms: Some(7) });
        let lease_until = Timestamp(i64::from(code));
        let usage = used(epoch);
        let prompt = Some(PromptDigest {
            sha256: text.clone(),
            n_chars: epoch,
            n_events: epoch,
            cut_short: Some(text.clone()),
        });
        let default = Some(DefaultAnswer { answer: text.clone(), after_ms: epoch });
        let events = [
            TaskEvent::TaskClaimed { attempt, executor: executor.clone(), lease_until: Some(lease_until), epoch, cut_off: true, only_reports: epoch % 2 == 1, prompt },
            TaskEvent::TaskProgressed { epoch, progress: progress(&text) },
            TaskEvent::TaskUnparked { by: text.clone() },
            TaskEvent::TaskReleased { epoch, reason: text.clone(), cut_off: epoch % 2 == 1 },
            TaskEvent::TaskStopped { epoch, reason: text.clone() },
            TaskEvent::TaskCompleted { attempt, epoch, result: text.clone(), run: Some(run) },
            TaskEvent::TaskFailed { attempt, epoch, error: text.clone(), class, run: None },
            TaskEvent::UsageReported { attempt, epoch, usage },
            TaskEvent::NeedsClarification { attempt, epoch, question: text.clone(), default },
            TaskEvent::TaskWithdrawn { attempt },
            TaskEvent::TaskInterrupted { attempt, epoch, executor: executor.clone() },
            TaskEvent::TaskReportedLate(LateReport {
                attempt,
                epoch,
                executor: executor.clone(),
                outcome: LateOutcome::Asked,
                text: text.clone(),
            }),
            TaskEvent::TimerFired { epoch, due: lease_until },
        ];
        for event in events {
            assert_encodes(&event);
        }
    }
}

/// Invariants of a claim's events, for any command.
fn check_claim_event(
    event: &TaskEvent,
    held: Option<(&crewlog_planner::claim::Holder, u32)>,
    epoch_before: u64,
    now: Timestamp,
) {
    let holder = held.map(|(holder, _)| holder);
    match event {
        TaskEvent::TaskClaimed { epoch, lease_until, .. } => {
            assert_eq!(*epoch, epoch_before + 1, "each claim has the next epoch");
            assert!(lease_until.is_none_or(|until| until > now));
        }
        TaskEvent::TaskUnparked { .. } | TaskEvent::TaskReportedLate(_) => {}
        TaskEvent::TaskInterrupted { epoch, .. } => assert!(*epoch >= epoch_before, "an epoch never falls"),
        TaskEvent::TaskProgressed { epoch, .. } => {
            assert!(holder.is_some() && *epoch == epoch_before, "only the holder says {event:?}");
        }
        // The work of a lost holder is unknown; the stopped plan asks.
        TaskEvent::TaskFailed { class: FailureClass::OutcomeUnknown, epoch, .. } => assert_eq!(*epoch, epoch_before),
        TaskEvent::TaskReleased { epoch, .. }
        | TaskEvent::TaskStopped { epoch, .. }
        | TaskEvent::TaskCompleted { epoch, .. }
        | TaskEvent::TaskFailed { epoch, .. }
        | TaskEvent::UsageReported { epoch, .. }
        | TaskEvent::NeedsClarification { epoch, .. } => {
            assert!(holder.is_some() && *epoch == epoch_before, "only a holder ends a task");
        }
        TaskEvent::TaskWithdrawn { attempt } => {
            assert!(holder.and_then(|holder| holder.lease_until).is_none_or(|until| until <= now), "nobody holds it");
            let is_of_agent =
                |(holder, claimed): (&crewlog_planner::claim::Holder, u32)| holder.is_agent() && claimed >= *attempt;
            assert!(!held.is_some_and(is_of_agent), "an agent holds its attempt until the plan dispatches another");
        }
        TaskEvent::TimerFired { epoch, due } => {
            assert!(holder.is_some() && *epoch == epoch_before && *due <= now, "only a lease that has run out");
        }
    }
}

/// A command to a task and the seconds before it. Epochs are offsets from the last one until [`at`] resolves them.
fn origin_with(text: &str) -> Origin {
    let text = || text.to_owned();
    Origin {
        planned_by: Some(text()),
        parent: Some(ParentTask { plan: text(), task: TaskId(1), attempt: 1 }),
        depth: 1,
        agent: Some(AgentOrigin { agent: AgentType::Tactical, version: 1, tools: vec![text()] }),
    }
}

fn events_with(text: &str, n: u64, unblocks: bool) -> Vec<Event> {
    let (task_id, question_id, text) = (TaskId(n), QuestionId(n), || text.to_owned());
    let attachments = [AttachmentKind::Link(text()), AttachmentKind::ImageRef(text()), AttachmentKind::FileRef(text())]
        .map(|kind| Attachment { kind, label: unblocks.then(text) })
        .to_vec();
    let task = TaskPlan { command: Some(text()), ..TaskPlan::new(task_id, NodeKind::Refactor, text()) };
    let parameters = parameters_with(&text(), n, unblocks);
    let asks = PlannerCmd::RequestClarification { node_id: task_id, question: text() };
    let executes =
        PlannerCmd::ExecuteTask { node_id: task_id, kind: NodeKind::UnitTest, parameters: Box::new(parameters) };
    let config = PlannerConfig { system_prompt: text(), ..PlannerConfig::default() };
    let amended = TaskPlan {
        deadline_ms: Some(n),
        estimate_ms: Some(n),
        compensate: Some(text()),
        compensates: Some(task_id),
        default_answer: Some(DefaultAnswer { answer: text(), after_ms: n }),
        tool: Some(text()),
        sub_plan: Some(SubPlan {
            text: text(),
            agent: Some(text()),
            request: Some(AgentRequest::Locate { entity: text() }),
        }),
        ..task.clone()
    };
    let settings = settings_with(n, &config);
    let origin = origin_with(&text());
    let mut events = vec![
        Event::TasksPlanned {
            tasks: vec![task],
            title: Some(text()),
            source: text(),
            config: Box::new(config),
            context: vec![text()],
            attachments,
            origin,
        },
        Event::TaskDispatched { task_id, attempt: 1, command: asks },
        Event::TaskDispatched { task_id, attempt: u32::MAX, command: executes },
        Event::TaskStatusUpdated {
            task_id,
            status: TaskStatus::TimedOut,
            result: Some(text()),
            error: Some(text()),
            unblocks,
        },
        Event::ClarificationRequested {
            task_id,
            question_id,
            question: text(),
            purpose: Purpose::Condition,
            default: Some(DefaultAnswer { answer: text(), after_ms: n }),
        },
        Event::ClarificationReceived { task_id, question_id, answer: text(), is_default: unblocks },
        Event::ContextCompacted {
            summary: text(),
            removed_task_ids: vec![task_id],
            covers: Some(Covered { from: 1, to: n }),
        },
        Event::TasksReopened { task_ids: vec![task_id] },
        Event::PlanningCompleted { summary: text(), outcome: Outcome::Cancelled, n_tasks: 3 },
    ];
    events.extend(amending_events(n, text, amended, settings));
    events
}

fn parameters_with(text: &str, n: u64, unblocks: bool) -> Parameters {
    let text = || text.to_owned();
    Parameters {
        description: text(),
        command: unblocks.then(text),
        assignee: Some(text()),
        folder: Some(text()),
        files: vec![text()],
        mentions: vec![text()],
        reads_only: unblocks,
        is_delegated: !unblocks,
        compensates: Some(TaskId(n)),
    }
}

fn settings_with(n: u64, config: &PlannerConfig) -> PlannerConfig {
    let budget = Budget { tokens: Some(n), cost_micros: Some(n), duration_ms: Some(n) };
    PlannerConfig {
        budget,
        deadline_ms: Some(n),
        compensate: true,
        parallelism_by_kind: [(NodeKind::Analysis, 1)].into(),
        parallelism_by_executor: [("coder".to_owned(), 1)].into(),
        order: Order::CriticalPath,
        standing: true,
        ..config.clone()
    }
}

fn amending_events(n: u64, text: impl Fn() -> String, amended: TaskPlan, settings: PlannerConfig) -> Vec<Event> {
    let (task_id, question_id) = (amended.id, QuestionId(n));
    let usage = used(n);
    vec![
        Event::PlanForked { parent: text(), at: Position(7), reason: text(), is_draft: true },
        Event::TasksAmended { tasks: vec![amended], reason: text(), source: Some(text()) },
        Event::SettingsChanged { config: Box::new(settings), reason: text() },
        Event::PlanPaused { reason: text(), from_parent: true },
        Event::PlanResumed {},
        Event::PlanCancelled { reason: text() },
        Event::TaskPaused { task_id, reason: text() },
        Event::TaskResumed { task_id },
        Event::TimerSet { timer: Timer::Question(question_id), due: Timestamp(1) },
        Event::TimerFired { timer: Timer::Retry(task_id), due: Timestamp(1) },
        Event::RetryScheduled { task_id, class: RetryClass::Transient, delay_ms: n },
        Event::LimitReached { task_id, error: text(), delay_ms: n },
        Event::RetryHastened { task_id },
        Event::PlanStopped { because: task_id },
        Event::UsageRecorded { task_id, attempt: 1, epoch: 1, usage },
        Event::ClarificationWithdrawn { task_id, question_id, reason: text() },
        Event::CheckpointNamed { name: text() },
    ]
}

#[test]
fn an_unknown_kind_or_status_is_named_in_the_error() {
    let check = |event_type: &str, data: &str, name: &str| {
        let error = Event::decode(event_type, "1.0", data).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    };
    let planned = "{\"tasks\":[{\"id\":1,\"description\":\"\",\"kind\":\"Dancing\"}]}";
    check("TasksPlanned", planned, "Dancing");
    check("TaskStatusUpdated", "{\"task_id\":1,\"status\":\"Lost\",\"result\":null,\"error\":null}", "Lost");
    check("TaskForgotten", "{}", "TaskForgotten");
}
