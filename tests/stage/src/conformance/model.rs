//! Random operations on a backend and on [`Memory`]: every answer and every refusal is the same.

use std::sync::Arc;
use std::time::Duration;

use super::generate::Dice;
use super::rig::{Hands, Rig, check_history, everything, said, timed};
use crewlog_mq::{Append, Cell, EventStore, LogIdentity, Memory, Position, Query, Range, Stats};

const N_STEPS: u64 = 150;
/// The number of events before the first step: a backend may read a short range differently from a long one.
const N_BEFORE: u64 = 300;

/// A backend and its model.
struct Pair {
    subject: EventStore,
    hands: Arc<Hands>,
    model: EventStore,
    model_hands: Arc<Hands>,
    accepted: Vec<Append>,
}

pub(super) async fn check(rig: &Rig, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut pair = Pair::new(rig).await;
    let before = (0..N_BEFORE).map(|_| dice.event()).collect();
    pair.append(Append::to("s", "1", crewlog_mq::Expected::Any, before), "the first append").await;
    for step in 0..N_STEPS {
        let context = format!("step {step}");
        if dice.one_in(2) {
            pair.hands.pass(Duration::from_micros(dice.below(3)));
        }
        if dice.one_in(2) {
            let (history, cells) = (everything(&pair.model).await, pair.cells(&mut dice, &context).await);
            let again = dice.one_in(4);
            let append = if again { dice.repetition(&pair.accepted) } else { dice.append(&history, &cells) };
            pair.append(append, &context).await;
        } else {
            pair.read(&mut dice, &context).await;
        }
    }
    let (history, expected) = (everything(&pair.subject).await, everything(&pair.model).await);
    check_history(&history);
    assert_eq!(history, expected, "the whole log");
    let backwards = pair.subject.read(&Query::all(), Range::default().backwards(), 9999).await.expect("it can be read");
    assert!(backwards.events.iter().rev().eq(&history), "backwards it is the same");
    let (checked, expected) = (pair.subject.check().await, pair.model.check().await);
    let (checked, expected) = (checked.expect("it can be checked"), expected.expect("it can be checked"));
    assert_eq!(checked.n_events, expected.n_events);
    // Causes are random here, so the check reports them as missing.
    assert_eq!(checked.findings, expected.findings, "what a check finds");
}

impl Pair {
    async fn new(rig: &Rig) -> Self {
        let (subject, hands) = rig.timed_log().await;
        let (model_hands, options) = timed();
        let model = EventStore::on(Memory::new(options));
        Self { subject, hands, model, model_hands, accepted: Vec::new() }
    }

    /// The model takes its time from the subject, which may use a clock of its own.
    async fn append(&mut self, append: Append, context: &str) {
        let outcome = self.subject.append(append.clone()).await;
        let fresh = outcome.as_ref().ok().filter(|appended| !appended.repeated);
        self.model_hands.set(fresh.map_or(self.subject.now(), |appended| appended.created_at));
        let expected = self.model.append(append.clone()).await;
        assert_eq!(said(outcome), said(expected.clone()), "{context}: {append:?}");
        if expected.is_ok() {
            self.accepted.push(append);
        }
    }

    async fn read(&self, dice: &mut Dice, context: &str) {
        let (subject, model) = (&self.subject, &self.model);
        match dice.below(8) {
            0 => assert_eq!(said(subject.head().await), said(model.head().await), "{context}: the head"),
            1 => {
                let at = dice.position(everything(model).await.len());
                assert_eq!(said(subject.whole(at).await), said(model.whole(at).await), "{context}: whole at {at}");
            }
            2 => {
                let bare = |stats: Stats| Stats { n_bytes: 0, ..stats };
                let (found, expected) = (subject.stats().await.map(bare), model.stats().await.map(bare));
                assert_eq!(said(found), said(expected), "{context}: the statistics");
            }
            3 => {
                let bare = |identity: LogIdentity| identity.format;
                assert_eq!(said(subject.log().await.map(bare)), said(model.log().await.map(bare)), "{context}");
            }
            _ => {
                let history = everything(model).await;
                let (query, range) = (dice.query(&history), dice.range(&history));
                let limit = dice.pick(&[0, 1, 2, 7, 100, 10_000, 10_001]);
                let (found, expected) =
                    (subject.read(&query, range, limit).await, model.read(&query, range, limit).await);
                assert_eq!(said(found), said(expected), "{context}: {query:?} {range:?} by {limit}");
            }
        }
        assert!(subject.head().await.is_ok_and(|head| head >= Position(0)));
    }

    /// Some cells, the same on both.
    async fn cells(&self, dice: &mut Dice, context: &str) -> Vec<Cell> {
        let mut all = Vec::new();
        for space in ["lease", "Lease"] {
            let found = self.subject.cells(space, "", 99).await;
            all.extend(found.clone().expect("cells can be read"));
            assert_eq!(said(found), said(self.model.cells(space, "", 99).await), "{context}: cells of {space}");
        }
        let ((space, from), limit) = (dice.cells_from(), dice.pick(&[0, 1, 2, 9]));
        let (found, expected) =
            (self.subject.cells(space, from, limit).await, self.model.cells(space, from, limit).await);
        assert_eq!(said(found), said(expected), "{context}: cells of {space} from {from:?} by {limit}");
        all
    }
}
