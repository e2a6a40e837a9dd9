//! Conflicts, as a transcript of a log and the resulting events.

use crewlog_mq::TAGS_MAX;
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, HOLDERS_MAX, NAMES_MAX, PATTERNS_MAX};
use crewlog_planner::crew::{Projection, Reactor};

use super::transcript::{Log, check};

fn told(project: &str, event: &ConflictEvent) -> String {
    match event {
        ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } => {
            let holders = holders.iter().map(|holder| {
                let (plan, task, name) = (&holder.plan, holder.task, &holder.executor.name);
                format!("{plan}/{task} {name} ({})", holder.patterns.join(" "))
            });
            let holders = holders.collect::<Vec<_>>().join(", ");
            format!("{project}: {conflict} of {n_holders} about {pattern}: {holders}")
        }
        ConflictEvent::ConflictResolved { conflict, by, resolution } => {
            format!("{project}: {conflict} resolved by {}/{} {}", by.plan, by.task, resolution)
        }
    }
}

#[test]
fn two_running_tasks_on_the_same_files_conflict_until_one_ends() {
    check::<Conflicts>(
        "
p planned 2; p/1 dispatched Refactor src/a.rs docs; p/2 dispatched UnitTest src/*.rs tests/**
p/1 claimed ana
p/2 claimed ben
    x: 1 of 2 about src/*.rs <-> src/a.rs: p/2 ben (src/*.rs), p/1 ana (src/a.rs)
p/1 completed
    x: 1 resolved by p/1 TaskCompleted
p/1 is Completed
p/2 failed
",
        told,
    );
}

#[test]
fn every_way_to_release_a_task_resolves_its_conflict() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; q/1 dispatched Refactor a.rs
p/1 claimed ana
q/1 claimed ben
    x: 1 of 2 about a.rs: q/1 ben (a.rs), p/1 ana (a.rs)
q/1 failed
    x: 1 resolved by q/1 TaskFailed
q/1 is Planned; q/1 dispatched Refactor a.rs
q/1 claimed ben
    x: 2 of 2 about a.rs: q/1 ben (a.rs), p/1 ana (a.rs)
q/1 asks
    x: 2 resolved by q/1 NeedsClarification
q/1 claimed ben
    x: 3 of 2 about a.rs: q/1 ben (a.rs), p/1 ana (a.rs)
q/1 released
    x: 3 resolved by q/1 TaskReleased
q/1 claimed ben
    x: 4 of 2 about a.rs: q/1 ben (a.rs), p/1 ana (a.rs)
p/1 is Cancelled
    x: 4 resolved by p/1 TaskStatusUpdated
p/1 stopped
p/1 dispatched Refactor a.rs
p/1 claimed ana
    x: 5 of 2 about a.rs: p/1 ana (a.rs), q/1 ben (a.rs)
q/1 stopped
    x: 5 resolved by q/1 TaskStopped
q/1 claimed ben
    x: 6 of 2 about a.rs: q/1 ben (a.rs), p/1 ana (a.rs)
p/1 expires
    x: 6 resolved by p/1 TimerFired
",
        told,
    );
}

#[test]
fn a_reclaimed_task_does_not_conflict_with_itself() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; p/2 dispatched Refactor a.rs
p/1 claimed ana
p/1 claimed ben
p/2 claimed eve
    x: 1 of 2 about a.rs: p/2 eve (a.rs), p/1 ben (a.rs)
p/2 claimed ana
    x: 1 resolved by p/2 TaskClaimed
    x: 2 of 2 about a.rs: p/2 ana (a.rs), p/1 ben (a.rs)
",
        told,
    );
}

#[test]
fn a_conflict_of_several_ends_with_its_newest_or_the_last_of_the_others() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor src/a.rs; p/2 dispatched Refactor src/b.rs; p/3 dispatched Refactor src; p/4 dispatched Refactor src
p/1 claimed a
p/2 claimed b
p/3 claimed c
    x: 1 of 3 about src <-> src/a.rs: p/3 c (src), p/1 a (src/a.rs), p/2 b (src/b.rs)
p/4 claimed d
    x: 2 of 4 about src <-> src/a.rs: p/4 d (src), p/1 a (src/a.rs), p/2 b (src/b.rs), p/3 c (src)
p/1 completed
p/4 completed
    x: 2 resolved by p/4 TaskCompleted
p/2 completed
    x: 1 resolved by p/2 TaskCompleted
",
        told,
    );
}

#[test]
fn tasks_that_only_read_do_not_conflict() {
    check::<Conflicts>(
        "
p/1 dispatched Retrieval a.rs; p/2 dispatched Analysis a.rs; p/3 dispatched ToolCall a.rs
p/1 claimed a
p/2 claimed b
p/3 claimed c
    x: 1 of 3 about a.rs: p/3 c (a.rs), p/1 a (a.rs), p/2 b (a.rs)
",
        told,
    );
}

#[test]
fn a_command_counts_as_a_writer_unless_marked_read_only() {
    check::<Conflicts>(
        "
p/1 dispatched Retrieval $ < a.rs; p/2 dispatched ToolCall $ < a.rs; p/3 dispatched Analysis a.rs
p/1 claimed a
p/2 claimed b
p/3 claimed c
p/4 dispatched Retrieval $ a.rs
p/4 claimed d
    x: 1 of 4 about a.rs: p/4 d (a.rs), p/1 a (a.rs), p/2 b (a.rs), p/3 c (a.rs)
",
        told,
    );
}

#[test]
fn sequential_tasks_of_one_executor_do_not_conflict() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor $ a.rs; p/2 dispatched Refactor $ a.rs; q/1 dispatched Refactor $ a.rs
p/1 claimed ana
p/1 completed
p/2 claimed ana
p/1 is Completed
p/2 asks; q/1 claimed ana
q/1 failed
p/2 claimed ana
",
        told,
    );
}

#[test]
fn a_task_claimed_and_ended_in_one_append_causes_no_conflict() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; p/2 dispatched Refactor a.rs; p/3 dispatched Refactor a.rs
p/1 claimed a
p/2 claimed b; p/2 completed
p/2 claimed b; p/3 claimed c
    x: 1 of 2 about a.rs: p/2 b (a.rs), p/1 a (a.rs)
    x: 2 of 3 about a.rs: p/3 c (a.rs), p/1 a (a.rs), p/2 b (a.rs)
p/3 completed; p/3 claimed d
    x: 2 resolved by p/3 TaskCompleted
    x: 3 of 3 about a.rs: p/3 d (a.rs), p/1 a (a.rs), p/2 b (a.rs)
",
        told,
    );
}

#[test]
fn projects_share_no_files_and_number_conflicts_separately() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; q@y/1 dispatched Refactor a.rs; r@/1 dispatched Refactor a.rs; s@y/1 dispatched Refactor a.rs
p/1 claimed a; q@y/1 claimed b; r@/1 claimed c
s@y/1 claimed d
    y: 1 of 2 about a.rs: s@y/1 d (a.rs), q@y/1 b (a.rs)
",
        told,
    );
}

#[test]
fn declared_files_take_precedence_over_mentioned_ones() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor : mend src/a.rs, and look at http://example.org/src/b.rs
p/2 dispatched Refactor docs: mend src/a.rs
p/3 dispatched Refactor : mend `src/{a,b}.rs`.
p/1 claimed a
p/2 claimed b
p/3 claimed c
    x: 1 of 2 about src/a.rs <-> src/{a,b}.rs: p/3 c (src/{a,b}.rs), p/1 a (src/a.rs)
",
        told,
    );
}

#[test]
fn a_claim_on_a_cancelled_task_causes_no_conflict() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; p/2 dispatched Refactor a.rs
p/1 claimed a
p/2 is Cancelled
p/2 claimed b
p/2 stopped
",
        told,
    );
}

/// The events for a line, with their tags.
fn say(log: &mut Log, conflicts: &mut Conflicts, line: &str) -> Vec<crewlog_planner::crew::Emitted<ConflictEvent>> {
    for recorded in log.append(line) {
        conflicts.handle(&recorded).unwrap();
    }
    conflicts.emit()
}

#[test]
fn two_worktrees_share_no_files() {
    let mut conflicts = Conflicts::default();
    let (mut one, mut other) = (Log::in_folder("/trees/one"), Log::in_folder("/trees/other"));
    say(&mut one, &mut conflicts, "p/1 dispatched Refactor src/a.rs");
    say(&mut one, &mut conflicts, "p/1 claimed a");
    say(&mut other, &mut conflicts, "q/1 dispatched Refactor src/a.rs; q/2 dispatched Refactor ../one/./src/");
    assert!(say(&mut other, &mut conflicts, "q/1 claimed b").is_empty());
    let said = say(&mut other, &mut conflicts, "q/2 claimed c");
    let told = said.iter().map(|said| told(&said.project, &said.event)).collect::<Vec<_>>();
    let expected = "x: 1 of 2 about ../one/./src/ <-> src/a.rs: q/2 c (../one/./src/), p/1 a (src/a.rs)";
    assert_eq!(told, [expected]);
    let tags = ["project:x", "plan:q", "plan:p"].map(str::to_owned);
    assert_eq!(said[0].tags, tags, "it is found by each of its plans");
}

#[test]
fn a_conflict_of_many_tasks_lists_a_bounded_number_of_holders() {
    let (mut log, mut conflicts) = (Log::default(), Conflicts::default());
    for plan in 0..40 {
        say(&mut log, &mut conflicts, &format!("p{plan}/1 dispatched Refactor a.rs"));
        let said = say(&mut log, &mut conflicts, &format!("p{plan}/1 claimed a"));
        let ConflictEvent::ConflictDetected { holders, n_holders, .. } = (match said.first() {
            Some(said) => &said.event,
            None => continue,
        }) else {
            panic!("nothing ends");
        };
        assert_eq!(*n_holders, plan + 1);
        assert_eq!(holders.len(), HOLDERS_MAX.min(usize::try_from(plan).unwrap() + 1));
        assert_eq!(holders[0].plan, format!("p{plan}"));
        assert!(said[0].tags.len() <= TAGS_MAX);
    }
}

#[test]
fn patterns_beyond_the_maximum_and_costly_ones_are_ignored() {
    let (mut log, mut conflicts) = (Log::default(), Conflicts::default());
    let many = (0..=PATTERNS_MAX).map(|n| format!("f{n}.rs")).collect::<Vec<_>>().join(" ");
    let hostile = (0..PATTERNS_MAX).map(|n| format!("h{n}/{}b", "*a".repeat(250))).collect::<Vec<_>>().join(" ");
    say(&mut log, &mut conflicts, &format!("p/1 dispatched Refactor {many}; p/2 dispatched Refactor {hostile}"));
    say(
        &mut log,
        &mut conflicts,
        &format!("p/3 dispatched Refactor f{PATTERNS_MAX}.rs; p/4 dispatched Refactor f3.rs"),
    );
    let hit = format!("{}b", "a".repeat(250));
    say(&mut log, &mut conflicts, &format!("p/5 dispatched Refactor h2/{hit}; p/6 dispatched Refactor h60/{hit}"));
    say(&mut log, &mut conflicts, &format!("p/7 dispatched Refactor {hostile}"));
    say(&mut log, &mut conflicts, "p/1 claimed a; p/2 claimed a");
    let mut is_conflict = |task: u64| !say(&mut log, &mut conflicts, &format!("p/{task} claimed b")).is_empty();
    assert!(!is_conflict(3), "one too many");
    assert!(is_conflict(4));
    assert!(is_conflict(5), "this is within the budget");
    assert!(!is_conflict(6), "this would cost too much");
    assert!(is_conflict(7), "and is decided in time");
}

#[test]
fn only_a_bounded_prefix_of_a_million_file_names_is_examined() {
    let (mut log, mut conflicts) = (Log::default(), Conflicts::default());
    let many = (0..1_000_000).map(|n| format!("f{n}.rs")).collect::<Vec<_>>().join(" ");
    let one = (0..100_000).map(|n| format!("{}same{n}/../g.rs", "{a,a}".repeat(6))).collect::<Vec<_>>().join(" ");
    say(&mut log, &mut conflicts, &format!("p/1 dispatched Refactor : {many}"));
    say(&mut log, &mut conflicts, &format!("p/2 dispatched Refactor : {one} h.rs"));
    say(&mut log, &mut conflicts, &format!("p/3 dispatched Refactor {one} h.rs"));
    let last = PATTERNS_MAX - 1;
    say(
        &mut log,
        &mut conflicts,
        &format!("q/1 dispatched Refactor f{last}.rs; q/2 dispatched Refactor f{PATTERNS_MAX}.rs"),
    );
    say(&mut log, &mut conflicts, "q/3 dispatched Refactor g.rs; q/4 dispatched Refactor h.rs");
    say(&mut log, &mut conflicts, "p/1 claimed a; p/2 claimed a; p/3 claimed a");
    let mut is_conflict = |task: u64| !say(&mut log, &mut conflicts, &format!("q/{task} claimed b")).is_empty();
    assert_eq!([1, 2, 3, 4].map(&mut is_conflict), [true, false, true, false]);
}

#[test]
fn names_that_normalise_to_the_same_path_are_one_pattern() {
    let (mut log, mut conflicts) = (Log::default(), Conflicts::default());
    let one = (2..NAMES_MAX).map(|n| format!("x{n}/../g.rs")).collect::<Vec<_>>().join(" ");
    say(&mut log, &mut conflicts, &format!("p/1 dispatched Refactor : {one} h.rs i.rs j.rs"));
    say(
        &mut log,
        &mut conflicts,
        "q/1 dispatched Refactor h.rs; q/2 dispatched Refactor i.rs; q/3 dispatched Refactor j.rs",
    );
    say(&mut log, &mut conflicts, "p/1 claimed a");
    let mut is_conflict = |task: u64| !say(&mut log, &mut conflicts, &format!("q/{task} claimed b")).is_empty();
    assert_eq!([1, 2, 3].map(&mut is_conflict), [true, true, false]);
}

/// With work for every project at every append this would never end.
#[test]
fn the_cost_of_an_append_does_not_depend_on_the_number_of_projects() {
    let (mut log, mut conflicts) = (Log::default(), Conflicts::default());
    for project in 0..20_000 {
        let line = format!("p@y{project}/1 dispatched Refactor a.rs; p@y{project}/1 claimed a");
        log.append(&line).iter().for_each(|recorded| conflicts.handle(recorded).unwrap());
    }
    assert!((0..1_000_000).all(|_| conflicts.emit().is_empty()));
    say(&mut log, &mut conflicts, "q@y7/1 dispatched Refactor a.rs");
    assert_eq!(say(&mut log, &mut conflicts, "q@y7/1 claimed b").len(), 1);
}

#[test]
fn tasks_of_a_sub_plan_do_not_conflict_with_their_parent_task() {
    check::<Conflicts>(
        "
p/1 dispatched Refactor a.rs; p.1-1/1 dispatched Refactor a.rs; p.1-1.1-2/1 dispatched Refactor a.rs
p/1 claimed ana
p.1-1/1 claimed ben
p.1-1.1-2/1 claimed cem
p/2 dispatched Refactor a.rs
p/2 claimed dan
    x: 1 of 4 about a.rs: p/2 dan (a.rs), p/1 ana (a.rs), p.1-1/1 ben (a.rs), p.1-1.1-2/1 cem (a.rs)
q/1 dispatched Refactor b.rs; q.1-1/1 dispatched Refactor b.rs
q.1-1/1 claimed eva
q/1 claimed fay
q.1-new/1 dispatched Refactor b.rs
q.1-new/1 claimed gil
    x: 2 of 3 about b.rs: q.1-new/1 gil (b.rs), q.1-1/1 eva (b.rs), q/1 fay (b.rs)
",
        told,
    );
}
