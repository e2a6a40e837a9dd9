//! HTTP on the loopback interface: `/mcp` for agents. Each request needs a credential, and at `/mcp` a known host and no foreign
//! origin.

mod credentials;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, LOCATION, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use crewlog_executors::crew::Crew;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::credentials::{Credentials, Scope};
use crate::crew::session::open_to_serve;
use crate::failure::{Code, Failure};
use crate::mcp::{Hosting, MESSAGE_BYTES_MAX, Members, Server, service};
use crate::runtime::Signals;
use crate::session::Session;
use crate::views::Views;

/// The most requests that are answered at a time; further ones wait.
const REQUESTS_MAX: usize = 256;
/// How long the body of a request may take to arrive.
const BODY_MAX: Duration = Duration::from_secs(10);
/// How long requests may take to end once the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);
const MCP: &str = "/mcp";

/// Decides which requests are answered.
struct Guard {
    credentials: Credentials,
    hosts: Vec<String>,
    free: Semaphore,
}

/// Serves on the loopback interface, until a signal.
pub async fn serve(session: &Session, listen: SocketAddr) -> Result<Code, Failure> {
    if !listen.ip().is_loopback() {
        let message = format!("{listen} is not on the loopback interface: the server is for this machine only");
        return Err(Failure::user(message).hint("use 127.0.0.1, and a tunnel such as ssh -L from elsewhere"));
    }
    let signals = Signals::new()?;
    let crew = open_to_serve(session).await?;
    let server = Server::new(crew.clone(), Members::of_handles(&session.folder));
    let mut hosting = Hosting::start(session, &crew);
    let served = serve_on(session, &crew, server, listen, signals, hosting.log_closed()).await;
    hosting.stop().await;
    served.map(|()| Code::Done)
}

/// Serves until a signal or a failure of the log.
async fn serve_on(
    session: &Session,
    crew: &Arc<Crew>,
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
    let credentials = Credentials::new(&token_file)?;
    print(session, address, &credentials, &token_file.display().to_string())?;
    let guarding = Arc::new(Guard { credentials, hosts: hosts_of(address), free: Semaphore::new(REQUESTS_MAX) });
    let mcp = service(server, &hosts_of(address));
    let stop = mcp.config.cancellation_token.clone();
    let router = Router::new()
        .route_service(MCP, mcp)
        .merge(page(session, crew))
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn_with_state(guarding, guard));
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let mut serving = std::pin::pin!(serving.into_future());
    let ended = tokio::select! {
        served = &mut serving => return served.map_err(cannot),
        failure = log_closed => Err(failure),
        () = signals.next() => Ok(()),
    };
    stop.cancel();
    // A connection that stays open does not hold the program.
    let _ = timeout(STOP_MAX, serving).await;
    ended
}

/// The page for a person.
fn page(session: &Session, crew: &Arc<Crew>) -> Router {
    let command = session.commands();
    crate::page::router(Arc::new(crate::page::Site { views: Arc::new(Views::serve(crew)), command: Arc::new(command) }))
}

/// Prints the addresses and the tokens.
fn print(session: &Session, address: SocketAddr, credentials: &Credentials, token_file: &str) -> Result<(), Failure> {
    let Credentials { agent, person, .. } = credentials;
    let (mcp, person) = (format!("http://{address}{MCP}"), format!("http://{address}/?token={person}"));
    let text = format!(
        "Agents:  {mcp}\n         Authorization: Bearer {agent} (also in {token_file})\nPerson:  {person} (good for one use)"
    );
    let json = json!({ "mcp": mcp, "agent_token": agent, "agent_token_file": token_file, "person": person });
    session.print_begun(&text, &json)
}

/// The names that requests may have for this server: any other was made to point at this machine.
fn hosts_of(address: SocketAddr) -> Vec<String> {
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", address.port()));
    hosts.into_iter().chain([address.to_string()]).collect()
}

async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.judge(&request) {
        None => guard.answer(request, next).await,
        Some(response) => response,
    };
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl Guard {
    /// Gives the answer to a request that goes no further.
    fn judge(&self, request: &Request) -> Option<Response> {
        let (uri, is_mcp) = (request.uri(), request.uri().path() == MCP);
        // Of `/mcp` the protocol's library judges it.
        let is_known = |host: &HeaderValue| self.hosts.iter().any(|known| known.as_bytes() == host.as_bytes());
        if !is_mcp && !request.headers().get(HOST).is_some_and(is_known) {
            return Some(refusal(StatusCode::FORBIDDEN, "the host is not this server"));
        }
        let token = uri.query().and_then(|query| query.strip_prefix("token="));
        if let Some(token) = token.filter(|_| uri.path() == "/" && request.method() == Method::GET) {
            let why = "the token was used or is wrong: start the server again for a new one";
            return Some(match self.credentials.redeem(token) {
                Some(cookie) => {
                    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie.as_str()), (LOCATION, "/")]).into_response()
                }
                None => refusal(StatusCode::UNAUTHORIZED, why),
            });
        }
        match self.credentials.scope(request.headers()) {
            None => {
                let why = "a credential is missing or wrong: agents send Authorization: Bearer TOKEN";
                Some(([(WWW_AUTHENTICATE, "Bearer")], refusal(StatusCode::UNAUTHORIZED, why)).into_response())
            }
            Some(Scope::Agent) if !is_mcp => Some(refusal(StatusCode::FORBIDDEN, "an agent may use /mcp only")),
            Some(Scope::Person) if is_mcp => Some(refusal(StatusCode::FORBIDDEN, "/mcp is for agents")),
            Some(Scope::Agent | Scope::Person) => None,
        }
    }

    /// Reads the whole body first, so that a client that sends slowly takes no other's place.
    async fn answer(&self, request: Request, next: Next) -> Response {
        let (head, body) = request.into_parts();
        let body = match timeout(BODY_MAX, to_bytes(body, MESSAGE_BYTES_MAX)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is broken, or longer than 1 MiB"),
            Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        };
        // The semaphore is never closed.
        let _permit = self.free.acquire().await;
        next.run(Request::from_parts(head, body.into())).await
    }
}

fn refusal(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}
