//! A local server that speaks the protocols of model providers and replies from a script, including faults.
//!
//! `cargo run -p crewlog-mock-llm -- FIXTURES [ADDRESS [REQUESTS]]` prints its address, and appends each request to the
//! file REQUESTS as a line of JSON. Each request gets the first matching reply that is left, else HTTP 400.
//!
//! ```json
//! {"replies": [
//!   {"fault": "rate_limited", "retry_after": 1},
//!   {"when": {"prompt": "paint the door"}, "json": {"title": null, "tasks": [], "questions": []}},
//!   {"when": {"model": "small"}, "text": "I do not know.", "usage": {"input": 900, "output": 5}, "times": "always"}],
//!  "agents": {"ada": [
//!   {"calls": [{"name": "next_task", "args": {}}]},
//!   {"calls": [{"name": "complete_task", "args": {"task": "{{task}}"}}]},
//!   {"text": "Done."}]}}
//! ```
//!
//! `agents` lists the turns of each agent program, by its API key.

mod filled;
mod script;
mod wire;

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

pub use script::Script;
use script::{Fault, Reply};
use wire::{Anthropic, Chat, Gemini, Responses, Wire};

/// The maximum bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// A stream chunk that is not JSON, for clients that use names of events and for those that do not.
const BROKEN_PIECE: &str = "event: content_block_delta\ndata: {\"broken\n\n";

/// A running server; dropping it closes its connections.
#[derive(Debug)]
pub struct MockLlm {
    address: String,
    mock: Arc<Mock>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MockLlm {
    /// Serves a script on a free port of this machine.
    ///
    /// # Errors
    /// If no port is available.
    pub fn start(script: Script) -> std::io::Result<Self> {
        Self::start_at("127.0.0.1:0", script, None)
    }

    /// Serves a script on an address such as `127.0.0.1:8080`, and appends each request to the file as a line of JSON.
    ///
    /// # Errors
    /// If the address is not available.
    pub fn start_at(address: &str, script: Script, record: Option<File>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = format!("http://{}", listener.local_addr()?);
        let mock = Arc::new(Mock { script, requests: watch::Sender::default(), record });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let router = Router::new().fallback(answer).layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX));
        let router = router.with_state(Arc::clone(&mock));
        // Dropping the runtime also ends requests whose answer never comes.
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, mock, stop: Some(stop), thread: Some(thread) })
    }

    /// `http://HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The requests so far, each with `n`, `protocol`, `path`, `model`, `stream`, `has_key`, `is_scripted`, `agent`,
    /// `turn` (from 1; 0 for a side request, and of no agent), `results` of tools so far, and `body`.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.mock.requests.borrow().clone()
    }
}

impl Drop for MockLlm {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A request in any protocol.
#[derive(Debug)]
pub(crate) struct Asked {
    wire: &'static dyn Wire,
    /// The API key, if it belongs to an agent of the script.
    agent: Option<String>,
    model: String,
    is_stream: bool,
    /// True for a request of an agent without tools.
    is_side: bool,
    /// System prompt, messages and results of tools, one after the other.
    prompt: String,
    results: Vec<Value>,
    body: Value,
}

impl Asked {
    fn new(wire: &'static dyn Wire, path: &str, agent: Option<String>, body: Value) -> Self {
        let (mut texts, results) = wire.read(&body);
        texts.extend(results.iter().filter_map(|result| result["text"].as_str()).map(str::to_owned));
        let (model, is_stream) = wire.model_and_stream(path, &body);
        let is_side = agent.is_some() && body["tools"].as_array().is_none_or(Vec::is_empty);
        Self { wire, agent, model, is_stream, is_side, prompt: texts.join("\n\n"), results, body }
    }
}

#[derive(Debug)]
struct Mock {
    script: Script,
    /// Watched by replies that wait for another agent.
    requests: watch::Sender<Vec<Value>>,
    record: Option<File>,
}

async fn answer(State(mock): State<Arc<Mock>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let wire: &dyn Wire = match uri.path() {
        "/v1/chat/completions" | "/chat/completions" => &Chat,
        "/v1/messages" => &Anthropic,
        "/v1/responses" => &Responses,
        path if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => &Gemini,
        _other => return refusal(&Chat, StatusCode::NOT_FOUND, "not_found", "no protocol has this path", None),
    };
    mock.answer(wire, &uri, &headers, &body).await
}

impl Mock {
    async fn answer(&self, wire: &'static dyn Wire, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let refused = |message: &str| refusal(wire, StatusCode::BAD_REQUEST, "invalid_request_error", message, None);
        let body = match serde_json::from_slice(body) {
            Ok(body) => body,
            Err(error) => return refused(&format!("the request is no JSON: {error}")),
        };
        let key = key(headers);
        let agent = key.map(str::to_owned).filter(|key| self.script.agents.contains(key));
        let asked = Asked::new(wire, uri.path(), agent, body);
        let reply = if asked.is_side { Ok(Reply::side()) } else { self.script.next(&asked) };
        // The agent comes first: it identifies the lines of a file.
        let n = self.record(json!({
            "agent": asked.agent, "protocol": wire.name(), "path": uri.path(), "model": asked.model,
            "stream": asked.is_stream, "has_key": key.is_some(), "is_scripted": reply.is_ok() && !asked.is_side,
            "is_side": asked.is_side, "results": asked.results, "body": asked.body,
        }));
        match reply {
            Ok(reply) => self.send(&asked, &reply, n).await,
            Err(message) => refused(&message),
        }
    }

    /// Numbers a request, and also those of each agent with tools.
    fn record(&self, mut request: Value) -> usize {
        let mut n = 0;
        self.requests.send_modify(|requests| {
            n = requests.len() + 1;
            let is_turn = |one: &&Value| one["agent"].is_string() && one["is_side"] == false;
            let earlier = requests.iter().filter(is_turn).filter(|one| one["agent"] == request["agent"]);
            let turn = if is_turn(&&request) { earlier.count() + 1 } else { 0 };
            (request["n"], request["turn"]) = (n.into(), turn.into());
            if let Some(mut file) = self.record.as_ref() {
                // One write per line: a reader never sees half of one.
                let _ = file.write_all(format!("{request}\n").as_bytes());
            }
            requests.push(request);
        });
        n
    }

    async fn send(&self, asked: &Asked, reply: &Reply, n: usize) -> Response {
        let wire = asked.wire;
        let has_come = |requests: &Vec<Value>| {
            let came =
                |(agent, n): (&String, &usize)| requests.iter().any(|one| one["agent"] == **agent && one["turn"] == *n);
            reply.after.iter().all(came)
        };
        let _ = self.requests.subscribe().wait_for(has_come).await;
        if reply.delay_ms > 0 {
            let delay = Duration::from_millis(reply.delay_ms);
            let _ = tokio::time::timeout(delay, std::future::pending::<()>()).await;
        }
        let failed = |status: u16, kind: &str, message: &str| {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            refusal(wire, status, kind, reply.message.as_deref().unwrap_or(message), reply.retry_after)
        };
        match reply.fault {
            Some(Fault::RateLimited) => failed(429, "rate_limit_error", "too many requests: slow down"),
            Some(Fault::Overloaded) => failed(529, "overloaded_error", "overloaded: come back later"),
            Some(Fault::ServerError) => failed(500, "server_error", "something went wrong"),
            Some(Fault::Unauthorized) => failed(401, "authentication_error", "this key is not known"),
            Some(Fault::TimeOut) => std::future::pending().await,
            Some(Fault::Cut) => cut(asked, reply, n),
            Some(Fault::MalformedJson) if asked.is_stream => events(vec![BROKEN_PIECE.into()]),
            Some(Fault::MalformedJson) => ok("application/json", Body::from("{\"broken")),
            None if asked.is_stream => events(wire.pieces(&wire.whole(asked, reply, n))),
            None => {
                let body = wire.whole(asked, reply, n).to_string();
                ok("application/json", Body::from(body))
            }
        }
    }
}

/// The API key of a request. It is recorded only for agents of the script.
fn key(headers: &HeaderMap) -> Option<&str> {
    let names = ["authorization", "x-api-key", "x-goog-api-key"];
    let value = names.iter().find_map(|name| headers.get(*name))?.to_str().ok()?;
    let key = value.strip_prefix("Bearer ").unwrap_or(value);
    // A client without a key sends "none", because the protocols require the header.
    (key != "none").then_some(key)
}

fn ok(content_type: &'static str, body: Body) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

fn refusal(wire: &dyn Wire, status: StatusCode, kind: &str, message: &str, retry_after: Option<f64>) -> Response {
    let body = wire.error(kind, message).to_string();
    let retry_after = retry_after.map(|seconds| [(header::RETRY_AFTER, seconds.to_string())]);
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (status, content_type, retry_after, body).into_response()
}

fn events(pieces: Vec<String>) -> Response {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    ok("text/event-stream", Body::from_stream(stream::iter(pieces)))
}

/// The first half of a reply, then the end of the connection.
fn cut(asked: &Asked, reply: &Reply, n: usize) -> Response {
    let whole = asked.wire.whole(asked, reply, n);
    let (content_type, mut half) = match asked.is_stream {
        true => ("text/event-stream", asked.wire.pieces(&whole).concat()),
        false => ("application/json", whole.to_string()),
    };
    half.truncate(half.floor_char_boundary(half.len() / 2));
    // Earlier data is only sent if the end does not follow at once.
    let end = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut off, as the fixture wants it"))
    });
    ok(content_type, Body::from_stream(stream::iter([Ok(half)]).chain(end)))
}
