//! Changing a running plan: tasks that are added, edited, skipped, reordered or paused.

use crewlog_mq::Handler;
use crewlog_planner::event::{Amendment, Command, Edit, Event, PlannerConfig, TaskEvent};
use crewlog_planner::parse::{ReadOptions, read};
use crewlog_planner::plan::{Origin, Proposal, SubPlan, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;

use super::transcript::{check, check_with};

#[test]
fn an_added_text_continues_the_task_numbering() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend add after=2 1. Run `c` / 2. Run `d`
        amended 3 4: better
        > amend add - Look around
        amended 5: better
        dispatched 5#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 2 done
        2 Completed:
        dispatched 3#1
        > 5 done
        5 Completed:
        > 3 done
        3 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        ended Completed, 5 tasks: 5 completed
        ",
    );
}

/// The dependencies of tasks added to a plan of three tasks (the third is called B-1), or the refusal.
#[track_caller]
fn added(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let source = "1. Run `a`\n2. Run `b`\n3. B-1: Check the rest (depends on 1)\n";
    let mut planner = Planner::default();
    let (user_input, config) = (source.to_owned(), PlannerConfig::default());
    planner.process(Command::of_text(user_input, config, false).unwrap()).expect("it is a plan");
    let add = Amendment::Add { text: text.to_owned(), after: Vec::new(), before: Vec::new() };
    let amend = Command::Amend { amendments: vec![add], reason: String::new() };
    let events = planner.process(amend).map_err(|refusal| refusal.to_string())?;
    let Some(Event::TasksAmended { tasks, .. }) = events.into_iter().next() else { panic!("nothing was added") };
    let of = |task: &TaskPlan| task.depends_on.iter().map(|on| on.task.0).collect();
    Ok(tasks.iter().map(of).collect())
}

#[test]
fn references_in_an_added_text_resolve_to_its_own_tasks_before_the_plans() {
    let waits = |text: &str, expected: &[&[u64]]| {
        let expected = expected.iter().map(|ids| ids.to_vec()).collect::<Vec<_>>();
        assert_eq!(added(text), Ok(expected), "{text}");
    };
    waits("- Call them (depends on 1)", &[&[1]]);
    waits("- Call them (depends on B-1)", &[&[3]]);
    waits("- Call them (after 1, 2)", &[&[1, 2]]);
    waits("1. Call them\n2. Ask them (after 1)\n", &[&[], &[4]]);
    waits("- A: Call them (after 2)\n- C: Ask them (after A, B-1)\n", &[&[2], &[3, 4]]);
    waits("- C-1: Call them\n- Ask them (after C-1)\n", &[&[], &[4]]);
    waits("- Call them\n- Ask them (depends on 1)\n", &[&[], &[1]]);
}

#[test]
fn an_added_text_with_an_unknown_or_ambiguous_reference_is_refused() {
    let refused = |text: &str, expected: &str| {
        let refusal = added(text).expect_err(text);
        assert!(refusal.starts_with(expected), "{text}: {refusal}");
    };
    refused("- Call them (depends on 9)", "no task is called 9 (line 1, column");
    let twice = "- C: Call them\n- C: Ask them\n- Sweep (depends on C)\n";
    refused(twice, "C (line 3, column 21) is the name of several tasks; write one of plan/1, plan/2 instead");
}

#[test]
fn a_task_waits_for_tasks_added_before_it() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend add before=2 1. Run `c` / 2. Run `d`
        amended 2 3 4: better
        dispatched 3#1
        > 1 done
        1 Completed:
        > 3 done
        3 Completed:
        dispatched 4#1
        > 4 done
        4 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn an_amendment_is_atomic() {
    check(
        "- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c` (depends on B)\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > amend skip 3 ; reorder 2 after=9
        ! no task is called 9; name an existing task or remove the dependency
        > amend add - Weed ; reorder 2 after=1,3
        ! dependency cycle: B -> C -> B; remove one of these dependencies
        > amend add after=3 before=2 - Weed
        ! dependency cycle: B -> 4 -> C -> B; remove one of these dependencies
        > amend reorder 2 after=2
        ! task B waits for itself; remove that dependency
        > amend edit 9 priority=high
        ! the plan has no task 9
        > amend skip 9
        ! the plan has no task 9
        > amend add - C: Run `d`
        ! the id C belongs to task C: use another id
        > amend edit 2 label=D ; edit 3 label=d
        ! the id d belongs to task B: use another id
        > amend edit 2 description=
        ! task B needs a description: state the work in a few words
        > amend add after=1 .
        ! the plan has no tasks; write a list, or sentences that begin with a verb
        > amend edit 2 label=C ; edit 3 label=B
        amended 2 3: better
        > amend edit 2 label=C ; edit 3 label=B
        (nothing)
        > amend add before=1 - Weed
        ! task A is under way: to change it, cancel it, or let it end and retry it
        ",
    );
}

#[test]
fn an_edited_task_is_dispatched_in_its_new_form() {
    let mut planner = planner_of("1. Run `a`\n2. Run `b` (retry 1)\n", PlannerConfig::default());
    let edits = vec![
        Edit::Description("another step".into()),
        Edit::Command(Some("c".into())),
        Edit::Notes(vec!["with care".into()]),
        Edit::Files(vec!["src/a.rs".into()]),
        Edit::TimeoutMs(Some(5)),
        Edit::Retry(None),
        Edit::Assignee(Some("ann".into())),
    ];
    let amendments = vec![Amendment::Edit { task: TaskId(2), edits }];
    planner.process(Command::Amend { amendments, reason: String::new() }).unwrap();
    let events = planner.process(done(1)).unwrap();
    let Some(Event::TaskDispatched { command, .. }) = events.last() else { panic!("{events:?}") };
    let crewlog_planner::event::PlannerCmd::ExecuteTask { parameters, .. } = command else { panic!("{command:?}") };
    assert_eq!((parameters.description.as_str(), parameters.command.as_deref()), ("another step", Some("c")));
    assert_eq!((&parameters.files[..], parameters.assignee.as_deref()), (&["src/a.rs".into()][..], Some("ann")));
    let input = planner.state().input(&planner.state().tasks[1]);
    assert_eq!((&input.notes[..], input.timeout_ms), (&["with care".into()][..], Some(5)));
    assert_eq!(planner.state().tasks[1].plan.retry, None);
}

#[test]
fn a_running_task_cannot_be_edited_and_an_ended_one_only_takes_dependencies() {
    check(
        "In parallel:\n- A: Run `a`\n- B: Run `b` (depends on A)\n- C: Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 3#1
        > amend edit 3 command=d
        ! task C is under way: to change it, cancel it, or let it end and retry it
        > 3 asks Which?
        q1 of 3, Executor: Which?
        > amend edit 3 command=d
        ! task C is waiting for an answer: to change it, cancel it, or let it end and retry it
        > 1 fails boom
        1 Failed: boom
        2 Skipped: task A did not complete
        > amend edit 2 command=d
        ! task B is skipped: only its dependencies can be changed; one that is not done can be retried
        > amend skip 1
        ! task A is failed: only its dependencies can be changed; one that is not done can be retried
        > amend add before=2 Run `e`
        amended 2 4: better
        dispatched 4#1
        > amend reorder 2 after=4
        amended 2: better
        > retry 2
        reopened 2
        > 4 done
        4 Completed:
        dispatched 2#1
        ",
    );
}

#[test]
fn skipping_a_task_frees_its_dependents_and_stops_it_if_running() {
    check(
        "1. Run `a`\n2. Run `b`\n3. Run `c`\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > amend skip 3
        3 Skipped (lets go): better
        > amend skip 1
        1 Skipped (lets go): better
        dispatched 2#1
        > 1 done late
        (nothing)
        > 2 done
        2 Completed:
        ended Completed, 3 tasks: 1 completed, 2 skipped
        > amend add - Weed
        ! the plan has ended: retry a task that failed, or continue the plan in a fork
        > set parallelism=2
        ! the plan has ended: retry a task that failed, or continue the plan in a fork
        ",
    );
}

#[test]
fn dependents_of_a_skipped_task_inherit_its_dependencies() {
    let text = "1. Run `a`\n2. Run `b`\n3. Run `c`\n4. Run `d`\n5. Run `e`\n";
    check(
        text,
        "
        > start
        planned 1 2 3 4 5
        dispatched 1#1
        > amend skip 2
        amended 3: better
        2 Skipped (lets go): better
        > amend add after=3 - Weed ; skip 3 ; skip 4
        amended 5 6: better
        3 Skipped (lets go): better
        4 Skipped (lets go): better
        > 1 done
        1 Completed:
        dispatched 5#1
        dispatched 6#1
        ",
    );
    check(
        text,
        "
        > start
        planned 1 2 3 4 5
        dispatched 1#1
        > amend skip 2
        amended 3: better
        2 Skipped (lets go): better
        > 1 fails boom
        1 Failed: boom
        3 Skipped: task 1 did not complete
        4 Skipped: task 3 did not complete
        5 Skipped: task 4 did not complete
        ended Failed, 5 tasks: 1 failed, 4 skipped
        ",
    );
}

#[test]
fn a_skip_by_fork_or_amendment_passes_dependencies_on_alike() {
    let mut planner = planner_of("1. Run `a`\n2. Run `b`\n3. Run `c`\n", PlannerConfig::default());
    planner.process(Command::Pause { reason: String::new() }).unwrap();
    let amendments = vec![Amendment::Skip { task: TaskId(2), keeps_order: true }];
    let (parent, at, reason) = ("p".to_owned(), crewlog_mq::Position(9), String::new());
    let fork = Command::Fork { parent, at, reason: reason.clone(), pauses: false, amendments: amendments.clone() };
    for command in [Command::Amend { amendments, reason }, fork] {
        let mut planner = planner.clone();
        planner.process(command).unwrap();
        let waits_for = &planner.state().task(TaskId(3)).unwrap().plan.depends_on;
        assert_eq!(waits_for.iter().map(|one| one.task.0).collect::<Vec<_>>(), [1, 2]);
    }
}

#[test]
fn tasks_after_a_ticked_box_wait_for_the_insertion_point() {
    check(
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > amend add after=1 - [x] Run `b` / - [ ] Run `c` / - [ ] Run `d`
        amended 2 3 4: better
        2 Completed: done before the plan began
        > 1 done
        1 Completed:
        dispatched 3#1
        ",
    );
}

#[test]
fn checkboxes_of_added_tasks_are_respected() {
    check(
        "1. Run `a`\n",
        "
        > start
        planned 1
        dispatched 1#1
        > amend add - [x] Run `b` / - [-] Run `c`
        amended 2 3: better
        2 Completed: done before the plan began
        3 Cancelled (lets go): cancelled before the plan began
        ",
    );
}

#[test]
fn a_person_can_complete_a_task_that_has_not_started() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend done 2
        2 Completed: done by a person
        > amend done 1
        ! task 1 is under way: to change it, cancel it, or let it end and retry it
        > amend done 9
        ! the plan has no task 9
        > 1 asks Which one?
        q1 of 1, Executor: Which one?
        > amend done 1
        1 Completed: done by a person
        ended Completed, 2 tasks: 2 completed
        > q1 the left one
        ! q1 is closed: its task has ended
        > amend done 1
        ! the plan has ended: retry a task that failed, or continue the plan in a fork
        ",
    );
}

#[test]
fn one_amendment_cannot_both_complete_and_skip_a_task() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend done 2 ; skip 2
        ! task 2 is done: only its dependencies can be changed; one that is not done can be retried
        > amend skip 2 ; done 2
        ! task 2 is skipped: only its dependencies can be changed; one that is not done can be retried
        > amend done 2 ; done 2
        2 Completed: done by a person
        ",
    );
}

#[test]
fn a_person_cannot_complete_a_task_that_has_ended() {
    check(
        "1. Run `a` (on failure: continue)\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > 1 fails boom
        1 Failed (lets go): boom
        dispatched 2#1
        > amend done 1
        ! task 1 is failed: only its dependencies can be changed; one that is not done can be retried
        ",
    );
}

#[test]
fn a_changed_file_becomes_the_source_of_the_plan() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend source - Run `c`
        amended : better, the text is now - Run `c`
        > amend edit 2 command=c ; source 1. Run `a`
        amended 2: better, the text is now 1. Run `a`
        > amend skip 9 ; source 1. Run `d`
        ! the plan has no task 9
        > amend done 2 ; source 1. Run `e`
        amended : better, the text is now 1. Run `e`
        2 Completed: done by a person
        ",
    );
    let mut planner = planner_of("1. Run `a`\n", PlannerConfig::default());
    let source = |text: &str| vec![Amendment::Source { text: text.to_owned() }];
    for text in ["1. Run `b`\n", ""] {
        planner.process(Command::Amend { amendments: source(text), reason: String::new() }).unwrap();
        assert_eq!(planner.state().source, text);
    }
}

#[test]
fn an_added_step_decides_an_added_condition() {
    check(
        "1. Run `a`\n2. Run `b`\n",
        "
        > start
        planned 1 2
        dispatched 1#1
        > amend add 1. Run `c` / 2. If it fails, run `d` / 3. Otherwise, run `e`
        amended 3 4 5: better
        dispatched 3#1
        > 1 done
        1 Completed:
        dispatched 2#1
        > 3 fails boom
        3 Failed: boom
        dispatched 4#1
        5 Skipped (lets go): the condition \"step 3 succeeds\" does not hold
        ",
    );
}

#[test]
fn an_added_task_whose_number_is_taken_is_named_added() {
    let mut planner = planner_of("3. Run `a`\n4. Run `b`\n", PlannerConfig::default());
    let mut add = |text: &str| {
        let text = text.to_owned();
        let amendments = vec![Amendment::Add { text, after: Vec::new(), before: Vec::new() }];
        planner.process(Command::Amend { amendments, reason: String::new() })
    };
    add("- Run `c`\n- Run `d`\n- Run `e`\n").unwrap();
    add("- Run `f` (after added/3, 4, 5)").unwrap();
    let names = planner.state().tasks.iter().map(|task| task.plan.name()).collect::<Vec<_>>();
    assert_eq!(names, ["3", "4", "added/3", "added/4", "5", "6"]);
    let named = |name: &str| planner.state().task_named(name).map(|task| task.plan.id.0);
    assert_eq!(
        ["3", "4", "added/3", "added/4", "5", "1"].map(named),
        [Some(1), Some(2), Some(3), Some(4), Some(5), None]
    );
    let waits_for = planner.state().tasks[5].plan.depends_on.iter().map(|one| one.task.0).collect::<Vec<_>>();
    assert_eq!(waits_for, [2, 3, 5]);
}

#[test]
fn answers_reach_tasks_that_later_depend_on_them() {
    check(
        "In parallel:\n- A: Which colour?\n- B: Run `b` (depends on A)\n- C: Run `c` (depends on B)\n- D: Run `d`\n- E: Run `e` (depends on D)\n",
        "
        > start
        planned 1 2 3 4 5
        dispatched 4#1
        dispatched 1#1 as a question
        q1 of 1, Task
        > q1 blue
        q1 = blue
        1 Completed: blue
        dispatched 2#1 with blue
        > amend add after=2 Run `f` ; reorder 3 after=4 ; reorder 5 after=2
        amended 3 5 6: better
        > 4 done
        4 Completed:
        dispatched 3#1
        > 2 done
        2 Completed:
        dispatched 5#1 with blue
        dispatched 6#1 with blue
        ",
    );
}

pub(super) fn planner_of(text: &str, config: PlannerConfig) -> Planner {
    let mut planner = Planner::default();
    let user_input = text.to_owned();
    planner.process(Command::of_text(user_input, config, false).unwrap()).unwrap();
    planner
}

pub(super) fn done(task: u64) -> Command {
    let (node_id, attempt, result) = (TaskId(task), 1, String::new());
    Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::TaskCompleted { attempt, result, epoch: 1, run: None },
    }
}

#[test]
fn a_task_name_must_be_typable_and_not_the_number_of_another_task() {
    check_with(
        PlannerConfig { parallelism: 1, ..PlannerConfig::default() },
        "- Paint\n- Dry\n- Sweep\n",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        > amend edit 2 label=3
        ! the id 3 belongs to task 3: use another id
        > amend edit 2 label=a b
        ! \"a b\" is not a valid task id: use up to 64 letters, digits, dashes, dots, colons, slashes and underscores
        > amend edit 2 label=2
        amended 2: better
        ",
    );
}

#[test]
fn an_edited_task_updates_its_sub_plan_text_and_a_command_replaces_it() {
    let text = "In parallel:\n- Build\n- Ship\n- Sweep\n- Review\n";
    let mut tasks = read(text, ReadOptions { parallel: true, ..ReadOptions::default() }).unwrap().tasks;
    for task in &mut tasks {
        task.sub_plan = Some(SubPlan { text: task.description.clone(), agent: Some("tactical".into()), request: None });
    }
    let source = text.to_owned();
    let proposal = Box::new(Proposal { tasks, title: None, source, context: Vec::new(), origin: Origin::default() });
    let config = PlannerConfig { parallelism: 1, ..PlannerConfig::default() };
    let mut planner = Planner::default();
    let propose = Command::Initialize { proposal, attachments: Vec::new(), config };
    planner.process(propose).unwrap().iter().for_each(|event| planner.apply(event));
    let edit = |task, edit| Amendment::Edit { task: TaskId(task), edits: vec![edit] };
    let amendments = vec![
        edit(2, Edit::Description("Ship it by night".into())),
        edit(3, Edit::Command(Some("echo swept".into()))),
        edit(4, Edit::Priority(Some("high".into()))),
    ];
    let fork = Command::Fork {
        parent: "p".into(),
        at: crewlog_mq::Position(9),
        reason: "other words".into(),
        pauses: false,
        amendments: amendments.clone(),
    };
    for command in [Command::Amend { amendments, reason: "other words".into() }, fork] {
        let mut planner = planner.clone();
        planner.process(command).unwrap().iter().for_each(|event| planner.apply(event));
        let told = |task| {
            let plan = &planner.state().task(TaskId(task)).unwrap().plan;
            (plan.sub_plan.as_ref().map(|sub_plan| sub_plan.text.as_str()), plan.command.as_deref())
        };
        assert_eq!(
            [2, 3, 4].map(told),
            [(Some("Ship it by night"), None), (None, Some("echo swept")), (Some("Review"), None)]
        );
    }
}
