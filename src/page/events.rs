//! What happened: the tail of the log, and pages of it.

use askama::Template;
use crewlog_mq::{Position, Query, Range, Recorded};
use serde_json::Value;

use super::look::Look;
use super::words::{Markup, clock_of, cut, grouped};
use crate::failure::Failure;
use crate::views::EventFilter;

/// Rows of the tail, and of a page.
const TAIL_ROWS: usize = 40;
const PAGE_ROWS: usize = 100;
/// The most events that are read for one page.
const READ_MAX: usize = 3_000;
/// Events that only say that somebody is there.
const SIGNS_OF_LIFE: [&str; 5] = ["AgentSeen", "LeaseRenewed", "LeasesRenewed", "MessagesOffered", "MessagesRead"];
/// Longer data is not read for the sake of a line.
const DATA_BYTES_MAX: usize = 100_000;
const WORDS_CHARS_MAX: usize = 140;
/// Where data says who it is about.
const SUBJECTS: [&str; 6] =
    ["/agent", "/ask/agent", "/holder/agent", "/request/holder/agent", "/message/from/agent", "/executor/name"];
/// Where data says what happened, the most telling first.
const SAYS: [&str; 22] = [
    "/error",
    "/question",
    "/answer/text",
    "/answer",
    "/ask/text",
    "/message/subject",
    "/progress/step",
    "/report/step",
    "/report/activity",
    "/result",
    "/summary",
    "/note",
    "/reason",
    "/name",
    "/request/targets/0/path",
    "/target/path",
    "/path",
    "/pattern",
    "/executor/name",
    "/status",
    "/profile/program",
    "/tasks/0/description",
];

#[derive(Template)]
#[template(path = "events.html", whitespace = "minimize")]
struct Card {
    is_tail: bool,
    all: String,
    hidden: Vec<(&'static str, String)>,
    scope: String,
    event_type: String,
    q: String,
    older: Option<String>,
    newest: Option<String>,
    rows: Vec<Row>,
}

struct Row {
    position: Position,
    number: String,
    href: String,
    clock: Markup,
    event_type: String,
    subject: String,
    words: String,
    is_open: bool,
}

/// The tail of the log.
pub async fn tail(look: &Look<'_>) -> Result<Markup, Failure> {
    card(look, true).await
}

/// A page of events that match.
pub async fn page(look: &Look<'_>) -> Result<Markup, Failure> {
    card(look, false).await
}

async fn card(look: &Look<'_>, is_tail: bool) -> Result<Markup, Failure> {
    let (rows, older) = rows(look, if is_tail { TAIL_ROWS } else { PAGE_ROWS }).await?;
    if rows.is_empty() && is_tail {
        return Ok(Markup::default());
    }
    let given = |key| look.asked.get(key).unwrap_or_default().to_owned();
    Ok(Markup::of(&Card {
        is_tail,
        all: look.link(&[("tab", "events")]),
        hidden: look.asked.except(&["scope", "type", "q", "before"]),
        scope: given("scope"),
        event_type: given("type"),
        q: given("q"),
        older: older.map(|before| look.link(&[("before", &before.to_string())])),
        newest: look.asked.get("before").map(|_| look.link(&[("before", "")])),
        rows,
    }))
}

/// The newest events that match, the oldest of them first, and the position before which there are more.
async fn rows(look: &Look<'_>, n_rows: usize) -> Result<(Vec<Row>, Option<Position>), Failure> {
    let scope = look.asked.get("scope").unwrap_or_default();
    let plan = look.plan.as_ref().map(|plan| plan.id.clone()).filter(|_| scope == "plan");
    let query = Query::all();
    let query = look.asked.get("type").map_or(query.clone(), |event_type| query.of_type(event_type.trim()));
    let has_type = look.asked.get("type").is_some();
    let filter = EventFilter { plan, query };
    let words = look.asked.get("q").map(str::to_lowercase);
    let is_meant = |event: &Recorded| {
        let says = |words: &String| {
            event.data.to_lowercase().contains(words)
                || event.event_type.to_lowercase().contains(words)
                || event.aggregate_id.to_lowercase().contains(words)
        };
        let is_sign = SIGNS_OF_LIFE.contains(&event.event_type.as_str());
        (has_type || scope == "all" || !is_sign) && words.as_ref().is_none_or(says)
    };
    let up_to = look.asked.number("before").map_or(look.shown.at, |before| Position((before - 1).max(0)));
    let (mut found, mut n_read, mut rest) = (Vec::new(), 0, Some(Range::up_to(up_to).backwards()));
    while let Some(range) = rest.filter(|_| found.len() < n_rows && n_read < READ_MAX) {
        let page = look.shown.events(&filter, range, n_rows * 2).await?;
        n_read += page.events.len().max(1);
        rest = range.rest(&page);
        found.extend(page.events.into_iter().filter(is_meant));
    }
    let has_more = rest.is_some() || found.len() > n_rows;
    found.truncate(n_rows);
    found.reverse();
    let older = found.first().map(|first| first.position).filter(|_| has_more);
    Ok((found.iter().map(|event| row(look, event)).collect(), older))
}

fn row(look: &Look<'_>, event: &Recorded) -> Row {
    let data = match event.data.len() {
        0..=DATA_BYTES_MAX => serde_json::from_str(&event.data).unwrap_or_default(),
        _longer => Value::Null,
    };
    let text = |places: &[&str]| {
        let found = places.iter().filter_map(|place| data.pointer(place)?.as_str());
        // A text that the log keeps elsewhere is a reference, which says nothing to a person.
        found.map(str::to_owned).find(|text| !text.is_empty() && !text.starts_with('\u{1}'))
    };
    let subject = match event.stream_id.as_str() {
        "task" => Some(look.name_of_task(&event.aggregate_id)),
        "planner" => {
            let task = data.pointer("/task_id").and_then(Value::as_u64);
            task.map(|task| look.name_of_task(&format!("{}/{task}", event.aggregate_id)))
        }
        _crew => text(&SUBJECTS),
    };
    let words = match &data {
        Value::Null => event.data.clone(),
        _read => text(&SAYS).unwrap_or_default(),
    };
    Row {
        position: event.position,
        number: grouped(event.position.0),
        href: look.link_event(event.position),
        clock: clock_of(event.created_at),
        event_type: cut(&event.event_type, 60),
        subject: cut(&subject.unwrap_or_else(|| event.aggregate_id.clone()), 40),
        words: cut(&words, WORDS_CHARS_MAX),
        is_open: look.asked.number("event") == Some(event.position.0),
    }
}
