//! `db`: checks, copies and migrates the database of the log.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use crewlog_executors::checking;
use crewlog_mq::{Checked, Error, EventStore, Finding, KindStats, Options, Query, Range, Stats};
use futures::StreamExt;
use serde_json::json;
use tokio::runtime::Handle;

use crate::commands::export::create_new;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::{count, date_time, rfc3339, visible};
use crate::views::read_all;

#[derive(Debug, Subcommand)]
pub enum Db {
    /// Check that the log is sound; nothing is changed
    Check,
    /// Migrate the schema of the log, as opening the log does
    Migrate,
    /// Copy the log into a new file; others can keep writing
    Backup(Backup),
    /// Count the events of the log
    Info,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// The file to make, a log that --store opens
    pub file: PathBuf,
}

pub async fn check(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let log = store.log().await?.id;
    let checked = checking::check(&store).await?;
    let Checked { n_events, findings, n_foreign_causes, foreign_causes, more: _ } = &checked;
    let foreign = json!({ "count": n_foreign_causes, "positions": foreign_causes });
    let found = json!({ "log": log, "events": n_events, "findings": findings, "foreign_causes": foreign });
    session.print(&found, |to| {
        if findings.is_empty() {
            writeln!(to, "ok: {}, log {log}", count(*n_events, "event"))?;
        }
        if let Some(first) = foreign_causes.first() {
            writeln!(to, "note: causes outside this log: {n_foreign_causes}, the first at position {first}")?;
        }
        findings.iter().try_for_each(|Finding { position, what }| {
            let place = position.map_or("the log".to_owned(), |position| format!("position {position}"));
            writeln!(to, "{place}: {}", visible(what))
        })
    })?;
    Ok(if findings.is_empty() { Code::Done } else { Code::User })
}

/// Reads the views of each project once, which stores their snapshots for the commands and hooks that follow. A failure
/// only means that these take longer.
pub async fn warm_up(session: &Session, store: &EventStore) {
    let read = match session.place.liveness_lock() {
        Ok(life) => read_all(store, life.into()).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = read {
        say(&format!("warning: the first views of this log take longer: {failure}"));
    }
}

pub async fn migrate(session: &Session) -> Result<Code, Failure> {
    // Opening brings the schema up to date, or says why that cannot be.
    let store = session.place.open().await?;
    let log = store.log().await?;
    warm_up(session, &store).await;
    let store = session.place.shown();
    let text = format!("{store} is up to date (log {}, format {})", log.id, log.format);
    session.print_done(&text, &json!({ "store": store, "log": log.id, "format": log.format }))
}

pub async fn info(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (log, stats) = (store.log().await?, store.stats().await?);
    let (first, last) = stats.span.unzip();
    let json = json!({
        "log": log.id, "head": stats.head, "aggregates": stats.n_aggregates, "cells": stats.n_cells,
        "bytes": stats.n_bytes, "first_at": first.map(rfc3339), "last_at": last.map(rfc3339),
        "kinds": stats.kinds,
    });
    session.print(&json, |to| {
        writeln!(to, "log {}", log.id)?;
        let events = count(stats.head.0 as usize, "event");
        let aggregates = count(stats.n_aggregates as usize, "aggregate");
        writeln!(to, "{events} of {aggregates}, {} bytes, {}", stats.n_bytes, count(stats.n_cells as usize, "cell"))?;
        if let Some((first, last)) = stats.span {
            writeln!(to, "from {} to {}", date_time(first), date_time(last))?;
        }
        stats.kinds.iter().try_for_each(|KindStats { stream_id, event_type, n_events }| {
            writeln!(to, "{n_events:>10}  {} {}", visible(stream_id), visible(event_type))
        })
    })
}

pub async fn backup(session: &Session, file: &Path) -> Result<Code, Failure> {
    let from = session.place.open().await?.as_stored();
    let Some(path) = file.to_str() else {
        return Err(Failure::user(format!("{} is not a path in UTF-8", file.display())));
    };
    // Made here and now, so that of two who make it one is refused.
    create_new(file)?;
    match copy(session, &from, path).await {
        Ok(stats) => {
            let head = stats.head.0;
            let text = format!("{} copied to {}", count(head as usize, "event"), file.display());
            session.say_outputs_stay();
            session.print_done(&text, &json!({ "file": path, "head": head, "bytes": stats.n_bytes }))
        }
        Err(error) => {
            for suffix in ["", "-wal", "-shm", "-lock", "-bell"] {
                // The rest of it is useless; a failure to remove it does not change the error.
                let _ = std::fs::remove_file(format!("{path}{suffix}"));
            }
            let failure = Failure::from(error);
            Err(failure.hint(format!("no backup was made: {} was removed", file.display())))
        }
    }
}

/// A log in a new file with every event that the other has now.
async fn copy(session: &Session, from: &EventStore, path: &str) -> Result<Stats, Error> {
    // An absolute path is not read as a URL.
    let path = std::path::absolute(path).map_or(path.into(), |path| path.to_string_lossy().into_owned());
    let to = EventStore::open_with(&path, Options::default()).await?;
    let (identity, head, runtime) = (from.log().await?, from.head().await?, Handle::current());
    let mut events = from.records(&Query::all(), Range::up_to(head)).boxed();
    // The import reads on a thread of its own.
    to.import(identity, std::iter::from_fn(move || runtime.block_on(events.next()))).await?;
    warm_up(session, &to).await;
    let stats = to.stats().await?;
    // Now it is one file, which can be taken elsewhere.
    to.close().await;
    Ok(stats)
}
