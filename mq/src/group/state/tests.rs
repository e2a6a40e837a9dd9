//! Parked aggregates, when a version is reset and when another one takes over.

use super::*;

fn aggregate(id: &str) -> AggregateName {
    AggregateName { stream_id: "s".into(), aggregate_id: id.into() }
}

/// A group with two versions, the first of them active.
fn group() -> GroupState {
    let mut group = GroupState::default();
    for version in [1, 2] {
        let declare = GroupCommand::Declare { version, query: Query::all(), n_partitions: 1, start: Position(0) };
        group.process(declare).expect("it is new");
    }
    group
}

fn park(group: &mut GroupState, version: u32, id: &str, position: i64) {
    let (aggregate, position, event_id) = (aggregate(id), Position(position), Uuid::nil());
    let error = format!("of {version}");
    let park = GroupCommand::Park { version, aggregate, position, event_id, n_attempts: 1, error, parked_max: 10 };
    assert_eq!(group.process(park).map(|events| events.len()), Ok(1));
}

fn replay(group: &mut GroupState, version: u32, id: &str) {
    let replay = GroupCommand::Replay { version, aggregate: Some(aggregate(id)) };
    assert_eq!(group.process(replay).map(|events| events.len()), Ok(1));
}

/// The parked aggregates of a version, the position from which, and whether they are being handled again.
fn parked(group: &GroupState, version: u32) -> Vec<(&str, i64, bool)> {
    let parked = group.versions()[&version].parked.iter();
    parked.map(|(name, parked)| (name.aggregate_id.as_str(), parked.from.0, parked.is_replayed)).collect()
}

#[test]
fn a_reset_keeps_parked_what_it_does_not_deliver_again() {
    let mut group = group();
    for (id, position) in [("before", 4), ("at", 5), ("after", 6)] {
        park(&mut group, 1, id, position);
    }
    group.process(GroupCommand::Reset { version: 1, to: Position(5) }).expect("it is a position");
    assert_eq!(parked(&group, 1), [("at", 5, false), ("before", 4, false)]);
    assert_eq!((group.versions()[&1].start, group.versions()[&1].n_resets), (Position(5), 1));
}

#[test]
fn a_new_active_version_handles_all_that_either_has_parked() {
    let mut group = group();
    for (version, id, position) in [(1, "a", 3), (2, "a", 7), (1, "b", 7), (2, "b", 3), (1, "c", 5), (2, "d", 5)] {
        park(&mut group, version, id, position);
    }
    for (version, id) in [(1, "a"), (2, "b"), (1, "c"), (2, "d")] {
        replay(&mut group, version, id);
    }
    group.process(GroupCommand::Promote { version: 2 }).expect("it is declared");
    assert_eq!((group.active(), group.version(1).is_err()), (Some(2), true), "the first is retired");
    // A replay of the version before has not handled it for this one.
    assert_eq!(parked(&group, 2), [("a", 3, false), ("b", 3, false), ("c", 5, false), ("d", 5, true)]);
    assert_eq!(parked(&group, 1), []);
}
