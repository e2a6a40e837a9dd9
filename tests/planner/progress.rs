//! A plan never stalls, never starts a task too early, and ends once: random plans against a model that does not
//! use the planner's own bookkeeping.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, PlannerConfig, Purpose, QuestionId, TaskEvent, TaskStatus, Timer};
use crewlog_planner::plan::{Condition, ConditionKey, NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::state::Phase;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::random::{Act, Draft, N_REPORTS, acts_and_forks, drafts, report, words};

/// The state of a plan, derived only from its events.
#[derive(Default)]
struct Observed {
    tasks: BTreeMap<TaskId, Standing>,
    /// By question: the text of its condition.
    asked: BTreeMap<QuestionId, ConditionKey>,
    conditions: BTreeMap<ConditionKey, bool>,
    config: PlannerConfig,
    is_paused: bool,
    is_ended: bool,
    changes: BTreeSet<(String, String)>,
}

struct Standing {
    plan: TaskPlan,
    status: TaskStatus,
    lets_go: bool,
    is_paused: bool,
    waits: bool,
}

impl Standing {
    fn of(plan: &TaskPlan) -> Self {
        Self { plan: plan.clone(), status: TaskStatus::Planned, lets_go: false, is_paused: false, waits: false }
    }
}

impl Observed {
    fn take(&mut self, event: &Event) {
        match event {
            Event::TasksPlanned { tasks, config, .. } => {
                self.config = (**config).clone();
                self.tasks = tasks.iter().map(|plan| (plan.id, Standing::of(plan))).collect();
            }
            Event::TasksAmended { tasks, .. } => {
                // A task to be undone is open again.
                self.is_ended = false;
                for plan in tasks {
                    self.tasks.entry(plan.id).or_insert_with(|| Standing::of(plan)).plan = plan.clone();
                }
            }
            Event::SettingsChanged { config, .. } => self.config = (**config).clone(),
            Event::TaskPaused { task_id, .. } => self.pause(*task_id, true),
            Event::TaskResumed { task_id } => self.pause(*task_id, false),
            Event::TaskDispatched { task_id, .. } => {
                assert!(!self.is_ended, "nothing is dispatched after the end");
                assert!(!self.is_paused, "nothing is dispatched while the plan is paused");
                assert!(self.may_start(*task_id), "task {task_id} may not start yet");
                assert!(self.has_room(&self.tasks[task_id].plan), "too many run at once");
                self.set(*task_id, TaskStatus::Running, false);
            }
            Event::TaskStatusUpdated { task_id, status, unblocks, .. } => self.set(*task_id, *status, *unblocks),
            Event::ClarificationRequested { task_id, question_id, purpose, .. } => {
                assert!(!self.is_ended);
                match purpose {
                    Purpose::Condition => {
                        let condition = self.tasks[task_id].plan.condition_key().expect("it asks for its condition");
                        assert!(!self.asked.values().any(|asked| *asked == condition), "it is being asked already");
                        self.asked.insert(*question_id, condition);
                    }
                    Purpose::Task | Purpose::Executor | Purpose::Failure => {
                        self.set(*task_id, TaskStatus::NeedsClarification, false);
                    }
                }
            }
            Event::ClarificationReceived { question_id, answer, .. } => {
                if let Some(condition) = self.asked.remove(question_id) {
                    self.conditions.insert(condition, answer == "yes");
                }
            }
            Event::PlanPaused { .. } => self.is_paused = true,
            Event::PlanResumed {} => self.is_paused = false,
            Event::TasksReopened { task_ids } => {
                self.is_ended = false;
                for task_id in task_ids {
                    self.forget_skipping_answer(*task_id);
                    self.set(*task_id, TaskStatus::Planned, false);
                }
            }
            Event::PlanningCompleted { .. } => {
                assert!(!self.is_ended, "a plan ends once");
                assert!(self.tasks.values().all(|task| task.status.is_end()), "it ends when every task has");
                (self.is_ended, self.is_paused) = (true, false);
            }
            Event::PlanForked { .. } => self.fork(),
            Event::TimerFired { timer: Timer::Retry(task_id), .. } | Event::RetryHastened { task_id } => {
                self.set_waits(*task_id, false);
            }
            Event::RetryScheduled { task_id, .. } => self.set_waits(*task_id, true),
            Event::LimitReached { task_id, .. } => {
                self.set(*task_id, TaskStatus::Planned, false);
                self.set_waits(*task_id, true);
            }
            Event::TimerSet { .. }
            | Event::TimerFired { .. }
            | Event::PlanStopped { .. }
            | Event::UsageRecorded { .. }
            | Event::ClarificationWithdrawn { .. }
            | Event::CheckpointNamed { .. }
            | Event::ContextCompacted { .. }
            | Event::PlanCancelled { .. } => {}
        }
    }

    /// Unfinished tasks and undone tasks start again; compensating tasks in progress belong to the other
    /// plan.
    fn fork(&mut self) {
        (self.is_paused, self.is_ended) = (false, false);
        self.asked.clear();
        self.tasks.values_mut().for_each(|task| task.waits = false);
        let done = self.tasks.values().filter(|task| task.status == TaskStatus::Completed);
        let undone = done.filter_map(|task| task.plan.compensates).collect::<BTreeSet<_>>();
        for (id, task) in &mut self.tasks {
            let is_open = !task.status.is_end();
            if is_open && task.plan.compensates.is_some() {
                (task.status, task.lets_go, task.is_paused) = (TaskStatus::Skipped, true, false);
            } else if is_open || (task.status == TaskStatus::Completed && undone.contains(id)) {
                (task.status, task.lets_go) = (TaskStatus::Planned, false);
            }
        }
    }

    fn set(&mut self, task: TaskId, status: TaskStatus, lets_go: bool) {
        let standing = self.tasks.get_mut(&task).expect("the event is of a task of the plan");
        if standing.status != status {
            self.changes.insert((format!("{:?}", standing.status), format!("{status:?}")));
        }
        (standing.status, standing.lets_go, standing.waits) = (status, lets_go, false);
        standing.is_paused &= !status.is_end();
    }

    fn pause(&mut self, task: TaskId, is_paused: bool) {
        let standing = self.tasks.get_mut(&task).expect("the event is of a task of the plan");
        assert!(!standing.status.is_end() && standing.is_paused != is_paused);
        standing.is_paused = is_paused;
    }

    fn set_waits(&mut self, task: TaskId, waits: bool) {
        self.tasks.get_mut(&task).expect("the event is of a task of the plan").waits = waits;
    }

    fn forget_skipping_answer(&mut self, task: TaskId) {
        let standing = &self.tasks[&task];
        if let (TaskStatus::Skipped, true, Some(condition)) =
            (standing.status, standing.lets_go, standing.plan.condition_key())
        {
            self.conditions.remove(&condition);
        }
    }

    /// True if a task is planned and all its dependencies have released it, including its condition.
    fn may_start(&self, task: TaskId) -> bool {
        let Standing { plan, status, is_paused, waits, .. } = &self.tasks[&task];
        let mut waits_for = plan.depends_on.iter().map(|dependency| &self.tasks[&dependency.task]);
        let holds = plan.condition.as_ref().is_none_or(|condition| self.holds(plan, condition));
        // A task that depends on outcomes is released by any end of the deciding tasks, else by any end.
        let is_decided_by = |condition: &Condition, before: &Standing| {
            condition.outcome_of.is_empty() || condition.outcome_of.contains(&before.plan.id)
        };
        let lets_go = |before: &Standing| {
            before.lets_go || plan.condition.as_ref().is_some_and(|condition| is_decided_by(condition, before))
        };
        *status == TaskStatus::Planned
            && !is_paused
            && !waits
            && holds
            && waits_for.all(|before| before.status.is_end() && lets_go(before))
    }

    /// Tasks with a command, or all if any work counts, decide once they have ended alike; otherwise a person decides.
    fn holds(&self, plan: &TaskPlan, condition: &Condition) -> bool {
        let outcome = |task: &TaskId| {
            let task = &self.tasks[task];
            match task.status {
                _ if !task.status.is_end() || task.plan.command.is_none() && !condition.by_any_work => None,
                TaskStatus::Completed => Some(Some(true)),
                TaskStatus::Failed | TaskStatus::TimedOut => Some(Some(false)),
                _not_run => Some(None),
            }
        };
        let outcomes: BTreeSet<_> = condition.outcome_of.iter().map(outcome).collect();
        match &outcomes.into_iter().collect::<Vec<_>>()[..] {
            [Some(Some(succeeded))] => *succeeded != condition.negated,
            [Some(None)] => false,
            _mixed_or_open => {
                let said = plan.condition_key().and_then(|condition| self.conditions.get(&condition));
                said.is_some_and(|holds| *holds != condition.negated)
            }
        }
    }

    fn n_running(&self, which: impl Fn(&TaskPlan) -> bool) -> usize {
        let running = self.tasks.values().filter(|task| task.status == TaskStatus::Running && is_limited(&task.plan));
        running.filter(|task| which(&task.plan)).count()
    }

    /// True if one more task may run: by lane, kind and assignee.
    fn has_room(&self, plan: &TaskPlan) -> bool {
        let of_kind = self.config.parallelism_by_kind.get(&plan.kind);
        let of_executor = plan.assignee.as_ref().and_then(|name| self.config.parallelism_by_executor.get(name));
        !is_limited(plan)
            || self.n_running(|other| other.command.is_some() == plan.command.is_some()) < self.config.parallelism
                && of_kind.is_none_or(|max| self.n_running(|other| other.kind == plan.kind) < *max)
                && of_executor.is_none_or(|max| self.n_running(|other| other.assignee == plan.assignee) < *max)
    }

    /// Tasks that could start now but have not.
    fn forgotten(&self) -> Vec<TaskId> {
        let is_on = !self.is_paused && !self.is_ended;
        let ready = self.tasks.values().filter(|task| is_on && self.may_start(task.plan.id));
        ready.filter(|task| self.has_room(&task.plan)).map(|task| task.plan.id).collect()
    }
}

/// Questions to people wait only for their turn.
fn is_limited(task: &TaskPlan) -> bool {
    task.kind != NodeKind::Clarification
}

/// A running plan under observation, with executors that start only startable tasks.
struct Run {
    planner: Planner,
    observed: Observed,
    /// The dispatches that executors hold.
    held: BTreeSet<(TaskId, u32)>,
}

impl Run {
    fn begin(draft: &Draft) -> Self {
        let mut run = Self { planner: Planner::default(), observed: Observed::default(), held: BTreeSet::new() };
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
            if let Event::PlanForked { .. } = event {
                self.held.clear();
            }
        }
        self.drop_withdrawn_questions();
        let state = self.planner.state();
        assert_eq!(self.observed.is_ended, matches!(state.phase, Phase::Ended(_)));
        assert_eq!(self.observed.forgotten(), Vec::new(), "it starts what may start");
        self.check_waits();
    }

    /// A plan that has not ended waits for a task, a person or a timer.
    fn check_waits(&self) {
        let state = self.planner.state();
        let waits_for = |task: &Standing| task.status == TaskStatus::Running || task.is_paused;
        let waits = self.observed.is_paused
            || self.observed.tasks.values().any(waits_for)
            || state.open_questions().next().is_some()
            || state.next_timer().is_some()
            || state.waits_for_work();
        assert!(waits || self.observed.is_ended, "{state:?}");
    }

    fn drop_withdrawn_questions(&mut self) {
        let withdrawn = self.planner.state().questions.iter().filter(|question| question.is_withdrawn);
        for question in withdrawn {
            self.observed.asked.remove(&question.id);
        }
    }

    /// The dispatched tasks, each with its attempt; true if an executor holds it.
    fn dispatched(&self) -> Vec<(TaskId, u32, bool)> {
        let dispatched = self.planner.state().dispatched().map(|task| (task.plan.id, task.attempts));
        dispatched.map(|(task, attempt)| (task, attempt, self.held.contains(&(task, attempt)))).collect()
    }

    /// Withdraws the dispatched tasks of a stopped plan that have no holder, as its host does.
    fn withdraw_unstarted(&mut self) {
        for (node_id, attempt, is_held) in self.dispatched() {
            if self.planner.state().stopped_by.is_some() && !is_held {
                self.order(Command::HandleExecutorEvent { task: node_id, event: TaskEvent::TaskWithdrawn { attempt } });
            }
        }
    }

    /// A possible next step: the `choice`th task that is held or may start is claimed or reports, or a person
    /// answers.
    fn go_on(&mut self, choice: usize, how: usize) {
        self.withdraw_unstarted();
        let state = self.planner.state();
        let dispatched = self.dispatched();
        let is_held = |id| dispatched.iter().any(|(task, _, is_held)| *task == id && *is_held);
        let startable = state.startable(is_held);
        let running = dispatched.iter().filter(|(task, _, is_held)| *is_held || startable.contains(task));
        let running = running.copied().collect::<Vec<_>>();
        let open = state.open_questions().cloned().collect::<Vec<_>>();
        let n_ways = running.len() + open.len();
        let waiting = state.tasks.iter().find(|task| task.retry_ms.is_some()).map(|task| task.plan.id);
        if let Some(task) = waiting.filter(|_| n_ways == 0 && state.phase != Phase::Paused) {
            return self.order(Command::RetryNow { task });
        }
        if n_ways == 0 {
            let paused = state.tasks.iter().filter(|task| task.is_paused && !task.status.is_end());
            let paused = paused.map(|task| task.plan.id).collect::<Vec<_>>();
            paused.into_iter().for_each(|task| self.order(Command::ResumeTask { task }));
            return self.order(Command::Resume);
        }
        let command = match choice % n_ways {
            at if at < running.len() => {
                let (task, attempt, is_held) = running[at];
                let n_reports = usize::from(N_REPORTS);
                if !is_held && how / n_reports % 2 == 1 {
                    self.held.insert((task, attempt));
                    return;
                }
                report(task, attempt, u8::try_from(how % n_reports).unwrap())
            }
            at => {
                let question = &open[at - running.len()];
                let words = words(question.purpose);
                Command::Answer { question: question.id, answer: words[how % words.len()].to_owned() }
            }
        };
        self.order(command);
    }

    /// Everyone helps the plan to end; each step must end a task or answer a question.
    fn finish(&mut self) {
        let n_tasks = self.planner.state().tasks.len();
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_with_all_reports_and_answers_ends(draft in drafts(), choices in choices()) {
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
    fn a_plan_ends_despite_any_user_commands_in_between(
        draft in drafts(),
        acts in prop::collection::vec((acts_and_forks(), any::<(u8, u8)>()), 0..40),
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
fn only_allowed_status_transitions_occur() {
    let mut runner = TestRunner::deterministic();
    let mut changes = BTreeSet::new();
    for _ in 0..3_000 {
        let draft = drafts().new_tree(&mut runner).unwrap().current();
        let acts = prop::collection::vec((acts_and_forks(), any::<(u8, u8)>()), 0..40)
            .new_tree(&mut runner)
            .unwrap()
            .current();
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
        "Planned -> Cancelled, Completed, Failed, NeedsClarification, Running, Skipped, TimedOut",
        "Running -> Cancelled, Completed, Failed, NeedsClarification, Planned, Skipped, TimedOut",
        "Skipped -> Planned",
        "TimedOut -> Planned",
    ];
    assert_eq!(table.collect::<Vec<_>>(), expected);
}
