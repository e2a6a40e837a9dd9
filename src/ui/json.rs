//! The stable JSON of the command line (`docs/json.md`). All keys are always there; absent values are null or empty.

use std::borrow::Cow;
use std::io::{self, Write};

use crewlog_mq::{Position, Recorded};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ui::failure::Failure;
use crate::ui::text::rfc3339;

/// An event as one line of `events`, with `data` and `metadata` as the writer's bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventJson<'a> {
    pub position: Position,
    pub event_id: Cow<'a, str>,
    pub stream_id: Cow<'a, str>,
    pub aggregate_id: Cow<'a, str>,
    pub sequence: i64,
    pub event_type: Cow<'a, str>,
    pub event_version: Cow<'a, str>,
    pub data: Cow<'a, RawValue>,
    pub metadata: Cow<'a, RawValue>,
    pub tags: Cow<'a, [String]>,
    pub created_at: String,
    /// Set in exports: only an import needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_start: Option<Position>,
}

impl<'a> EventJson<'a> {
    pub fn of(recorded: &'a Recorded) -> Result<Self, Failure> {
        let raw = |what: &str, text: &'a str| {
            let wrong =
                |error| format!("the {what} of the event at position {} is not JSON: {error}", recorded.position);
            serde_json::from_str(text).map(Cow::Borrowed).map_err(|error| Failure::user(wrong(error)))
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
    pub export: u32,
    pub log: String,
    pub format: i64,
    pub created_at: String,
    pub head: Position,
}

pub fn print_pretty(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, value)?;
    writeln!(to)
}

pub fn print_line(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut to, value)?;
    writeln!(to)
}
