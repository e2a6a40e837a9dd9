//! Checks in one snapshot whether a log keeps its promises. It changes nothing; a broken promise is a finding, not an error.

use sqlx::Row;
use uuid::Uuid;

use super::read::Snapshot;
use super::rows::{recorded, recorded_columns};
use crate::check::Check;
use crate::limits::{FINDINGS_MAX, PAGE_EVENTS_MAX};
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::Checked;

/// Inconsistencies between tables, the first of each query, in position order.
const TABLES: [&str; 3] = [
    "SELECT NULL::bigint, 'aggregate ' || stream_id || '/' || aggregate_id || ' has no event' FROM aggregates AS a \
     WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.aggregate = a.aggregate) ORDER BY aggregate LIMIT $1",
    "SELECT position, 'the sequence in its aggregate is ' || sequence || ', and before it comes ' || before FROM ( \
         SELECT position, sequence, coalesce(lag(sequence) OVER aggregates, 0) AS before, \
                coalesce(lag(position) OVER aggregates, 0) AS place \
         FROM events WINDOW aggregates AS (PARTITION BY aggregate ORDER BY sequence)) AS places \
     WHERE sequence != before + 1 OR position <= place ORDER BY position LIMIT $1",
    "SELECT e.position, 'the index of kinds has it as ' || coalesce(k.stream_id || ' ' || k.event_type, 'nothing') \
     FROM events AS e JOIN aggregates AS a ON a.aggregate = e.aggregate LEFT JOIN kinds AS k ON k.kind = e.kind \
     WHERE (k.stream_id, k.event_type) IS DISTINCT FROM (a.stream_id, e.event_type) ORDER BY e.position LIMIT $1",
];

/// Checks the whole log.
pub(super) async fn run(snapshot: &mut Snapshot<'_>) -> sqlx::Result<Checked> {
    let mut check = Check::default();
    for sql in TABLES {
        let limit = i64::try_from(FINDINGS_MAX + 1).unwrap_or(i64::MAX);
        for row in snapshot.rows(snapshot.log.statement(sql).bind(limit)).await? {
            check.find(row.try_get::<Option<i64>, _>(0)?.map(Position), row.try_get(1)?);
        }
    }
    superfluous_tags(snapshot, &mut check).await?;
    events(snapshot, &mut check).await?;
    Ok(check.end())
}

/// Finds rows in the index of tags whose event lacks the tag.
async fn superfluous_tags(snapshot: &mut Snapshot<'_>, check: &mut Check) -> sqlx::Result<()> {
    let sql = "SELECT t.tag, t.position, e.tags FROM tags AS t LEFT JOIN events AS e ON e.position = t.position \
         WHERE (t.tag, t.position) > ($1, $2) ORDER BY t.tag, t.position LIMIT $3";
    let (mut after, mut n_found) = ((String::new(), 0_i64), 0);
    loop {
        let statement = snapshot.log.statement(sql).bind(after.0).bind(after.1).bind(page_limit());
        let rows = snapshot.rows(statement).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = (last.try_get(0)?, last.try_get(1)?);
        for row in &rows {
            let (tag, position): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            let tags: Option<&str> = row.try_get(2)?;
            let tags: Vec<String> = tags.and_then(|tags| serde_json::from_str(tags).ok()).unwrap_or_default();
            if !tags.contains(&tag) {
                check.find(Some(Position(position)), format!("the index of tags has {tag}, and the event has it not"));
                n_found += 1;
            }
        }
        if n_found > FINDINGS_MAX {
            return Ok(());
        }
    }
}

/// Checks the events one by one.
async fn events(snapshot: &mut Snapshot<'_>, check: &mut Check) -> sqlx::Result<()> {
    // Includes events whose aggregate is missing.
    let sql = concat!(
        "SELECT ",
        recorded_columns!(),
        " FROM events AS e LEFT JOIN aggregates AS a ON a.aggregate = e.aggregate \
          WHERE e.position > $1 ORDER BY e.position LIMIT $2"
    );
    let mut after = i64::MIN;
    loop {
        let statement = snapshot.log.statement(sql).bind(after).bind(page_limit());
        let rows = snapshot.rows(statement).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.try_get(0)?;
        let mut found = Vec::new();
        for row in &rows {
            found.extend(check.event(Position(row.try_get(0)?), || recorded(row)));
        }
        indexes(snapshot, check, &found).await?;
    }
}

/// Checks that events are found by their tags, and that their causes are in the log.
async fn indexes(snapshot: &mut Snapshot<'_>, check: &mut Check, events: &[Recorded]) -> sqlx::Result<()> {
    let tags = events.iter().flat_map(|event| event.tags.iter().map(|tag| (tag.clone(), event.position.0)));
    let (tags, positions): (Vec<String>, Vec<i64>) = tags.unzip();
    let sql = "SELECT i.tag, i.position FROM unnest($1::text[], $2::bigint[]) AS i (tag, position) \
         WHERE NOT EXISTS (SELECT 1 FROM tags AS t WHERE t.tag = i.tag AND t.position = i.position) ORDER BY 2";
    for row in snapshot.rows(snapshot.log.statement(sql).bind(tags).bind(positions)).await? {
        let (tag, position): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let what = format!("the event has tag {tag}, and the index of tags has it not");
        check.find(Some(Position(position)), what);
    }
    let causes: Vec<(Uuid, &Recorded)> =
        events.iter().filter_map(|event| event.causes().causation_id.map(|cause| (cause, event))).collect();
    let ids: Vec<Uuid> = causes.iter().map(|(cause, _)| *cause).collect();
    let sql = "SELECT DISTINCT i.id FROM unnest($1::uuid[]) AS i (id) \
         WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.event_id = i.id)";
    let foreign = snapshot.rows(snapshot.log.statement(sql).bind(ids)).await?;
    let foreign =
        foreign.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<std::collections::HashSet<Uuid>>>()?;
    for (_, event) in causes.iter().filter(|(cause, _)| foreign.contains(cause)) {
        check.foreign_cause(event.position);
    }
    Ok(())
}

fn page_limit() -> i64 {
    i64::try_from(PAGE_EVENTS_MAX / 10).unwrap_or(i64::MAX)
}
