//! HTTP on the loopback interface: `/mcp` for agents. Each request needs a known host, no foreign origin, and a credential.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, ORIGIN, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MESSAGE_BYTES_MAX;
use super::credentials::{Credentials, Scope};
use super::server::Server;
use crate::failure::Failure;
use crate::runtime::Signals;
use crate::session::Session;

/// The most open connections; further ones wait.
const CONNECTIONS_MAX: usize = 256;
/// How long requests may take to end once the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);
const MCP: &str = "/mcp";

/// What a request is judged by.
struct Guard {
    credentials: Credentials,
    hosts: Vec<String>,
}

/// Serves until a signal or a failure of the log.
pub async fn serve(
    session: &Session,
    server: Server,
    listen: SocketAddr,
    mut signals: Signals,
    log_closed: impl Future<Output = Failure>,
) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::user(format!("{listen} cannot be listened to: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        cannot(error).hint("another `crewlog serve` may run; choose another address with --listen 127.0.0.1:PORT")
    })?;
    let address = listener.local_addr().map_err(cannot)?;
    let token_file = session.place.agent_token_file();
    let (credentials, tokens) = Credentials::new(&token_file)?;
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", address.port()));
    let hosts = hosts.into_iter().chain([address.to_string()]).collect();
    let mcp = mcp_service(server);
    let stop_mcp = mcp.config.cancellation_token.clone();
    let router = Router::new()
        .route_service(MCP, mcp)
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn_with_state(Arc::new(Guard { credentials, hosts }), guard));
    let (url, file) = (format!("http://{address}"), token_file.display().to_string());
    let text = format!(
        "Agents:  {url}{MCP}\n         Authorization: Bearer {} (also in {file})\nPerson:  {url}/?token={} (good for one use)",
        tokens.agent, tokens.person
    );
    let person = format!("{url}/?token={}", tokens.person);
    let json = json!({ "mcp": format!("{url}{MCP}"), "agent_token": tokens.agent, "agent_token_file": file, "person": person });
    session.print_begun(&text, &json)?;
    let (stop, mut is_stopped) = tokio::sync::watch::channel(false);
    let serving = axum::serve(Limited::new(listener), router).with_graceful_shutdown(async move {
        let _ = is_stopped.wait_for(|stopped| *stopped).await;
    });
    let mut serving = std::pin::pin!(serving.into_future());
    let ended = tokio::select! {
        served = &mut serving => return served.map_err(cannot),
        failure = log_closed => Err(failure),
        () = signals.next() => Ok(()),
    };
    stop.send_replace(true);
    stop_mcp.cancel();
    // A connection that stays open does not hold the program.
    let _ = tokio::time::timeout(STOP_MAX, serving).await;
    ended
}

/// Without sessions: an agent is known by its handle, so that a client can go on after the server was started again.
fn mcp_service(server: Server) -> StreamableHttpService<Server, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = guard.judge(request, next).await;
    let headers = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "no-referrer")];
    let headers = headers.into_iter().chain([(HeaderName::from_static("x-content-type-options"), "nosniff")]);
    for (name, value) in headers {
        response.headers_mut().entry(name).or_insert(value.parse().expect("it is a header"));
    }
    response
}

impl Guard {
    async fn judge(&self, request: Request, next: Next) -> Response {
        if !self.is_addressed(request.headers(), request.uri().host()) {
            return refusal(StatusCode::FORBIDDEN, "the host or the origin is not this server");
        }
        let (is_root, is_mcp) = (request.uri().path() == "/", request.uri().path() == MCP);
        if let Some(token) = query_token(&request).filter(|_| is_root && request.method() == Method::GET) {
            return match self.credentials.redeem(token) {
                Some(cookie) => (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response(),
                None => refusal(
                    StatusCode::UNAUTHORIZED,
                    "the token was used or is wrong: start the server again for a new one",
                ),
            };
        }
        match self.credentials.scope(request.headers()) {
            None => {
                let why = "a credential is missing or wrong: agents send Authorization: Bearer TOKEN";
                let mut response = refusal(StatusCode::UNAUTHORIZED, why);
                response.headers_mut().insert(WWW_AUTHENTICATE, "Bearer".parse().expect("it is a header"));
                response
            }
            Some(Scope::Agent) if !is_mcp => refusal(StatusCode::FORBIDDEN, "an agent may use /mcp only"),
            Some(Scope::Person) if is_mcp => refusal(StatusCode::FORBIDDEN, "/mcp is for agents"),
            Some(Scope::Agent | Scope::Person) => next.run(request).await,
        }
    }

    /// Whether a request is meant for this server, and does not come from a page of another: a name that was made to point at
    /// this machine is refused.
    fn is_addressed(&self, headers: &HeaderMap, uri_host: Option<&str>) -> bool {
        let is_known = |host: &str| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let has_host = text(HOST).is_some_and(is_known);
        let origin_is_own = text(ORIGIN).is_none_or(|origin| origin.strip_prefix("http://").is_some_and(is_known));
        has_host && uri_host.is_none() && origin_is_own
    }
}

fn query_token(request: &Request) -> Option<&str> {
    request.uri().query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn refusal(status: StatusCode, why: &'static str) -> Response {
    (status, Body::from(format!("{why}\n"))).into_response()
}

/// A listener that accepts a limited number of connections at a time.
struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

/// A connection that counts while it is open.
struct Counted {
    stream: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Limited {
    fn new(listener: TcpListener) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Limited {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        // The semaphore is never closed.
        let permit = self.free.clone().acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Counted { stream, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
