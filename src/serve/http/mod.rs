//! HTTP: `/mcp` for agents, `/api` for programs, and the pages for a person. Each request needs a credential, a known
//! host and no foreign origin.

pub mod access;
mod commands;
mod forms;
mod guard;
mod listen;
mod openapi;
pub mod problem;
mod stream;
#[cfg(test)]
mod tests;
mod views;
use self::access::Credentials;
use self::guard::{Guard, MCP, guard};
use self::listen::tls;
use self::problem::Problem;
use self::views::Api;
use crate::context::Session;
use crate::context::config::ServeConfig;
use crate::context::crew::open_to_serve;
use crate::run::notices;
use crate::serve::mcp::{Hosting, MESSAGE_BYTES_MAX, Members, Server, service};
use crate::serve::page;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use crewlog_executors::crew::Crew;
use crewlog_executors::entry;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The time limit for open requests when the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);

/// The most concurrent streams of events.
const STREAMS_MAX: usize = 64;

#[derive(OpenApi)]
#[openapi(components(schemas(Problem)))]
struct Document;

/// Serves until a signal.
pub async fn serve(session: &Session, listen: SocketAddr) -> Result<Code, Failure> {
    check(session, listen)?;
    let signals = Signals::new()?;
    let crew = open_to_serve(session).await?;
    let mut hosting = Hosting::start(session, &crew);
    hosting.spawn(|is_stopped| notices::host(session.clone(), crew.clone(), is_stopped));
    let served = serve_with(session, &crew, listen, signals, hosting.log_closed(), |_| ()).await;
    hosting.stop().await;
    served.map(|()| Code::Done)
}

/// Refuses an address where traffic could be read in transit.
pub fn check(session: &Session, listen: SocketAddr) -> Result<(), Failure> {
    let config = &session.config()?.serve;
    if listen.ip().is_loopback() || config.certificate.is_some() || !config.proxies.is_empty() {
        return Ok(());
    }
    let message = format!("{listen} is not on the loopback interface: what is sent to it could be read on the way");
    Err(Failure::user(message)
        .hint("use 127.0.0.1, and a tunnel such as ssh -L from elsewhere")
        .hint("or set certificate and key, or proxies, in [serve] of crewlog.toml"))
}

/// Serves a crew until a signal or a failure of the log. `begun` gets the address of the page.
pub async fn serve_with(
    session: &Session,
    crew: &Arc<Crew>,
    listen: SocketAddr,
    mut signals: Signals,
    log_closed: impl Future<Output = Failure>,
    begun: impl FnOnce(&str),
) -> Result<(), Failure> {
    let config = &session.config()?.serve;
    let server = Server::new(crew.clone(), Members::of_handles(&session.folder));
    let site = Arc::new(page::Site { views: server.views.clone(), session: session.clone() });
    let cannot = |error: io::Error| Failure::user(format!("cannot listen on {listen}: {error}"));
    let acceptor = match (&config.certificate, &config.key) {
        (Some(certificate), Some(key)) => Some(tls(&beside(session, certificate)?, &beside(session, key)?)?),
        (None, None) => None,
        _one => return Err(Failure::user("[serve] of crewlog.toml has to have certificate and key, or neither")),
    };
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        cannot(error).hint("another `crewlog serve` may run; choose another address with --listen 127.0.0.1:PORT")
    })?;
    let address = listener.local_addr().map_err(cannot)?;
    let is_behind_tls = !config.proxies.is_empty();
    let is_secure = acceptor.is_some() || is_behind_tls;
    let scheme = if is_secure { "https" } else { "http" };
    let credentials = Arc::new(Credentials::new(session, address.port(), is_secure)?);
    // It is called from elsewhere, and through a proxy, by its configured name.
    let named = config.hosts.first().filter(|_| is_behind_tls || !address.ip().is_loopback());
    let base = named.map_or_else(|| format!("{scheme}://{address}"), |host| format!("https://{host}"));
    // Without it only `serve link` fails.
    let _ = entry::note_server(&session.place.beside("entries"), &base);
    begun(&print(session, address, &base, &credentials)?);
    let guarding = Arc::new(Guard::new(credentials.clone(), hosts_of(address, config), site.clone()));
    let (session, crew, streams) = (session.clone(), crew.clone(), Arc::new(Semaphore::new(STREAMS_MAX)));
    let api = Arc::new(Api { session, crew, views: server.views.clone(), site: site.clone(), streams, credentials });
    let mcp = service(server, &hosts_of(address, config));
    let stop = mcp.config.cancellation_token.clone();
    let router = Router::new()
        .route_service(MCP, mcp)
        .merge(api_router(api))
        .merge(page::router(site))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address has other methods")
        })
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .layer(from_fn_with_state(guarding, guard));
    let mut serving = std::pin::pin!(listen::serve(
        listener,
        config.proxies.clone(),
        acceptor,
        router,
        stop.clone().cancelled_owned()
    ));
    let ended = tokio::select! {
        () = &mut serving => Ok(()),
        failure = log_closed => Err(failure),
        () = signals.next() => Ok(()),
    };
    stop.cancel();
    // A connection that stays open does not delay the end of the program.
    let _ = timeout(STOP_MAX, serving).await;
    ended
}

/// A path in the configuration, relative to its file.
fn beside(session: &Session, path: &Path) -> Result<PathBuf, Failure> {
    let folder = session.config()?.file.as_deref().and_then(Path::parent);
    Ok(folder.unwrap_or(&session.folder).join(path))
}

/// The views and commands, with their OpenAPI document.
fn api_router(api: Arc<Api>) -> Router {
    let (router, views) = OpenApiRouter::with_openapi(Document::openapi())
        .merge(views::routes())
        .routes(routes!(stream::stream))
        .split_for_parts();
    let document = openapi::document(views).to_string();
    let document = async move || ([(CONTENT_TYPE, "application/json")], document);
    router
        .route("/api/openapi.json", get(document))
        .route("/api/commands/{name}", post(commands::command))
        .route("/do/{name}", post(forms::form))
        .with_state(api)
}

/// Prints the addresses and the tokens; returns the address of the page.
fn print(session: &Session, address: SocketAddr, base: &str, credentials: &Credentials) -> Result<String, Failure> {
    let Credentials { agent, person, .. } = credentials;
    let token_file = session.place.agent_token_file().display().to_string();
    let (mcp, person) = (format!("{base}{MCP}"), format!("{base}/?token={person}"));
    // Other outputs are kept, as by a journal.
    let agent = if session.terminal.shows_results { agent } else { "TOKEN" };
    let shown = format!("Bearer {agent} (the token is in {token_file})");
    let text = format!("Page:    {person} (good for one use)\nAgents:  {mcp}\n         Authorization: {shown}");
    let json = json!({ "mcp": mcp, "agent_token_file": token_file, "person": person, "listen": address });
    session.print_begun(&text, &json)?;
    Ok(person)
}

/// The allowed names of this server in requests: any other name was set up to point at this machine.
fn hosts_of(address: SocketAddr, config: &ServeConfig) -> Vec<String> {
    // Clients omit the default ports.
    let is_usual = matches!(address.port(), 80 | 443);
    let port = if is_usual { String::new() } else { format!(":{}", address.port()) };
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}{port}"));
    hosts.into_iter().chain([address.to_string()]).chain(config.hosts.iter().cloned()).collect()
}
