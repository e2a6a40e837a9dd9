//! Random calls of several agents in two processes, judged from the log: an independent fold of its events never
//! finds two live overlapping exclusive leases of strangers in one worktree.

use std::collections::BTreeMap;
use std::time::Duration;

use crewlog_executors::crew::{Caller, Crew};
use crewlog_mq::Recorded;
use crewlog_planner::crew::agents::LeaveOutcome;
use crewlog_planner::crew::leases::{LeaseEvent, Request, STREAM, Turn, Which};

use super::team::{Team, join, joined, recorded, request};

/// Targets, and the [`FILES`] that each covers.
pub const TARGETS: [(&str, &[usize]); 6] = [
    ("src/a.rs", &[0]),
    ("src", &[0, 1, 2]),
    ("src/*.rs", &[0, 1]),
    ("src/**/c.rs", &[2]),
    ("{src/b.rs,docs/d.md}", &[1, 3]),
    ("docs", &[3]),
];
/// The files that judge the targets: `src/a.rs`, `src/b.rs`, `src/x/c.rs`, `docs/d.md`.
const FILES: usize = 4;

/// The next random number below `n`.
pub fn below(seed: &mut u64, n: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % n as u64).unwrap()
}

#[tokio::test]
async fn strangers_never_hold_overlapping_exclusive_leases() {
    let mut n_grants = 0;
    for seed in 1..=12_u64 {
        let log = random_log(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)).await;
        n_grants += judge(&log, seed);
    }
    assert!(n_grants > 100, "{n_grants} grants show little");
}

async fn random_log(mut seed: u64) -> Vec<Recorded> {
    let team = Team::new();
    let crews = [team.process().await, team.process().await];
    let mut callers = Vec::new();
    for n in 0..5 {
        let crew = &crews[n % 2];
        let (name, parent) = [("a", None), ("b", None), ("c", None), ("a/sub", Some("a")), ("ab", None)][n];
        let mut join = join(crew, name);
        join.wish.parent = parent.map(str::to_owned);
        if n == 4 {
            join.profile.worktree = "host:other".into();
        }
        callers.push(crew.join(join).await.unwrap().caller);
    }
    for _ in 0..60 {
        let (n, crew) = (below(&mut seed, 5), below(&mut seed, 2));
        let caller = callers[n].clone();
        act(&team, &crews[crew], &caller, &mut seed).await;
        if crews[crew].present(&callers[n]).await.is_err() {
            let parent = caller.agent.split_once('/').map(|(parent, _)| parent.to_owned());
            if let Some(parent) = &parent {
                callers[0] = joined(&crews[crew], parent).await;
            }
            let mut join = join(&crews[crew], &caller.agent);
            join.wish.parent = parent;
            callers[n] = crews[crew].join(join).await.unwrap().caller;
        }
    }
    recorded(&crews[0]).await
}

/// One random call. A refusal is an answer.
async fn act(team: &Team, crew: &Crew, caller: &Caller, seed: &mut u64) {
    let ttl = Duration::from_secs([60, 600, 3_600][below(seed, 3)]);
    match below(seed, 10) {
        0..=4 => {
            let first = TARGETS[below(seed, 6)].0;
            let second = TARGETS[below(seed, 6)].0;
            let (is_exclusive, is_strict) = (below(seed, 4) > 0, below(seed, 8) == 0);
            let turn = [Turn::Behind, Turn::Wait(crew.store().now().plus(ttl)), Turn::Edit][below(seed, 3)];
            let request = Request { is_exclusive, is_strict, ttl, ..request(caller, &[first, second]) };
            let _ = crew.reserve(caller, request, turn).await;
        }
        5 => _ = crew.release(caller, Which::All).await,
        6 => _ = crew.extend(caller, Which::All, ttl).await,
        7 => team.pass([10, 61, 1_000, 3_700][below(seed, 4)]),
        8 => crew.fire_timers().await.unwrap(),
        _rarely => {
            let first = crew.leases().await.unwrap().iter().next().map(|(number, _)| number);
            match first.filter(|_| below(seed, 2) == 0) {
                Some(number) => _ = crew.force(vec![number], "ana".into(), "it is in the way".into()).await,
                None => _ = crew.leave(caller, LeaveOutcome::Failure, String::new(), String::new()).await,
            }
        }
    }
}

struct Held {
    agent: String,
    worktree: String,
    files: [bool; FILES],
    is_exclusive: bool,
}

impl Held {
    fn excludes(&self, other: &Self) -> bool {
        let is_below = |one: &str, of: &str| one == of || one.starts_with(&format!("{of}/"));
        let are_strangers = !is_below(&self.agent, &other.agent) && !is_below(&other.agent, &self.agent);
        let meet = self.files.iter().zip(&other.files).any(|(one, other)| *one && *other);
        are_strangers && self.worktree == other.worktree && meet && (self.is_exclusive || other.is_exclusive)
    }
}

/// Checks each grant against all live leases; returns the number of grants.
pub fn judge(log: &[Recorded], seed: u64) -> usize {
    let (mut live, mut n_grants): (BTreeMap<u64, Held>, _) = (BTreeMap::new(), 0);
    for recorded in log.iter().filter(|recorded| recorded.stream_id == STREAM) {
        match recorded.decode::<LeaseEvent>().unwrap() {
            LeaseEvent::LeasesGranted { first, request, .. } => {
                n_grants += 1;
                for (number, target) in (first..).zip(&request.targets) {
                    let covered = TARGETS.iter().find(|(path, _)| *path == target.path).unwrap().1;
                    let held = Held {
                        agent: request.holder.agent.clone(),
                        worktree: request.holder.worktree.clone(),
                        files: std::array::from_fn(|file| covered.contains(&file)),
                        is_exclusive: request.is_exclusive,
                    };
                    // Nobody knows when its holder was last seen, so its end must be in the log.
                    let other = live.values().find(|other| other.excludes(&held));
                    assert!(other.is_none(), "seed {seed}: {} at {}", held.agent, recorded.position);
                    live.insert(number, held);
                }
            }
            LeaseEvent::LeasesReleased { leases, .. }
            | LeaseEvent::LeasesExpired { leases, .. }
            | LeaseEvent::LeasesAbandoned { leases, .. }
            | LeaseEvent::LeasesForced { leases, .. } => live.retain(|number, _| !leases.contains(number)),
            LeaseEvent::LeasesTransferred { leases, first, to, .. } => {
                for (number, old) in (first..).zip(&leases) {
                    let moved = live.remove(old).expect("it is live");
                    live.insert(number, Held { agent: to.clone(), ..moved });
                }
            }
            LeaseEvent::LeasesQueued { .. }
            | LeaseEvent::ReleaseRequested { .. }
            | LeaseEvent::ReleaseAnswered { .. }
            | LeaseEvent::DeadlockDetected(_)
            | LeaseEvent::HandoffOffered { .. }
            | LeaseEvent::HandoffAnswered { .. }
            | LeaseEvent::HandoffsEnded { .. }
            | LeaseEvent::LeasesExtended { .. }
            | LeaseEvent::WaitingEnded { .. }
            | LeaseEvent::EditRefused { .. }
            | LeaseEvent::UnleasedEdit { .. }
            | LeaseEvent::FilesCommitted { .. } => {}
        }
    }
    n_grants
}
