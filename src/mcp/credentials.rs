//! Credentials over HTTP: a token for agents, and for a person a one-time token that becomes a cookie.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use sha2::{Digest, Sha256};

use super::identity::random_hex;
use crate::failure::Failure;

/// The name of a person's cookie.
const NAME: &str = "crewlog";
/// The characters of a token.
const TOKEN_CHARS: usize = 32;

/// What a credential allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The tools, and nothing else.
    Agent,
    /// What a person may see and do.
    Person,
}

/// The credentials of a server. Only digests are kept, so that a comparison tells nothing by the time that it takes.
pub struct Credentials {
    agent: [u8; 32],
    /// Until it is used.
    once: Mutex<Option<[u8; 32]>>,
    cookie: String,
    cookie_digest: [u8; 32],
}

/// The tokens to print when the server starts.
pub struct Tokens {
    pub agent: String,
    /// Good for one use.
    pub person: String,
}

impl Credentials {
    /// Makes credentials. The agents' token is that of the file, which is made if it is missing.
    pub fn new(file: &Path) -> Result<(Self, Tokens), Failure> {
        let agent = agent_token(file)?;
        let (person, cookie) = (token()?, token()?);
        let once = Mutex::new(Some(digest(&person)));
        let credentials = Self { agent: digest(&agent), once, cookie_digest: digest(&cookie), cookie };
        Ok((credentials, Tokens { agent, person }))
    }

    /// The scope of a request.
    pub fn scope(&self, headers: &HeaderMap) -> Option<Scope> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if bearer.is_some_and(|token| digest(token.trim()) == self.agent) {
            return Some(Scope::Agent);
        }
        let cookies = text(COOKIE).into_iter().flat_map(|cookies| cookies.split(';'));
        let mut own = cookies.filter_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='));
        own.any(|value| digest(value) == self.cookie_digest).then_some(Scope::Person)
    }

    /// The cookie for a one-time token, which is used up.
    pub fn redeem(&self, token: &str) -> Option<String> {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        once.take_if(|expected| *expected == digest(token))?;
        Some(format!("{NAME}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie))
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn token() -> Result<String, Failure> {
    random_hex().map_err(|_| Failure::user("the system gives no random bytes"))
}

/// The token in the file, so that agents that are configured with it need no change; a new one if there is none, or if others
/// could read it.
fn agent_token(file: &Path) -> Result<String, Failure> {
    let is_private = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 == 0);
    let kept = fs::read_to_string(file).ok().map(|token| token.trim().to_owned());
    let is_token = |token: &String| token.len() == TOKEN_CHARS && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(token) = kept.filter(|token| is_private && is_token(token)) {
        return Ok(token);
    }
    let token = token()?;
    let write = || {
        match fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut made = fs::File::options().write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(made, "{token}")
    };
    write().map_err(|error| Failure::user(format!("{} cannot be written: {error}", file.display())))?;
    Ok(token)
}
