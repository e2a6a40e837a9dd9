//! Records a working day of a crew, which `crewlog demo` plays: scripted agents on the real log, with a clock that the
//! scripts move. It takes seconds, and except for random ids each recording is the same.
//!
//!     cargo run --example record-day -- src/demo/day.jsonl.gz

mod actor;
mod agents;
mod day;
mod dice;
mod export;
mod people;
mod stage;
mod worker;

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;

use crewlog_executors::crew::reacting::Reacting;
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::statistics::Statistics;

use crate::day::Day;
use crate::stage::{Script, play};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Minutes from the first event to the last.
const MINUTES: i64 = 493;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let to = PathBuf::from(std::env::args().nth(1).ok_or("usage: record-day FILE")?);
    let folder = tempfile::tempdir()?;
    let day = Rc::new(Day::new(folder.path()).await?);
    let mut conflicts = Reacting::<Conflicts>::new(day.store.clone());
    let mut statistics = Reacting::<Statistics>::new(day.store.clone());
    let mut scripts: Vec<Script> = vec![Box::pin(day::host(day.clone()))];
    scripts.extend(people::scripts(&day));
    scripts.extend(agents::scripts(&day));
    scripts.push(Box::pin(worker::build_machine(day.clone())));
    let react = async || {
        conflicts.catch_up(None).await?;
        Ok(statistics.catch_up(None).await?)
    };
    play(&day.time, MINUTES, scripts, react).await?;
    let n_events = export::write(&day.store, File::create(&to)?).await?;
    let n_bytes = to.metadata()?.len();
    println!("{n_events} events, {n_bytes} bytes");
    day.report_left_over().await?;
    day.store.close().await;
    Ok(())
}
