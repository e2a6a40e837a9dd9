//! Credentials over HTTP: a token for agents, and for a person a one-time token that becomes a cookie.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use sha2::{Digest, Sha256};
use uuid::Uuid;

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

/// The credentials of a server.
pub struct Credentials {
    /// The token of agents.
    pub agent: String,
    /// The token of a person, good for one use.
    pub person: String,
    is_used: AtomicBool,
    cookie: String,
}

impl Credentials {
    /// Makes credentials. The agents' token is that of the file, which is made if it is missing.
    pub fn new(file: &Path) -> Result<Self, Failure> {
        let (person, cookie) = (random(), random());
        Ok(Self { agent: agent_token(file)?, person, is_used: AtomicBool::new(false), cookie })
    }

    /// The scope of a request.
    pub fn scope(&self, headers: &HeaderMap) -> Option<Scope> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if bearer.is_some_and(|token| is_same(token.trim(), &self.agent)) {
            return Some(Scope::Agent);
        }
        let cookies = text(COOKIE).into_iter().flat_map(|cookies| cookies.split(';'));
        let mut own = cookies.filter_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='));
        own.any(|value| is_same(value, &self.cookie)).then_some(Scope::Person)
    }

    /// The cookie for the person's token, which is used up.
    pub fn redeem(&self, token: &str) -> Option<String> {
        let is_good = is_same(token, &self.person) && !self.is_used.swap(true, Ordering::Relaxed);
        is_good.then(|| format!("{NAME}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie))
    }
}

/// Compares digests, so that the time tells nothing about the secret.
fn is_same(given: &str, secret: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

/// The token in the file, so that agents that are configured with it need no change; a new one if there is none, or if others
/// could read it.
fn agent_token(file: &Path) -> Result<String, Failure> {
    let is_private = file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 == 0);
    let kept = fs::read_to_string(file).ok().map(|token| token.trim().to_owned());
    if let Some(token) = kept.filter(|token| is_private && token.len() == TOKEN_CHARS) {
        return Ok(token);
    }
    let token = random();
    let write = || {
        // If it cannot be removed, it cannot be made.
        let _ = fs::remove_file(file);
        let mut made = fs::File::options().write(true).create_new(true).mode(0o600).open(file)?;
        writeln!(made, "{token}")
    };
    write().map_err(|error| Failure::user(format!("{} cannot be written: {error}", file.display())))?;
    Ok(token)
}

/// 122 random bits.
fn random() -> String {
    Uuid::new_v4().simple().to_string()
}
