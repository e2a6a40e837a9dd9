//! crewlog's store next to its peers: every workload for each in turn, and a table of ratios.
//!
//! `benches/peers/run` sets up the requirements and calls it. A peer that fails gets a row with the reason; the others
//! continue, and figures of different runs are never compared.

mod data;
mod measure;
mod nats;
mod ours;
mod place;
mod postgres;
mod program;
mod sqlite;
mod subject;
mod table;
mod umadb;
#[path = "../../workload.rs"]
#[expect(dead_code, reason = "the benches of the project use what is not used here")]
mod workload;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use place::Place;
use subject::{Result, Store, Subject, Workload};
use table::{Table, median};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use workload::N_REPLAYED;

/// A log of this size replays in full if it can be filled fast enough.
const N_REPLAYED_FAST: u64 = 1_000_000;
const N_REPLAYED_QUICK: u64 = 50_000;
const PROBE: Duration = Duration::from_millis(300);

struct Pace {
    n_runs: usize,
    length: Duration,
    quick: bool,
}

fn main() -> Result<()> {
    let quick = match std::env::args().nth(1).as_deref() {
        Some("--quick") => true,
        None => false,
        Some(other) => return Err(format!("{other}: there is only --quick").into()),
    };
    let pace = if quick {
        Pace { n_runs: 1, length: Duration::from_millis(500), quick }
    } else {
        Pace { n_runs: 3, length: Duration::from_millis(600), quick }
    };
    let runtime = Runtime::new()?;
    let folder = std::env::var_os("CREWLOG_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let own = TempDir::new_in(folder)?;
    let place = runtime.block_on(async { Place::find(own.path().to_owned()) });
    let mut bench = Bench { runtime, place, pace, table: Table::default(), probes: Vec::new() };
    for workload in Workload::ALL {
        let began = Instant::now();
        eprint!("{}", workload.name());
        match workload {
            Workload::Replay => bench.replay(),
            Workload::OneWriter
            | Workload::ManyWriters
            | Workload::Batches
            | Workload::OneAggregate
            | Workload::Delivery
            | Workload::FanOut
            | Workload::FanOutInFlight => bench.in_turn(workload),
        }
        eprintln!(" {:.0?}", began.elapsed());
    }
    bench.report();
    Ok(())
}

struct Bench {
    runtime: Runtime,
    place: Place,
    pace: Pace,
    table: Table,
    /// Syncs per second, measured once a round.
    probes: Vec<f64>,
}

impl Bench {
    /// Every subject on a new store, round by round.
    fn in_turn(&mut self, workload: Workload) {
        let mut subjects: Vec<_> = Subject::ALL.into_iter().filter(|subject| subject.can(workload)).collect();
        for _ in 0..self.pace.n_runs {
            match probe(&self.place.folder) {
                Ok(rate) => self.probes.push(rate),
                Err(failure) => eprintln!("the probe failed: {failure}"),
            }
            // Changes the order, so that nobody is always first, or always follows a subject that leaves the disk busy.
            subjects.reverse();
            for subject in subjects.iter().copied() {
                if self.table.has_failed(subject, workload) {
                    continue;
                }
                match self.run(subject, workload) {
                    Ok(run) => self.table.add(subject, workload, run),
                    Err(failure) => self.table.fail(subject, workload, &failure.to_string()),
                }
                eprint!(".");
            }
        }
    }

    fn run(&self, subject: Subject, workload: Workload) -> Result<measure::Run> {
        let folder = TempDir::new_in(&self.place.folder)?;
        match subject.program() {
            Some(program) => program::run(program, &self.place, folder.path(), workload, self.pace.length),
            None => self.runtime.block_on(async {
                let store = subject.open(&self.place, folder.path(), workload).await?;
                measure::run(store, workload, self.pace.length).await
            }),
        }
    }

    /// Fills each store once and reads them in turn.
    fn replay(&mut self) {
        let mut filled = Vec::new();
        for subject in Subject::ALL.into_iter().filter(|subject| subject.can(Workload::Replay)) {
            let n_events = match (self.pace.quick, subject.fills_slowly()) {
                (true, _) => N_REPLAYED_QUICK,
                (false, true) => N_REPLAYED,
                (false, false) => N_REPLAYED_FAST,
            };
            match self.filled(subject, n_events) {
                Ok((folder, store)) => filled.push((subject, n_events, folder, store)),
                Err(failure) => self.table.fail(subject, Workload::Replay, &failure.to_string()),
            }
            self.table.replayed(subject, n_events);
            eprint!(".");
        }
        for _ in 0..self.pace.n_runs {
            for (subject, n_events, _folder, store) in &filled {
                match self.runtime.block_on(measure::replay(&**store, *n_events)) {
                    Ok(run) => self.table.add(*subject, Workload::Replay, run),
                    Err(failure) => self.table.fail(*subject, Workload::Replay, &failure.to_string()),
                }
                eprint!(".");
            }
        }
    }

    fn filled(&self, subject: Subject, n_events: u64) -> Result<(TempDir, Arc<dyn Store>)> {
        let folder = TempDir::new_in(&self.place.folder)?;
        let store = self.runtime.block_on(async {
            let store = subject.open(&self.place, folder.path(), Workload::Replay).await?;
            measure::fill(&*store, n_events).await?;
            Ok::<_, subject::Failure>(store)
        })?;
        Ok((folder, store))
    }

    fn report(&self) {
        let n_cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let Pace { n_runs, length, .. } = self.pace;
        println!("{} {}, {n_cpus} CPUs; {}", std::env::consts::OS, std::env::consts::ARCH, load());
        println!("256 bytes of JSON, full metadata, one tag; medians of {n_runs} runs of {length:?}, in turn");
        let probes: Vec<_> = self.probes.iter().map(|rate| format!("{rate:.0}")).collect();
        let probe = median(self.probes.clone()).unwrap_or_default();
        println!("512 bytes appended and synced (fdatasync): {probe:.0}/s, the median of {}", probes.join(" "));
        println!("{}", self.versions());
        println!();
        self.table.print();
    }

    /// The versions of the subjects, and their stated durability.
    fn versions(&self) -> String {
        let mut told = vec![format!("SQLite {}, WAL, synchronous = FULL", rusqlite::version())];
        for program in ["umadb", "nats-server"] {
            let output = self
                .place
                .python_program(program)
                .and_then(|path| Ok(std::process::Command::new(path).arg("--version").output()?.stdout));
            told.push(output.map_or_else(
                |failure| failure.to_string(),
                |output| String::from_utf8_lossy(&output).trim().to_owned(),
            ));
        }
        match self.place.postgres() {
            Ok(server) => {
                let settings = self.runtime.block_on(server.settings());
                told.push(format!("{}: {}", server.version, settings.unwrap_or_else(|failure| failure.to_string())));
            }
            Err(failure) => told.push(failure.to_string()),
        }
        let (here, older) = (include_str!("../Cargo.lock"), include_str!("../older/Cargo.lock"));
        for (lock, name) in [
            (here, "umadb-client"),
            (here, "async-nats"),
            (here, "rusqlite"),
            (here, "tokio-postgres"),
            (older, "evento"),
            (older, "sqlite-es"),
        ] {
            told.push(format!("{name} {}", locked(lock, name)));
        }
        told.join("; ")
    }
}

/// The version of a crate in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> &'a str {
    let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    after.and_then(|after| after.split('"').next()).unwrap_or("of unknown version")
}

/// The load of the machine, including this program.
fn load() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<_> = averages.split(' ').take(3).collect();
    format!("load averages at the end {}", averages.join(" "))
}

/// Syncs per second of a file, with 512 bytes appended each time.
fn probe(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let (began, mut n_syncs) = (Instant::now(), 0);
    while began.elapsed() < PROBE {
        file.write_all(&[7; 512])?;
        file.sync_data()?;
        n_syncs += 1;
    }
    Ok(f64::from(n_syncs) / began.elapsed().as_secs_f64())
}
