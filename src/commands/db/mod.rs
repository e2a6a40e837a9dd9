//! `db`: checks, copies and migrates the database of the log.

mod backup;
mod check;

use clap::Subcommand;
use crewlog_mq::KindStats;
use serde_json::json;

pub use self::backup::{Backup, backup};
pub use self::check::check;
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
