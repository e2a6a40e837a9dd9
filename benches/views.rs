//! The page of a large project in a real browser: its first paint, steps of the slider, events as they come, and many open pages.
//!
//! `cargo bench --bench views -- [postgres URL]`: on a log with 20,000 events, 1,000 tasks in one plan, a backlog and
//! 100 agents. The log is a file, or is in an empty PostgreSQL database. The page's own marks give the times. It fails
//! if an event was not received, but not if something is slow.

#[expect(clippy::unwrap_used, reason = "a panic is how the driver fails")]
#[path = "../tests/browser/devtools.rs"]
mod devtools;
#[path = "../tests/browser/faults.rs"]
mod faults;
mod filling;
#[path = "../tests/browser/keys.rs"]
mod keys;
#[expect(dead_code, reason = "the tests use more of the driver")]
#[path = "../tests/browser/page.rs"]
mod page;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crewlog_executors::crew::Crew;
use crewlog_mq::{EventStore, is_postgres_url};
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::agents::Activity;
use futures::future::join_all;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::filling::{Agent, Filled, PROJECT, crew_on, fill, report};
use self::page::{Browser, DEADLINE, Page};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const N_EVENTS: i64 = 20_000;
const N_LOADS: usize = 20;
const N_STEPS: usize = 50;
const N_LIVE: usize = 50;
const LIVE_EVERY: Duration = Duration::from_millis(300);
/// The load with many open pages, one of them in the browser.
const N_PAGES: usize = 50;
const LOAD_LASTS: Duration = Duration::from_secs(20);
const LOAD_EVERY: Duration = Duration::from_millis(10);
/// Linux counts the time of processes in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;
/// A line of a stream is kept up to this length: enough for a position.
const LINE_BYTES_KEPT: usize = 40;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::new()?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("crewlog.toml"), format!("project = \"{PROJECT}\"\n"))?;
    let file = folder.path().join("log.db").display().to_string();
    let log = words.iter().find(|word| is_postgres_url(word)).unwrap_or(&file);
    let began = Instant::now();
    let Filled { head, n_done, agents } = runtime.block_on(fill(log, &folder.path().join("locks"), N_EVENTS))?;
    let (n_agents, seconds) = (agents.len(), began.elapsed().as_secs_f64());
    println!("{head} events, {n_agents} agents, {n_done} tasks done; filled in {seconds:.1} s");
    let server = Server::start(folder.path(), log)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Arc::new(runtime.block_on(Client::enter(&server.person))?);
    let browser = Browser::start().open(&client.url("/"), &[(&client.cookie.0, &client.cookie.1)]);
    let writer = runtime.block_on(Writer::open(log, &folder.path().join("locks"), agents))?;
    println!("{:<48} {:>5} {:>9} {:>9} {:>9} {:>9}", "", "n", "p50", "p99", "most", "target");
    first_paint(&browser, &client)?;
    runtime.block_on(server_steps(&client, head.0))?;
    browser_steps(&browser, head.0)?;
    let mut bench = Bench { runtime, server, client, browser, writer };
    bench.live()?;
    bench.many_pages("50 pages of one address, 100 events/s", &[""])?;
    let tabs = ["", "/plans", "/files", "/events", "/statistics"];
    bench.many_pages("the same, over five pages", &tabs)
}

/// The state for the measurements of a growing log.
struct Bench {
    runtime: Runtime,
    server: Server,
    client: Arc<Client>,
    browser: Page,
    writer: Writer,
}

struct Server {
    process: Child,
    /// The address with the token of the person.
    person: String,
}

impl Server {
    fn start(folder: &Path, log: &str) -> Result<Self, Failure> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crewlog"));
        command.args(["--store", log, "serve", "--listen", "127.0.0.1:0", "-o", "jsonl"]).current_dir(folder);
        let mut process = command.env("CREWLOG_LOG", "error").stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let printed: Value = serde_json::from_str(&line)?;
        Ok(Self { process, person: printed["person"].as_str().ok_or("no address")?.to_owned() })
    }

    /// The processor time that it has used, in seconds.
    fn processor_time(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("an unknown format")?;
        let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A plain HTTP client that is logged in.
struct Client {
    http: reqwest::Client,
    base: String,
    cookie: (String, String),
}

impl Client {
    async fn enter(person: &str) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        let answer = http.get(person).send().await?;
        let cookie = answer.headers().get("set-cookie").ok_or("no cookie")?.to_str()?;
        let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).ok_or("no cookie")?;
        let cookie = (name.to_owned(), value.to_owned());
        let base = person.split("/?").next().unwrap_or_default().to_owned();
        Ok(Self { http, base, cookie })
    }

    fn url(&self, rest: &str) -> String {
        format!("{}{rest}", self.base)
    }

    async fn get(&self, rest: &str) -> Result<reqwest::Response, Failure> {
        let (name, value) = &self.cookie;
        let answer = self.http.get(self.url(rest)).header("cookie", format!("{name}={value}")).send().await?;
        Ok(answer.error_for_status()?)
    }
}

/// Another connection to the log, by which agents report.
struct Writer {
    crew: Crew,
    store: EventStore,
    agents: Vec<Agent>,
    n_written: usize,
}

impl Writer {
    async fn open(log: &str, folder: &Path, agents: Vec<Agent>) -> Result<Self, Failure> {
        let store = EventStore::open(log).await?;
        Ok(Self { crew: crew_on(&store, folder)?, store, agents, n_written: 0 })
    }

    /// An agent reports on itself, or on its task.
    async fn write(&mut self) -> Result<(), Failure> {
        self.n_written += 1;
        let n = self.n_written;
        let Agent { caller, task, .. } = &self.agents[n % self.agents.len()];
        match task {
            Some(task) if n.is_multiple_of(2) => {
                let progress = TaskProgress { step: Some(format!("file {n}")), ..TaskProgress::default() };
                self.crew.update_task(caller, task, progress, None).await?;
            }
            _itself => self.crew.report(caller, report(Activity::Working, task.clone(), n)).await?,
        }
        Ok(())
    }

    /// Lets each agent report, so that no other sign of life is recorded for a minute. Returns the last position.
    async fn write_all(&mut self) -> Result<i64, Failure> {
        for _ in 0..self.agents.len() {
            self.write().await?;
        }
        Ok(self.store.head().await?.0)
    }
}

/// Prints the median, the 99th percentile and the maximum of times in milliseconds.
fn print_times(name: &str, mut times: Vec<f64>, target: f64) {
    times.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    let (p50, p99, most, n) = (at(0.5), at(0.99), at(1.0), times.len());
    let verdict = if p99 < target { "ok" } else { "over" };
    println!("{name:<48} {n:>5} {p50:>6.1} ms {p99:>6.1} ms {most:>6.1} ms {target:>6.0} ms  {verdict}");
}

fn number(value: &Value) -> Result<f64, Failure> {
    value.as_f64().ok_or_else(|| format!("{value} is no number").into())
}

/// Loads the overview with a warm server and warm files.
fn first_paint(page: &Page, client: &Client) -> Result<(), Failure> {
    let (mut painted, mut loaded) = (Vec::new(), Vec::new());
    for n in 0..=N_LOADS {
        page.goto(&client.url("/"));
        page.wait_for("performance.getEntriesByName('first-contentful-paint').length", DEADLINE);
        let times = page.eval(
            "[performance.getEntriesByName('first-contentful-paint')[0].startTime,
              performance.getEntriesByType('navigation')[0].loadEventEnd, document.querySelectorAll('.part section').length]",
        );
        if number(&times[2])? < 5.0 {
            return Err("the overview lacks parts".into());
        }
        if n > 0 {
            painted.push(number(&times[0])?);
            loaded.push(number(&times[1])?);
        }
    }
    print_times("overview: navigation to first paint", painted, 500.0);
    print_times("overview: navigation to the load of all parts", loaded, 500.0);
    Ok(())
}

/// Some positions of a log, the same in each run: a splitmix64 generator.
fn positions(head: i64) -> impl Iterator<Item = i64> {
    let mut state = 0_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        1 + i64::try_from((mixed ^ (mixed >> 31)) % head.unsigned_abs()).unwrap_or_default()
    })
    .take(N_STEPS)
}

/// Requests the page at positions. The first request makes the server store states on the way.
async fn server_steps(client: &Client, head: i64) -> Result<(), Failure> {
    let (mut first, mut times) = (Vec::new(), Vec::new());
    for (n, position) in std::iter::once(head - 1).chain(positions(head)).enumerate() {
        let began = Instant::now();
        let text = client.get(&format!("/?at={position}&part=1")).await?.text().await?;
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        if n == 0 {
            first.push(took);
        } else {
            times.push(took);
        }
        let page: Value = serde_json::from_str(&text)?;
        if page["at"].as_i64().is_none_or(|at| at > position) {
            return Err(format!("the page at {position} is that of {}", page["at"]).into());
        }
    }
    print_times("slider: the server's first answer", first, 1_000.0);
    print_times("slider: the server's answer", times, 50.0);
    Ok(())
}

/// Moves the slider, each time until the page has changed.
fn browser_steps(page: &Page, head: i64) -> Result<(), Failure> {
    let mut times = Vec::new();
    for position in positions(head) {
        let step = "new Promise(done => {
            performance.clearMarks();
            const named = (name) => performance.getEntriesByName(name).at(-1);
            const seen = new PerformanceObserver(() => {
                const [step, painted] = [named('crewlog:step'), named('crewlog:painted')];
                if (!step || !painted || painted.startTime < step.startTime) return;
                seen.disconnect();
                done(painted.startTime - step.startTime);
            });
            seen.observe({ type: 'mark' });
            const slider = document.querySelector('[data-slider]');
            slider.value = POSITION;
            slider.dispatchEvent(new Event('change', { bubbles: true }));
        })";
        times.push(number(&page.eval(&step.replace("POSITION", &position.to_string())))?);
    }
    print_times("slider: step to paint in the browser", times, 100.0);
    Ok(())
}

/// Waits until the browser has painted a position.
fn wait_painted(page: &Page, position: i64) {
    let painted = "performance.getEntriesByName('crewlog:painted').some(mark => mark.detail.at >= POSITION)";
    page.wait_for(&painted.replace("POSITION", &position.to_string()), DEADLINE);
}

impl Bench {
    /// Reloads the page, and waits until it follows the log.
    fn follow(&mut self) -> Result<(), Failure> {
        self.browser.goto(&self.client.url("/"));
        let position = self.runtime.block_on(self.writer.write_all())?;
        wait_painted(&self.browser, position);
        self.browser.eval("performance.clearMarks()");
        Ok(())
    }

    /// Appends now and then: from the return of the append to the paint.
    fn live(&mut self) -> Result<(), Failure> {
        self.follow()?;
        let writer = &mut self.writer;
        let appended = self.runtime.block_on(async {
            let (mut appended, mut ticks) = (Vec::new(), tokio::time::interval(LIVE_EVERY));
            for _ in 0..N_LIVE {
                ticks.tick().await;
                writer.write().await?;
                let at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64() * 1_000.0;
                appended.push((writer.store.head().await?.0, at));
            }
            Ok::<_, Failure>(appended)
        })?;
        wait_painted(&self.browser, appended.last().map_or(0, |(position, _)| *position));
        let marks = self.browser.eval(
            "performance.getEntriesByName('crewlog:painted').map(mark => [mark.detail.at, performance.timeOrigin + mark.startTime])",
        );
        let marks: Vec<(i64, f64)> = serde_json::from_value(marks)?;
        let latency = |(position, at): &(i64, f64)| {
            let painted = marks.iter().find(|(painted, _)| painted >= position);
            painted.map(|(_, painted_at)| (painted_at - at).max(0.0))
        };
        let times: Option<Vec<f64>> = appended.iter().map(latency).collect();
        print_times("live: append to paint", times.ok_or("a position was not painted")?, 200.0);
        Ok(())
    }

    /// Opens many pages at these addresses in turn, and lets the log grow fast.
    fn many_pages(&mut self, name: &str, addresses: &[&str]) -> Result<(), Failure> {
        self.follow()?;
        let readers: Vec<Arc<Reader>> = (0..N_PAGES).map(|_| Arc::default()).collect();
        let mut reading = JoinSet::new();
        for (reader, address) in readers.iter().zip(addresses.iter().cycle()) {
            let answer = self.runtime.block_on(self.client.get(&format!("/live{address}")))?;
            reading.spawn_on(reader.clone().read(answer), self.runtime.handle());
        }
        let first = self.runtime.block_on(self.writer.store.head())?;
        self.runtime.block_on(wait_all(&readers, first.0))?;
        let (began, used, bytes) = (Instant::now(), self.server.processor_time()?, n_bytes(&readers));
        let writer = &mut self.writer;
        self.runtime.block_on(async {
            let mut ticks = tokio::time::interval(LOAD_EVERY);
            while began.elapsed() < LOAD_LASTS {
                ticks.tick().await;
                writer.write().await?;
            }
            Ok::<_, Failure>(())
        })?;
        let (used, seconds) = (self.server.processor_time()? - used, began.elapsed().as_secs_f64());
        let last = self.runtime.block_on(self.writer.store.head())?;
        self.runtime.block_on(wait_all(&readers, last.0))?;
        wait_painted(&self.browser, last.0);
        let (cores, rate) = (used / seconds, (last.0 - first.0) as f64 / seconds);
        let verdict = if cores < 1.0 { "ok" } else { "over" };
        println!("{name:<48} {N_PAGES:>5} {cores:>32.2} cores {:>3} core  {verdict}", 1);
        let megabytes = (n_bytes(&readers) - bytes) as f64 / 1e6 / seconds;
        println!("{:<48} {rate:.0} events/s, {megabytes:.1} MB/s; all got the last position", "");
        Ok(())
    }
}

/// A reader of a page that keeps only the position.
#[derive(Default)]
struct Reader {
    position: watch::Sender<i64>,
    n_bytes: AtomicU64,
}

impl Reader {
    /// Reads until the stream ends. The position is the id of a message, on a line of its own.
    async fn read(self: Arc<Self>, mut answer: reqwest::Response) {
        let mut begun: Vec<u8> = Vec::new();
        while let Ok(Some(chunk)) = answer.chunk().await {
            self.n_bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            for part in chunk.split_inclusive(|byte| *byte == b'\n') {
                begun.extend_from_slice(&part[..part.len().min(LINE_BYTES_KEPT)]);
                if !part.ends_with(b"\n") {
                    continue;
                }
                let line = String::from_utf8_lossy(&begun);
                if let Some(id) = line.strip_prefix("id:").and_then(|id| id.trim().parse().ok()) {
                    self.position.send_replace(id);
                }
                begun.clear();
            }
        }
    }
}

fn n_bytes(readers: &[Arc<Reader>]) -> u64 {
    readers.iter().map(|reader| reader.n_bytes.load(Ordering::Relaxed)).sum()
}

/// Waits until each reader has a position.
async fn wait_all(readers: &[Arc<Reader>], position: i64) -> Result<(), Failure> {
    let has_it = readers.iter().map(async |reader| {
        let mut seen = reader.position.subscribe();
        timeout(DEADLINE, seen.wait_for(|seen| *seen >= position)).await.is_ok()
    });
    match join_all(has_it).await.iter().filter(|has_it| !**has_it).count() {
        0 => Ok(()),
        n_late => Err(format!("{n_late} of {} connections did not get position {position}", readers.len()).into()),
    }
}
