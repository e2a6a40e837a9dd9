//! The claim of a task, as scripts: the second, the order, and the resulting events or the refusal.

use crewlog_mq::{Handler, Timestamp};
use crewlog_planner::claim::{
    Claim, Ending, Executor, LOST_MAX, LateOutcome, LateReport, TaskCommand, TaskEvent, TaskLease, TaskProgress,
    aggregate_id, split_aggregate_id,
};
use crewlog_planner::event::{FailureClass, Usage};
use crewlog_planner::plan::TaskId;

const SECOND: i64 = 1_000_000;

/// `claim WHO ATTEMPT [starts] [dead=EPOCH]`, `agent WHO ATTEMPT`, `hand WHO EPOCH`, `report WHO ATTEMPT [dead=EPOCH]`, `withdraw ATTEMPT`, `unpark`,
/// `interrupt WHO ATTEMPT EPOCH`, and with the epoch of a claim `late`, `progress`, `done`, `fail`, `ask`, `stop`, `release`, `expire`, `dies`.
fn command(second: i64, order: &str) -> TaskCommand {
    let words: Vec<_> = order.split(' ').collect();
    let now = Timestamp(second * SECOND);
    let executor = || Executor { name: words[1].into(), host: "h".into(), worker: words[1].into() };
    let number = |at: usize| words[at].parse::<u32>().expect(order);
    let epoch = || u64::from(number(1));
    let dead_epoch = words.iter().find_map(|word| word.strip_prefix("dead=")).map(|epoch| epoch.parse().expect(order));
    let end = |ending: Ending| TaskCommand::End { epoch: epoch(), usage: Usage::default(), ending };
    let done = || Ending::Completed { result: "ok".into(), run: None };
    match words[0] {
        "claim" => {
            let (attempt, only_reports) = (number(2), !words.contains(&"starts"));
            TaskCommand::Claim(Claim { attempt, executor: executor(), now, dead_epoch, only_reports, prompt: None })
        }
        "agent" => TaskCommand::ClaimForAgent { attempt: number(2), executor: executor(), now },
        "hand" => {
            let progress = TaskProgress { step: Some("next".into()), ..TaskProgress::default() };
            TaskCommand::HandOver { epoch: u64::from(number(2)), executor: executor(), progress }
        }
        "report" => TaskCommand::Report {
            claim: Claim { attempt: number(2), executor: executor(), now, dead_epoch, ..Claim::default() },
            ending: done(),
        },
        "interrupt" => TaskCommand::Interrupt { attempt: number(2), epoch: u64::from(number(3)), executor: executor() },
        "late" => {
            let executor = Executor::default();
            let late =
                LateReport { attempt: 1, epoch: epoch(), executor, outcome: LateOutcome::Failed, text: "no".into() };
            TaskCommand::ReportLate { late }
        }
        "withdraw" => TaskCommand::Withdraw { attempt: number(1) },
        "unpark" => TaskCommand::Unpark { by: "ada".into() },
        "progress" => {
            let progress = TaskProgress { step: Some(words[2].into()), next_step: None, note: None, session: None };
            TaskCommand::Progress { epoch: epoch(), progress }
        }
        "done" => end(done()),
        "used" => {
            let usage = Usage { input_tokens: 7, ..Usage::default() };
            TaskCommand::End { epoch: epoch(), usage, ending: done() }
        }
        "fail" => end(Ending::Failed { error: "no".into(), class: FailureClass::Task, run: None }),
        "ask" => end(Ending::Asked { question: "red?".into(), default: None }),
        "stop" => end(Ending::Stopped { reason: "enough".into() }),
        "release" => end(Ending::Released { reason: "over".into(), cut_off: words.contains(&"running") }),
        "expire" | "dies" => TaskCommand::FireTimer { epoch: epoch(), now, is_dead: words[0] == "dies" },
        other => panic!("{other}"),
    }
}

fn shown(event: &TaskEvent) -> String {
    match event {
        TaskEvent::TaskClaimed { attempt, executor, lease_until, epoch, cut_off, only_reports, .. } => {
            let until = lease_until.map_or(String::new(), |until| format!(" until {}", until.0 / SECOND));
            let after = if *cut_off { " after a cut" } else { "" };
            let starts = if *only_reports { "" } else { " and starts" };
            format!("{} has {attempt} as {epoch}{until}{after}{starts}", executor.worker)
        }
        TaskEvent::TaskProgressed { epoch, progress } => {
            format!("progress {epoch} {}", progress.step.as_deref().unwrap_or(""))
        }
        TaskEvent::TaskUnparked { by } => format!("{by} lets go"),
        TaskEvent::TaskReleased { epoch, reason, cut_off } => {
            format!("{} {epoch}: {reason}", if *cut_off { "cut off" } else { "released" })
        }
        TaskEvent::TaskStopped { epoch, reason } => format!("stopped {epoch}: {reason}"),
        TaskEvent::TaskCompleted { attempt, epoch, result, .. } => format!("{attempt} done by {epoch}: {result}"),
        TaskEvent::TaskFailed { attempt, epoch, error, class, .. } => {
            format!("{attempt} failed by {epoch}, {class:?}: {error}")
        }
        TaskEvent::UsageReported { attempt, epoch, usage } => {
            format!("{attempt} used by {epoch}: {}", usage.input_tokens)
        }
        TaskEvent::NeedsClarification { attempt, epoch, question, .. } => {
            format!("{attempt} asked by {epoch}: {question}")
        }
        TaskEvent::TaskWithdrawn { attempt } => format!("{attempt} withdrawn"),
        TaskEvent::TaskInterrupted { attempt, epoch, executor } => {
            format!("{attempt} as {epoch} by {} interrupted", executor.worker)
        }
        TaskEvent::TaskReportedLate(late) => {
            format!("{} too late: {} {}", late.epoch, <&str>::from(late.outcome), late.text)
        }
        TaskEvent::TimerFired { epoch, due } => format!("{epoch} lost at {}", due.0 / SECOND),
    }
}

#[track_caller]
fn check(script: &[(i64, &str, &str)]) {
    let (mut claim, mut history) = (TaskLease::default(), Vec::new());
    for (second, order, expected) in script {
        let before = claim.clone();
        let found = match claim.process(command(*second, order)) {
            Ok(events) => {
                let shown: Vec<_> = events.iter().map(shown).collect();
                if let Some(last) = events.last().filter(|_| before.holder.is_some() || claim.holder.is_some()) {
                    assert_eq!(last.ends_hold(), claim.holder.is_none(), "at {second}: {last:?}");
                }
                history.extend(events);
                shown.join(", ")
            }
            Err(refused) => {
                assert_eq!(claim, before, "a refusal changes nothing");
                refused.to_string()
            }
        };
        assert_eq!(found, *expected, "at {second}: {order}");
        assert_eq!(claim, TaskLease::fold(&history));
    }
}

#[test]
fn a_claim_holds_until_its_lease_ends_and_no_longer() {
    check(&[
        (0, "claim w1 1", "w1 has 1 as 1 until 180"),
        (1, "claim w1 1", ""),
        (1, "claim w2 1", "the task is claimed by w1@h"),
        (179, "claim w2 1", "the task is claimed by w1@h"),
        (179, "expire 1", ""),
        (180, "claim w2 1", "w2 has 1 as 2 until 360"),
        (181, "done 1", "the claim with epoch 1 has lost the task"),
        (181, "expire 1", ""),
        (360, "expire 2", "2 lost at 360"),
        (361, "done 2", "the claim with epoch 2 has lost the task"),
    ]);
}

/// A worker saw dispatches and claims that the log has lost.
#[test]
fn a_run_that_the_log_has_lost_counts_as_cut_short_and_the_next_claim_has_a_higher_epoch() {
    check(&[
        (0, "interrupt w1 1 1", "1 as 1 by w1 interrupted"),
        (0, "interrupt w1 1 1", ""),
        (1, "claim w2 1 starts", "w2 has 1 as 2 until 181 after a cut and starts"),
        (2, "interrupt w1 1 1", ""),
        (2, "interrupt w2 1 2", ""),
        // Another claim had that epoch.
        (2, "interrupt w1 1 2", "1 as 3 by w1 interrupted"),
        // One that ran later in the lost part than the claim in the log.
        (3, "interrupt w3 1 4", "1 as 4 by w3 interrupted"),
        (4, "done 2", "the claim with epoch 2 has lost the task"),
        (5, "claim w2 1", "w2 has 1 as 5 until 185 after a cut"),
        (6, "fail 5", "1 failed by 5, Task: no"),
        (7, "interrupt w1 1 9", ""),
        (8, "interrupt w1 2 1", "2 as 6 by w1 interrupted"),
        (9, "claim w1 2", "w1 has 2 as 7 until 189 after a cut"),
    ]);
}

#[test]
fn a_report_that_comes_too_late_is_kept_once_and_changes_nothing_else() {
    check(&[
        (0, "claim w1 1 starts", "w1 has 1 as 1 until 180 and starts"),
        (1, "dies 1", "1 lost at 1"),
        (2, "done 1", "the claim with epoch 1 has lost the task"),
        (2, "late 1", "1 too late: failed no"),
        (3, "late 1", ""),
        (4, "claim w2 1 starts", "w2 has 1 as 2 until 184 after a cut and starts"),
        (5, "late 1", ""),
        (6, "done 2", "1 done by 2: ok"),
        (7, "late 2", "2 too late: failed no"),
    ]);
}

#[test]
fn a_claim_that_is_repeated_is_one_claim_unless_one_starts_and_the_other_does_not() {
    check(&[
        (0, "claim w1 1", "w1 has 1 as 1 until 180"),
        (2, "claim w1 1 starts", "the task is claimed by w1@h"),
        (2, "claim w1 1", ""),
        (180, "claim w1 1 starts", "w1 has 1 as 2 until 360 and starts"),
    ]);
    check(&[
        (0, "claim w1 1 starts", "w1 has 1 as 1 until 180 and starts"),
        (1, "claim w1 1 starts", ""),
        (1, "claim w1 1", "the task is claimed by w1@h"),
        (1, "claim w1 2 starts", "the task is claimed by w1@h"),
        (180, "claim w1 1 starts", "w1 has 1 as 2 until 360 after a cut and starts"),
    ]);
}

#[test]
fn a_dead_holder_is_replaced_at_once_and_what_it_began_counts_as_cut_off() {
    check(&[
        (0, "claim w1 1", "w1 has 1 as 1 until 180"),
        (1, "claim w2 1 dead=7", "the task is claimed by w1@h"),
        (1, "claim w2 1 starts dead=1", "w2 has 1 as 2 until 181 and starts"),
        (2, "dies 2", "2 lost at 2"),
        (3, "claim w3 1", "w3 has 1 as 3 until 183 after a cut"),
        (4, "dies 3", "3 lost at 4"),
        (5, "claim w4 1 starts", "w4 has 1 as 4 until 185 after a cut and starts"),
        (6, "release 4", "released 4: over"),
        (7, "claim w5 1 starts", "w5 has 1 as 5 until 187 after a cut and starts"),
        (8, "fail 5", "1 failed by 5, Task: no"),
        (9, "claim w6 2", "w6 has 2 as 6 until 189"),
    ]);
}

#[test]
fn each_end_frees_the_task_and_all_but_a_release_end_the_attempt() {
    for (order, told, ends) in [
        ("done 1", "1 done by 1: ok", true),
        ("used 1", "1 used by 1: 7, 1 done by 1: ok", true),
        ("fail 1", "1 failed by 1, Task: no", true),
        ("ask 1", "1 asked by 1: red?", true),
        ("stop 1", "stopped 1: enough", true),
        ("release 1", "released 1: over", false),
    ] {
        let next = if ends { "attempt 1 of the task has ended" } else { "w2 has 1 as 2 until 183" };
        check(&[
            (0, "claim w1 1", "w1 has 1 as 1 until 180"),
            (1, order.replace(" 1", " 2").as_str(), "the claim with epoch 2 has lost the task"),
            (1, order, told),
            (2, order, "the claim with epoch 1 has lost the task"),
            (3, "claim w2 1", next),
        ]);
    }
}

#[test]
fn an_attempt_that_has_ended_is_never_claimed_again() {
    check(&[
        (0, "claim w1 2", "w1 has 2 as 1 until 180"),
        (1, "done 1", "2 done by 1: ok"),
        (2, "claim w1 1", "attempt 1 of the task has ended"),
        (2, "claim w1 2", "attempt 2 of the task has ended"),
        (2, "report ann 2", "attempt 2 of the task has ended"),
        (3, "report ann 3", "ann has 3 as 2 until 183, 3 done by 2: ok"),
        (4, "claim w1 3", "attempt 3 of the task has ended"),
    ]);
}

#[test]
fn a_person_reports_for_nobody_or_for_a_dead_holder() {
    check(&[
        (0, "claim w1 1", "w1 has 1 as 1 until 180"),
        (1, "report ann 1", "the task is claimed by w1@h"),
        (1, "report ann 1 dead=1", "ann has 1 as 2 until 181, 1 done by 2: ok"),
    ]);
}

#[test]
fn a_dispatch_is_withdrawn_unless_it_is_held_and_a_begun_one_ends_as_unknown() {
    check(&[
        (0, "withdraw 1", "1 withdrawn"),
        (1, "withdraw 1", ""),
        (1, "claim w1 1", "attempt 1 of the task has ended"),
        (2, "claim w1 2", "w1 has 2 as 1 until 182"),
        (3, "withdraw 2", ""),
        (182, "withdraw 2", ""),
        (182, "expire 1", "1 lost at 182"),
        (182, "withdraw 2", "2 withdrawn"),
    ]);
    check(&[
        (0, "claim w1 1 starts", "w1 has 1 as 1 until 180 and starts"),
        (179, "withdraw 1", ""),
        (180, "expire 1", "1 lost at 180"),
        (180, "withdraw 1", "1 failed by 1, OutcomeUnknown: its run by w1@h was cut short"),
    ]);
    check(&[
        (0, "claim w1 1 starts", "w1 has 1 as 1 until 180 and starts"),
        (1, "dies 1", "1 lost at 1"),
        (2, "withdraw 2", "2 withdrawn"),
    ]);
}

#[test]
fn an_agent_holds_a_task_without_a_lease_until_it_is_dispatched_again() {
    check(&[
        (0, "agent ada 1", "ada has 1 as 1 and starts"),
        (9_999, "claim w1 1", "the task is claimed by ada@h"),
        (9_999, "expire 1", ""),
        (9_999, "claim w1 2", "w1 has 2 as 2 until 10179"),
    ]);
}

#[test]
fn a_task_with_which_agents_were_lost_in_a_row_waits_for_a_person() {
    assert_eq!(LOST_MAX, 3);
    let lost = [
        (0, "agent a 1", "a has 1 as 1 and starts"),
        (1, "dies 1", "1 lost at 1"),
        (2, "agent b 1", "b has 1 as 2 after a cut and starts"),
        (3, "dies 2", "2 lost at 3"),
        (4, "agent c 1", "c has 1 as 3 after a cut and starts"),
        (5, "dies 3", "3 lost at 5"),
    ];
    let parked = (6, "agent d 1", "3 agents were lost with the task: it waits for a person");
    check(&[&lost[..], &[parked, (7, "agent d 2", "d has 2 as 4 and starts"), (8, "unpark", "")]].concat());
    check(
        &[
            &lost[..],
            &[
                parked,
                (7, "unpark", "ada lets go"),
                (8, "unpark", ""),
                (9, "agent d 1", "d has 1 as 4 after a cut and starts"),
            ],
        ]
        .concat(),
    );
    // An agent that gives it back was not lost with it.
    let given = (5, "release 3", "released 3: over");
    check(
        &[
            &lost[..5],
            &[given, (6, "agent d 1", "d has 1 as 4 and starts"), (7, "dies 4", "4 lost at 7"), (8, "unpark", "")],
        ]
        .concat(),
    );
    // A worker is no agent.
    check(&[
        (0, "claim a 1", "a has 1 as 1 until 180"),
        (1, "dies 1", "1 lost at 1"),
        (2, "claim a 1", "a has 1 as 2 until 182"),
        (3, "dies 2", "2 lost at 3"),
        (4, "claim a 1", "a has 1 as 3 until 184"),
        (5, "dies 3", "3 lost at 5"),
        (6, "agent d 1", "d has 1 as 4 and starts"),
    ]);
}

#[test]
fn progress_is_recorded_once_and_belongs_to_its_attempt() {
    check(&[
        (0, "agent ada 1", "ada has 1 as 1 and starts"),
        (1, "progress 1 lexer", "progress 1 lexer"),
        (2, "progress 1 lexer", ""),
        (2, "progress 2 lexer", "the claim with epoch 2 has lost the task"),
        (3, "release 1", "released 1: over"),
        (4, "agent bob 1", "bob has 1 as 2 and starts"),
        (5, "progress 2 lexer", ""),
        (6, "fail 2", "1 failed by 2, Task: no"),
        (7, "agent bob 2", "bob has 2 as 3 and starts"),
        (8, "progress 3 lexer", "progress 3 lexer"),
    ]);
}

#[test]
fn the_planner_gets_each_end_and_each_use_and_nothing_else() {
    let mut claim = TaskLease::default();
    let mut told = Vec::new();
    for order in [
        "claim w1 1 starts",
        "progress 1 lexer",
        "release 1",
        "claim w1 1",
        "used 2",
        "claim w1 2",
        "fail 3",
        "claim w1 3",
        "ask 4",
        "claim w1 4",
        "stop 5",
        "withdraw 5",
        "claim w1 6",
        "dies 6",
    ] {
        let events = claim.process(command(0, order)).unwrap();
        told.extend(events.into_iter().filter(TaskEvent::is_report).map(|report| match report {
            TaskEvent::TaskCompleted { attempt, result, .. } => format!("{attempt} done {result}"),
            TaskEvent::TaskFailed { attempt, error, class, .. } => format!("{attempt} {class:?} {error}"),
            TaskEvent::NeedsClarification { attempt, question, .. } => format!("{attempt} asks {question}"),
            TaskEvent::TaskWithdrawn { attempt } => format!("{attempt} withdrawn"),
            TaskEvent::UsageReported { attempt, epoch, usage } => {
                format!("{attempt} used {} in {epoch}", usage.input_tokens)
            }
            other => panic!("no report: {other:?}"),
        }));
    }
    assert_eq!(told, ["1 used 7 in 2", "1 done ok", "2 Task no", "3 asks red?", "5 withdrawn"]);
}

#[test]
fn the_aggregate_of_a_claim_names_its_plan_and_task() {
    for (plan, task, id) in [("p", 7, "p/7"), ("p.1-1", 12, "p.1-1/12"), ("a/b", 1, "a/b/1")] {
        assert_eq!(aggregate_id(plan, TaskId(task)), id);
        assert_eq!(split_aggregate_id(id), Some((plan, TaskId(task))));
    }
    assert_eq!([split_aggregate_id("p"), split_aggregate_id("p/x"), split_aggregate_id("")], [None, None, None]);
}

#[test]
fn an_agent_hands_its_task_over_to_another_one_at_once() {
    check(&[
        (0, "agent ada 1", "ada has 1 as 1 and starts"),
        (1, "hand bob 2", "the claim with epoch 2 has lost the task"),
        (2, "hand bob 1", "released 1: handed over to bob, bob has 1 as 2 and starts, progress 2 next"),
        (3, "done 1", "the claim with epoch 1 has lost the task"),
        (4, "done 2", "1 done by 2: ok"),
    ]);
}
