//! A mock model in this process, clients of it, and a scripted model.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use crewlog_executors::model::{Client, Key, Model, ModelError, Prices, Reply, Settings};
use crewlog_mock_llm::{MockLlm, Script};
use crewlog_planner::event::Usage;
use crewlog_planner::model::{MessageRole, ModelMessage, ModelParameters, ModelRequest, RequestPurpose};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::cli::scene::Scene;

/// Both protocols, with and without streaming.
pub const WAYS: [(&str, bool); 4] = [("openai", false), ("openai", true), ("anthropic", false), ("anthropic", true)];

/// A mock model with a list of replies.
pub struct Mock {
    pub scene: Scene,
    server: MockLlm,
}

impl Mock {
    pub fn new(replies: &Value) -> Self {
        Self::within(Scene::new(), replies)
    }

    pub fn within(scene: Scene, replies: &Value) -> Self {
        // A named configuration needs no agreement.
        scene.write("crewlog.toml", "");
        let config = scene.path("crewlog.toml").to_string_lossy().into_owned();
        let scene = scene.with_env("CREWLOG_CONFIG", config);
        let script = Script::parse("fixtures", &json!({ "replies": replies }).to_string()).expect("it is a script");
        Self { scene, server: MockLlm::start(script).expect("a port is free") }
    }

    /// A section [model] for this server, with more lines.
    pub fn configure(&self, provider: &str, more: &str) {
        let endpoint = format!("{}/v1", self.server.address());
        let section = format!(
            "[model]\nname = \"mock-1\"\nprovider = \"{provider}\"\nendpoint = \"{endpoint}\"\nbackoff = \"1ms\"\n{more}\n"
        );
        self.scene.write("crewlog.toml", section);
    }

    pub fn endpoint(&self) -> String {
        format!("{}/v1/", self.server.address())
    }

    pub fn client(&self, provider: &str, stream: bool) -> Client {
        Client::new(settings(provider, stream, self.endpoint())).expect("it is configured")
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.server.requests()
    }

    /// Stops the server, so it becomes unreachable.
    pub fn stop(self) -> Scene {
        drop(self.server);
        self.scene
    }
}

/// Three per million input tokens, fifteen per million output tokens.
pub fn settings(provider: &str, stream: bool, endpoint: String) -> Settings {
    let prices = Some(Prices { input: 3_000_000, output: 15_000_000 });
    let (provider, endpoint, timeout) = (provider.to_owned(), Some(endpoint), Duration::from_secs(60));
    Settings { provider, endpoint, key: Key::None, timeout, stream, prices }
}

pub fn parameters() -> ModelParameters {
    ModelParameters { model: "mock-1".into(), max_tokens: Some(500), temperature: Some(0.5) }
}

/// A request without a schema.
pub fn question(text: &str) -> ModelRequest {
    let messages = vec![ModelMessage { role: MessageRole::User, text: text.into() }];
    ModelRequest {
        purpose: RequestPurpose::Advice,
        parameters: parameters(),
        system: "Be brief.".into(),
        messages,
        schema: None,
    }
}

/// A model that returns these, one after the other.
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
    fn ask<'a>(&'a self, _request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let next = self.left.lock().expect("nothing that holds it panics").pop_front();
        Box::pin(async move { next.expect("it is not asked more often than the script has replies") })
    }
}

/// A reply of seven and three tokens.
pub fn reply(text: &str) -> Reply {
    let usage = Usage { input_tokens: 7, output_tokens: 3, cost_micros: 66, ..Usage::default() };
    Reply { text: text.into(), usage, model: "mock-1".into() }
}
