//! People and models see the names of tasks, never their numbers. No text of this plan has a digit of its own.

use std::sync::LazyLock;

use crewlog_mq::Handler;
use crewlog_planner::event::{
    Amendment, Command, Edit, Event, FailureClass, Outcome, PlannerConfig, TaskEvent, TaskStatus,
};
use crewlog_planner::nesting;
use crewlog_planner::plan::{FailurePolicy, ParentTask, TaskId};
use crewlog_planner::prompt::history;
use regex::Regex;
use serde_json::Value;

use super::run::Run;

/// Tasks 1 to 8 have names that are no numbers of theirs: `2` is task 7, and task 2 is `T901`.
const PLAN: &str = "# Release

- [ ] T905 Run `build`
- [ ] T901 Write the notes (depends on T905)
- [ ] T907 Which colour is it?
- [ ] T903 Review the notes (depends on T901, T907) (retry 1)
- [ ] T909 Run `deploy` (depends on T903) (undo: `roll back`)
- [ ] T904 If T903 fails, write to the team (depends on T903)
- [ ] T902 Publish the notes (depends on T903)
- [ ] T908 Run `clean` (depends on T902)
";

/// The numbers that are not of tasks with a label: labels, questions, attempts, counts, settings, the time in the section
/// on answers, and the task without a label that undoes T909.
static OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    let other = r"T9\d\d|added/\d+|\bq\d+|[Aa]ttempt \d+|\d+ (tasks?|ms|s|min|h|completed|failed|skipped|cancelled|timed out|undone|could)\b|\w+_max is \d+|\b10m|\b9\b";
    Regex::new(other).unwrap()
});

#[track_caller]
fn check_text(text: &str) {
    let rest = OTHERS.replace_all(text, "");
    assert!(!rest.contains(|c: char| c.is_ascii_digit()), "a number of a task in: {text}");
}

/// All texts for people in an event.
#[track_caller]
fn check_event(event: &Event) {
    fn walk(key: &str, value: &Value) {
        const TEXTS: [&str; 8] =
            ["error", "reason", "question", "summary", "description", "text", "planned_by", "context"];
        match value {
            Value::String(text) if TEXTS.contains(&key) => check_text(text),
            Value::Array(items) => items.iter().for_each(|item| walk(key, item)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| walk(key, value)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    walk("", &serde_json::to_value(event).unwrap());
}

fn begin(on_failure: FailurePolicy) -> Run {
    let config = PlannerConfig { on_failure, compensate: true, ..super::run::budget(8_000) };
    Run::begin(config, PLAN)
}

fn fail(run: &mut Run, task: u64, class: FailureClass) {
    let attempt = run.state().task(TaskId(task)).unwrap().attempts;
    run.hear(Command::HandleExecutorEvent {
        task: TaskId(task),
        event: TaskEvent::TaskFailed { attempt, error: "boom".into(), class, epoch: 1, run: None },
    });
}

/// Up to the dispatch of the review, task 4.
fn reviewing(on_failure: FailurePolicy) -> Run {
    let mut run = begin(on_failure);
    run.done(1, "built");
    run.answer(1, "blue");
    run.done(2, "written");
    run
}

#[track_caller]
fn check_run(run: &Run) {
    run.history.iter().skip(1).for_each(check_event);
    check_text(&history(run.state()));
    check_text(&nesting::context("release", run.state()));
}

#[test]
fn prompts_name_tasks_by_their_labels() {
    let mut run = reviewing(FailurePolicy::SkipDependants);
    fail(&mut run, 4, FailureClass::Task);
    let prompt = run.prompt(4);
    for part in ["## Result of task T901: Write the notes", "- T902 planned: Publish the notes", "T905 done"] {
        assert!(prompt.contains(part), "{part:?} in {prompt}");
    }
    check_text(&prompt);
    check_run(&run);
}

#[test]
fn reasons_questions_and_summaries_name_tasks_by_their_labels() {
    use FailurePolicy::{Ask, Continue, SkipDependants, Stop};
    for policy in [Ask, Continue, SkipDependants, Stop] {
        for class in [FailureClass::Task, FailureClass::OutcomeUnknown, FailureClass::TimedOut] {
            let mut run = reviewing(policy);
            for _ in 0..3 {
                if run.state().task(TaskId(4)).unwrap().status == TaskStatus::Running {
                    fail(&mut run, 4, class);
                }
            }
            check_run(&run);
        }
    }
    let mut run = reviewing(SkipDependants);
    run.done(4, "reviewed");
    run.done(5, "deployed");
    run.order(Command::CancelAndUndo { reason: "enough".into() });
    assert!(run.history.iter().any(|event| matches!(event, Event::TasksAmended { .. })), "it is undone");
    check_run(&run);
}

#[test]
fn refusals_name_tasks_by_their_labels() {
    let mut run = reviewing(FailurePolicy::SkipDependants);
    let amend = |one: Amendment| Command::Amend { amendments: vec![one], reason: "better".into() };
    let edit = |task, edit| amend(Amendment::Edit { task: TaskId(task), edits: vec![edit] });
    let reorder = |task, after: &[u64]| {
        amend(Amendment::Reorder { task: TaskId(task), after: after.iter().copied().map(TaskId).collect() })
    };
    let refused = [
        (Command::Retry { task: Some(TaskId(2)) }, "task T901 is done: only one that failed"),
        (Command::RetryNow { task: TaskId(4) }, "task T903 is under way: only a task that waits"),
        (Command::PauseTask { task: TaskId(1), reason: String::new() }, "task T905 is done: only its dependencies"),
        (edit(4, Edit::Description("x".into())), "task T903 is under way: to change it"),
        (edit(2, Edit::Description("x".into())), "task T901 is done: only its dependencies"),
        (edit(5, Edit::Description(" ".into())), "task T909 needs a description"),
        (edit(5, Edit::Label(Some("T902".into()))), "the id T902 belongs to task T902"),
        (reorder(5, &[8, 5]), "task T909 waits for itself"),
        (reorder(7, &[8]), "T902 -> T908 -> T902"),
        (amend(Amendment::Done { task: TaskId(4) }), "task T903 is under way"),
    ];
    for (command, expected) in refused {
        let refusal = run.planner.process(command).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{expected:?} in {refusal:?}");
        check_text(&refusal);
    }
    fail(&mut run, 4, FailureClass::Task);
    fail(&mut run, 4, FailureClass::Task);
    let refusal = run.planner.process(Command::Retry { task: Some(TaskId(8)) }).unwrap_err().to_string();
    assert_eq!(refusal, "task T908 cannot start because task T903 is failed: retry task T903 first");
}

#[test]
fn an_added_step_is_named_as_the_plan_names_it() {
    let config = PlannerConfig { parallelism: 1, ..PlannerConfig::default() };
    let mut run = Run::begin(config, "## Deploy\n\n1. Run `a`\n2. Run `b`\n\n## Check\n\n1. Run `c`\n2. Run `d`\n");
    run.order(Command::Amend {
        amendments: vec![Amendment::Add {
            text: "1. Run `e`\n2. If it fails, run `f`\n".into(),
            after: vec![TaskId(1)],
            before: vec![TaskId(2)],
        }],
        reason: "better".into(),
    });
    let [decides, follows] = [5, 6].map(|id| run.state().task(TaskId(id)).unwrap().plan.clone());
    let condition = follows.condition.unwrap();
    assert_eq!(condition.text, format!("step {} succeeds", decides.name()));
    assert_eq!(run.state().id_named(&decides.name()), Some(TaskId(5)));
}

#[test]
fn sub_plans_name_the_tasks_of_their_parent_plan_by_their_labels() {
    let parent = reviewing(FailurePolicy::SkipDependants);
    let task = ParentTask { plan: "release".into(), task: TaskId(4), attempt: 1 };
    let mut sub = begin(FailurePolicy::SkipDependants);
    let Event::TasksPlanned { origin, .. } = &mut sub.history[0] else { panic!("a plan begins with its tasks") };
    origin.parent = Some(task);
    let sub = crewlog_planner::planner::Planner::fold(&sub.history);
    let mut ended = parent.planner.clone();
    let ended_by = ended.process(Command::Cancel { task: Some(TaskId(4)), reason: "enough".into() }).unwrap();
    assert!(!ended_by.is_empty());
    let follow = nesting::follow(&sub_plan_id(), sub.state(), ended.state());
    let expected = Command::CancelFromParent { reason: "task release/T903 has ended".into() };
    assert_eq!(follow, Some(expected));
    let ending = nesting::ending("release", parent.state(), "a summary", Outcome::Failed);
    check_text(&format!("{ending:?}").replace("run: None", ""));
}

fn sub_plan_id() -> String {
    crewlog_planner::plan::sub_plan_id(&ParentTask { plan: "release".into(), task: TaskId(4), attempt: 1 })
}
