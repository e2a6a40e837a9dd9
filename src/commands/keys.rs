//! `keys`: the operator's keys, and the keys of plans. Only destroying one appends: that it was destroyed.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use crewlog_executors::keys::{
    KeyReport, Keys as KeyFiles, Rotated, asked_before, make_operator_key, plans_of, record_destroyed,
};
use crewlog_mq::{EventStore, Query, Range};
use crewlog_planner::sealed::TAG;
use crewlog_planner::state::Phase;
use crewlog_planner::{model, sealed};
use serde_json::json;

use crate::consent::confirm;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::{count, shell_word, visible};
use crate::views::names::{Choice, find_plan};
use crate::views::queries;

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make an operator's key in a new file; with it new plans are sealed
    New {
        /// The file to make
        file: PathBuf,
    },
    /// List the keys of sealed plans, and their state
    Ls,
    /// Destroy the key of a plan, and with it the texts of the plan and its forks, for good
    Destroy {
        /// The plan; or a text that a model was asked about, or a key, as `keys ls` names it
        plan: String,
    },
    /// Wrap the keys of all plans under another operator's key
    Rotate {
        /// The file with the other operator's key
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

pub async fn keys(session: &Session, keys: Keys) -> Result<Code, Failure> {
    match keys {
        Keys::New { file } => make(session, &file),
        Keys::Ls => list(session).await,
        Keys::Destroy { plan } => destroy(session, &plan).await,
        Keys::Rotate { to } => rotate(session, &to).await,
    }
}

fn open(session: &Session) -> Result<KeyFiles, Failure> {
    session.place.keys.open(session.place.keys_folder())
}

fn make(session: &Session, path: &Path) -> Result<Code, Failure> {
    let fingerprint = make_operator_key(path)
        .map_err(|error| Failure::from(error).hint("name a file that does not exist, in a folder that does"))?;
    let file = path.to_string_lossy();
    session.print_done(
        &format!("made {file} (operator key {fingerprint})"),
        &json!({ "key_file": file, "operator": fingerprint }),
    )?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    session.suggest("keep a copy elsewhere: sealed texts cannot be read without it. New plans are sealed with it:");
    session.suggest(&format!("  export CREWLOG_KEY_FILE={}", shell_word(&path.to_string_lossy())));
    Ok(Code::Done)
}

async fn list(session: &Session) -> Result<Code, Failure> {
    // The log tells where they are.
    session.place.open().await?;
    let reports = open(session)?.list()?;
    let width = reports.iter().map(|report| report.session.len()).max().unwrap_or(0);
    session.print_list(
        "keys",
        json!({}),
        &reports,
        |report| report,
        |to, KeyReport { name, session, state, .. }| {
            writeln!(to, "{:<width$}  {name}  {}", visible(session), visible(&state.to_string()))
        },
    )
}

async fn destroy(session: &Session, typed: &str) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let keys = open(session)?;
    let Doomed { plan, key, plans, tags } = doomed(session, &store, &keys, typed).await?;
    if !session.yes {
        session.remark(&format!("the texts of {} could never be read again", plans.join(", ")));
    }
    confirm(session, "Destroy the key?", "nothing was destroyed")?;
    let is_new = keys.destroy(&key, &plan)?;
    record_destroyed(&store, &key, &plans, tags).await?;
    let did = if is_new { "destroyed" } else { "already destroyed:" };
    session.print_done(
        &format!("{did} the key of {}", plans.join(", ")),
        &json!({ "plan": plan, "key": key, "plans": plans, "was_destroyed": !is_new }),
    )?;
    if !session.terminal.is_quiet {
        for open in open_of(&store, &plans).await {
            let cancel = session.command_on("cancel", &open);
            say(&visible(&format!("{open} has not ended and can no longer run; to end it: {cancel}")));
        }
        for other in asked_before(&store, &plan, &key).await? {
            let destroy = session.command_on("keys destroy", &other);
            say(&format!("a model was asked about the same text before, which has a key of its own: {destroy}"));
        }
    }
    Ok(Code::Done)
}

/// The plans that have not ended, without unreadable ones: their key is gone.
async fn open_of(store: &EventStore, plans: &[String]) -> Vec<String> {
    let mut open = Vec::new();
    for plan in plans {
        match queries::load_view(store, plan, Range::default()).await {
            Ok(view) if !matches!(view.state().phase, Phase::Empty | Phase::Ended(_)) => open.push(plan.clone()),
            Ok(_) | Err(_) => {}
        }
    }
    open
}

struct Doomed {
    plan: String,
    key: String,
    /// All that are sealed with it.
    plans: Vec<String>,
    /// Of their events.
    tags: Vec<String>,
}

/// The key of a plan, of a text that a model was asked about, or a key by its own name.
async fn doomed(session: &Session, store: &EventStore, keys: &KeyFiles, typed: &str) -> Result<Doomed, Failure> {
    let no_plan = match find_plan(session, store, typed, Choice::Sole).await {
        Ok(plan) => {
            let tags = queries::tags_of(store, &plan).await?;
            let Some(key) = sealed::key_of(&tags).map(str::to_owned) else {
                let message = format!("{plan} is not sealed, so there is no key of it");
                return Err(Failure::new(Code::Nothing, message).hint("plans are sealed that are made with a key file"));
            };
            let plans = plans_of(store, &key).await?;
            return Ok(Doomed { plan, key, plans, tags });
        }
        Err(failure) => failure,
    };
    let asked = store.read(&Query::aggregate(model::STREAM, typed), Range::default(), 1).await?.events.pop();
    let tags = asked.map(|asked| asked.tags).unwrap_or_default();
    if let Some(key) = sealed::key_of(&tags).map(str::to_owned) {
        return Ok(Doomed { plan: typed.to_owned(), key, plans: vec![typed.to_owned()], tags });
    }
    let log = store.log().await?.id;
    let is_named = |report: &KeyReport| report.log == log && (report.name == typed || report.session == typed);
    let Some(KeyReport { name: key, session, .. }) = keys.list()?.into_iter().find(is_named) else {
        return Err(no_plan);
    };
    // Of a plan, by the name of its key.
    let plans = plans_of(store, &key).await?;
    let plans = if plans.is_empty() { vec![session.clone()] } else { plans };
    Ok(Doomed { plan: session, tags: vec![format!("{TAG}{key}")], key, plans })
}

async fn rotate(session: &Session, to: &Path) -> Result<Code, Failure> {
    session.place.open().await?;
    if !session.place.keys.is_given() {
        return Err(Failure::user("the operator key that is to be replaced is not given")
            .hint("name its file with --key-file or CREWLOG_KEY_FILE"));
    }
    let rotated = open(session)?.rotate(to)?;
    let Rotated { fingerprint, n_wrapped, n_left, not_wrapped } = &rotated;
    let wrapped = count(*n_wrapped, "key");
    let text = format!("{wrapped} wrapped under operator key {fingerprint}, {n_left} left as they were");
    session.print_done(&text, &json!(rotated))?;
    if not_wrapped.is_empty() {
        return Ok(Code::Done);
    }
    let message = format!("the keys of these are under another operator key, or damaged: {}", not_wrapped.join(", "));
    Err(Failure::user(message).hint("`crewlog keys ls` lists them; repeat this with the right --key-file"))
}
