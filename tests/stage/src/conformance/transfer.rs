//! An export of one backend, imported by another, gives the same log, field by field, and both continue alike.

use super::generate::Dice;
use super::rig::{Rig, check_history, export, import, noting, said};
use crewlog_mq::{Append, EventStore, Expected, Imported, LogIdentity, Memory, Options, Position, Recorded};

const N_APPENDS: u64 = 40;

pub(super) async fn check(rig: &Rig, seed: u64) {
    let mut dice = Dice::new(seed);
    let memory = || EventStore::on(Memory::new(Options::default()));
    let source = rig.new_log().await;
    fill(&source, &mut dice).await;
    let (identity, events) = export(&source).await;
    for copy in [rig.new_log().await, memory()] {
        check_copy(&copy, &identity, &events).await;
        // Back into the backend, from the copy.
        let (identity, events) = export(&copy).await;
        check_copy(&rig.new_log().await, &identity, &events).await;
        let next = [source.append(noting("next", 1)).await, copy.append(noting("next", 1)).await];
        let places = next.map(|appended| said(appended.map(|appended| appended.places)));
        assert_eq!(places[0].is_ok(), places[1].is_ok(), "{places:?}");
    }
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

async fn check_copy(copy: &EventStore, identity: &LogIdentity, events: &[Recorded]) {
    let (n_events, head) = (events.len(), Position(events.len() as i64));
    // First a part that ends at an append.
    let whole = events.iter().rposition(|event| event.append_start == event.position && event.position.0 > 9);
    let part = &events[..whole.expect("there are appends")];
    let first = import(copy, identity, part).await;
    assert_eq!(first, Imported { n_added: part.len(), n_known: 0, head: Position(part.len() as i64) });
    let rest = import(copy, identity, events).await;
    assert_eq!(rest, Imported { n_added: n_events - part.len(), n_known: part.len(), head });
    let again = import(copy, identity, events).await;
    assert_eq!(again, Imported { n_added: 0, n_known: n_events, head });
    let (copied, found) = export(copy).await;
    assert_eq!((copied.id, copied.created_at), (identity.id, identity.created_at), "a copy is the same log");
    assert_eq!(found, events, "field by field");
    check_history(&found);
    let checked = copy.check().await.expect("it can be checked");
    assert_eq!((checked.n_events, checked.findings), (n_events, vec![]));
}
