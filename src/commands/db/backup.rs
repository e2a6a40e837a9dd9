//! `db backup`: copies the log into a new file.

use std::path::{Path, PathBuf};

use clap::Args;
use crewlog_mq::{Error, EventStore, Options, Query, Range, Stats};
use futures::StreamExt;
use serde_json::json;
use tokio::sync::mpsc;

use crate::commands::export::create_new;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::count;

/// Events that are read ahead of the copy.
const EVENTS_AHEAD: usize = 2000;

#[derive(Debug, Args)]
pub struct Backup {
    /// The file to make, a log that --store opens
    pub file: PathBuf,
}

pub async fn backup(session: &Session, file: &Path) -> Result<Code, Failure> {
    let from = session.place.open().await?.as_stored();
    let Some(path) = file.to_str() else {
        return Err(Failure::user(format!("{} is not a path in UTF-8", file.display())));
    };
    // Made here and now, so that of two who make it one is refused.
    create_new(file)?;
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
            Err(failure.hint(format!("no backup was made: {} was removed", file.display())))
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
