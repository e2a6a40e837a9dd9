//! Permissions over HTTP: the token of agents, a person's cookie, and tokens with scopes for programs.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, StatusCode};
use crewlog_executors::caller::{By, account};
use crewlog_executors::entry;
use crewlog_executors::private::{PRIVATE, make_folder, write_whole};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::problem::Problem;
pub use crate::cli::programs::Scope;
use crate::context::Session;
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::text::sha256;

/// The characters of a token.
const TOKEN_CHARS: usize = 32;

/// The author of a request, which the guard puts into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// An agent program, which may use `/mcp` only.
    Agent,
    /// The person at the page.
    Person,
    /// A program.
    Token { name: String, scopes: Vec<Scope> },
}

impl Caller {
    pub fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Agent => false,
            Self::Person => true,
            Self::Token { scopes, .. } => scopes.contains(&scope),
        }
    }

    /// Refuses a caller without this scope.
    pub fn check(&self, scope: Scope) -> Result<(), Problem> {
        if self.has(scope) {
            return Ok(());
        }
        let scope: &str = scope.into();
        let problem = Problem::new(StatusCode::FORBIDDEN, format!("this token does not have the scope {scope}"));
        Err(problem.hint(format!("crewlog serve tokens add NAME --scope {scope} makes one")))
    }

    /// Its name, as events name a person.
    pub fn name(&self) -> String {
        match self {
            Self::Agent | Self::Person => account(),
            Self::Token { name, .. } => name.clone(),
        }
    }

    /// The caller as the author of its orders.
    pub fn by(&self, session: &Session) -> By {
        match self {
            Self::Agent | Self::Person => session.by("page", None),
            Self::Token { name, .. } => session.by("api", Some(name.clone())),
        }
    }
}

/// A program's token. Its text is shown once; only a digest is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub name: String,
    pub sha256: String,
    pub scopes: Vec<Scope>,
    pub created_at: String,
}

/// The credentials of a server.
pub struct Credentials {
    pub agent: String,
    /// The token of a person, good for one use.
    pub person: String,
    is_used: AtomicBool,
    cookie: String,
    tokens: PathBuf,
    /// The folder of further addresses of the page.
    entries: PathBuf,
    /// The name of the cookie: browsers have one set of cookies for all ports.
    name: String,
    is_secure: bool,
}

impl Credentials {
    /// Creates credentials. The agents' token is in the file, created if missing. Over TLS the cookie is for TLS only.
    pub fn new(session: &Session, port: u16, is_secure: bool) -> Result<Self, Failure> {
        let (person, cookie) = (random(), random());
        let (agent, tokens) = (agent_token(&session.place.agent_token_file())?, session.place.beside("tokens"));
        // A person who starts the server can mend them; a program with a token cannot.
        read(&tokens)?;
        let name = format!("crewlog-{port}");
        let (is_used, entries) = (AtomicBool::new(false), session.place.beside("entries"));
        Ok(Self { agent, person, is_used, cookie, tokens, entries, name, is_secure })
    }

    /// The author of a request; `None` without a valid credential. Fails if the tokens cannot be read.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Option<Caller>, Failure> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let credential = text(AUTHORIZATION).and_then(|value| value.split_once(' '));
        if let Some((_, token)) = credential.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
            let token = token.trim();
            if is_same(token, &self.agent) {
                return Ok(Some(Caller::Agent));
            }
            let digest = sha256(token);
            let known = read(&self.tokens)?.into_iter().find(|known| known.sha256 == digest);
            return Ok(known.map(|known| Caller::Token { name: known.name, scopes: known.scopes }));
        }
        let cookies = text(COOKIE).into_iter().flat_map(|cookies| cookies.split(';'));
        let mut own = cookies.filter_map(|cookie| cookie.trim().strip_prefix(self.name.as_str())?.strip_prefix('='));
        Ok(own.any(|value| is_same(value, &self.cookie)).then_some(Caller::Person))
    }

    /// Tells one state of the tokens from another: each change makes a new file. `None` if there is none.
    pub fn stamp(&self) -> Option<(u64, SystemTime)> {
        self.tokens.metadata().and_then(|found| Ok((found.ino(), found.modified()?))).ok()
    }

    /// A cookie in exchange for the person's token, which is then used up.
    pub fn redeem(&self, token: &str) -> Option<String> {
        let is_own = is_same(token, &self.person) && !self.is_used.swap(true, Ordering::Relaxed);
        let is_good = is_own || entry::redeem(&self.entries, token);
        let secure = if self.is_secure { "; Secure" } else { "" };
        is_good.then(|| format!("{}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.name, self.cookie))
    }
}

/// Prints a new address of the page of a running server.
pub async fn link(session: &Session) -> Result<Code, Failure> {
    session.person_only("open the page of a person").await?;
    let page = entry::make(&session.place.beside("entries"));
    let page =
        page.map_err(|error| Failure::user(format!("there is no server to open: {error}")).hint("crewlog serve"))?;
    session.print_done(&page, &json!({ "person": page }))
}

/// Compares digests, so that timing reveals nothing about the secret.
fn is_same(given: &str, secret: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

/// The token in the file, so that configured agents need no change; a new one if it is missing or others could read it.
fn agent_token(file: &Path) -> Result<String, Failure> {
    let is_private = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 == 0);
    let kept = fs::read_to_string(file).ok().map(|token| token.trim().to_owned());
    if let Some(token) = kept.filter(|token| is_private && token.len() == TOKEN_CHARS) {
        return Ok(token);
    }
    let token = random();
    // Of two servers that begin at once the token of the first counts. A link that leads nowhere is replaced too.
    let is_there = file.symlink_metadata().is_ok();
    let is_first = write_private(file, &format!("{token}\n"), is_there)?;
    if is_first { Ok(token) } else { agent_token(file) }
}

/// Writes a file for this account alone. False if it is there and not to be replaced.
fn write_private(file: &Path, text: &str, replaces: bool) -> Result<bool, Failure> {
    let written = write_whole(file, text, PRIVATE, replaces);
    written.map_err(|error| Failure::user(format!("{} cannot be written: {error}", file.display())))
}

/// 122 random bits.
pub fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

pub fn read(file: &Path) -> Result<Vec<Token>, Failure> {
    let cannot = |error: String| {
        let failure = Failure::user(format!("{} cannot be read: {error}", file.display()));
        let hint = "if it is damaged, remove it and make the tokens again: `crewlog serve tokens add NAME`";
        Failure { why: Why::Fault, ..failure.hint(hint) }
    };
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| cannot(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(cannot(error.to_string())),
    }
}

/// Changes the tokens, one process at a time.
pub fn change(file: &Path, change: impl FnOnce(&mut Vec<Token>) -> Result<(), Failure>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::user(format!("{} cannot be locked: {error}", file.display()));
    if let Some(folder) = file.parent() {
        // For a log on a server nothing else may have made it.
        make_folder(folder).map_err(cannot)?;
    }
    let lock = PathBuf::from(format!("{}.lock", file.display()));
    let lock = fs::File::options().create(true).append(true).mode(0o600).open(lock).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    let mut tokens = read(file)?;
    change(&mut tokens)?;
    write_private(file, &serde_json::to_string_pretty(&tokens)?, true).map(drop)
}
