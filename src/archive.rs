//! `export`, `import`, `db check`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use crewlog_mq::{
    Checked, Error, Event, EventStore, FINDINGS_MAX, Finding, LogIdentity, Memory, Options, Query, Range, Recorded,
};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::conflicts::{self, ConflictEvent};
use crewlog_planner::crew::statistics::{self, StatisticsEvent};
use crewlog_planner::event;
use crewlog_planner::model::{self, CallEvent};
use crewlog_planner::sealed::{self, KeyEvent};
use futures::future::OptionFuture;
use serde_json::json;

use crate::exported::{Exported, Progress, nameless_file};
use crate::failure::{Code, Failure};
use crate::json::{EventJson, ExportHeader, print_line};
use crate::queries::{find_plan, for_each};
use crate::session::Session;
use crate::text::{count, visible};

pub async fn export(session: &Session, plan: Option<&str>, to: Option<&Path>) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let plan = OptionFuture::from(plan.map(|plan| find_plan(&store, plan))).await.transpose()?;
    let to: Box<dyn Write> = match to {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => Box::new(File::create_new(path).map_err(|error| {
            Failure::user(format!("{} cannot be made: {error}", path.display())).hint("name a file that does not exist")
        })?),
    };
    let mut to = BufWriter::new(to);
    let head = store.head().await?;
    print_line(&mut to, &ExportHeader::of(&store.log().await?, head))?;
    // Includes the history shared by a fork, so that the export can be read alone.
    for_each(&store, plan.as_deref(), &Query::all(), Range::up_to(head), |recorded| {
        let event = EventJson { append_start: Some(recorded.append_start), ..EventJson::of(recorded)? };
        Ok(print_line(&mut to, &event)?)
    })
    .await?;
    to.flush()?;
    Ok(Code::Done)
}

pub async fn import(session: &Session, file: &Path) -> Result<Code, Failure> {
    let from = open(file)?;
    let progress = Arc::new(Progress::default());
    let refused = |error| refusal(file, &progress, error);
    // Detects most invalid or partial exports before a log is created for them.
    let (identity, records) = begin(from, &progress).await.map_err(refused)?;
    let (store, is_new) = session.place.open_or_make().await?;
    let imported = store.import(identity.clone(), records).await.map_err(|error| {
        let failure = refused(error);
        let made = format!("the log at {} was made for it, and is empty", session.place.shown());
        if is_new { failure.hint(made) } else { failure }
    })?;
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
/// The file is in the system's temporary folder: the log's own may not be there yet, and `TMPDIR` names another.
fn keep(mut from: File, path: &Path) -> Result<File, Failure> {
    let folder = std::env::temp_dir();
    let kept = nameless_file(&folder).and_then(|mut kept| {
        io::copy(&mut from, &mut kept)?;
        kept.rewind()?;
        Ok(kept)
    });
    kept.map_err(|error| {
        let (name, folder) = (name(path), folder.display());
        Failure::user(format!("{name} cannot be kept in {folder} meanwhile: {error}; nothing was imported"))
            .hint("name a folder with more room in TMPDIR, or write the export to a file and import that")
    })
}

/// Begins to read, and imports the beginning into a log that nobody keeps.
async fn begin(
    from: impl Read + Send + 'static,
    progress: &Arc<Progress>,
) -> Result<(LogIdentity, impl Iterator<Item = Result<Recorded, Error>> + Send + 'static), Error> {
    let (identity, mut events) = Exported::begin(Box::new(BufReader::new(from)), progress)?;
    let first = events.next().transpose()?;
    let rehearsal = EventStore::on(Memory::new(Options::default()));
    rehearsal.import(identity.clone(), first.clone().into_iter().map(Ok)).await?;
    Ok((identity, first.into_iter().map(Ok).chain(events)))
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

fn refusal(file: &Path, progress: &Progress, error: Error) -> Failure {
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
        _ => format!("{name}, line {}", progress.line()),
    };
    Failure::new(Failure::from(error.clone()).code, format!("{place}: {error}; nothing was imported")).hint(hint)
}

pub async fn check(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let log = store.log().await?.id;
    let mut checked = store.check().await?;
    check_events(&store, &mut checked).await;
    let Checked { n_events, findings, n_foreign_causes, foreign_causes, more: _ } = &checked;
    let found: Vec<_> =
        findings.iter().map(|found| json!({ "position": found.position, "what": found.what })).collect();
    let foreign = json!({ "count": n_foreign_causes, "positions": foreign_causes });
    let found = json!({ "log": log, "events": n_events, "findings": found, "foreign_causes": foreign });
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

/// Adds a finding for each event of crewlog's own streams that cannot be decoded.
async fn check_events(store: &EventStore, checked: &mut Checked) {
    let known: BTreeSet<_> = checked.findings.iter().filter_map(|finding| finding.position).collect();
    let (mut begun, mut found) = (BTreeSet::new(), Vec::new());
    let query = Query::all();
    let read = for_each(store, None, &query, Range::default(), |recorded| {
        let decoded = match &*recorded.stream_id {
            event::STREAM => decode::<event::Event>(recorded),
            claim::STREAM => decode::<TaskEvent>(recorded),
            model::STREAM => decode::<CallEvent>(recorded),
            conflicts::STREAM => decode::<ConflictEvent>(recorded),
            statistics::STREAM => decode::<StatisticsEvent>(recorded),
            sealed::STREAM => decode::<KeyEvent>(recorded),
            _others => Ok(()),
        };
        let error = decoded.err().filter(|_| !known.contains(&recorded.position)).map(|error| error.to_string());
        let mut orphan = None;
        if recorded.stream_id == event::STREAM {
            if recorded.event_type == "PlanForked"
                && let Ok(event::Event::PlanForked { parent, .. }) = recorded.decode()
                && !begun.contains(&parent)
            {
                orphan = Some(format!("this is a fork of {parent}, and there is no such plan before it"));
            }
            begun.insert(recorded.aggregate_id.clone());
        }
        let room = (FINDINGS_MAX + 1).saturating_sub(found.len());
        let what = error.into_iter().chain(orphan).take(room);
        found.extend(what.map(|what| Finding { position: Some(recorded.position), what }));
        Ok(())
    });
    // The unreadable event is usually a finding already.
    if let Err(failure) = read.await
        && checked.findings.is_empty()
    {
        found.push(Finding { position: None, what: failure.to_string() });
    }
    checked.findings.extend(found);
    checked.findings.sort_by_key(|finding| finding.position);
    if checked.more || checked.findings.len() > FINDINGS_MAX {
        checked.findings.truncate(FINDINGS_MAX);
        let what = format!("there is more than these {FINDINGS_MAX}: mend them, or import an export, and check again");
        checked.findings.push(Finding { position: None, what });
    }
}

fn decode<T: Event>(recorded: &Recorded) -> Result<(), Error> {
    recorded.decode::<T>()?;
    recorded.metadata()?;
    Ok(())
}
