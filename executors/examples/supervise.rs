//! A worker and its supervisor in one small binary, which the tests of the supervisor start and kill.
//!
//! `supervise` is the hidden subcommand. `work SPEC` runs the JSON spec under a supervisor and passes its output on.

use std::process::ExitCode;

use crewlog_executors::supervisor::{Spec, Supervised, SupervisorProgram, supervise};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["supervise"] => supervise(),
        ["work", spec] => work(spec).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        _ => ExitCode::FAILURE,
    }
}

fn work(spec: &str) -> std::io::Result<()> {
    let spec: Spec = serde_json::from_str(spec)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let program = SupervisorProgram::this_binary(["supervise"])?;
        let mut supervised = Supervised::spawn(&program, &spec).await?;
        let (mut output, _error) = supervised.take_output();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            if tokio::io::AsyncReadExt::read_buf(&mut output, &mut bytes).await? == 0 {
                break;
            }
            std::io::Write::write_all(&mut std::io::stdout(), &bytes)?;
            std::io::Write::flush(&mut std::io::stdout())?;
        }
        supervised.wait().await.map(drop)
    })
}
