//! A PostgreSQL server from a URL: connects to it, and interprets its errors. No text shows the password.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

use crate::address::unsupported;
use crate::error::{Error, Result};

/// The time limit for a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The time limit for one answer of the server. After that the connection counts as lost.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(120);
/// URL parameters that are passed on unchanged.
const PARAMETERS: [&str; 14] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    "ssl-mode",
    "ssl-root-cert",
];

/// The location of a log.
#[derive(Clone)]
pub(super) struct Server {
    options: PgConnectOptions,
    /// The schema in the URL.
    pub(super) schema: Option<String>,
    /// True if each transaction may run on another connection of the server.
    pub(super) is_pooled: bool,
    /// For messages.
    place: Arc<str>,
}

impl Server {
    /// Parses a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&pooler=transaction`, with libpq
    /// parameters such as `sslmode`.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut is_pooled, mut handed_on) = (None, false, Vec::new());
        let mut keys = HashSet::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !keys.insert(key) {
                return Err(unsupported(url, &format!("{key} is given twice")));
            }
            match (key, value) {
                ("schema", name) => schema = Some(schema_name(url, name)?),
                ("pooler", "transaction") => is_pooled = true,
                ("pooler", "none" | "session") => is_pooled = false,
                ("pooler", _) => return Err(unsupported(url, "pooler is one of transaction, session, none")),
                (key, _) if PARAMETERS.contains(&key) || key.starts_with("options[") => handed_on.push(parameter),
                (key, _) => return Err(unsupported(url, &format!("there is no parameter {key:?}"))),
            }
        }
        let options: PgConnectOptions = format!("{base}?{}", handed_on.join("&"))
            .parse()
            // The error omits the text, which contains the password.
            .map_err(|_| {
                unsupported(url, "write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with % for special characters")
            })?;
        // Without a user sqlx takes PGUSER, or else the operating system's user, which it does not know in every build.
        if options.get_username() == "anonymous" && !url.contains("anonymous") && std::env::var_os("PGUSER").is_none() {
            return Err(unsupported(url, "it names no user: write postgres://USER@HOST/DATABASE, or set PGUSER"));
        }
        // Omits session parameters that poolers do not support.
        let options = options.extra_float_digits(None).disable_statement_logging();
        let options = if is_pooled { options.statement_cache_capacity(0) } else { options };
        let host = options.get_socket().map_or_else(
            || format!("{}:{}", options.get_host(), options.get_port()),
            |socket| format!("{} port {}", socket.display(), options.get_port()),
        );
        let database = options.get_database().unwrap_or(options.get_username()).to_owned();
        let of_schema = schema.as_ref().map_or_else(String::new, |schema| format!(", schema {schema}"));
        let place = format!("database {database} on {host}{of_schema}").into();
        Ok(Self { options, schema, is_pooled, place })
    }

    /// The same location, with the resolved schema.
    pub(super) fn in_schema(mut self, schema: &str) -> Self {
        if self.schema.is_none() {
            self.place = format!("{}, schema {schema}", self.place).into();
            self.schema = Some(schema.to_owned());
        }
        self
    }

    pub(super) fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    pub(super) fn place(&self) -> String {
        self.place.to_string()
    }

    pub(super) async fn connect(&self) -> Result<PgConnection> {
        let connected = tokio::time::timeout(CONNECT_WAIT_MAX, PgConnection::connect_with(&self.options)).await;
        connected.unwrap_or_else(|_| Err(no_answer(CONNECT_WAIT_MAX))).map_err(|error| match error {
            error @ (sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)) => {
                Error::Unreachable { place: self.place(), source: Arc::new(error) }
            }
            error => self.fault("connecting to the server", error),
        })
    }

    /// Converts an error of the server.
    pub(super) fn fault(&self, doing: &'static str, error: sqlx::Error) -> Error {
        let place = || self.place();
        match code_of(&error).as_deref() {
            Some("28P01" | "28000") => Error::AccessRefused { place: place(), source: Arc::new(error) },
            Some("3D000") => Error::NoDatabase { place: place() },
            Some("42501" | "25006") => {
                let reason = format!("{error}: give the user the right to write, or name a server that is no standby");
                Error::ReadOnly { place: place(), reason }
            }
            Some("55P03") => Error::Locked { place: place(), waited: super::LOCK_WAIT_MAX },
            Some("53100") => Error::DiskFull { place: place() },
            Some("57P03") => Error::Unreachable { place: place(), source: Arc::new(error) },
            Some(_) | None => Error::storage(doing, error),
        }
    }
}

/// A schema's name, quoted for a statement.
fn schema_name(url: &str, name: &str) -> Result<String> {
    let refused = || unsupported(url, "a schema's name has 1 to 63 letters, digits and underscores");
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.len() > 63 || !is_name(name) { Err(refused()) } else { Ok(name.to_owned()) }
}

/// The server's error code, if the error came from the server.
pub(super) fn code_of(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()))
}

/// True if an error means that the connection is unusable, rather than that the server refused something.
pub(super) fn is_loss(error: &sqlx::Error) -> bool {
    match code_of(error) {
        // Connection exceptions, and a server that shuts down or ends a session.
        Some(code) => code.starts_with("08") || code.starts_with("57P") || code == "25P03",
        None => true,
    }
}

/// The answer, or an error after the time limit.
pub(super) async fn answered<T>(answer: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(ANSWER_WAIT_MAX, answer).await.unwrap_or_else(|_| Err(no_answer(ANSWER_WAIT_MAX)))
}

fn no_answer(waited: Duration) -> sqlx::Error {
    let text = format!("no answer within {} s", waited.as_secs());
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
}
