//! Leases, as scripts: the second, the holder, the command, and the resulting events.

mod queue;
mod script;

use proptest::prelude::*;

use super::*;
use script::{act, at, check, command, replay, shown};

#[test]
fn a_lease_that_ends_by_its_time_ends_in_the_log_before_a_request_that_waited_is_granted() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (0, "bob", "short b.rs", "bob has 2+1"),
        (1, "cyd", "wait 100 a.rs b.rs", "cyd waits as 1"),
        (1, "dan", "wait 100 b.rs", "dan waits as 2"),
        (61, "ada", "release", "released [1], expired [2], cyd has 3+2"),
        (62, "cyd", "release", "released [3, 4], dan has 5+1"),
    ]);
}

#[test]
fn an_overlap_in_one_worktree_is_refused_and_names_its_holder() {
    check(&[
        (0, "ada", "exclusive src/a.rs src/b.rs", "ada has 1+2"),
        (1, "bob", "exclusive src/b.rs", "src/b.rs is held by ada"),
        (1, "bob", "exclusive src/c.rs src/*.rs", "src/a.rs is held by ada"),
        (1, "bob", "shared src", "src/a.rs is held by ada"),
        (1, "bob", "exclusive docs/** src/c.rs", "bob has 3+2"),
        (2, "ada", "exclusive docs/x.md", "docs/** is held by bob"),
        (2, "ada", "exclusive src/a.rs", ""),
        (2, "ada", "exclusive src/a.rs src/d.rs", "ada has 5+1"),
    ]);
}

#[test]
fn a_call_that_was_given_before_a_lease_ended_does_not_revive_it() {
    check(&[
        (0, "ada", "short src/a.rs", "ada has 1+1"),
        (100, "bob", "exclusive src/a.rs", "expired [1], bob has 2+1"),
        (50, "ada", "extend 90", ""),
        (50, "ada", "renew", ""),
        (50, "cyd", "exclusive src/a.rs", "src/a.rs is held by bob"),
    ]);
}

#[test]
fn shared_leases_overlap_with_each_other_only() {
    check(&[
        (0, "ada", "shared src/**", "ada has 1+1"),
        (0, "bob", "shared src/a.rs", "bob has 2+1"),
        (1, "cyd", "exclusive src/a.rs", "src/** is held by ada"),
        (1, "ada", "exclusive src/a.rs", "src/a.rs is held by bob"),
        (2, "bob", "release", "released [2]"),
        (2, "ada", "exclusive src/a.rs", "ada has 3+1"),
    ]);
}

#[test]
fn a_thing_is_leased_once_in_all_worktrees_and_no_path_covers_it() {
    check(&[
        (0, "ada", "exclusive @port:5432 a.rs", "ada has 1+2"),
        (1, "bob@w2", "exclusive a.rs @port:5432", "@port:5432 is held by ada"),
        (1, "bob", "exclusive @p* ./@port:5432 @port:543 **/*.5432", "bob has 3+4"),
        (1, "bob@w2", "shared @db:test", "bob has 7+1"),
        (1, "cyd@w3", "shared @db:test", "cyd has 8+1"),
        (2, "dan@w2", "wait 100 @port:5432", "dan waits as 1"),
        (3, "ada", "release", "released [1, 2], dan has 9+1"),
        (4, "ada", "exclusive @port:5432", "@port:5432 is held by dan"),
        (4, "dan/sub@w3", "exclusive @port:5432", "dan/sub has 10+1"),
    ]);
}

#[test]
fn an_overlap_with_another_worktree_is_granted_as_a_merge_risk_unless_strict() {
    check(&[
        (0, "ada", "exclusive src/a.rs", "ada has 1+1"),
        (1, "bob@w2", "strict src/a.rs", "src/a.rs is held by ada"),
        (1, "bob@w2", "exclusive src/a.rs src/b.rs", "bob has 2+2 risk ada"),
        (2, "ada@w2", "exclusive src/a.rs", "src/a.rs is held by bob"),
    ]);
}

#[test]
fn a_subagent_works_under_its_parents_leases_and_not_under_its_siblings() {
    check(&[
        (0, "ada", "exclusive src/**", "ada has 1+1"),
        (1, "ada/x", "exclusive src/a.rs", "ada/x has 2+1"),
        (1, "ada/y", "exclusive src/a.rs", "src/a.rs is held by ada/x"),
        (1, "ada", "exclusive src/a.rs", "src/a.rs is held by ada/x"),
        (2, "adam", "exclusive src/b.rs", "src/** is held by ada"),
        (3, "ada/y", "edit src/b.rs", ""),
    ]);
}

#[test]
fn a_lease_ends_after_its_time_and_a_call_renews_it() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (3_600, "bob", "exclusive a.rs", "a.rs is held by ada"),
        (3_600, "bob", "expire", ""),
        (3_601, "bob", "exclusive a.rs", "expired [1], bob has 2+1"),
        (3_601, "ada", "renew", ""),
        (3_602, "bob", "expire", ""),
        (3_700, "bob", "renew", "bob renewed"),
        (3_759, "bob", "renew", ""),
        (3_760, "bob", "renew", "bob renewed"),
        (7_360, "ada", "exclusive a.rs", "a.rs is held by bob"),
        (7_361, "ada", "exclusive a.rs", "expired [2], ada has 3+1"),
    ]);
}

#[test]
fn a_short_lease_is_renewed_twice_in_its_time() {
    check(&[
        (0, "ada", "short a.rs", "ada has 1+1"),
        (10, "ada", "renew", "ada renewed"),
        (39, "ada", "renew", ""),
        (40, "ada", "renew", "ada renewed"),
        (100, "bob", "exclusive a.rs", "a.rs is held by ada"),
        (101, "bob", "exclusive a.rs", "expired [1], bob has 2+1"),
    ]);
}

#[test]
fn a_renewal_keeps_what_has_not_ended_in_the_log() {
    check(&[
        (0, "ada", "short a.rs", "ada has 1+1"),
        (60, "ada", "renew", "ada renewed"),
        (120, "bob", "exclusive a.rs", "a.rs is held by ada"),
        (121, "bob", "exclusive a.rs", "expired [1], bob has 2+1"),
    ]);
    check(&[
        (0, "ada", "exclusive b.rs", "ada has 1+1"),
        (0, "ada", "short a.rs", "ada has 2+1"),
        (61, "ada", "renew", "ada renewed"),
        (61, "bob", "exclusive a.rs", "a.rs is held by ada"),
        (122, "cyd", "expire", "expired [2]"),
        (123, "ada", "renew", "ada renewed"),
        (123, "bob", "exclusive a.rs", "bob has 3+1"),
    ]);
}

#[test]
fn the_shortest_lease_of_an_agent_decides_how_often_it_is_renewed() {
    check(&[
        (0, "ada", "exclusive b.rs", "ada has 1+1"),
        (0, "ada", "short a.rs", "ada has 2+1"),
        (0, "ada", "exclusive c.rs", "ada has 3+1"),
        (10, "ada", "renew", "ada renewed"),
        (39, "ada", "renew", ""),
        (40, "ada", "renew", "ada renewed"),
    ]);
}

#[test]
fn what_an_agent_leased_after_it_was_lost_stays_with_its_new_session() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (1, "ada", "exclusive b.rs", "ada has 2+1"),
        (2, "ada", "abandon 1", "abandoned [1]"),
        (3, "bob", "exclusive b.rs", "b.rs is held by ada"),
    ]);
}

#[test]
fn a_request_that_has_waited_too_long_is_not_granted_and_blocks_nobody() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (1, "bob", "wait 10 a.rs", "bob waits as 1"),
        (12, "ada", "release", "released [1]"),
        (12, "cyd", "exclusive a.rs", "no longer waits [1], cyd has 2+1"),
        (13, "cyd", "expire", ""),
    ]);
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (1, "bob", "wait 10 a.rs", "bob waits as 1"),
        (11, "ada", "release", "released [1], bob has 2+1"),
    ]);
}

#[test]
fn only_its_holder_or_a_person_ends_a_lease() {
    check(&[
        (0, "ada", "exclusive a.rs b.rs", "ada has 1+2"),
        (1, "bob", "give 1", "lease 1 is held by ada"),
        (1, "bob", "give 9", "lease 9 does not exist or has ended"),
        (2, "ada", "give 1", "released [1]"),
        (2, "ada", "give 1", "lease 1 does not exist or has ended"),
        (3, "eve", "force 2", "eve ended [2]"),
        (3, "eve", "force 2", "lease 2 does not exist or has ended"),
        (4, "ada", "exclusive a.rs", "ada has 3+1"),
        (5, "ada", "extend 7200", "extended [3] to 7205"),
        (6, "ada", "abandon", "abandoned [3]"),
    ]);
}

#[test]
fn waiting_requests_are_granted_in_order() {
    check(&[
        (0, "ada", "shared a.rs b.rs", "ada has 1+2"),
        (1, "bob", "wait 100 a.rs", "bob waits as 1"),
        (1, "bob", "wait 100 a.rs", ""),
        (2, "cyd", "shared a.rs", "a.rs is awaited by bob"),
        (2, "cyd", "shared b.rs", "cyd has 3+1"),
        (3, "dan", "wait 100 a.rs c.rs", "dan waits as 2"),
        (3, "eli", "wait 10 d.rs", "eli has 4+1"),
        (4, "ada", "give 1", "released [1], bob has 5+1"),
        (5, "bob", "release", "released [5], dan has 6+2"),
        (6, "bob", "wait 10 c.rs", "bob waits as 3"),
        (17, "eli", "expire", "no longer waits [3]"),
        (18, "dan", "release", "released [6, 7]"),
    ]);
}

#[test]
fn who_waits_may_wait_for_more_and_gives_up_only_all() {
    check(&[
        (0, "ada", "exclusive a.rs b.rs", "ada has 1+2"),
        (0, "bob", "exclusive c.rs", "bob has 3+1"),
        (1, "bob", "wait 0 a.rs", "a.rs is held by ada"),
        (1, "bob", "wait 100 a.rs", "bob waits as 1"),
        (1, "bob", "wait 100 b.rs", "bob waits as 2"),
        (2, "bob", "give 3", "released [3]"),
        (3, "ada", "give 2", "released [2], bob has 4+1"),
        (4, "bob", "release", "no longer waits [1], released [4]"),
        (5, "cyd", "wait 100 a.rs", "cyd waits as 3"),
        (6, "cyd", "abandon", "no longer waits [3]"),
        (7, "ada", "release", "released [1]"),
    ]);
}

#[test]
fn a_request_waits_to_the_end_of_its_time() {
    check(&[
        (0, "ada", "shared a.rs", "ada has 1+1"),
        (1, "bob", "wait 10 a.rs", "bob waits as 1"),
        (11, "cyd", "shared a.rs", "a.rs is awaited by bob"),
        (11, "cyd", "expire", ""),
        (12, "cyd", "shared a.rs", "no longer waits [1], cyd has 2+1"),
        (12, "cyd", "expire", ""),
    ]);
}

#[test]
fn a_waiting_request_blocks_another_worktree_only_if_either_is_strict() {
    check(&[
        (0, "ada", "shared a.rs", "ada has 1+1"),
        (1, "bob", "wait 100 a.rs", "bob waits as 1"),
        (2, "cyd@w2", "strict-shared a.rs", "a.rs is awaited by bob"),
        (2, "cyd@w2", "shared a.rs", "cyd has 2+1"),
        (2, "cyd", "shared a.rs", "a.rs is awaited by bob"),
    ]);
    check(&[
        (0, "ada", "shared a.rs", "ada has 1+1"),
        (1, "bob@w2", "strict-wait 100 a.rs", "bob waits as 1"),
        (2, "cyd", "shared a.rs", "a.rs is awaited by bob"),
        (2, "bob@w2", "exclusive b.rs", "bob has 2+1"),
    ]);
}

#[test]
fn a_strict_lease_blocks_other_worktrees() {
    check(&[
        (0, "ada", "strict-shared a.rs", "ada has 1+1"),
        (1, "bob@w2", "shared a.rs", "bob has 2+1"),
        (1, "cyd@w2", "exclusive a.rs", "a.rs is held by ada"),
        (2, "ada", "release", "released [1]"),
    ]);
    check(&[
        (0, "ada", "strict-exclusive a.rs", "ada has 1+1"),
        (1, "bob@w2", "shared a.rs", "a.rs is held by ada"),
        (1, "bob@w2", "shared b.rs", "bob has 2+1"),
    ]);
    // A lease that is held already becomes strict.
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (1, "ada", "exclusive a.rs", ""),
        (1, "ada", "strict-exclusive a.rs", "ada has 2+1"),
        (2, "bob@w2", "shared a.rs", "a.rs is held by ada"),
    ]);
}

#[test]
fn a_merge_risk_is_what_would_exclude_each_other_in_one_worktree() {
    check(&[
        (0, "ada", "shared a.rs", "ada has 1+1"),
        (0, "bob@w2", "shared a.rs", "bob has 2+1"),
        (0, "cyd@w3", "exclusive a.rs", "cyd has 3+1 risk ada risk bob"),
        (1, "dan@w2", "shared a.rs", "dan has 4+1 risk cyd"),
        (1, "cyd/x@w2", "shared a.rs", "cyd/x has 5+1"),
        (2, "eli", "exclusive b.rs", "eli has 6+1"),
        (2, "eli/x@w2", "exclusive b.rs", "eli/x has 7+1"),
        (2, "eli/y", "exclusive b.rs", "eli/y has 8+1 risk eli/x"),
    ]);
}

#[test]
fn an_own_lease_covers_what_is_asked_for_again_if_it_is_as_exclusive() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (0, "ada", "shared a.rs", ""),
        (0, "ada", "shared b.rs", "ada has 2+1"),
        (0, "ada", "shared b.rs", ""),
        (0, "ada", "exclusive b.rs", "ada has 3+1"),
        (0, "ada@w2", "exclusive a.rs", "ada has 4+1"),
        (3_601, "ada", "exclusive a.rs", "expired [1, 2, 3, 4], ada has 5+1"),
    ]);
}

#[test]
fn an_agent_that_keeps_a_lease_has_been_renewed() {
    check(&[
        (0, "ada", "exclusive a.rs", "ada has 1+1"),
        (0, "ada", "exclusive b.rs", "ada has 2+1"),
        (70, "ada", "renew", "ada renewed"),
        (71, "ada", "give 1", "released [1]"),
        (71, "ada", "renew", ""),
        (72, "ada", "release", "released [2]"),
        (72, "ada", "exclusive a.rs", "ada has 3+1"),
        (73, "ada", "renew", "ada renewed"),
    ]);
}

#[test]
fn a_state_says_who_holds_and_waits_and_what_ends_next() {
    let mut leases = Leases::default();
    assert_eq!((leases.holders().len(), leases.newest(), leases.next_end()), (0, 0, None));
    for (second, who, what) in [
        (0, "ada", "exclusive a.rs b.rs"),
        (1, "bob", "wait 100 a.rs"),
        (2, "cyd", "wait 50 b.rs"),
        (3, "dan", "shared c.rs"),
    ] {
        leases.process(command(second, who, what)).unwrap();
    }
    assert_eq!(Vec::from_iter(leases.holders()), ["ada", "bob", "cyd", "dan"]);
    assert_eq!((leases.newest(), leases.next_end()), (3, Some(at(52))));
    let waiting: Vec<_> =
        leases.waiting().map(|(number, waiting)| (*number, waiting.request.holder.agent.as_str())).collect();
    assert_eq!(waiting, [(1, "bob"), (2, "cyd")]);
    leases.process(command(60, "dan", "expire")).unwrap();
    assert_eq!(leases.next_end(), Some(at(101)));
    leases.process(command(102, "dan", "expire")).unwrap();
    assert_eq!(leases.next_end(), Some(at(3_600)));
    assert_eq!(Vec::from_iter(leases.holders()), ["ada", "dan"]);
}

#[test]
fn the_leases_of_a_task_end_with_it() {
    let mut leases = Leases::default();
    for (paths, task) in [("a.rs", Some("p/1")), ("b.rs", Some("p/2")), ("c.rs", None), ("d.rs", Some("p/1"))] {
        let request = Request { task: task.map(str::to_owned), ..request("ada", paths) };
        leases.process(LeaseCommand::Reserve { request, turn: Turn::Behind, now: at(0) }).unwrap();
    }
    let which = Which::OfTask("p/1".into());
    let events = leases.process(LeaseCommand::Release { agent: "ada".into(), which, now: at(1) }).unwrap();
    assert_eq!(events.iter().map(shown).collect::<Vec<_>>(), ["released [1, 4]"]);
}

#[test]
fn a_request_that_is_given_again_for_another_reason_waits_once() {
    let mut leases = Leases::default();
    leases.process(command(0, "ada", "exclusive a.rs")).unwrap();
    for (reason, n_events) in [("to paint", 1), ("[redacted]", 0)] {
        let request = Request { reason: reason.into(), ..request("bob", "a.rs") };
        let events = leases.process(LeaseCommand::Reserve { request, turn: Turn::Wait(at(100)), now: at(1) }).unwrap();
        assert_eq!(events.len(), n_events, "{reason}");
    }
}

#[test]
fn a_refused_edit_is_recorded_once_and_an_edit_without_a_lease_is_seen() {
    check(&[
        (0, "ada", "exclusive src/**", "ada has 1+1"),
        (1, "bob", "refuse 1 src/a.rs", "refused src/a.rs under 1"),
        (2, "bob", "refuse 1 src/a.rs", ""),
        (2, "bob", "refuse 2 src/a.rs", ""),
        (3, "bob", "edit src/a.rs", "src/a.rs changed under 1"),
        (3, "ada", "edit src/a.rs", ""),
        (3, "bob@w2", "edit src/a.rs", "src/a.rs changed"),
        (4, "bob", "watch src/a.rs", ""),
        (4, "bob", "watch docs/a.md", "docs/a.md changed"),
    ]);
}

#[test]
fn the_token_of_a_lease_is_the_position_of_its_grant() {
    let mut leases = Leases::default();
    for (who, what) in [("ada", "exclusive a.rs b.rs"), ("bob", "exclusive c.rs"), ("ada", "give 2")] {
        leases.process(command(0, who, what)).unwrap();
    }
    for position in [7, 9, 12] {
        leases.placed(Position(position));
    }
    let tokens: Vec<_> = leases.iter().map(|(number, lease)| (number, lease.token.0)).collect();
    assert_eq!(tokens, [(1, 7), (3, 9)]);
}

#[test]
fn requests_past_a_limit_are_refused() {
    let many: String = (0..=TARGETS_MAX).map(|n| format!("f{n}.rs ")).collect();
    let mut leases = Leases::default();
    for (second, what, expected) in
        [(0, format!("exclusive {many}"), "1 to 200 paths"), (0, "exclusive".into(), "not 0")]
    {
        let refused = leases.process(command(second, "ada", &what)).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let as_many: String = (0..TARGETS_MAX).map(|n| format!("f{n}.rs ")).collect();
    assert_eq!(leases.clone().process(command(0, "ada", &format!("exclusive {as_many}"))).unwrap().len(), 1);
    for seconds in [60, 86_400] {
        let request = Request { ttl: Duration::from_secs(seconds), ..request("ada", "a.rs") };
        let reserve = LeaseCommand::Reserve { request, turn: Turn::Behind, now: at(0) };
        assert_eq!(leases.clone().process(reserve).unwrap().len(), 1, "{seconds} s");
    }
    for seconds in [0, 59, 86_401] {
        let request = Request { ttl: Duration::from_secs(seconds), ..request("ada", "a.rs") };
        let refused = leases.process(LeaseCommand::Reserve { request, turn: Turn::Behind, now: at(0) });
        assert!(matches!(refused, Err(CrewError::Invalid(_))), "{refused:?}");
    }
}

fn request(who: &str, paths: &str) -> Request {
    match command(0, who, &format!("exclusive {paths}")) {
        LeaseCommand::Reserve { request, .. } => request,
        another => panic!("{another:?}"),
    }
}

#[test]
fn a_repository_has_only_so_many_leases() {
    let mut leases = Leases::default();
    for n in 0..LEASES_MAX / TARGETS_MAX {
        let paths: String = (0..TARGETS_MAX).map(|file| format!("{n}/{file}.rs ")).collect();
        leases.apply(&leases.grant(request("ada", &paths), None, at(0)));
    }
    let refused = leases.process(command(1, "bob", "exclusive b.rs")).unwrap_err();
    assert_eq!(refused.to_string(), "the repository has 100000 live leases (leases_max): release some");
    leases.process(command(2, "ada", "give 1")).unwrap();
    assert_eq!(leases.process(command(3, "bob", "exclusive b.rs")).unwrap().len(), 1);
    assert!(matches!(leases.process(command(4, "cyd", "exclusive c.rs")), Err(CrewError::Full(_))));
}

#[test]
fn only_so_many_requests_wait_and_a_refusal_names_only_so_many_leases() {
    let mut leases = Leases::default();
    let paths: String = (0..=BLOCKED_MAX).map(|file| format!("src/{file}.rs ")).collect();
    leases.process(command(0, "ada", &format!("exclusive {paths}"))).unwrap();
    match leases.process(command(1, "bob", "exclusive src/**")) {
        Err(CrewError::Held(blocked)) => assert_eq!(blocked.len(), BLOCKED_MAX),
        another => panic!("{another:?}"),
    }
    for waiting in 1..WAITING_MAX as u64 {
        let request = request(&format!("agent-{waiting}"), "src/0.rs");
        leases.apply(&LeaseEvent::LeasesQueued { waiting, request, until: at(100) });
    }
    assert_eq!(leases.process(command(3, "eli", "wait 100 src/0.rs")).unwrap().len(), 1);
    let refused = leases.process(command(3, "bob", "wait 100 src/0.rs")).unwrap_err();
    assert_eq!(refused.to_string(), "1000 requests are already waiting (waiting_max): try again later");
}

fn step() -> impl Strategy<Value = (u64, String, String)> {
    let who = prop::sample::select(vec!["ada", "ada/x", "bob", "bob@w2", "cyd"]);
    let path = prop::sample::select(vec!["a", "a/b", "a/b/c", "a/*", "**/c", "a/b.rs", "*.rs", "{a,d}/b", "d/[bc]"]);
    let paths = prop::collection::vec(path, 1..3).prop_map(|paths| paths.join(" "));
    let verb = prop::sample::select(vec![
        "exclusive",
        "shared",
        "strict",
        "short",
        "wait 40",
        "release",
        "renew",
        "expire",
        "abandon",
        "wait 400",
        "hook",
        "ask 60",
        "free",
        "hand",
        "offer cyd",
        "accept",
    ]);
    (0_u64..40, who, verb, paths, 1_u64..9).prop_map(|(later, who, verb, paths, number)| {
        let what = match verb {
            "renew" | "expire" | "abandon" => verb.to_owned(),
            "free" | "hand" | "offer cyd" | "accept" => format!("{verb} {number}"),
            _ => format!("{verb} {paths}"),
        };
        (later, who.to_owned(), what)
    })
}

proptest! {
    /// For any sequence of commands: live leases of strangers in one worktree never overlap, the index finds the same
    /// leases as a full scan, and the state is the fold of the events.
    #[test]
    fn live_leases_never_overlap(steps in prop::collection::vec(step(), 1..60)) {
        let (mut leases, mut history, mut now) = (Leases::default(), Vec::new(), 0);
        for (later, who, what) in steps {
            now += later;
            let _ = act(&mut leases, &mut history, now, &who, &what);
            let live: Vec<_> = leases.iter().filter(|(_, lease)| at(now) <= lease.until).collect();
            for (number, lease) in &live {
                let found: Vec<_> = leases.overlapping(&lease.target, at(now)).map(|(number, _)| number).collect();
                let all: Vec<_> = live
                    .iter()
                    .filter(|(_, other)| other.target.pattern().overlaps(&lease.target.pattern()))
                    .map(|(number, _)| *number)
                    .collect();
                prop_assert_eq!(&found, &all, "the index");
                for other in all.into_iter().filter(|other| other > number) {
                    let other = leases.get(other).unwrap();
                    let is_family = is_below(&other.holder.agent, &lease.holder.agent)
                        || is_below(&lease.holder.agent, &other.holder.agent);
                    let may_meet = is_family
                        || other.holder.worktree != lease.holder.worktree
                        || !(other.is_exclusive || lease.is_exclusive);
                    prop_assert!(may_meet, "{:?} and {:?}", lease, other);
                }
            }
        }
        prop_assert_eq!(leases, replay(&history));
    }
}
