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
    // Nothing new is no event.
    assert_eq!(consents.process(agreed("ada", &[agreement(1, "x")], &["m"], 6)).unwrap(), []);
    let events = consents.process(agreed("ada", &[agreement(1, "x"), agreement(1, "z")], &[], 7)).unwrap();
    assert!(matches!(&events[..], [ConsentEvent::Agreed { tasks, .. }] if *tasks == [agreement(1, "z")]), "{events:?}");
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
