//! The form of an export, one line for the log and one for each event, and its reader.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crewlog_mq::{
    Error, LogIdentity, METADATA_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, Position, Recorded, TAGS_MAX, Timestamp,
};
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Deserializer;
use serde_json::value::RawValue;
use uuid::Uuid;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
/// The most bytes of one value: data, metadata, the names (each byte escaped, at the worst, in six), and the rest.
const VALUE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + METADATA_BYTES_MAX + 6 * NAME_BYTES_MAX * (TAGS_MAX + 4) + 4096;

/// An event as one line of `events`, with `data` and `metadata` as the writer's bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventJson<'a> {
    /// Its place in the log.
    pub position: Position,
    /// Its id, a UUID.
    pub event_id: Cow<'a, str>,
    /// Its stream.
    pub stream_id: Cow<'a, str>,
    /// Its aggregate in the stream.
    pub aggregate_id: Cow<'a, str>,
    /// Its number in the aggregate, from 1.
    pub sequence: i64,
    /// Its type.
    pub event_type: Cow<'a, str>,
    /// The version of its form.
    pub event_version: Cow<'a, str>,
    /// Its data, as they were written.
    pub data: Cow<'a, RawValue>,
    /// Its metadata, as they were written.
    pub metadata: Cow<'a, RawValue>,
    /// Its tags.
    pub tags: Cow<'a, [String]>,
    /// When it was appended, in RFC 3339.
    pub created_at: String,
    /// Set in exports: only an import needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_start: Option<Position>,
}

impl<'a> EventJson<'a> {
    /// Of a recorded event.
    ///
    /// # Errors
    /// Its data or metadata are not JSON.
    pub fn of(recorded: &'a Recorded) -> serde_json::Result<Self> {
        let raw = |what: &str, text: &'a str| {
            let position = recorded.position;
            let wrong = |error| format!("the {what} of the event at position {position} is not JSON: {error}");
            serde_json::from_str(text).map(Cow::Borrowed).map_err(|error| serde_json::Error::custom(wrong(error)))
        };
        Ok(Self {
            position: recorded.position,
            event_id: recorded.event_id.to_string().into(),
            stream_id: (&recorded.stream_id).into(),
            aggregate_id: (&recorded.aggregate_id).into(),
            sequence: recorded.sequence,
            event_type: (&recorded.event_type).into(),
            event_version: (&recorded.event_version).into(),
            data: raw("data", &recorded.data)?,
            metadata: raw("metadata", &recorded.metadata)?,
            tags: (&recorded.tags).into(),
            created_at: rfc3339(recorded.created_at),
            append_start: None,
        })
    }
}

/// The version of the form of exports.
pub const EXPORT: u32 = 1;

/// The first line of an export.
#[derive(Serialize, Deserialize)]
pub struct ExportHeader {
    /// The version of the form, [`EXPORT`].
    pub export: u32,
    /// The id of the log.
    pub log: String,
    /// The version of the log's format.
    pub format: i64,
    /// When the log was made, in RFC 3339.
    pub created_at: String,
    /// The position of its last event.
    pub head: Position,
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
    ///
    /// # Errors
    /// An invalid header, or another form of exports.
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

/// RFC 3339 in UTC, with microseconds. [`jiff::Timestamp`] would end a day before the largest time of a log.
pub fn rfc3339(moment: Timestamp) -> String {
    match EPOCH.checked_add(SignedDuration::from_micros(moment.0)) {
        Ok(moment) => format!("{moment:.6}Z"),
        Err(_) => format!("{} us", moment.0),
    }
}

/// The moment that [`rfc3339`] wrote.
pub fn moment_of(text: &str) -> Option<Timestamp> {
    let moment: DateTime = text.strip_suffix('Z')?.parse().ok()?;
    let moment = Timestamp(i64::try_from(moment.duration_since(EPOCH).as_micros()).ok()?);
    (rfc3339(moment) == text).then_some(moment)
}
