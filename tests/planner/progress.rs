//! A plan never stalls, never starts what it should not, and ends once: random plans against a model that knows
//! nothing of the planner's own bookkeeping.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, ExecutorEvent, Purpose, QuestionId, TaskStatus};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::state::Phase;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::random::{Act, Draft, N_REPORTS, acts, drafts, report, words};

/// What the events alone say of a plan.
#[derive(Default)]
struct Observed {
    tasks: BTreeMap<TaskId, Standing>,
    /// By question: the text of the condition that it asks.
    asked: BTreeMap<QuestionId, String>,
    conditions: BTreeMap<String, bool>,
    parallelism: usize,
    is_paused: bool,
    is_ended: bool,
    changes: BTreeSet<(&'static str, &'static str)>,
}

struct Standing {
    plan: TaskPlan,
    status: TaskStatus,
    lets_go: bool,
}

impl Observed {
    fn take(&mut self, event: &Event) {
        match event {
            Event::TasksPlanned { tasks, config, .. } => {
                self.parallelism = config.parallelism;
                let standing =
                    |plan: &TaskPlan| Standing { plan: plan.clone(), status: TaskStatus::Planned, lets_go: false };
                self.tasks = tasks.iter().map(|plan| (plan.id, standing(plan))).collect();
            }
            // Tried now: it is the same place that it takes.
            Event::TaskDispatched { task_id, .. } if self.tasks[task_id].status == TaskStatus::Running => {
                assert!(!self.is_ended && !self.is_paused);
            }
            Event::TaskDispatched { task_id, .. } => {
                assert!(!self.is_ended, "nothing is dispatched after the end");
                assert!(!self.is_paused, "nothing is dispatched while the plan is paused");
                assert!(self.may_start(*task_id), "task {task_id} may not start yet");
                self.set(*task_id, TaskStatus::Running, false);
                for has_command in [true, false] {
                    assert!(self.n_running(has_command) <= self.parallelism, "too many run at once");
                }
            }
            Event::TaskStatusUpdated { task_id, status, unblocks, .. } => self.set(*task_id, *status, *unblocks),
            Event::ClarificationRequested { task_id, question_id, purpose, .. } => {
                assert!(!self.is_ended);
                match purpose {
                    Purpose::Condition => {
                        let condition = self.tasks[task_id].plan.condition.as_ref().expect("it asks for its condition");
                        assert!(!self.asked.values().any(|text| *text == condition.text), "it is being asked already");
                        self.asked.insert(*question_id, condition.text.clone());
                    }
                    Purpose::Task | Purpose::Executor | Purpose::Failure => {
                        self.set(*task_id, TaskStatus::NeedsClarification, false);
                    }
                }
            }
            Event::ClarificationReceived { question_id, answer, .. } => {
                if let Some(text) = self.asked.remove(question_id) {
                    self.conditions.insert(text, answer == "yes");
                }
            }
            Event::PlanPaused { .. } => self.is_paused = true,
            Event::PlanResumed {} => self.is_paused = false,
            Event::TasksReopened { task_ids } => {
                self.is_ended = false;
                for task_id in task_ids {
                    self.forget_answer_that_left_out(*task_id);
                    self.set(*task_id, TaskStatus::Planned, false);
                }
            }
            Event::PlanningCompleted { .. } => {
                assert!(!self.is_ended, "a plan ends once");
                assert!(self.tasks.values().all(|task| task.status.is_end()), "it ends when every task has");
                (self.is_ended, self.is_paused) = (true, false);
            }
            Event::TasksAmended { tasks, .. } => {
                self.is_ended = false;
                for plan in tasks {
                    let (status, lets_go) = (TaskStatus::Planned, false);
                    self.tasks.insert(plan.id, Standing { plan: plan.clone(), status, lets_go });
                }
            }
            Event::PlanForked { .. }
            | Event::SettingsChanged { .. }
            | Event::TaskPaused { .. }
            | Event::TaskResumed { .. }
            | Event::DeadlineSet { .. }
            | Event::UsageRecorded { .. }
            | Event::ClarificationWithdrawn { .. }
            | Event::CheckpointNamed { .. }
            | Event::CompactionRequested { .. }
            | Event::ContextCompacted { .. }
            | Event::PlanCancelled { .. } => {}
        }
    }

    fn set(&mut self, task: TaskId, status: TaskStatus, lets_go: bool) {
        let standing = self.tasks.get_mut(&task).expect("the event is of a task of the plan");
        if standing.status != status {
            self.changes.insert((standing.status.as_str(), status.as_str()));
        }
        (standing.status, standing.lets_go) = (status, lets_go);
    }

    fn forget_answer_that_left_out(&mut self, task: TaskId) {
        let standing = &self.tasks[&task];
        if let (TaskStatus::Skipped, true, Some(condition)) =
            (standing.status, standing.lets_go, &standing.plan.condition)
        {
            self.conditions.remove(&condition.text);
        }
    }

    /// Whether a task is planned and everything it waits for has let it go, its condition included.
    fn may_start(&self, task: TaskId) -> bool {
        let Standing { plan, status, .. } = &self.tasks[&task];
        let mut waits_for = plan.depends_on.iter().map(|dependency| &self.tasks[&dependency.task]);
        let holds = plan.condition.as_ref().is_none_or(|condition| {
            self.conditions.get(&condition.text).is_some_and(|holds| *holds != condition.negated)
        });
        // What runs only if something holds is let go by any end.
        let lets_go = |before: &Standing| before.lets_go || plan.condition.is_some();
        *status == TaskStatus::Planned && holds && waits_for.all(|before| before.status.is_end() && lets_go(before))
    }

    fn n_running(&self, has_command: bool) -> usize {
        let in_lane = |task: &&Standing| is_limited(&task.plan) && task.plan.command.is_some() == has_command;
        self.tasks.values().filter(in_lane).filter(|task| task.status == TaskStatus::Running).count()
    }

    /// What could start now and was not started.
    fn forgotten(&self) -> Vec<TaskId> {
        let is_on = !self.is_paused && !self.is_ended;
        let has_room = |plan: &TaskPlan| !is_limited(plan) || self.n_running(plan.command.is_some()) < self.parallelism;
        let ready = self.tasks.values().filter(|task| is_on && self.may_start(task.plan.id) && has_room(&task.plan));
        ready.map(|task| task.plan.id).collect()
    }
}

/// Questions to people wait for nothing but their turn.
fn is_limited(task: &TaskPlan) -> bool {
    task.kind != NodeKind::Clarification
}

/// A plan under way, watched.
struct Run {
    planner: Planner,
    observed: Observed,
}

impl Run {
    fn begin(draft: &Draft) -> Self {
        let mut run = Self { planner: Planner::new(), observed: Observed::default() };
        run.order(draft.initialize());
        run
    }

    fn order(&mut self, command: Command) {
        let Ok(events) = self.planner.process(command) else { return };
        for event in &events {
            if let Event::ClarificationRequested { .. } = event {
                self.drop_withdrawn_questions();
            }
            self.observed.take(event);
        }
        self.drop_withdrawn_questions();
        let state = self.planner.state();
        assert_eq!(self.observed.is_ended, matches!(state.phase(), Phase::Ended(_)));
        assert_eq!(self.observed.forgotten(), Vec::new(), "it starts what may start");
        let runs = self.observed.tasks.values().any(|task| task.status == TaskStatus::Running);
        let waits = runs || state.open_questions().next().is_some() || self.observed.is_paused;
        assert!(self.observed.is_ended || waits, "a plan that has not ended can say what it waits for");
    }

    fn drop_withdrawn_questions(&mut self) {
        let withdrawn = self.planner.state().questions().iter().filter(|question| question.is_withdrawn);
        for question in withdrawn {
            self.observed.asked.remove(&question.id);
        }
    }

    /// Something that can happen next: the `choice`th running task reports, or somebody answers.
    fn go_on(&mut self, choice: usize, how: usize) {
        let state = self.planner.state();
        let running = state.tasks().iter().filter(|task| task.status == TaskStatus::Running);
        let running = running.map(|task| (task.plan.id, task.attempts)).collect::<Vec<_>>();
        let open = state.open_questions().cloned().collect::<Vec<_>>();
        let n_ways = running.len() + open.len();
        if n_ways == 0 {
            return self.order(Command::Resume);
        }
        let event = match choice % n_ways {
            at if at < running.len() => {
                report(running[at].0, running[at].1, u8::try_from(how % usize::from(N_REPORTS)).unwrap())
            }
            at => {
                let question = &open[at - running.len()];
                let words = words(question.purpose);
                ExecutorEvent::ClarificationProvided {
                    node_id: question.task,
                    question_id: question.id,
                    answer: words[how % words.len()].to_owned(),
                }
            }
        };
        self.order(Command::HandleExecutorEvent(event));
    }

    /// Everybody does what brings the plan to its end; each step must end a task or answer a question.
    fn finish(&mut self) {
        let n_tasks = self.planner.state().tasks().len();
        for _ in 0..8 * n_tasks + 16 {
            if self.observed.is_ended {
                return;
            }
            self.go_on(0, 0);
        }
        panic!("the plan did not end: {:?}", self.planner.state());
    }
}

type Choices = Vec<(u8, u8)>;

fn choices() -> impl Strategy<Value = Choices> {
    prop::collection::vec(any::<(u8, u8)>(), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn a_plan_whose_tasks_report_and_whose_questions_are_answered_ends(draft in drafts(), choices in choices()) {
        let mut run = Run::begin(&draft);
        for (choice, how) in choices {
            if run.observed.is_ended {
                break;
            }
            run.go_on(choice.into(), how.into());
        }
        run.finish();
    }

    #[test]
    fn a_plan_ends_whatever_people_do_to_it_meanwhile(
        draft in drafts(),
        acts in prop::collection::vec((acts(), any::<(u8, u8)>()), 0..40),
    ) {
        let run = disturbed(&draft, &acts);
        prop_assert!(run.observed.is_ended);
    }
}

fn disturbed(draft: &Draft, acts: &[(Act, (u8, u8))]) -> Run {
    let mut run = Run::begin(draft);
    for (act, (choice, how)) in acts {
        run.order(act.command(draft, run.planner.state()));
        run.go_on((*choice).into(), (*how).into());
    }
    run.finish();
    run
}

#[test]
fn only_these_changes_of_status_happen() {
    let mut runner = TestRunner::deterministic();
    let mut changes = BTreeSet::new();
    for _ in 0..1_500 {
        let draft = drafts().new_tree(&mut runner).unwrap().current();
        let acts = prop::collection::vec((acts(), any::<(u8, u8)>()), 0..40).new_tree(&mut runner).unwrap().current();
        changes.extend(disturbed(&draft, &acts).observed.changes);
    }
    let mut table = BTreeMap::<_, Vec<_>>::new();
    for (before, after) in changes {
        table.entry(before).or_default().push(after);
    }
    let table = table.into_iter().map(|(before, after)| format!("{before} -> {}", after.join(", ")));
    let expected = [
        "Cancelled -> Planned",
        "Completed -> Planned",
        "Failed -> Planned",
        "NeedsClarification -> Cancelled, Completed, Failed, Planned, Skipped, TimedOut",
        "Planned -> Cancelled, Completed, NeedsClarification, Running, Skipped",
        "Running -> Cancelled, Completed, Failed, NeedsClarification, Planned, TimedOut",
        "Skipped -> Planned",
        "TimedOut -> Planned",
    ];
    assert_eq!(table.collect::<Vec<_>>(), expected);
}
