//! `db check`: checks that the log is sound; nothing is changed.

use std::collections::BTreeSet;

use crewlog_mq::{Checked, Error, Event, EventStore, FINDINGS_MAX, Finding, Query, Range, Recorded};
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::crew::conflicts::ConflictEvent;
use crewlog_planner::crew::statistics::StatisticsEvent;
use crewlog_planner::crew::{conflicts, statistics};
use crewlog_planner::model::CallEvent;
use crewlog_planner::sealed::KeyEvent;
use crewlog_planner::{claim, event, model, sealed};
use serde_json::json;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{count, visible};
use crate::views::queries::for_each;

pub async fn check(session: &Session) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let log = store.log().await?.id;
    let mut checked = store.check().await?;
    check_events(&store, &mut checked).await;
    let Checked { n_events, findings, n_foreign_causes, foreign_causes, more: _ } = &checked;
    let foreign = json!({ "count": n_foreign_causes, "positions": foreign_causes });
    let found = json!({ "log": log, "events": n_events, "findings": findings, "foreign_causes": foreign });
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
