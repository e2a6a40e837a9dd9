//! The cost of following the log and the wake-up latency, with followers in this process, in another, and idle ones.
//! The other processes are this binary, with a role in the environment.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crewlog_mq::{EventStore, Query, Start};
use futures::StreamExt;
use futures::future::join_all;
use tokio::runtime::Runtime;

use crate::workload::{self, Sample};

/// The role of another process, and its log.
const ROLE: &str = "CREWLOG_BENCH_ROLE";
const LOG: &str = "CREWLOG_BENCH_LOG";
/// The time between appends, so that all are idle when the next one comes.
const SPACING: Duration = Duration::from_millis(3);
/// The time for observing idle followers.
const IDLE: Duration = Duration::from_secs(10);

/// Plays the role in the environment, if there is one.
pub fn play() -> bool {
    let (Ok(role), Ok(log)) = (std::env::var(ROLE), std::env::var(LOG)) else { return false };
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = EventStore::open(&log).await.expect("the log opens");
        match role.strip_prefix("idle ") {
            Some(n_followers) => idle(&store, n_followers.parse().expect("it is a number")).await,
            None => tell(&store).await,
        }
    });
    true
}

/// Prints the arrival time of each event.
async fn tell(store: &EventStore) {
    let mut stream = store.subscribe::<Sample>(&Query::all()).expect("the query is small");
    say("ready");
    while let Some(event) = stream.next().await {
        let now = now();
        event.expect("it is a sample");
        say(&now.to_string());
    }
}

/// Prints the processor time of this many idle followers, in nanoseconds.
async fn idle(store: &EventStore, n_followers: usize) {
    let followers: Vec<_> = (0..n_followers)
        .map(|_| {
            let mut stream = store.subscribe_from::<Sample>(&Query::all(), Start::Now).expect("the query is small");
            tokio::spawn(async move { stream.next().await.is_some() })
        })
        .collect();
    pass(Duration::from_secs(1)).await;
    let before = cpu_ns();
    pass(IDLE).await;
    say(&(cpu_ns() - before).to_string());
    store.append(workload::append(0, 1, &workload::metadata())).await.expect("the append is taken");
    assert!(join_all(followers).await.into_iter().all(|ended| ended.expect("it follows")), "all were awake to it");
}

/// Waits this long while nothing should happen.
async fn pass(time: Duration) {
    let mut ticks = tokio::time::interval(time);
    ticks.tick().await;
    ticks.tick().await;
}

/// The processor time of this process's threads.
fn cpu_ns() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("there is /proc");
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("schedstat")).ok();
    let first = |stat: String| stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
    threads.flatten().filter_map(of).filter_map(first).sum()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_nanos()).expect("it is before 2554")
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent listens");
}

struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(role: &str, log: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("it has a path"))
            .env(ROLE, role)
            .env(LOG, log)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    fn says(&mut self) -> String {
        self.lines.next().expect("it speaks").expect("it can be read")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The delay from the acknowledgement of an append until a follower of the same process has its event.
pub fn delivery_in_process(runtime: &Runtime, store: &EventStore, length: Duration) -> Vec<Duration> {
    runtime.block_on(async {
        let metadata = workload::metadata();
        let mut stream = store.subscribe::<Sample>(&Query::all()).expect("the query is small");
        let (seen, mut when) = tokio::sync::mpsc::channel(1);
        let reader =
            tokio::spawn(
                async move { while stream.next().await.is_some() && seen.send(Instant::now()).await.is_ok() {} },
            );
        let (mut latencies, started) = (Vec::new(), Instant::now());
        for n in (0..).take_while(|_| started.elapsed() < length) {
            pass(SPACING).await;
            store.append(workload::append(n, 1, &metadata)).await.expect("the append is taken");
            let acknowledged = Instant::now();
            let seen = when.recv().await.expect("the reader runs");
            latencies.push(seen.saturating_duration_since(acknowledged));
        }
        reader.abort();
        latencies
    })
}

/// The delay for a follower in another process.
pub fn delivery_between_processes(
    runtime: &Runtime,
    store: &EventStore,
    log: &Path,
    length: Duration,
) -> Vec<Duration> {
    let mut other = Other::start("tell", log);
    assert_eq!(other.says(), "ready");
    let metadata = workload::metadata();
    let (mut latencies, started) = (Vec::new(), Instant::now());
    for n in (0..).take_while(|_| started.elapsed() < length) {
        runtime.block_on(pass(SPACING));
        runtime.block_on(store.append(workload::append(n, 1, &metadata))).expect("the append is taken");
        let acknowledged = now();
        let seen: u64 = other.says().parse().expect("it is a time");
        latencies.push(Duration::from_nanos(seen.saturating_sub(acknowledged)));
    }
    // Until the other process watches and this one rings, events are found by polling.
    latencies.split_off(latencies.len().min(20))
}

/// The share of one processor that this many idle followers of a process use.
pub fn idle_share(log: &Path, n_followers: usize) -> f64 {
    let mut other = Other::start(&format!("idle {n_followers}"), log);
    let ns: u64 = other.says().parse().expect("it is a number");
    ns as f64 / IDLE.as_nanos() as f64
}
