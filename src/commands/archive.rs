//! `export`, `import`, and the database of the log: `db check`, `migrate`, `backup`, `info`. An export is JSON values one after another, since data may hold line ends; one at a time
//! is in memory, and none is longer than an event can be. The import checks whether they make a log.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crewlog_mq::{
    Checked, Error, Event, EventStore, FINDINGS_MAX, Finding, KindStats, LogIdentity, METADATA_BYTES_MAX, Memory,
    NAME_BYTES_MAX, Options, PAYLOAD_BYTES_MAX, Position, Query, Range, Recorded, Stats, TAGS_MAX, Timestamp,
};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::conflicts::{self, ConflictEvent};
use crewlog_planner::crew::statistics::{self, StatisticsEvent};
use crewlog_planner::event;
use crewlog_planner::model::{self, CallEvent};
use crewlog_planner::sealed::{self, KeyEvent};
use futures::StreamExt;
use futures::future::OptionFuture;
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, StreamDeserializer, de::IoRead, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::{EXPORT, EventJson, ExportHeader, print_line};
use crate::ui::text::{EPOCH, count, rfc3339, visible};
use crate::views::queries::{find_plan, for_each};

/// The most bytes of one value: data, metadata, the names (each byte escaped, at the worst, in six), and the rest.
const VALUE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + METADATA_BYTES_MAX + 6 * NAME_BYTES_MAX * (TAGS_MAX + 4) + 4096;

/// Events that are read ahead of the copy.
const EVENTS_AHEAD: usize = 2000;

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

/// An export after its header.
pub struct Exported {
    values: StreamDeserializer<'static, IoRead<Bounded>, Box<RawValue>>,
    progress: Arc<Progress>,
    head: Position,
    n_events: i64,
}

/// The place of the reader in a file, for error messages after the reader was given away.
#[derive(Default)]
pub struct Progress {
    n_line_ends: AtomicUsize,
    /// Bytes that the current value may still have; white space before it does not count.
    n_left: AtomicUsize,
    /// The line in which the current value began.
    line: AtomicUsize,
}

impl Progress {
    /// The line in which the last value began; 1 before the first.
    fn line(&self) -> usize {
        self.line.load(Relaxed).max(1)
    }
}

impl Exported {
    /// Reads the header: which log it is, and the reader of its events.
    pub fn begin(from: Box<dyn Read + Send>, progress: &Arc<Progress>) -> Result<(LogIdentity, Self), Error> {
        let bounded = Bounded { from, progress: Arc::clone(progress) };
        let values = Deserializer::from_reader(bounded).into_iter();
        let mut exported = Self { values, progress: Arc::clone(progress), head: Position(0), n_events: 0 };
        let header = exported.value().unwrap_or_else(|| Err(invalid("it is empty")))?;
        let no_header = |error| invalid(format!("it does not begin with the header of an export: {error}"));
        let header: ExportHeader = exported.parsed(&header).map_err(no_header)?;
        if header.export != EXPORT {
            let found = header.export;
            return Err(invalid(format!("its form has version {found}, and this program reads {EXPORT}")));
        }
        if header.head < Position(0) {
            return Err(invalid(format!("head is {}, and no log ends there", header.head)));
        }
        let (id, created_at) = (uuid("log", &header.log)?, moment(&header.created_at)?);
        exported.head = header.head;
        Ok((LogIdentity { id, format: header.format, created_at }, exported))
    }

    fn value(&mut self) -> Option<Result<Box<RawValue>, Error>> {
        self.progress.n_left.store(VALUE_BYTES_MAX, Relaxed);
        let value = self.values.next()?;
        Some(value.map_err(|error| {
            invalid(if error.is_eof() { "it ends in the middle of a value".to_owned() } else { without_place(&error) })
        }))
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, value: &'a RawValue) -> Result<T, String> {
        serde_json::from_str(value.get()).map_err(|error| {
            let line = self.progress.line() + error.line().saturating_sub(1);
            self.progress.line.store(line, Relaxed);
            without_place(&error)
        })
    }

    fn event(&self, value: &RawValue) -> Result<Recorded, Error> {
        let event: EventJson<'_> = self.parsed(value).map_err(invalid)?;
        Ok(Recorded {
            position: event.position,
            event_id: uuid("event_id", &event.event_id)?,
            stream_id: event.stream_id.into(),
            aggregate_id: event.aggregate_id.into(),
            sequence: event.sequence,
            event_type: event.event_type.into(),
            event_version: event.event_version.into(),
            data: event.data.get().to_owned(),
            metadata: event.metadata.get().to_owned(),
            tags: event.tags.into(),
            created_at: moment(&event.created_at)?,
            append_start: event.append_start.ok_or_else(|| invalid("missing field `append_start`"))?,
        })
    }
}

impl Iterator for Exported {
    type Item = Result<Recorded, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (n_events, head) = (self.n_events, self.head);
        match self.value() {
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(_)) if n_events == head.0 => {
                Some(Err(invalid(format!("its header says that it ends at position {head}, and there is more"))))
            }
            Some(Ok(value)) => {
                self.n_events += 1;
                Some(self.event(&value))
            }
            None if n_events == head.0 => None,
            None => {
                let reason =
                    format!("it ends after {n_events} of {head} events: it was cut off, or is that of one plan");
                Some(Err(invalid(reason)))
            }
        }
    }
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::InvalidImport { position: None, reason: reason.into() }
}

/// The message of serde without its place, which counts from the start of the value.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).map_or_else(|| text.clone(), str::to_owned)
}

/// An id in the form of exports, so that an export gives the same bytes again.
fn uuid(key: &str, text: &str) -> Result<Uuid, Error> {
    let id = Uuid::try_parse(text).ok().filter(|id| id.to_string() == text);
    id.ok_or_else(|| invalid(format!("{key} is {text:?}, not a UUID in small letters with dashes")))
}

fn moment(text: &str) -> Result<Timestamp, Error> {
    let parsed = text.strip_suffix('Z').and_then(|text| text.parse::<DateTime>().ok());
    let micros = parsed.and_then(|moment| i64::try_from(moment.duration_since(EPOCH).as_micros()).ok());
    let moment = micros.map(Timestamp).filter(|moment| rfc3339(*moment) == text);
    moment.ok_or_else(|| invalid(format!("created_at is {text:?}, not RFC 3339 in UTC with six digits of a second")))
}

/// Counts the bytes read, and refuses a value that is too long to be an event.
struct Bounded {
    from: Box<dyn Read + Send>,
    progress: Arc<Progress>,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Progress { n_line_ends, n_left, line } = &*self.progress;
        if n_left.load(Relaxed) == 0 && !into.is_empty() {
            return Err(io::Error::other(format!(
                "a value is longer than {VALUE_BYTES_MAX} bytes, the most of an event"
            )));
        }
        let n_wanted = into.len().min(n_left.load(Relaxed));
        let n_read = self.from.read(&mut into[..n_wanted])?;
        for byte in &into[..n_read] {
            let has_begun = n_left.load(Relaxed) < VALUE_BYTES_MAX;
            if has_begun || !byte.is_ascii_whitespace() {
                n_left.store(n_left.load(Relaxed) - 1, Relaxed);
                if !has_begun {
                    line.store(n_line_ends.load(Relaxed) + 1, Relaxed);
                }
            }
            if *byte == b'\n' {
                n_line_ends.store(n_line_ends.load(Relaxed) + 1, Relaxed);
            }
        }
        Ok(n_read)
    }
}

/// An empty private file that is deleted when its process ends, even by a crash.
fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("crewlog-{}", crewlog_mq::new_event_id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
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
