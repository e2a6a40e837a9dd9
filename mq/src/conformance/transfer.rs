//! An export of one backend, taken in by another, is the same log, field by field; and both go on from there alike.

use super::generate::Dice;
use super::rig::{Rig, check_history, everything, noting, said};
use crate::{Append, Error, EventStore, Expected, Imported, LogIdentity, Memory, Options, Position, Recorded};

const N_APPENDS: u64 = 40;

pub(super) async fn check(rig: &Rig, seed: u64) {
    let mut dice = Dice::new(seed);
    let memory = || EventStore::on(Memory::new(Options::default()));
    let source = rig.new_log().await;
    fill(&source, &mut dice).await;
    let (identity, events) = export(&source).await;
    for copy in [rig.new_log().await, memory()] {
        check_copy(&copy, &identity, &events).await;
        // And back, into the backend, from what was a copy.
        let (identity, events) = export(&copy).await;
        check_copy(&rig.new_log().await, &identity, &events).await;
        let next = [source.append(noting("next", 1)).await, copy.append(noting("next", 1)).await];
        let places = next.map(|appended| said(appended.map(|appended| appended.places)));
        assert_eq!(places[0].is_ok(), places[1].is_ok(), "{places:?}");
    }
    refusals(rig, &identity, &events).await;
}

async fn fill(store: &EventStore, dice: &mut Dice) {
    for n in 0..N_APPENDS {
        let events = (0..=dice.below(3)).map(|m| {
            let event = dice.event();
            if (n + m) % 2 == 0 { event.with_tags(["even"]) } else { event }
        });
        let events = events.collect();
        let append = Append::to(dice.pick(&["s", "S"]), "1", Expected::Any, events);
        store.append(append).await.expect("an append of any kind is accepted");
    }
}

async fn export(store: &EventStore) -> (LogIdentity, Vec<Recorded>) {
    (store.log().await.expect("a log has an identity"), everything(store).await)
}

async fn import(into: &EventStore, identity: &LogIdentity, events: &[Recorded]) -> Result<Imported, Error> {
    let events: Vec<_> = events.iter().cloned().map(Ok).collect();
    into.import(identity.clone(), events.into_iter()).await
}

async fn check_copy(copy: &EventStore, identity: &LogIdentity, events: &[Recorded]) {
    let (n_events, head) = (events.len(), Position(events.len() as i64));
    // A part that ends with an append comes first.
    let whole = events.iter().rposition(|event| event.append_start == event.position && event.position.0 > 9);
    let part = &events[..whole.expect("there are appends")];
    let first = import(copy, identity, part).await.expect("a part is taken in");
    assert_eq!(first, Imported { n_added: part.len(), n_known: 0, head: Position(part.len() as i64) });
    let rest = import(copy, identity, events).await.expect("the rest is taken in");
    assert_eq!(rest, Imported { n_added: n_events - part.len(), n_known: part.len(), head });
    let again = import(copy, identity, events).await.expect("twice is once");
    assert_eq!(again, Imported { n_added: 0, n_known: n_events, head });
    let (copied, found) = export(copy).await;
    assert_eq!((copied.id, copied.created_at), (identity.id, identity.created_at), "a copy is the same log");
    assert_eq!(found, events, "field by field");
    check_history(&found);
    let checked = copy.check().await.expect("it can be checked");
    assert_eq!((checked.n_events, checked.findings), (n_events, vec![]));
    forks(copy, identity, events).await;
}

/// A log whose copy differs in one field of one event has gone another way, and the field is named.
async fn forks(copy: &EventStore, identity: &LogIdentity, events: &[Recorded]) {
    let edits: [(&str, EventEdit); 6] = [
        ("event_id", |event| event.event_id = uuid::Uuid::nil()),
        ("event_type", |event| event.event_type.push('x')),
        ("event_version", |event| event.event_version.push('x')),
        ("data", |event| event.data = "7".into()),
        ("metadata", |event| event.metadata = "{}".into()),
        ("tags", |event| event.tags.push("zz".into())),
    ];
    for (field, edit) in edits {
        let mut edited = events.to_vec();
        edit(&mut edited[4]);
        let refusal = import(copy, identity, &edited).await.expect_err(field);
        let is_told = matches!(refusal, Error::Forked { position: Position(5), differs } if differs == field);
        assert!(is_told, "{field}: {refusal:?}");
    }
    assert_eq!(everything(copy).await, events, "a refusal leaves nothing");
}

/// A change that makes of a history what no log could have written.
type Edit = fn(&mut Vec<Recorded>);

/// The same, of one event.
type EventEdit = fn(&mut Recorded);

/// What no log could have written leaves an empty log as it was.
async fn refusals(rig: &Rig, identity: &LogIdentity, events: &[Recorded]) {
    let copy = rig.new_log().await;
    let before = export(&copy).await;
    let edits: [(&str, Edit); 7] = [
        ("a gap", |events| drop(events.remove(5))),
        ("a sequence that is skipped", |events| events[9].sequence += 1),
        ("an id twice", |events| events[9].event_id = events[3].event_id),
        ("time back", |events| events[9].created_at.0 -= 1_000_000_000),
        ("a zero byte", |events| events[9].stream_id.push('\0')),
        ("no JSON", |events| events[9].data.push('}')),
        ("unsorted tags", |events| events[9].tags = vec!["b".into(), "a".into()]),
    ];
    for (what, edit) in edits {
        let mut edited = events.to_vec();
        edit(&mut edited);
        let refusal = import(&copy, identity, &edited).await.expect_err(what);
        let is_typed = matches!(refusal, Error::InvalidImport { .. } | Error::ImportGap { .. });
        assert!(is_typed, "{what} is refused, and is no fault: {refusal:?}");
        assert_eq!(export(&copy).await, before, "{what}: nothing is left of it");
    }
    copy.append(noting("a", 1)).await.expect("it is as good as new");
    let refusal = import(&copy, identity, events).await.expect_err("it is another log");
    assert!(matches!(refusal, Error::OtherLog { .. }), "{refusal}");
}
