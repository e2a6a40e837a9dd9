//! `import`: an export as a new log. One value at a time is in memory, and none is longer than an event can be. The import checks whether they make a log.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;
use crewlog_executors::crew::project;
use crewlog_executors::exports::Exported;
use crewlog_mq::{Error, EventStore, LogIdentity, Memory, Options, Position, Recorded};
use serde_json::json;

use crate::commands::db::warm_up;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::count;

#[derive(Debug, Args)]
pub struct Import {
    /// The export; - for standard input
    pub file: PathBuf,
}

pub async fn import(session: &Session, file: &Path) -> Result<Code, Failure> {
    let from = open(file)?;
    let line = Arc::new(AtomicUsize::new(1));
    let refused = |error| refusal(file, &line, error);
    // Detects most invalid or partial exports before a log is created for them.
    let (identity, records) = begin(from, &line).await.map_err(refused)?;
    let (store, is_new) = session.place.open_or_make().await?;
    // The decisions of others do not count here. Until the import has ended, none does.
    let file = session.place.beside("imported");
    let before = project::imported(&file).map_err(Failure::user)?;
    project::note_import(&file, Position(i64::MAX)).map_err(Failure::user)?;
    let imported = store.import(identity.clone(), records).await;
    let up_to = imported.as_ref().map_or(before, |done| if done.n_added > 0 { done.head } else { before });
    project::note_import(&file, up_to).map_err(Failure::user)?;
    let imported = imported.map_err(|error| {
        let failure = refused(error);
        let made = format!("the log at {} was made for it, and is empty", session.place.shown());
        if is_new { failure.hint(made) } else { failure }
    })?;
    warm_up(session, &store).await;
    let (store, log, head) = (session.place.shown(), identity.id, imported.head);
    let (added, known) = (imported.n_added, imported.n_known);
    let new = count(added, "event");
    session.print_done(
        &format!("{new} added, {known} known already; {store} (log {log}) ends at position {head}"),
        &json!({ "store": store, "log": log, "added": added, "known": known, "head": head }),
    )
}

/// The import, in a file.
fn open(path: &Path) -> Result<File, Failure> {
    let opened = if path == Path::new("-") {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(path)
    };
    let opened = opened.map_err(|error| {
        Failure::user(format!("{} cannot be read: {error}", name(path)))
            .hint("give the path of what `crewlog export --to FILE` wrote, or - for standard input")
    })?;
    let is_file = opened.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file { Ok(opened) } else { keep(opened, path) }
}

/// Copies a pipe or a terminal to a file first: its input may come slowly, and an import blocks all appends.
///
/// The file has no name, so that even a crash deletes it. It is in the system's temporary folder: the log's own may not be
/// there yet, and `TMPDIR` names another.
fn keep(mut from: File, path: &Path) -> Result<File, Failure> {
    let folder = std::env::temp_dir();
    let kept = tempfile::tempfile_in(&folder).and_then(|mut kept| {
        io::copy(&mut from, &mut kept)?;
        kept.rewind()?;
        Ok(kept)
    });
    kept.map_err(|error| {
        let (name, folder) = (name(path), folder.display());
        Failure::user(format!("cannot buffer {name} in {folder}: {error}; nothing was imported"))
            .hint("name a folder with more room in TMPDIR, or write the export to a file and import that")
    })
}

/// Begins to read, and imports the beginning into a throw-away log.
async fn begin(
    from: impl Read + Send + 'static,
    line: &Arc<AtomicUsize>,
) -> Result<(LogIdentity, impl Iterator<Item = Result<Recorded, Error>> + Send + 'static), Error> {
    let (identity, mut events) = Exported::begin(Box::new(BufReader::new(from)), line)?;
    let first = events.next().transpose()?;
    let rehearsal = EventStore::on(Memory::new(Options::default()));
    rehearsal.import(identity.clone(), first.clone().into_iter().map(Ok)).await?;
    Ok((identity, first.into_iter().map(Ok).chain(events)))
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

fn refusal(file: &Path, line: &AtomicUsize, error: Error) -> Failure {
    let hint = match &error {
        Error::ImportGap { .. } => {
            "this looks like the export of one plan: `crewlog export` without a plan writes the whole log"
        }
        Error::InvalidImport { .. } => {
            "export the log again with `crewlog export --to FILE`, and import the file as it is"
        }
        Error::OtherLog { .. } | Error::Forked { .. } => "with --store PATH it can be imported into a new log",
        Error::NewerFormat { .. } => "or export the log with this version, where it can still be read",
        _ => return error.into(),
    };
    let name = name(file);
    let place = match &error {
        Error::OtherLog { .. } | Error::NewerFormat { .. } => name,
        _ => format!("{name}, line {}", line.load(Relaxed)),
    };
    Failure::new(Failure::from(error.clone()).code, format!("{place}: {error}; nothing was imported")).hint(hint)
}
