//! A local server that speaks the protocols of model providers and replies from a script, including faults.

mod script;
mod wire;

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::post;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub use script::Script;
use script::{Fault, Reply};
use wire::Protocol;

/// The maximum bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 << 20;

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
    /// When no port can be listened on.
    pub fn start(script: Script) -> std::io::Result<Self> {
        Self::start_at("127.0.0.1:0", script)
    }

    /// Serves a script on an address such as `127.0.0.1:8080`.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start_at(address: &str, script: Script) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = format!("http://{}", listener.local_addr()?);
        let mock = Arc::new(Mock { script, n_asked: AtomicUsize::new(0), requests: Mutex::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&mock);
        let thread = std::thread::spawn(move || {
            // Dropping the runtime also ends requests whose answer never comes.
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, served) => {}
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

    /// The requests so far, each with `n`, `protocol`, `path`, `model`, `stream`, `has_key`, `is_scripted` and `body`.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.mock.requests.lock().map(|requests| requests.clone()).unwrap_or_default()
    }
}

impl Drop for MockLlm {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: TcpListener, mock: Arc<Mock>) {
    let router = Router::new()
        .route("/v1/chat/completions", post(openai))
        .route("/chat/completions", post(openai))
        .route("/v1/messages", post(anthropic))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(mock);
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let _ = axum::serve(listener, router).await;
}

/// A request, whatever the protocol.
#[derive(Debug)]
pub(crate) struct Asked {
    protocol: Protocol,
    model: String,
    is_stream: bool,
    /// System prompt and messages, one after the other.
    prompt: String,
    body: Value,
}

#[derive(Debug)]
struct Mock {
    script: Script,
    n_asked: AtomicUsize,
    requests: Mutex<Vec<Value>>,
}

async fn openai(State(mock): State<Arc<Mock>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    mock.answer(Protocol::OpenAi, &uri, &headers, &body).await
}

async fn anthropic(State(mock): State<Arc<Mock>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    mock.answer(Protocol::Anthropic, &uri, &headers, &body).await
}

impl Mock {
    async fn answer(&self, protocol: Protocol, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let n = self.n_asked.fetch_add(1, Ordering::Relaxed) + 1;
        let body = match serde_json::from_slice(body) {
            Ok(body) => body,
            Err(error) => {
                let message = format!("the request is no JSON: {error}");
                return refusal(protocol, StatusCode::BAD_REQUEST, "invalid_request_error", &message, None);
            }
        };
        let asked = protocol.asked(body);
        let reply = self.script.next(&asked);
        self.record(n, &asked, uri, headers, reply.is_some());
        let Some(reply) = reply else {
            let message = format!("the fixtures have no reply left for this request to {:?}", asked.model);
            return refusal(protocol, StatusCode::BAD_REQUEST, "invalid_request_error", &message, None);
        };
        if reply.delay_ms > 0 {
            let delay = Duration::from_millis(reply.delay_ms);
            let _ = tokio::time::timeout(delay, std::future::pending::<()>()).await;
        }
        let failed = |status: u16, kind: &str, message: &str| {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            refusal(protocol, status, kind, reply.message.as_deref().unwrap_or(message), reply.retry_after)
        };
        match reply.fault {
            Some(Fault::RateLimited) => failed(429, "rate_limit_error", "too many requests: slow down"),
            Some(Fault::Overloaded) => failed(529, "overloaded_error", "overloaded: come back later"),
            Some(Fault::ServerError) => failed(500, "server_error", "something went wrong"),
            Some(Fault::Unauthorized) => failed(401, "authentication_error", "this key is not known"),
            Some(Fault::TimeOut) => std::future::pending().await,
            Some(Fault::Cut) => cut(&asked, &reply, n),
            Some(Fault::MalformedJson) if asked.is_stream => events(vec![protocol.broken_piece().into()]),
            Some(Fault::MalformedJson) => response(StatusCode::OK, "application/json", Body::from("{\"broken")),
            None if asked.is_stream => events(protocol.pieces(&asked, &reply, n)),
            None => {
                let body = protocol.whole(&asked, &reply, n).to_string();
                response(StatusCode::OK, "application/json", Body::from(body))
            }
        }
    }

    /// Records whether there was a key, not the key.
    fn record(&self, n: usize, asked: &Asked, uri: &Uri, headers: &HeaderMap, is_scripted: bool) {
        // A client without a key sends "none", because the protocols require the header.
        let is_key = |value: &header::HeaderValue| !matches!(value.as_bytes(), b"none" | b"Bearer none");
        let has_key =
            headers.get(header::AUTHORIZATION).is_some_and(is_key) || headers.get("x-api-key").is_some_and(is_key);
        let request = json!({
            "n": n, "protocol": asked.protocol.as_str(), "path": uri.path(), "model": asked.model,
            "stream": asked.is_stream, "has_key": has_key, "is_scripted": is_scripted, "body": asked.body,
        });
        if let Ok(mut requests) = self.requests.lock() {
            requests.push(request);
        }
    }
}

fn response(status: StatusCode, content_type: &str, body: Body) -> Response {
    let built = Response::builder().status(status).header(header::CONTENT_TYPE, content_type).body(body);
    built.expect("a status and a plain content type can always be sent")
}

fn refusal(protocol: Protocol, status: StatusCode, kind: &str, message: &str, retry_after: Option<f64>) -> Response {
    let body = Body::from(protocol.error(kind, message).to_string());
    let mut response = response(status, "application/json", body);
    if let Some(seconds) = retry_after.and_then(|seconds| header::HeaderValue::from_str(&seconds.to_string()).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

fn events(pieces: Vec<String>) -> Response {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    response(StatusCode::OK, "text/event-stream", Body::from_stream(stream::iter(pieces)))
}

/// The first half of a reply, then the end of the connection.
fn cut(asked: &Asked, reply: &Reply, n: usize) -> Response {
    let (content_type, half) = if asked.is_stream {
        let mut pieces = asked.protocol.pieces(asked, reply, n);
        pieces.truncate(pieces.len() / 2);
        ("text/event-stream", pieces.concat())
    } else {
        let mut whole = asked.protocol.whole(asked, reply, n).to_string();
        whole.truncate(whole.floor_char_boundary(whole.len() / 2));
        ("application/json", whole)
    };
    // Earlier data is only sent if the end does not follow at once.
    let end = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut off, as the fixture wants it"))
    });
    response(StatusCode::OK, content_type, Body::from_stream(stream::iter([Ok(half)]).chain(end)))
}
