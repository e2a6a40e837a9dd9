//! Pages of events.

use askama::Template;
use crewlog_mq::{Position, Query, Range, Recorded};
use crewlog_planner::event::plan_tag;
use serde_json::Value;

use super::look::Look;
use super::words::{self, Markup, cut};
use crate::ui::failure::Failure;
use crate::views::TaskNames;

/// The rows of a page.
const PAGE_ROWS: usize = 100;
/// The most events that are read for one page.
const READ_MAX: usize = 3_000;
/// Events that only show that an agent or worker is alive.
const SIGNS_OF_LIFE: [&str; 2] = ["MessagesOffered", "MessagesRead"];
/// Longer data is not parsed for a line.
const DATA_BYTES_MAX: usize = 100_000;
/// The fields that name the subject of an event.
const SUBJECTS: [&str; 6] =
    ["/agent", "/ask/agent", "/holder/agent", "/request/holder/agent", "/message/from/agent", "/executor/name"];
/// The fields that describe an event, most informative first.
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
#[template(path = "events.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Events<'a> {
    look: &'a Look<'a>,
    older: Option<Position>,
    /// Each event with its subject and its description.
    rows: Vec<(Recorded, String, String)>,
}

/// The events of the plan or of all that match the address.
pub async fn events(look: &Look<'_>) -> Result<Markup, Failure> {
    let (events, older) = matching(look).await?;
    let (mut rows, mut names) = (Vec::new(), TaskNames::up_to(look.shown.at, look.shown.store()));
    for event in events {
        let subject = names.subject(&event).await?;
        let (subject, words) = in_words(look, &event, &subject);
        rows.push((event, subject, words));
    }
    Ok(Markup::of(&Events { look, older, rows }))
}

/// The newest matching events, oldest first, and the position before which there are more.
async fn matching(look: &Look<'_>) -> Result<(Vec<Recorded>, Option<Position>), Failure> {
    let scope = look.asked.get("scope").unwrap_or_default();
    let event_type = look.asked.get("type").map(|event_type| event_type.trim().to_owned());
    let tags = look.plan.iter().map(|plan| plan_tag(&plan.id)).collect();
    let query = Query { event_type, tags, ..Query::all() };
    let words = look.asked.get("q").map(str::to_lowercase);
    let is_meant = |event: &Recorded| {
        let texts = [&event.data, &event.event_type, &event.aggregate_id];
        let says = |words: &String| texts.iter().any(|text| text.to_lowercase().contains(words));
        let is_sign = SIGNS_OF_LIFE.contains(&event.event_type.as_str());
        (query.event_type.is_some() || scope == "all" || !is_sign) && words.as_ref().is_none_or(says)
    };
    let up_to = look.asked.number("before").map_or(look.shown.at, |before| Position((before - 1).max(0)));
    let (mut found, mut n_read, mut rest) = (Vec::new(), 0, Some(Range::up_to(up_to).backwards()));
    while let Some(range) = rest.filter(|_| found.len() < PAGE_ROWS && n_read < READ_MAX) {
        let page = look.shown.events(&query, range, PAGE_ROWS * 2).await?;
        n_read += page.events.len().max(1);
        rest = range.rest(&page);
        found.extend(page.events.into_iter().filter(is_meant));
    }
    let has_more = rest.is_some() || found.len() > PAGE_ROWS;
    found.truncate(PAGE_ROWS);
    found.reverse();
    let older = found.first().map(|first| first.position).filter(|_| has_more);
    Ok((found, older))
}

/// The subject and the description of an event. `subject` is the task, or else the aggregate.
fn in_words(look: &Look<'_>, event: &Recorded, subject: &str) -> (String, String) {
    let data = match event.data.len() {
        0..=DATA_BYTES_MAX => serde_json::from_str(&event.data).unwrap_or_default(),
        _longer => Value::Null,
    };
    let text = |places: &[&str]| {
        let found = places.iter().filter_map(|place| data.pointer(place)?.as_str());
        // A text that the log stores elsewhere is a reference, which means nothing to a person.
        found.map(str::to_owned).find(|text| !text.is_empty() && !text.starts_with('\u{1}'))
    };
    let is_of_plan = matches!(event.stream_id.as_str(), "task" | "planner");
    let of_crew = if is_of_plan { None } else { text(&SUBJECTS) };
    let subject = of_crew.unwrap_or_else(|| look.name_of_task(subject));
    let words = if data.is_null() { event.data.clone() } else { text(&SAYS).unwrap_or_default() };
    (cut(&subject, 40), cut(&words, 140))
}
