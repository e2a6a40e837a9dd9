//! SQLite's plans for all statements that read events: an index, no scan of a table that grows with the log, no sort.

use rusqlite::Connection;
use uuid::Uuid;

use super::Sqlite;
use super::sources::{Bounds, sources, sql};
use crate::append::{Append, NewEvent};
use crate::backend::{Backend, Options};
use crate::expected::Expected;
use crate::position::Position;
use crate::query::Query;
use crate::recorded::Metadata;

/// Long enough to be read through indexes.
const BOUNDS: Bounds = Bounds { low: Position(10), high: Position(100_000) };

const KIND: &str = "SEARCH e USING INDEX events_by_kind (kind=? AND rowid>? AND rowid<?)";
const AGGREGATE: &str = "SEARCH e USING INDEX sqlite_autoindex_events_2 (aggregate=? AND sequence>? AND sequence<?)";

/// A log of two streams and two types.
async fn log() -> Sqlite {
    let log = Sqlite::in_memory(Options::default()).await.expect("a log in memory");
    for stream_id in ["s", "t"] {
        for event_type in ["A", "B"] {
            let event = NewEvent::from_json(event_type, "1", "1".into(), &Metadata::default()).expect("it is JSON");
            let append = Append::to(stream_id, "1", Expected::Any, vec![event]);
            Backend::append(&log, append).await.expect("an append of any kind is accepted");
        }
    }
    log
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap_or_else(|e| panic!("{sql}: {e}"));
    // Parameters are unbound: the plan does not depend on them.
    let lines = explain.raw_query().mapped(|row| row.get("detail"));
    lines.collect::<rusqlite::Result<_>>().expect("it is explained")
}

#[tokio::test]
async fn every_hot_query_uses_an_index_in_position_order() {
    let log = log().await;
    let connection = log.location.connect().expect("it can be opened");
    let tag =
        ["SEARCH t USING PRIMARY KEY (tag=? AND position>? AND position<?)", "SEARCH e USING INTEGER PRIMARY KEY"];
    let id = Uuid::nil();
    for (query, expected) in [
        (Query::all(), vec!["SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
        (Query::stream("s"), vec![KIND, KIND]),
        (Query::all().of_type("A"), vec![KIND, KIND]),
        (Query::stream("s").of_type("A"), vec![KIND]),
        (Query::stream("s").of_types(["A", "B"]), vec![KIND, KIND]),
        (Query::aggregate("s", "1"), vec![AGGREGATE]),
        (Query::aggregate("s", "1").of_type("A").and_tag("x"), vec![AGGREGATE]),
        (Query { aggregate_id: Some("1".into()), ..Query::all() }, vec![AGGREGATE, AGGREGATE]),
        (Query::tag("x"), tag.to_vec()),
        (Query::stream("s").and_tag("x"), tag.to_vec()),
        (
            Query::correlation(id),
            vec!["SEARCH e USING INDEX events_by_correlation (correlation_id=? AND rowid>? AND rowid<?)"],
        ),
        (
            Query::caused_by(id),
            vec!["SEARCH e USING INDEX events_by_causation (causation_id=? AND rowid>? AND rowid<?)"],
        ),
        (Query::event(id), vec!["SEARCH e USING INDEX sqlite_autoindex_events_1 (event_id=?"]),
        (Query::tag("x").or(Query::aggregate("t", "1")), [&tag[..], &[AGGREGATE]].concat()),
        (Query::stream("none"), vec![]),
        (Query::aggregate("s", "none"), vec![]),
    ] {
        for backwards in [false, true] {
            let found = sources(&connection, &query, BOUNDS).expect("it can be looked up");
            let plans = found.iter().flat_map(|source| plan(&connection, &sql(source, backwards)));
            let plans: Vec<_> = plans.filter(|line| !line.starts_with("SEARCH a USING INTEGER PRIMARY KEY")).collect();
            let is_expected = plans.len() == expected.len()
                && plans.iter().zip(&expected).all(|(plan, begin)| plan.starts_with(begin));
            assert!(is_expected, "{query:?} backwards {backwards}: {plans:#?}");
        }
    }
}

/// Tables that do not grow with the events.
const SMALL: [&str; 3] = ["SCAN kinds", "SCAN log", "SCAN pragma_"];
/// Statements that read one end of the log, which SQLite calls a scan, and counts, which are on no hot path.
const EXCEPT: [&str; 2] = ["LIMIT 1", "count(*)"];

#[tokio::test]
async fn no_other_statement_scans_or_sorts_events() {
    let log = log().await;
    let connection = log.location.connect().expect("it can be opened");
    let mut n_statements = 0;
    for source in
        [include_str!("ledger.rs"), include_str!("tables.rs"), include_str!("read.rs"), include_str!("sources.rs")]
    {
        for sql in statements(source) {
            n_statements += 1;
            let lines = plan(&connection, &sql);
            let is_scan = |line: &&String| {
                line.contains("TEMP B-TREE") || line.starts_with("SCAN") && !SMALL.iter().any(|of| line.starts_with(of))
            };
            let broken: Vec<_> = lines.iter().filter(is_scan).collect();
            assert!(broken.is_empty() || EXCEPT.iter().any(|of| sql.contains(of)), "{sql}: {broken:#?}");
        }
    }
    assert!(n_statements >= 10, "only {n_statements} were found");
}

/// The statements of a source: quoted texts that begin with SELECT.
fn statements(source: &str) -> Vec<String> {
    let literals = source.split("\"SELECT ").skip(1).filter_map(|rest| rest.split_once('"'));
    let whole = literals.map(|(sql, _)| format!("SELECT {}", sql.replace("\\\n", " ")));
    // Statements assembled at run time are checked above.
    whole.filter(|sql| !sql.contains('{')).collect()
}
