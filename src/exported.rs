//! Reads an export: JSON values one after another, since data may hold line ends, one at a time in memory and none longer
//! than an event can be. The import checks whether they make a log.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crewlog_mq::{
    Error, LogIdentity, METADATA_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, Position, Recorded, TAGS_MAX, Timestamp,
};
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, StreamDeserializer, de::IoRead};
use uuid::Uuid;

use crate::json::{EXPORT, EventJson, ExportHeader};
use crate::text::{EPOCH, rfc3339};

/// The most bytes of one value: data, metadata, the names (each byte escaped, at the worst, in six), and the rest.
const VALUE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + METADATA_BYTES_MAX + 6 * NAME_BYTES_MAX * (TAGS_MAX + 4) + 4096;

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
    pub fn line(&self) -> usize {
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

/// A time in the form of exports.
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
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("crewlog-{}", crewlog_mq::new_event_id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
