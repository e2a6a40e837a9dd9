//! Forks: which parts of a parent's history a fork keeps, and which it drops.

use std::collections::BTreeMap;

use crewlog_mq::{Handler, Position};
use crewlog_planner::event::{
    Amendment, Command, Edit, Event, FailureClass, PlannerConfig, Purpose, QuestionId, Setting, TaskEvent, TaskStatus,
    Usage,
};
use crewlog_planner::plan::{FailurePolicy, Parent, TaskId};
use crewlog_planner::planner::{FORK_DEPTH_MAX, Planner, PlannerError};
use crewlog_planner::prompt::render as render_prompt;
use crewlog_planner::state::{Phase, PlannerState, Task};
use proptest::prelude::*;

use super::random::{acts, drafts};

fn initialize(text: &str) -> Command {
    let config = PlannerConfig { on_failure: FailurePolicy::SkipDependants, ..PlannerConfig::default() };
    Command::of_text(text.into(), config, false).unwrap()
}

fn fork(parent: &str, at: i64) -> Command {
    fork_with(parent, at, Vec::new())
}

fn fork_with(parent: &str, at: i64, amendments: Vec<Amendment>) -> Command {
    let (parent, at, reason) = (parent.into(), Position(at), "another way".into());
    Command::Fork { parent, at, reason, pauses: false, amendments }
}

fn completed(task: u64, attempt: u32, result: &str) -> Command {
    Command::HandleExecutorEvent {
        task: TaskId(task),
        event: TaskEvent::TaskCompleted { attempt, result: result.into(), epoch: 1, run: None },
    }
}

fn statuses(state: &PlannerState) -> Vec<TaskStatus> {
    state.tasks.iter().map(|task| task.status).collect()
}

/// A planner after these commands.
fn planner(commands: Vec<Command>) -> Planner {
    let mut planner = Planner::default();
    for command in commands {
        planner.process(command).unwrap();
    }
    planner
}

/// The fork of a plan in its current state.
fn forked(planner: &Planner) -> (Planner, Vec<Event>) {
    let mut fork_of_it = planner.clone();
    let events = fork_of_it.process(fork("parent", 7)).unwrap();
    (fork_of_it, events)
}

#[test]
fn a_fork_keeps_ended_tasks_and_restarts_the_others() {
    let text = "1. Run `a`\n2. Run `b`\n3. Run `c`\n";
    let parent = planner(vec![initialize(text), completed(1, 1, "built")]);
    let (fork, events) = forked(&parent);
    assert_eq!(statuses(fork.state()), [TaskStatus::Completed, TaskStatus::Running, TaskStatus::Planned]);
    assert_eq!(fork.state().tasks[0].result.as_deref(), Some("built"));
    assert_eq!(fork.state().tasks[1].attempts, 1, "a dispatch of its own");
    let parent = Parent { plan: "parent".into(), at: Position(7), reason: "another way".into() };
    assert_eq!(fork.state().parent, Some(parent));
    assert!(matches!(
        &events[..],
        [Event::PlanForked { .. }, Event::TaskDispatched { task_id: TaskId(2), attempt: 1, .. }]
    ));
}

#[test]
fn a_fork_does_not_undo_tasks_of_its_parent() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let user_input = "1. Run `a` (undo: `x`)\n2. Run `b` (undo: `y`)\n3. Run `c`\n".to_owned();
    let begin = Command::of_text(user_input, config, false).unwrap();
    let parent = planner(vec![begin, completed(1, 1, "done")]);
    let (mut fork, _) = forked(&parent);
    fork.process(completed(2, 1, "done")).unwrap();
    let failed = Command::HandleExecutorEvent {
        task: TaskId(3),
        event: TaskEvent::TaskFailed { attempt: 1, error: "no".into(), class: FailureClass::Task, epoch: 1, run: None },
    };
    fork.process(failed).unwrap();
    let undoing = fork.state().tasks.iter().filter_map(|task| task.plan.compensates).collect::<Vec<_>>();
    assert_eq!(undoing, [TaskId(2)], "task 1 was done by the other plan");
}

#[test]
fn a_prompt_in_a_fork_of_an_undone_plan_lists_the_undone_task_as_open_only() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let user_input = "1. Make alpha with `a` (undo: `x`)\n2. Run `b`\n".to_owned();
    let begin = Command::of_text(user_input, config, false).unwrap();
    let failed = Command::HandleExecutorEvent {
        task: TaskId(2),
        event: TaskEvent::TaskFailed { attempt: 1, error: "no".into(), class: FailureClass::Task, epoch: 1, run: None },
    };
    let parent = planner(vec![begin, completed(1, 1, "alpha is there"), failed, completed(3, 1, "alpha is gone")]);
    let mut fork = parent.clone();
    let review = Amendment::Add { text: "Review the sources".into(), after: Vec::new(), before: Vec::new() };
    fork.process(fork_with("parent", 9, vec![review])).unwrap();
    let added = fork.state().tasks.last().unwrap();
    let prompt = render_prompt(fork.state(), added).unwrap();
    let lines = prompt.lines().filter(|line| line.contains("alpha")).collect::<Vec<_>>();
    assert_eq!(
        lines,
        ["3 done: Undo 1: Make alpha with `a` -> alpha is gone", "- 1 under way: Make alpha with `a`"],
        "{prompt}"
    );
}

#[test]
fn a_fork_skips_its_parents_compensating_tasks_and_their_questions() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let user_input = "1. Run `a` (undo: `x`)\n2. Run `b`\n".to_owned();
    let begin = Command::of_text(user_input, config, false).unwrap();
    let failed = Command::HandleExecutorEvent {
        task: TaskId(2),
        event: TaskEvent::TaskFailed { attempt: 1, error: "no".into(), class: FailureClass::Task, epoch: 1, run: None },
    };
    let (node_id, question) = (TaskId(3), "Really?".to_owned());
    let asks = Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::NeedsClarification { attempt: 1, question, default: None, epoch: 1 },
    };
    let reports = [failed, asks];
    let parent = planner([begin, completed(1, 1, "done")].into_iter().chain(reports).collect());
    assert_eq!(statuses(parent.state())[2], TaskStatus::NeedsClarification);
    let (fork, _) = forked(&parent);
    assert_eq!((statuses(fork.state())[2], fork.state().open_questions().count()), (TaskStatus::Skipped, 0));
}

#[test]
fn a_fork_asks_open_questions_again_and_keeps_answers() {
    let text = "1. Ask: which colour?\n2. If it rains, run `b`\n3. Run `c`\n";
    let config = PlannerConfig::default();
    let initialize = Command::of_text(text.into(), config, true).unwrap();
    let parent = planner(vec![initialize]);
    let asked = |planner: &Planner| planner.state().open_questions().cloned().collect::<Vec<_>>();
    assert_eq!(asked(&parent).len(), 2, "{:?}", parent.state());
    let (fork, _) = forked(&parent);
    let again = asked(&fork);
    assert_eq!(again.iter().map(|question| question.id).collect::<Vec<_>>(), [QuestionId(3), QuestionId(4)]);
    let words = |planner: &Planner| asked(planner).into_iter().map(|question| question.question).collect::<Vec<_>>();
    assert_eq!(words(&fork), words(&parent));
    // Answers to the parent's questions do not apply to the fork.
    let late = Command::Answer { question: QuestionId(1), answer: "red".into() };
    let refused = fork.clone().process(late).unwrap_err();
    assert_eq!(refused, PlannerError::QuestionClosed(QuestionId(1), None));
    // The fork keeps an answer given before it.
    let asker = asked(&parent).into_iter().find(|question| question.purpose == Purpose::Task).unwrap();
    let mut parent = parent;
    parent.process(Command::Answer { question: asker.id, answer: "blue".to_owned() }).unwrap();
    let (fork, _) = forked(&parent);
    assert_eq!(fork.state().task(asker.task).unwrap().result.as_deref(), Some("blue"));
}

#[test]
fn a_fork_asks_an_executors_open_question_again_and_its_task_waits() {
    let asks = Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::NeedsClarification { attempt: 1, question: "Which branch?".into(), default: None, epoch: 1 },
    };
    let parent = planner(vec![initialize("1. Run `a`\n2. Run `b`\n"), asks]);
    let (mut fork, events) = forked(&parent);
    assert_eq!(statuses(fork.state()), [TaskStatus::NeedsClarification, TaskStatus::Planned]);
    assert!(
        matches!(&events[..], [Event::PlanForked { .. }, Event::ClarificationRequested { question_id: QuestionId(2), question, .. }] if question == "Which branch?"),
        "{events:?}"
    );
    fork.process(Command::Answer { question: QuestionId(2), answer: "main".to_owned() }).unwrap();
    assert_eq!(statuses(fork.state()), [TaskStatus::Running, TaskStatus::Planned]);
    assert_eq!(statuses(parent.state()), [TaskStatus::NeedsClarification, TaskStatus::Planned]);
}

#[test]
fn a_fork_of_a_paused_ended_or_cancelled_plan_is_active() {
    let text = "1. Run `a`\n2. Run `b`\n";
    let paused = planner(vec![initialize(text), Command::Pause { reason: "wait".into() }]);
    let (fork, _) = forked(&paused);
    assert_eq!(fork.state().phase, Phase::Active);
    assert_eq!(statuses(fork.state()), [TaskStatus::Running, TaskStatus::Planned]);
    let cancelled = Command::Cancel { task: Some(TaskId(2)), reason: "no".into() };
    let ended = planner(vec![initialize(text), cancelled, completed(1, 1, "")]);
    assert!(matches!(ended.state().phase, Phase::Ended(_)));
    let (mut fork, events) = forked(&ended);
    // Nothing is left to do, so the fork ends like its parent, by its own decision.
    assert!(matches!(&events[..], [Event::PlanForked { .. }, Event::PlanningCompleted { .. }]), "{events:?}");
    fork.process(Command::Retry { task: Some(TaskId(2)) }).unwrap();
    assert_eq!(statuses(fork.state()), [TaskStatus::Completed, TaskStatus::Running]);
}

#[test]
fn a_fork_that_begins_paused_starts_nothing_until_it_is_resumed() {
    let parent = planner(vec![initialize("1. Run `a`\n2. Run `b`\n")]);
    let (reason, amendments) = ("slower".to_owned(), Vec::new());
    let command = Command::Fork { parent: "parent".into(), at: Position(2), reason, pauses: true, amendments };
    let mut fork = parent.clone();
    let events = fork.process(command.clone()).unwrap();
    assert!(matches!(&events[..], [Event::PlanForked { .. }, Event::PlanPaused { .. }]), "{events:?}");
    assert_eq!(Command::restore(&command.recorded(), &events).unwrap(), command);
    assert_eq!(statuses(fork.state()), [TaskStatus::Planned, TaskStatus::Planned]);
    let changes = vec![Setting::Parallelism(1)];
    fork.process(Command::Configure { changes, reason: "slower".into() }).unwrap();
    let added = vec![Amendment::Add { text: "Run `c`".into(), after: Vec::new(), before: vec![TaskId(2)] }];
    fork.process(Command::Amend { amendments: added, reason: "first".into() }).unwrap();
    assert_eq!(statuses(fork.state()), [TaskStatus::Planned; 3]);
    fork.process(Command::Resume).unwrap();
    assert_eq!(statuses(fork.state()), [TaskStatus::Running, TaskStatus::Planned, TaskStatus::Planned]);
}

#[test]
fn the_words_of_a_pause_keep_no_plan_open() {
    let pause = Command::Pause { reason: "a fork begins paused".into() };
    let paused = planner(vec![initialize("1. Run `a`\n"), pause, completed(1, 1, "")]);
    assert!(paused.state().phase.is_ended(), "{:?}", paused.state().phase);
}

#[test]
fn a_paused_fork_of_a_completed_plan_stays_open_for_changes() {
    let parent = planner(vec![initialize("1. Run `a`\n"), completed(1, 1, "built")]);
    let (reason, amendments) = ("more".to_owned(), Vec::new());
    let command = Command::Fork { parent: "parent".into(), at: Position(4), reason, pauses: true, amendments };
    let mut fork = parent.clone();
    fork.process(command).unwrap();
    assert_eq!(fork.state().phase, Phase::Paused);
    let mut untouched = fork.clone();
    untouched.process(Command::Resume).unwrap();
    assert_eq!(untouched.state().phase, parent.state().phase, "it ends like its parent");
    let added = vec![Amendment::Add { text: "Run `b`".into(), after: Vec::new(), before: Vec::new() }];
    fork.process(Command::Amend { amendments: added, reason: "more".into() }).unwrap();
    assert_eq!(statuses(fork.state()), [TaskStatus::Completed, TaskStatus::Planned]);
    fork.process(Command::Cancel { task: None, reason: "no".into() }).unwrap();
    assert!(matches!(fork.state().phase, Phase::Ended(_)));
}

#[test]
fn a_fork_with_amendments_starts_no_task_in_its_old_form() {
    let parent = planner(vec![initialize("1. Run `a`\n2. Run `b`\n3. Run `c`\n"), completed(1, 1, "built")]);
    let other = Amendment::Edit { task: TaskId(2), edits: vec![Edit::Command(Some("other".into()))] };
    let added = Amendment::Add { text: "Run `first`".into(), after: Vec::new(), before: vec![TaskId(2)] };
    let left_out = Amendment::Skip { task: TaskId(3), keeps_order: true };
    let command = fork_with("parent", 7, vec![other.clone(), added, left_out]);
    let mut fork = parent.clone();
    let events = fork.process(command.clone()).unwrap();
    assert!(
        matches!(
            &events[..],
            [
                Event::PlanForked { .. },
                Event::TasksAmended { .. },
                Event::TaskStatusUpdated { task_id: TaskId(3), status: TaskStatus::Skipped, .. },
                Event::TaskDispatched { task_id: TaskId(4), .. }
            ]
        ),
        "{events:?}"
    );
    assert_eq!(fork.state().task(TaskId(2)).unwrap().plan.command.as_deref(), Some("other"));
    assert_eq!(parent.state().task(TaskId(2)).unwrap().plan.command.as_deref(), Some("b"), "the parent is as it was");
    assert_eq!(Command::restore(&command.recorded(), &events).unwrap(), command);
    // Tasks that had ended stay unchanged, and then there is nothing to fork.
    let ended = Amendment::Edit { task: TaskId(1), edits: vec![Edit::Command(Some("other".into()))] };
    let refused = parent.clone().process(fork_with("parent", 7, vec![other, ended]));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn fork_depth_is_limited_and_a_plan_cannot_be_forked_twice_or_from_nothing() {
    let mut plan = planner(vec![initialize("1. Run `a`\n")]);
    assert_eq!(Planner::default().process(fork("parent", 1)), Err(PlannerError::NotPlanned));
    for depth in 0..FORK_DEPTH_MAX {
        plan.process(fork(&format!("p{depth}"), 1)).unwrap();
        assert_eq!(plan.process(fork(&format!("p{depth}"), 1)), Err(PlannerError::AlreadyPlanned));
    }
    assert_eq!(plan.process(fork("last", 1)), Err(PlannerError::TooManyForks(FORK_DEPTH_MAX)));
}

#[test]
fn a_checkpoint_has_a_unique_non_numeric_name() {
    let mut plan = planner(vec![initialize("1. Run `a`\n")]);
    let name = |name: &str| Command::NameCheckpoint { name: name.into() };
    let named = plan.process(name("before-lunch")).unwrap();
    assert_eq!(named, [Event::CheckpointNamed { name: "before-lunch".into() }]);
    let taken = PlannerError::CheckpointTaken("before-lunch".into());
    assert_eq!(plan.process(name("before-lunch")), Err(taken));
    for bad in ["", "12", "-3", "a b", "a@b", "a\nb", &"x".repeat(65)] {
        assert_eq!(plan.process(name(bad)), Err(PlannerError::CheckpointName(bad.into())));
    }
    plan.process(name("v1.2_rc-3")).unwrap();
    let (fork, _) = forked(&plan);
    assert_eq!(fork.state().checkpoints, ["before-lunch", "v1.2_rc-3"], "they are of the history, which is shared");
}

/// Reports and answers until the plan has ended.
fn run_to_completion(planner: &mut Planner) {
    planner.process(Command::Resume).unwrap();
    let paused = planner.state().tasks.iter().filter(|task| task.is_paused).map(|task| task.plan.id);
    for task in paused.collect::<Vec<_>>() {
        planner.process(Command::ResumeTask { task }).unwrap();
    }
    for _ in 0..1_000 {
        if let Phase::Ended(_) = planner.state().phase {
            return;
        }
        let question = planner.state().open_questions().next().cloned();
        let waiting = planner.state().tasks.iter().find(|task| task.retry_ms.is_some()).map(|task| task.plan.id);
        let command = if let Some(task) = waiting {
            Command::RetryNow { task }
        } else if let Some(question) = question {
            let answer = match question.purpose {
                Purpose::Failure => "skip",
                Purpose::Condition => "yes",
                Purpose::Task | Purpose::Executor => "so",
            };
            Command::Answer { question: question.id, answer: answer.into() }
        } else {
            let running = planner.state().tasks.iter().find(|task| task.status == TaskStatus::Running);
            let running = running.unwrap_or_else(|| panic!("it stands still: {:?}", planner.state()));
            let (node_id, attempt) = (running.plan.id, running.attempts);
            Command::HandleExecutorEvent {
                task: node_id,
                event: TaskEvent::TaskCompleted { attempt, result: "ok".into(), epoch: 1, run: None },
            }
        };
        planner.process(command).unwrap();
    }
    panic!("it does not end");
}

/// The tasks of a fork right after its first event.
fn pending(parent: &PlannerState) -> Vec<Task> {
    let fresh = |task: &Task| Task {
        status: TaskStatus::Planned,
        attempts: 0,
        retries: BTreeMap::new(),
        result: None,
        error: None,
        unblocks: false,
        is_compensated: false,
        is_inherited: false,
        first_question: None,
        retry_ms: None,
        stopped_by: None,
        usage_epoch: 0,
        spent: Usage::default(),
        ended_by: 0,
        failed_attempts: Vec::new(),
        ..task.clone()
    };
    let kept = |task: &Task| Task {
        is_inherited: true,
        is_compensated: false,
        usage_epoch: 0,
        spent: Usage::default(),
        ..task.clone()
    };
    let stopped = |task: &Task| Task {
        status: TaskStatus::Skipped,
        unblocks: true,
        error: Some("not run: the parent plan was undoing it".into()),
        is_paused: false,
        ..kept(task)
    };
    let is_undone = |undone: &Task| {
        let undid = |task: &&Task| task.plan.compensates == Some(undone.plan.id);
        parent.tasks.iter().filter(undid).any(|task| task.status == TaskStatus::Completed)
    };
    let of_the_fork = |task: &Task| match task.status.is_end() {
        false if task.plan.compensates.is_some() => stopped(task),
        false => fresh(task),
        // A sub-plan's work for a failed task may be undone too; the task stays failed.
        true if task.status == TaskStatus::Completed && is_undone(task) => fresh(task),
        true => kept(task),
    };
    parent.tasks.iter().map(of_the_fork).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fork_at_any_position_equals_the_plan_with_unfinished_tasks_pending(
        draft in drafts(),
        acts in prop::collection::vec(acts(), 0..25),
    ) {
        let mut parent = Planner::default();
        let mut history = parent.process(draft.initialize()).unwrap();
        for act in acts {
            let command = act.command(&draft, parent.state());
            history.extend(parent.process(command).unwrap_or_default());
            let mut fork_of_it = parent.clone();
            let new = fork_of_it.process(fork("parent", 1)).unwrap();
            let whole = [history.clone(), new.clone()].concat();
            prop_assert_eq!(&fork_of_it, &Planner::fold(&whole), "the live state is the fold of both histories");
            let mut begun = parent.clone();
            begun.apply(&new[0]);
            prop_assert_eq!(&begun.state().tasks[..], pending(parent.state()));
            prop_assert_eq!(begun.state().phase, Phase::Active);
            prop_assert_eq!(begun.state().open_questions().count(), 0);
            let before = parent.clone();
            run_to_completion(&mut fork_of_it);
            prop_assert_eq!(&parent, &before);
            prop_assert_eq!(parent.process(Command::Continue).unwrap(), Vec::new(), "the parent is undisturbed");
        }
        if parent.state().open_questions().count() > 0 || !matches!(parent.state().phase, Phase::Ended(_)) {
            run_to_completion(&mut parent);
        }
    }
}
