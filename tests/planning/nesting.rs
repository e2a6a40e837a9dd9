//! The policy of sub-plans: for the states of a plan and its sub-plan, the command that brings them in line.

use crewlog_mq::{Handler, Timestamp};
use crewlog_planner::claim::Ending;
use crewlog_planner::event::{Budget, Command, Event, FailureClass, Outcome, PlannerConfig, TaskEvent};
use crewlog_planner::nesting;
use crewlog_planner::plan::{NodeKind, Origin, ParentTask, Proposal, SubPlan, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::protocol::AgentRequest;

const SUB: &str = "p.1-1";

fn planner(tasks: Vec<TaskPlan>, origin: Origin, config: PlannerConfig) -> Planner {
    let agent = origin.parent.is_none().then(|| crewlog_planner::plan::AgentOrigin {
        agent: crewlog_planner::protocol::AgentType::Tactical,
        version: 1,
        tools: Vec::new(),
    });
    let origin = Origin { agent, ..origin };
    let proposal = Proposal { tasks, title: None, source: String::new(), context: Vec::new(), origin };
    let mut planner = Planner::default();
    let (proposal, attachments) = (Box::new(proposal), Vec::new());
    planner.process(Command::Initialize { proposal, attachments, config }).unwrap();
    planner
}

fn sub_plan(request: Option<AgentRequest>) -> SubPlan {
    SubPlan { text: "Think".into(), agent: None, request }
}

fn task(id: u64) -> TaskPlan {
    TaskPlan::new(TaskId(id), NodeKind::Processing, format!("step {id}"))
}

/// A plan whose first task has a sub-plan, and that sub-plan.
fn two(request: Option<AgentRequest>) -> (Planner, Planner) {
    let first = TaskPlan { sub_plan: Some(sub_plan(request)), retry: Some(0), ..task(1) };
    let above = planner(vec![first, task(2)], Origin::default(), PlannerConfig::default());
    let parent = ParentTask { plan: "p".into(), task: TaskId(1), attempt: 1 };
    let origin = nesting::origin(parent, above.state(), &sub_plan(None));
    (above, planner(vec![task(1)], origin, PlannerConfig::default()))
}

fn locate() -> Option<AgentRequest> {
    Some(AgentRequest::Locate { entity: "x".into() })
}

fn order(planner: &mut Planner, commands: &[Command]) {
    for command in commands {
        planner.process(command.clone()).unwrap();
    }
}

fn cancel(task: Option<u64>) -> Command {
    Command::Cancel { task: task.map(TaskId), reason: "enough".into() }
}

fn times_out() -> Command {
    let (error, class) = ("late".into(), FailureClass::TimedOut);
    Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::TaskFailed { attempt: 1, error, class, epoch: 1, run: None },
    }
}

fn pause() -> Command {
    Command::Pause { reason: "wait".into() }
}

#[test]
fn a_sub_plan_is_cancelled_paused_and_resumed_with_its_parent() {
    let from_parent = Command::PauseFromParent { reason: "plan p is paused".into() };
    let over = Command::CancelFromParent { reason: "task p/1 has ended".into() };
    let cases = [
        ("nothing happened", None, vec![], vec![], None),
        ("another task ended", None, vec![cancel(Some(2))], vec![], None),
        ("its task was cancelled", None, vec![cancel(Some(1))], vec![], Some(over.clone())),
        ("the plan was cancelled", None, vec![cancel(None)], vec![], Some(over.clone())),
        ("its task timed out", None, vec![times_out()], vec![], Some(over.clone())),
        ("a request timed out", locate(), vec![times_out()], vec![], None),
        ("the plan that asked ended", locate(), vec![times_out(), cancel(None)], vec![], Some(over.clone())),
        (
            "it was dispatched again",
            None,
            vec![times_out(), Command::Retry { task: Some(TaskId(1)) }],
            vec![],
            Some(over),
        ),
        ("it ended already", None, vec![cancel(None)], vec![cancel(None)], None),
        ("the plan was paused", None, vec![pause()], vec![], Some(from_parent.clone())),
        ("both are paused", None, vec![pause()], vec![from_parent.clone()], None),
        ("the plan was resumed", None, vec![], vec![from_parent], Some(Command::ResumeFromParent)),
        ("somebody paused it", None, vec![], vec![pause()], None),
    ];
    for (case, request, of_above, of_sub, expected) in cases {
        let (mut above, mut sub) = two(request);
        order(&mut above, &of_above);
        order(&mut sub, &of_sub);
        assert_eq!(nesting::follow(SUB, sub.state(), above.state()), expected, "{case}");
        assert_eq!(nesting::follow("fork", sub.state(), above.state()), None, "a fork carries nothing out: {case}");
    }
}

#[test]
fn a_compensating_sub_plan_is_cancelled_only_once() {
    let config = PlannerConfig { compensate: true, ..PlannerConfig::default() };
    let done = TaskPlan { compensate: Some("undo".into()), ..task(1) };
    let mut sub = planner(vec![done, task(2)], Origin::default(), config);
    let result = Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::TaskCompleted { attempt: 1, result: String::new(), epoch: 1, run: None },
    };
    sub.process(result).unwrap();
    let cancel = || Command::CancelFromParent { reason: "over".into() };
    let events = sub.process(cancel()).unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::TasksAmended { .. })), "{events:?}");
    assert_eq!(sub.process(cancel()).unwrap(), []);
}

#[test]
fn a_sub_plan_has_its_parents_settings_and_its_tasks_budget() {
    let config = PlannerConfig { parallelism: 3, standing: true, ..PlannerConfig::default() };
    let above = planner(vec![task(1)], Origin { depth: 2, ..Origin::default() }, config);
    let budget = Budget { tokens: Some(9), ..Budget::default() };
    let config = nesting::config(above.state(), TaskId(1), budget, Timestamp(0));
    assert_eq!((config.parallelism, config.standing, config.budget), (3, false, budget));
    let parent = ParentTask { plan: "p".into(), task: TaskId(1), attempt: 1 };
    let origin = nesting::origin(parent.clone(), above.state(), &sub_plan(locate()));
    assert_eq!((origin.depth, origin.planned_by.as_deref()), (3, Some("request p/1")));
    assert_eq!(nesting::origin(parent, above.state(), &sub_plan(None)).planned_by, None);
}

#[test]
fn the_results_of_the_final_tasks_become_the_result_of_the_parent_task() {
    let (_, mut sub) = two(None);
    let result = Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::TaskCompleted { attempt: 1, result: " found \n".into(), epoch: 1, run: None },
    };
    order(&mut sub, &[result]);
    let completed = nesting::ending(SUB, sub.state(), "1 task: 1 completed", Outcome::Completed);
    let result = "p.1-1: 1 task: 1 completed\n\n1 (step 1):\nfound".to_owned();
    assert_eq!(completed, Ending::Completed { result, run: None });
    let (_, mut sub) = two(None);
    order(&mut sub, &[cancel(None)]);
    let cancelled = nesting::ending(SUB, sub.state(), "1 task: 1 cancelled", Outcome::Cancelled);
    let error = "p.1-1: 1 task: 1 cancelled; it was cancelled\ntask 1: enough".to_owned();
    assert_eq!(cancelled, Ending::Failed { error, class: FailureClass::Task, run: None });
}

#[test]
fn an_agents_context_shows_title_open_tasks_and_results_of_the_parent_plan() {
    let (mut above, _) = two(None);
    let result = Command::HandleExecutorEvent {
        task: TaskId(2),
        event: TaskEvent::TaskCompleted { attempt: 1, result: "in src".into(), epoch: 1, run: None },
    };
    order(&mut above, &[result]);
    assert_eq!(nesting::context("p", above.state()), "p: no title\n- open: step 1\n- done: step 2: in src");
}
