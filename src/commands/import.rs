//! `import`: an export as a new log. One value at a time is in memory, and none is longer than an event can be. The import checks whether they make a log.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;
use crewlog_executors::consent;
use crewlog_mq::{
    Error, EventStore, LogIdentity, METADATA_BYTES_MAX, Memory, NAME_BYTES_MAX, Options, PAYLOAD_BYTES_MAX, Position,
    Recorded, TAGS_MAX, Timestamp,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, json};
use uuid::Uuid;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::{EXPORT, EventJson, ExportHeader};
use crate::ui::text::{count, moment_of};

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
    let before = consent::imported(&file).map_err(Failure::user)?;
    consent::note_import(&file, Position(i64::MAX)).map_err(Failure::user)?;
    let imported = store.import(identity.clone(), records).await;
    let up_to = imported.as_ref().map_or(before, |done| if done.n_added > 0 { done.head } else { before });
    consent::note_import(&file, up_to).map_err(Failure::user)?;
    let imported = imported.map_err(|error| {
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

/// The most bytes of one value: data, metadata, the names (each byte escaped, at the worst, in six), and the rest.
const VALUE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + METADATA_BYTES_MAX + 6 * NAME_BYTES_MAX * (TAGS_MAX + 4) + 4096;

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

/// An export after its header.
pub struct Exported {
    from: Box<dyn BufRead + Send>,
    n_line_ends: usize,
    /// The line in which the last value began, for error messages after the reader was given away.
    line: Arc<AtomicUsize>,
    head: Position,
    n_events: i64,
}

impl Exported {
    /// Reads the header: which log it is, and the reader of its events.
    pub fn begin(from: Box<dyn BufRead + Send>, line: &Arc<AtomicUsize>) -> Result<(LogIdentity, Self), Error> {
        let mut exported = Self { from, n_line_ends: 0, line: Arc::clone(line), head: Position(0), n_events: 0 };
        let header = exported.value()?.ok_or_else(|| invalid("it is empty"))?;
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

    /// The next value; `None` at the end. One that is too long to be an event is refused before it fills memory.
    fn value(&mut self) -> Result<Option<Box<RawValue>>, Error> {
        if !self.skip_space().map_err(|error| invalid(error.to_string()))? {
            return Ok(None);
        }
        self.line.store(self.n_line_ends + 1, Relaxed);
        let mut bounded = (&mut self.from).take(VALUE_BYTES_MAX as u64);
        match Box::<RawValue>::deserialize(&mut Deserializer::from_reader(&mut bounded)) {
            Ok(value) => {
                self.n_line_ends += n_line_ends(value.get().as_bytes());
                Ok(Some(value))
            }
            Err(error) if !error.is_eof() => Err(invalid(without_place(&error))),
            Err(_) if bounded.limit() > 0 => Err(invalid("it ends in the middle of a value")),
            Err(_) => Err(invalid(format!("a value exceeds the limit of {VALUE_BYTES_MAX} bytes for an event"))),
        }
    }

    /// Reads the white space before a value; false if the export ends there.
    fn skip_space(&mut self) -> io::Result<bool> {
        loop {
            let bytes = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let n_space = bytes.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
            let (is_end, is_value) = (bytes.is_empty(), n_space < bytes.len());
            self.n_line_ends += n_line_ends(&bytes[..n_space]);
            self.from.consume(n_space);
            if is_end || is_value {
                return Ok(is_value);
            }
        }
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, value: &'a RawValue) -> Result<T, String> {
        serde_json::from_str(value.get()).map_err(|error| {
            self.line.fetch_add(error.line().saturating_sub(1), Relaxed);
            without_place(&error)
        })
    }

    fn event(&mut self) -> Result<Option<Recorded>, Error> {
        let (n_events, head) = (self.n_events, self.head);
        let value = match self.value()? {
            Some(value) if n_events < head.0 => value,
            Some(_) => {
                return Err(invalid(format!("its header says that it ends at position {head}, and there is more")));
            }
            None if n_events < head.0 => {
                let reason = "it was cut off, or is that of one plan";
                return Err(invalid(format!("it ends after {n_events} of {head} events: {reason}")));
            }
            None => return Ok(None),
        };
        self.n_events += 1;
        let event: EventJson<'_> = self.parsed(&value).map_err(invalid)?;
        Ok(Some(Recorded {
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
        }))
    }
}

impl Iterator for Exported {
    type Item = Result<Recorded, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.event().transpose()
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
    moment_of(text)
        .ok_or_else(|| invalid(format!("created_at is {text:?}, not RFC 3339 in UTC with six digits of a second")))
}

fn n_line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
