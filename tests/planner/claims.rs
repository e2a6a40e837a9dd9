//! Random commands to the claim of a task.

use crewlog_mq::Timestamp;
use crewlog_planner::claim::{Claim, Ending, Executor, LateOutcome, LateReport, TaskCommand, TaskLease, TaskProgress};
use crewlog_planner::event::{FailureClass, Usage};
use proptest::prelude::*;

pub fn claim_acts() -> impl Strategy<Value = (TaskCommand, u64)> {
    let executor = (0..3_u8).prop_map(|n| Executor { name: "shell".into(), host: "h".into(), worker: n.to_string() });
    let shift = || prop_oneof![6 => Just(0_u64), 1 => Just(1)];
    let now = Timestamp(0);
    let command = prop_oneof![
        4 => (1..4_u32, executor.clone(), prop::option::weighted(0.3, shift()), any::<bool>()).prop_map(
            move |(attempt, executor, dead_epoch, only_reports)| {
                TaskCommand::Claim(Claim { attempt, executor, now, dead_epoch, only_reports, prompt: None })
            }
        ),
        3 => (1..4_u32, executor.clone())
            .prop_map(move |(attempt, executor)| TaskCommand::ClaimForAgent { attempt, executor, now }),
        1 => shift().prop_map(|epoch| TaskCommand::Progress { epoch, progress: progress("t") }),
        1 => (shift(), executor.clone()).prop_map(|(epoch, executor)| {
            TaskCommand::HandOver { epoch, executor, progress: progress("t") }
        }),
        1 => Just(TaskCommand::Unpark { by: "ada".into() }),
        3 => (shift(), endings()).prop_map(|(epoch, ending)| TaskCommand::End { epoch, usage: used(epoch), ending }),
        1 => (1..4_u32, 0..6_u64, executor.clone())
            .prop_map(move |(attempt, epoch, executor)| TaskCommand::Interrupt { attempt, epoch, executor }),
        1 => (1..4_u32, 0..6_u64, executor.clone()).prop_map(move |(attempt, epoch, executor)| {
            let late = LateReport { attempt, epoch, executor, outcome: LateOutcome::Failed, text: "t".into() };
            TaskCommand::ReportLate { late }
        }),
        1 => (1..4_u32, executor, endings())
            .prop_map(move |(attempt, executor, ending)| TaskCommand::Report { claim: Claim { attempt, executor, now, ..Claim::default() }, ending }),
        1 => (1..4_u32).prop_map(move |attempt| TaskCommand::Withdraw { attempt }),
        1 => (shift(), any::<bool>()).prop_map(move |(epoch, is_dead)| TaskCommand::FireTimer { epoch, now, is_dead }),
    ];
    (command, prop_oneof![Just(0_u64), Just(60), Just(200)])
}

pub fn used(n: u64) -> Usage {
    Usage {
        input_tokens: n,
        output_tokens: n,
        cost_micros: n,
        duration_ms: n,
        estimated_tokens: n % 7,
        n_without_tokens: n % 3,
        n_without_cost: n % 2,
    }
}

fn endings() -> impl Strategy<Value = Ending> {
    let text = || "t".to_owned();
    prop_oneof![
        Just(Ending::Completed { result: text(), run: None }),
        Just(Ending::Failed { error: text(), class: FailureClass::Task, run: None }),
        Just(Ending::Asked { question: text(), default: None }),
        Just(Ending::Stopped { reason: text() }),
        any::<bool>().prop_map(move |cut_off| Ending::Released { reason: text(), cut_off }),
    ]
}

pub fn at(command: TaskCommand, claim: &TaskLease, now: Timestamp) -> TaskCommand {
    let of = |shift: u64| claim.epoch.wrapping_sub(shift);
    match command {
        TaskCommand::Claim(claim) => TaskCommand::Claim(Claim { now, dead_epoch: claim.dead_epoch.map(of), ..claim }),
        TaskCommand::ClaimForAgent { attempt, executor, .. } => TaskCommand::ClaimForAgent { attempt, executor, now },
        TaskCommand::Progress { epoch, progress } => TaskCommand::Progress { epoch: of(epoch), progress },
        TaskCommand::HandOver { epoch, executor, progress } => {
            TaskCommand::HandOver { epoch: of(epoch), executor, progress }
        }
        TaskCommand::Unpark { by } => TaskCommand::Unpark { by },
        TaskCommand::End { epoch, usage, ending } => TaskCommand::End { epoch: of(epoch), usage, ending },
        TaskCommand::Report { claim, ending } => TaskCommand::Report { claim: Claim { now, ..claim }, ending },
        TaskCommand::Withdraw { .. } | TaskCommand::Interrupt { .. } | TaskCommand::ReportLate { .. } => command,
        TaskCommand::FireTimer { epoch, is_dead, .. } => TaskCommand::FireTimer { epoch: of(epoch), now, is_dead },
    }
}

pub fn progress(text: &str) -> TaskProgress {
    TaskProgress { step: Some(text.into()), next_step: None, note: Some(text.into()), session: None }
}
