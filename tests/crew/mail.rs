//! Messages between agents, and the crew on a log that goes back or is closed.

use crewlog_executors::crew::{Draft, Refusal};
use crewlog_mq::{Error, Position};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::agents::EVERYONE;
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::asks::{Ask, Wanted};
use crewlog_planner::crew::leases::Leases;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::time::Duration;

use super::team::{Team, claimed, join, joined, leased, n_of, recorded, task};

fn draft(to: &str, subject: &str) -> Draft {
    Draft { to: vec![to.to_owned()], subject: subject.to_owned(), ..Draft::default() }
}

#[tokio::test]
async fn a_message_changes_nothing_but_messages() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    crew.create_tasks(&ann, vec![task("edit", &["a"])]).await.unwrap();
    claimed(&crew, &bob).await;
    leased(&crew, &bob, &["a"]).await;
    let (wanted, text) = (Wanted::Permission, "may I drop the table?".to_owned());
    crew.ask(&bob, Ask { agent: "bob".into(), wanted, text, choices: Vec::new(), task: None }).await.unwrap();
    let all = || async {
        let (agents, leases) = (crew.at::<Agents>(None).await.unwrap(), crew.at::<Leases>(None).await.unwrap());
        (agents, leases, crew.at::<Asks>(None).await.unwrap(), crew.tasks(None).await.unwrap())
    };
    let before = all().await;
    for body in ["release a now", "answer a1 --yes", "backlog/1 is done", "from the person: leave"] {
        let draft = Draft { body: body.into(), needs_ack: true, ..draft("bob", body) };
        crew.send(&ann, draft).await.unwrap();
    }
    let (mail, _) = crew.read_inbox(&bob, true, Position(0), 10).await.unwrap();
    for mail in &mail {
        crew.ack(&bob, mail.position, "release(a) done(backlog/1)".into()).await.unwrap();
    }
    assert_eq!((mail.len(), all().await), (4, before));
}

#[tokio::test]
async fn two_messages_of_one_instant_arrive_at_their_recipients_only() {
    let team = Team::new();
    let (crew, other) = (team.process().await, team.process().await);
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    let bob_2 = joined(&other, "bob_2").await;
    let (one, two) = tokio::join!(crew.send(&ann, draft("bob", "same")), other.send(&bob_2, draft("bob", "same")));
    assert_ne!(one.unwrap().message, two.unwrap().message);
    crew.send(&ann, draft("bob_2", "not for bob")).await.unwrap();
    assert_eq!(crew.send(&ann, draft(EVERYONE, "all")).await.unwrap().to, ["bob", "bob_2"]);
    let subjects = |mail: Vec<crewlog_executors::crew::Mail>| -> Vec<String> {
        mail.into_iter().map(|mail| mail.message.subject).collect()
    };
    assert_eq!(subjects(crew.read_inbox(&bob, true, Position(0), 10).await.unwrap().0), ["same", "same", "all"]);
    assert_eq!(subjects(other.read_inbox(&bob_2, true, Position(0), 10).await.unwrap().0), ["not for bob", "all"]);
    let (none, more) = crew.read_inbox(&bob, true, Position(0), 10).await.unwrap();
    assert!(none.is_empty() && !more, "they are read");
    let refused = crew.join(join(&crew, EVERYONE)).await.unwrap_err();
    assert!(refused.to_string().contains(EVERYONE), "{refused}");
    let unknown = crew.send(&ann, draft("bo", "nobody")).await.unwrap_err();
    assert!(matches!(unknown, Refusal::NoRecipient(_)), "{unknown}");
}

#[tokio::test]
async fn a_word_is_the_name_of_an_agent_or_a_role() {
    let team = Team::new();
    let crew = team.process().await;
    let with_role = |name: &str, role: &str| {
        let mut join = join(&crew, name);
        join.profile.capabilities = vec![role.to_owned()];
        join
    };
    crew.join(with_role("ann", "review")).await.unwrap();
    for join in [with_role("bob", "ann"), join(&crew, "review")] {
        let refused = crew.join(join).await.unwrap_err();
        assert!(matches!(refused, Refusal::Crew(CrewError::Invalid(_))), "{refused}");
    }
    let changed = crew.join(with_role("bob", "review")).await.unwrap().caller;
    assert!(crew.join(with_role("bob", "ann")).await.is_err(), "also later");
    assert_eq!(crew.send(&changed, draft("review", "look")).await.unwrap().to, ["ann"]);
}

#[tokio::test]
async fn offers_reading_and_acknowledgements_are_events() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    let sent = crew.send(&ann, Draft { needs_ack: true, ..draft("bob", "look") }).await.unwrap().message;
    let reply = Draft { thread: Some(sent), ..draft("bob", "again") };
    crew.send_from_person("ana".into(), reply).await.unwrap();
    assert_eq!(crew.offer("bob").await.unwrap(), (2, 2));
    assert_eq!(crew.offer("bob").await.unwrap(), (0, 2), "it is notified once");
    let (mail, more) = crew.inbox("bob", true, Position(0), 1, None).await.unwrap();
    assert!(more && mail.len() == 1 && n_of(&crew, "MessagesRead").await == 0, "a look reads nothing");
    let (mail, _) = crew.read_inbox(&bob, true, Position(0), 10).await.unwrap();
    assert_eq!((mail[1].message.thread, mail[0].ack_is_due, mail[1].ack_is_due), (Some(sent), true, false));
    team.pass(1_801);
    let now = crew.store().now();
    assert_eq!(crew.messages().await.unwrap().overdue(now).count(), 1);
    crew.ack(&bob, sent, "seen".into()).await.unwrap();
    let twice = crew.ack(&bob, sent, "seen".into()).await.unwrap_err();
    assert!(matches!(twice, Refusal::Crew(CrewError::Missing(_))), "{twice}");
    let of = |event_type| n_of(&crew, event_type);
    let counted = [of("MessagesOffered").await, of("MessagesRead").await, of("MessageAcked").await];
    assert_eq!(counted, [1, 1, 1]);
    assert_eq!(crew.messages().await.unwrap().overdue(now).count(), 0);
}

/// Copies a database into another file, which may be open.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let (from, mut to) = (Connection::open(from).unwrap(), Connection::open(to).unwrap());
    Backup::new(&from, &mut to).unwrap().run_to_completion(1_000, Duration::ZERO, None).unwrap();
}

#[tokio::test]
async fn after_the_log_went_back_the_crew_says_so_once_and_goes_on() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    crew.create_tasks(&ann, vec![task("kept", &[])]).await.unwrap();
    // The copy of a log on a server is another test's.
    let Some(file) = team.file() else { return };
    let kept = file.with_extension("kept");
    copy(&file, &kept);
    let n_kept = recorded(&crew).await.len();
    crew.create_tasks(&ann, vec![task("lost", &[])]).await.unwrap();
    leased(&crew, &ann, &["a"]).await;
    assert_eq!(crew.tasks(None).await.unwrap().len(), 2);
    copy(&kept, &file);
    let error = crew.release(&ann, crewlog_planner::crew::leases::Which::All).await.unwrap_err();
    assert!(matches!(error, Refusal::Store(Error::WentBack { .. })), "{error}");
    crew.present(&ann).await.unwrap();
    assert_eq!(crew.leases().await.unwrap().iter().count(), 0, "the lost lease is no lease");
    assert_eq!(crew.tasks(None).await.unwrap().len(), 1);
    assert_eq!(recorded(&crew).await.len(), n_kept);
    leased(&crew, &ann, &["a"]).await;
}

#[tokio::test]
async fn calls_on_a_closed_log_are_refused_as_closed() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    crew.store().close().await;
    for refused in [
        crew.present(&ann).await.unwrap_err(),
        crew.tasks(None).await.unwrap_err(),
        crew.send(&ann, draft("ann", "x")).await.unwrap_err(),
        crew.fire_timers().await.unwrap_err(),
    ] {
        assert!(matches!(refused, Refusal::Store(Error::Closed)), "{refused}");
    }
}
