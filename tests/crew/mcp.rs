//! The MCP server as a client meets it: the real binary over standard streams and HTTP, and a small client.

mod handing;
mod http;
mod stdio;
mod waking;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::scene::{DEADLINE, Scene};

/// An agent program: it starts a server and calls its tools.
pub struct Client {
    server: Child,
    lines: Receiver<String>,
    n_requests: u64,
    /// The metadata of each request.
    meta: Value,
}

impl Client {
    /// An agent with this name.
    pub fn named(scene: &Scene, name: &str) -> Self {
        scene.run(&["init", "--no-hosts"]).expect(0);
        let mut client = Self::start(scene.crewlog(&["mcp"]).env("AGENT_ID", name));
        client.initialize("2025-06-18", "claude-code");
        client
    }

    /// An agent whose program is not that of the others.
    fn of_another_program(scene: &Scene, name: &str) -> Self {
        scene.run(&["init", "--no-hosts"]).expect(0);
        let server = scene.crewlog(&["mcp"]);
        // A shell by its own name counts as a part of the program above it.
        let program = scene.around().join(format!("program-of-{name}"));
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut shell = Command::new(program);
        shell.args(["-c", "\"$0\" mcp; true"]).arg(server.get_program()).current_dir(scene.folder());
        let home = scene.around().join("home");
        shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home).env("AGENT_ID", name);
        // With this mark, ./test finds processes that were left running.
        if let Some(run) = std::env::var_os("CREWLOG_TEST_RUN") {
            shell.env("CREWLOG_TEST_RUN", run);
        }
        let mut client = Self::start(&mut shell);
        client.initialize("2025-06-18", "claude-code");
        client
    }

    /// The server of a scene with a log.
    fn of(scene: &Scene) -> Self {
        scene.run(&["init", "--no-hosts"]).expect(0);
        Self::start(&mut scene.crewlog(&["mcp"]))
    }

    pub fn start(command: &mut Command) -> Self {
        command.env_remove("CLAUDE_CODE_SESSION_ID").env("CREWLOG_LOG", "error");
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { server, lines, n_requests: 0, meta: Value::Null }
    }

    pub fn initialize(&mut self, revision: &str, program: &str) -> Value {
        let client = json!({ "name": program, "version": "1" });
        let asked = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let answer = self.request("initialize", asked);
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    fn write(&mut self, line: &str) {
        writeln!(self.server.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn read(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(DEADLINE).unwrap()).unwrap()
    }

    /// Sends a request, and returns its answer.
    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.n_requests += 1;
        if !self.meta.is_null() {
            params["_meta"] = self.meta.clone();
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": self.n_requests, "method": method, "params": params }).to_string());
        let answer = self.read();
        assert_eq!(answer["id"], self.n_requests, "{answer}");
        answer
    }

    fn raw_call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        let answer = self.request("tools/call", params);
        checked(&answer)
    }

    /// Sends a call whose answer is not read.
    pub fn ask(&mut self, tool: &str, arguments: Value) {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params }).to_string());
    }

    /// The structured result of a call, which is the same as its text.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.raw_call(tool, arguments)["structuredContent"].clone()
    }

    /// Ends like an agent program: closes the streams and waits.
    pub fn close(mut self) {
        drop(self.server.stdin.take());
        assert!(self.server.wait().unwrap().success());
    }

    pub fn kill(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The result of a call, after the checks that apply to every one.
fn checked(answer: &Value) -> Value {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let structured = &result["structuredContent"];
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *structured);
    assert!(text.len() <= 8_192, "a result has {} bytes", text.len());
    assert!(structured["status"].is_string(), "{structured}");
    if !structured["code"].is_null() {
        let next = structured["next"].as_str().unwrap();
        assert!(!["--force", "--no-verify", "crewlog "].iter().any(|word| next.contains(word)), "{next}");
        assert_eq!(result["isError"] == true, structured["status"] == "invalid", "{answer}");
    }
    result.clone()
}

#[track_caller]
fn assert_has(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(value[name], *expected, "{name} of {value}");
    }
}

/// Repeats a call until a condition holds: a host works concurrently.
fn until(mut call: impl FnMut() -> Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let value = call();
        if is_so(&value) {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{value}");
    }
}
