//! What events change: a step tells what a comparison of the views around it tells, and all steps sum up.

use std::collections::BTreeMap;

use crewlog_mq::{Event as MqEvent, Handler, Position, Recorded, Timestamp};
use crewlog_planner::change::{self, Change, Content, Field, Subject};
use crewlog_planner::claim::{self, TaskClaim};
use crewlog_planner::event::{self, Command, Event, ExecutorEvent, FailureClass, PlannerConfig, QuestionId};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::view::PlanView;
use proptest::prelude::*;
use uuid::Uuid;

use super::laws::{at, claim_acts};
use super::random::{acts, drafts};

/// A log in memory, of one plan.
#[derive(Default)]
struct Log(Vec<Recorded>);

impl Log {
    fn push<E: MqEvent>(&mut self, stream_id: &str, aggregate_id: &str, events: &[E]) {
        for event in events {
            let position = Position(self.0.len() as i64 + 1);
            self.0.push(Recorded {
                position,
                event_id: Uuid::from_u128(position.0.unsigned_abs().into()),
                stream_id: stream_id.to_owned(),
                aggregate_id: aggregate_id.to_owned(),
                sequence: position.0,
                event_type: event.event_type().to_owned(),
                event_version: E::EVENT_VERSION.to_owned(),
                data: event.encode().unwrap(),
                metadata: "{}".to_owned(),
                tags: Vec::new(),
                created_at: Timestamp(position.0),
                append_start: position,
            });
        }
    }

    fn plan(&mut self, events: &[Event]) {
        self.push(event::STREAM, "p", events);
    }

    fn view(&self, n_events: usize) -> PlanView {
        let mut view = PlanView::default();
        for recorded in &self.0[..n_events] {
            view.apply(recorded).unwrap();
        }
        view
    }

    /// What is told of each event.
    fn told(&self) -> Vec<Vec<String>> {
        let mut view = PlanView::default();
        let steps = self.0.iter().map(|recorded| {
            let changes = change::step(&mut view, recorded).unwrap();
            change::telling(&changes).map(Change::to_string).collect()
        });
        steps.collect()
    }
}

/// Of each fact the first side and the last, where they differ.
fn sum(changes: impl IntoIterator<Item = Change>) -> BTreeMap<(Subject, Field), (Option<Content>, Option<Content>)> {
    let mut summed = BTreeMap::new();
    for Change { subject, field, from, to } in changes {
        let sides = summed.entry((subject, field)).or_insert((from.clone(), from.clone()));
        assert_eq!(sides.1, from, "each change begins where the one before ended");
        sides.1 = to;
    }
    summed.retain(|_, (from, to)| from != to);
    summed
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_step_tells_what_a_comparison_tells_and_all_steps_sum_up(
        draft in drafts(),
        acts in prop::collection::vec((acts(), claim_acts(), 1..4_u64), 0..40),
    ) {
        let (mut log, mut planner, mut claims) = (Log::default(), Planner::new(), BTreeMap::new());
        log.plan(&planner.process(draft.initialize()).unwrap());
        for (act, (of_claim, _), task) in acts {
            let claim: &mut TaskClaim = claims.entry(task).or_default();
            let of_claim = at(of_claim, claim, Timestamp(log.0.len() as i64));
            log.push(claim::STREAM, &format!("p/{task}"), &claim.process(of_claim).unwrap_or_default());
            let command = act.command(&draft, planner.state());
            log.plan(&planner.process(command).unwrap_or_default());
        }
        let (mut view, mut all) = (PlanView::default(), Vec::new());
        for recorded in &log.0 {
            let before = view.clone();
            let stepped = change::step(&mut view, recorded).unwrap();
            let compared = change::changes(&before, &view);
            prop_assert_eq!(&stepped, &compared, "at {}", recorded.position);
            prop_assert!(stepped.iter().all(|change| change.from != change.to));
            all.extend(stepped);
        }
        prop_assert_eq!(&view, &log.view(log.0.len()), "a step takes the event in as every view does");
        prop_assert_eq!(sum(all), sum(change::changes(&PlanView::default(), &view)));
    }
}

fn step_of(id: u64, description: &str) -> TaskPlan {
    TaskPlan { command: Some("true".into()), ..TaskPlan::new(TaskId(id), NodeKind::ToolCall, description) }
}

fn planned(tasks: Vec<TaskPlan>) -> Event {
    Event::planned(tasks, PlannerConfig::default())
}

#[test]
fn changes_are_told_in_words() {
    let mut log = Log::default();
    let mut planner = Planner::new();
    let user_input = "# Ship\n1. Run `make`\n2. Which  colour is it?\n".to_owned();
    let (attachments, config) = (Vec::new(), PlannerConfig::default());
    let mut order = |log: &mut Log, command| log.plan(&planner.process(command).unwrap());
    order(&mut log, Command::Initialize { user_input, attachments, config, parallel: false });
    let (node_id, attempt, class) = (TaskId(1), 1, FailureClass::NotStarted);
    let error = "no\nsh".to_owned();
    order(&mut log, Command::HandleExecutorEvent(ExecutorEvent::TaskFailed { node_id, attempt, error, class }));
    let result = "built\n and packed".to_owned();
    order(&mut log, Command::HandleExecutorEvent(ExecutorEvent::TaskCompleted { node_id, attempt: 2, result }));
    let (node_id, question_id) = (TaskId(2), QuestionId(1));
    order(&mut log, Command::Pause { reason: "lunch".into() });
    order(&mut log, Command::CompactContext { max_tokens: 40 });
    let answer = "blue".to_owned();
    order(
        &mut log,
        Command::HandleExecutorEvent(ExecutorEvent::ClarificationProvided { node_id, question_id, answer }),
    );
    let told = log.told();
    let expected: [&[&str]; 12] = [
        &["plan: title: Ship", "plan: Waiting", "task 1: planned: Run `make`", "task 2: planned: Which colour is it?"],
        &["plan: Waiting -> Running", "task 1: Planned -> Running", "task 1: attempts: 1"],
        &["plan: Running -> Waiting", "task 1: Running -> Planned", "task 1: error: no sh"],
        &["plan: Waiting -> Running", "task 1: Planned -> Running", "task 1: attempts: 1 -> 2"],
        &[
            "plan: Running -> Waiting",
            "task 1: Running -> Completed",
            "task 1: result: built and packed",
            "task 1: error: no sh -> none",
        ],
        &["task 2: Planned -> Running", "task 2: attempts: 1"],
        &["task 2: Running -> NeedsClarification", "q1: asked: Which colour is it?"],
        &["plan: Waiting -> Paused"],
        &["plan: context summary: 1 Completed: Run `make` -> built and packed"],
        &["q1: answered: blue"],
        &["task 2: NeedsClarification -> Completed", "task 2: result: blue"],
        &["plan: Paused -> Completed"],
    ];
    assert_eq!(told, expected);
    let (subject, to) = (Subject::Task("1".into()), Some(Content::Text("x".repeat(400))));
    let told = Change { subject, field: Field::Result, from: None, to }.to_string();
    assert_eq!(told, format!("task 1: result: {} ... {}", "x".repeat(57), "x".repeat(58)), "long texts are shortened");
}

#[test]
fn tasks_of_two_plans_are_matched_by_name() {
    let labelled = |id, label: &str, text: &str| TaskPlan { label: Some(label.into()), ..step_of(id, text) };
    let view = |tasks| {
        let mut log = Log::default();
        log.plan(&[planned(tasks)]);
        log.view(1)
    };
    let one = view(vec![labelled(1, "A", "build"), labelled(2, "B", "test"), step_of(3, "ship")]);
    let other = view(vec![labelled(1, "B", "test"), labelled(2, "A", "build all"), labelled(3, "C", "new")]);
    let changes = change::changes(&one, &other);
    let told = change::telling(&changes).map(Change::to_string).collect::<Vec<_>>();
    assert_eq!(told, ["task A: description: build -> build all", "task C: planned: new", "task 3: not there: ship"]);
    assert_eq!(change::changes(&one, &one), []);
}

#[test]
fn a_label_that_is_another_tasks_number_confuses_nothing() {
    let labelled = TaskPlan { label: Some("2".into()), ..step_of(1, "one") };
    let mut log = Log::default();
    log.plan(&[planned(vec![labelled, step_of(2, "two")])]);
    let changes = change::changes(&log.view(0), &log.view(1));
    let told = change::telling(&changes).map(Change::to_string).collect::<Vec<_>>();
    assert_eq!(told, ["plan: Waiting", "task 2: planned: one", "task 2: planned: two"]);
}

#[test]
fn the_steps_through_a_large_plan_tell_each_change_once() {
    const N_TASKS: u64 = 10_000;
    let mut log = Log::default();
    log.plan(&[planned((1..=N_TASKS).map(|id| step_of(id, "step")).collect())]);
    for task in 1..=N_TASKS {
        let task_id = TaskId(task);
        let status = |status| Event::TaskStatusUpdated { task_id, status, result: None, error: None, unblocks: true };
        log.plan(&[status(event::TaskStatus::Running), status(event::TaskStatus::Completed)]);
    }
    let mut view = PlanView::default();
    let n_changes = log.0.iter().map(|recorded| change::step(&mut view, recorded).unwrap().len()).sum::<usize>();
    assert_eq!(n_changes, 1 + 4 * 10_000 + 4 * 10_000, "planned with four facts each; two statuses, of task and plan");
}
