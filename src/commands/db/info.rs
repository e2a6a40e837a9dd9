//! `db info`: counts the events of the log.

use crewlog_mq::KindStats;
use serde_json::json;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{count, date_time, rfc3339, visible};

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
            writeln!(to, "from {} to {}", date_time(first), date_time(last))?;
        }
        stats.kinds.iter().try_for_each(|KindStats { stream_id, event_type, n_events }| {
            writeln!(to, "{n_events:>10}  {} {}", visible(stream_id), visible(event_type))
        })
    })
}
