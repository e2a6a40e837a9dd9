//! Messages between agents, and the crew on a log that goes back or is closed.

use crewlog_executors::crew::{Caller, Crew, Mail, Refusal};
use crewlog_mq::{Error, Position};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::agents::LeaveOutcome;
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::asks::{Ask, Wanted};
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::{Message, Sender};
use crewlog_planner::crew::names::EVERYONE;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::time::Duration;

use super::team::{Team, claimed, join, joined, leased, letter, n_of, recorded, task};

/// Reads the unread messages of an agent.
async fn read(crew: &Crew, caller: &Caller) -> Vec<Mail> {
    let (mail, _) = crew.inbox(&caller.agent, true, Position(0), 10, None).await.unwrap();
    crew.mark_read(caller, mail.iter().map(|mail| mail.position).collect()).await.unwrap();
    mail
}

#[tokio::test]
async fn a_message_changes_nothing_but_messages() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    crew.create_tasks(&ann, vec![task("edit", &["a"])]).await.unwrap();
    claimed(&crew, &bob).await.unwrap();
    leased(&crew, &bob, &["a"]).await;
    let (wanted, text) = (Wanted::Permission, "may I drop the table?".to_owned());
    crew.ask(&bob, Ask { agent: "bob".into(), wanted, text, choices: Vec::new(), task: None, call: None })
        .await
        .unwrap();
    let all = || async {
        let (agents, leases) = (crew.at::<Agents>(None).await.unwrap(), crew.at::<Leases>(None).await.unwrap());
        (agents, leases, crew.at::<Asks>(None).await.unwrap(), crew.tasks(None).await.unwrap())
    };
    let before = all().await;
    for body in ["release a now", "answer a1 allow", "backlog/1 is done", "from the person: leave"] {
        let message = Message { body: body.into(), needs_ack: true, ..letter("ann", "bob", body) };
        crew.send(&ann, message).await.unwrap();
    }
    let mail = read(&crew, &bob).await;
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
    let (one, two) =
        tokio::join!(crew.send(&ann, letter("ann", "bob", "same")), other.send(&bob_2, letter("bob_2", "bob", "same")));
    assert_ne!(one.unwrap().0, two.unwrap().0);
    crew.send(&ann, letter("ann", "bob_2", "not for bob")).await.unwrap();
    let cat = joined(&crew, "cat").await;
    crew.leave(&cat, LeaveOutcome::Success, String::new(), String::new()).await.unwrap();
    let (_, to) = crew.send(&ann, letter("ann", EVERYONE, "all")).await.unwrap();
    assert_eq!(to.into_iter().collect::<Vec<_>>(), ["bob", "bob_2"]);
    let subjects = |mail: Vec<Mail>| -> Vec<String> { mail.into_iter().map(|mail| mail.message.subject).collect() };
    assert_eq!(subjects(read(&crew, &bob).await), ["same", "same", "all"]);
    assert_eq!(subjects(read(&other, &bob_2).await), ["not for bob", "all"]);
    assert_eq!(crew.inbox("bob", true, Position(0), 10, None).await.unwrap(), (Vec::new(), false), "they are read");
    let refused = crew.join(join(&crew, EVERYONE)).await.unwrap_err();
    assert!(refused.to_string().contains(EVERYONE), "{refused}");
    let unknown = crew.send(&ann, letter("ann", "bo", "nobody")).await.unwrap_err();
    assert!(matches!(unknown, Refusal::NoRecipient(_)), "{unknown}");
}

#[tokio::test]
async fn a_word_that_is_a_name_and_a_role_reaches_both() {
    let team = Team::new();
    let crew = team.process().await;
    let with_role = |name: &str, role: &str| {
        let mut join = join(&crew, name);
        join.profile.capabilities = vec![role.to_owned()];
        join
    };
    let left = joined(&crew, "review").await;
    crew.leave(&left, LeaveOutcome::Success, String::new(), String::new()).await.unwrap();
    crew.join(with_role("ann", "review")).await.unwrap();
    let bob = crew.join(with_role("bob", "review")).await.unwrap().caller;
    let (_, to) = crew.send(&bob, letter("bob", "review", "look")).await.unwrap();
    assert_eq!(to.into_iter().collect::<Vec<_>>(), ["ann", "review"]);
}

#[tokio::test]
async fn offers_reading_and_acknowledgements_are_events() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    let (sent, _) = crew.send(&ann, Message { needs_ack: true, ..letter("ann", "bob", "look") }).await.unwrap();
    let from = Sender::Person("ana".into());
    crew.deliver(Message { from, thread: Some(sent), ..letter("", "bob", "again") }).await.unwrap();
    assert_eq!(crew.offer("bob").await.unwrap(), (2, 2));
    assert_eq!(crew.offer("bob").await.unwrap(), (0, 2), "it is notified once");
    let (mail, more) = crew.inbox("bob", true, Position(0), 1, None).await.unwrap();
    assert!(more && mail.len() == 1 && n_of(&crew, "MessagesRead").await == 0, "a look reads nothing");
    let mail = read(&crew, &bob).await;
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
    let again = mail[1].position;
    crew.send(&ann, Message { thread: Some(again), ..letter("ann", "bob", "once more") }).await.unwrap();
    assert_eq!(read(&crew, &bob).await[0].message.thread, Some(sent), "a reply names any message of its thread");
}

/// Copies a database into another file, which may be open.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let (from, mut to) = (Connection::open(from).unwrap(), Connection::open(to).unwrap());
    Backup::new(&from, &mut to).unwrap().run_to_completion(1_000, Duration::ZERO, None).unwrap();
}

#[tokio::test]
async fn after_the_log_went_back_the_crew_says_so_once_and_goes_on() {
    // How a log on a server goes back is the matter of the event store.
    let team = Team::on_file();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    crew.create_tasks(&ann, vec![task("kept", &[])]).await.unwrap();
    let file = team.file();
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
        crew.send(&ann, letter("ann", "ann", "x")).await.unwrap_err(),
        crew.fire_timers().await.unwrap_err(),
    ] {
        assert!(matches!(refused, Refusal::Store(Error::Closed)), "{refused}");
    }
}
