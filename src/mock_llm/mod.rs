//! `mock-llm`: a local server that speaks the protocols of providers of models and says what a script says, faults
//! included. It is no model: it understands nothing, and keeps no key.

mod fixtures;
mod wire;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::post;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::cli::{MockLlm, Output};
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::workforce::Signals;
use fixtures::{Fault, Reply, Script};
use wire::Protocol;

/// The most bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 << 20;

/// What is asked, whatever the protocol.
#[derive(Debug)]
pub struct Asked {
    protocol: Protocol,
    model: String,
    is_stream: bool,
    /// System prompt and messages, one after the other.
    prompt: String,
    body: Value,
}

struct Mock {
    script: Script,
    n_asked: AtomicUsize,
    requests_to: Option<Mutex<File>>,
}

/// `mock-llm`: serves until it is told to end.
pub async fn serve(session: &Session, args: MockLlm) -> Result<Code, Failure> {
    let script = Script::read(&args.fixtures)?;
    let requests_to = args.requests_to.as_ref().map(|path| {
        let opened = File::options().create(true).append(true).open(path);
        opened.map(Mutex::new).map_err(|error| Failure::user(format!("{} cannot be written: {error}", path.display())))
    });
    let mock = Arc::new(Mock { script, n_asked: AtomicUsize::new(0), requests_to: requests_to.transpose()? });
    let mut signals = Signals::new()?;
    let cannot = |error: std::io::Error| {
        Failure::user(format!("{} cannot be listened on: {error}", args.listen))
            .hint("name another with --listen, or port 0")
    };
    let listener = TcpListener::bind(args.listen).await.map_err(cannot)?;
    let address = format!("http://{}", listener.local_addr().map_err(cannot)?);
    let mut stdout = std::io::stdout();
    match session.output {
        Output::Text => writeln!(stdout, "{address}")?,
        Output::Json | Output::Jsonl => writeln!(stdout, "{}", json!({ "address": address }))?,
    }
    stdout.flush()?;
    let router = Router::new()
        .route("/v1/chat/completions", post(openai))
        .route("/chat/completions", post(openai))
        .route("/v1/messages", post(anthropic))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(mock);
    // What waits for an answer that never comes must not hold it.
    tokio::select! {
        ended = std::future::IntoFuture::into_future(axum::serve(listener, router)) => ended?,
        () = signals.next() => {}
    }
    Ok(Code::Done)
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
        if let Err(error) = self.record(n, &asked, uri, headers, reply.is_some()) {
            let message = format!("the request could not be recorded: {error}");
            return refusal(protocol, StatusCode::INTERNAL_SERVER_ERROR, "server_error", &message, None);
        }
        let Some(reply) = reply else {
            let message = format!("the fixtures have no reply left for this request to {:?}", asked.model);
            return refusal(protocol, StatusCode::BAD_REQUEST, "invalid_request_error", &message, None);
        };
        if reply.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
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

    /// One line for each request. Of a key it is kept only whether there was one.
    fn record(
        &self,
        n: usize,
        asked: &Asked,
        uri: &Uri,
        headers: &HeaderMap,
        is_scripted: bool,
    ) -> std::io::Result<()> {
        let Some(file) = &self.requests_to else { return Ok(()) };
        // Who has no key says "none", since the protocols want the header.
        let is_key = |value: &header::HeaderValue| !matches!(value.as_bytes(), b"none" | b"Bearer none");
        let has_key =
            headers.get(header::AUTHORIZATION).is_some_and(is_key) || headers.get("x-api-key").is_some_and(is_key);
        let line = json!({
            "n": n, "protocol": asked.protocol.as_str(), "path": uri.path(), "model": asked.model,
            "stream": asked.is_stream, "has_key": has_key, "is_scripted": is_scripted, "body": asked.body,
        });
        let mut file = file.lock().map_err(|_| std::io::Error::other("another request could not be recorded"))?;
        file.write_all(format!("{line}\n").as_bytes())
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
    // What came before is only sent when the end is not there at once.
    let end = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut off, as the fixture wants it"))
    });
    response(StatusCode::OK, content_type, Body::from_stream(stream::iter([Ok(half)]).chain(end)))
}
