//! The queue, requests for a release, deadlocks and handoffs, as scripts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::news::Notice;
use super::super::*;
use super::script::{act, at, check, holder, targets};
use super::step;

#[test]
fn a_waiting_request_blocks_later_requests_but_not_the_agents_it_waits_for_and_no_edit_of_a_free_file() {
    check(&[
        (0, "ada", "exclusive src/a.rs", "ada has 1+1"),
        (1, "bob", "wait 600 src/**", "bob waits as 1"),
        (2, "cyd", "exclusive src/z.rs", "src/** is awaited by bob"),
        (2, "cyd", "hook src/z.rs", "cyd has 2+1"),
        (3, "ada", "exclusive src/b.rs", "ada has 3+1"),
        (3, "ada/sub", "exclusive src/c.rs", "ada/sub has 4+1"),
        (4, "dan", "hook src/a.rs", "src/a.rs is held by ada"),
        (5, "dan", "wait 600 src/d.rs", "dan waits as 2"),
        (6, "ada", "release", "released [1, 3]"),
        (7, "ada/sub", "release", "released [4]"),
        (8, "cyd", "release", "released [2], bob has 5+1"),
    ]);
}

#[test]
fn a_request_for_a_thing_comes_before_later_ones_of_all_worktrees() {
    check(&[
        (0, "ada", "exclusive @port:1 a.rs", "ada has 1+2"),
        (1, "bob@w2", "wait 600 @port:1 b.rs", "bob waits as 1"),
        (2, "ada", "release", "released [1, 2], bob has 3+2"),
        (3, "cyd", "wait 600 @port:1", "cyd waits as 2"),
        (4, "dan@w3", "exclusive @port:1", "@port:1 is held by bob"),
        (5, "bob@w2", "release", "released [3, 4], cyd has 5+1"),
        (6, "dan@w3", "wait 600 @port:1 c.rs", "dan waits as 3"),
        (7, "eve@w4", "exclusive c.rs", "eve has 6+1"),
    ]);
}

#[test]
fn a_waiting_request_does_not_block_an_agent_that_it_waits_for_through_others() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (0, "cyd", "exclusive c.rs", "cyd has 2+1"),
        (1, "cyd", "wait 600 a.rs", "cyd waits as 1"),
        (2, "bob", "wait 600 c.rs b.rs", "bob waits as 2"),
        (3, "dan", "wait 600 b.rs d.rs", "dan waits as 3"),
        (4, "ada", "exclusive d.rs", "ada has 3+1"),
        (4, "eve", "exclusive d.rs", "d.rs is held by ada"),
    ]);
}

/// No lease ends: the last request makes the first one step back for ana, since it waits for her through cyd.
#[test]
fn a_request_is_granted_once_the_older_one_before_it_waits_for_its_holder() {
    check(&[
        (0, "cyd", "exclusive b", "cyd has 1+1"),
        (0, "ana", "exclusive d", "ana has 2+1"),
        (1, "xen", "wait 600 a b", "xen waits as 1"),
        (2, "ana", "wait 600 a", "ana waits as 2"),
        (3, "cyd", "wait 600 d", "cyd waits as 3, ana has 3+1"),
        (4, "ana", "release", "released [2, 3], cyd has 4+1"),
    ]);
}

#[test]
fn a_request_that_is_handed_over_closes_no_ring_with_what_it_ends() {
    check(&[
        (0, "ana", "exclusive a", "ana has 1+1"),
        (0, "cyd", "exclusive e", "cyd has 2+1"),
        (1, "bob", "ask 300 a d", "bob waits as 1, 1 asks ana"),
        (2, "ana", "wait 600 d e", "ana waits as 2"),
        (3, "ana", "hand 1", "ana hands over to 1, released [1], bob has 3+2"),
    ]);
}

#[test]
fn a_holder_is_asked_once_and_its_answer_releases_keeps_or_hands_over() {
    check(&[
        (0, "ada", "exclusive a.rs b.rs", "ada has 1+2"),
        (0, "bob", "exclusive c.rs", "bob has 3+1"),
        (1, "cyd", "wait 600 a.rs", "cyd waits as 1"),
        (2, "dan", "ask 300 a.rs c.rs", "dan waits as 2, 2 asks bob ada"),
        (3, "dan", "ask 300 a.rs c.rs", ""),
        (4, "eve", "free 2", "request 2 waits for no lease of yours"),
        (4, "ada", "keep 2", "ada keeps"),
        (5, "ada", "hand 2", "c.rs is held by bob"),
        (6, "bob", "free 2", "bob releases for 2, released [3]"),
        (7, "ada", "hand 2", "ada hands over to 2, released [1], dan has 4+2"),
        (8, "ada", "free 2", "request 2 does not wait any more"),
        (9, "dan", "release", "released [4, 5], cyd has 6+1"),
        (10, "eve", "ask 300 z.rs", "eve has 7+1"),
    ]);
}

#[test]
fn a_request_for_a_release_waits_an_hour_longer_than_its_deadline() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (1, "bob", "wait 10 a.rs", "bob waits as 1"),
        (2, "bob", "ask 300 a.rs", "1 asks ada"),
        (3_500, "ada", "renew", "ada renewed"),
        (3_901, "ada", "extend 600", "extended [1] to 4501"),
        (3_902, "ada", "free 1", "ada releases for 1, released [1], bob has 2+1"),
    ]);
}

#[test]
fn agents_that_wait_for_each_other_are_named_once_with_one_suggestion() {
    check(&[
        (0, "bob", "exclusive y.rs", "bob has 1+1"),
        (0, "ada", "exclusive x.rs", "ada has 2+1"),
        (1, "ada", "wait 600 y.rs", "ada waits as 1"),
        (2, "bob", "wait 600 x.rs", "bob waits as 2, ring ada for 1 bob for 2: release 1"),
        (3, "bob", "wait 600 x.rs", ""),
        (4, "ada", "wait 600 y.rs z.rs", "ada waits as 3"),
        (5, "ada", "give 2", "released [2], bob has 3+1"),
    ]);
}

#[test]
fn a_ring_is_found_however_it_closes_and_again_after_it_was_resolved() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (0, "bob", "exclusive b.rs", "bob has 2+1"),
        (0, "cyd", "exclusive c.rs", "cyd has 3+1"),
        (1, "ada", "wait 600 b.rs", "ada waits as 1"),
        (2, "bob", "wait 600 c.rs", "bob waits as 2"),
        (3, "cyd", "wait 600 a.rs", "cyd waits as 3, ring ada for 2 bob for 3 cyd for 1: release 1"),
        (4, "bob", "release", "no longer waits [2], released [2], ada has 4+1"),
        (5, "dan", "wait 600 d/** b.rs", "dan waits as 4"),
        (6, "ada", "hook d/1.rs", "ada has 5+1"),
        (7, "dan", "hook e.rs", "dan has 6+1"),
        // The edit of a free file closes it: dan waits for it, and its holder for dan.
        (8, "cyd", "release", "no longer waits [3], released [3]"),
        (9, "cyd", "wait 600 e.rs", "cyd waits as 5"),
        (10, "cyd", "hook d/2.rs", "cyd has 7+1, ring cyd for 6 dan for 7: release 6"),
    ]);
}

/// An event may close several rings, of which the shortest is named; another one when that is resolved.
#[test]
fn the_next_ring_is_named_when_one_is_resolved() {
    check(&[
        (0, "cyd", "shared a", "cyd has 1+1"),
        (0, "ada", "shared a", "ada has 2+1"),
        (0, "bob", "shared a", "bob has 3+1"),
        (1, "bob", "wait 600 a", "bob waits as 1"),
        (2, "ada", "wait 600 a", "ada waits as 2, ring ada for 3 bob for 2: release 2"),
        (3, "cyd", "wait 600 a", "cyd waits as 3, ring ada for 1 cyd for 2: release 1"),
        (4, "ada", "release", "no longer waits [2], released [2], ring bob for 1 cyd for 3: release 1"),
    ]);
}

#[test]
fn in_a_long_ring_the_first_agent_by_name_should_release() {
    let names = ["dan", "cyd", "bob", "ada"];
    let (mut leases, mut history) = (Leases::default(), Vec::new());
    let mut last = Vec::new();
    for (index, name) in names.iter().enumerate() {
        act(&mut leases, &mut history, 0, name, &format!("exclusive f{index}")).unwrap();
    }
    for (index, name) in names.iter().enumerate() {
        last = act(&mut leases, &mut history, 1, name, &format!("wait 600 f{}", (index + 1) % 4)).unwrap();
    }
    assert_eq!(last, ["ada waits as 4", "ring ada for 1 dan for 2 cyd for 3 bob for 4: release 4"]);
}

#[test]
fn a_handoff_moves_live_leases_in_the_append_of_its_acceptance() {
    check(&[
        (0, "ada", "exclusive a.rs b.rs", "ada has 1+2"),
        (1, "bob", "wait 600 b.rs", "bob waits as 1"),
        (2, "ada", "offer ada 1", "a handoff is for another agent"),
        (2, "ada", "offer cyd", "you hold no task and no lease that you could hand over"),
        (2, "ada", "exclusive *.rs", "ada has 3+1"),
        (2, "ada", "offer cyd 1 2", "*.rs is held by ada"),
        (2, "ada", "give 3", "released [3]"),
        (2, "ada", "offer cyd 1 2", "ada offers 1 to cyd"),
        (3, "ada", "offer cyd 1 2", ""),
        (4, "bob", "accept 1", "handoff 1 is not offered to you, or has ended"),
        (4, "ada", "accept 1", "handoff 1 is not offered to you, or has ended"),
        (5, "ada", "give 2", "released [2], bob has 4+1"),
        (6, "cyd", "accept 1", "cyd accepts 1, [1] go to cyd as 5"),
        (7, "cyd", "accept 1", "handoff 1 is not offered to you, or has ended"),
        (8, "ada", "exclusive a.rs", "a.rs is held by cyd"),
        (9, "cyd", "offer ada 5", "cyd offers 2 to ada"),
        (10, "ada", "decline 2", "ada ends 2"),
        (11, "cyd", "offer ada 5", "cyd offers 3 to ada"),
        (12, "cyd", "decline 3", "cyd ends 3"),
        (13, "cyd", "offer ada 5", "cyd offers 4 to ada"),
        (14, "cyd", "release", "released [5]"),
        (15, "ada", "accept 4", "cyd holds none of the leases of handoff 4 any more"),
        (400, "ada", "expire", "lapsed [4]"),
        (401, "bob", "offer ada 4", "bob offers 5 to ada"),
        (402, "bob", "abandon", "lapsed [5], abandoned [4]"),
    ]);
}

#[test]
fn an_agent_hears_each_fact_about_its_leases_until_it_no_longer_holds() {
    let (mut leases, mut history) = (Leases::default(), Vec::new());
    let mut heard = |second, who: &str, does: &str, whom: &str| -> Vec<String> {
        act(&mut leases, &mut history, second, who, does).expect(does);
        leases.notices(whom, at(second)).iter().map(Notice::key).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(heard(0, "ada", "short a.rs", "ada"), none);
    assert_eq!(heard(1, "bob", "wait 600 a.rs", "ada"), ["awaited 1"]);
    assert_eq!(heard(2, "bob", "ask 300 a.rs", "ada"), ["asked 1"]);
    assert_eq!(heard(3, "ada", "keep 1", "bob"), ["news 1"]);
    assert_eq!(heard(4, "ada", "renew", "ada"), ["awaited 1"]);
    assert_eq!(heard(70, "ada", "expire", "ada"), ["news 2"], "the loss");
    assert_eq!(heard(71, "bob", "expire", "bob"), ["news 1", "news 3"], "the grant");
    assert_eq!(heard(72, "bob", "offer ada 2", "ada"), ["news 2", "offered 1"]);
    assert_eq!(heard(73, "ada", "decline 1", "bob"), ["news 1", "news 3", "news 4"]);
    assert_eq!(heard(74, "eve", "force 2", "bob").last().unwrap(), "news 5");
}

/// For each agent the agents whose leases its waiting requests wait for.
fn waits(leases: &Leases, now: Timestamp) -> Vec<(String, String)> {
    let live = leases.waiting().filter(|(_, waiting)| now <= waiting.until);
    let edges = live.flat_map(|(_, waiting)| {
        let by = leases.leases_in_the_way(&waiting.request, now);
        by.into_iter().map(|by| (waiting.request.holder.agent.clone(), by.holder.agent)).collect::<Vec<_>>()
    });
    edges.collect()
}

fn reached(edges: &[(String, String)], from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(agent) = next.pop() {
        for (_, to) in edges.iter().filter(|(by, _)| *by == agent) {
            if found.insert(to.clone()) {
                next.push(to.clone());
            }
        }
    }
    found
}

proptest! {
    /// For any sequence of commands: no waiting request blocks an agent that it waits for, and an agent that waits for itself
    /// through others is in a deadlock that was named, whose suggestion is a lease in the ring.
    #[test]
    fn the_queue_makes_no_deadlock_and_others_are_named(steps in prop::collection::vec(step(), 1..60)) {
        let (mut leases, mut history, mut now) = (Leases::default(), Vec::new(), 0);
        for (later, who, what) in steps {
            now += later;
            let _ = act(&mut leases, &mut history, now, &who, &what);
            let edges = waits(&leases, at(now));
            for (_, waiting) in leases.waiting().filter(|(_, waiting)| at(now) <= waiting.until) {
                for blocked in reached(&edges, &waiting.request.holder.agent) {
                    let asks = Request { holder: holder(&blocked), targets: targets("**/*.rs"), ..waiting.request.clone() };
                    let by = leases.blocked(&asks, None, at(now));
                    let is_it = |by: &Blocked| by.lease().is_none() && by.holder.agent == waiting.request.holder.agent;
                    prop_assert!(!by.iter().any(is_it), "{blocked} by {waiting:?}");
                }
            }
            for (number, waiting) in leases.waiting().filter(|(_, waiting)| at(now) <= waiting.until) {
                // A lease whose time is up makes room with the next command or timer.
                let is_stale = leases.next_end().is_some_and(|end| end < at(now));
                let by = leases.blocked(&waiting.request, Some(*number), at(now));
                prop_assert!(is_stale || !by.is_empty(), "{waiting:?} waits for nothing");
            }
            for (agent, _) in &edges {
                if reached(&edges, agent).contains(agent) {
                    let in_ring = |deadlock: &Deadlock| {
                        let has = |name: &String| deadlock.ring.iter().any(|part| part.agent == *name);
                        has(agent) || reached(&edges, agent).iter().any(has)
                    };
                    prop_assert!(leases.deadlocks().iter().any(in_ring), "{agent}: {edges:?} {:?}", leases.deadlocks());
                }
            }
            for deadlock in leases.deadlocks() {
                prop_assert!(deadlock.ring.iter().any(|part| part.lease == deadlock.release));
            }
        }
    }
}
