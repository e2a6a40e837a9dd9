//! A crew under load: agents call every tool of the real program while 10,000 leases are live.
//!
//! `cargo bench --bench agents -- hooks [RUNS]`: the time of a hook before and after an edit, including its process,
//! while 99,000 leases are live. `cargo bench --bench agents -- http|stdio [SECONDS] [AGENTS] [CALLS] [STORE]`: 200
//! agents of one `crewlog serve`, or 32 agents with a `crewlog mcp` each; for 300 s; each makes one call per second on
//! average, or as many as it can with 0. STORE is the URL of an empty PostgreSQL database, else the log is a file. Then
//! every granted lease must be in the log, and `tests/agents/judge.mjs`, which needs Node, looks for wrong grants.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The number of leases that all agents together hold on files that nobody else wants; for hooks almost the maximum.
const N_OWN: usize = 10_000;
const N_OWN_FOR_HOOKS: usize = 99_000;
/// The number of files that every agent may request.
const N_SHARED: u64 = 2_000;

/// At each tick an agent decides at random whether to make a call.
const TICKS_PER_CALL: u64 = 10;

/// The calls, with their weights.
const MIX: [(&str, u64); 18] = [
    ("check_paths", 30),
    ("reserve_paths", 18),
    ("reserve_paths, waiting", 2),
    ("release_paths", 12),
    ("renew_paths", 3),
    ("send_message", 5),
    ("read_inbox", 8),
    ("ack_message", 2),
    ("report", 3),
    ("get_status", 3),
    ("list_leases", 3),
    ("list_tasks", 2),
    ("create_tasks", 2),
    ("next_task", 2),
    ("update_task", 2),
    ("ask_person", 1),
    ("wait_for_events", 1),
    ("join", 1),
];

struct Place {
    folder: tempfile::TempDir,
    store: Option<String>,
}

impl Place {
    fn new(store: Option<String>) -> Result<Self, Failure> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "begun"]] {
            let names = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
            let status = Command::new("git").args(names).args(words).current_dir(folder.path()).status()?;
            if !status.success() {
                return Err("git failed".into());
            }
        }
        Ok(Self { folder, store })
    }

    fn crewlog(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crewlog"));
        command.args(words).current_dir(self.folder.path()).env("CREWLOG_LOG", "error").env_remove("CREWLOG_STORE");
        if let Some(store) = &self.store {
            command.env("CREWLOG_STORE", store);
        }
        command
    }

    fn spawn(&self, words: &[&str], agent: Option<&str>) -> Result<Streams, Failure> {
        let mut command = tokio::process::Command::from(self.crewlog(words));
        if let Some(agent) = agent {
            command.env("AGENT_ID", agent);
        }
        let mut child = command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().ok_or("no input")?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Streams { _child: child, stdin, lines })
    }
}

struct Streams {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Streams {
    async fn line(&mut self) -> Result<Value, Failure> {
        let line = self.lines.next_line().await?.ok_or("the program ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn write(&mut self, message: &Value) -> Result<(), Failure> {
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes()).await?)
    }
}

enum Client {
    Http { client: reqwest::Client, url: String, bearer: String, handle: String },
    Stdio(Box<Streams>),
}

impl Client {
    /// The structured result of a call.
    async fn call(&mut self, tool: &str, mut arguments: Value) -> Result<Value, Failure> {
        let request = |arguments: &Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let mut answer = match self {
            Self::Http { client, url, bearer, handle } => {
                if !handle.is_empty() {
                    arguments["agent"] = json!(handle);
                }
                let post = client.post(url.as_str()).header("content-type", "application/json");
                let post = post.header("accept", "application/json, text/event-stream");
                let post = post.header("authorization", bearer.as_str()).header("mcp-protocol-version", "2025-11-25");
                serde_json::from_str(&post.body(request(&arguments).to_string()).send().await?.text().await?)?
            }
            Self::Stdio(streams) => {
                streams.write(&request(&arguments)).await?;
                streams.line().await?
            }
        };
        if answer["result"]["isError"] != false && answer["result"]["isError"] != Value::Null {
            return Err(format!("{tool} {arguments}: {}", answer["result"]["structuredContent"]).into());
        }
        match answer["result"]["structuredContent"].take() {
            Value::Null => Err(format!("{tool} {arguments}: {answer}").into()),
            result => Ok(result),
        }
    }
}

/// A splitmix64 generator: the calls of an agent are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_of(&mut self, numbers: &[u64]) -> Option<u64> {
        let index = self.below(numbers.len().max(1) as u64);
        numbers.get(usize::try_from(index).unwrap_or_default()).copied()
    }

    fn shared_paths(&mut self) -> Vec<String> {
        (0..=self.below(3)).map(|_| format!("src/f{}.rs", self.below(N_SHARED))).collect()
    }
}

struct Agent {
    name: String,
    n_agents: u64,
    client: Client,
    dice: Dice,
    held: Vec<u64>,
    to_acknowledge: Vec<u64>,
    task: Option<String>,
    is_serving: bool,
}

/// The knowledge of an agent.
#[derive(Default)]
struct Seen {
    took: BTreeMap<&'static str, Vec<Duration>>,
    refused: BTreeMap<&'static str, BTreeMap<String, usize>>,
    /// The number of times that the log was too busy while all agents started at once.
    n_busy: usize,
    faults: Vec<String>,
    granted: Vec<(u64, String)>,
}

impl Agent {
    async fn begin(&mut self, n_own: usize, seen: &mut Seen) -> Result<(), Failure> {
        let joined = self.client.call("join", self.identity()).await?;
        self.note("join", &joined, seen);
        let own: Vec<_> = (0..n_own).map(|index| format!("own/{}/f{index}.rs", self.name)).collect();
        for paths in own.chunks(50) {
            let granted = loop {
                let result = self.client.call("reserve_paths", json!({ "paths": paths })).await?;
                match result["code"].as_str() {
                    None => break result,
                    Some("busy") => seen.n_busy += 1,
                    Some(_) => return Err(format!("{} cannot have its own files: {result}", self.name).into()),
                }
            };
            self.note("reserve_paths", &granted, seen);
        }
        self.held.clear();
        Ok(())
    }

    fn identity(&self) -> Value {
        if self.is_serving {
            json!({ "name": self.name, "program": "bench", "capabilities": ["tester"] })
        } else {
            json!({})
        }
    }

    fn arguments(&mut self, call: &str) -> Value {
        let dice = &mut self.dice;
        match call {
            "check_paths" => json!({ "paths": dice.shared_paths() }),
            "reserve_paths" => json!({ "paths": dice.shared_paths(), "exclusive": dice.below(10) != 0 }),
            "reserve_paths, waiting" => json!({ "paths": dice.shared_paths(), "wait_seconds": 1 }),
            "release_paths" => {
                json!({ "lease_ids": dice.one_of(&self.held).map_or_else(Vec::new, |lease| vec![lease]), "paths": ["src/none"] })
            }
            "renew_paths" => json!({ "lease_ids": self.held, "paths": ["src/none"] }),
            "send_message" => {
                let to = format!("a{}", dice.below(self.n_agents));
                json!({ "to": [to], "subject": "a change", "body": "I changed a signature.", "ack_required": dice.below(2) == 0 })
            }
            "ack_message" => json!({ "message_id": self.to_acknowledge.pop() }),
            "report" => json!({ "state": "working", "step": "reads" }),
            "get_status" => {
                let views = ["summary", "agents", "conflicts"];
                json!({ "view": views[usize::try_from(dice.below(3)).unwrap_or_default()] })
            }
            "list_leases" => json!({ "path": "src/**" }),
            "create_tasks" => {
                json!({ "tasks": [{ "key": "t", "title": "A task", "files": [format!("tasks/f{}.rs", dice.below(N_SHARED))] }] })
            }
            "update_task" => json!({ "id": self.task.take(), "status": "done", "note": "it is done" }),
            "ask_person" => json!({ "text": "Which colour?" }),
            "wait_for_events" => json!({ "timeout_seconds": 1 }),
            "join" => self.identity(),
            _ => json!({}),
        }
    }

    /// The next call. An agent acknowledges only messages that it has read, and ends only tasks that it has claimed.
    fn choose(&mut self) -> &'static str {
        let mut left = self.dice.below(MIX.iter().map(|(_, part)| part).sum());
        let chosen = MIX.iter().find(|(_, part)| {
            let is_chosen = left < *part;
            left = left.saturating_sub(*part);
            is_chosen
        });
        match chosen.map_or("check_paths", |(call, _)| call) {
            "ack_message" if self.to_acknowledge.is_empty() => "read_inbox",
            "update_task" if self.task.is_none() => "next_task",
            call => call,
        }
    }

    fn note(&mut self, call: &'static str, result: &Value, seen: &mut Seen) {
        let numbers = |list: &Value, name: &str| -> Vec<u64> {
            list.as_array().into_iter().flatten().filter_map(|entry| entry[name].as_u64()).collect()
        };
        match call {
            "reserve_paths" | "reserve_paths, waiting" => {
                let granted = numbers(&result["granted"], "lease_id");
                seen.granted.extend(granted.iter().map(|lease| (*lease, self.name.clone())));
                self.held.extend(granted);
            }
            "release_paths" => {
                let released: Vec<u64> = serde_json::from_value(result["released"].clone()).unwrap_or_default();
                self.held.retain(|lease| !released.contains(lease));
            }
            "read_inbox" => {
                self.to_acknowledge = serde_json::from_value(result["acks_due"].clone()).unwrap_or_default();
            }
            // Joining again under the same name gives a new handle.
            "join" => {
                if let Client::Http { handle, .. } = &mut self.client {
                    result["agent"].as_str().unwrap_or_default().clone_into(handle);
                }
            }
            "next_task" => self.task = result["task"]["id"].as_str().map(str::to_owned),
            _ => {}
        }
    }

    async fn work(mut self, n_own: usize, until: Duration, calls: f64) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        let begun = self.begin(n_own, &mut seen).await;
        READY.wait().await;
        begun?;
        let began = Instant::now();
        let tick = (calls > 0.0).then(|| Duration::from_secs_f64(1.0 / (calls * TICKS_PER_CALL as f64)));
        // Agents that tick together would queue behind each other.
        let mut ticks = tick.map(|tick| {
            let phase = tick.mul_f64(self.dice.below(1_000) as f64 / 1_000.0);
            tokio::time::interval_at(tokio::time::Instant::now() + phase, tick)
        });
        while began.elapsed() < until {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
                if self.dice.below(TICKS_PER_CALL) > 0 {
                    continue;
                }
            }
            let call = self.choose();
            let arguments = self.arguments(call);
            let asked = Instant::now();
            let tool = call.split(',').next().unwrap_or(call);
            match self.client.call(tool, arguments).await {
                Ok(result) => {
                    seen.took.entry(call).or_default().push(asked.elapsed());
                    if let Some(code) = result["code"].as_str() {
                        *seen.refused.entry(call).or_default().entry(code.to_owned()).or_default() += 1;
                    }
                    self.note(call, &result, &mut seen);
                }
                Err(fault) => seen.faults.push(fault.to_string()),
            }
        }
        Ok(seen)
    }
}

/// Opens when all agents have joined.
static READY: Gate = Gate(tokio::sync::Semaphore::const_new(0), tokio::sync::Semaphore::const_new(0));

struct Gate(tokio::sync::Semaphore, tokio::sync::Semaphore);

impl Gate {
    async fn wait(&self) {
        self.0.add_permits(1);
        if let Ok(permit) = self.1.acquire().await {
            permit.forget();
        }
    }

    async fn open(&self, n: usize) {
        if let Ok(permits) = self.0.acquire_many(u32::try_from(n).unwrap_or(u32::MAX)).await {
            permits.forget();
        }
        self.1.add_permits(n);
    }
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_serving = match words.first().map(String::as_str) {
        None | Some("http") => true,
        Some("stdio") => false,
        Some("hooks") => {
            let (place, n_runs) = (Place::new(None)?, words.get(1).map_or(Ok(1_000), |word| word.parse())?);
            let load =
                Load { is_serving: true, n_agents: 200, n_own: N_OWN_FOR_HOOKS, n_hooks: n_runs, ..Load::default() };
            return tokio::runtime::Runtime::new()?.block_on(run(&place, load)).map(drop);
        }
        Some(other) => return Err(format!("{other}: http, stdio or hooks").into()),
    };
    let seconds = words.get(1).map_or(Ok(300), |word| word.parse())?;
    let n_agents = words.get(2).map_or(Ok(if is_serving { 200 } else { 32 }), |word| word.parse())?;
    let calls = words.get(3).map_or(Ok(1.0), |word| word.parse())?;
    let place = Place::new(words.get(4).cloned())?;
    println!(
        "{n_agents} agents, {}, for {seconds} s, {calls} calls/s each",
        words.first().map_or("http", String::as_str)
    );
    let runtime = tokio::runtime::Runtime::new()?;
    let until = Duration::from_secs(seconds);
    let load = Load { is_serving, n_agents, n_own: N_OWN, until, calls, n_hooks: 0 };
    let granted = runtime.block_on(run(&place, load))?;
    judge(&place, &granted)
}

/// The parameters of a run.
#[derive(Default)]
struct Load {
    is_serving: bool,
    n_agents: usize,
    n_own: usize,
    until: Duration,
    calls: f64,
    /// The number of hook runs at the end.
    n_hooks: usize,
}

async fn run(place: &Place, load: Load) -> Result<Vec<(u64, String)>, Failure> {
    let Load { is_serving, n_agents, n_own, mut until, calls, n_hooks } = load;
    let mut server =
        if is_serving { Some(place.spawn(&["serve", "--listen", "127.0.0.1:0", "-o", "jsonl"], None)?) } else { None };
    let printed = match &mut server {
        Some(server) => server.line().await?,
        None => Value::Null,
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut working = Vec::new();
    for index in 0..n_agents {
        let name = format!("a{index}");
        let client = if is_serving {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let url = printed["mcp"].as_str().ok_or("no address")?.to_owned();
            let bearer = format!("Bearer {}", printed["agent_token"].as_str().ok_or("no token")?);
            Client::Http { client, url, bearer, handle: String::new() }
        } else {
            let mut streams = place.spawn(&["mcp"], Some(&name))?;
            streams.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } })).await?;
            streams.line().await?;
            streams.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
            Client::Stdio(Box::new(streams))
        };
        let (held, to_acknowledge, task) = (Vec::new(), Vec::new(), None);
        let n_agents_all = n_agents as u64;
        let agent = Agent {
            name,
            n_agents: n_agents_all,
            client,
            dice: Dice(index as u64),
            held,
            to_acknowledge,
            task,
            is_serving,
        };
        working.push(tokio::spawn(agent.work(n_own / n_agents, until, calls)));
    }
    let began = Instant::now();
    tokio::time::timeout(Duration::from_secs(300), READY.open(n_agents)).await?;
    println!("all have joined and hold {n_own} leases after {:.1} s", began.elapsed().as_secs_f64());
    let mut all = Seen::default();
    for agent in working {
        let seen = agent.await??;
        seen.took.into_iter().for_each(|(call, took)| all.took.entry(call).or_default().extend(took));
        for (call, codes) in seen.refused {
            let all = all.refused.entry(call).or_default();
            codes.into_iter().for_each(|(code, n)| *all.entry(code).or_default() += n);
        }
        all.n_busy += seen.n_busy;
        all.faults.extend(seen.faults);
        all.granted.extend(seen.granted);
    }
    if n_hooks > 0 {
        all.took = hooks(place, n_hooks)?;
        until = all.took.values().flatten().sum();
    }
    report(&mut all, until);
    if all.faults.is_empty() {
        Ok(all.granted)
    } else {
        Err(format!("{} calls failed: {}", all.faults.len(), all.faults[0]).into())
    }
}

/// Runs the hooks of one agent: every second edit is of a file that another one holds.
fn hooks(place: &Place, n_runs: usize) -> Result<BTreeMap<&'static str, Vec<Duration>>, Failure> {
    let (mut took, folder) = (BTreeMap::<_, Vec<_>>::new(), place.folder.path());
    for run in 0..n_runs {
        let (moment, event) = [("before an edit", "PreToolUse"), ("after it", "PostToolUse")][run % 2];
        let edit = run / 2;
        let path = if edit % 2 == 0 { format!("own/a{}/f3.rs", edit % 200) } else { format!("src/h{}.rs", edit % 400) };
        let input = json!({
            "session_id": "bench", "transcript_path": "/t.jsonl", "cwd": folder, "hook_event_name": event,
            "tool_name": "Write", "tool_input": { "file_path": folder.join(path), "content": "x" },
        });
        let began = Instant::now();
        let mut hook = place.crewlog(&["hook"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        std::io::Write::write_all(&mut hook.stdin.take().ok_or("no input")?, input.to_string().as_bytes())?;
        let ran = hook.wait_with_output()?;
        took.entry(moment).or_default().push(began.elapsed());
        let is_refused = String::from_utf8_lossy(&ran.stdout).contains("deny");
        if !ran.status.success() || is_refused != (event == "PreToolUse" && edit % 2 == 0) {
            return Err(format!("{input}: {} {}", ran.status, String::from_utf8_lossy(&ran.stdout)).into());
        }
    }
    Ok(took)
}

fn report(all: &mut Seen, until: Duration) {
    println!("{:<24} {:>8} {:>9} {:>9} {:>9} {:>9}  refused", "call", "n", "p50 ms", "p95 ms", "p99 ms", "max ms");
    for (call, took) in &mut all.took {
        took.sort_unstable();
        let codes = all.refused.get(call).into_iter().flatten().map(|(code, n)| format!("{n} {code}"));
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
        println!(
            "{call:<24} {:>8} {:>9.1} {:>9.1} {:>9.1} {:>9.1}  {}",
            took.len(),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0),
            codes.collect::<Vec<_>>().join(", ")
        );
    }
    let n_calls: usize = all.took.values().map(Vec::len).sum();
    println!(
        "{n_calls} calls, {:.0}/s; {} failed; busy while all began: {}",
        n_calls as f64 / until.as_secs_f64(),
        all.faults.len(),
        all.n_busy
    );
}

/// Checks the log: every granted lease is in it, and no grant was wrong.
fn judge(place: &Place, granted: &[(u64, String)]) -> Result<(), Failure> {
    let file: PathBuf = place.folder.path().join("events.jsonl");
    let status = place.crewlog(&["events", "-o", "jsonl"]).stdout(std::fs::File::create(&file)?).status()?;
    if !status.success() {
        return Err("the log cannot be read".into());
    }
    let mut holders: HashMap<u64, String> = HashMap::new();
    for line in std::fs::read_to_string(&file)?.lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["event_type"] == "LeasesGranted" {
            let data = &event["data"];
            let n = data["request"]["targets"].as_array().map_or(0, Vec::len) as u64;
            let first = data["first"].as_u64().ok_or("a grant without a number")?;
            let holder = data["request"]["holder"]["agent"].as_str().unwrap_or_default();
            holders.extend((first..first + n).map(|lease| (lease, holder.to_owned())));
        }
    }
    let n_lost = granted.iter().filter(|(lease, agent)| holders.get(lease) != Some(agent)).count();
    println!("{} leases were given to clients, {n_lost} of them are not in the log", granted.len());
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/judge.mjs");
    let status = Command::new("node").arg(judge).arg(&file).status()?;
    if n_lost > 0 || !status.success() { Err("the log is not right".into()) } else { Ok(()) }
}
