//! Peers that cannot be linked here: a program that does one run and prints one line of JSON. Its arguments are the
//! workload, the seconds and the folder.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::measure::Run;
use crate::place::Place;
use crate::subject::{Result, Workload};

/// The program of a peer.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// The crates that need an older sqlx, by the name of the crate.
    Older(&'static str),
    /// The script next to this workspace, in the Python environment.
    Python,
}

#[derive(Deserialize)]
struct Told {
    events_per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python_eventsourcing.py");

/// One run.
pub fn run(program: Program, place: &Place, folder: &Path, workload: Workload, length: Duration) -> Result<Run> {
    let mut command = match program {
        Program::Older(name) => {
            let mut command = Command::new(place.older.clone()?);
            command.arg(name);
            command
        }
        Program::Python => {
            let mut command = Command::new(place.python_program("python")?);
            command.arg(SCRIPT);
            command
        }
    };
    command.arg(word(workload)).arg(length.as_secs_f64().to_string()).arg(folder).stderr(Stdio::piped());
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or("it failed and says nothing").to_owned().into());
    }
    let Told { events_per_s, p50_us, p99_us } = serde_json::from_slice(&output.stdout)?;
    let us = |us: f64| Some(Duration::from_secs_f64(us / 1e6));
    Ok(Run { rate: events_per_s, p50: us(p50_us), p99: us(p99_us) })
}

fn word(workload: Workload) -> &'static str {
    match workload {
        Workload::OneWriter => "one-writer",
        Workload::ManyWriters => "many-writers",
        Workload::Batches => "batches",
        Workload::OneAggregate => "one-aggregate",
        Workload::Replay => "replay",
        Workload::Delivery => "delivery",
        Workload::FanOut => "fan-out",
        Workload::FanOutInFlight => "fan-out-in-flight",
    }
}
