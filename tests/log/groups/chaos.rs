//! Workers that are started, killed, stopped and rebalanced while handlers fail at random and cells are deleted.

use crewlog_mq::GroupCommand;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::*;

/// A small generator, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const N_AGGREGATES: i64 = 12;
const N_NEW: i64 = 20;

/// Ends after a number of appends, which serve as the clock here.
async fn write(store: &EventStore, n: &mut i64) {
    for _ in 0..N_NEW {
        append(store, &format!("a{}", *n % N_AGGREGATES), *n).await;
        *n += 1;
    }
}

async fn turmoil(store: &EventStore, seed: u64, deletes_cells: bool) -> (Seen, i64) {
    let seen = Seen::default();
    let dice = Mutex::new(Dice(seed));
    let failing = || {
        seen.handler("", |event, delivery| {
            if dice.lock().expect("it goes well").roll(10) == 0 {
                return Err("bad luck".into());
            }
            effect(event, delivery)
        })
    };
    let group = group(store).partitions(5).lease(Duration::from_millis(200)).park_after(2);
    let mut n = 0;
    group.declare().await.expect("it goes well");
    for round in 0..if crewlog_stage::tries_all() { 15 } else { 6 } {
        let roll = |sides| dice.lock().expect("it goes well").roll(sides);
        let mut workers: FuturesUnordered<_> = (0..=roll(3)).map(|_| group.run(failing())).collect();
        tokio::select! {
            ended = workers.next() => panic!("a worker ended in round {round}: {ended:?}"),
            () = write(store, &mut n) => {}
        }
        // Half of the rounds end in the middle of the work, as if all workers were killed.
        if round % 2 == 0 {
            let floor = Position(n / 2);
            tokio::select! {
                ended = workers.next() => panic!("a worker ended in round {round}: {ended:?}"),
                done = in_time("half of it", group.wait_until(floor)) => done.expect("it goes well"),
            }
        }
        drop(workers);
        if deletes_cells && round % 5 == 0 {
            delete_cells(store).await;
        }
        store
            .groups()
            .execute("facts", GroupCommand::Replay { version: 1, aggregate: None })
            .await
            .expect("it goes well");
    }
    // At the end nothing fails any more.
    let stop = async {
        let replay = GroupCommand::Replay { version: 1, aggregate: None };
        store.groups().execute("facts", replay).await.expect("it goes well");
        group.wait_until(store.head().await.expect("it goes well")).await.expect("it goes well");
        until(store, "nothing is parked", |report| report.versions[0].parked.is_empty()).await;
    };
    in_time("the end", group.run_until(seen.handler("", effect), stop)).await.expect("it goes well");
    (seen, n)
}

#[tokio::test]
async fn each_event_is_handled_in_order_with_one_effect_despite_worker_failures() {
    for seed in [1, 2] {
        for (store, _place) in logs().await {
            let (seen, n) = turmoil(&store, 0x9E37_79B9 + seed, seed == 2).await;
            for (aggregate, effects) in effects(&store).await {
                let first: i64 = aggregate[1..].parse().unwrap();
                let expected = (first..n).step_by(N_AGGREGATES as usize).collect::<Vec<_>>();
                assert_eq!(effects, expected, "of {aggregate} with seed {seed}");
            }
            for (aggregate, sequences) in seen.sequences() {
                let mut last = 0;
                for sequence in sequences {
                    assert!(sequence <= last + 1, "{aggregate}: {sequence} comes after {last}");
                    last = sequence;
                }
            }
        }
    }
}
