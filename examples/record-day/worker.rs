//! The build machine: a worker that runs commands, and a reviewing agent for single tasks.

use std::rc::Rc;

use crewlog_executors::claiming::claim_of;
use crewlog_executors::prompts::prompt_of;
use crewlog_mq::{Cause, Range, Runner};
use crewlog_planner::claim::{Claim, Ending, Executor, RunDetails, TaskCommand, TaskLease};
use crewlog_planner::event::{FailureClass, Usage};

use crate::Result;
use crate::day::{Day, FORK, WEEKS, ZONES, tags};

/// One run of a task.
struct Run {
    plan: &'static str,
    task: &'static str,
    executor: &'static str,
    minutes: u64,
    exit_code: i32,
    output: &'static str,
}

const fn shell(plan: &'static str, task: &'static str, minutes: u64, exit_code: i32, output: &'static str) -> Run {
    Run { plan, task, executor: "shell", minutes, exit_code, output }
}

/// In the order in which the tasks of a plan can start: a run waits for its task.
const RUNS: [Run; 13] = [
    shell(WEEKS, "T10", 3, 0, ""),
    shell(
        WEEKS,
        "T07",
        11,
        77,
        "thread 'main' panicked at src/parse/week.rs:88:21:\nbyte index 1 is not a char boundary; it is inside 'é'\nFailing input: fuzz/artifacts/week/crash-3f0c",
    ),
    shell(WEEKS, "T07", 15, 0, "Done 48211907 runs in 901 second(s)"),
    Run {
        plan: WEEKS,
        task: "T11",
        executor: "reviewer",
        minutes: 9,
        exit_code: 0,
        output: "No blocking remark. WeekDate::year could be named iso_year, since it differs from the year of the calendar. The order of the arguments of new is that of the text form, which is good.",
    },
    shell(WEEKS, "T09", 6, 0, "parse/week  time: [38.1 ns 38.4 ns 38.9 ns]  change: -61.3 %"),
    shell(
        WEEKS,
        "T13",
        7,
        101,
        "test weeks::order_is_kept ... FAILED\n\nfailures:\n    weeks::order_is_kept: left 0000-W01-1, right -0001-W52-7\n\ntest result: FAILED. 612 passed; 1 failed",
    ),
    shell(WEEKS, "T13", 8, 0, "test result: ok. 613 passed; 0 failed; finished in 7.91s"),
    shell(ZONES, "Z07", 4, 0, "test result: ok. 88 passed; 0 failed; finished in 2.24s"),
    shell(ZONES, "Z10", 2, 0, "tables 36912 bytes\nlibrary 412 kB before, 231 kB after"),
    shell(
        ZONES,
        "Z08",
        6,
        1,
        "Africa/El_Aaiun 2037-10-04T02:00:00: +00:00 here, +01:00 by zdump\n1 zone of 341 differs",
    ),
    shell(
        ZONES,
        "Z08",
        6,
        1,
        "Africa/El_Aaiun 2037-10-04T02:00:00: +00:00 here, +01:00 by zdump\n1 zone of 341 differs",
    ),
    shell(FORK, "Z07", 4, 0, "test result: ok. 88 passed; 0 failed; finished in 3.02s"),
    shell(FORK, "Z10", 2, 0, "tables 0 bytes\nlibrary 412 kB before, 196 kB after"),
];

/// Runs all startable tasks, one at a time.
pub async fn build_machine(day: Rc<Day>) -> Result {
    let mut left: Vec<&Run> = RUNS.iter().collect();
    loop {
        day.time.pass(45).await;
        for index in 0..left.len() {
            let run = left[index];
            // A plan that does not exist yet has no tasks.
            if let Some((task, attempt, dispatch)) = day.dispatched(run.plan, run.task).await? {
                left.remove(index);
                let claim = claim_of(&day.store, run.plan, task, tags(run.plan));
                let prompt = match run.executor {
                    "shell" => None,
                    _agent => {
                        let all = Range::up_to(dispatch.position);
                        Some(prompt_of(&day.store, run.plan, task, None, all).await?.digest())
                    }
                };
                carry_out(&day, run, claim, attempt, &Cause::event(&dispatch), prompt).await?;
                break;
            }
        }
    }
}

async fn carry_out(
    day: &Day,
    run: &Run,
    mut claim: Runner<TaskLease>,
    attempt: u32,
    cause: &Cause,
    prompt: Option<crewlog_planner::claim::PromptDigest>,
) -> Result {
    let executor = Executor {
        name: run.executor.to_owned(),
        host: "build-1".to_owned(),
        worker: "5a0d91c47be2.0195a7c2f3e17b0c9d44".to_owned(),
    };
    let is_agent = prompt.is_some();
    let mut execute = async |command: TaskCommand| {
        let cause = cause.clone().keeping(command.recorded());
        claim.execute(command, &cause).await.map(|_| claim.handler().epoch)
    };
    let epoch =
        execute(TaskCommand::Claim(Claim { attempt, executor, now: day.store.now(), prompt, ..Claim::default() }))
            .await?;
    for _ in 0..run.minutes {
        day.time.pass(60).await;
    }
    let details = RunDetails {
        exit_code: Some(run.exit_code),
        signal: None,
        duration_ms: run.minutes * 60_000,
        output_bytes: run.output.len() as u64,
        output_is_cut: false,
        output: None,
    };
    let (text, details) = (run.output.to_owned(), Some(details));
    let ending = match run.exit_code {
        0 => Ending::Completed { result: text, run: details },
        code => Ending::Failed { error: format!("exit code {code}\n{text}"), class: FailureClass::Task, run: details },
    };
    let usage = match is_agent {
        true => Usage { input_tokens: 61_400, output_tokens: 2_150, cost_micros: 216_450, ..Usage::default() },
        false => Usage::default(),
    };
    execute(TaskCommand::End { epoch, usage, ending }).await?;
    day.take_in(run.plan).await
}
