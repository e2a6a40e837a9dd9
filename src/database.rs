//! Maintenance of the database: `db migrate`, `db backup`, `db info`. No event is appended.

use std::path::Path;

use crewlog_mq::{Error, EventStore, KindStats, Options, Query, Range, Stats};
use futures::StreamExt;
use serde_json::json;
use tokio::sync::mpsc;

use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::text::{count, rfc3339, visible};

/// Events that are read ahead of the copy.
const EVENTS_AHEAD: usize = 2000;

pub async fn migrate(session: &Session) -> Result<Code, Failure> {
    // Opening brings the schema up to date, or says why that cannot be.
    let log = session.place.open().await?.log().await?;
    let store = session.place.shown();
    let text = format!("{store} is up to date (log {}, format {})", log.id, log.format);
    session.print_done(&text, &json!({ "store": store, "log": log.id, "format": log.format }))
}

pub async fn backup(session: &Session, file: &Path) -> Result<Code, Failure> {
    let from = session.place.open().await?.as_stored();
    let Some(path) = file.to_str() else {
        return Err(Failure::user(format!("{} is no path in UTF-8", file.display())));
    };
    // Made here and now, so that of two who make it one is refused.
    std::fs::File::create_new(file).map_err(|error| {
        Failure::user(format!("{} cannot be made: {error}", file.display())).hint("name a file that does not exist")
    })?;
    match copy(&from, path).await {
        Ok(stats) => {
            let head = stats.head.0;
            let text = format!("{} copied to {}", count(head as usize, "event"), file.display());
            session.print_done(&text, &json!({ "file": path, "head": head, "bytes": stats.n_bytes }))
        }
        Err(error) => {
            for suffix in ["", "-wal", "-shm", "-lock", "-bell"] {
                // The rest of it is useless; a failure to remove it does not change the error.
                let _ = std::fs::remove_file(format!("{path}{suffix}"));
            }
            let failure = Failure::from(error);
            Err(failure.hint(format!("there is no backup: {} was removed again", file.display())))
        }
    }
}

/// A log in a new file with every event that the other has now.
async fn copy(from: &EventStore, path: &str) -> Result<Stats, Error> {
    // An absolute path is not read as a URL.
    let path = std::path::absolute(path).map_or(path.into(), |path| path.to_string_lossy().into_owned());
    let to = EventStore::open_with(&path, Options::default()).await?;
    let (identity, head) = (from.log().await?, from.head().await?);
    let (reader, mut given) = mpsc::channel(EVENTS_AHEAD);
    let reading = {
        let events = from.records(&Query::all(), Range::up_to(head));
        tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                if reader.send(event).await.is_err() {
                    return;
                }
            }
        })
    };
    let records = std::iter::from_fn(move || given.blocking_recv());
    let imported = to.import(identity, records).await;
    reading.abort();
    imported?;
    let stats = to.stats().await?;
    // Now it is one file, which can be taken elsewhere.
    to.close().await;
    Ok(stats)
}

pub async fn info(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (log, stats) = (store.log().await?, store.stats().await?);
    let kinds = stats.kinds.iter().map(|KindStats { stream_id, event_type, n_events }| {
        json!({ "stream_id": stream_id, "event_type": event_type, "events": n_events })
    });
    let (first, last) = stats.span.unzip();
    let json = json!({
        "log": log.id, "head": stats.head, "aggregates": stats.n_aggregates, "cells": stats.n_cells,
        "bytes": stats.n_bytes, "first_at": first.map(rfc3339), "last_at": last.map(rfc3339),
        "kinds": kinds.collect::<Vec<_>>(),
    });
    session.print(&json, |to| {
        writeln!(to, "log {}", log.id)?;
        let events = count(stats.head.0 as usize, "event");
        let aggregates = count(stats.n_aggregates as usize, "aggregate");
        writeln!(to, "{events} of {aggregates}, {} bytes, {}", stats.n_bytes, count(stats.n_cells as usize, "cell"))?;
        if let Some((first, last)) = stats.span {
            writeln!(to, "from {} to {}", rfc3339(first), rfc3339(last))?;
        }
        stats.kinds.iter().try_for_each(|KindStats { stream_id, event_type, n_events }| {
            writeln!(to, "{n_events:>10}  {} {}", visible(stream_id), visible(event_type))
        })
    })
}
