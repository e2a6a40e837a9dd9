//! Tests of decisions: they count for one account, one task and one digest.

use super::*;

fn agreement(task: u32, digest: &str) -> Agreement {
    Agreement { plan: "p".into(), task: TaskId(task.into()), digest: digest.into() }
}

fn agreed(by: &str, tasks: &[Agreement], remembered: &[&str], at: i64) -> Decide {
    let remembered = remembered.iter().map(|&digest| digest.to_owned()).collect();
    Decide(ConsentEvent::Agreed {
        by: by.into(),
        how: Means::Answer,
        grant: None,
        tasks: tasks.to_vec(),
        remembered,
        at: Timestamp(at),
    })
}

#[test]
fn only_an_account_that_agreed_and_only_to_this_digest_of_this_task() {
    let mut consents = Consents::default();
    let ada = "ada".to_owned();
    assert_eq!(consents.process(agreed("ada", &[agreement(1, "x"), agreement(2, "y")], &["m"], 5)).unwrap().len(), 1);
    for (accounts, wanted, expected) in [
        (vec![&ada], agreement(1, "x"), true),
        (vec![&ada], agreement(2, "y"), true),
        (vec![&ada], agreement(1, "y"), false),
        (vec![&ada], agreement(3, "x"), false),
        (vec![&ada], Agreement { plan: "q".into(), ..agreement(1, "x") }, false),
        (vec![&"bob".to_owned(), &ada], agreement(1, "x"), true),
        (vec![&"bob".to_owned()], agreement(1, "x"), false),
        (vec![], agreement(1, "x"), false),
    ] {
        assert_eq!(consents.has(accounts.clone(), &wanted), expected, "{accounts:?} {wanted:?}");
    }
    assert_eq!((consents.remembers("ada", "m"), consents.remembers("bob", "m")), (Some(Timestamp(5)), None));
    // A known agreement may have come with an import, so the decision is kept as it is. Nothing new is no event.
    assert_eq!(consents.process(agreed("ada", &[], &["m"], 6)).unwrap(), []);
    assert_eq!(consents.process(agreed("ada", &[agreement(1, "x")], &["m"], 6)).unwrap().len(), 1);
}

#[test]
fn a_withdrawal_ends_the_agreements_to_its_tasks_and_to_no_other() {
    let mut consents = Consents::default();
    let known = [
        agreement(1, "x"),
        agreement(1, "undo"),
        agreement(2, "x"),
        Agreement { plan: "q".into(), ..agreement(1, "x") },
    ];
    for by in ["ada", "bob"] {
        consents.process(agreed(by, &known, &["m"], 5)).unwrap();
    }
    let (by, plan, tasks) = ("ann".to_owned(), "p".to_owned(), [TaskId(1), TaskId(3)].into());
    consents.process(Decide(ConsentEvent::Withdrawn { by, plan, tasks, at: Timestamp(6) })).unwrap();
    for by in ["ada".to_owned(), "bob".to_owned()] {
        let left: Vec<_> = known.iter().map(|wanted| consents.has([&by], wanted)).collect();
        assert_eq!(left, [false, false, true, true], "{by}");
        assert_eq!(consents.remembers(&by, "m"), Some(Timestamp(5)));
    }
    assert_eq!([1, 2, 3].map(|task| consents.n_withdrawn("p", TaskId(task))), [1, 0, 1]);
    consents.process(agreed("ada", &[agreement(1, "x")], &[], 7)).unwrap();
    assert!(consents.has([&"ada".to_owned()], &agreement(1, "x")));
}

#[test]
fn a_no_is_kept_and_is_asked_about_again() {
    let mut consents = Consents::default();
    consents.process(agreed("ada", &[agreement(1, "x")], &["m", "n"], 5)).unwrap();
    let no = ConsentEvent::Declined { by: "ada".into(), forgotten: ["m".to_owned()].into(), at: Timestamp(6) };
    assert_eq!(consents.process(Decide(no.clone())).unwrap(), [no]);
    assert_eq!((consents.remembers("ada", "m"), consents.remembers("ada", "n")), (None, Some(Timestamp(5))));
    assert!(consents.has([&"ada".to_owned()], &agreement(1, "x")), "another plan has its own consent");
}

#[test]
fn a_command_grant_matches_words_and_never_an_operator() {
    for (granted, command, expected) in [
        ("cargo test *", "cargo test", true),
        ("cargo test *", "cargo test --all -p mq", true),
        ("cargo test *", "  cargo   test\t-q ", true),
        ("cargo test", "cargo test", true),
        ("cargo test", "cargo test -q", false),
        ("cargo * -q", "cargo test -q", true),
        ("cargo * -q", "cargo test --all -q", false),
        ("cargo * *", "cargo", false),
        ("cargo test *", "cargo testing", false),
        ("cargo test *", "cargo", false),
        ("cargo test *", "PATH=. cargo test", false),
        ("cargo test *", "/tmp/cargo test", false),
        ("cargo test *", "cargo test; rm -rf x", false),
        ("cargo test *", "cargo test && rm x", false),
        ("cargo test *", "cargo test | sh", false),
        ("cargo test *", "cargo test > x", false),
        ("cargo test *", "cargo test $(rm x)", false),
        ("cargo test *", "cargo test `rm x`", false),
        ("cargo test *", "cargo test 'a b'", false),
        ("cargo test *", "cargo test \"$HOME\"", false),
        ("cargo test *", "cargo test a*", false),
        ("cargo test *", "cargo test ~/x", false),
        ("cargo test *", "cargo test \\\nrm x", false),
        ("cargo test *", "cargo test\nrm x", false),
        ("cargo test *", "cargo test\rrm", false),
        ("cargo test *", "cargo test\u{a0}x", false),
        ("cargo test *", "cargo test # x", false),
        ("cargo test *", "", false),
    ] {
        let covers = Cover::commands(granted).unwrap();
        assert_eq!(covers.has_command(command), expected, "{granted:?} {command:?}");
    }
    for refused in ["", "  ", "*", "* x", "cargo test; rm", "cargo te*", "sh -c 'x'", "a\u{202e}b"] {
        assert!(matches!(Cover::commands(refused), Err(CrewError::Invalid(_))), "{refused:?}");
    }
}

#[test]
fn a_grant_counts_for_its_executor_in_its_plan_up_to_its_limits() {
    let texts = |plan: Option<&str>| Cover::Texts { executor: "claude".into(), plan: plan.map(Into::into) };
    let grant = |covers| Grant { id: "g".into(), folder: "/p".into(), covers, max: Some(2), until: Some(Timestamp(9)) };
    for (plan, of, executor, command, expected) in [
        (None, "p", "claude", None, true),
        (None, "p", "Claude", None, true),
        (None, "p", "codex", None, false),
        (None, "p", "claude", Some("ls"), false),
        (Some("p"), "p", "claude", None, true),
        (Some("p"), "p.2-1", "claude", None, true),
        (Some("p"), "pq", "claude", None, false),
        (Some("p"), "q", "claude", None, false),
    ] {
        assert_eq!(grant(texts(plan)).covers(of, executor, command), expected, "{plan:?} {of} {executor} {command:?}");
    }
    let mut consents = Consents::default();
    let by = || "ada".to_owned();
    let resting = |task, at| {
        let Decide(ConsentEvent::Agreed { by, how, tasks, remembered, at, .. }) =
            agreed("ada", &[agreement(task, "x")], &[], at)
        else {
            unreachable!("it agrees")
        };
        Decide(ConsentEvent::Agreed { by, how, grant: Some("g".into()), tasks, remembered, at })
    };
    assert!(matches!(consents.process(resting(1, 1)), Err(CrewError::Closed(_))), "no such grant");
    let granted = ConsentEvent::Granted { by: by(), grant: grant(texts(None)), at: Timestamp(1) };
    consents.process(Decide(granted.clone())).unwrap();
    consents.process(resting(1, 8)).unwrap();
    assert!(matches!(consents.process(resting(2, 9)), Err(CrewError::Closed(_))), "it has ended");
    // The same task again is nothing new.
    assert_eq!(consents.process(resting(1, 8)).unwrap(), []);
    consents.process(resting(2, 8)).unwrap();
    assert!(matches!(consents.process(resting(3, 8)), Err(CrewError::Closed(_))), "it is used up");
    assert_eq!(consents.grants("ada", Timestamp(8)).count(), 0);
    consents.process(Decide(granted)).unwrap();
    assert_eq!(consents.grants("ada", Timestamp(8)).count(), 1);
    let revoke = |by: &str| Decide(ConsentEvent::Revoked { by: by.into(), grant: "g".into(), at: Timestamp(2) });
    assert!(matches!(consents.process(revoke("bob")), Err(CrewError::Missing(_))));
    consents.process(revoke("ada")).unwrap();
    assert!(matches!(consents.process(resting(4, 2)), Err(CrewError::Closed(_))));
    assert!(consents.has([&by()], &agreement(1, "x")), "what rested on it stays");
}
