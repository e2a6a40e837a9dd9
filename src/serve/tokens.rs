//! The commands of `serve`: tokens of programs that use the API, and new addresses of the page.

use std::path::Path;

use serde_json::json;

use crate::cli::programs::Scope;
use crate::commands::serve::{ServeCommand, Tokens};
use crate::context::Session;
use crate::serve::http::access::{Token, change, link, random, read};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{now, rfc3339, sha256};

/// The most tokens, and the longest name of a token.
const TOKENS_MAX: usize = 1_000;
const TOKEN_NAME_CHARS_MAX: usize = 64;

/// Carries out a command of `serve`.
pub async fn command(session: &Session, command: ServeCommand) -> Result<Code, Failure> {
    match command {
        ServeCommand::Tokens { command } => tokens(session, command).await,
        ServeCommand::Link => link(session).await,
    }
}

/// Lists the tokens, or changes them.
async fn tokens(session: &Session, command: Option<Tokens>) -> Result<Code, Failure> {
    // Tokens of a log that is not there would be lost, or become those of another.
    session.place.open().await?;
    let file = session.place.beside("tokens");
    match command {
        None => list(session, &file),
        Some(Tokens::Add { name, scope }) => add(session, &file, &name, scope).await,
        Some(Tokens::Revoke { name }) => revoke(session, &file, &name).await,
    }
}

/// Lists them, without their texts.
fn list(session: &Session, file: &Path) -> Result<Code, Failure> {
    let tokens = read(file)?;
    let json = |token: &Token| json!({ "name": token.name, "scopes": token.scopes, "created_at": token.created_at });
    session.print_list("tokens", json!({}), &tokens, json, |to, token| {
        let scopes: Vec<&str> = token.scopes.iter().map(Into::into).collect();
        writeln!(to, "{:<24}  {:<28}  {}", token.name, scopes.join(","), token.created_at)
    })
}

/// Creates a token and shows it, once.
async fn add(session: &Session, file: &Path, name: &str, mut scopes: Vec<Scope>) -> Result<Code, Failure> {
    session.person_only("make tokens").await?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > TOKEN_NAME_CHARS_MAX || !name.chars().all(is_name) {
        let form = format!("use 1 to {TOKEN_NAME_CHARS_MAX} letters, digits, dashes, dots and underscores");
        return Err(Failure::user(format!("invalid token name {name:?}: {form}")));
    }
    scopes.sort_unstable();
    scopes.dedup();
    let token = random();
    change(file, |tokens| {
        if tokens.iter().any(|token| token.name == name) {
            return Err(Failure::new(Code::Conflict, format!("there is a token {name} already"))
                .hint(session.command(&format!("serve tokens revoke {name}"))));
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(Failure::new(Code::Conflict, format!("there are {TOKENS_MAX} tokens, the most")));
        }
        let created_at = rfc3339(now());
        tokens.push(Token { name: name.to_owned(), sha256: sha256(&token), scopes: scopes.clone(), created_at });
        Ok(())
    })?;
    let json = json!({ "name": name, "token": token, "scopes": scopes });
    session.print_done(&format!("{token}\n(shown once; send it as Authorization: Bearer TOKEN)"), &json)
}

async fn revoke(session: &Session, file: &Path, name: &str) -> Result<Code, Failure> {
    session.person_only("revoke tokens").await?;
    change(file, |tokens| {
        let n_before = tokens.len();
        tokens.retain(|token| token.name != name);
        let missing = || Failure::new(Code::Nothing, format!("there is no token {name:?}"));
        if tokens.len() < n_before { Ok(()) } else { Err(missing().hint(session.command("serve tokens"))) }
    })?;
    session.print_done(&format!("{name} is revoked"), &json!({ "revoked": name }))
}
