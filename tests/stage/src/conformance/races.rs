//! Races on two stores of one log: of several writers that want the same thing exactly one gets it, and writers that
//! want different things all succeed.

use std::time::Duration;

use futures::future::join_all;

use super::rig::{Rig, check_history, everything, new_name, note, noting};
use crewlog_mq::{
    Append, Appended, CellChange, CellExpected, Error, EventStore, Expected, Metadata, NewEvent, Options, Position,
    Query, Result,
};

const N_RACERS: usize = 12;
const N_ROUNDS: i64 = 5;

pub(super) async fn check(rig: &Rig) {
    let name = new_name();
    let stores = [rig.open(&name, Options::default()).await, rig.open(&name, Options::default()).await];
    for round in 0..N_ROUNDS {
        let sequence = |_| Append::to("facts", "one", Expected::Sequence(round), vec![note(1)]);
        one_wins("one sequence", &stores, sequence).await;
        let aggregate = format!("new-{round}");
        one_wins("one new aggregate", &stores, |_| Append::to("facts", &aggregate, Expected::NoStream, vec![note(1)]))
            .await;
        let head = stores[0].head().await.expect("the head can be read");
        let tagged = note(1).with_tags([format!("seat-{round}")]);
        let query = Query::tag(format!("seat-{round}")).or(Query::tag("none"));
        one_wins("one condition", &stores, |racer| {
            let event = tagged.clone().with_id(uuid::Uuid::now_v7());
            let append = Append::to("facts", &format!("racer-{racer}"), Expected::Any, vec![event]);
            append.none_matching(query.clone(), head)
        })
        .await;
        let lease = CellChange::set("lease", &format!("{round}"), "mine".into());
        let lease = lease.expecting(CellExpected::Free).held_for(Duration::from_secs(600));
        one_wins("one free cell", &stores, |_| Append::default().cell(lease.clone())).await;
        let held = stores[0].cell("lease", &format!("{round}")).await.expect("it can be read").expect("it is held");
        let next = lease.expecting(CellExpected::Held(held.version));
        one_wins("one version of a cell", &stores, |_| noting("cells", 1).cell(next.clone())).await;
    }
    different_things(&stores).await;
    one_aggregate(&stores).await;
    check_history(&everything(&stores[1]).await);
}

async fn race(stores: &[EventStore; 2], append: impl Fn(usize) -> Append) -> Vec<Result<Appended>> {
    join_all((0..N_RACERS).map(|racer| stores[racer % 2].append(append(racer)))).await
}

async fn one_wins(what: &str, stores: &[EventStore; 2], append: impl Fn(usize) -> Append) {
    let outcomes = race(stores, append).await;
    let n_winners = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(n_winners, 1, "{what} has one winner: {outcomes:?}");
    for refusal in outcomes.into_iter().filter_map(Result::err) {
        let is_typed =
            matches!(refusal, Error::SequenceMismatch { .. } | Error::MatchFound { .. } | Error::CellMismatch { .. });
        assert!(is_typed, "{what}: who lost is told so: {refusal}");
    }
}

async fn different_things(stores: &[EventStore; 2]) {
    let head = stores[1].head().await.expect("the head can be read");
    let outcomes = race(stores, |racer| {
        let own = format!("own-{racer}");
        let event = note(1).with_tags([own.clone()]);
        let append = Append::to("facts", &own, Expected::NoStream, vec![event]).none_matching(Query::tag(&own), head);
        append.cell(CellChange::set("own", &own, String::new()).expecting(CellExpected::Free))
    })
    .await;
    assert!(outcomes.iter().all(Result::is_ok), "who wants different things gets them: {outcomes:?}");
}

/// Writers of different types to one aggregate, without expectations, one of them with many events.
async fn one_aggregate(stores: &[EventStore; 2]) {
    let outcomes = race(stores, |racer| {
        let n_events = if racer == 0 { 50 } else { 1 };
        let of_type = |n| {
            let note = note(n);
            let metadata = Metadata::default();
            NewEvent::from_json(&format!("Type{racer}"), "1.0", note.data().to_owned(), &metadata).expect("it is valid")
        };
        let events: Vec<_> = (0..n_events).map(of_type).collect();
        Append::to("facts", "together", Expected::Any, events)
    })
    .await;
    let mut sequences: Vec<_> = outcomes.into_iter().flatten().flat_map(|appended| appended.places).collect();
    sequences.sort_by_key(|place| place.position);
    let n_events = 50 + N_RACERS as i64 - 1;
    let places: Vec<_> = sequences.iter().map(|place| place.sequence).collect();
    assert_eq!(places, (1..=n_events).collect::<Vec<_>>(), "all land, in one order by position and by sequence");
    let rest = Position(sequences[0].position.0 - 1);
    let read =
        stores[1].read(&Query::stream("facts"), crewlog_mq::Range::after(rest), 999).await.expect("it can be read");
    assert_eq!(read.events.len(), places.len(), "and all are there");
}
