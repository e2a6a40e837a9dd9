//! The author of an order from outside, kept in the metadata of its events as `extra.by`.

use crewlog_mq::Cause;
use serde::Serialize;
use uuid::Uuid;

tokio::task_local! {
    static CALLER: By;
    static CORRELATION: Uuid;
}

/// The author of an order, and the face that it came by.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct By {
    /// The account that the process runs under.
    pub account: String,
    /// The machine.
    pub host: String,
    /// The command line, the page, the API or `top`.
    pub face: &'static str,
    /// The token of the program that called, by its name.
    pub token: Option<String>,
    /// The agent that gave the command, if it says so.
    pub agent: Option<String>,
}

impl By {
    /// Of this account on this machine.
    #[must_use]
    pub fn here(face: &'static str, token: Option<String>, agent: Option<String>) -> Self {
        Self { account: account(), host: host(), face, token, agent }
    }
}

/// The name of this machine.
#[must_use]
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of this process's account: that of its user id, else what its environment says.
#[must_use]
pub fn account() -> String {
    let id = rustix::process::geteuid().as_raw();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    let said = || std::env::var("USER").ok();
    named.or_else(said).filter(|name| !name.is_empty()).unwrap_or_else(|| "human".to_owned())
}

/// Runs something that this caller ordered.
pub async fn ordered<T>(by: By, work: impl Future<Output = T>) -> T {
    CALLER.scope(by, work).await
}

/// Runs something whose events can be found by this correlation.
pub async fn correlated<T>(id: Uuid, work: impl Future<Output = T>) -> T {
    CORRELATION.scope(id, work).await
}

/// The cause of a command from outside: a request of the current caller, if there is one.
#[must_use]
pub fn request() -> Cause {
    let by = CALLER.try_with(|by| serde_json::to_value(by).ok()).ok().flatten();
    let request = by.iter().fold(Cause::request(), Cause::by);
    match CORRELATION.try_with(|id| *id) {
        Ok(id) => request.correlated(id),
        Err(_outside) => request,
    }
}
