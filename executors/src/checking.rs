//! Checks that a log is sound, and that the events of plans and of what follows from them can be read.

use std::collections::BTreeSet;
use std::pin::pin;

use crewlog_mq::{Checked, Error, Event, EventStore, FINDINGS_MAX, Finding, Query, Range, Recorded};
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::crew::conflicts::ConflictEvent;
use crewlog_planner::crew::statistics::StatisticsEvent;
use crewlog_planner::crew::{conflicts, statistics};
use crewlog_planner::model::CallEvent;
use crewlog_planner::sealed::KeyEvent;
use crewlog_planner::{claim, event, model, sealed};
use futures::TryStreamExt;

/// Checks a log as [`EventStore::check`] does, and that each event of plans, tasks, models, conflicts, statistics and keys
/// can be read and no fork lacks its parent. It changes nothing.
///
/// # Errors
/// A fault of the log.
pub async fn check(store: &EventStore) -> Result<Checked, Error> {
    let mut checked = store.check().await?;
    let mut found = Vec::new();
    // The unreadable event is usually a finding already.
    if let Err(error) = check_events(store, &checked, &mut found).await
        && checked.findings.is_empty()
    {
        found.push(Finding { position: None, what: error.to_string() });
    }
    checked.findings.extend(found);
    checked.findings.sort_by_key(|finding| finding.position);
    if checked.more || checked.findings.len() > FINDINGS_MAX {
        checked.findings.truncate(FINDINGS_MAX);
        let what = format!("there is more than these {FINDINGS_MAX}: mend them, or import an export, and check again");
        checked.findings.push(Finding { position: None, what });
    }
    Ok(checked)
}

/// Adds a finding for each event of crewlog's own streams that cannot be decoded, and for each fork without a parent.
async fn check_events(store: &EventStore, checked: &Checked, found: &mut Vec<Finding>) -> Result<(), Error> {
    let known: BTreeSet<_> = checked.findings.iter().filter_map(|finding| finding.position).collect();
    let mut begun = BTreeSet::new();
    let mut records = pin!(store.records(&Query::all(), Range::default()));
    while let Some(recorded) = records.try_next().await? {
        let decoded = match &*recorded.stream_id {
            event::STREAM => decode::<event::Event>(&recorded),
            claim::STREAM => decode::<TaskEvent>(&recorded),
            model::STREAM => decode::<CallEvent>(&recorded),
            conflicts::STREAM => decode::<ConflictEvent>(&recorded),
            statistics::STREAM => decode::<StatisticsEvent>(&recorded),
            sealed::STREAM => decode::<KeyEvent>(&recorded),
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
    }
    Ok(())
}

fn decode<T: Event>(recorded: &Recorded) -> Result<(), Error> {
    recorded.decode::<T>()?;
    recorded.metadata()?;
    Ok(())
}
