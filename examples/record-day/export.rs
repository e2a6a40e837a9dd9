//! Writes a log in the form of `crewlog export`, compressed.

use std::io::Write;

use crewlog_mq::{EventStore, PAGE_EVENTS_MAX, Query, Range, Recorded, Timestamp};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp as Moment;

use crate::Result;

/// Writes the log, and returns the number of its events.
pub async fn write(store: &EventStore, to: impl Write) -> Result<usize> {
    let store = store.clone().as_stored();
    let (log, head) = (store.log().await?, store.head().await?);
    let mut to = GzEncoder::new(to, Compression::best());
    let (id, created_at) = (text(&log.id.to_string())?, text(&rfc3339(log.created_at)?)?);
    let format = log.format;
    writeln!(to, r#"{{"export":1,"log":{id},"format":{format},"created_at":{created_at},"head":{head}}}"#)?;
    let (mut n_events, mut rest) = (0, Some(Range::up_to(head)));
    while let Some(range) = rest {
        let page = store.read(&Query::all(), range, PAGE_EVENTS_MAX).await?;
        n_events += page.events.len();
        page.events.iter().try_for_each(|recorded| line(&mut to, recorded))?;
        rest = range.rest(&page);
    }
    to.finish()?.flush()?;
    Ok(n_events)
}

/// An event with its keys in the order of an export, and its data as stored.
fn line(to: &mut impl Write, recorded: &Recorded) -> Result {
    let Recorded { position, sequence, data, metadata, append_start, .. } = recorded;
    let (event, stream) = (text(&recorded.event_id.to_string())?, text(&recorded.stream_id)?);
    let (aggregate, kind) = (text(&recorded.aggregate_id)?, text(&recorded.event_type)?);
    let (version, tags) = (text(&recorded.event_version)?, serde_json::to_string(&recorded.tags)?);
    let created_at = text(&rfc3339(recorded.created_at)?)?;
    writeln!(
        to,
        r#"{{"position":{position},"event_id":{event},"stream_id":{stream},"aggregate_id":{aggregate},"sequence":{sequence},"event_type":{kind},"event_version":{version},"data":{data},"metadata":{metadata},"tags":{tags},"created_at":{created_at},"append_start":{append_start}}}"#
    )?;
    Ok(())
}

fn text(text: &str) -> Result<String> {
    Ok(serde_json::to_string(text)?)
}

fn rfc3339(at: Timestamp) -> Result<String> {
    Ok(format!("{:.6}", Moment::from_microsecond(at.0)?))
}
