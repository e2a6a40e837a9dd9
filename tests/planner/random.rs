//! Random plans, and random commands to a plan: valid, late, repeated and senseless ones.

use std::collections::BTreeSet;

use crewlog_mq::{Position, Timestamp};
use crewlog_planner::event::{
    Amendment, Command, Edit, FailureClass, Order, PlannerConfig, Purpose, QuestionId, RetryClass, RetrySetting,
    Setting, TaskEvent, TaskStatus, Usage,
};
use crewlog_planner::parse::{ParsedPlan, render};
use crewlog_planner::plan::{
    Condition, DefaultAnswer, Dependency, FailurePolicy, Mark, NodeKind, Origin, Proposal, Strength, SubPlan, TaskId,
    TaskPlan,
};
use crewlog_planner::state::PlannerState;
use proptest::prelude::*;
use proptest::sample::select;

use super::retries::retries;

/// The maximum tasks of a random plan.
pub const TASKS_MAX: u64 = 8;

/// A plan that has not started.
#[derive(Debug, Clone)]
pub struct Draft {
    pub tasks: Vec<TaskPlan>,
    pub config: PlannerConfig,
}

impl Draft {
    /// The command that creates the plan from its exported text.
    pub fn initialize(&self) -> Command {
        if self.tasks.iter().any(has_limits) {
            let (tasks, title, source) = (self.tasks.clone(), Some("Random".into()), String::new());
            let proposal = Proposal { tasks, title, source, context: Vec::new(), origin: Origin::default() };
            let (proposal, config) = (Box::new(proposal), self.config.clone());
            return Command::Initialize { proposal, attachments: Vec::new(), config };
        }
        let plan = ParsedPlan { title: Some("Random".into()), tasks: self.tasks.clone(), ..ParsedPlan::default() };
        let (user_input, config) = (render(&plan), self.config.clone());
        Command::of_text(user_input, config, false).unwrap()
    }
}

/// Plans of every shape: dependencies, conditions, names, boxes, policies and retries.
pub fn drafts() -> impl Strategy<Value = Draft> {
    let policies =
        [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask].to_vec();
    let task = (
        0..4_u8,
        any::<u8>(),
        any::<u8>(),
        prop_oneof![3 => Just(None), 2 => (0..4_u8, any::<bool>()).prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => (0..3_u32).prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => select(policies.clone()).prop_map(Some)],
        marks(),
        limits(),
    );
    let tasks = prop::collection::vec(task, 1..=usize::try_from(TASKS_MAX).unwrap());
    let token_budget = prop_oneof![1 => Just(200_usize), 1 => 200..600_usize, 1 => Just(8_000)];
    (tasks, any::<bool>(), 1..4_usize, 0..3_u32, select(policies), token_budget, plan_limits()).prop_map(
        |(tasks, is_reversed, parallelism, retries_max, on_failure, token_budget, limits)| {
            let n_tasks = tasks.len();
            let tasks = tasks.into_iter().enumerate().map(
                |(index, (kind, some, other, condition, retry, policy, mark, limits))| {
                    let before = if is_reversed { index + 1..n_tasks } else { 0..index };
                    let waits_for = before.filter(|before| some & other & (1 << before) != 0);
                    let depends_on = waits_for.map(|before| Dependency { task: id(before), strength: Strength::Hard });
                    let depends_on = depends_on.collect::<Vec<_>>();
                    TaskPlan {
                        label: label(index, n_tasks, some),
                        condition: condition.map(|(what, negated)| condition_of(what, negated, &depends_on)),
                        depends_on,
                        command: (kind < 2).then(|| "true".to_owned()),
                        optional: other % 5 == 0,
                        retry,
                        rerun_safe: other % 3 == 0,
                        on_failure: policy,
                        mark,
                        deadline_ms: limits.deadline_ms,
                        default_answer: limits.default_answer,
                        compensate: limits.compensate,
                        sub_plan: (kind == 2 && other % 4 == 0).then(|| SubPlan {
                            text: "Weed".into(),
                            agent: None,
                            request: None,
                        }),
                        ..TaskPlan::new(id(index), kind_of(kind), format!("Step {}", index + 1))
                    }
                },
            );
            let tasks = tasks.collect();
            let config = PlannerConfig { parallelism, retry: retries(retries_max), on_failure, token_budget, ..limits };
            Draft { tasks, config }
        },
    )
}

fn marks() -> impl Strategy<Value = Mark> {
    prop_oneof![
        12 => Just(Mark::Open),
        1 => Just(Mark::InProgress),
        1 => Just(Mark::Done),
        1 => Just(Mark::Cancelled),
        1 => Just(Mark::Deferred),
    ]
}

/// No name, an id, an address, or the number of a task that may be added later.
fn label(index: usize, n_tasks: usize, pick: u8) -> Option<String> {
    match pick % 4 {
        0 => Some(format!("T{index:03}")),
        1 => Some(format!("Deploy/{}", index + 1)),
        2 => Some((n_tasks + index + 1).to_string()),
        _ => None,
    }
}

/// A condition that a person decides, or the outcome of a dependency or of all.
fn condition_of(what: u8, negated: bool, depends_on: &[Dependency]) -> Condition {
    let one = depends_on.get(usize::from(what / 2)).filter(|_| what.is_multiple_of(2));
    let decide = if what == 0 { depends_on } else { one.map_or(&[][..], std::slice::from_ref) };
    let outcome_of = decide.iter().map(|one| one.task).collect::<Vec<_>>();
    let text = match &outcome_of[..] {
        [] => ["it rains", "it is late"][usize::from(what / 2)].to_owned(),
        tasks => Condition::outcome_text(&tasks.iter().map(TaskId::to_string).collect::<Vec<_>>()),
    };
    Condition { text, negated, outcome_of, by_any_work: negated, first: Some(TaskId(1)) }
}

/// Settings that the text cannot express for every task.
#[derive(Debug, Clone, Default)]
struct Limits {
    deadline_ms: Option<u64>,
    default_answer: Option<DefaultAnswer>,
    compensate: Option<String>,
}

fn limits() -> impl Strategy<Value = Limits> {
    let default = || DefaultAnswer { answer: "blue".into(), after_ms: 300 };
    let some = (prop::option::of(0..1_000_u64), any::<bool>(), any::<bool>()).prop_map(
        move |(deadline_ms, has_default, undoes)| {
            let compensate = undoes.then(|| "undo".to_owned());
            Limits { deadline_ms, default_answer: has_default.then(default), compensate }
        },
    );
    prop_oneof![3 => Just(Limits::default()), 1 => some]
}

fn has_limits(task: &TaskPlan) -> bool {
    let has_sub_plan = task.sub_plan.is_some();
    task.deadline_ms.is_some() || task.default_answer.is_some() || task.compensate.is_some() || has_sub_plan
}

/// Settings that limit the plan as a whole.
fn plan_limits() -> impl Strategy<Value = PlannerConfig> {
    let deadline_ms = prop_oneof![5 => Just(None), 1 => (0..2_000_u64).prop_map(Some)];
    (deadline_ms, any::<bool>()).prop_map(|(deadline_ms, compensate)| PlannerConfig {
        deadline_ms,
        compensate,
        ..PlannerConfig::default()
    })
}

fn id(index: usize) -> TaskId {
    TaskId(index as u64 + 1)
}

fn kind_of(n: u8) -> NodeKind {
    match n {
        0 | 1 => NodeKind::ToolCall,
        2 => NodeKind::Processing,
        _ => NodeKind::Clarification,
    }
}

/// A command that is resolved once the plan's state is known.
#[derive(Debug, Clone)]
pub enum Act {
    /// For the `pick`th running task, or for any task when `is_wild`.
    Report {
        pick: u8,
        is_wild: bool,
        attempt_shift: i8,
        how: u8,
    },
    /// For the `pick`th open question, or for any question when `is_wild`.
    Answer {
        pick: u8,
        is_wild: bool,
        word: u8,
    },
    Cancel {
        task: Option<u8>,
    },
    Retry {
        task: Option<u8>,
    },
    Pause,
    Resume,
    /// One or several changes to tasks.
    Amend(Vec<Change>),
    /// Changes a limit, or the order.
    Configure {
        what: u8,
        n: u8,
    },
    PauseTask {
        pick: u8,
    },
    ResumeTask {
        pick: u8,
    },
    Continue,
    Tick {
        at: u16,
    },
    Use {
        pick: u8,
        tokens: u16,
    },
    Withdraw {
        pick: u8,
    },
    Ask {
        task: u8,
        has_default: bool,
    },
    AnswerAndAsk {
        pick: u8,
        word: u8,
    },
    RetryNow {
        task: u8,
    },
    Undo,
    Compact {
        max_tokens: usize,
    },
    /// A summary of all completed tasks, requested or not.
    /// From the parent plan: pause, resume, compensation.
    FromParent {
        what: u8,
    },
    /// Continues as a fork with a change to its tasks.
    Fork {
        at: u8,
        change: Option<Change>,
    },
    Initialize,
}

/// A change to the tasks of a plan; tasks are picked from the existing ones and one beyond.
#[derive(Debug, Clone)]
pub enum Change {
    Add { text: u8, after: Vec<u8>, before: Vec<u8> },
    Edit { pick: u8, field: u8, n: u8 },
    Skip { pick: u8 },
    Done { pick: u8 },
    Source { n: u8 },
    Reorder { pick: u8, after: Vec<u8> },
    Define { pick: u8, n: u8, after: Vec<u8> },
}

/// Texts to add to plans. Together with the maximum tasks of a draft they are few enough to be picked often.
const ADDED: [&str; 7] = [
    "- Look again",
    "1. Run `echo a`\n2. Run `echo b`\n",
    "- [x] Run `echo done`\n- [ ] A: weed (depends on B) (priority: high) @ann\n- [ ] B: hoe\n- [~] mow\n",
    "1. Run `echo a`\n2. If it fails, run `echo b`\n3. Otherwise, run `echo c`\n",
    "If it rains, wait. Otherwise, sow.",
    "Which colour?",
    "",
];

fn changes() -> impl Strategy<Value = Change> {
    let tasks = || prop::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        4 => (any::<u8>(), tasks(), tasks()).prop_map(|(text, after, before)| Change::Add { text, after, before }),
        3 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(pick, field, n)| Change::Edit { pick, field, n }),
        2 => any::<u8>().prop_map(|pick| Change::Skip { pick }),
        2 => any::<u8>().prop_map(|pick| Change::Done { pick }),
        1 => any::<u8>().prop_map(|n| Change::Source { n }),
        3 => (any::<u8>(), tasks()).prop_map(|(pick, after)| Change::Reorder { pick, after }),
        3 => (any::<u8>(), any::<u8>(), tasks()).prop_map(|(pick, n, after)| Change::Define { pick, n, after }),
    ]
}

impl Change {
    fn amendment(&self, state: &PlannerState) -> Amendment {
        let task = |pick: u8| TaskId(u64::from(pick) % state.next_id().max(1) + 1);
        let tasks = |picks: &[u8]| picks.iter().map(|pick| task(*pick)).collect::<Vec<_>>();
        match self {
            Self::Add { text, after, before } => {
                let text = ADDED[usize::from(*text) % ADDED.len()].to_owned();
                Amendment::Add { text, after: tasks(after), before: tasks(before) }
            }
            Self::Edit { pick, field, n } => Amendment::Edit { task: task(*pick), edits: vec![edit(*field, *n)] },
            Self::Skip { pick } => Amendment::Skip { task: task(*pick), keeps_order: true },
            Self::Done { pick } => Amendment::Done { task: task(*pick) },
            Self::Source { n } => Amendment::Source { text: format!("- Sow row {n}\n") },
            Self::Reorder { pick, after } => Amendment::Reorder { task: task(*pick), after: tasks(after) },
            Self::Define { pick, n, after } => {
                let id = TaskId(u64::from(*pick) % state.next_id().max(1) + 1);
                let known = state.task(id).map(|task| task.plan.clone());
                let plan = known.unwrap_or_else(|| TaskPlan::new(id, NodeKind::Processing, "Rake"));
                let depends_on = tasks(after).into_iter().collect::<BTreeSet<_>>().into_iter();
                let depends_on = depends_on.map(|task| Dependency { task, strength: Strength::Hard }).collect();
                let (retry, description) = (Some(u32::from(n % 3)), format!("Defined {n}"));
                Amendment::Define { tasks: vec![TaskPlan { description, depends_on, retry, ..plan }] }
            }
        }
    }
}

fn edit(field: u8, n: u8) -> Edit {
    let some = |text: &str| (!n.is_multiple_of(3)).then(|| text.to_owned());
    match field % 10 {
        0 => Edit::Description(["other", "", "longer than before"][usize::from(n % 3)].into()),
        1 => Edit::Kind([NodeKind::Analysis, NodeKind::Clarification, NodeKind::ToolCall][usize::from(n % 3)]),
        2 => Edit::Command(some("true")),
        3 => Edit::Label(some(["A", "b", "C"][usize::from(n % 3)])),
        4 => Edit::Priority(some(["low", "P0", "!!!"][usize::from(n % 3)])),
        5 => Edit::Assignee(some(["ann", "bob"][usize::from(n % 2)])),
        6 => Edit::Retry(Some(u32::from(n % 3))),
        7 => Edit::OnFailure(Some([FailurePolicy::Ask, FailurePolicy::Stop][usize::from(n % 2)])),
        8 => Edit::EstimateMs(Some(u64::from(n) * 1_000)),
        _ => Edit::Files(vec!["src/*.rs".into()]),
    }
}

fn setting(what: u8, n: u8) -> Setting {
    let limit = (n % 4 < 3).then(|| usize::from(n % 4));
    match what % 8 {
        0 | 1 => Setting::Parallelism(usize::from(n % 5)),
        2 => Setting::ParallelismOfKind(NodeKind::ToolCall, limit),
        3 => Setting::ParallelismOfKind(NodeKind::Processing, limit),
        4 => Setting::ParallelismOfExecutor("ann".into(), limit),
        5 => Setting::Order(if n.is_multiple_of(2) { Order::Place } else { Order::CriticalPath }),
        6 => Setting::Retry(RetryClass::Transient, RetrySetting::Count(u32::from(n % 3))),
        _ => Setting::OnFailure(if n.is_multiple_of(2) { FailurePolicy::Stop } else { FailurePolicy::Ask }),
    }
}

pub fn acts() -> impl Strategy<Value = Act> {
    let wild = prop::bool::weighted(0.2);
    let shift = prop_oneof![8 => Just(0_i8), 1 => Just(-1), 1 => Just(1)];
    let some_task = || prop_oneof![1 => Just(None), 3 => (0..10_u8).prop_map(Some)];
    prop_oneof![
        12 => (any::<u8>(), wild, shift, 0..N_REPORTS)
            .prop_map(|(pick, is_wild, attempt_shift, how)| Act::Report { pick, is_wild, attempt_shift, how }),
        6 => (any::<u8>(), prop::bool::weighted(0.2), 0..9_u8)
            .prop_map(|(pick, is_wild, word)| Act::Answer { pick, is_wild, word }),
        1 => some_task().prop_map(|task| Act::Cancel { task }),
        2 => some_task().prop_map(|task| Act::Retry { task }),
        1 => Just(Act::Pause),
        2 => Just(Act::Resume),
        6 => prop::collection::vec(changes(), 0..3).prop_map(Act::Amend),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(what, n)| Act::Configure { what, n }),
        2 => any::<u8>().prop_map(|pick| Act::PauseTask { pick }),
        2 => any::<u8>().prop_map(|pick| Act::ResumeTask { pick }),
        1 => Just(Act::Continue),
        5 => (0..2_000_u16).prop_map(|at| Act::Tick { at }),
        3 => of_time_and_questions(),
        1 => (0..60_usize).prop_map(|max_tokens| Act::Compact { max_tokens }),
        2 => any::<u8>().prop_map(|what| Act::FromParent { what }),
        1 => Just(Act::Initialize),
    ]
}

/// The commands, and forks: after a fork the plan is the fork, which continues from the previous state.
pub fn acts_and_forks() -> impl Strategy<Value = Act> {
    let fork = (any::<u8>(), prop::option::of(changes())).prop_map(|(at, change)| Act::Fork { at, change });
    prop_oneof![20 => acts(), 1 => fork]
}

impl Act {
    pub fn command(&self, draft: &Draft, state: &PlannerState) -> Command {
        let task = |n: u8| TaskId(u64::from(n));
        match self {
            Self::Report { pick, is_wild, attempt_shift, how } => {
                let running = || {
                    let running = state.tasks.iter().filter(|task| task.status == TaskStatus::Running);
                    pick_of(&running.map(|task| task.plan.id).collect::<Vec<_>>(), *pick)
                };
                let node_id = if *is_wild { None } else { running() }.unwrap_or_else(|| task(pick % 10));
                let attempts = state.task(node_id).map_or(1, |task| task.attempts);
                let attempt = attempts.saturating_add_signed(i32::from(*attempt_shift));
                report(node_id, attempt, *how)
            }
            Self::Answer { pick, is_wild, word } => {
                let open = || {
                    let open = state.open_questions().map(|question| question.id);
                    pick_of(&open.collect::<Vec<_>>(), *pick)
                };
                let wild = QuestionId(u64::from(pick % 6));
                let question = if *is_wild { None } else { open() }.unwrap_or(wild);
                let words = ["yes", "no", "retry", "done", "skip", "continue", "stop", "blue", ""];
                let answer = words[usize::from(*word)].to_owned();
                Command::Answer { question, answer }
            }
            Self::Cancel { task: picked } => Command::Cancel { task: picked.map(task), reason: "not wanted".into() },
            Self::Retry { task: picked } => Command::Retry { task: picked.map(task) },
            Self::Pause => Command::Pause { reason: "lunch".into() },
            Self::Resume => Command::Resume,
            Self::Amend(changes) => {
                let amendments = changes.iter().map(|change| change.amendment(state)).collect();
                Command::Amend { amendments, reason: "it is better so".into() }
            }
            Self::Configure { what, n } => {
                Command::Configure { changes: vec![setting(*what, *n)], reason: "there is more room".into() }
            }
            Self::PauseTask { pick } => {
                let task = TaskId(u64::from(*pick) % state.next_id().max(1) + 1);
                Command::PauseTask { task, reason: "not yet".into() }
            }
            Self::ResumeTask { pick } => {
                let paused = state.tasks.iter().filter(|task| task.is_paused).map(|task| task.plan.id);
                let task = pick_of(&paused.collect::<Vec<_>>(), *pick).unwrap_or_else(|| task(pick % 10));
                Command::ResumeTask { task }
            }
            Self::Continue => Command::Continue,
            Self::Use { .. }
            | Self::Withdraw { .. }
            | Self::Ask { .. }
            | Self::AnswerAndAsk { .. }
            | Self::RetryNow { .. }
            | Self::FromParent { .. }
            | Self::Fork { .. }
            | Self::Undo => self.of_time_and_questions(state),
            Self::Tick { at } => match state.next_timer() {
                Some((Some(due), timer)) => Command::FireTimer { timer, due },
                Some((None, _)) | None => Command::SetTimers { now: Timestamp(i64::from(*at) * 1_000) },
            },
            Self::Compact { max_tokens } => Command::CompactContext { max_tokens: *max_tokens },
            Self::Initialize => draft.initialize(),
        }
    }
}

/// Commands about usage, questions, immediate retries and compensation.
fn of_time_and_questions() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (any::<u8>(), 0..3_000_u16).prop_map(|(pick, tokens)| Act::Use { pick, tokens }),
        2 => any::<u8>().prop_map(|pick| Act::Withdraw { pick }),
        2 => (0..10_u8, any::<bool>()).prop_map(|(task, has_default)| Act::Ask { task, has_default }),
        2 => (any::<u8>(), 0..9_u8).prop_map(|(pick, word)| Act::AnswerAndAsk { pick, word }),
        2 => (0..10_u8).prop_map(|task| Act::RetryNow { task }),
        1 => Just(Act::Undo),
    ]
}

impl Act {
    fn of_time_and_questions(&self, state: &PlannerState) -> Command {
        let open = |pick: u8| {
            let open = state.open_questions().map(|question| question.id).collect::<Vec<_>>();
            pick_of(&open, pick).unwrap_or(QuestionId(u64::from(pick % 6)))
        };
        let task = |n: &u8| TaskId(u64::from(*n));
        match self {
            Self::Use { pick, tokens } => {
                let begun = state.tasks.iter().filter(|task| task.attempts > 0);
                let begun = begun.map(|task| (task.plan.id, task.attempts)).collect::<Vec<_>>();
                let (node_id, attempt) = pick_of(&begun, *pick).unwrap_or((TaskId(1), 1));
                let n = u64::from(*tokens);
                let estimated_tokens = if n % 3 == 2 { n } else { 0 };
                let usage = Usage { input_tokens: n, duration_ms: 7, estimated_tokens, ..Usage::default() };
                let epoch = n % 8;
                Command::HandleExecutorEvent {
                    task: node_id,
                    event: TaskEvent::UsageReported { attempt, epoch, usage },
                }
            }
            Self::Withdraw { pick } => Command::Withdraw { question: open(*pick), reason: "nobody knows".into() },
            Self::Ask { task: picked, has_default } => {
                let default = has_default.then(|| DefaultAnswer { answer: "blue".into(), after_ms: 200 });
                Command::Ask { task: task(picked), question: "How many?".into(), default }
            }
            Self::AnswerAndAsk { pick, word } => {
                let answer = if word % 2 == 0 { "yes" } else { "blue" }.to_owned();
                Command::AnswerAndAsk { question: open(*pick), answer, further: "And where?".into() }
            }
            Self::RetryNow { task: picked } => Command::RetryNow { task: task(picked) },
            Self::FromParent { what } => match what % 5 {
                0 | 1 => Command::PauseFromParent { reason: "the parent plan is paused".into() },
                2 | 3 => Command::ResumeFromParent,
                _ => Command::CancelFromParent { reason: "its task has ended".into() },
            },
            Self::Fork { at, change } => {
                let amendments = change.iter().map(|change| change.amendment(state)).collect();
                let (at, reason) = (Position(i64::from(*at)), "another way".to_owned());
                Command::Fork { parent: "parent".into(), at, reason, pauses: at.0 % 2 == 1, amendments }
            }
            Self::Undo
            | Self::Tick { .. }
            | Self::Report { .. }
            | Self::Answer { .. }
            | Self::Cancel { .. }
            | Self::Retry { .. }
            | Self::Pause
            | Self::Resume
            | Self::Amend(_)
            | Self::Configure { .. }
            | Self::PauseTask { .. }
            | Self::ResumeTask { .. }
            | Self::Continue
            | Self::Compact { .. }
            | Self::Initialize => Command::CancelAndUndo { reason: "not wanted".into() },
        }
    }
}

fn pick_of<T: Copy>(of: &[T], pick: u8) -> Option<T> {
    (!of.is_empty()).then(|| of[usize::from(pick) % of.len()])
}

/// The number of ways in which an executor reports.
pub const N_REPORTS: u8 = 10;

/// One of the ways in which an executor reports.
pub fn report(node_id: TaskId, attempt: u32, how: u8) -> Command {
    let failed = |class| Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::TaskFailed { attempt, error: "it broke".into(), class, epoch: 1, run: None },
    };
    match how {
        1 => failed(FailureClass::Task),
        2 => failed(FailureClass::NotStarted),
        3 => failed(FailureClass::TimedOut),
        4 => failed(FailureClass::RateLimited { retry_after_ms: attempt.is_multiple_of(2).then_some(5) }),
        5 => Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::NeedsClarification { attempt, question: "Which one?".into(), default: None, epoch: 1 },
        },
        6 => failed(FailureClass::OutcomeUnknown),
        8 => failed(FailureClass::OverBudget),
        9 => failed(FailureClass::ForPerson),
        7 => Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskCompleted { attempt, result: "much was done ".repeat(50), epoch: 1, run: None },
        },
        _ => Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskCompleted { attempt, result: "ok".into(), epoch: 1, run: None },
        },
    }
}

/// Answers that a question accepts; the first ends the plan soonest.
pub fn words(purpose: Purpose) -> &'static [&'static str] {
    match purpose {
        Purpose::Task | Purpose::Executor => &["blue"],
        Purpose::Condition => &["yes", "no"],
        Purpose::Failure => &["skip", "continue", "stop", "done", "retry"],
    }
}
