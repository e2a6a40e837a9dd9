//! `events`: the log as it stands, filtered, from either end, and as it grows. Nothing here appends or executes anything.

use std::io::{BufWriter, Write};

use crewlog_executors::history::History;
use crewlog_mq::{EventStore, Position, Query, Range, Recorded, Start};
use crewlog_planner::event::plan_tag;
use futures::{StreamExt, TryStreamExt};

use crate::cli::{EventFilter, Events, Output};
use crate::failure::{Code, Failure};
use crate::json::{EventJson, print_line};
use crate::queries::{find_plan, for_each, for_each_of};
use crate::session::Session;
use crate::terminal::say;
use crate::text::{one_line, rfc3339, visible};

pub async fn events(session: &Session, events: Events) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let query = query(&events.filter);
    let plan = match &events.plan {
        Some(plan) => Some(find_plan(&store, plan).await?),
        None => None,
    };
    if events.follow {
        return follow(session, &store, plan.as_deref(), query, &events).await;
    }
    let mut printer = Printer::begin(session)?;
    if let Some(event_id) = events.causes {
        let Some(trace) = store.trace(event_id).await? else {
            return Err(Failure::new(Code::Nothing, format!("no event has the id {event_id}")));
        };
        let ordered: Box<dyn Iterator<Item = _>> =
            if events.reverse { Box::new(trace.events.iter().rev()) } else { Box::new(trace.events.iter()) };
        ordered.into_iter().try_for_each(|recorded| printer.print(recorded))?;
        if trace.more {
            say(&format!("there is more than these {} events: trace one of the last", trace.events.len()));
        }
        return printer.end();
    }
    let range = Range {
        after: Position(events.after),
        up_to: events.up_to.map(Position),
        since: events.since,
        until: events.until,
        backwards: events.reverse,
    };
    match &plan {
        Some(plan) => for_each_of(&store, plan, &query, range, |recorded| printer.print(recorded)).await?,
        None => for_each(&store, &query, range, |recorded| printer.print(recorded)).await?,
    }
    printer.end()
}

/// Prints what is there and then what comes, until the program is ended.
async fn follow(
    session: &Session,
    store: &EventStore,
    plan: Option<&str>,
    query: Query,
    events: &Events,
) -> Result<Code, Failure> {
    if let Output::Json = session.output {
        return Err(Failure::user("one JSON document has an end, and --follow has none").hint("take -o jsonl"));
    }
    // Both bounds hold: the one is where it begins, the other is asked of each event.
    let after = Position(events.after);
    let start = events.since.filter(|_| after == Position(0)).map_or(Start::After(after), Start::At);
    let mut printer = Printer::begin(session)?;
    let mut query = query;
    if let Some(plan) = plan {
        // What a fork goes on from is as it is; only its own events still come.
        let shared = Range { after, since: events.since, ..Range::default() };
        let history = History::of(store, plan).await?;
        let mut records = std::pin::pin!(history.shared(store, &query, shared));
        while let Some(recorded) = records.try_next().await? {
            printer.print(&recorded)?;
        }
        printer.stdout.flush()?;
        query = query.and_tag(plan_tag(plan));
    }
    let mut records = std::pin::pin!(store.follow(&query, start));
    while let Some(item) = records.next().await {
        match item {
            Ok(recorded) if events.since.is_none_or(|since| recorded.created_at >= since) => {
                printer.print(&recorded)?;
                printer.stdout.flush()?;
            }
            Ok(_) => {}
            // It goes on by itself.
            Err(error) => say(&visible(&format!("warning: {error}"))),
        }
    }
    printer.end()
}

/// What the options say, all together.
fn query(filter: &EventFilter) -> Query {
    if let Some(query) = &filter.filter {
        return query.clone();
    }
    let query = Query {
        stream_id: filter.stream.clone().unwrap_or_default(),
        aggregate_id: filter.aggregate.clone(),
        tags: filter.tag.clone(),
        event_id: filter.id,
        correlation_id: filter.correlation,
        causation_id: filter.caused_by,
        ..Query::default()
    };
    query.of_types(filter.event_type.iter().map(String::as_str))
}

/// Events on standard output.
struct Printer {
    output: Output,
    is_quiet: bool,
    stdout: BufWriter<std::io::Stdout>,
    n_printed: usize,
}

impl Printer {
    fn begin(session: &Session) -> Result<Self, Failure> {
        let output = session.output;
        let mut stdout = BufWriter::new(std::io::stdout());
        if let Output::Json = output {
            write!(stdout, "{{\"events\": [")?;
        }
        Ok(Self { output, is_quiet: session.terminal.is_quiet, stdout, n_printed: 0 })
    }

    fn print(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        match self.output {
            Output::Jsonl => print_line(&mut self.stdout, &EventJson::of(recorded)?)?,
            Output::Json => {
                write!(self.stdout, "{}\n  ", if self.n_printed == 0 { "" } else { "," })?;
                serde_json::to_writer(&mut self.stdout, &EventJson::of(recorded)?)?;
            }
            Output::Text => print_event(&mut self.stdout, recorded)?,
        }
        self.n_printed += 1;
        Ok(())
    }

    fn end(mut self) -> Result<Code, Failure> {
        if let Output::Json = self.output {
            writeln!(self.stdout, "\n]}}")?;
        }
        self.stdout.flush()?;
        if self.n_printed == 0 {
            if !self.is_quiet {
                say("no event of this log is so");
            }
            return Ok(Code::Nothing);
        }
        Ok(Code::Done)
    }
}

fn print_event(mut to: impl Write, recorded: &Recorded) -> std::io::Result<()> {
    let Recorded { position, stream_id, aggregate_id, event_type, created_at, data, .. } = recorded;
    let aggregate = visible(&format!("{stream_id} {aggregate_id}"));
    let (moment, event_type, data) = (rfc3339(*created_at), visible(event_type), one_line(data, 100));
    writeln!(to, "{position:>6}  {moment}  {aggregate:<36}  {event_type:<22}  {data}")
}
