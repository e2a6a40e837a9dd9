//! A query means the same in memory, as a paged read of any size in both directions, and as the condition of an append.

use super::generate::{Dice, meant};
use super::rig::{Rig, everything, in_pages};
use crewlog_mq::{
    Append, CellChange, CellExpected, Error, EventStore, Expected, PAGE_EVENTS_MAX, Position, Query, Range, Recorded,
};

const N_QUERIES: u64 = 15;
/// Too many to be worth merging. In each, one event has the same aggregate id, and one the same type.
const N_STREAMS: u64 = 150;

pub(super) async fn check(rig: &Rig, seed: u64) {
    let mut dice = Dice::new(seed);
    let store = rig.new_log().await;
    fill(&store, &mut dice).await;
    let history = everything(&store).await;
    for wide in [
        Query { aggregate_id: Some("1".into()), ..Query::all() },
        Query::all().of_type("Noted"),
        Query::tag("x").or(Query::all().of_type("Noted")),
        Query::stream("s").or(Query::stream("stream-7")).or(Query::all()),
        (0..60).fold(Query::stream("none"), |query, n| query.or(Query::stream(&format!("stream-{n}")))),
        (0..20).fold(Query::tag("none"), |query, _| query.or(Query::tag("x"))),
        Query::stream("s").or(Query::tag("x").or(Query::tag("y").or(Query::all().of_type("Closed")))),
        Query::all().of_types(["Noted", "Closed"]),
        Query::all().of_types([]).or(Query::tag("x").of_types([])).or(Query::aggregate("s", "1").of_types([])),
        Query::stream("s").of_types([]).or(Query::tag("y")),
        Query::tag("rare"),
        Query::aggregate("stream-7", "own"),
        Query::tag("none"),
    ] {
        check_query(&store, &history, &wide, Range::default(), &mut dice).await;
        check_query(&store, &history, &wide, Range::default().backwards(), &mut dice).await;
    }
    let of_none = meant(&Query::all().of_types([]), Range::default(), &history);
    assert!(of_none.is_empty(), "an empty list of types matches nothing");
    for _ in 0..N_QUERIES {
        let (query, range) = (dice.query(&history), dice.range(&history));
        check_query(&store, &history, &query, range, &mut dice).await;
    }
}

async fn fill(store: &EventStore, dice: &mut Dice) {
    let many = (0..400).map(|n| if n % 133 == 0 { dice.event().with_tags(["rare"]) } else { dice.event() }).collect();
    store.append(Append::to("s", "1", Expected::Any, many)).await.expect("an append of any kind is accepted");
    for n in 0..N_STREAMS {
        let stream = format!("stream-{n}");
        let append = Append::to(&stream, "1", Expected::Any, vec![dice.event()]);
        let append = append.and(&stream, "own", Expected::Any, vec![dice.event()]);
        store.append(append).await.expect("an append of any kind is accepted");
    }
    for _ in 0..30 {
        let append = Append::to(dice.pick(&["s", "S", "s ", "t/%_"]), "2", Expected::Any, vec![dice.event()]);
        store.append(append).await.expect("an append of any kind is accepted");
    }
}

async fn check_query(store: &EventStore, history: &[Recorded], query: &Query, range: Range, dice: &mut Dice) {
    let expected = meant(query, range, history);
    let range_only = |event: &&Recorded| meant(&Query::all(), range, std::slice::from_ref(*event)).len() == 1;
    let mut matched: Vec<_> = history.iter().filter(range_only).filter(|event| query.matches(event)).cloned().collect();
    if range.backwards {
        matched.reverse();
    }
    check_same(&matched, &expected, query, range, "Query::matches");
    for limit in [PAGE_EVENTS_MAX, dice.pick(&[1, 2, 3, 10, 50])] {
        // Pages of one event would be too many if much matches.
        let limit = if expected.len() > 100 { limit.max(60) } else { limit };
        check_same(&in_pages(store, query, range, limit).await, &expected, query, range, "a read");
    }
    let after = if dice.one_in(2) { range.after } else { Position(dice.below(history.len() as u64) as i64) };
    let first = meant(query, Range::after(after), history).first().map(|event| event.position);
    // A cell's expectation is judged last, so this append is never made.
    let never = CellChange::delete("none", "none").expecting(CellExpected::Version(-1));
    let probe = Append::default().none_matching(query.clone(), after).cell(never);
    match (store.append(probe).await, first) {
        (Err(Error::CellMismatch { .. }), None) => {}
        // The decision would be based on events that do not exist.
        (Err(Error::WentBack { known, .. }), None) if known == after && after.0 > history.len() as i64 => {}
        (Err(Error::MatchFound { position, after: told }), Some(first)) if position == first && told == after => {}
        (outcome, first) => panic!("as a condition after {after}, {query:?} matches {first:?} first: {outcome:?}"),
    }
}

fn check_same(found: &[Recorded], expected: &[Recorded], query: &Query, range: Range, by: &str) {
    let positions = |events: &[Recorded]| events.iter().map(|event| event.position.0).collect::<Vec<_>>();
    assert_eq!(positions(found), positions(expected), "{query:?} {range:?} by {by}");
    assert_eq!(found, expected, "{query:?} {range:?} by {by}, field by field");
}
