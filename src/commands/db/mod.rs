//! `db`: checks, copies and migrates the database of the log.

mod backup;

use clap::Subcommand;
use crewlog_executors::checking;
use crewlog_mq::{Checked, Finding, KindStats};
use serde_json::json;

pub use self::backup::{Backup, backup};
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{count, date_time, rfc3339, visible};

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

pub async fn migrate(session: &Session) -> Result<Code, Failure> {
    // Opening brings the schema up to date, or says why that cannot be.
    let log = session.place.open().await?.log().await?;
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
