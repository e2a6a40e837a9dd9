//! `events`: prints the log, filtered, from either end, or as it grows. It appends and executes nothing.

use std::io::Write;

use clap::Args;
use crewlog_executors::exports::EventJson;
use crewlog_executors::history::History;
use crewlog_mq::{EventStore, Position, Query, Range, Recorded, Start, Timestamp};
use crewlog_planner::event::plan_tag;
use futures::{StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::cli::typed;
use crate::cli::typed::moment;
use crate::context::{ListPrinter, Session};
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use crate::ui::terminal::{Output, say};
use crate::ui::text::{one_line, utc, visible};
use crate::views::TaskNames;
use crate::views::names::{Choice, find_plan};
use crate::views::queries::records_of;

#[derive(Debug, Args)]
pub struct Events {
    /// Only this plan and its tasks
    pub plan: Option<String>,
    /// After this position
    #[arg(long, value_name = "POSITION", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub after: i64,
    /// Up to and including this position
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub up_to: Option<i64>,
    /// Made at this time or later (2026-11-21T10:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Made at this time or before
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Timestamp>,
    /// Newest first
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Wait for more events
    #[arg(short, long, conflicts_with_all = ["up_to", "until"])]
    pub follow: bool,
    /// Only the last N of them
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    #[command(flatten)]
    pub filter: EventFilter,
    /// The event with this id, its causes and all events that followed from it
    #[arg(long, value_name = "ID", conflicts_with_all = ["plan", "follow", "last", "after", "up_to", "since", "until", "EventFilter"])]
    pub causes: Option<Uuid>,
}

#[derive(Debug, Args)]
pub struct EventFilter {
    /// Of this stream
    #[arg(long, value_name = "STREAM")]
    pub stream: Option<String>,
    /// Of this aggregate
    #[arg(long, value_name = "ID")]
    pub aggregate: Option<String>,
    /// Of this type; repeat for any of several
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Vec<String>,
    /// With this tag; repeat to require several
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Of this correlation
    #[arg(long, value_name = "ID")]
    pub correlation: Option<Uuid>,
    /// Caused directly by this event
    #[arg(long, value_name = "ID")]
    pub caused_by: Option<Uuid>,
    /// With this id
    #[arg(long, value_name = "ID")]
    pub id: Option<Uuid>,
    /// A query as JSON, in place of the options above: {"stream_id": ..., "or": [...]}
    #[arg(long, value_name = "JSON", value_parser = typed::query, conflicts_with_all = ["stream", "aggregate", "event_type", "tag", "correlation", "caused_by", "id"])]
    pub filter: Option<Query>,
}

const NONE: &str = "no event of this log matches";

pub async fn events(session: &Session, events: Events) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let query = query(events.filter);
    let plan = match &events.plan {
        Some(plan) => Some(find_plan(session, &store, plan, Choice::Viewed).await?),
        None => None,
    };
    let mut range = Range {
        after: Position(events.after),
        up_to: events.up_to.map(Position),
        since: events.since,
        until: events.until,
        backwards: events.reverse,
    };
    if let Some(n) = events.last {
        let last = Range { backwards: true, ..range };
        let records = records_of(&store, plan.as_deref(), &query, last).await?;
        let first = std::pin::pin!(records.skip(n as usize - 1)).try_next().await?;
        range.after = first.map_or(range.after, |first| Position(first.position.0 - 1));
    }
    if events.follow {
        let mut signals = Signals::new()?;
        return tokio::select! {
            ended = follow(session, &store, plan.as_deref(), query, range) => ended,
            () = signals.next() => Ok(Code::Interrupted),
        };
    }
    let mut printer = EventPrinter::new(session, &store);
    if let Some(event_id) = events.causes {
        let Some(mut trace) = store.trace(event_id).await? else {
            return Err(Failure::new(Code::Nothing, format!("no event has the id {event_id}")));
        };
        if events.reverse {
            trace.events.reverse();
        }
        for recorded in &trace.events {
            printer.print(recorded).await?;
        }
        if trace.more {
            say(&format!("there is more than these {} events: trace one of the last", trace.events.len()));
        }
        return printer.list.end(NONE);
    }
    let mut records = records_of(&store, plan.as_deref(), &query, range).await?;
    while let Some(recorded) = records.try_next().await? {
        printer.print(&recorded).await?;
    }
    printer.list.end(NONE)
}

/// Prints the log and then new events, until the program is ended.
async fn follow(
    session: &Session,
    store: &EventStore,
    plan: Option<&str>,
    mut query: Query,
    Range { after, since, .. }: Range,
) -> Result<Code, Failure> {
    if let Output::Json = session.output {
        return Err(Failure::user("one JSON document has an end, and --follow has none").hint("take -o jsonl"));
    }
    // Both bounds hold: one is where the stream begins, the other is checked for each event.
    let start = since.filter(|_| after == Position(0)).map_or(Start::After(after), Start::At);
    let mut printer = EventPrinter::new(session, store);
    if let Some(plan) = plan {
        // Only a fork's own events are new; those of its parents are read once.
        let history = History::of(store, plan).await?;
        let up_to = history.parent().map_or(Position(0), |(_, shared)| shared);
        let mut records = std::pin::pin!(history.records(store, &query, Range { after, since, ..Range::up_to(up_to) }));
        while let Some(recorded) = records.try_next().await? {
            printer.print(&recorded).await?;
        }
        printer.list.flush()?;
        query = query.and_tag(plan_tag(plan));
    }
    let mut records = std::pin::pin!(store.follow(&query, start));
    while let Some(item) = records.next().await {
        match item {
            Ok(recorded) if since.is_none_or(|since| recorded.created_at >= since) => {
                printer.print(&recorded).await?;
                printer.list.flush()?;
            }
            Ok(_) => {}
            Err(error) if error.is_final() => return Err(error.into()),
            // The stream continues by itself.
            Err(error) => say(&visible(&format!("warning: {error}"))),
        }
    }
    printer.list.end(NONE)
}

/// The query of the options: all of them must match.
fn query(options: EventFilter) -> Query {
    let EventFilter { stream, aggregate, event_type, tag, correlation, caused_by, id, filter } = options;
    let query = Query {
        stream_id: stream.unwrap_or_default(),
        aggregate_id: aggregate,
        tags: tag,
        event_id: id,
        correlation_id: correlation,
        causation_id: caused_by,
        ..Query::default()
    };
    let query = if event_type.is_empty() { query } else { query.of_types(event_type.iter().map(String::as_str)) };
    filter.unwrap_or(query)
}

/// Prints events; as text under the names of their tasks.
struct EventPrinter<'a> {
    list: ListPrinter<'a>,
    /// For text only.
    names: Option<TaskNames>,
}

impl<'a> EventPrinter<'a> {
    fn new(session: &'a Session, store: &EventStore) -> Self {
        let names = (session.output == Output::Text).then(|| TaskNames::on(store));
        Self { list: ListPrinter::new(session, "\"events\""), names }
    }

    async fn print(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let subject = match &mut self.names {
            Some(names) => names.subject(recorded).await?,
            None => String::new(),
        };
        self.list.print(&EventJson::of(recorded)?, |to| print_text(to, recorded, &subject))
    }
}

fn print_text(mut to: impl Write, recorded: &Recorded, subject: &str) -> std::io::Result<()> {
    let Recorded { position, stream_id, event_type, created_at, data, .. } = recorded;
    let subject = visible(&format!("{stream_id} {subject}"));
    let (moment, event_type, data) = (utc(*created_at), visible(event_type), one_line(data, 100));
    writeln!(to, "{position:>6}  {moment}  {subject:<36}  {event_type:<22}  {data}")
}
