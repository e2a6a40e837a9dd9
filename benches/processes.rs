//! Many processes that append to one file: the time of an append with and without pauses between appends.
//!
//! `cargo bench --bench processes -- [PROCESSES] [SECONDS] [FOLDER]`. The binary runs itself as the processes. Each
//! append has one event of 256 bytes, durable. The folder determines the disk; a memory file system excludes the cost
//! of the disk.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crewlog_mq::{Append, EventStore, Expected, Metadata, NewEvent, new_event_id};

const CHILD: &str = "CREWLOG_BENCH_CHILD";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    if let Ok(order) = std::env::var(CHILD) {
        return child(&order);
    }
    let numbers: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |index: usize, default: u64| numbers.get(index).map_or(Ok(default), |word| word.parse());
    let (n_processes, seconds) = (number(0, 32)?, number(1, 5)?);
    let folder = numbers.get(2).map_or_else(std::env::temp_dir, Into::into);
    println!("{n_processes} processes, {seconds} s each, in {}", folder.display());
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "between two appends", "per s", "p50 ms", "p90 ms", "p99 ms", "max ms"
    );
    for think_ms in [1000, 320, 160, 80, 0] {
        let folder = tempfile::tempdir_in(&folder)?;
        let url = folder.path().join("log.db").display().to_string();
        let mut waits = run(n_processes, seconds, think_ms, &url)?;
        waits.sort_unstable();
        let at = |per_mille: usize| waits[(waits.len() - 1) * per_mille / 1000] as f64 / 1000.0;
        let what =
            if think_ms == 0 { "nothing: full blast".into() } else { format!("{think_ms} ms, at random about it") };
        let rate = waits.len() as u64 / seconds;
        println!("{what:<34} {rate:>9} {:>9.2} {:>9.2} {:>9.2} {:>9.2}", at(500), at(900), at(990), at(1000));
    }
    Ok(())
}

/// The time of each append, in microseconds.
fn run(n_processes: u64, seconds: u64, think_ms: u64, url: &str) -> Result<Vec<u64>, Failure> {
    let start = |number: u64| -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CHILD, format!("{number} {seconds} {think_ms} {url}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    };
    let mut children = (0..n_processes).map(start).collect::<Result<Vec<_>, _>>()?;
    let mut outputs = Vec::new();
    for child in &mut children {
        let mut lines = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
        // All have the log open before the first begins.
        lines.next().ok_or("a process ended before it began")??;
        outputs.push(lines);
    }
    for child in &mut children {
        child.stdin.take().ok_or("it is piped")?.write_all(b"\n")?;
    }
    let mut waits = Vec::new();
    for (lines, mut child) in outputs.into_iter().zip(children) {
        for line in lines {
            waits.push(line?.parse()?);
        }
        child.wait()?;
    }
    Ok(waits)
}

fn child(order: &str) -> Result<(), Failure> {
    let mut words = order.splitn(4, ' ');
    let mut word = || words.next().ok_or("a process is told its number, seconds, milliseconds and a log");
    let (number, seconds): (u64, u64) = (word()?.parse()?, word()?.parse()?);
    let (think_ms, url): (u64, &str) = (word()?.parse()?, word()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let waits = runtime.block_on(async {
        let store = EventStore::open(url).await?;
        println!("open");
        std::io::stdin().read_line(&mut String::new())?;
        let (began, mut waits) = (Instant::now(), Vec::new());
        let mut chance = number;
        while began.elapsed() < Duration::from_secs(seconds) {
            if think_ms > 0 {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let thought = Duration::from_micros((chance >> 33) % (2000 * think_ms));
                // Just a pause.
                let _ = tokio::time::timeout(thought, std::future::pending::<()>()).await;
            }
            let sent = Instant::now();
            store.append(append(number)?).await?;
            waits.push(sent.elapsed().as_micros());
        }
        Ok::<_, Failure>(waits)
    })?;
    let mut out = std::io::stdout().lock();
    waits.iter().try_for_each(|wait| writeln!(out, "{wait}"))?;
    Ok(())
}

fn append(number: u64) -> Result<Append, Failure> {
    let metadata = Metadata { correlation_id: Some(new_event_id()), ..Metadata::default() };
    let event = NewEvent::from_json("Made", "1.0", format!("{{\"a\":\"{}\"}}", "x".repeat(248)), &metadata)?;
    Ok(Append::to("bench", &format!("process-{number}"), Expected::Any, vec![event]))
}
