//! A worker and its supervisor in one small binary, which the tests of the supervisor start and kill.
//!
//! `supervise` is the hidden subcommand. `work SPEC LOCK` runs the JSON spec under a
//! supervisor that holds the lock, and prints its output.

use std::process::ExitCode;

use std::io::Write;

use crewlog_executors::output::Outputs;
use crewlog_executors::supervisor::{Spec, Supervisor, SupervisorProgram, supervise};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["supervise"] => supervise(),
        ["work", spec, lock] => work(spec, lock).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        _ => ExitCode::FAILURE,
    }
}

fn work(spec: &str, lock: &str) -> std::io::Result<()> {
    let spec: Spec = serde_json::from_str(spec)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let program = SupervisorProgram::this_binary(["supervise"])?;
        let ended = Supervisor::new(program, Some(lock.into())).start(spec, Outputs::Mixed).await?.wait().await?;
        std::io::stdout().write_all(ended.written.out.text.as_bytes())
    })
}
