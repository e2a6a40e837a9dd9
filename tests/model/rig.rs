//! A mock model as a process, clients of it, and a model of plain data.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use crewlog_executors::model::{Client, Key, Model, ModelError, Prices, Reply, Settings};
use crewlog_planner::model::{CountedTokens, Message, Purpose, Request, Role, Terms};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::cli::scene::{Running, Scene};

/// Both protocols, whole and as a stream.
pub const WAYS: [(&str, bool); 4] = [("openai", false), ("openai", true), ("anthropic", false), ("anthropic", true)];

/// A mock model that says what a list of replies says.
pub struct Mock {
    pub scene: Scene,
    server: Running,
    address: String,
}

impl Mock {
    pub fn new(replies: &Value) -> Self {
        Self::within(Scene::new(), replies)
    }

    pub fn within(scene: Scene, replies: &Value) -> Self {
        let around = scene.around().to_owned();
        let (fixtures, requests) = (around.join("fixtures.json"), around.join("requests.jsonl"));
        std::fs::write(&fixtures, json!({ "replies": replies }).to_string()).expect("a file can be written");
        let words = ["mock-llm", "--fixtures", fixtures.to_str().expect("text"), "--requests-to"];
        let mut server = scene.start(&[&words[..], &[requests.to_str().expect("text")]].concat());
        let address = server.stdout.line();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Self { scene, server, address }
    }

    /// A section [model] for this server, with more lines.
    pub fn configure(&self, provider: &str, more: &str) {
        let endpoint = format!("{}/v1", self.address);
        let section = format!(
            "[model]\nname = \"mock-1\"\nprovider = \"{provider}\"\nendpoint = \"{endpoint}\"\nbackoff = \"1ms\"\n{more}\n"
        );
        self.scene.write("crewlog.toml", section);
    }

    pub fn endpoint(&self) -> String {
        format!("{}/v1/", self.address)
    }

    pub fn client(&self, provider: &str, stream: bool) -> Client {
        Client::new(settings(provider, stream, self.endpoint())).expect("it is configured")
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.scene.around().join("requests.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// Ends the server, so that nobody is there.
    pub fn stop(self) -> Scene {
        self.server.signal(rustix::process::Signal::TERM);
        self.server.finish().expect(0);
        self.scene
    }
}

/// Three for a million tokens asked, fifteen for a million answered.
pub fn settings(provider: &str, stream: bool, endpoint: String) -> Settings {
    let prices = Some(Prices { input: 3_000_000, output: 15_000_000 });
    let (provider, endpoint, timeout) = (provider.to_owned(), Some(endpoint), Duration::from_secs(60));
    Settings { provider, endpoint, key: Key::None, timeout, stream, prices }
}

pub fn terms() -> Terms {
    Terms { model: "mock-1".into(), max_tokens: Some(500), temperature: Some(0.5) }
}

/// A question without a schema.
pub fn question(text: &str) -> Request {
    let messages = vec![Message { role: Role::User, text: text.into() }];
    Request { purpose: Purpose::Summary, terms: terms(), system: "Be brief.".into(), messages, schema: None }
}

/// A model that gives these, one after the other.
pub struct Scripted {
    left: Mutex<VecDeque<Result<Reply, ModelError>>>,
}

impl Scripted {
    pub fn new(replies: impl IntoIterator<Item = Result<Reply, ModelError>>) -> Self {
        Self { left: Mutex::new(replies.into_iter().collect()) }
    }

    pub fn n_left(&self) -> usize {
        self.left.lock().expect("nothing that holds it panics").len()
    }
}

impl Model for Scripted {
    fn ask<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let next = self.left.lock().expect("nothing that holds it panics").pop_front();
        Box::pin(async move { next.expect("it is not asked more often than the script has replies") })
    }
}

/// A reply of seven and three tokens.
pub fn reply(text: &str) -> Reply {
    let usage = CountedTokens { input_tokens: Some(7), output_tokens: Some(3), ..CountedTokens::default() };
    Reply { text: text.into(), usage, cost_micros: Some(66), model: "mock-1".into() }
}
