//! The start, progress and end of a plan without failures.

use crewlog_mq::{Event as _, Handler};
use crewlog_planner::event::{Command, Event, PlannerConfig, TaskEvent, TaskStatus};
use crewlog_planner::lines::At;
use crewlog_planner::plan::{
    Attachment, AttachmentKind, Dependency, NodeKind, Origin, Proposal, Strength, TaskId, TaskPlan,
};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::PlannerState;
use crewlog_planner::validity::InvalidPlan;

use super::transcript::{check, check_with, tell};
use crate::planner::retries::retries;

#[test]
fn one_decision_plans_and_dispatches_all_ready_tasks() {
    check(
        "1. Run `make`\n2. Run `make test`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 done built
        1 Completed: built
        dispatched 2#1
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 2 completed
        ",
    );
}

#[test]
fn independent_tasks_start_together_up_to_the_parallelism() {
    check_with(
        PlannerConfig { parallelism: 2, ..PlannerConfig::default() },
        "In parallel:\n- Run `a`\n- Run `b`\n- Run `c`\n- Run `d`\n",
        "
        > start
        planned 1 2 3 4
        dispatched 1#1
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 1 done
        1 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        > 3 done
        3 Completed:
        ended Completed, 4 tasks: 4 completed
        ",
    );
}

#[test]
fn tasks_for_people_do_not_use_up_the_parallelism_of_commands() {
    let task = |id: u64, command: Option<&str>| {
        let command = command.map(str::to_owned);
        TaskPlan { command, ..TaskPlan::new(TaskId(id), NodeKind::Processing, "step") }
    };
    let tasks = vec![task(1, Some("a")), task(2, None), task(3, Some("b")), task(4, None)];
    let planned = Event::planned(tasks, PlannerConfig { parallelism: 1, ..PlannerConfig::default() });
    let mut planner = Planner::fold(&[planned]);
    let events = planner.process(Command::Continue).unwrap();
    assert_eq!(
        events.iter().map(|event| tell(event, planner.state())).collect::<Vec<_>>(),
        ["dispatched 1#1", "dispatched 2#1"]
    );
}

#[test]
fn a_task_starts_when_its_last_dependency_has_ended() {
    check(
        "In parallel:\n- A: Run `a`\n- B: Run `b`\n- C: Run `c` (depends on A, B)\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 2#1
        > 2 done
        2 Completed:
        > 1 done
        1 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}

#[test]
fn ticked_checkboxes_are_completed_before_the_plan_starts() {
    check(
        "- [x] Run `a`\n- [-] Run `b`\n- [ ] Run `c`\n",
        "
        > start
        planned 1 2 3
        1 Completed: done before the plan began
        2 Cancelled (lets go): cancelled before the plan began
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 2 completed, 1 cancelled
        ",
    );
}

#[test]
fn a_plan_with_only_completed_tasks_ends_at_once() {
    check(
        "- [x] Run `a`\n- [x] Run `b`\n",
        "
        > start
        planned 1 2
        1 Completed: done before the plan began
        2 Completed: done before the plan began
        ended Completed, 2 tasks: 2 completed
        > continue
        (nothing)
        > retry
        (nothing)
        ",
    );
}

#[test]
fn a_text_without_tasks_is_refused() {
    for text in ["", " \n\n\t", "\u{feff}"] {
        let refused = Command::of_text(text.into(), PlannerConfig::default(), false);
        assert_eq!(refused, Err(PlannerError::Parse(InvalidPlan::EmptyPlan)), "{text:?}");
    }
}

#[test]
fn a_proposal_passes_the_same_checks_as_a_text() {
    let propose = |waits_for: &[u64]| {
        let task = TaskPlan::new(TaskId(1), NodeKind::Analysis, "look");
        let depends_on =
            waits_for.iter().map(|id| Dependency { task: TaskId(*id), strength: Strength::Hard }).collect();
        let (title, source, context) = (Some("Look".to_owned()), "look at it".to_owned(), vec!["why".to_owned()]);
        let origin = Origin { planned_by: Some("a model".into()), ..Origin::default() };
        let proposal = Proposal { tasks: vec![TaskPlan { depends_on, ..task }], title, source, context, origin };
        let config = PlannerConfig::default();
        Command::Initialize { proposal: Box::new(proposal), attachments: Vec::new(), config }
    };
    let mut planner = Planner::default();
    let unknown = InvalidPlan::UnknownId("2".into(), At::default());
    assert_eq!(planner.process(propose(&[2])), Err(PlannerError::Parse(unknown)));
    let itself = InvalidPlan::SelfDependency("1".into(), At::default());
    assert_eq!(planner.process(propose(&[1])), Err(PlannerError::Parse(itself)));
    assert_eq!(planner, Planner::default());
    let planned = planner.process(propose(&[])).unwrap();
    assert_eq!(planned.iter().map(Event::event_type).collect::<Vec<_>>(), ["TasksPlanned", "TaskDispatched"]);
    let state = planner.state();
    assert_eq!((state.title.as_deref(), &*state.source), (Some("Look"), "look at it"));
    assert_eq!(state.origin.planned_by.as_deref(), Some("a model"));
    assert_eq!(planner.process(propose(&[])), Err(PlannerError::AlreadyPlanned));
}

#[test]
fn a_plan_is_initialized_once_and_before_any_other_command() {
    check(
        "- Run `a`\n",
        "
        > continue
        ! there is no such plan
        > 1 done
        ! there is no such plan
        > start
        planned 1
        dispatched 1#1
        > start
        ! the plan exists already: use another id
        ",
    );
}

#[test]
fn settings_outside_their_limits_are_refused() {
    let none = PlannerConfig { parallelism: 0, ..PlannerConfig::default() };
    let many = PlannerConfig { retry: retries(1_001), ..PlannerConfig::default() };
    check_with(none, "- Run `a`\n", "> start\n! parallelism is 0: it must be from 1 to 1000");
    check_with(many, "- Run `a`\n", "> start\n! retry.CLASS.count is 1001: it must be from 0 to 1000");
}

#[test]
fn late_repeated_and_unknown_reports_are_ignored() {
    check(
        "1. Run `a` (retry 1)\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1#2 done early
        (nothing)
        > 2 done early
        (nothing)
        > 1 fails boom
        1 Planned: boom
        1 again later
        > now 1
        1 again now
        dispatched 1#2
        > 1#1 done late
        (nothing)
        > 1#1 fails again
        (nothing)
        > 1 done
        1 Completed:
        dispatched 2#1
        > 1 done
        (nothing)
        > 7 done
        ! the plan has no task 7
        > 7 fails
        ! the plan has no task 7
        > 7 asks What?
        ! the plan has no task 7
        > 2 done
        2 Completed:
        ended Completed, 2 tasks: 2 completed
        > 2 done
        (nothing)
        > 2 asks What?
        (nothing)
        > continue
        (nothing)
        ",
    );
}

#[test]
fn a_plan_reports_the_outcome_of_every_task() {
    let planner = run("# Ship\n1. Run `a`\n2. Run `b`\n", &["1 built"]);
    let state = planner.state();
    assert_eq!(state.title.as_deref(), Some("Ship"));
    assert_eq!(state.source, "# Ship\n1. Run `a`\n2. Run `b`\n");
    assert_eq!(statuses(state), [TaskStatus::Completed, TaskStatus::Running]);
    assert_eq!(state.tasks[0].result.as_deref(), Some("built"));
    assert_eq!(state.next_id(), 3);
}

#[test]
fn attachments_belong_to_the_tasks_that_name_them_and_the_rest_to_the_plan() {
    let link = |url: &str| Attachment { kind: AttachmentKind::Link(url.into()), label: None };
    let mut planner = Planner::default();
    let text = "- Read https://a.example/x today\n- Sleep well\n".to_owned();
    let mut initialize = Command::of_text(text, PlannerConfig::default(), false).unwrap();
    if let Command::Initialize { attachments, .. } = &mut initialize {
        *attachments = vec![link("https://a.example/x"), link("https://b.example/y")];
    }
    planner.process(initialize).unwrap();
    let of_task = |index: usize| planner.state().tasks[index].plan.attachments.clone();
    assert_eq!(of_task(0), [link("https://a.example/x")]);
    assert_eq!(of_task(1), []);
    assert_eq!(planner.state().attachments, [link("https://b.example/y")]);
}

/// The planner of a text after these tasks are done.
fn run(text: &str, done: &[&str]) -> Planner {
    let mut planner = Planner::default();
    let initialize = Command::of_text(text.into(), PlannerConfig::default(), false).unwrap();
    let mut history: Vec<Event> = planner.process(initialize).unwrap();
    for report in done {
        let (task, result) = report.split_once(' ').unwrap();
        let event = Command::HandleExecutorEvent {
            task: TaskId(task.parse().unwrap()),
            event: TaskEvent::TaskCompleted { attempt: 1, result: result.into(), epoch: 1, run: None },
        };
        history.extend(planner.process(event).unwrap());
    }
    Planner::fold(&history)
}

fn statuses(state: &PlannerState) -> Vec<TaskStatus> {
    state.tasks.iter().map(|task| task.status).collect()
}
