//! The interface for coding agents: an MCP server over stdio (`crewlog mcp`), and a service for HTTP (`crewlog serve`).
//!
//! Each tool is a call of the [`Crew`](crewlog_executors::crew::Crew), which makes all decisions; a refusal is a result
//! with the next step. Both commands also host the timers, the planner and the processes over all plans.

mod args;
mod calls;
mod hosting;
mod identity;
mod once;
mod rates;
mod reply;
mod server;
mod tools;
mod waking;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use rustix::process::{Pid, getppid};
use tokio::time::interval;

pub use self::hosting::Hosting;
pub use self::identity::Members;
pub use self::once::{Repeated, once};
pub use self::rates::Rates;
pub use self::server::Server;
use crate::context::Session;
use crate::context::crew::open_to_serve;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;

/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The interval for checking that the agent program still runs.
const PARENT_CHECK_EVERY: Duration = Duration::from_secs(1);

/// Serves one agent over standard input and output, until its program closes them or is gone. Standard output carries the protocol only.
pub async fn stdio_server(session: &Session) -> Result<Code, Failure> {
    if session.place.is_unused() {
        return without_a_log().await;
    }
    let parent = getppid();
    let mut signals = Signals::new()?;
    let crew = open_to_serve(session).await?;
    let server = Server::new(crew.clone(), Members::of_process(&session.folder));
    let hooks = session.config().map(|config| config.hooks.clone()).unwrap_or_default();
    let mut hosting = Hosting::start(session, &crew);
    let (stdin, stdout) = stdio();
    let transport = AsyncRwTransport::new_server(stdin, stdout).with_max_line_length(MESSAGE_BYTES_MAX);
    let serving = async {
        match server.clone().serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            // The program ended before its first message.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let ended = tokio::select! {
        ended = serving => ended.map_err(Failure::user),
        failure = hosting.log_closed() => Err(failure),
        () = signals.next() => Ok(()),
        () = orphaned(parent) => Ok(()),
        () = server.wake(hooks) => Ok(()),
    };
    server.members.leave(&crew).await;
    hosting.stop().await;
    ended.map(|()| Code::Done)
}

/// Answers that there is no log, and makes none: a server may be configured for every folder of a user.
async fn without_a_log() -> Result<Code, Failure> {
    let (stdin, stdout) = stdio();
    let transport = AsyncRwTransport::new_server(stdin, stdout).with_max_line_length(MESSAGE_BYTES_MAX);
    // A program that goes away needs no answer.
    if let Ok(running) = NoLog.serve(transport).await {
        let _ = running.waiting().await;
    }
    Ok(Code::Done)
}

/// A server without tools.
struct NoLog;

impl ServerHandler for NoLog {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::default())
            .with_server_info(Implementation::new("crewlog", env!("CARGO_PKG_VERSION")))
            .with_instructions("There is no log here, so nobody coordinates. A person makes one with `crewlog init`.")
    }
}

/// Resolves once the parent process is gone. A killed agent program leaves streams open that another process holds.
async fn orphaned(parent: Option<Pid>) {
    let mut ticks = interval(PARENT_CHECK_EVERY);
    while getppid() == parent {
        ticks.tick().await;
    }
}

/// The server for HTTP. It needs no sessions, since a handle identifies an agent. It refuses foreign names that point
/// at this machine, and pages of other servers.
pub fn service(server: Server, hosts: &[String]) -> StreamableHttpService<Server, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX)
        .with_allowed_origins(hosts.iter().flat_map(|host| [format!("http://{host}"), format!("https://{host}")]))
        .with_allowed_hosts(hosts.iter().cloned());
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}
